import { assert, describe, it } from "@effect/vitest"
import { InstalledProgram } from "@turnpike/harness"
import { Supervisor } from "@turnpike/process"
import { Effect, type Scope } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const description: InstalledProgram.Description = {
  harness: "toy",
  product: "The Toy",
  names: ["toy"],
  places: ["~/bin/toy"],
  npmPackage: "toy",
  version: /^toy (\d+\.\d+\.\d+)$/m,
  tested: "2.0.0",
  oldest: "1.2.0",
  environment: { TOY_QUIET: "1" }
}

const directory = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-installed-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
)

/** The program in a home of its own, as a script. */
const scene = (script: string | undefined) =>
  Effect.gen(function*() {
    const home = yield* directory
    const file = path.join(home, "bin", "toy")
    fs.mkdirSync(path.dirname(file))
    if (script !== undefined) fs.writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    const program = InstalledProgram.make(description, yield* Supervisor.Supervisor)
    const asked = { program: undefined, inheritedEnv: { PATH: "/usr/bin:/bin", HOME: home }, cwd: home }
    return { asked, file, program }
  })

const supervisor = Supervisor.layer({ containment: "group", reapOrphans: false })

describe("an installed program", () => {
  const test = (name: string, body: Effect.Effect<void, unknown, Supervisor.Supervisor | Scope.Scope>) =>
    it.live(name, () => body.pipe(Effect.scoped, Effect.provide(supervisor)))

  test("is found where it usually is and asked once for its version, with its own variables", Effect.gen(function*() {
    const { asked, file, program } = yield* scene("echo x >> asked; [ \"$TOY_QUIET\" = 1 ] && echo toy 1.10.3")
    assert.deepStrictEqual(yield* program.identify(asked), { file, launcher: undefined, isAbandoned: false, foundBy: "place", version: "1.10.3" })
    yield* program.identify(asked)
    assert.strictEqual(fs.readFileSync(path.join(asked.cwd, "asked"), "utf8"), "x\n")
  }))

  test("that is not there says how to install it", Effect.gen(function*() {
    const { asked, program } = yield* scene(undefined)
    const { failure } = yield* Effect.flip(program.identify(asked))
    assert.deepStrictEqual([failure.code, failure.remedy], [
      "HARNESS_NOT_FOUND",
      "Install The Toy (npm install -g toy), or name its program with --program."
    ])
  }))

  test("that is too old names both versions and the remedy", Effect.gen(function*() {
    const { asked, file, program } = yield* scene("echo toy 1.1.9")
    const { failure } = yield* Effect.flip(program.identify(asked))
    assert.deepStrictEqual([failure.code, failure.message, failure.remedy], [
      "HARNESS_PROTOCOL",
      `${file} is The Toy 1.1.9; the oldest that works here is 1.2.0`,
      "Update The Toy: npm install -g toy."
    ])
  }))

  test("that says something else, or nothing, is not taken for it", Effect.gen(function*() {
    for (const script of ["echo cat 9.1", "exit 3", "cat /dev/zero | head -c 300000"]) {
      const { asked, program } = yield* scene(script)
      assert.strictEqual((yield* Effect.flip(program.identify(asked))).failure.code, "HARNESS_NOT_A_HARNESS")
    }
  }))

  test("is diagnosed with what else is found, and cannot be used where anything of it is a problem", Effect.gen(function*() {
    const { asked, file, program } = yield* scene("echo toy 2.0.0")
    const problem = { level: "problem", message: "not signed in", remedy: "Sign in." } as const
    assert.deepStrictEqual(yield* program.diagnose(asked, () => Effect.succeed([problem])), {
      harness: "toy",
      usable: false,
      program: file,
      version: "2.0.0",
      findings: [
        { level: "ok", message: `the program is ${file}` },
        { level: "ok", message: "version 2.0.0 is the one that is tested" },
        problem
      ]
    })
    assert.isTrue((yield* program.diagnose(asked, () => Effect.succeed([]))).usable)
  }))
})

describe("a diagnosis", () => {
  const test = (name: string, body: Effect.Effect<void, unknown, Supervisor.Supervisor | Scope.Scope>) =>
    it.live(name, () => body.pipe(Effect.scoped, Effect.provide(supervisor)))

  test("keeps the secrets of the environment out of what a program says", Effect.gen(function*() {
    const { asked, program } = yield* scene("echo \"$TOY_API_KEY\" and more; exit 3")
    const found = yield* program.diagnose({ ...asked, inheritedEnv: { ...asked.inheritedEnv, TOY_API_KEY: "hunter2-hunter2" } }, () => Effect.succeed([]))
    assert.deepStrictEqual([found.findings[0]?.code, found.findings[0]?.remedy], [
      "HARNESS_NOT_A_HARNESS",
      "Name the program of The Toy with --program; if there is none, install it: npm install -g toy."
    ])
    assert.include(found.findings[0]?.message, "[REDACTED] and more")
    assert.notInclude(JSON.stringify(found), "hunter2")
  }))

  test("warns of a launcher that has lost the program behind it", Effect.gen(function*() {
    const { asked, file } = yield* scene("echo toy 2.0.0")
    const program = InstalledProgram.make({ ...description, nativeBehind: () => [path.join(asked.cwd, "native", "toy"), file] }, yield* Supervisor.Supervisor)
    const { findings, usable } = yield* program.diagnose(asked, () => Effect.succeed([]))
    assert.deepStrictEqual([usable, findings[0]?.level, findings[0]?.remedy], [true, "warning", "Install it anew: npm install -g toy."])
    assert.match(findings[0]?.message ?? "", /^the program is .*\/bin\/toy, a launcher, and the native program that it is to start is not where npm puts it/)
  }))
})

describe("compareVersions", () => {
  it("orders by number", () => {
    const versions = ["2.1.10", "2.1.9", "2.10.0", "2.2.0", "10.0.0"]
    assert.deepStrictEqual([...versions].sort(InstalledProgram.compareVersions), ["2.1.9", "2.1.10", "2.2.0", "2.10.0", "10.0.0"])
    assert.strictEqual(InstalledProgram.compareVersions("0.171.0-alpha.4", "0.171.0"), 0)
  })
})
