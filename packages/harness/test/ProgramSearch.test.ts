import { assert, describe, it } from "@effect/vitest"
import { ProgramSearch } from "@turnpike/harness"
import { Redaction } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const place = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-search-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true }))
)
const program = (file: string, content = "\x7fELF") => {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, content, { mode: 0o755 })
  return file
}
const query = (directory: string, more: Partial<ProgramSearch.Query> = {}): ProgramSearch.Query => ({
  harness: "toy",
  program: undefined,
  names: ["toy"],
  cwd: directory,
  env: { PATH: path.join(directory, "bin"), HOME: path.join(directory, "home") },
  places: ["~/.local/bin/toy"],
  nativeBehind: (launcher) => [path.join(path.dirname(launcher), "native", "toy")],
  ...more
})

describe("ProgramSearch.find", () => {
  it.effect("takes the caller's path, relative to the working directory", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const file = program(path.join(directory, "own", "toy"))
      assert.deepStrictEqual(yield* ProgramSearch.find(query(directory, { program: "./own/toy" })), {
        file,
        launcher: undefined,
        isAbandoned: false,
        foundBy: "option"
      })
    }).pipe(Effect.scoped))

  it.effect("looks in PATH before the usual places", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const usual = program(path.join(directory, "home", ".local", "bin", "toy"))
      assert.deepStrictEqual((yield* ProgramSearch.find(query(directory))), { file: usual, launcher: undefined, isAbandoned: false, foundBy: "place" })
      const file = program(path.join(directory, "bin", "toy"))
      assert.deepStrictEqual(yield* ProgramSearch.find(query(directory)), { file, launcher: undefined, isAbandoned: false, foundBy: "path" })
    }).pipe(Effect.scoped))

  it.effect("takes the native program behind a launcher, through links, and the launcher where there is none", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const launcher = program(path.join(directory, "lib", "toy.js"), "#!/usr/bin/env node\n")
      const link = path.join(directory, "bin", "toy")
      fs.mkdirSync(path.dirname(link))
      fs.symlinkSync(launcher, link)
      assert.deepStrictEqual(yield* ProgramSearch.find(query(directory)), { file: link, launcher: undefined, isAbandoned: true, foundBy: "path" })
      const native = program(path.join(directory, "lib", "native", "toy"))
      assert.deepStrictEqual(yield* ProgramSearch.find(query(directory)), { file: native, launcher: link, isAbandoned: false, foundBy: "path" })
    }).pipe(Effect.scoped))

  it.effect("names where it looked when there is nothing", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const error = yield* Effect.flip(ProgramSearch.find(query(directory)))
      assert.strictEqual(error.failure.code, "HARNESS_NOT_FOUND")
      assert.strictEqual(
        error.failure.message,
        `the program of toy (toy) is neither in PATH (${directory}/bin) nor in ~/.local/bin`
      )
      const named = yield* Effect.flip(ProgramSearch.find(query(directory, { program: "other" })))
      assert.strictEqual(named.failure.message, `there is no program other in PATH (${directory}/bin)`)
      const byPath = yield* Effect.flip(ProgramSearch.find(query(directory, { program: "/no/such" })))
      assert.strictEqual(byPath.failure.message, "there is no program /no/such")
      const installable = yield* Effect.flip(ProgramSearch.find({ ...query(directory), install: "apt-get install toy" }))
      assert.strictEqual(
        installable.failure.remedy,
        "Install toy (apt-get install toy), or name its program with --program."
      )
    }).pipe(Effect.scoped))

  it.effect("refuses a file that cannot be executed", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const file = path.join(directory, "plain")
      fs.writeFileSync(file, "x", { mode: 0o644 })
      for (const named of [file, directory]) {
        const error = yield* Effect.flip(ProgramSearch.find(query(directory, { program: named })))
        assert.strictEqual(error.failure.code, "SPAWN_FAILED")
      }
    }).pipe(Effect.scoped))
})

describe("ProgramSearch.usualDirectories", () => {
  const directories = (env: Readonly<Record<string, string>>) => ProgramSearch.usualDirectories(env)

  it.effect("begins with npm's own directory, as its settings say, and else with Node's", () =>
    Effect.gen(function*() {
      const home = yield* place
      const first = (env: Readonly<Record<string, string>> = {}) => directories({ HOME: home, ...env })[0]
      assert.strictEqual(first(), path.dirname(process.execPath))
      fs.writeFileSync(path.join(home, ".npmrc"), "registry=https://r.example\nprefix = ~/mine\n")
      assert.strictEqual(first(), path.join(home, "mine", "bin"))
      assert.strictEqual(first({ npm_config_prefix: "/n" }), "/n/bin")
    }).pipe(Effect.scoped))

  it("has nothing that depends on the working directory", () => {
    for (const env of [{ HOME: "here" }, { HOME: "" }, { npm_config_prefix: "here", PNPM_HOME: "there" }]) {
      assert.isTrue(directories(env).every((directory) => path.isAbsolute(directory)), JSON.stringify(env))
    }
  })
})

describe("ProgramSearch.describe", () => {
  const supervisor = Supervisor.layer({ containment: "group", reapOrphans: false })
  const describeScript = (script: string, withinMs?: number) =>
    Effect.gen(function*() {
      const directory = yield* place
      const file = program(path.join(directory, "toy"), `#!/bin/sh\n${script}\n`)
      const { spawn } = yield* Supervisor.Supervisor
      return { file, said: yield* ProgramSearch.describe({ program: file, args: ["--version"], cwd: directory }, spawn, withinMs) }
    }).pipe(Effect.scoped, Effect.provide(supervisor))

  it.live("returns output, errors and exit", () =>
    Effect.gen(function*() {
      const { said } = yield* describeScript("echo \"1.2.3 $1\"; echo oops >&2; exit 4")
      assert.deepStrictEqual(said, { text: "1.2.3 --version\noops\n", exit: { code: 4, signal: null } })
    }))

  it.live("gives up on a program that does not end, and leaves nothing of it", () =>
    Effect.gen(function*() {
      const { file, said } = yield* describeScript("echo token=abcdefghijkl; sleep 300", 500)
      assert.deepStrictEqual(said, { text: "token=abcdefghijkl\n", exit: undefined })
      const failure = ProgramSearch.notTheHarness("toy", file, said, Redaction.shapes).failure
      assert.strictEqual(failure.code, "HARNESS_NOT_A_HARNESS")
      assert.include(failure.message, "asked for its version it did not answer in time (19 bytes of output): token=[REDACTED]")
    }))

  it.live("reads a program that says too much only as far as the bound", () =>
    Effect.gen(function*() {
      const { said } = yield* describeScript("yes | head -c 1000000")
      assert.isAtMost(said.text.length, 65_536)
      assert.deepStrictEqual(said.exit?.code, 0)
    }))
})
