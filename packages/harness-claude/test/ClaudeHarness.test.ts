import { assert, describe, it } from "@effect/vitest"
import { ClaudeHarness, ClaudeProgram } from "@turnpike/harness-claude"
import { Harness } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { Effect, type Scope } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const supervisor = Supervisor.layer({ containment: "group", reapOrphans: false })
const place = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-claude-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true }))
)

const script = (directory: string, body: string, name = "claude"): string => {
  const file = path.join(directory, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  return file
}
/** A program that says it is Claude Code and then does as the body says. */
const claude = (directory: string, body: string, version = ClaudeProgram.tested): string =>
  script(directory, `if [ "$1" = --version ]; then echo "${version} (Claude Code)"; exit 0; fi\n${body}`)

const env = { PATH: "/usr/bin:/bin" }
const options = (directory: string, more: Partial<Harness.SessionOptions> = {}): Harness.SessionOptions =>
  Harness.options({ sessionId: "s", cwd: directory, inheritedEnv: { ...env, HOME: directory }, ...more })

const test = (name: string, body: (directory: string, harness: Harness.Harness) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
  it.live(name, () =>
    Effect.gen(function*() {
      yield* body(yield* place, yield* ClaudeHarness.make({ handshakeTimeout: "1 second" }))
    }).pipe(Effect.scoped, Effect.provide(supervisor)), 30_000)

describe("ClaudeHarness.check", () => {
  test("names the program and its version", (directory, harness) =>
    Effect.gen(function*() {
      const program = claude(directory, "exit 9")
      assert.deepStrictEqual(yield* harness.check(options(directory, { program })), { program, version: ClaudeProgram.tested })
    }))

  test("refuses programs that are something else, with what they say, and leaves nothing of them", (directory, harness) =>
    Effect.gen(function*() {
      const junk = script(directory, "echo junk; echo api_key=sk-abcdefghijkl >&2; exit 3", "junk")
      for (const program of ["/bin/true", "/bin/cat", junk]) {
        const { failure } = yield* Effect.flip(harness.check(options(directory, { program })))
        assert.strictEqual(failure.code, "HARNESS_NOT_A_HARNESS", program)
        assert.include(failure.message, `${program} is not the program of Claude Code: asked for its version it exited with code`)
      }
      const { failure } = yield* Effect.flip(harness.check(options(directory, { program: junk })))
      assert.include(failure.message, "junk\napi_key=[REDACTED]")
    }))

  test("refuses a version that is too old, and says how to update", (directory, harness) =>
    Effect.gen(function*() {
      const { failure } = yield* Effect.flip(harness.check(options(directory, { program: claude(directory, "", "2.0.99") })))
      assert.strictEqual(failure.code, "HARNESS_PROTOCOL")
      assert.include(failure.message, "is Claude Code 2.0.99; the oldest that works here is 2.1.197")
      assert.include(failure.remedy, "claude update")
    }))

  test("refuses options that it cannot honour, by name and before it looks for a program", (directory, harness) =>
    Effect.gen(function*() {
      const refused = (more: Partial<Harness.SessionOptions>) =>
        Effect.map(Effect.flip(harness.check(options(directory, { program: "/no/such", ...more }))), ({ failure }) => failure.message)
      assert.deepStrictEqual([
        yield* refused({ credentials: { codex: { auth_json: "{}" } } }),
        yield* refused({ model: " " }),
        yield* refused({ tools: { _tag: "Only", tools: ["Read(src/**)"] } })
      ], [
        "claude cannot honour credentials.codex: Claude Code cannot sign in with it",
        "claude cannot honour model: it is blank",
        "claude cannot honour tools.allow \"Read(src/**)\": it has a pattern, which can be held for Bash alone"
      ])
    }))

  test("takes the native program behind npm's launcher, also where that is a stub which no first line makes a script", (directory, harness) =>
    Effect.gen(function*() {
      const modules = path.join(directory, "lib", "node_modules", "@anthropic-ai")
      const launcher = script(modules, "exit 1", "claude-code/bin/claude.exe")
      fs.writeFileSync(launcher, "echo 'Error: claude native binary not installed.' >&2\nexit 1\n")
      fs.mkdirSync(path.join(directory, "bin"))
      fs.symlinkSync(launcher, path.join(directory, "bin", "claude"))
      const native = path.join(modules, `claude-code-${process.platform}-${process.arch}`)
      fs.mkdirSync(native)
      const program = claude(native, "exit 9")
      const found = yield* harness.check(options(directory, { inheritedEnv: { PATH: `${directory}/bin:/usr/bin:/bin`, HOME: directory } }))
      assert.deepStrictEqual(found, { program, version: ClaudeProgram.tested })
    }))
})

describe("ClaudeHarness.open", () => {
  const opening = (directory: string, harness: Harness.Harness, program: string, resume?: Harness.Resume) =>
    Effect.map(Effect.flip(harness.open(options(directory, { program, resume }))), ({ failure }) => failure)

  test("explains a program that ends before it is ready", (directory, harness) =>
    Effect.gen(function*() {
      const failure = yield* opening(directory, harness, claude(directory, "echo 'error: unknown option' >&2; exit 1"))
      assert.deepStrictEqual([failure.code, failure.message], [
        "HANDSHAKE_FAILED",
        "the program of Claude Code exited with code 1 before it was ready (22 bytes of output): error: unknown option"
      ])
    }))

  test("explains a program that is never ready", (directory, harness) =>
    Effect.gen(function*() {
      const failure = yield* opening(directory, harness, claude(directory, "exec sleep 305"))
      assert.deepStrictEqual([failure.code, failure.message], ["HANDSHAKE_FAILED", "the program of Claude Code did not answer in time (0 bytes of output)"])
    }))

  test("sees at once that a program only gives back what it is told", (directory, harness) =>
    Effect.gen(function*() {
      const failure = yield* opening(directory, harness, claude(directory, "exec cat"))
      assert.deepStrictEqual([failure.code, failure.message], [
        "HARNESS_NOT_A_HARNESS",
        "the program gives back what it is told; it is not Claude Code"
      ])
    }))

  test("tells a configuration that Claude Code cannot read", (directory, harness) =>
    Effect.gen(function*() {
      const record = { type: "result", subtype: "error_during_execution", is_error: true, startup_failure_reason: "config_file_invalid", errors: ["Configuration error in /c/.claude.json: EOF", "token=abcdefghijkl"] }
      const failure = yield* opening(directory, harness, claude(directory, `echo '${JSON.stringify(record)}'; exit 1`))
      assert.deepStrictEqual([failure.code, failure.message, failure.retryable, failure.remedy], [
        "HANDSHAKE_FAILED",
        "Claude Code cannot read its configuration: Configuration error in /c/.claude.json: EOF\ntoken=[REDACTED]",
        false,
        "Correct the named file, or move it away."
      ])
    }))

  test("tells a program that does not know the opening, and what works", (directory, harness) =>
    Effect.gen(function*() {
      const answer = `read one; id=$(echo "$one" | sed 's/.*"request_id":"\\([^"]*\\)".*/\\1/'); echo "{\\"type\\":\\"control_response\\",\\"response\\":{\\"subtype\\":\\"error\\",\\"request_id\\":\\"$id\\",\\"error\\":\\"Unsupported control request subtype: initialize\\"}}"; exec cat > /dev/null`
      const failure = yield* opening(directory, harness, claude(directory, answer))
      assert.deepStrictEqual([failure.code, failure.message, failure.remedy], [
        "HARNESS_PROTOCOL",
        "Claude Code refused to begin: Unsupported control request subtype: initialize",
        "Use the version that is tested: npm install -g @anthropic-ai/claude-code@2.1.332."
      ])
    }))

  test("tells a session that is lost from one that is in use", (directory, harness) =>
    Effect.gen(function*() {
      const resume = { harnessSessionId: "302bc34e-d1ac-4116-ad84-dede4da608cc", onLost: "fail" } as const
      const lost = yield* opening(
        directory,
        harness,
        claude(directory, "echo 'No conversation found with session ID: x' >&2; exit 1"),
        resume
      )
      const inUse = yield* opening(directory, harness, claude(directory, "echo 'Error: Session ID x is already in use.' >&2; exit 1"))
      assert.deepStrictEqual([lost.code, inUse.code, inUse.message], [
        "SESSION_LOST",
        "SESSION_IN_USE",
        "Claude Code says: Error: Session ID x is already in use."
      ])
    }))
})

describe("ClaudeHarness.diagnose", () => {
  const diagnose = (directory: string, harness: Harness.Harness, more: Record<string, string> = {}, program?: string) =>
    harness.diagnose({ program, cwd: directory, inheritedEnv: { ...env, HOME: directory, ...more } })
  const levels = (diagnosis: Harness.Diagnosis) => diagnosis.findings.map(({ level }) => level)

  test("says what is missing and what to do", (directory, harness) =>
    Effect.gen(function*() {
      const diagnosis = yield* diagnose(directory, harness, {}, path.join(directory, "nothing"))
      assert.deepStrictEqual([diagnosis.usable, levels(diagnosis)], [false, ["problem"]])
    }))

  test("sees a sign-in in the environment, in a file, and none", (directory, harness) =>
    Effect.gen(function*() {
      const program = claude(directory, "exit 9")
      const none = yield* diagnose(directory, harness, {}, program)
      assert.deepStrictEqual([none.usable, none.version, levels(none)], [false, ClaudeProgram.tested, ["ok", "ok", process.platform === "darwin" ? "warning" : "problem"]])
      assert.include(none.findings[2]?.remedy, "claude setup-token")
      const byKey = yield* diagnose(directory, harness, { ANTHROPIC_API_KEY: "sk-very-secret" }, program)
      assert.isTrue(byKey.usable)
      assert.notInclude(JSON.stringify(byKey), "sk-very-secret")
      fs.mkdirSync(path.join(directory, ".claude"))
      fs.writeFileSync(path.join(directory, ".claude", ".credentials.json"), "{}")
      assert.isTrue((yield* diagnose(directory, harness, {}, program)).usable)
    }))

  test("asks Claude Code how it is signed in where neither the environment nor its files tell", (directory, harness) =>
    Effect.gen(function*() {
      const asked = (answer: string) =>
        Effect.map(
          diagnose(directory, harness, {}, claude(directory, `[ "$*" = "auth status --json" ] && [ "$CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC" = 1 ] && echo '${answer}'`)),
          ({ findings, usable }) => [usable, findings[2]?.message.split(";")[0]]
        )
      assert.deepStrictEqual([yield* asked(`{"loggedIn":true,"authMethod":"claude.ai"}`), yield* asked(`{"loggedIn":false}`)], [
        [true, "is signed in (claude.ai)"],
        [false, `no sign-in was found: none in the environment, none in ${directory}/.claude`]
      ])
    }))

  test("warns of what is not what it seems to be: settings, a key before a sign-in, an old version's commands", (directory, harness) =>
    Effect.gen(function*() {
      const own = path.join(directory, ".claude")
      fs.mkdirSync(own)
      const traps = (version?: string) =>
        Effect.map(
          diagnose(directory, harness, { ANTHROPIC_API_KEY: "x" }, claude(directory, "", version)),
          ({ findings, usable }) => [usable, findings.slice(3).map(({ message }) => message)]
        )
      fs.writeFileSync(path.join(own, "settings.json"), "{}")
      assert.deepStrictEqual(yield* traps(), [true, []])
      fs.writeFileSync(path.join(own, "settings.json"), "{ broken")
      fs.writeFileSync(path.join(own, ".credentials.json"), "{}")
      assert.deepStrictEqual(yield* traps("2.1.200"), [true, [
        `${own}/settings.json is no JSON object, and Claude Code goes on without it`,
        `ANTHROPIC_API_KEY of the environment is used, and is billed, in place of the sign-in in ${own}/.credentials.json`,
        "version 2.1.200 would run a prompt that begins with a slash as a command of its own, so such a prompt is refused"
      ]])
    }))

  test("warns of a version that is not tested", (directory, harness) =>
    Effect.gen(function*() {
      const diagnosis = yield* diagnose(directory, harness, { ANTHROPIC_API_KEY: "x" }, claude(directory, "", "2.1.999"))
      assert.deepStrictEqual([diagnosis.usable, levels(diagnosis)], [true, ["ok", "warning", "ok"]])
    }))
})
