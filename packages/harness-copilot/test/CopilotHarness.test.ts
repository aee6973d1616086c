import { assert, describe, it } from "@effect/vitest"
import { CopilotHarness, CopilotProgram } from "@turnpike/harness-copilot"
import { AgentSession, Harness, Prompt, ToolAllowlist } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { DialectPlayer, type Situation } from "@turnpike/testkit"
import { Deferred, Effect, Fiber, type Scope, Stream } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const supervisor = Supervisor.layer({ containment: "group", reapOrphans: false })
const place = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-copilot-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true }))
)

const script = (directory: string, body: string, name = "copilot"): string => {
  const file = path.join(directory, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  return file
}
/** A program that says it is Copilot and then does as the body says. */
const copilot = (directory: string, body: string, version = CopilotProgram.tested): string =>
  script(directory, `if [ "$1" = --version ]; then echo "GitHub Copilot CLI ${version}."; exit 0; fi\n${body}`)

/** Copilot's server as it was recorded, which does what the scenario says. */
const played = (scenario: Situation.Scenario) => DialectPlayer.program(scenario, { dialect: DialectPlayer.copilot, name: "copilot" })
const answering = { turns: [{ do: [{ type: "text", text: "hello" }, { type: "end", reason: "completed" }] }] }

/** Copilot's server in states that no recording shows, with a note of what it was told. */
const serverFile = fileURLToPath(new URL("support/server.mjs", import.meta.url))
const server = (directory: string, mode: string): string => copilot(directory, `env > env.txt; exec '${process.execPath}' '${serverFile}' ${mode}`)

const env = { PATH: "/usr/bin:/bin" }
const options = (directory: string, more: Partial<Harness.SessionOptions> = {}): Harness.SessionOptions =>
  Harness.options({ sessionId: "s", cwd: directory, inheritedEnv: { ...env, HOME: directory }, ...more })

const requests = (directory: string): ReadonlyArray<{ readonly method: string; readonly params: Readonly<Record<string, unknown>> }> =>
  fs.readFileSync(path.join(directory, "requests.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line))

const test = (name: string, body: (directory: string, harness: Harness.Harness) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
  it.live(name, () =>
    Effect.gen(function*() {
      yield* body(yield* place, yield* CopilotHarness.make({ handshakeTimeout: "3 seconds" }))
    }).pipe(Effect.scoped, Effect.provide(supervisor)), 30_000)

describe("CopilotHarness.check", () => {
  test("names the program and its version", (directory, harness) =>
    Effect.gen(function*() {
      const program = copilot(directory, "exit 9")
      assert.deepStrictEqual(yield* harness.check(options(directory, { program })), { program, version: CopilotProgram.tested })
    }))

  test("refuses programs that are something else, with what they say", (directory, harness) =>
    Effect.gen(function*() {
      const junk = script(directory, "echo junk; echo api_key=sk-abcdefghijkl >&2; exit 3", "junk")
      for (const program of ["/bin/true", "/bin/cat", junk]) {
        const { failure } = yield* Effect.flip(harness.check(options(directory, { program })))
        assert.strictEqual(failure.code, "HARNESS_NOT_A_HARNESS", program)
        assert.notInclude(failure.message, "sk-abcdefghijkl")
      }
    }))

  test("says how to install what is not there", (directory, harness) =>
    Effect.gen(function*() {
      const { failure } = yield* Effect.flip(harness.check(options(directory, { program: "no-such-copilot" })))
      assert.strictEqual(failure.code, "HARNESS_NOT_FOUND")
      assert.include(failure.remedy, "npm install -g @github/copilot")
    }))

  test("refuses options that it cannot honour, by name and before it looks for a program", (directory, harness) =>
    Effect.gen(function*() {
      const refused = (more: Partial<Harness.SessionOptions>) =>
        Effect.map(Effect.flip(harness.check(options(directory, { program: "/no/such", ...more }))), ({ failure }) => failure.message)
      assert.deepStrictEqual([
        yield* refused({ credentials: { claude: { oauth_token: "t" } } }),
        yield* refused({ credentials: { codex: { auth_json: "{}" } } }),
        yield* refused({ model: " " }),
        yield* refused({ tools: { _tag: "Only", tools: ["write(.env)"] } }),
        yield* refused({ env: { COPILOT_PROVIDER_BASE_URL: "http://127.0.0.1:1" } })
      ], [
        "copilot cannot honour credentials.claude: Copilot cannot sign in with it",
        "copilot cannot honour credentials.codex: Copilot cannot sign in with it",
        "copilot cannot honour model: it is blank",
        "copilot cannot honour tools.allow \"write(.env)\": it has a pattern, which can be held for bash alone",
        "COPILOT_PROVIDER_BASE_URL names a service of its own, and no model is named"
      ])
    }))

  test("takes the native program behind npm's loader", (directory, harness) =>
    Effect.gen(function*() {
      const modules = path.join(directory, "lib", "node_modules", "@github")
      const loader = script(modules, "exit 1", "copilot/npm-loader.js")
      fs.mkdirSync(path.join(directory, "bin"))
      fs.symlinkSync(loader, path.join(directory, "bin", "copilot"))
      const native = path.join(modules, `copilot-${process.platform}-${process.arch}`)
      fs.mkdirSync(native)
      const program = copilot(native, "exit 9")
      const found = yield* harness.check(options(directory, { inheritedEnv: { PATH: `${directory}/bin:/usr/bin:/bin`, HOME: directory } }))
      assert.deepStrictEqual(found, { program, version: CopilotProgram.tested })
    }))
})

describe("CopilotHarness.open", () => {
  const opening = (directory: string, harness: Harness.Harness, program: string, resume?: Harness.Resume) =>
    Effect.map(Effect.flip(harness.open(options(directory, { program, resume }))), ({ failure }) => [failure.code, failure.message])

  test("explains a program that ends before it is ready, one that never is, and one that gives back what it is told", (directory, harness) =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* opening(directory, harness, yield* played({
        start: [{ type: "stderr", text: "cannot start: token=abcdefghijkl\n" }, { type: "exit", code: 7 }],
        turns: []
      })), [
        "HANDSHAKE_FAILED",
        "the program of Copilot exited with code 7 before it was ready (33 bytes of output): cannot start: token=[REDACTED]"
      ])
      assert.deepStrictEqual(yield* opening(directory, harness, yield* played({ handshake: "never", turns: [] })), [
        "HANDSHAKE_FAILED",
        "the program of Copilot did not answer in time (0 bytes of output)"
      ])
      assert.deepStrictEqual(yield* opening(directory, harness, copilot(directory, "exec cat")), [
        "HARNESS_NOT_A_HARNESS",
        "the program gives back what it is told; it is not Copilot"
      ])
    }))

  test("refuses another protocol, and repeats why Copilot refuses", (directory, harness) =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* opening(directory, harness, yield* played({ handshake: "other_protocol", turns: [] })), [
        "HARNESS_PROTOCOL",
        "Copilot speaks protocol version 4; the one that works here is 3"
      ])
      const { failure } = yield* Effect.flip(harness.open(options(directory, { program: server(directory, "no-connect") })))
      assert.deepStrictEqual([failure.code, failure.message, failure.remedy], [
        "HARNESS_PROTOCOL",
        "Copilot refused to begin: Unhandled method connect",
        "Use the version that is tested: npm install -g @github/copilot@1.0.102."
      ])
      assert.deepStrictEqual(yield* opening(directory, harness, server(directory, "refuses")), [
        "HANDSHAKE_FAILED",
        "Copilot refused to begin: bad key=[REDACTED]"
      ])
    }))

  test("tells a session that is lost, and goes on without it where that was chosen", (directory, harness) =>
    Effect.gen(function*() {
      const program = yield* played(answering)
      const [code] = yield* opening(directory, harness, program, { harnessSessionId: "gone", onLost: "fail" })
      assert.strictEqual(code, "SESSION_LOST")
      const session = yield* harness.open(options(directory, { program, resume: { harnessSessionId: "gone", onLost: "fresh" } }))
      const events = yield* Stream.runCollect(session.runTurn(Prompt.fromText("hello")))
      assert.deepStrictEqual(events.flatMap((event) => event.type === "notice" ? [event.data.kind] : []), ["fresh_session"])
    }))

  test("takes a session whose file is torn for lost, and says why", (directory, harness) =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* opening(directory, harness, server(directory, "torn"), { harnessSessionId: "s-1", onLost: "fail" }), [
        "SESSION_LOST",
        "copilot cannot read its session s-1: Request session.resume failed with message: session resume failed: Session file is corrupted (line 1)"
      ])
    }))

  test("opens a session with what was asked, in words and not in arguments, and runs a turn", (directory, harness) =>
    Effect.gen(function*() {
      const session = yield* harness.open(options(directory, {
        program: server(directory, "answers"),
        model: "a-model",
        system: "Speak of zebras.",
        configDir: path.join(directory, "config"),
        inheritedEnv: {
          ...env,
          HOME: directory,
          COPILOT_ALLOW_ALL: "true",
          COPILOT_PROVIDER_BASE_URL: "http://127.0.0.1:1/v1",
          COPILOT_PROVIDER_API_KEY: "sk-made-up"
        }
      }))
      assert.strictEqual((yield* AgentSession.runToOutput(session, Prompt.fromText("-v /clear"))).text, "answer to -v /clear")
      const all = requests(directory)
      const { sessionId, ...params } = all[1]!.params
      assert.match(String(sessionId), /^[0-9a-f]{8}-[0-9a-f]{4}-4/)
      assert.deepStrictEqual([all.map(({ method }) => method), params], [["connect", "session.create", "session.send"], {
        clientName: "turnpike",
        workingDirectory: directory,
        streaming: true,
        requestPermission: true,
        requestUserInput: false,
        requestElicitation: false,
        envValueMode: "direct",
        hooks: true,
        model: "a-model",
        provider: { baseUrl: "http://127.0.0.1:1/v1", type: "openai", apiKey: "sk-made-up" },
        systemMessage: { mode: "append", content: "Speak of zebras." },
        availableTools: ["view", "grep", "rg", "glob"]
      }])
      const environment = fs.readFileSync(path.join(directory, "env.txt"), "utf8")
      assert.include(environment, `COPILOT_HOME=${directory}/config\n`)
      assert.notInclude(environment, "COPILOT_ALLOW_ALL")
    }))

  test("gates nothing where all tools are allowed, and resumes by the id that it is given", (directory, harness) =>
    Effect.gen(function*() {
      const session = yield* harness.open(options(directory, {
        program: server(directory, "answers"),
        tools: ToolAllowlist.dangerousAll,
        resume: { harnessSessionId: "theirs", onLost: "fail" }
      }))
      const events = yield* Stream.runCollect(session.runTurn(Prompt.fromText("hello")))
      assert.deepStrictEqual(events[0], {
        type: "session/bound",
        data: { harness_session_id: "theirs", resumed: true, harness_version: "1.0.102" }
      })
      const { method, params } = requests(directory)[1]!
      assert.deepStrictEqual([method, params["sessionId"], params["hooks"], "availableTools" in params], ["session.resume", "theirs", false, false])
    }))

  test("stops a turn by Copilot's own way when it is asked to", (directory, harness) =>
    Effect.gen(function*() {
      const program = yield* played({ turns: [{ do: [{ type: "text", text: "one two", unfinished: true }, { type: "hang" }] }] })
      const session = yield* harness.open(options(directory, { program }))
      const speaks = yield* Deferred.make<void>()
      const turn = yield* session.runTurn(Prompt.fromText("hello")).pipe(
        Stream.tap((event) => event.type === "assistant/chunk" ? Deferred.succeed(speaks, undefined) : Effect.void),
        Stream.runCollect,
        Effect.forkChild({ startImmediately: true })
      )
      yield* Deferred.await(speaks)
      yield* session.interrupt
      const end = (yield* Fiber.join(turn)).at(-1)
      assert.deepStrictEqual(end?.type === "harness/end" ? [end.data.stop_reason, end.data.harness_reason] : [], ["aborted", "user_initiated"])
      assert.deepStrictEqual((yield* session.close).survivors, [])
    }))
})

describe("CopilotHarness.diagnose", () => {
  const diagnose = (directory: string, harness: Harness.Harness, more: Readonly<Record<string, string>>, version?: string, mode?: string) =>
    harness.diagnose({ program: mode === undefined ? copilot(directory, "exit 9", version) : server(directory, mode), cwd: directory, inheritedEnv: { ...env, HOME: directory, ...more } })

  test("says how it would sign in, and asks Copilot where the environment does not tell", (directory, harness) =>
    Effect.gen(function*() {
      const found = (more: Readonly<Record<string, string>>, mode?: string) =>
        Effect.map(diagnose(directory, harness, more, undefined, mode), ({ findings, usable }) => [usable, findings[2]?.level, findings[2]?.message.split(";")[0]])
      assert.deepStrictEqual(yield* found({}), [true, "warning", "could not be asked whether it is signed in"])
      assert.deepStrictEqual(yield* found({}, "signed-in"), [true, "ok", "is signed in as me"])
      assert.deepStrictEqual(yield* found({}, "signed-out"), [false, "problem", "is not signed in, and the environment names no token and no service"])
      assert.deepStrictEqual(yield* found({ GH_TOKEN: "t" }), [true, "ok", "signs in by GH_TOKEN of the environment"])
      assert.deepStrictEqual(yield* found({ COPILOT_PROVIDER_BASE_URL: "http://x", COPILOT_MODEL: "m" }), [
        true,
        "ok",
        "uses a model's service of its own by COPILOT_PROVIDER_BASE_URL"
      ])
      assert.deepStrictEqual((yield* found({ COPILOT_PROVIDER_BASE_URL: "http://x" })).slice(0, 2), [true, "warning"])
    }))

  test("tells traps, versions, and a program that is missing", (directory, harness) =>
    Effect.gen(function*() {
      const trapped = yield* diagnose(directory, harness, { COPILOT_OFFLINE: "true" })
      assert.deepStrictEqual([trapped.usable, trapped.findings.at(-1)?.level], [false, "problem"])
      const other = yield* diagnose(directory, harness, {}, "1.0.9")
      assert.deepStrictEqual([other.version, other.findings[1]?.level, other.findings[1]?.message], [
        "1.0.9",
        "warning",
        "version 1.0.9 is not the one that is tested, 1.0.102"
      ])
      const missing = yield* harness.diagnose({ program: "no-such-copilot", cwd: directory, inheritedEnv: { ...env } })
      assert.deepStrictEqual([missing.usable, missing.findings.length], [false, 1])
    }))
})
