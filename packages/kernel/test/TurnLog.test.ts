import { assert, describe, it } from "@effect/vitest"
import type { InboxEntry } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { SessionLog, TurnLog } from "../src/index.ts"
import { header } from "./support/DriverScene.ts"
import * as FailingStore from "./support/FailingStore.ts"

describe("a turn that is opened for one prompt", () => {
  it.effect("takes what waits for the next step with it, and no other prompt", () =>
    Effect.gen(function*() {
      const store = yield* FailingStore.make(() => false)
      yield* store.create(header)
      for (const kind of ["followup", "inject"] as const) yield* store.receive(header.id, { kind, text: `an ${kind}`, source: "somebody" })
      const log = yield* SessionLog.open(store, header.id, "the test")
      const turn = TurnLog.ofPrompt({ store, writer: log.writer, log })
      assert.strictEqual((yield* turn.begin("mine")).text, "an inject\n\nmine")
      const pending = yield* store.pending(header.id)
      assert.deepStrictEqual([turn.isOpen(), [...pending.nextStep, ...pending.nextTurn].map(({ text }) => text)], [true, ["an followup"]])
      yield* turn.end({ type: "completed" }, undefined)
      yield* turn.end({ type: "completed" }, undefined)
      assert.deepStrictEqual([turn.isOpen(), (yield* Stream.runCollect(store.read(header.id, -1))).filter(({ type }) => type === "turn/end").length], [false, 1])
    }))

  it.effect("leaves its prompt waiting nowhere where it cannot be begun, and all else where it was", () =>
    Effect.gen(function*() {
      const store = yield* FailingStore.failingOn("turn/start")
      yield* store.create(header)
      yield* store.receive(header.id, { kind: "inject", text: "note", source: "somebody" })
      const log = yield* SessionLog.open(store, header.id, "the test")
      const turn = TurnLog.ofPrompt({ store, writer: log.writer, log })
      assert.strictEqual((yield* Effect.flip(turn.begin("mine"))).failure.code, "STORE_FULL")
      const pending = yield* store.pending(header.id)
      assert.deepStrictEqual([turn.isOpen(), [...pending.nextStep, ...pending.nextTurn].map(({ text }) => text)], [false, ["note"]])
      const last: ReadonlyArray<InboxEntry.InboxEntry> = (yield* Stream.runCollect(store.inbox(header.id))).slice(-1)
      assert.deepStrictEqual(last.map((entry) => entry.type === "discarded" ? [entry.ids, entry.cause, entry.by] : entry), [[["r-2"], "cancelled", "run"]])
    }))
})
