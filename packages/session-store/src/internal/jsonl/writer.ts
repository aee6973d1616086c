/** The one that writes a session: what it appends to its segment, and how it learns that it is no longer the one. */
import type { InboxEntry, SessionEvent, SessionHeader } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { randomUUID } from "node:crypto"
import { busy, failed, released, type StoreError } from "../storeFailure.ts"
import { told } from "./fileFailure.ts"
import { type File, type FileError, hasCode, using, writeAll } from "./files.ts"
import type { Inbox } from "./inboxFile.ts"
import type { Inboxes } from "./inboxes.ts"
import { lineFeed } from "./lines.ts"
import * as LogFiles from "./logFiles.ts"
import * as Segment from "./segment.ts"

/** Time as records have it: no test's clock makes it negative. */
export const recordTime = Effect.map(Clock.currentTimeMillis, (millis) => Math.max(0, Math.round(millis)))

/** A segment that a writer has begun. */
export interface Own {
  readonly log: LogFiles.Log
  readonly generation: number
  readonly file: File
  readonly identity: string
  /** Where its first batch comes. */
  readonly start: Segment.Position
}

/** Appends batches to a segment of one's own. One thing at a time. */
export interface Appender {
  /** What of it counts, for readers in this process. */
  readonly counted: () => Segment.Position
  /** Fails where the segment is not the last one any more, or not there. */
  readonly ifMine: Effect.Effect<void, FileError | StoreError>
  readonly put: (events: ReadonlyArray<SessionEvent.SessionEvent>, sync: boolean) => Effect.Effect<void, FileError | StoreError>
  /** Says that nothing more comes. */
  readonly finish: Effect.Effect<void, FileError | StoreError>
}

/** How long one waits for whoever has taken a session over to say what of it counts: 2 s, in steps of 20 ms. */
const settlingSteps = 100
const settlingMillis = 20

export const appender = ({ file, generation, identity, log, start }: Own): Appender => {
  const { files, id, place } = log
  let counted = start
  let synced = start.offset
  /** Whether bytes may stand behind those that count. */
  let isRagged = false
  /** Whether a sync has failed: nobody knows which bytes are on disk that were to be, and no later one says it. */
  let isUncertain = false

  /** Why a session is not this writer's any more. */
  const lost: Effect.Effect<never, FileError | StoreError> = Effect.flatMap(LogFiles.view(log), ({ latest: { owner, generation: found } }) =>
    Effect.fail(found === generation || owner === undefined ? released(id) : busy(id, { name: owner.holder, since: owner.since })))

  const isThere = Effect.map(files.stat(place.segment(generation)), (found) => found?.identity === identity)

  const isLast = Effect.map(files.stat(place.segment(generation + 1)), (found) => found === undefined)

  const ifMine = Effect.gen(function*() {
    if (!(yield* isThere)) {
      yield* log.ifStored
      if ((yield* files.stat(place.header)) === undefined) return yield* log.absent
      return yield* lost
    }
    if (!(yield* isLast)) return yield* lost
  })

  /** Cuts off what is behind the bytes that count. That is never a whole batch: nobody who takes the session over counts it. */
  const trim = Effect.suspend(() =>
    Effect.map(file.truncate(counted.offset), () => {
      isRagged = false
    }))

  const sync = Effect.tapError(file.sync, () =>
    Effect.sync(() => {
      isUncertain = true
    }))

  /** Lets the next sync be one of all that is not known to be on disk. */
  const makeCertain = Effect.suspend(() =>
    isUncertain
      ? Effect.map(files.rewrite(place.segment(generation), synced), () => {
        isUncertain = false
      })
      : Effect.void)

  const ignoring = (what: string) => (work: Effect.Effect<void, FileError>) =>
    Effect.catch(work, (error) => Effect.logDebug(`${what}: ${error.message}`))

  /**
   * Takes back what was written of an append. Where the disk does not even do that,
   * the next append says where the bytes end that count.
   */
  const takeBack = (end: number): Effect.Effect<void> =>
    Effect.gen(function*() {
      isRagged = true
      yield* makeCertain
      const { size } = yield* file.stat
      if (size < end) return yield* trim
      const bytes = Segment.markBytes({ log: "void", after: counted.offset })
      yield* writeAll(file, bytes)
      counted = { ...counted, offset: size + bytes.length }
      isRagged = false
      yield* sync
    }).pipe(ignoring(`an append to session ${id} could not be taken back`))

  /** Whether whoever took over counts the bytes up to here. */
  const isCounted = (end: number): Effect.Effect<boolean, FileError | StoreError> => {
    const look = (steps: number): Effect.Effect<boolean, FileError | StoreError> =>
      Effect.gen(function*() {
        let { last } = yield* LogFiles.view(log)
        while (last.generation > generation && last.follows.before !== undefined) {
          const { bytes, generation: before } = last.follows.before
          if (before === generation) return bytes >= end
          if (before < generation) return false
          last = yield* LogFiles.begun(log, before)
        }
        if (steps === 0) {
          return yield* failed("STORE_FAILED", `session ${id} was taken over in the middle of an append, and whoever did it has not said what counts`, {
            remedy: "Open the session again; its log has what was committed."
          })
        }
        return yield* Effect.andThen(Effect.sleep(settlingMillis), look(steps - 1))
      })
    return look(settlingSteps)
  }

  const put: Appender["put"] = (events, isSynced) =>
    Effect.gen(function*() {
      yield* ifMine
      yield* makeCertain
      if (isRagged) yield* ignoring("a log could not be trimmed")(trim)
      const body = Segment.batchBytes(events, { after: counted.offset, synced })
      const from = isRagged ? (yield* file.stat).size : counted.offset
      // A line of its own, whatever stands there.
      const bytes = isRagged ? Buffer.concat([Uint8Array.of(lineFeed), body]) : body
      const end = from + bytes.length
      yield* writeAll(file, bytes).pipe(
        Effect.andThen(isSynced ? sync : Effect.void),
        Effect.onError(() => takeBack(end))
      )
      // Whoever takes over makes its file before it looks which bytes count: where there is none yet, these do.
      const isKept = (yield* isThere) && ((yield* isLast) || (yield* isCounted(end)))
      if (!isKept) return yield* Effect.andThen(ifMine, lost)
      counted = { offset: end, seq: counted.seq + events.length }
      if (isSynced) synced = end
      isRagged = true
      const committed = Segment.markBytes({ log: "committed", bytes: end, synced })
      yield* writeAll(file, committed).pipe(
        Effect.andThen(Effect.sync(() => {
          counted = { ...counted, offset: end + committed.length }
          isRagged = false
        })),
        // Readers elsewhere learn it with the next append, then.
        Effect.catch(() => ignoring("a log could not be trimmed")(trim))
      )
    })

  return {
    counted: () => counted,
    ifMine,
    put,
    finish: using(files, place.segment(generation), "append", (own) =>
      Effect.gen(function*() {
        if ((yield* own.stat).identity !== identity || !(yield* isLast)) return
        const { size } = yield* own.stat
        const bytes = Segment.markBytes({ log: "released", after: counted.offset })
        yield* writeAll(own, size === counted.offset ? bytes : Buffer.concat([Uint8Array.of(lineFeed), bytes]))
      })).pipe(
        // A session that is gone is held by nobody.
        Effect.catchIf(hasCode("ENOENT", "ENOTDIR"), () => Effect.void)
      )
  }
}

interface Surroundings {
  readonly header: SessionHeader.SessionHeader
  readonly recovery: SessionStore.Recovery
  readonly inboxes: Inboxes
  /** What the whole log claims. Grows. */
  readonly claimed: Set<InboxEntry.ReceiptId>
  readonly isReleased: () => boolean
  readonly tell: () => void
}

export const claimedBy = (events: ReadonlyArray<SessionEvent.SessionEvent>): ReadonlyArray<InboxEntry.ReceiptId> =>
  events.flatMap((event) => event.type === "inbox/claimed" ? event.data.ids : [])

/** The first of the receipts that does not wait. */
const missing = (inbox: Inbox, claimed: ReadonlySet<InboxEntry.ReceiptId>, ids: ReadonlyArray<InboxEntry.ReceiptId>) => {
  const seen = new Set<InboxEntry.ReceiptId>()
  return ids.find((id) => {
    const isMissing = seen.has(id) || !inbox.waits(id, (receipt) => claimed.has(receipt))
    seen.add(id)
    return isMissing
  })
}

export const make = ({ generation, log: { id } }: Own, one: Appender, { claimed, header, inboxes, isReleased, recovery, tell }: Surroundings): SessionStore.Writer => {
  const turns = Semaphore.makeUnsafe(1)

  const ifHeld = <A>(work: Effect.Effect<A, FileError | StoreError>): Effect.Effect<A, StoreError> =>
    told(Effect.uninterruptible(Semaphore.withPermits(turns, 1)(Effect.suspend(() => isReleased() ? Effect.fail(released(id)) : work))))

  return {
    header,
    generation,
    recovery,
    append: (events, { sync }) =>
      ifHeld(Effect.gen(function*() {
        if (events.length === 0) return
        yield* one.ifMine
        const { seq } = one.counted()
        const gap = events.findIndex((event, index) => event.seq !== seq + index)
        if (gap >= 0) return yield* failed("LOG_RULE", `event ${events[gap]?.seq} of session ${id} is not the next one; ${seq + gap} was due`)
        const ids = claimedBy(events)
        if (ids.length > 0) {
          const first = missing(yield* inboxes.read(id), claimed, ids)
          if (first !== undefined) return yield* failed("LOG_RULE", `receipt ${first} of session ${id} does not wait and cannot be claimed`)
        }
        yield* one.put(events, sync)
        for (const receipt of ids) claimed.add(receipt)
        tell()
      })),
    discard: (ids, cause, by) =>
      ifHeld(Effect.gen(function*() {
        yield* one.ifMine
        const time = yield* recordTime
        const asked = new Set(ids)
        let found: ReadonlyArray<InboxEntry.Receipt> = []
        const inbox = yield* inboxes.add(id, (before) => {
          found = before.waiting((receipt) => claimed.has(receipt)).filter((receipt) => asked.has(receipt.id))
          return Effect.succeed(
            found.length === 0 ? undefined : { type: "discarded", time, ids: found.map((receipt) => receipt.id), cause, by, generation, mark: randomUUID() }
          )
        })
        // Whoever has taken over meanwhile may have said so before.
        if (found.some((receipt) => !inbox.isDiscarded(receipt.id))) return yield* Effect.andThen(one.ifMine, Effect.fail(released(id)))
        if (found.length > 0) tell()
        return found
      }))
  }
}
