/** A message for a turn that runs, on the real Codex. */
import { assert, describe, it } from "@effect/vitest"
import { Scalars } from "@turnpike/contract"
import { CodexHarness } from "@turnpike/harness-codex"
import { Harness, Prompt } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { ModelServer } from "@turnpike/testkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { codexEnv, makePrivatePlace, programOf } from "./support/realCli.ts"

describe("a running turn of Codex", () => {
  it.live("takes a message, and its model reads it at the next call of the same turn", () =>
    Effect.gen(function*() {
      const server = yield* ModelServer.ModelServer
      const place = yield* Effect.acquireRelease(Effect.sync(makePrivatePlace), ({ remove }) => Effect.sync(remove))
      const model = { baseUrl: server.baseUrl({ type: "slow", words: 20, interval_ms: 100 }, "steer"), apiKey: "sk-scripted", proxyUrl: server.url }
      const harness = yield* CodexHarness.make()
      const session = yield* harness.open(Harness.options({
        sessionId: Scalars.SessionId.make("steered"),
        cwd: place.work,
        program: programOf("codex"),
        inheritedEnv: { ...codexEnv(place, model) }
      }))
      const steer = session.steer ?? (() => Effect.succeed(false))
      assert.isFalse(yield* steer(Prompt.fromText("too early")))
      const streaming = yield* Deferred.make<void>()
      const turn = yield* Effect.forkChild(Stream.runCollect(Stream.tap(session.runTurn(Prompt.fromText("count")), (event) =>
        event.type === "assistant/chunk" ? Deferred.succeed(streaming, undefined) : Effect.void)))
      yield* Deferred.await(streaming)
      assert.isTrue(yield* steer(Prompt.fromText("RATHER-BACKWARDS")))
      const events = [...(yield* Fiber.join(turn))]
      assert.strictEqual(events.filter((event) => event.type === "harness/end").length, 1)
      const asked = (yield* server.requests("steer")).map((request) => JSON.stringify(request.body).includes("RATHER-BACKWARDS"))
      assert.deepStrictEqual(asked, [false, true])
      assert.isFalse(yield* steer(Prompt.fromText("too late")))
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(Supervisor.layer({ reapOrphans: false }), ModelServer.layer()))), 120_000)
})
