/**
 * A session's life in few steps, each acknowledged or refused, and what has to hold
 * of it afterwards: what was acknowledged is there, and nothing of what was refused.
 */
import { Scalars, type SessionEvent } from "@turnpike/contract"
import { LogState, type SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"

type StoreError = SessionStore.SessionStoreError

export const id = Scalars.SessionId.make("scenario")

/** What somebody was told. */
export interface Told {
  isCreated: boolean
  events: Array<SessionEvent.SessionEvent>
  receipts: Array<string>
  refused: Array<{ readonly step: string; readonly code: string; readonly message: string; readonly retryable: boolean }>
}

export const nothing = (): Told => ({ isCreated: false, events: [], receipts: [], refused: [] })

const bodies = (turn: number, receipt: string | undefined, size: number): ReadonlyArray<ReadonlyArray<SessionEvent.Body>> => [
  [
    { type: "turn/start", data: { turn, trigger: { kind: "message", source: "user" } } },
    ...(receipt === undefined ? [] : [{ type: "inbox/claimed", data: { turn, ids: [receipt] } } as const])
  ],
  [
    { type: "step/start", data: { step: 1 } },
    { type: "user/message", data: { text: "prompt", source: "user", ...(receipt === undefined ? {} : { receipt }) }, surface_op: "append" }
  ],
  Array.from({ length: 8 }, (_, index) => ({ type: "assistant/chunk", data: { kind: "text", text: noise(turn * 8 + index, size) } } as const)),
  [{ type: "step/end", data: { step: 1 } }, { type: "turn/end", data: { turn, verdict: { type: "completed" } } }]
]

/** Characters that cannot be packed away. */
const noise = (seed: number, length: number): string => {
  let state = seed + 1
  let text = ""
  while (text.length < length) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    text += state.toString(36)
  }
  return text.slice(0, length)
}

/**
 * Does a few turns, and tells what was acknowledged. Goes on after a refusal as a
 * driver does: what is left of the turn is tried once more by opening the session again.
 */
export const live = (store: SessionStore.Service, told: Told, { size, turns }: { readonly size: number; readonly turns: number }): Effect.Effect<void> => {
  const tried = <A>(step: string, work: Effect.Effect<A, StoreError>): Effect.Effect<A | undefined> =>
    Effect.map(Effect.result(work), (result) => {
      if (Result.isSuccess(result)) return result.success
      const { code, message, retryable } = result.failure.failure
      told.refused.push({ step, code, message, retryable })
      return undefined
    })

  return Effect.gen(function*() {
    if (!told.isCreated) {
      told.isCreated = (yield* tried("create", Effect.as(store.create({ type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/project" }), true))) ?? false
      if (!told.isCreated) return
    }
    const scope = yield* Scope.make()
    const writer = yield* tried("open", Scope.provide(store.open(id, "the scenario"), scope))
    if (writer !== undefined) {
      told.events.push(...writer.recovery.closed)
      told.receipts.push(...writer.recovery.requeued.map((receipt) => receipt.id))
      yield* turnsOf(writer)
    }
    yield* Scope.close(scope, Exit.void)
  })

  function turnsOf(writer: SessionStore.Writer): Effect.Effect<void> {
    return Effect.gen(function*() {
      for (let count = 0; count < turns; count++) {
        const received = yield* tried("receive", store.receive(id, { kind: "followup", text: noise(told.receipts.length, size), source: "user" }))
        if (received !== undefined) told.receipts.push(received.receipt.id)
        const turn = told.events.filter(({ type }) => type === "turn/start").length + 1
        for (const piece of bodies(turn, received?.receipt.id, size)) {
          const events = piece.map((body, index) => ({ seq: told.events.length + index, time: 1_000, ...body }))
          const sync = piece[0]?.type !== "assistant/chunk"
          if ((yield* tried(`append ${piece[0]?.type}`, Effect.as(writer.append(events, { sync }), true))) === undefined) return
          told.events.push(...events)
        }
      }
    })
  }
}

/** Fails where the store does not hold exactly what was told. */
export const check = (store: SessionStore.Service, told: Told): Effect.Effect<void, StoreError> =>
  Effect.gen(function*() {
    if (!told.isCreated) return
    const events = yield* Stream.runCollect(store.read(id, -1))
    assert.deepEqual(events, told.events)
    assert.ok(Result.isSuccess(LogState.all(LogState.empty(), events)))
    const received = (yield* Stream.runCollect(store.inbox(id))).flatMap((entry) => entry.type === "received" ? [entry.id] : [])
    assert.deepEqual(received, told.receipts)
    const claimed = events.flatMap((event) => event.type === "inbox/claimed" ? event.data.ids : [])
    const pending = (yield* store.pending(id)).nextTurn.map((receipt) => receipt.id)
    assert.deepEqual([...claimed, ...pending].sort(), [...told.receipts].sort())
  })
