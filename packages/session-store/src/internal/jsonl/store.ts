/** The store over a file system: how the parts of a session's files make a session. */
import type { InboxEntry, Scalars, SessionEvent, SessionHeader } from "@turnpike/contract"
import { LogState, SessionStore } from "@turnpike/kernel"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { randomUUID } from "node:crypto"
import * as path from "node:path"
import * as Changes from "./changes.ts"
import { fileFailure, told } from "./fileFailure.ts"
import { FileError, type Files } from "./files.ts"
import type { Inbox } from "./inboxFile.ts"
import * as Inboxes from "./inboxes.ts"
import { generationOf, idOf } from "./layout.ts"
import * as Leases from "./leases.ts"
import * as LogFiles from "./logFiles.ts"
import * as Making from "./making.ts"
import * as Opening from "./opening.ts"
import * as Root from "./root.ts"
import * as Segment from "./segment.ts"
import { recordTime } from "./writer.ts"
import { exists, failed, type StoreError, unknown } from "../storeFailure.ts"

export interface Options {
  /** The directory of the sessions, which holds nothing else; made where it is missing. */
  readonly directory: string
  /**
   * How long a session stays with a process that gives no sign of life, such as
   * one that is frozen: 30 seconds. One that is certainly dead keeps nothing.
   */
  readonly lease?: Duration.Input
}

const defaultLease = Duration.seconds(30)
const minLeaseMillis = 50
const maxLeaseMillis = 86_400_000

/** How many sessions a list reads at the same time. */
const listedAtOnce = 8

const claimedType = Buffer.from(`"inbox/claimed"`)
const startType = Buffer.from(`"turn/start"`)

type Id = Scalars.SessionId
type Claimed = (id: InboxEntry.ReceiptId) => boolean

/** The parts of an event's line that lists look at. The line is sound. */
const parsed = (line: Uint8Array) => JSON.parse(Buffer.from(line).toString("utf8")) as SessionEvent.SessionEvent

/** Opens a store over a file system, and ends its leases with the scope. */
export const make = (files: Files, { directory, lease: given = defaultLease }: Options): Effect.Effect<SessionStore.Service, StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const lease = Duration.fromInputUnsafe(given)
    if (!(Duration.toMillis(lease) >= minLeaseMillis && Duration.toMillis(lease) <= maxLeaseMillis)) {
      return yield* failed("STORE_FAILED", `a lease of ${Duration.format(lease)} is of no use: it is renewed three times in its length`, {
        retryable: false,
        remedy: "Give a lease between 50 milliseconds and a day."
      })
    }
    const root = yield* told(Root.open(files, path.resolve(directory)))
    const { ifThere, layout, logOf } = root
    const leases = yield* Leases.make(root, lease)
    const inboxes = Inboxes.make(root)

    /** Something else whenever the files of a session are others. */
    const stateOf = (id: Id) =>
      Effect.gen(function*() {
        const { place } = logOf(id)
        const names = yield* files.list(place.directory)
        const last = Math.max(...names.map((name) => generationOf(name) ?? 0))
        const inbox = yield* files.stat(place.inbox)
        return [last, (yield* files.stat(place.segment(last)))?.size, inbox?.identity, inbox?.size].join(" ")
      })
    const changes = yield* Changes.make(stateOf)
    const opening: Opening.Opening = { root, leases, inboxes, writers: new Map(), tell: changes.tell }

    const toldStream = <A, R>(stream: Stream.Stream<A, FileError | StoreError, R>): Stream.Stream<A, StoreError, R> =>
      stream.pipe(Stream.mapError((error) => error instanceof FileError ? fileFailure(error) : error))

    /** What of this store writes a session, where a view says that it is this store. */
    const writtenHere = ({ last, latest }: LogFiles.View): Opening.Written | undefined =>
      latest.owner === undefined || latest.generation !== last.generation ? undefined : opening.writers.get(latest.owner.claim)

    /** How far the last segment is to be read. */
    const untilOf = (log: LogFiles.Log, view: LogFiles.View): Effect.Effect<LogFiles.Until, FileError | StoreError> => {
      const own = writtenHere(view)
      return own === undefined
        ? Effect.map(Opening.holderOf(log, leases, view), (holder) => ({ isWritten: holder !== undefined }))
        : Effect.succeed({ bytes: own.appender.counted().offset })
    }

    const eventsOf = (id: Id, after: number) => (batches: Stream.Stream<Segment.Batch, FileError | StoreError>) =>
      batches.pipe(Stream.mapEffect((batch) => Effect.fromResult(Segment.eventsOf(id, batch, after))), Stream.flattenIterable)

    const read = (id: Id, after: number) =>
      toldStream(Stream.unwrap(Effect.gen(function*() {
        const log = logOf(id)
        const view = yield* LogFiles.view(log)
        const from = Math.max(-1, after)
        return LogFiles.batches(log, { last: view.last, until: yield* untilOf(log, view), after: from }).pipe(eventsOf(id, from))
      })))

    const follow = (id: Id, given: number) =>
      toldStream(Stream.unwrap(Effect.gen(function*() {
        const log = logOf(id)
        const { last: { head: { made } } } = yield* LogFiles.view(log)
        const after = Math.max(-1, given)
        let cursor: LogFiles.Cursor | undefined
        const reading = Effect.gen(function*() {
          const view = yield* LogFiles.view(log)
          // Another session has its id.
          if (view.last.head.made !== made) return yield* unknown(id)
          return {
            last: view.last,
            until: yield* untilOf(log, view),
            after,
            ...(cursor === undefined ? {} : { from: cursor }),
            onEnd: (end: LogFiles.Cursor) => {
              cursor = end
            }
          } satisfies LogFiles.Reading
        })
        const more = Effect.flatMap(reading, (one) =>
          Effect.map(Stream.runHead(LogFiles.batches(log, one)), (first) => Option.isNone(first) ? undefined : one))
        return Stream.unfold(undefined, () =>
          Effect.map(changes.until(id, more), (one) => [LogFiles.batches(log, one), undefined] as const)).pipe(Stream.flatten(), eventsOf(id, after))
      })))

    /** What the log of a session claims of its inbox; read after the inbox, so that nothing of it seems to wait that does not. */
    const claimedOf = (id: Id, inbox: Inbox): Effect.Effect<Claimed, FileError | StoreError> =>
      Effect.gen(function*() {
        const log = logOf(id)
        const view = yield* LogFiles.view(log, inbox.generation())
        const own = writtenHere(view)
        if (own !== undefined) return (receipt: InboxEntry.ReceiptId) => own.claimed.has(receipt)
        const seeded = (yield* Opening.headerOf(log)).parent?.events ?? 0
        const claimed = new Set<InboxEntry.ReceiptId>()
        const batches = LogFiles.batches(log, { last: view.last, until: yield* untilOf(log, view), after: -1, generation: inbox.generation() })
        yield* Stream.runForEach(batches, ({ first, lines }) =>
          Effect.sync(() => {
            for (const [index, line] of lines.entries()) {
              if (first + index < seeded || Buffer.from(line.buffer, line.byteOffset, line.length).indexOf(claimedType) < 0) continue
              const event = parsed(line)
              if (event.type === "inbox/claimed") for (const receipt of event.data.ids) claimed.add(receipt)
            }
          }))
        return (receipt: InboxEntry.ReceiptId) => claimed.has(receipt)
      })

    const pendingOf = (id: Id) =>
      Effect.flatMap(inboxes.read(id), (inbox) => Effect.map(claimedOf(id, inbox), (claimed) => inbox.pending(claimed)))

    const receive = (id: Id, message: SessionStore.Message): Effect.Effect<SessionStore.Received, FileError | StoreError> =>
      Effect.gen(function*() {
        const { key, kind, source, text } = message
        const time = yield* recordTime
        let own: InboxEntry.ReceiptId | undefined
        const inbox = yield* inboxes.add(id, (before) =>
          Effect.gen(function*() {
            const earlier = key === undefined ? undefined : before.withKey(key)
            // One that was withdrawn is there all the same where the log has claimed it meanwhile.
            if (earlier !== undefined && (!before.isWithdrawn(earlier.id) || (yield* claimedOf(id, before))(earlier.id))) return undefined
            own = Opening.receiptId(before)
            return { type: "received", id: own, time, ...message } as const
          }))
        const receipt = key === undefined ? (own === undefined ? undefined : inbox.receipts.get(own)) : inbox.withKey(key)
        if (receipt === undefined) return yield* failed("STORE_FAILED", `session ${id} has not kept a message that was written into its inbox`)
        if (receipt.id === own) {
          changes.tell(id)
          return { receipt, isNew: true }
        }
        if (receipt.kind !== kind || receipt.text !== text || receipt.source !== source) {
          return yield* failed("KEY_CONFLICT", `session ${id} has received another message with this idempotency key`, { data: { session_id: id } })
        }
        return { receipt, isNew: false }
      })

    const requestDiscard = (id: Id, ids: ReadonlyArray<InboxEntry.ReceiptId>, by: string) =>
      Effect.gen(function*() {
        const time = yield* recordTime
        yield* inboxes.add(id, (before) =>
          Effect.map(claimedOf(id, before), (claimed) => {
            const found = [...new Set(ids)].filter((receipt) => before.waits(receipt, claimed))
            return found.length === 0 ? undefined : { type: "discard_requested", time, ids: found, by, mark: randomUUID() }
          }))
        changes.tell(id)
      })

    const create = (header: SessionHeader.SessionHeader, seed: ReadonlyArray<SessionEvent.SessionEvent>) =>
      Effect.gen(function*() {
        const { id, parent } = header
        if ((yield* files.stat(logOf(id).place.directory)) !== undefined) return yield* exists(id)
        const due = parent?.events ?? 0
        const state = LogState.all(LogState.empty(), seed)
        if (Result.isFailure(state)) {
          return yield* failed("LOG_RULE", `event ${state.failure.seq} of session ${id} breaks a rule of its log: ${state.failure.message}`)
        }
        if (seed.length !== due) {
          return yield* failed("LOG_RULE", `session ${id} is to begin with ${due} events by its header, and with ${seed.length} that were given`)
        }
        const { open: turn } = state.success
        if (turn !== undefined) {
          return yield* failed("LOG_RULE", `session ${id} is to begin with events whose last turn, ${turn.number}, is open`)
        }
        yield* Making.put(root, leases, header, Stream.fromIterable(seed), Stream.empty)
      })

    const summaryOf = (id: Id): Effect.Effect<SessionStore.Summary | undefined, FileError | StoreError> =>
      Effect.gen(function*() {
        const log = logOf(id)
        const header = yield* Opening.headerOf(log)
        const view = yield* LogFiles.view(log)
        let { events, turns, updated } = view.last.follows
        let last: Uint8Array | undefined
        yield* Stream.runForEach(
          LogFiles.batches(log, { last: view.last, until: yield* untilOf(log, view), after: events - 1 }),
          ({ first, lines }) =>
            Effect.sync(() => {
              events = first + lines.length
              last = lines.at(-1)
              turns += lines.filter((line) => Buffer.from(line.buffer, line.byteOffset, line.length).indexOf(startType) >= 0 && parsed(line).type === "turn/start").length
            })
        )
        if (last !== undefined) updated = parsed(last).time
        const { nextStep, nextTurn } = yield* pendingOf(id)
        return { header, events, turns, updated, pending: nextTurn.length + nextStep.length, holder: yield* Opening.holderOf(log, leases, view) }
      }).pipe(
        // One that was deleted meanwhile is not listed.
        Effect.catchIf((error) => error._tag !== "FileError" && error.failure.code === "SESSION_UNKNOWN", () => Effect.undefined)
      )

    const list = toldStream(Stream.unwrap(Effect.gen(function*() {
      yield* ifThere
      const names = yield* files.list(layout.sessions)
      const found = yield* Effect.forEach(names.flatMap((name) => idOf(name) ?? []), summaryOf, { concurrency: listedAtOnce })
      const summaries = found.flatMap((summary) => summary ?? [])
      return Stream.fromIterable(summaries.sort((one, other) => other.updated - one.updated || other.header.created - one.header.created))
    })))

    const inbox = (id: Id) =>
      toldStream(Stream.unwrap(Effect.gen(function*() {
        const found = yield* inboxes.read(id)
        const claimed = yield* claimedOf(id, found)
        return Stream.fromIterable(found.entries(claimed))
      })))

    const inboxChanged = (id: Id, version: number) =>
      Effect.flatMap(inboxes.read(id), (first) => {
        const made = first.made()
        return changes.until(id, Effect.flatMap(inboxes.read(id), (now) => {
          if (now.made() !== made) return Effect.fail(unknown(id))
          return Effect.succeed(now.lines() > version ? true : undefined)
        }))
      })

    return SessionStore.strict({
      create: (header, seed = []) => told(create(header, seed)),
      header: (id) => told(Opening.headerOf(logOf(id))),
      open: (id, holder) => told(Opening.open(opening, id, holder)),
      read,
      follow,
      receive: (id, message) => told(receive(id, message)),
      requestDiscard: (id, ids, by) => told(requestDiscard(id, ids, by)),
      pending: (id) => told(pendingOf(id)),
      inboxChanged: (id, version) => told(Effect.asVoid(inboxChanged(id, version))),
      list,
      inbox,
      restore: (header, events, entries) =>
        told(Effect.gen(function*() {
          if ((yield* files.stat(logOf(header.id).place.directory)) !== undefined) return yield* exists(header.id)
          yield* Making.put(root, leases, header, events, entries)
        })),
      delete: (id) => told(Effect.tap(Opening.remove(opening, id), () => Effect.sync(() => changes.tell(id))))
    })
  })
