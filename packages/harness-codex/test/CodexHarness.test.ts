import { assert, describe, it } from "@effect/vitest"
import { CodexHarness, CodexHome, CodexProgram } from "@turnpike/harness-codex"
import { Harness } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { Effect, type Scope } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const supervisor = Supervisor.layer({ containment: "group", reapOrphans: false })
const place = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-codex-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true }))
)

const script = (directory: string, body: string, name = "codex"): string => {
  const file = path.join(directory, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  return file
}
/** A program that says it is Codex and then does as the body says. */
const codex = (directory: string, body: string, version = CodexProgram.tested): string =>
  script(directory, `if [ "$1" = --version ]; then echo "codex-cli ${version}"; exit 0; fi\n${body}`)

/** Answers the opening, the thread with what is given, and says into a file what it was told. */
const answering = (directory: string, thread: string): string =>
  codex(directory, `read one; echo "$one" > '${directory}/told'; echo '{"id":"initialize","result":{}}'
read two; read three; echo "$three" >> '${directory}/told'; env > '${directory}/env'; echo '${thread}'
while read more; do case "$more" in *inject_items*) echo "$more" > '${directory}/instructions'; echo '{"id":"instructions","result":{}}';; esac; done`)
const begun = `{"id":"thread","result":{"thread":{"id":"t"},"model":"m","cwd":"/x","sandbox":{"type":"readOnly"}}}`

const options = (directory: string, more: Partial<Harness.SessionOptions> = {}): Harness.SessionOptions =>
  Harness.options({ sessionId: "s", cwd: directory, inheritedEnv: { PATH: "/usr/bin:/bin", HOME: directory }, ...more })

const test = (name: string, body: (directory: string, harness: Harness.Harness) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
  it.live(name, () =>
    Effect.gen(function*() {
      yield* body(yield* place, yield* CodexHarness.make({ handshakeTimeout: "2 seconds" }))
    }).pipe(Effect.scoped, Effect.provide(supervisor)), 30_000)

const failureOf = (harness: Harness.Harness, session: Harness.SessionOptions) =>
  Effect.map(Effect.flip(harness.open(session)), ({ failure }) => failure)

describe("CodexHarness.check", () => {
  test("names the program and its version", (directory, harness) =>
    Effect.gen(function*() {
      const program = codex(directory, "exit 9")
      assert.deepStrictEqual(yield* harness.check(options(directory, { program })), { program, version: CodexProgram.tested })
    }))

  test("refuses programs that are something else", (directory, harness) =>
    Effect.gen(function*() {
      for (const program of ["/bin/true", "/bin/cat", script(directory, "echo codex-cli; exit 3", "junk")]) {
        const { failure } = yield* Effect.flip(harness.check(options(directory, { program })))
        assert.strictEqual(failure.code, "HARNESS_NOT_A_HARNESS", program)
      }
    }))

  test("refuses options that it cannot honour, by name and before it looks for a program", (directory, harness) =>
    Effect.gen(function*() {
      const refused = (more: Partial<Harness.SessionOptions>) =>
        Effect.map(Effect.flip(harness.check(options(directory, { program: "/no/such", ...more }))), ({ failure }) => failure.message)
      const configDir = path.join(directory, "config")
      assert.deepStrictEqual([
        yield* refused({ credentials: { claude: { oauth_token: "x" } } }),
        yield* refused({ credentials: { codex: { auth_json: "{}" } } }),
        yield* refused({ credentials: { codex: { auth_json: "[]" } }, configDir }),
        yield* refused({ model: " " }),
        yield* refused({ tools: { _tag: "Only", tools: ["read", "Bash(git *)"] } }),
        yield* refused({ tools: { _tag: "Only", tools: [] } }),
        yield* refused({ configDir, env: { CODEX_HOME: "/x" } }),
        yield* refused({ env: { CODEX_HOME: "/a/b/c", TMPDIR: "/a/b" } })
      ], [
        "codex cannot honour credentials.claude: Codex cannot sign in with it",
        "codex cannot honour credentials.codex: it would replace your own sign-in; ask for isolation, too",
        "codex cannot honour credentials.codex.auth_json: it is no JSON object, as Codex's auth.json is",
        "codex cannot honour model: it is blank",
        "codex cannot honour tools.allow \"Bash(git *)\": Codex has no list of tools by name; use read, search, edit, execute, fetch",
        "codex cannot honour tools.allow []: Codex always has its shell, which can read",
        "codex cannot honour env.CODEX_HOME: a directory of the session's own was asked for, too",
        "codex cannot honour env.TMPDIR: Codex's directory /a/b/c is under it, and Codex then runs no command; choose another for one of them"
      ])
      assert.isFalse(fs.existsSync(configDir))
    }))

  test("takes the native program behind npm's launcher", (directory, harness) =>
    Effect.gen(function*() {
      const triple = ({ "linux-x64": "x86_64-unknown-linux-musl", "linux-arm64": "aarch64-unknown-linux-musl", "darwin-x64": "x86_64-apple-darwin", "darwin-arm64": "aarch64-apple-darwin" } as Record<string, string>)[
        `${process.platform}-${process.arch}`
      ] ?? ""
      const modules = path.join(directory, "lib", "node_modules", "@openai")
      fs.mkdirSync(path.join(directory, "bin"))
      fs.symlinkSync(script(modules, "exit 1", "codex/bin/codex.js"), path.join(directory, "bin", "codex"))
      const program = codex(path.join(modules, `codex-${process.platform}-${process.arch}`, "vendor", triple, "bin"), "exit 9")
      const found = yield* harness.check(options(directory, { inheritedEnv: { PATH: `${directory}/bin:/usr/bin:/bin`, HOME: directory } }))
      assert.deepStrictEqual(found, { program, version: CodexProgram.tested })
    }))
})

describe("CodexHarness.open", () => {
  test("says all that decides what a thread may do, also when it resumes one", (directory, harness) =>
    Effect.gen(function*() {
      const program = answering(directory, begun)
      const tools = { _tag: "Only", tools: ["read", "edit"] } as const
      const told = () => JSON.parse(fs.readFileSync(`${directory}/told`, "utf8").trim().split("\n")[1] ?? "")
      const terms = {
        cwd: directory,
        approvalPolicy: "on-request",
        approvalsReviewer: "user",
        sandbox: "workspace-write",
        model: "gpt",
        config: { "features.goals": false, web_search: "disabled" }
      }
      yield* (yield* harness.open(options(directory, { program, tools, model: "gpt", system: "be brief" }))).close
      assert.deepStrictEqual(told(), { id: "thread", method: "thread/start", params: { ...terms, developerInstructions: "be brief" } })
      assert.isFalse(fs.existsSync(`${directory}/instructions`))
      yield* (yield* harness.open(options(directory, { program, tools, model: "gpt", system: "be brief", resume: { harnessSessionId: "t", onLost: "fail" } }))).close
      assert.deepStrictEqual(told(), { id: "thread", method: "thread/resume", params: { threadId: "t", excludeTurns: true, ...terms } })
      assert.deepStrictEqual(JSON.parse(fs.readFileSync(`${directory}/instructions`, "utf8")), {
        id: "instructions",
        method: "thread/inject_items",
        params: { threadId: "t", items: [{ type: "message", role: "developer", content: [{ type: "input_text", text: "be brief" }] }] }
      })
    }))

  test("tells a thread that is lost, one that is in use, and a server that has too much to do", (directory, harness) =>
    Effect.gen(function*() {
      const resume = { harnessSessionId: "t", onLost: "fail" } as const
      const code = (error: string) =>
        Effect.map(failureOf(harness, options(directory, { program: answering(directory, `{"id":"thread","error":${error}}`), resume })), (failure) => [failure.code, failure.retryable])
      assert.deepStrictEqual([
        yield* code(`{"code":-32600,"message":"no rollout found for thread id t"}`),
        yield* code(`{"code":-32603,"message":"failed to read thread: thread-store internal error: failed to read session metadata /t.jsonl"}`),
        yield* code(`{"code":-32600,"message":"thread t already has an active writer"}`),
        yield* code(`{"code":-32001,"message":"overloaded"}`),
        yield* code(`{"code":-32600,"message":"Invalid request: unknown variant thread/resume"}`)
      ], [["SESSION_LOST", false], ["SESSION_LOST", false], ["SESSION_IN_USE", false], ["OVERLOADED", true], ["HARNESS_PROTOCOL", false]])
      const { failure } = yield* Effect.flip(harness.open(options(directory, { program: answering(directory, `{"id":"thread","error":{"code":-32601,"message":"Method not found"}}`) })))
      assert.strictEqual(failure.remedy, "Use the version that is tested: npm install -g @openai/codex@0.171.0.")
    }))

  test("explains a program that ends before it is ready, and one that says nothing", (directory, harness) =>
    Effect.gen(function*() {
      const ended = yield* failureOf(harness, options(directory, { program: codex(directory, "echo 'api_key=sk-abcdefghijkl broke' >&2; exit 1") }))
      assert.strictEqual(ended.code, "HANDSHAKE_FAILED")
      assert.include(ended.message, "exited with code 1")
      assert.notInclude(ended.message, "sk-abcdefghijkl")
      const silent = yield* failureOf(harness, options(directory, { program: codex(directory, "cat > /dev/null") }))
      assert.deepStrictEqual([silent.code, silent.message.includes("did not answer in time")], ["HANDSHAKE_FAILED", true])
    }))

  test("refuses to go on with a configuration that cannot be read", (directory, harness) =>
    Effect.gen(function*() {
      const program = codex(directory, `read one; echo '{"method":"configWarning","params":{"summary":"Invalid configuration; using defaults.","details":"/x/config.toml:12:6: no"}}'; cat > /dev/null`)
      const failure = yield* failureOf(harness, options(directory, { program }))
      assert.deepStrictEqual([failure.code, failure.message, failure.remedy], [
        "HANDSHAKE_FAILED",
        "Codex cannot read its configuration: /x/config.toml:12:6: no",
        "Correct the named file."
      ])
    }))

  test("writes a sign-in for its owner alone into the session's own directory, and meets the trap of a directory for temporary files", (directory, harness) =>
    Effect.gen(function*() {
      const configDir = path.join(directory, "config")
      const inheritedEnv = { PATH: "/usr/bin:/bin", HOME: directory, TMPDIR: directory, OPENAI_API_KEY: "lies-about" }
      const program = answering(directory, begun)
      yield* (yield* harness.open(options(directory, { program, configDir, inheritedEnv, credentials: { codex: { auth_json: "{\"tokens\":{}}" } } }))).close
      const auth = path.join(configDir, "auth.json")
      assert.deepStrictEqual([fs.readFileSync(auth, "utf8"), fs.statSync(auth).mode & 0o777], ["{\"tokens\":{}}", 0o600])
      assert.deepStrictEqual(fs.readdirSync(configDir).sort(), ["auth.json", "tmp"])
      const seen = fs.readFileSync(`${directory}/env`, "utf8").split("\n").filter((line) => /^(CODEX_HOME|TMPDIR|OPENAI_API_KEY)=/.test(line)).sort()
      assert.deepStrictEqual(seen, [`CODEX_HOME=${configDir}`, `TMPDIR=${configDir}/tmp`])
    }))
})

describe("CodexHome", () => {
  it.live("tells of rules that let commands out of the sandbox, and of no others", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const around = { configDir: path.join(directory, "config"), env: {}, inheritedEnv: {}, credentials: undefined, cwd: directory }
      const write = (file: string, text: string) => {
        fs.mkdirSync(path.dirname(path.join(directory, file)), { recursive: true })
        fs.writeFileSync(path.join(directory, file), text)
      }
      write("config/rules/strict.rules", "prefix_rule(pattern=[\"rm\"], decision=\"forbidden\")\nprefix_rule(pattern=[\"git\"], decision=\"prompt\")\n")
      assert.deepStrictEqual(CodexHome.remarks(around), [])
      write("config/rules/default.rules", "prefix_rule(\n  pattern=[\"touch\"],\n  decision=\"allow\",\n)\n")
      write(".codex/rules/own.rules", "prefix_rule(pattern=[\"make\"])\n")
      assert.deepStrictEqual(CodexHome.remarks(around).map(({ data }) => data.message), [
        `the rules in ${directory}/config/rules/default.rules let Codex run commands outside its sandbox without asking`,
        `the rules in ${directory}/.codex/rules/own.rules let Codex run commands outside its sandbox without asking`
      ])
    }).pipe(Effect.scoped))

  it.live("sees how Codex would sign in, by what it says and else from files and variables alone", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const env = { CODEX_HOME: directory }
      assert.deepStrictEqual(
        ["Logged in using ChatGPT", "API key configured - ***\n…", "Not logged in", "Error loading configuration: no key `x`", "Error checking login status: EOF"].map((said) => CodexHome.signIn(env, said)),
        [
          { level: "ok", message: `signs in by ${directory}/auth.json; whether it is valid shows with the first turn` },
          { level: "ok", message: `signs in by ${directory}/auth.json; whether it is valid shows with the first turn` },
          {
            level: "problem",
            message: `no sign-in was found: none in ${directory}/auth.json, and no provider of your own in ${directory}/config.toml`,
            remedy: "Run `codex login`, or `printenv OPENAI_API_KEY | codex login --with-api-key`."
          },
          { level: "problem", message: "Codex cannot read its configuration: no key `x`", remedy: "Correct what it names." },
          {
            level: "problem",
            message: `the sign-in in ${directory}/auth.json cannot be read: EOF`,
            remedy: "Run `codex login`, or `printenv OPENAI_API_KEY | codex login --with-api-key`."
          }
        ]
      )
      assert.strictEqual(CodexHome.signIn(env).level, "problem")
      fs.writeFileSync(path.join(directory, "config.toml"), "model_provider = \"own\"\n[model_providers.own]\nenv_key = \"OWN_KEY\"\n")
      assert.deepStrictEqual([CodexHome.signIn(env).level, CodexHome.signIn({ ...env, OWN_KEY: "x" }).level], ["problem", "ok"])
      fs.writeFileSync(path.join(directory, "config.toml"), "")
      fs.writeFileSync(path.join(directory, "auth.json"), "{}")
      assert.strictEqual(CodexHome.signIn(env).level, "ok")
    }).pipe(Effect.scoped))
})

describe("CodexHarness.diagnose", () => {
  test("says what is there and what to type next", (directory, harness) =>
    Effect.gen(function*() {
      const program = codex(directory, "exit 9", "0.200.0")
      const { findings, usable, version } = yield* harness.diagnose({ program, inheritedEnv: { PATH: "/usr/bin:/bin", HOME: directory, TMPDIR: directory }, cwd: directory })
      assert.deepStrictEqual([usable, version, findings.map(({ level }) => level)], [false, "0.200.0", ["ok", "warning", "problem", "warning"]])
      assert.isTrue(findings.every(({ level, remedy }) => level === "ok" || (remedy ?? "") !== ""))
      const misconfigured = codex(directory, `[ "$*" = "login status" ] && echo 'Error loading configuration: /c/config.toml:1:9: token=abcdefghijkl' >&2; exit 1`)
      assert.deepStrictEqual((yield* harness.diagnose({ program: misconfigured, inheritedEnv: { PATH: "/usr/bin:/bin", HOME: directory }, cwd: directory })).findings[2], {
        level: "problem",
        message: "Codex cannot read its configuration: /c/config.toml:1:9: token=[REDACTED]",
        remedy: "Correct what it names."
      })
      const missing = yield* harness.diagnose({ program: "/no/such", inheritedEnv: {}, cwd: directory })
      assert.deepStrictEqual([missing.usable, missing.findings.length], [false, 1])
    }))
})
