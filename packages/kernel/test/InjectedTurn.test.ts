import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { InjectedTurn, SessionLog, type SessionStore } from "../src/index.ts"
import { header } from "./support/DriverScene.ts"
import * as FailingStore from "./support/FailingStore.ts"

/** Writes a text into the log of a new session; answers what came of it, and the log. */
const injected = (store: SessionStore.Service) =>
  Effect.gen(function*() {
    yield* store.create(header)
    const wrote = yield* Effect.scoped(Effect.flatMap(SessionLog.open(store, header.id, "the test"), (log) => Effect.result(InjectedTurn.write(log, "note", "plugin:x"))))
    const told = yield* Stream.runCollect(store.read(header.id, -1))
    return {
      outcome: wrote._tag === "Success" ? wrote.success : wrote.failure.failure.code,
      events: told.map(({ data, type }) => type === "turn/end" ? `${type} ${(data as { readonly verdict: { readonly type: string } }).verdict.type}` : type)
    }
  })

describe("a text as a turn of its own", () => {
  it.effect("is three events, without a step", () =>
    Effect.gen(function*() {
      const store = yield* FailingStore.make(() => false)
      assert.deepStrictEqual(yield* injected(store), { outcome: 1, events: ["turn/start", "context/message", "turn/end completed"] })
    }))

  it.effect("leaves nothing where its turn could not be begun", () =>
    Effect.gen(function*() {
      const store = yield* FailingStore.failingOn("turn/start")
      assert.deepStrictEqual(yield* injected(store), { outcome: "STORE_FULL", events: [] })
    }))

  it.effect("fails where it could not be written, and its turn says why", () =>
    Effect.gen(function*() {
      const store = yield* FailingStore.failingOn("context/message")
      assert.deepStrictEqual(yield* injected(store), { outcome: "STORE_FULL", events: ["turn/start", "error", "turn/end error"] })
    }))

  it.effect("is closed by whoever opens the session next, where its end could not be written", () =>
    Effect.gen(function*() {
      const store = yield* FailingStore.failingOn("turn/end")
      assert.deepStrictEqual(yield* injected(store), { outcome: "STORE_FULL", events: ["turn/start", "context/message"] })
      const { recovery } = yield* Effect.scoped(store.open(header.id, "the next"))
      assert.deepStrictEqual(recovery.closed.map(({ data, seq, type }) => [seq, type, data]), [[2, "turn/end", { turn: 1, verdict: { type: "interrupted" } }]])
    }))
})
