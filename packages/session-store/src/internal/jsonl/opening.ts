/** Takes sessions for writing, and puts in order what a crash left. */
import type { InboxEntry, Scalars, SessionHeader } from "@turnpike/contract"
import { LogLine, LogState, type SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { randomBytes, randomUUID } from "node:crypto"
import * as path from "node:path"
import { busy, damaged, failed, type StoreError, unsupported } from "../storeFailure.ts"
import { type FileError, hasCode, makeSmall, readSmall, using, writeAll } from "./files.ts"
import type { Inbox } from "./inboxFile.ts"
import type { Inboxes } from "./inboxes.ts"
import { nameOf } from "./layout.ts"
import type { Leases } from "./leases.ts"
import { lineFeed } from "./lines.ts"
import * as LogFiles from "./logFiles.ts"
import type { Root } from "./root.ts"
import * as Segment from "./segment.ts"
import * as Writer from "./writer.ts"

const decodeHeader = LogLine.decoder("session-header")

export const headerOf = ({ files, id, place, absent }: LogFiles.Log): Effect.Effect<SessionHeader.SessionHeader, FileError | StoreError> =>
  Effect.gen(function*() {
    const bytes = yield* readSmall(files, place.header)
    if (bytes === undefined) {
      return yield* (yield* files.stat(place.directory)) === undefined ? absent : damaged(id, "its header is missing: header.json")
    }
    const header = decodeHeader(bytes.at(-1) === lineFeed ? bytes.subarray(0, -1) : bytes)
    if (Result.isFailure(header)) {
      const { kind, message } = header.failure
      return yield* kind === "newer" ? unsupported(id, `its header is of a later version: ${message}`) : damaged(id, `its header cannot be read: ${message}`)
    }
    if (header.success.id !== id) return yield* damaged(id, `its header is that of session ${header.success.id}`)
    return header.success
  })

/** Who has a session, if anybody. */
export const holderOf = (log: LogFiles.Log, leases: Leases, { latest: { generation, owner } }: LogFiles.View): Effect.Effect<SessionStore.Holder | undefined, FileError | StoreError> =>
  Effect.gen(function*() {
    if (owner === undefined || (yield* isReleased(log, generation)) || !(yield* leases.runs(owner))) return undefined
    return { name: owner.holder, since: owner.since }
  })

/** Longer than the line that says that a writer is done. */
const lastBytes = 256

const isReleased = (log: LogFiles.Log, generation: number): Effect.Effect<boolean, FileError | StoreError> =>
  using(log.files, log.place.segment(generation), "read", (file) =>
    Effect.gen(function*() {
      const { size } = yield* file.stat
      const bytes = yield* file.read(Math.max(0, size - lastBytes), lastBytes)
      const end = bytes.lastIndexOf(lineFeed)
      const start = bytes.lastIndexOf(lineFeed, end - 1)
      return end > 0 && start >= 0 && Segment.markOf(bytes.subarray(start + 1, end))?.log === "released"
    })).pipe(LogFiles.ifThere(log))

export interface Written {
  readonly appender: Writer.Appender
  /** What the whole log claims. */
  readonly claimed: Set<InboxEntry.ReceiptId>
}

export interface Opening {
  readonly root: Root
  readonly leases: Leases
  readonly inboxes: Inboxes
  /** What the writers of this store have written, by their claims. */
  readonly writers: Map<string, Written>
  readonly tell: (id: Scalars.SessionId) => void
}

const refuseHeld = (log: LogFiles.Log, leases: Leases, view: LogFiles.View) =>
  Effect.flatMap(holderOf(log, leases, view), (holder) => holder === undefined ? Effect.void : Effect.fail(busy(log.id, holder)))

interface Claim {
  readonly generation: number
  readonly claim: string
}

/**
 * Makes the file of the next generation, with who it is: from then on no earlier
 * writer acknowledges anything. Others that try to at the same time find it made.
 */
export const claim = (opening: Opening, log: LogFiles.Log, holder: string): Effect.Effect<Claim, FileError | StoreError> =>
  Effect.gen(function*() {
    const { leases, root: { files, layout } } = opening
    const view = yield* LogFiles.view(log)
    yield* refuseHeld(log, leases, view)
    yield* leases.begin
    const name = randomUUID()
    const generation = view.latest.generation + 1
    const since = yield* Writer.recordTime
    const draft = path.join(layout.making, `${leases.owner}.${name}`)
    // Before others can see it, so that no fiber finds a lease of this store that it does not seem to hold.
    leases.hold(name)
    const release = leases.release(name, Effect.void)
    const isMade = yield* Effect.gen(function*() {
      yield* makeSmall(files, draft, Segment.headBytes({ session: log.id, made: view.latest.made, generation, owner: { store: leases.owner, claim: name, holder, since } }))
      return yield* Effect.as(files.link(draft, log.place.segment(generation)), true).pipe(Effect.catchIf(hasCode("EEXIST"), () => Effect.succeed(false)))
    }).pipe(
      Effect.onError(() => release),
      // The file has its other name, or none that matters.
      Effect.ensuring(Effect.ignore(files.unlink(draft)))
    )
    if (!isMade) return yield* Effect.andThen(release, claim(opening, log, holder))
    return { generation, claim: name }
  })

interface Folded {
  readonly state: LogState.LogState
  readonly claimed: ReadonlyArray<InboxEntry.ReceiptId>
  readonly cursor: LogFiles.Cursor
}

/** What a log amounts to, as far as it counts for one who takes it; `before` is what was read already. */
const folded = (log: LogFiles.Log, last: LogFiles.Begun, { parent }: SessionHeader.SessionHeader, before?: Folded): Effect.Effect<Folded, FileError | StoreError> =>
  Effect.gen(function*() {
    let state = before?.state ?? LogState.empty()
    let cursor = before?.cursor ?? { generation: last.generation, position: last.start }
    const claimed = [...before?.claimed ?? []]
    yield* Stream.runForEachArray(
      LogFiles.batches(log, {
        last,
        until: { isWritten: false },
        after: state.next - 1,
        ...(before === undefined ? {} : { from: before.cursor }),
        onEnd: (end) => {
          cursor = end
        }
      }),
      (batches) =>
        Effect.gen(function*() {
          for (const batch of batches) {
            const events = yield* Effect.fromResult(Segment.eventsOf(log.id, batch, -1))
            const next = LogState.all(state, events)
            if (Result.isFailure(next)) {
              return yield* failed("SESSION_DAMAGED", `event ${next.failure.seq} of session ${log.id} breaks a rule of its log: ${next.failure.message}`)
            }
            state = next.success
            // A fork's first events claim what its parent had received.
            claimed.push(...Writer.claimedBy(events.filter(({ seq }) => seq >= (parent?.events ?? 0))))
          }
          // Long logs leave the event loop free in between.
          yield* Effect.yieldNow
        })
    )
    return { state, claimed, cursor }
  })

/**
 * The receipts that are to wait again, put back where no writer has done it yet: one
 * before may have, and not have come to close the turn.
 */
const requeue = (inboxes: Inboxes, id: Scalars.SessionId, generation: number, unspent: ReadonlyArray<InboxEntry.ReceiptId>) =>
  Effect.gen(function*() {
    const requeued: Array<InboxEntry.Receipt> = []
    for (const lost of unspent) {
      const time = yield* Writer.recordTime
      const inbox = yield* inboxes.add(id, (before) => {
        const receipt = before.receipts.get(lost)
        // What a restored log claimed may be of an inbox that was not restored with it.
        if (receipt === undefined || before.repeating(lost) !== undefined) return Effect.undefined
        const { kind, source, text } = receipt
        return Effect.succeed({ type: "received", id: receiptId(before), time, kind, text, source, retry_of: lost, generation } as const)
      })
      const again = inbox.repeating(lost)
      if (again !== undefined) requeued.push(again)
    }
    return requeued
  })

/** A new receipt's id: where it stands, about, and what no other process comes upon. */
export const receiptId = (inbox: Inbox): InboxEntry.ReceiptId => `r-${inbox.lines() + 1}-${randomBytes(6).toString("hex")}`

/** Says in the own file what it follows, and appends what closes an open turn. */
const begin = (opening: Opening, log: LogFiles.Log, header: SessionHeader.SessionHeader, claimed: Claim, before: Folded) =>
  Effect.gen(function*() {
    const { inboxes, writers } = opening
    const { files, id, place } = log
    const { last } = yield* LogFiles.view(log)
    // What counts is to be on disk, whatever its writer had asked for.
    const size = yield* using(files, place.segment(last.generation), "read", (file) => Effect.andThen(file.sync, Effect.map(file.stat, (found) => found.size))).pipe(
      // The next one who opens it is not told again.
      Effect.onError(() => Effect.ignore(files.rewrite(place.segment(last.generation), 0)))
    )
    const { claimed: claims, cursor, state } = yield* folded(log, last, header, before)
    if (cursor.generation !== last.generation) return yield* failed("STORE_FAILED", `session ${id} was taken over at the same time`, { remedy: "Try again." })

    const path = place.segment(claimed.generation)
    const file = yield* Effect.acquireRelease(files.open(path, "append"), ({ close }) => close)
    const follows = Segment.followsBytes({
      before: { generation: last.generation, bytes: cursor.position.offset },
      events: state.next,
      turns: state.lastTurn,
      updated: state.next === 0 ? header.created : state.lastTime
    })
    const { identity, size: offset } = yield* file.stat
    yield* writeAll(file, follows).pipe(
      Effect.andThen(file.sync),
      // So that nobody takes a part of it for the line.
      Effect.onError(() => Effect.ignore(file.truncate(offset)))
    )
    const own: Writer.Own = { log, generation: claimed.generation, file, identity, start: { offset: offset + follows.length, seq: state.next } }
    const appender = Writer.appender(own)
    const written: Written = { appender, claimed: new Set(claims) }
    writers.set(claimed.claim, written)
    yield* Effect.addFinalizer(() => Effect.sync(() => writers.delete(claimed.claim)))
    yield* appender.ifMine

    yield* inboxes.add(id, (inbox) =>
      Effect.succeed({
        inbox: "opened",
        generation: claimed.generation,
        claimed: claims.filter((receipt) => inbox.receipts.has(receipt) && !inbox.claimed.has(receipt))
      }))
    const requeued = yield* requeue(inboxes, id, claimed.generation, LogState.unspent(state))
    const closed = LogState.closers(state)
    if (closed.length > 0) yield* appender.put(closed, true)
    const recovery: SessionStore.Recovery = { closed, cutBytes: size - cursor.position.offset, requeued }
    return { written, own, recovery }
  })

export const open = (opening: Opening, id: Scalars.SessionId, holder: string): Effect.Effect<SessionStore.Writer, FileError | StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const { inboxes, leases, root, tell, writers } = opening
    const log = root.logOf(id)
    // Damage is to be found before anything is changed.
    const opened = (yield* inboxes.read(id)).generation()
    const seen = yield* LogFiles.view(log, opened)
    const header = yield* headerOf(log)
    yield* refuseHeld(log, leases, seen)
    // A long log takes its time.
    const before = yield* folded(log, seen.last, header)
    // Whoever appends has said in the inbox before that he opened the session.
    const { position } = before.cursor
    if (position.seq > seen.last.start.seq && (yield* inboxes.read(id)).generation() < seen.last.generation) {
      return yield* damaged(id, `its inbox ends before its ${seen.last.generation}. writer opened it (inbox.jsonl)`)
    }

    let isReleased = false
    const taken = yield* Effect.acquireRelease(
      Effect.gen(function*() {
        const claimed = yield* claim(opening, log, holder)
        const scope = yield* Scope.make()
        const release = leases.release(
          claimed.claim,
          Effect.suspend(() => {
            const one = writers.get(claimed.claim) ?? left
            return one === undefined ? releaseUnbegun(log, claimed) : one.appender.finish
          })
        )
        let left: Written | undefined
        const begun = yield* Effect.gen(function*() {
          yield* root.files.syncDirectory(log.place.directory)
          return yield* Scope.provide(begin(opening, log, header, claimed, before), scope)
        }).pipe(Effect.onError((cause) => {
          left = writers.get(claimed.claim)
          return Effect.andThen(Scope.close(scope, Exit.failCause(cause)), release)
        }))
        left = begun.written
        return { ...begun, scope, release }
      }),
      ({ release, scope }) =>
        Effect.suspend(() => {
          isReleased = true
          return Effect.andThen(release, Effect.andThen(Scope.close(scope, Exit.void), Effect.sync(() => tell(id))))
        })
    )
    tell(id)
    return Writer.make(taken.own, taken.written.appender, {
      header,
      recovery: taken.recovery,
      inboxes,
      claimed: taken.written.claimed,
      isReleased: () => isReleased,
      tell: () => tell(id)
    })
  })

/** Lets go of a file that says nothing but who made it. */
const releaseUnbegun = (log: LogFiles.Log, { generation }: Claim): Effect.Effect<void, FileError | StoreError> =>
  using(log.files, log.place.segment(generation), "append", (file) =>
    Effect.gen(function*() {
      const { size } = yield* file.stat
      const bytes = yield* file.read(0, size)
      const end = bytes.indexOf(lineFeed) + 1
      if (bytes.length > end) yield* file.truncate(end)
      yield* writeAll(file, Segment.markBytes({ log: "released", after: end }))
    })).pipe(Effect.catchIf(hasCode("ENOENT", "ENOTDIR"), () => Effect.void))

/** Takes a session away, whatever state it is in. */
export const remove = (opening: Opening, id: Scalars.SessionId): Effect.Effect<void, FileError | StoreError> =>
  Effect.gen(function*() {
    const { leases, root: { files, layout, logOf } } = opening
    const log = logOf(id)
    if ((yield* files.stat(log.place.directory)) === undefined) return yield* log.absent
    const claimed = yield* Effect.result(claim(opening, log, "somebody who deletes it"))
    if (Result.isFailure(claimed)) {
      const error = claimed.failure
      // One that is damaged can be deleted, too.
      if (error._tag === "FileError" || error.failure.code === "SESSION_BUSY" || error.failure.code === "SESSION_UNKNOWN" || error.failure.code.startsWith("STORE_")) return yield* error
    }
    const gone = path.join(layout.gone, `${leases.owner}.${nameOf(id)}.${randomUUID()}`)
    yield* leases.begin
    yield* files.rename(log.place.directory, gone).pipe(
      Effect.catchIf(hasCode("ENOENT"), () => log.absent),
      Effect.onExit((exit) =>
        Result.isSuccess(claimed)
          ? leases.release(claimed.success.claim, Exit.isSuccess(exit) ? Effect.void : releaseUnbegun(log, claimed.success))
          : Effect.void)
    )
    yield* files.syncDirectory(layout.sessions)
    yield* Effect.catch(files.remove(gone), (error) => Effect.logDebug(`a deleted session is left in ${gone} for now: ${error.message}`))
  }).pipe(Effect.uninterruptible)
