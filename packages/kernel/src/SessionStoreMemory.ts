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
import * as LogState from "./LogState.ts"
import * as SessionStore from "./SessionStore.ts"

type Code = Parameters<typeof Failure.make>[0]

const failed = (code: Code, message: string, more: { readonly data?: Failure.Failure["data"] } = {}) =>
  new SessionStore.SessionStoreError({ failure: Failure.make(code, message, { ...(more.data === undefined ? {} : { data: more.data }) }) })

interface Kept {
  readonly header: SessionHeader.SessionHeader
  readonly events: Array<SessionEvent.SessionEvent>
  readonly inbox: Array<InboxEntry.InboxEntry>
  generation: number
  holder: SessionStore.Holder | undefined
  /** Completes with the next change. */
  changed: Deferred.Deferred<void>
}

const claimedIn = (events: ReadonlyArray<SessionEvent.SessionEvent>): ReadonlySet<string> =>
  new Set(events.flatMap((event) => event.type === "inbox/claimed" ? event.data.ids : []))

/** What waits, by what was received, claimed and discarded. */
export const pendingOf = (
  inbox: ReadonlyArray<InboxEntry.InboxEntry>,
  claimed: ReadonlySet<string>
): SessionStore.Pending => {
  const discarded = new Set(inbox.flatMap((entry) => entry.type === "discarded" ? entry.ids : []))
  const waits = (id: string) => !claimed.has(id) && !discarded.has(id)
  const receipts = inbox.flatMap((entry) => entry.type === "received" && waits(entry.id) ? [receiptOf(entry)] : [])
  return {
    nextTurn: receipts.filter(({ kind }) => kind === "followup"),
    nextStep: receipts.filter(({ kind }) => kind !== "followup"),
    discardRequests: inbox.flatMap((entry) =>
      entry.type === "discard_requested" ? entry.ids.filter(waits).map((id) => ({ id, by: entry.by })) : []
    )
  }
}

type Received = Extract<InboxEntry.InboxEntry, { readonly type: "received" }>

const receiptOf = ({ id, key, kind, retry_of, source, text, time }: Received): InboxEntry.Receipt => ({
  id,
  kind,
  text,
  source,
  time,
  ...(key === undefined ? {} : { key }),
  ...(retry_of === undefined ? {} : { retry_of })
})

/** Makes a store of its own. */
export const make: Effect.Effect<SessionStore.Service> = Effect.sync(() => {
  const sessions = new Map<string, Kept>()

  const find = (id: Scalars.SessionId): Effect.Effect<Kept, SessionStore.SessionStoreError> =>
    Effect.suspend(() => {
      const kept = sessions.get(id)
      return kept === undefined
        ? Effect.fail(failed("SESSION_UNKNOWN", `there is no session ${id}`, { data: { session_id: id } }))
        : Effect.succeed(kept)
    })

  const announce = (kept: Kept) => {
    const before = kept.changed
    kept.changed = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(before, Effect.void)
  }

  const now = Effect.map(Clock.currentTimeMillis, (millis) => Math.max(0, Math.round(millis)))

  const begin = (header: SessionHeader.SessionHeader): Kept => ({
    header,
    events: [],
    inbox: [],
    generation: 0,
    holder: undefined,
    changed: Deferred.makeUnsafe<void>()
  })

  const exists = (id: string) => failed("SESSION_EXISTS", `there is a session ${id} already`, { data: { session_id: id } })

  /** Refuses a log that breaks a rule, naming where. */
  const checked = (id: string, events: ReadonlyArray<SessionEvent.SessionEvent>): Effect.Effect<LogState.LogState, SessionStore.SessionStoreError> =>
    Effect.suspend(() => {
      let state = LogState.empty()
      for (const event of events) {
        const next = LogState.next(state, event)
        if (Result.isFailure(next)) return Effect.fail(failed("SESSION_DAMAGED", `event ${event.seq} of session ${id}, ${event.type}: ${next.failure.message}`))
        state = next.success
      }
      return Effect.succeed(state)
    })

  const receive = (kept: Kept, message: SessionStore.Message): Effect.Effect<SessionStore.Received, SessionStore.SessionStoreError> =>
    Effect.gen(function*() {
      const id = `r-${kept.inbox.length + 1}`
      const time = yield* now
      const earlier = message.key === undefined
        ? undefined
        : kept.inbox.find((entry): entry is Received => entry.type === "received" && entry.key === message.key)
      if (earlier !== undefined) {
        const isSame = earlier.kind === message.kind && earlier.text === message.text && earlier.source === message.source
        return isSame
          ? { receipt: receiptOf(earlier), isNew: false }
          : yield* failed("KEY_CONFLICT", `session ${kept.header.id} has received another message with the key ${message.key}`)
      }
      const entry: Received = { seq: kept.inbox.length, time, type: "received", id, ...message }
      kept.inbox.push(entry)
      announce(kept)
      return { receipt: receiptOf(entry), isNew: true }
    })

  const writerOf = (kept: Kept, generation: number, recovery: SessionStore.Recovery): SessionStore.Writer => {
    const ifHeld = <A>(work: () => Effect.Effect<A, SessionStore.SessionStoreError>) =>
      Effect.suspend(() =>
        kept.generation === generation && kept.holder !== undefined
          ? work()
          : Effect.fail(failed("SESSION_BUSY", `session ${kept.header.id} is no longer held by this writer`))
      )
    return {
      header: kept.header,
      generation,
      recovery,
      append: (events) =>
        ifHeld(() => {
          const [first] = events
          if (first !== undefined && first.seq !== kept.events.length) {
            return Effect.fail(failed("LOG_RULE", `event ${first.seq} does not follow event ${kept.events.length - 1} of session ${kept.header.id}`))
          }
          const { nextStep, nextTurn } = pendingOf(kept.inbox, claimedIn(kept.events))
          const waits = new Set([...nextTurn, ...nextStep].map(({ id }) => id))
          const missing = [...claimedIn(events)].find((id) => !waits.has(id))
          if (missing !== undefined) return Effect.fail(failed("LOG_RULE", `receipt ${missing} of session ${kept.header.id} does not wait and cannot be claimed`))
          kept.events.push(...events)
          announce(kept)
          return Effect.void
        }),
      discard: (ids, cause, by) =>
        ifHeld(() =>
          Effect.map(now, (time) => {
            const { nextStep, nextTurn } = pendingOf(kept.inbox, claimedIn(kept.events))
            const found = [...nextTurn, ...nextStep].filter(({ id }) => ids.includes(id))
            if (found.length > 0) {
              kept.inbox.push({ seq: kept.inbox.length, time, type: "discarded", ids: found.map(({ id }) => id), cause, by })
              announce(kept)
            }
            return found
          })
        )
    }
  }

  const open = (id: Scalars.SessionId, holder: string) =>
    Effect.gen(function*() {
      const kept = yield* find(id)
      const since = yield* now
      if (kept.holder !== undefined) {
        return yield* failed(
          "SESSION_BUSY",
          `session ${id} is used by ${kept.holder.name} since ${new Date(kept.holder.since).toISOString()}`,
          { data: { session_id: id, holder: kept.holder.name, since: kept.holder.since } }
        )
      }
      const state = yield* checked(id, kept.events)
      const closed = LogState.closers(state)
      const generation = ++kept.generation
      kept.holder = { name: holder, since }
      kept.events.push(...closed)
      const receipts = new Map(kept.inbox.flatMap((entry) => entry.type === "received" ? [[entry.id, entry] as const] : []))
      const requeued: Array<InboxEntry.Receipt> = []
      for (const lost of LogState.unspent(state)) {
        const entry = receipts.get(lost)
        if (entry === undefined) continue
        const { kind, source, text } = entry
        requeued.push((yield* receive(kept, { kind, source, text, retry_of: lost })).receipt)
      }
      announce(kept)
      return { kept, writer: writerOf(kept, generation, { closed, cutBytes: 0, requeued }) }
    })

  const read = (id: Scalars.SessionId, after: number) =>
    Stream.unwrap(Effect.map(find(id), (kept) => Stream.fromIterable(kept.events.slice(after + 1))))

  const follow = (id: Scalars.SessionId, after: number): Stream.Stream<SessionEvent.SessionEvent, SessionStore.SessionStoreError> =>
    Stream.unwrap(Effect.map(find(id), (kept) =>
      Stream.unfold(after, (last) =>
        Effect.gen(function*() {
          while (kept.events.length <= last + 1) yield* Deferred.await(kept.changed)
          const events = kept.events.slice(last + 1)
          return [events, last + events.length] as const
        })).pipe(Stream.flattenIterable)))

  return {
    create: (header, seed = []) =>
      Effect.gen(function*() {
        if (sessions.has(header.id)) return yield* exists(header.id)
        yield* checked(header.id, seed)
        const kept = begin(header)
        kept.events.push(...seed)
        sessions.set(header.id, kept)
      }),
    header: (id) => Effect.map(find(id), ({ header }) => header),
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
    receive: (id, message) => Effect.flatMap(find(id), (kept) => receive(kept, message)),
    requestDiscard: (id, ids, by) =>
      Effect.flatMap(find(id), (kept) =>
        Effect.map(now, (time) => {
          kept.inbox.push({ seq: kept.inbox.length, time, type: "discard_requested", ids, by })
          announce(kept)
        })),
    pending: (id) => Effect.map(find(id), (kept) => pendingOf(kept.inbox, claimedIn(kept.events))),
    inboxChanged: (id) => Effect.flatMap(find(id), (kept) => Deferred.await(kept.changed)),
    list: Stream.suspend(() =>
      Stream.fromIterable(
        [...sessions.values()].map((kept): SessionStore.Summary => {
          const { nextStep, nextTurn } = pendingOf(kept.inbox, claimedIn(kept.events))
          return {
            header: kept.header,
            events: kept.events.length,
            turns: kept.events.filter((event) => event.type === "turn/start").length,
            updated: kept.events.at(-1)?.time ?? kept.header.created,
            pending: nextTurn.length + nextStep.length,
            holder: kept.holder
          }
        }).sort((one, other) => other.updated - one.updated)
      )
    ),
    inbox: (id) => Stream.unwrap(Effect.map(find(id), (kept) => Stream.fromIterable([...kept.inbox]))),
    restore: (header, events, inbox) =>
      Effect.gen(function*() {
        if (sessions.has(header.id)) return yield* exists(header.id)
        const kept = begin(header)
        kept.events.push(...yield* Stream.runCollect(events))
        kept.inbox.push(...yield* Stream.runCollect(inbox))
        yield* checked(header.id, kept.events)
        if (sessions.has(header.id)) return yield* exists(header.id)
        sessions.set(header.id, kept)
      }),
    delete: (id) =>
      Effect.flatMap(find(id), (kept) =>
        kept.holder === undefined
          ? Effect.sync(() => void sessions.delete(id))
          : Effect.fail(failed("SESSION_BUSY", `session ${id} is used by ${kept.holder.name}`)))
  }
})

export const layer: Layer.Layer<SessionStore.SessionStore> = Layer.effect(SessionStore.SessionStore, make)
