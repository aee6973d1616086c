import { assert, describe, it } from "@effect/vitest"
import { Scalars, TurnEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Cancel, Run, SessionStoreMemory } from "../src/index.ts"
import * as FakeHarness from "./support/FakeHarness.ts"
import { end } from "./support/FakeSession.ts"
import * as Scene from "./support/Scene.ts"

describe("events", () => {
  it.effect("by the hundred thousand pass one after the other; the result stays bounded", () =>
    Effect.gen(function*() {
      const count = 101_000
      const note = TurnEvent.make("notice", { kind: "harness_note", message: "hm" })
      const fake = FakeHarness.make({
        turn: () => Stream.concat(Stream.map(Stream.range(1, count), () => note), Stream.make(end("done")))
      })
      let told = 0
      const prepared = yield* Scene.prepare({ fake })
      const result = yield* Run.execute(prepared, {
        runId: Scalars.RunId.make("run-1"),
        turnpikeVersion: "0.0.0",
        sink: () => Effect.sync(() => void told++),
        cancel: yield* Cancel.make,
        deliver: "caller",
        grace: "5 seconds"
      })
      assert.isAbove(told, count)
      assert.strictEqual(result.session_log.length, 100_002)
      assert.deepStrictEqual(Scene.faultsOfLog(result.session_log), [])
    }).pipe(Effect.scoped, Effect.provide(SessionStoreMemory.layer)), 60_000)
})
