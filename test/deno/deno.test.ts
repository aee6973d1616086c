import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { type Manifest, packages, readJson, root } from "../architecture/support/Workspace.ts"
import { environment, hasCommand, npm, pack, run, succeed } from "../packaging/support/Tarballs.ts"

const deno = path.join(root, "test/deno/runtime/node_modules/.bin/deno")
const directory = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-deno-"))
const project = path.join(directory, "project")
const home = path.join(directory, "home")
fs.mkdirSync(home)

const env = environment({ HOME: home, DENO_DIR: path.join(directory, "cache"), TURNPIKE_HOME: path.join(home, "turnpike"), NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" })
const fromSources = ["run", "--allow-all", "--no-check", "--conditions=turnpike-source"]
const folders = packages().map(({ folder }) => folder).filter((folder) => folder !== "cli")

/** What each package's index says that it exports. */
const exported = Object.fromEntries(folders.map((folder) => [
  folder,
  [...fs.readFileSync(path.join(root, "packages", folder, "src/index.ts"), "utf8").matchAll(/^export \* as (\w+)/gm)].map((match) => match[1] ?? "").sort()
]))

const typesOf = (stdout: string) => stdout.trimEnd().split("\n").map((line) => (JSON.parse(line) as { type: string }).type)

afterAll(() => fs.rmSync(directory, { recursive: true, force: true }))

describe("Deno, on the sources of the workspace", () => {
  it("is the version that was meant", () => {
    const wanted = readJson<Manifest>("test/deno/runtime/package.json").dependencies?.["deno"] ?? ""
    assert.include(succeed(deno, ["--version"], directory, env), `deno ${wanted} `)
  })

  it("imports every package", () => {
    const printed = succeed(deno, [...fromSources, path.join(root, "test/deno/namespaces.ts"), ...folders], root, env)
    assert.deepStrictEqual(JSON.parse(printed), exported)
  })

  it("runs two prompts through the session loop", () => {
    const printed = succeed(deno, [...fromSources, path.join(root, "examples/two-prompts.ts")], root, env)
    assert.strictEqual(printed, fs.readFileSync(path.join(root, "examples/two-prompts.out"), "utf8"))
  })

  it("passes the tests of the core", () => {
    const report = path.join(directory, "core.json")
    const vitest = path.join(root, "node_modules/vitest/vitest.mjs")
    const ran = run(deno, ["run", "--allow-all", vitest, "run", "packages/contract", "packages/kernel", "--reporter=json", `--outputFile=${report}`], root, env)
    assert.strictEqual(ran.status, 0, ran.stdout + ran.stderr)
    const { numFailedTests, numPassedTests } = JSON.parse(fs.readFileSync(report, "utf8")) as { numFailedTests: number; numPassedTests: number }
    assert.strictEqual(numFailedTests, 0)
    assert.isAtLeast(numPassedTests, 90)
  })

  it.runIf(hasCommand())("runs a task on the scripted harness to its verdict", () => {
    const ran = run(deno, [...fromSources, path.join(root, "packages/cli/src/bin.ts"), "run", "--harness", "scripted", "--format", "events", "Say hello"], directory, env)
    assert.strictEqual(ran.status, 0, ran.stdout + ran.stderr)
    assert.deepStrictEqual(typesOf(ran.stdout).slice(-2), ["session_end", "result"])
  })
})

describe("Deno, on the packed tarballs", () => {
  beforeAll(() => {
    const tarballs = pack(directory)
    const dependencies = Object.fromEntries(tarballs.map(({ file, name }) => [name, `file:${file}`]))
    fs.mkdirSync(project)
    fs.writeFileSync(
      path.join(project, "package.json"),
      JSON.stringify({
        name: "stranger",
        private: true,
        type: "module",
        overrides: dependencies,
        dependencies: { ...dependencies, effect: readJson<Manifest>("package.json").devDependencies?.["effect"] }
      })
    )
    npm(["install", "--no-audit", "--no-fund", "--ignore-scripts"], project, env)
    fs.copyFileSync(path.join(root, "test/deno/namespaces.ts"), path.join(project, "namespaces.ts"))
    fs.copyFileSync(path.join(root, "examples/two-prompts.ts"), path.join(project, "two-prompts.ts"))
  }, 600_000)

  it("imports every package", () => {
    const printed = succeed(deno, ["run", "--allow-all", "--no-check", "namespaces.ts", ...folders], project, env)
    assert.deepStrictEqual(JSON.parse(printed), exported)
  })

  it("needs no permission to run the core", () => {
    const printed = succeed(deno, ["run", "--no-prompt", "--allow-env", "--allow-read", "two-prompts.ts"], project, env)
    assert.strictEqual(printed, fs.readFileSync(path.join(root, "examples/two-prompts.out"), "utf8"))
  })

  it.runIf(hasCommand())("runs the bundled command", () => {
    const bundle = path.join(project, "node_modules/@turnpike/cli/bin/turnpike.mjs")
    const ran = run(deno, ["run", "--allow-all", bundle, "run", "--harness", "scripted", "--format", "events", "Say hello"], project, env)
    assert.strictEqual(ran.status, 0, ran.stdout + ran.stderr)
    assert.deepStrictEqual(typesOf(ran.stdout).slice(-2), ["session_end", "result"])
  })
})
