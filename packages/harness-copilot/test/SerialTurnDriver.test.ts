import { assert, describe, it } from "@effect/vitest"
import { PreemptSlot, SerialTurnDriver, TurnArgv, TurnRunner } from "@turnpike/harness-copilot"
import { AgentSession, Prompt, ToolAllowlist, TurnError } from "@turnpike/kernel"
import { Failure } from "@turnpike/contract"
import { Deferred, Effect, Fiber, Stream } from "effect"

const id = "5a0d4bb0-7ea0-4a5a-9d3c-3d1f0c7f5d11"

/** A runner that waits until it is told, and notes when it begins and ends. */
const waiting = Effect.sync(() => {
  const notes: Array<string> = []
  const gates = new Map<string, Deferred.Deferred<void>>()
  const gate = (prompt: string) => {
    const known = gates.get(prompt) ?? Deferred.makeUnsafe<void>()
    gates.set(prompt, known)
    return known
  }
  const runner: TurnRunner.TurnRunner = {
    runArgv: (argv) => {
      const prompt = argv[5]!
      return Effect.gen(function*() {
        notes.push(`begins ${prompt}`)
        yield* Deferred.await(gate(prompt))
        notes.push(`ends ${prompt}`)
        return `answer to ${prompt}\n`
      })
    }
  }
  return { runner, notes, release: (prompt: string) => Deferred.succeed(gate(prompt), undefined) }
})

const answering = (answer: Effect.Effect<string, TurnRunner.TurnIoError>) => {
  const seen: Array<ReadonlyArray<string>> = []
  const runner: TurnRunner.TurnRunner = { runArgv: (argv) => Effect.andThen(Effect.sync(() => void seen.push(argv)), answer) }
  return { runner, seen }
}

describe("SerialTurnDriver", () => {
  it.effect("runs one turn at a time, whoever asks", () =>
    Effect.gen(function*() {
      const { notes, release, runner } = yield* waiting
      const driver = yield* SerialTurnDriver.make(runner, id, ToolAllowlist.readOnlyDefault)
      const fibers = yield* Effect.forEach(["one", "two", "three"], (prompt) => Effect.forkChild(driver.runTurn(prompt), { startImmediately: true }))
      yield* Effect.forEach(["three", "two", "one"], release)
      assert.deepStrictEqual(yield* Effect.forEach(fibers, Fiber.join), ["answer to one\n", "answer to two\n", "answer to three\n"])
      assert.deepStrictEqual(notes, ["begins one", "ends one", "begins two", "ends two", "begins three", "ends three"])
    }))

  it.effect("lets go of the session when a turn is interrupted or fails", () =>
    Effect.gen(function*() {
      const { release, runner } = yield* waiting
      const driver = yield* SerialTurnDriver.make(runner, id, ToolAllowlist.readOnlyDefault)
      const first = yield* Effect.forkChild(driver.runTurn("one"), { startImmediately: true })
      yield* Fiber.interrupt(first)
      yield* release("two")
      assert.strictEqual(yield* driver.runTurn("two"), "answer to two\n")
    }))

  it.effect("starts nothing for a prompt that cannot be carried", () =>
    Effect.gen(function*() {
      const { runner, seen } = answering(Effect.succeed("never"))
      const driver = yield* SerialTurnDriver.make(runner, id, ToolAllowlist.readOnlyDefault)
      const error = yield* Effect.flip(driver.runTurn("--help"))
      assert.deepStrictEqual([error, seen], [new TurnArgv.PromptRefused({ why: "leading-dash", bytes: 6 }), []])
    }))
})

const session = (answer: Effect.Effect<string, TurnRunner.TurnIoError>) =>
  Effect.gen(function*() {
    const slot = yield* PreemptSlot.make
    const driver = yield* SerialTurnDriver.make(answering(answer).runner, id, ToolAllowlist.readOnlyDefault)
    return SerialTurnDriver.toAgentSession(driver, { sessionId: "ours", slot })
  })

describe("SerialTurnDriver.toAgentSession", () => {
  it.effect("gives the output as it was written", () =>
    Effect.gen(function*() {
      const agent = yield* session(Effect.succeed("  the answer\n\n"))
      const output = yield* AgentSession.runToOutput(agent, Prompt.fromText("hello"))
      assert.deepStrictEqual([agent.sessionId, output.text], ["ours", "  the answer\n\n"])
      const events = yield* Stream.runCollect(agent.runTurn(Prompt.fromText("hello")))
      assert.deepStrictEqual(events.map(({ type }) => type), ["step/start", "assistant/chunk", "assistant/message", "step/end", "harness/end"])
    }))

  it.effect("tells a pre-empted turn from a failed one and from a refused prompt", () =>
    Effect.gen(function*() {
      const errorOf = (answer: Effect.Effect<string, TurnRunner.TurnIoError>, prompt = "hello") =>
        Effect.flatMap(session(answer), (agent) => Effect.flip(Stream.runDrain(agent.runTurn(Prompt.fromText(prompt)))))
      assert.deepStrictEqual(yield* errorOf(Effect.fail(TurnRunner.interrupted())), TurnError.preempted())
      assert.deepStrictEqual(
        yield* errorOf(Effect.fail(TurnRunner.failed("it exited with code 1", 1))),
        TurnError.exec(Failure.make("HARNESS_FAILED", "it exited with code 1"))
      )
      assert.deepStrictEqual(
        yield* errorOf(Effect.fail(TurnRunner.failed("there is no program", undefined))),
        TurnError.exec(Failure.make("SPAWN_FAILED", "there is no program"))
      )
      const refused = yield* errorOf(Effect.succeed("never"), "-x")
      assert.strictEqual(refused.failure.code, "UNSUPPORTED")
    }))
})
