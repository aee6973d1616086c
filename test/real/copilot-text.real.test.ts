/** Copilot's text mode on the real program: one process a turn, one session. */
import { assert, layer } from "@effect/vitest"
import { CopilotTurnRunner, PreemptSlot, SerialTurnDriver, TurnRunner } from "@turnpike/harness-copilot"
import { AgentSession, Prompt, ToolAllowlist } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { type ModelScenario, ModelServer } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { copilotEnv, makePrivatePlace, programOf } from "./support/realCli.ts"

const layers = Layer.merge(ModelServer.layer(), Supervisor.layer({ reapOrphans: false }))

/** A session, and how a turn of it is run with a scenario of its own. */
const session = Effect.gen(function*() {
  const server = yield* ModelServer.ModelServer
  const { spawn } = yield* Supervisor.Supervisor
  const place = yield* Effect.acquireRelease(Effect.sync(makePrivatePlace), (made) => Effect.sync(made.remove))
  const slot = yield* PreemptSlot.make
  const sessionId = randomUUID()
  const driver = (scenario: ModelScenario.ModelScenario, tools: ToolAllowlist.ToolAllowlist = ToolAllowlist.readOnlyDefault) =>
    SerialTurnDriver.make(
      CopilotTurnRunner.make({
        program: programOf("copilot"),
        cwd: place.work,
        env: {
          ...Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined])),
          ...copilotEnv(place, { baseUrl: server.baseUrl(scenario, "text-mode"), proxyUrl: server.url, apiKey: "sk-scripted-key-of-the-real-test" })
        },
        slot,
        spawn
      }),
      sessionId,
      tools
    )
  return { driver, slot, place }
})

layer(layers, { excludeTestServices: true })("Copilot's text mode", (it) => {
  it.effect("begins a session and goes on with it, prompts unchanged", () =>
    Effect.gen(function*() {
      const { driver, slot } = yield* session
      const server = yield* ModelServer.ModelServer
      const { runTurn } = yield* driver({ type: "text" })
      const prompt = "it's $(x) \"y\"\n  ; z\t&& 😀"
      assert.include(yield* runTurn(prompt), "I was sent 1 prompt: ")
      assert.deepStrictEqual((yield* server.requests("text-mode")).at(-1)?.prompts, [prompt])
      const agent = SerialTurnDriver.toAgentSession(yield* driver({ type: "text" }), { sessionId: "ours", slot })
      const { text } = yield* AgentSession.runToOutput(agent, Prompt.fromText("/clear"))
      assert.include(text, "I was sent 2 prompts: ")
      assert.deepStrictEqual((yield* server.requests("text-mode")).at(-1)?.prompts, [prompt, "/clear"])
      yield* server.forget("text-mode")
    }), 120_000)

  it.effect("carries the longest prompt that an argument can", () =>
    Effect.gen(function*() {
      const { driver } = yield* session
      const prompt = "0123456789abcde\n".repeat(8192).slice(0, 131_071)
      assert.include(yield* (yield* driver({ type: "text" })).runTurn(prompt), "I was sent 1 prompt")
    }), 120_000)

  it.effect("tells why a turn failed, and the session goes on", () =>
    Effect.gen(function*() {
      const { driver } = yield* session
      const error = yield* Effect.flip((yield* driver({ type: "status", status: 401 })).runTurn("first"))
      assert.match(error.message, /^copilot turn failed: it exited with code 1 \(\d+ bytes of output\): [\s\S]*HTTP 401/)
      assert.include(yield* (yield* driver({ type: "text" })).runTurn("second"), "\"second\"")
    }), 120_000)

  it.effect("is pre-empted with the tool that runs, and the session goes on", () =>
    Effect.gen(function*() {
      const { driver, place, slot } = yield* session
      const file = path.join(place.work, "pid")
      const command = "echo $$ > pid; sleep 300"
      const busy = yield* driver({ type: "tool", command }, ToolAllowlist.dangerousAll)
      const turn = yield* Effect.forkChild(Effect.flip(busy.runTurn("first")), { startImmediately: true })
      while (!fs.existsSync(file) || fs.readFileSync(file, "utf8") === "") yield* Effect.sleep("25 millis")
      assert.isTrue(yield* slot.fire)
      assert.deepStrictEqual(yield* Fiber.join(turn), TurnRunner.interrupted())
      const running = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((name) => {
        try {
          return fs.readlinkSync(`/proc/${name}/cwd`) === place.work
        } catch {
          return false
        }
      })
      assert.deepStrictEqual(running, [])
      assert.include(yield* (yield* driver({ type: "text" })).runTurn("second"), "\"second\"")
    }), 120_000)
})
