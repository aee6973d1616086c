/**
 * What the facts about stores are told with: a session's events by hand, and a
 * writer in a scope of its own.
 */
import { type InboxEntry, Scalars, type SessionEvent, type SessionHeader } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

export type Store = SessionStore.Service
export type Body = SessionEvent.Body
export type StoreError = SessionStore.SessionStoreError

/** What only the author of a store can bring about, each with what the store's layer gives. */
export interface Hooks<R> {
  /** Makes the session's writer look as if it had died, while it lives on: its lease has run out. */
  readonly expire?: (id: Scalars.SessionId) => Effect.Effect<void, unknown, R>
  /** Destroys the committed event of this `seq`, as a medium does. */
  readonly damage?: (id: Scalars.SessionId, seq: number) => Effect.Effect<void, unknown, R>
  /** Appends a record to the log behind the store's back, whole, as a later version would write it. */
  readonly plant?: (id: Scalars.SessionId, record: { readonly [name: string]: unknown }) => Effect.Effect<void, unknown, R>
}

export interface Fact {
  readonly name: string
  /** The hook that it needs. */
  readonly needs?: keyof Hooks<never>
  readonly run: (store: Store, hooks: Required<Hooks<never>>) => Effect.Effect<void, unknown, Scope.Scope>
}

export const id = Scalars.SessionId.make("suite-1")
export const other = Scalars.SessionId.make("suite-2")

/** The header of a session of the suite. */
export const headerOf = (session: Scalars.SessionId, created = 1_000): SessionHeader.SessionHeader => ({
  type: "session",
  format: 1,
  id: session,
  created,
  harness: "scripted",
  cwd: "/project"
})

export const start = (turn: number): Body => ({ type: "turn/start", data: { turn, trigger: { kind: "message", source: "suite" } } })
export const end = (turn: number): Body => ({ type: "turn/end", data: { turn, verdict: { type: "completed" } } })
export const step: Body = { type: "step/start", data: { step: 1 } }
export const stepEnd: Body = { type: "step/end", data: { step: 1 } }
export const claimed = (turn: number, ...ids: ReadonlyArray<string>): Body => ({ type: "inbox/claimed", data: { turn, ids } })
export const user = (text: string, receipt?: string): Body => ({
  type: "user/message",
  data: { text, source: "suite", ...(receipt === undefined ? {} : { receipt }) },
  surface_op: "append"
})
export const chunk = (text: string): Body => ({ type: "assistant/chunk", data: { kind: "text", text } })
export const called: Body = { type: "tool/call", data: { call_id: "c", name: "shell" } }

export const numbered = (bodies: ReadonlyArray<Body>, from = 0): ReadonlyArray<SessionEvent.SessionEvent> =>
  bodies.map((body, index) => ({ seq: from + index, time: 2_000 + from + index, ...body }))

/** A turn, with texts that no encoding may change. */
export const turn = (number: number): ReadonlyArray<Body> => [
  start(number),
  step,
  user("é \u2028 👋 \u0000 \"quoted\"\n half an emoji \ud83d"),
  chunk("a"),
  chunk("b"),
  stepEnd,
  end(number)
]

export const all = (stream: Stream.Stream<SessionEvent.SessionEvent, StoreError>) =>
  Effect.map(Stream.runCollect(stream), (events) => [...events])

export const failureOf = <A>(effect: Effect.Effect<A, StoreError, Scope.Scope>) => Effect.map(Effect.flip(effect), ({ failure }) => failure)
export const codeOf = <A>(effect: Effect.Effect<A, StoreError, Scope.Scope>) => Effect.map(failureOf(effect), ({ code }) => code)

/** A session with a writer, in a scope that can be closed. */
export const opened = (store: Store, session = id, holder = "the suite") =>
  Effect.gen(function*() {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const writer = yield* Scope.provide(store.open(session, holder), scope)
    return { writer, close: Scope.close(scope, Exit.void) }
  })

export const begun = (store: Store, session = id) => Effect.andThen(store.create(headerOf(session)), opened(store, session))

/** Receives a message and answers its receipt. */
export const received = (
  store: Store,
  kind: SessionStore.Message["kind"],
  text: string,
  session = id
): Effect.Effect<InboxEntry.Receipt, StoreError> =>
  Effect.map(store.receive(session, { kind, text, source: "suite" }), ({ receipt }) => receipt)
