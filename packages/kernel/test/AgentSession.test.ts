import { assert, describe, it } from "@effect/vitest"
import type { TurnEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { AgentSession, Prompt, TurnError, TurnOutput } from "../src/index.ts"
import * as FakeSession from "./support/FakeSession.ts"

describe("oneEnding", () => {
  const collect = (events: Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>) =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const exit = yield* Effect.exit(Stream.runForEach(AgentSession.oneEnding(events), (event) =>
        Effect.sync(() => void seen.push(event.type))))
      return { seen, code: Exit.isFailure(exit) ? (yield* Effect.flip(exit)).failure.code : "ok" }
    })

  it.effect("lets a turn with one ending pass", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* collect(Stream.make(FakeSession.chunk("a"), FakeSession.end("a"))), {
        seen: ["assistant/chunk", "harness/end"],
        code: "ok"
      })
    }))

  it.effect("fails a turn without an ending with NO_TERMINAL, after its events", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* collect(Stream.make(FakeSession.chunk("a"))), { seen: ["assistant/chunk"], code: "NO_TERMINAL" })
      assert.deepStrictEqual(yield* collect(Stream.empty), { seen: [], code: "NO_TERMINAL" })
    }))

  it.effect("fails a second ending and an event after the ending with HARNESS_PROTOCOL", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* collect(Stream.make(FakeSession.end("a"), FakeSession.end("b"))), {
        seen: ["harness/end"],
        code: "HARNESS_PROTOCOL"
      })
      assert.deepStrictEqual(yield* collect(Stream.make(FakeSession.end("a"), FakeSession.chunk("b"))), {
        seen: ["harness/end"],
        code: "HARNESS_PROTOCOL"
      })
    }))

  it.effect("passes a failure on, also after the ending", () =>
    Effect.gen(function*() {
      const broken = Stream.fail(TurnError.io("x"))
      assert.deepStrictEqual(yield* collect(broken), { seen: [], code: "HARNESS_IO" })
      assert.deepStrictEqual(yield* collect(Stream.concat(Stream.make(FakeSession.end("a")), broken)), {
        seen: ["harness/end"],
        code: "HARNESS_IO"
      })
    }))

  it.effect("begins anew each time it is run", () =>
    Effect.gen(function*() {
      const turn = AgentSession.oneEnding(Stream.make(FakeSession.end("a")))
      assert.deepStrictEqual(yield* Stream.runCollect(turn), [FakeSession.end("a")])
      assert.deepStrictEqual(yield* Stream.runCollect(turn), [FakeSession.end("a")])
    }))
})

describe("runToOutput", () => {
  it.effect("folds the events into the output and shows them in order", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const output = yield* AgentSession.runToOutput(FakeSession.echo, Prompt.fromText("x"), (event) =>
        Effect.sync(() => void seen.push(event.type)))
      assert.deepStrictEqual(seen, ["assistant/message", "harness/end"])
      assert.deepStrictEqual(output, { ...TurnOutput.fromText("echo: x"), end: FakeSession.end("echo: x").data })
    }))

  it.effect("fails with the turn's error, the observer's, or NO_TERMINAL", () =>
    Effect.gen(function*() {
      const prompt = Prompt.fromText("x")
      const failing = FakeSession.make(() => Stream.fail(TurnError.preempted()))
      assert.deepStrictEqual(yield* Effect.flip(AgentSession.runToOutput(failing, prompt)), TurnError.preempted())
      const silent = FakeSession.make(() => Stream.empty)
      const error = yield* Effect.flip(AgentSession.runToOutput(silent, prompt))
      assert.strictEqual(error.failure.code, "NO_TERMINAL")
      assert.strictEqual(
        yield* Effect.flip(AgentSession.runToOutput(FakeSession.echo, prompt, () => Effect.fail("unseen" as const))),
        "unseen"
      )
    }))

  it.effect("leaves nothing running when it is interrupted", () =>
    Effect.gen(function*() {
      let over = false
      const session = FakeSession.make(() =>
        Stream.ensuring(Stream.never, Effect.sync(() => {
          over = true
        })))
      const fiber = yield* Effect.forkChild(AgentSession.runToOutput(session, Prompt.fromText("x")), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.isTrue(over)
    }))
})
