/** Programs that are not the agent that an adapter drives, or not in a state to be it: the same for every adapter. */
import { assert, describe, it } from "@effect/vitest"
import type { Failure } from "@turnpike/contract"
import type { InstalledProgram } from "@turnpike/harness"
import { ClaudeHarness, ClaudeProgram } from "@turnpike/harness-claude"
import { CodexHarness, CodexProgram } from "@turnpike/harness-codex"
import { CopilotHarness, CopilotProgram } from "@turnpike/harness-copilot"
import { Harness, Prompt } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { DialectPlayer } from "@turnpike/testkit"
import { Effect, type Scope, Stream } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

interface Adapter {
  readonly make: Effect.Effect<Harness.Harness, never, Supervisor.Supervisor>
  readonly program: InstalledProgram.Description
  /** What the program answers when it is asked for its version. */
  readonly version: string
  readonly dialect: string
  /** Another version, as long as the tested one: Copilot's frames have their length in front. */
  readonly other: string
}

const options = { handshakeTimeout: "1 second" } as const
const adapters: ReadonlyArray<Adapter> = [
  { make: ClaudeHarness.make(options), program: ClaudeProgram.description, version: `${ClaudeProgram.tested} (Claude Code)`, dialect: DialectPlayer.claude, other: "2.1.999" },
  { make: CodexHarness.make(options), program: CodexProgram.description, version: `codex-cli ${CodexProgram.tested}`, dialect: DialectPlayer.codex, other: "0.999.0" },
  { make: CopilotHarness.make(options), program: CopilotProgram.description, version: `GitHub Copilot CLI ${CopilotProgram.tested}.`, dialect: DialectPlayer.copilot, other: "1.0.999" }
]

const place = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-wrong-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

const supervisor = Supervisor.layer({ containment: "group", reapOrphans: false })

describe.concurrent.each(adapters)("the adapter of $program.product", ({ dialect, make, other, program: description, version }) => {
  const { harness: name, npmPackage, product, tested } = description
  interface Scene {
    readonly directory: string
    readonly harness: Harness.Harness
    readonly session: (program: string | undefined) => Harness.SessionOptions
    readonly write: (body: string) => string
  }
  const test = (title: string, body: (scene: Scene) => Effect.Effect<void, unknown, Supervisor.Supervisor | Scope.Scope>) =>
    it.live(title, () =>
      Effect.gen(function*() {
        const directory = yield* place
        yield* body({
          directory,
          harness: yield* make,
          session: (program) =>
            Harness.options({ sessionId: "s", cwd: directory, program, inheritedEnv: { PATH: `${directory}:/usr/bin:/bin`, HOME: directory, CODEX_HOME: directory, TMPDIR: "/var/tmp" } }),
          write: (body) => {
            const file = path.join(directory, description.names[0] ?? name)
            fs.writeFileSync(file, `#!/bin/sh\n${body}\n`, { mode: 0o755 })
            return file
          }
        })
      }).pipe(Effect.scoped, Effect.provide(supervisor)), 30_000)

  const refusal = ({ harness, session }: Scene, program: string): Effect.Effect<Failure.Failure, unknown, Scope.Scope> =>
    Effect.map(Effect.flip(harness.open(session(program))), ({ failure }) => failure)

  test("says how it is installed where it is not there, and where it is something else", (scene) =>
    Effect.gen(function*() {
      const install = `npm install -g ${npmPackage}`
      const missing = yield* refusal(scene, "/no/such/program")
      assert.deepStrictEqual([missing.code, missing.remedy], ["HARNESS_NOT_FOUND", `Install ${product} (${install}), or name its program with --program.`])
      for (const program of ["/bin/cat", "/bin/true", scene.write("printf 'g\\377rbage\\n'; echo token=abcdefghijkl >&2; exit 3"), scene.write("kill -KILL $$")]) {
        const { code, message, remedy } = yield* refusal(scene, program)
        assert.deepStrictEqual([code, remedy], [
          "HARNESS_NOT_A_HARNESS",
          `Name the program of ${product} with --program; if there is none, install it: ${install}.`
        ], program)
        assert.notInclude(message, "abcdefghijkl")
      }
    }))

  test("refuses a file that cannot be executed, and one that is for another machine", (scene) =>
    Effect.gen(function*() {
      const plain = path.join(scene.directory, "plain")
      fs.writeFileSync(plain, "text", { mode: 0o644 })
      const foreign = path.join(scene.directory, "foreign")
      fs.writeFileSync(foreign, Buffer.from("7f454c460201010000000000000000000200ffff01000000", "hex"), { mode: 0o755 })
      // Whether a file is for this machine shows when it is run; what ran it says so.
      assert.deepStrictEqual([(yield* refusal(scene, plain)).code, (yield* refusal(scene, foreign)).code], ["SPAWN_FAILED", "HARNESS_NOT_A_HARNESS"])
    }))

  const begun = (body: string) => `[ "$1" = --version ] && echo '${version}' && exit 0\n${body}`

  test("explains one that is killed at its start, one that ends, one that says garbage for ever, and one that says nothing", (scene) =>
    Effect.gen(function*() {
      const explained = (body: string) => Effect.map(refusal(scene, scene.write(begun(body))), ({ code, message }) => [code, message])
      assert.deepStrictEqual(yield* explained("kill -KILL $$"), [
        "HANDSHAKE_FAILED",
        `the program of ${product} was ended by SIGKILL before it was ready (0 bytes of output)`
      ])
      assert.deepStrictEqual(yield* explained("echo 'cannot start: token=abcdefghijkl' >&2; exit 9"), [
        "HANDSHAKE_FAILED",
        `the program of ${product} exited with code 9 before it was ready (33 bytes of output): cannot start: token=[REDACTED]`
      ])
      const [code, message] = yield* explained("while sleep 0.1; do echo garbage; done")
      assert.strictEqual(code, "HANDSHAKE_FAILED", message)
      assert.deepStrictEqual(yield* explained("exec sleep 308"), [
        "HANDSHAKE_FAILED",
        `the program of ${product} did not answer in time (0 bytes of output)`
      ])
    }))

  test("sees one that gives back what it is told", (scene) =>
    Effect.gen(function*() {
      const { code, message } = yield* refusal(scene, scene.write(begun("exec cat")))
      assert.deepStrictEqual([code, message], ["HARNESS_NOT_A_HARNESS", `the program gives back what it is told; it is not ${product}`])
    }))

  test("works with a version that is not the tested one, and tells so", (scene) =>
    Effect.gen(function*() {
      const player = yield* DialectPlayer.program({ turns: [{ do: [{ type: "text", text: "hello" }, { type: "end", reason: "completed" }] }] }, { dialect })
      const renamed = `"process.stdin.on('data', (data) => process.stdout.write(data.toString('latin1').replaceAll('${tested}', '${other}'), 'latin1'))"`
      const program = scene.write(`'${player}' "$@" | '${process.execPath}' -e ${renamed}`)
      assert.deepStrictEqual(yield* scene.harness.check(scene.session(program)), { program, version: other })
      const session = yield* scene.harness.open(scene.session(program))
      const events = [...(yield* Stream.runCollect(session.runTurn(Prompt.fromText("hi"))))]
      assert.deepStrictEqual(
        events.flatMap((event) => event.type === "notice" && event.data.kind === "untested_version" ? [event.data.message] : []),
        [`${product} ${other} is not the version that is tested, ${tested}`]
      )
      assert.strictEqual(events.at(-1)?.type, "harness/end")
      const { findings, usable } = yield* scene.harness.diagnose({ ...scene.session(program), cwd: scene.directory })
      assert.deepStrictEqual(findings[1], {
        level: "warning",
        message: `version ${other} is not the one that is tested, ${tested}`,
        remedy: `If something is wrong, try that version: npm install -g ${npmPackage}@${tested}`
      })
      assert.isBoolean(usable)
    }))

  test("says what to do where nobody is signed in, or cannot tell", (scene) =>
    Effect.gen(function*() {
      const { findings } = yield* scene.harness.diagnose(scene.session(scene.write(begun("exit 1"))))
      const signIn = findings[2]
      assert.deepStrictEqual([signIn?.level === "ok", signIn?.remedy !== undefined && signIn.remedy.includes(`\`${name}`)], [false, true], JSON.stringify(findings))
    }))
})
