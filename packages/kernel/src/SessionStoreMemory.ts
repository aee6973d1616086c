/**
 * Sessions that last as long as the process: for tests, and for whoever wants no
 * trace.
 */
import { Failure, type InboxEntry, type Scalars, type SessionEvent, type SessionHeader } from "@turnpike/contract"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Inbox from "./internal/inboxState.ts"
import * as LogState from "./LogState.ts"
import * as SessionStore from "./SessionStore.ts"

type Events = ReadonlyArray<SessionEvent.SessionEvent>

const failed = (code: Failure.FailureCode, message: string, data?: Failure.Failure["data"]) =>
  new SessionStore.SessionStoreError({ failure: Failure.make(code, message, data === undefined ? {} : { data }) })

const unknown = (id: string) => failed("SESSION_UNKNOWN", `there is no session ${id}`, { session_id: id })
const exists = (id: string) => failed("SESSION_EXISTS", `there is a session ${id} already`, { session_id: id })
const busy = (id: string, { name, since }: SessionStore.Holder) =>
  failed("SESSION_BUSY", `session ${id} is used by ${name} since ${new Date(since).toISOString()}`, { session_id: id, holder: name, since })

interface Kept {
  readonly header: SessionHeader.SessionHeader
  readonly events: Array<SessionEvent.SessionEvent>
  readonly inbox: Inbox.InboxState
  state: LogState.LogState
  generation: number
  holder: SessionStore.Holder | undefined
  isDeleted: boolean
  /** Complete with the next event, and with the next record of the inbox. */
  logChanged: Deferred.Deferred<void>
  inboxChanged: Deferred.Deferred<void>
}

const begin = (header: SessionHeader.SessionHeader, state: LogState.LogState, events: Events): Kept => ({
  header,
  events: [...events],
  inbox: Inbox.make(),
  state,
  generation: 0,
  holder: undefined,
  isDeleted: false,
  logChanged: Deferred.makeUnsafe(),
  inboxChanged: Deferred.makeUnsafe()
})

const tell = (kept: Kept, what: "inboxChanged" | "logChanged") => {
  const before = kept[what]
  kept[what] = Deferred.makeUnsafe()
  Deferred.doneUnsafe(before, Effect.void)
}

const now = Effect.map(Clock.currentTimeMillis, (millis) => Math.max(0, Math.round(millis)))

type Answer<A> = Result.Result<A, SessionStore.SessionStoreError>

const refuse = (...words: Parameters<typeof failed>): Result.Result<never, SessionStore.SessionStoreError> => Result.fail(failed(...words))

/** What the events amount to, or the failure that names the first one that breaks a rule. */
const folded = (id: string, events: Events, from: LogState.LogState, code: "LOG_RULE" | "SESSION_DAMAGED"): Answer<LogState.LogState> =>
  Result.mapError(LogState.all(from, events), ({ message, seq }) => failed(code, `event ${seq} of session ${id} breaks a rule of its log: ${message}`))

/** The receipts that these events claim. */
const claimedBy = (events: Events): ReadonlyArray<InboxEntry.ReceiptId> =>
  events.flatMap((event) => event.type === "inbox/claimed" ? event.data.ids : [])

/** Makes a store of its own. */
export const make: Effect.Effect<SessionStore.Service> = Effect.sync(() => {
  const sessions = new Map<string, Kept>()

  const find = (id: Scalars.SessionId): Answer<Kept> => Result.fromNullishOr(sessions.get(id), () => unknown(id))

  const found = (id: Scalars.SessionId): Effect.Effect<Kept, SessionStore.SessionStoreError> => Effect.suspend(() => Effect.fromResult(find(id)))

  /** Looks and changes in one go: no other fiber comes between. */
  const atOnce = <A>(work: (time: number) => Answer<A>): Effect.Effect<A, SessionStore.SessionStoreError> =>
    Effect.flatMap(now, (time) => Effect.fromResult(work(time)))

  const receive = (kept: Kept, message: SessionStore.Message, time: number): Answer<SessionStore.Received> => {
    const received = Inbox.receive(kept.inbox, message, time)
    if (received === undefined) {
      const { id } = kept.header
      return refuse("KEY_CONFLICT", `session ${id} has received another message with this idempotency key`, { session_id: id })
    }
    if (received.isNew) tell(kept, "inboxChanged")
    return Result.succeed(received)
  }

  const append = (kept: Kept, events: Events): Answer<void> => {
    const { id } = kept.header
    const state = folded(id, events, kept.state, "LOG_RULE")
    if (Result.isFailure(state)) return Result.fail(state.failure)
    const ids = claimedBy(events)
    const missing = Inbox.missing(kept.inbox, ids)
    if (missing !== undefined) return refuse("LOG_RULE", `receipt ${missing} of session ${id} does not wait and cannot be claimed`)
    Inbox.claim(kept.inbox, ids)
    kept.state = state.success
    for (const event of events) kept.events.push(event)
    if (events.length > 0) tell(kept, "logChanged")
    return Result.void
  }

  const writerOf = (kept: Kept, generation: number, recovery: SessionStore.Recovery): SessionStore.Writer => {
    const { id } = kept.header
    const ifHeld = <A>(work: (time: number) => Answer<A>) =>
      atOnce((time) =>
        kept.generation === generation && kept.holder !== undefined
          ? work(time)
          : refuse("SESSION_BUSY", `session ${id} is no longer held by this writer`, { session_id: id }))
    return {
      header: kept.header,
      generation,
      recovery,
      append: (events) => ifHeld(() => append(kept, events)),
      discard: (ids, cause, by) =>
        ifHeld((time) => {
          const discarded = Inbox.discard(kept.inbox, ids, cause, by, time)
          if (discarded.length > 0) tell(kept, "inboxChanged")
          return Result.succeed(discarded)
        })
    }
  }

  const recover = (kept: Kept, time: number): Answer<SessionStore.Recovery> => {
    const closed = LogState.closers(kept.state)
    const requeued: Array<InboxEntry.Receipt> = []
    for (const id of LogState.unspent(kept.state)) {
      const lost = kept.inbox.receipts.get(id)
      // What a restored log claimed may be of an inbox that was not restored with it, or of one in which it waits again already.
      if (lost === undefined || kept.inbox.entries.some((entry) => entry.type === "received" && entry.retry_of === id)) continue
      const { kind, source, text } = lost
      const again = receive(kept, { kind, source, text, retry_of: id }, time)
      if (Result.isSuccess(again)) requeued.push(again.success.receipt)
    }
    return Result.map(append(kept, closed), () => ({ closed, cutBytes: 0, requeued }))
  }

  const open = (id: Scalars.SessionId, holder: string) =>
    atOnce((since) =>
      Result.flatMap(find(id), (kept) => {
        if (kept.holder !== undefined) return Result.fail(busy(id, kept.holder))
        return Result.map(recover(kept, since), (recovery) => {
          const generation = ++kept.generation
          kept.holder = { name: holder, since }
          return { kept, writer: writerOf(kept, generation, recovery) }
        })
      }))

  /** Waits for what is still to come, unless the session goes. */
  const wait = (kept: Kept, what: "inboxChanged" | "logChanged", isThere: () => boolean): Effect.Effect<void, SessionStore.SessionStoreError> =>
    Effect.suspend(() => {
      if (isThere()) return Effect.void
      if (kept.isDeleted) return Effect.fail(unknown(kept.header.id))
      return Effect.andThen(Deferred.await(kept[what]), wait(kept, what, isThere))
    })

  const read = (id: Scalars.SessionId, after: number) =>
    Stream.unwrap(Effect.map(found(id), (kept) => Stream.fromIterable(kept.events.slice(Math.max(-1, after) + 1))))

  const follow = (id: Scalars.SessionId, after: number): Stream.Stream<SessionEvent.SessionEvent, SessionStore.SessionStoreError> =>
    Stream.unwrap(Effect.map(found(id), (kept) =>
      Stream.unfold(Math.max(-1, after), (last) =>
        Effect.map(wait(kept, "logChanged", () => kept.events.length > last + 1), () => {
          const events = kept.events.slice(last + 1)
          return [events, last + events.length] as const
        })).pipe(Stream.flattenIterable)))

  const create = (header: SessionHeader.SessionHeader, seed: Events): Answer<void> => {
    const { id, parent } = header
    if (sessions.has(id)) return Result.fail(exists(id))
    const state = folded(id, seed, LogState.empty(), "LOG_RULE")
    if (Result.isFailure(state)) return Result.fail(state.failure)
    const due = parent?.events ?? 0
    if (seed.length !== due) return refuse("LOG_RULE", `session ${id} is to begin with ${due} events by its header, and with ${seed.length} that were given`)
    const { open } = state.success
    if (open !== undefined) return refuse("LOG_RULE", `session ${id} is to begin with events whose last turn, ${open.number}, is open`)
    sessions.set(id, begin(header, state.success, seed))
    return Result.void
  }

  const restore = (header: SessionHeader.SessionHeader, events: Events, inbox: ReadonlyArray<InboxEntry.InboxEntry>): Answer<void> => {
    const { id, parent } = header
    if (sessions.has(id)) return Result.fail(exists(id))
    const state = folded(id, events, LogState.empty(), "SESSION_DAMAGED")
    if (Result.isFailure(state)) return Result.fail(state.failure)
    const kept = begin(header, state.success, events)
    for (const entry of inbox) {
      const fault = Inbox.add(kept.inbox, entry)
      if (fault !== undefined) return refuse("SESSION_DAMAGED", `record ${entry.seq} of the inbox of session ${id}: ${fault}`)
    }
    // A fork's first events claim what its parent had received.
    Inbox.claim(kept.inbox, claimedBy(events.slice(parent?.events ?? 0)))
    sessions.set(id, kept)
    return Result.void
  }

  const remove = (id: Scalars.SessionId): Answer<void> =>
    Result.flatMap(find(id), (kept) => {
      if (kept.holder !== undefined) return Result.fail(busy(id, kept.holder))
      sessions.delete(id)
      kept.isDeleted = true
      tell(kept, "logChanged")
      tell(kept, "inboxChanged")
      return Result.void
    })

  const summaryOf = (kept: Kept): SessionStore.Summary => ({
    header: kept.header,
    events: kept.events.length,
    turns: kept.state.lastTurn,
    updated: kept.events.at(-1)?.time ?? kept.header.created,
    pending: kept.inbox.waiting.size,
    holder: kept.holder
  })

  return SessionStore.strict({
    create: (header, seed = []) => atOnce(() => create(header, seed)),
    header: (id) => Effect.map(found(id), ({ header }) => header),
    open: (id, holder) =>
      Effect.map(
        Effect.acquireRelease(open(id, holder), ({ kept, writer }) =>
          Effect.sync(() => {
            if (kept.generation === writer.generation) kept.holder = undefined
          })),
        ({ writer }) => writer
      ),
    read,
    follow,
    receive: (id, message) => atOnce((time) => Result.flatMap(find(id), (kept) => receive(kept, message, time))),
    requestDiscard: (id, ids, by) =>
      atOnce((time) =>
        Result.map(find(id), (kept) => {
          if (Inbox.requestDiscard(kept.inbox, ids, by, time)) tell(kept, "inboxChanged")
        })),
    pending: (id) => Effect.map(found(id), ({ inbox }) => Inbox.pending(inbox)),
    inboxChanged: (id, version) =>
      Effect.flatMap(found(id), (kept) => wait(kept, "inboxChanged", () => kept.inbox.entries.length > version)),
    list: Stream.suspend(() =>
      Stream.fromIterable([...sessions.values()].map(summaryOf).sort((one, other) => other.updated - one.updated))
    ),
    inbox: (id) => Stream.unwrap(Effect.map(found(id), ({ inbox }) => Stream.fromIterable([...inbox.entries]))),
    restore: (header, events, inbox) =>
      Effect.gen(function*() {
        if (sessions.has(header.id)) return yield* exists(header.id)
        const log = yield* Stream.runCollect(events)
        const entries = yield* Stream.runCollect(inbox)
        yield* atOnce(() => restore(header, log, entries))
      }),
    delete: (id) => atOnce(() => remove(id))
  })
})

export const layer: Layer.Layer<SessionStore.SessionStore> = Layer.effect(SessionStore.SessionStore, make)
