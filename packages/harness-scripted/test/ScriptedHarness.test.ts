import { assert, describe, it } from "@effect/vitest"
import { Scenario, ScriptedHarness } from "@turnpike/harness-scripted"
import { AgentSession, Harness, Permission, Prompt, Redaction, ToolAllowlist, TurnOutput } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Agent from "./support/agent.ts"

const ownVersion = (JSON.parse(fs.readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { readonly version: string }).version

const end: Scenario.Action = { type: "end", reason: "completed" }
const say = (text: string): Scenario.Action => ({ type: "text", text })
const echo: Scenario.Scenario = { turns: [{ repeats: true, do: [say("{{prompts}}"), end] }] }

const place = Effect.acquireRelease(Effect.sync(Agent.place), ({ remove }) => Effect.sync(remove))

const optionsIn = (directory: string, more: Partial<Harness.SessionOptions> = {}): Harness.SessionOptions => ({
  sessionId: "ours",
  resume: undefined,
  cwd: directory,
  model: undefined,
  system: undefined,
  tools: ToolAllowlist.readOnlyDefault,
  permission: Permission.deny,
  inheritedEnv: { PATH: process.env["PATH"] ?? "", HOME: path.join(directory, "home") },
  env: {},
  credentials: undefined,
  program: undefined,
  configDir: undefined,
  redact: Redaction.shapes,
  ...more
})

const run = (session: AgentSession.AgentSession, text: string) =>
  Effect.map(Stream.runCollect(session.runTurn(Prompt.fromText(text))), (events) => ({
    events: [...events],
    text: [...events].reduce(TurnOutput.add, TurnOutput.empty).text
  }))

const test = (name: string, body: Effect.Effect<void, unknown, Scope.Scope | Supervisor.Supervisor>) =>
  it.live(name, () => body.pipe(Effect.scoped, Effect.provide(Supervisor.layer({ reapOrphans: false }))), 30_000)

describe("ScriptedHarness", () => {
  test("plays the demonstration where nothing else is chosen", Effect.gen(function*() {
    const { directory } = yield* place
    const harness = yield* ScriptedHarness.make()
    const session = yield* harness.open(optionsIn(directory))
    const { events, text } = yield* run(session, "is this real?")
    assert.ok(text.startsWith("You asked: is this real?"), text)
    assert.deepStrictEqual([...new Set(events.map(({ type }) => type))].sort(), [
      "assistant/chunk",
      "assistant/message",
      "harness/end",
      "session/bound",
      "step/end",
      "step/start",
      "tool/call",
      "tool/result",
      "usage"
    ])
  }))

  test("takes its scenario from the caller, then from the variable of the session, then from what it inherits", Effect.gen(function*() {
    const { directory } = yield* place
    const file = path.join(directory, "mine.json")
    fs.writeFileSync(file, JSON.stringify({ turns: [{ repeats: true, do: [say("from the file"), end] }] }))
    const inherited = { PATH: process.env["PATH"] ?? "", HOME: directory, TURNPIKE_SCENARIO: "echo" }
    const answer = (options: ScriptedHarness.Options, more: Partial<Harness.SessionOptions>) =>
      Effect.scoped(Effect.gen(function*() {
        const harness = yield* ScriptedHarness.make(options)
        const session = yield* harness.open(optionsIn(directory, { inheritedEnv: inherited, ...more }))
        return (yield* run(session, "x")).text
      }))
    assert.deepStrictEqual(
      [
        yield* answer({ scenario: { turns: [{ do: [say("a value"), end] }] } }, { env: { TURNPIKE_SCENARIO: "./mine.json" } }),
        yield* answer({}, { env: { TURNPIKE_SCENARIO: "./mine.json" } }),
        yield* answer({}, {})
      ],
      ["a value", "from the file", "[\"x\"]"]
    )
  }))

  test("refuses a scenario that is unknown, unreadable or wrong, before anything is started", Effect.gen(function*() {
    const { directory } = yield* place
    const marker = path.join(directory, "started")
    const agent = path.join(directory, "agent")
    fs.writeFileSync(agent, `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
    const harness = yield* ScriptedHarness.make({ agent: [agent] })
    const wrong = path.join(directory, "wrong.json")
    fs.writeFileSync(wrong, "{\"turns\":[{\"do\":[{\"type\":\"delay\",\"ms\":\"soon\"}]}]}")
    for (const [scenario, code, words] of [
      ["nope", "INVALID_SPEC", "there is no scenario nope"],
      ["/nowhere/x.json", "FILE_UNREADABLE", "/nowhere/x.json"],
      [wrong, "INVALID_SPEC", "turns[0].do[0].ms is \"soon\""]
    ] as const) {
      const options = optionsIn(directory, { env: { TURNPIKE_SCENARIO: scenario } })
      for (const attempt of [harness.check(options), Effect.asVoid(harness.open(options))]) {
        const error = yield* Effect.flip(attempt as Effect.Effect<unknown, Effect.Error<typeof attempt>, Scope.Scope>)
        assert.deepStrictEqual([error.failure.code, error.message.includes(words)], [code, true], error.message)
      }
    }
    assert.strictEqual(fs.existsSync(marker), false)
  }))

  test("refuses credentials by name", Effect.gen(function*() {
    const { directory } = yield* place
    const harness = yield* ScriptedHarness.make()
    const options = optionsIn(directory, { credentials: { claude: { oauth_token: "secret" } } })
    const error = yield* Effect.flip(harness.check(options))
    assert.deepStrictEqual(error.reason._tag === "Unsupported" ? [error.reason.harness, error.reason.option] : error.message, ["scripted", "credentials"])
    yield* harness.check(optionsIn(directory, { credentials: { claude: null } }))
  }))

  test("gives up on an agent that does not answer its opening, or speaks another protocol", Effect.gen(function*() {
    const { directory } = yield* place
    for (const [handshake, code] of [["never", "HANDSHAKE_FAILED"], ["other_protocol", "HARNESS_PROTOCOL"]] as const) {
      const harness = yield* ScriptedHarness.make({ scenario: { ...echo, handshake, start: [{ type: "stderr", text: "some words\n" }] }, handshakeTimeout: "1500 millis" })
      const error = yield* Effect.flip(harness.open(optionsIn(directory)))
      assert.deepStrictEqual([error.reason._tag, ["HANDSHAKE_FAILED", "HARNESS_NOT_A_HARNESS"].includes(error.failure.code) ? "HANDSHAKE_FAILED" : error.failure.code], ["NotStarted", code])
    }
  }))

  test("understands a refusal that comes before it has asked", Effect.gen(function*() {
    const { directory } = yield* place
    for (const [why, reason, code] of [["unknown", "SessionLost", "SESSION_LOST"], ["in_use", "NotStarted", "SESSION_IN_USE"]] as const) {
      // The agent is gone before it could have read a word.
      const agent = path.join(directory, why)
      fs.writeFileSync(agent, `#!/bin/sh\nexec <&-\necho '{"type":"refused","why":"${why}","message":"no"}'\nexit 1\n`, { mode: 0o755 })
      const harness = yield* ScriptedHarness.make({ agent: [agent], scenario: echo })
      const error = yield* Effect.flip(harness.open(optionsIn(directory, { resume: { harnessSessionId: "x", onLost: "fail" } })))
      assert.deepStrictEqual([error.reason._tag, error.failure.code], [reason, code])
    }
  }))

  test("keeps sessions of a private directory apart", Effect.gen(function*() {
    const { directory } = yield* place
    const harness = yield* ScriptedHarness.make({ scenario: echo })
    const configDir = path.join(directory, "private")
    const { text } = yield* run(yield* harness.open(optionsIn(directory, { configDir })), "x")
    assert.deepStrictEqual([text, fs.readdirSync(path.join(configDir, "sessions")).length], ["[\"x\"]", 1])
    assert.strictEqual(fs.existsSync(path.join(directory, "home")), false)
  }))

  test("gives the agent the caller's environment without the marks of an enclosing agent", Effect.gen(function*() {
    const { directory } = yield* place
    const words = ["CLAUDECODE", "COLOUR", "SHAPE", "TURNPIKE_TEST_OUTSIDE"].map((name) => `{{env:${name}}}`).join("|")
    process.env["TURNPIKE_TEST_OUTSIDE"] = "not the caller's"
    yield* Effect.addFinalizer(() => Effect.sync(() => delete process.env["TURNPIKE_TEST_OUTSIDE"]))
    const harness = yield* ScriptedHarness.make({ scenario: { turns: [{ do: [say(words), end] }] } })
    const session = yield* harness.open(optionsIn(directory, {
      inheritedEnv: { PATH: process.env["PATH"] ?? "", HOME: directory, CLAUDECODE: "1", COLOUR: "red", SHAPE: "round" },
      env: { SHAPE: "square" }
    }))
    assert.strictEqual((yield* run(session, "x")).text, "|red|square|")
  }))

  test("keeps its context when the agent forgets its session's id, and says so", Effect.gen(function*() {
    const { directory } = yield* place
    const harness = yield* ScriptedHarness.make({ scenario: { ...echo, resume: "new_id" } })
    const first = yield* harness.open(optionsIn(directory))
    const { events } = yield* run(first, "one")
    const id = events.flatMap((event) => (event.type === "session/bound" ? [event.data.harness_session_id] : []))[0] ?? ""
    yield* first.close
    const second = yield* harness.open(optionsIn(directory, { resume: { harnessSessionId: id, onLost: "fail" } }))
    const resumed = yield* run(second, "two")
    const bound = resumed.events.flatMap((event) => (event.type === "session/bound" ? [event.data] : []))
    assert.deepStrictEqual([resumed.text, bound[0]?.resumed, bound[0]?.harness_session_id === id], ["[\"one\",\"two\"]", true, false])
    assert.deepStrictEqual(resumed.events.flatMap((event) => (event.type === "notice" ? [event.data.kind] : [])), ["rebound"])
  }))

  test("runs another program that speaks the protocol", Effect.gen(function*() {
    const { directory } = yield* place
    const program = path.join(directory, "mine")
    fs.writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${Agent.executable}' "$@"\n`, { mode: 0o755 })
    const harness = yield* ScriptedHarness.make({ scenario: echo })
    const options = optionsIn(directory, { program: "./mine" })
    const checked = yield* harness.check(options)
    assert.deepStrictEqual(checked, { program, version: ownVersion })
    assert.strictEqual((yield* run(yield* harness.open(options), "x")).text, "[\"x\"]")
    const { findings, usable, version } = yield* harness.diagnose({ program, inheritedEnv: {}, cwd: directory })
    assert.deepStrictEqual([usable, version, findings.map(({ level }) => level)], [true, ownVersion, ["ok"]])
    const stranger = yield* harness.diagnose({ program: "/bin/true", inheritedEnv: {}, cwd: directory })
    assert.deepStrictEqual([stranger.usable, stranger.findings.map(({ level }) => level)], [false, ["problem"]])
  }))
})
