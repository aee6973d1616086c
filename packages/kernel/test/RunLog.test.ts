import { assert, describe, it } from "@effect/vitest"
import { Failure, TurnEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { TestClock } from "effect/testing"
import { RunLog } from "../src/index.ts"
import * as FakeSession from "./support/FakeSession.ts"
import * as Scene from "./support/Scene.ts"

const completed = { type: "completed" } as const
const prompt = { text: "hello", source: "user" }

describe("RunLog", () => {
  it.effect("writes the turn in its order, with its number and the time of each event", () =>
    Effect.gen(function*() {
      const log = RunLog.make()
      yield* log.begin(4, prompt)
      yield* TestClock.adjust(7)
      yield* log.append(FakeSession.chunk("a"))
      yield* log.append(FakeSession.message("a"))
      yield* log.append(FakeSession.end("a"))
      yield* log.append(TurnEvent.make("step/end", { step: 1 }))
      yield* TestClock.adjust(2)
      yield* log.close(completed)
      assert.deepStrictEqual(yield* log.entries, [
        { seq: 0, time: 0, type: "turn/start", data: { turn: 4, trigger: { kind: "message", source: "user" } } },
        { seq: 1, time: 0, type: "step/start", data: { step: 1 } },
        { seq: 2, time: 0, type: "user/message", data: { text: "hello", source: "user" }, surface_op: "append" },
        { seq: 3, time: 7, type: "assistant/message", data: { text: "a" }, surface_op: "append" },
        { seq: 4, time: 7, type: "step/end", data: { step: 1 } },
        { seq: 5, time: 9, type: "turn/end", data: { turn: 4, verdict: completed } }
      ])
    }))

  it.effect("writes the failure before the end of its turn", () =>
    Effect.gen(function*() {
      const log = RunLog.make()
      const error = Failure.make("HARNESS_IO", "the pipe broke")
      yield* log.begin(1, prompt)
      yield* log.close({ type: "error", error }, error)
      assert.deepStrictEqual((yield* log.entries).slice(3), [
        { seq: 3, time: 0, type: "error", data: { code: "HARNESS_IO", message: "the pipe broke" } },
        { seq: 4, time: 0, type: "turn/end", data: { turn: 1, verdict: { type: "error", error } } }
      ])
    }))

  it.effect("refuses an event outside the turn: before, after, and a second beginning", () =>
    Effect.gen(function*() {
      const log = RunLog.make()
      const isRefused = (effect: Effect.Effect<void>) => Effect.map(Effect.exit(effect), Exit.hasDies)
      assert.isTrue(yield* isRefused(log.append(FakeSession.message("early"))))
      yield* log.close(completed)
      assert.deepStrictEqual(yield* log.entries, [])
      yield* log.begin(1, prompt)
      assert.isTrue(yield* isRefused(log.begin(2, prompt)))
      yield* log.close(completed)
      assert.isTrue(yield* isRefused(log.append(FakeSession.message("late"))))
      assert.isTrue(yield* isRefused(log.begin(2, prompt)))
      yield* log.close(completed)
      assert.strictEqual((yield* log.entries).length, 4)
    }))

  it.effect("is bounded: it counts what it did not keep, and stays in balance", () =>
    Effect.gen(function*() {
      const log = RunLog.make({ maxEntries: 6 })
      const call = (call_id: string) => log.append(TurnEvent.make("tool/call", { call_id, name: "Bash" }))
      const result = (call_id: string) => log.append(TurnEvent.make("tool/result", { call_id, is_error: false }))
      yield* log.begin(1, prompt)
      yield* call("kept")
      yield* log.append(TurnEvent.make("permission/request", { request_id: "p", tool_name: "Bash" }))
      yield* log.append(FakeSession.message("kept"))
      yield* log.append(FakeSession.message("too many"))
      yield* call("lost")
      yield* result("kept")
      yield* result("lost")
      yield* log.append(TurnEvent.make("permission/decision", { request_id: "p", decision: "deny", by: "x" }))
      yield* log.append(TurnEvent.make("step/end", { step: 1 }))
      yield* log.append(TurnEvent.make("step/start", { step: 2 }))
      yield* log.append(TurnEvent.make("step/end", { step: 2 }))
      yield* log.close(completed)
      const entries = yield* log.entries
      assert.deepStrictEqual(entries.map(({ type }) => type), [
        "turn/start",
        "step/start",
        "user/message",
        "tool/call",
        "permission/request",
        "assistant/message",
        "tool/result",
        "permission/decision",
        "step/end",
        "notice",
        "turn/end"
      ])
      assert.deepStrictEqual(entries[9]?.data, { kind: "text_lost", message: "5 events were not kept: this log holds 6" })
      assert.deepStrictEqual(Scene.faultsOfLog(entries), [])
    }))

  it.effect("keeps no more of a million events than its bound", () =>
    Effect.gen(function*() {
      const log = RunLog.make()
      yield* log.begin(1, prompt)
      for (let index = 0; index < 1_000_000; index++) yield* log.append(FakeSession.message("x"))
      yield* log.close(completed)
      const entries = yield* log.entries
      assert.strictEqual(entries.length, RunLog.defaultMaxEntries + 2)
      assert.deepStrictEqual(entries.at(-2)?.data, { kind: "text_lost", message: "900003 events were not kept: this log holds 100000" })
    }), 60_000)
})
