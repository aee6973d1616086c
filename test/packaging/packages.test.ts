import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { type Manifest, packages, readJson, root } from "../architecture/support/Workspace.ts"
import { contents, environment, hasCommand, npm, pack, readPacked, run, succeed, type Tarball } from "./support/Tarballs.ts"

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-packages-"))
const project = path.join(directory, "project")
const home = path.join(directory, "home")
const effectVersion = readJson<Manifest>("package.json").devDependencies?.["effect"] ?? ""
const typesVersion = readJson<Manifest>("package.json").devDependencies?.["@types/node"] ?? ""

let tarballs: ReadonlyArray<Tarball> = []
const find = (folder: string): Tarball => {
  const tarball = tarballs.find((each) => each.folder === folder)
  if (tarball === undefined) throw new Error(`${folder} was not packed`)
  return tarball
}

/** Where a stranger's code runs: a project with the tarballs and nothing of the workspace. */
const strangerEnvironment = environment({ HOME: home, TURNPIKE_HOME: path.join(home, "turnpike"), CI: "true" })

const folders = packages().map(({ folder }) => folder)

beforeAll(() => {
  fs.mkdirSync(home)
  tarballs = pack(directory)
  fs.mkdirSync(project)
  const dependencies = Object.fromEntries(tarballs.map(({ file, name }) => [name, `file:${file}`]))
  fs.writeFileSync(
    path.join(project, "package.json"),
    JSON.stringify({
      name: "stranger",
      private: true,
      type: "module",
      // Until they are published, the packages that depend on each other have to be told where they are.
      overrides: dependencies,
      dependencies: { ...dependencies, effect: effectVersion, "@types/node": typesVersion }
    })
  )
  npm(["install", "--no-audit", "--no-fund", "--ignore-scripts"], project, strangerEnvironment)
}, 600_000)

afterAll(() => fs.rmSync(directory, { recursive: true, force: true }))

describe.each(folders)("the tarball of %s", (folder) => {
  it("holds the build, the sources, the licence and the readme, and nothing else", () => {
    const files = contents(find(folder))
    for (const file of ["package.json", "LICENSE", "README.md", "dist/index.js", "dist/index.d.ts", "src/index.ts"]) assert.include(files, file)
    const meant = (packages().find((each) => each.folder === folder)?.manifest.files ?? []).map((entry) => `${entry}/`)
    const always = ["package.json", "LICENSE", "README.md", "CHANGELOG.md"]
    assert.deepStrictEqual(files.filter((file) => !always.includes(file) && !meant.some((entry) => file.startsWith(entry))), [])
    assert.deepStrictEqual(files.filter((file) => /\.test\.|tsbuildinfo|(^|\/)test\//.test(file)), [])
  })

  it("names real versions and no condition of the workspace", () => {
    const manifest = JSON.parse(readPacked(find(folder), "package.json")) as Manifest
    assert.notInclude(JSON.stringify(manifest.exports), "turnpike-source")
    assert.notInclude(JSON.stringify(manifest.dependencies ?? {}), "workspace:")
    assert.deepStrictEqual(manifest.peerDependencies?.["effect"], "~4.1.0")
  })

  it("has no fault that publint knows", () => {
    const ran = run("publint", ["run", find(folder).file, "--strict", "--level", "warning"], root)
    assert.strictEqual(ran.status, 0, ran.stdout + ran.stderr)
    assert.include(ran.stdout, "All good!")
  })

  it("has types that every ES module resolver finds", () => {
    const ran = run("attw", [find(folder).file, "--profile", "esm-only", "--format", "json"], root)
    const { analysis, problems } = JSON.parse(ran.stdout) as {
      readonly analysis: { readonly entrypoints: Readonly<Record<string, unknown>> }
      readonly problems?: Readonly<Record<string, ReadonlyArray<{ readonly kind: string; readonly resolutionKind?: string }>>>
    }
    assert.isAtLeast(Object.keys(analysis.entrypoints).length, 1)
    // The report lists what the profile leaves aside, too: resolvers that know no ES modules.
    const found = Object.values(problems ?? {}).flat().filter(({ resolutionKind }) => resolutionKind !== "node10" && resolutionKind !== "node16-cjs")
    assert.deepStrictEqual(found, [])
    assert.strictEqual(ran.status, 0)
  })
})

describe("a project with nothing but the tarballs", () => {
  it("imports every package at run time", () => {
    const code = folders.filter((folder) => folder !== "cli").map((folder) => `import * as ${folder.replaceAll("-", "_")} from "@turnpike/${folder}"`).join("\n")
      + `\nconsole.log(JSON.stringify({ ${folders.filter((folder) => folder !== "cli").map((folder) => `"${folder}": Object.keys(${folder.replaceAll("-", "_")})`).join(", ")} }))\n`
    fs.writeFileSync(path.join(project, "all.mjs"), code)
    const exported = JSON.parse(succeed("node", ["all.mjs"], project, strangerEnvironment)) as Record<string, ReadonlyArray<string>>
    const expected = Object.fromEntries(
      folders.filter((folder) => folder !== "cli").map((folder) => [
        folder,
        [...fs.readFileSync(path.join(root, "packages", folder, "src/index.ts"), "utf8").matchAll(/^export \* as (\w+)/gm)].map((match) => match[1] ?? "").sort()
      ])
    )
    assert.deepStrictEqual(exported, expected)
  })

  it("type-checks against every package, without skipping their declarations", () => {
    fs.writeFileSync(
      path.join(project, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          target: "es2023",
          lib: ["es2023", "dom"],
          module: "nodenext",
          moduleResolution: "nodenext",
          strict: true,
          exactOptionalPropertyTypes: true,
          noEmit: true,
          // Effect's own declarations are not ours to check; ours are checked by the import of each.
          skipLibCheck: true,
          types: ["node"]
        },
        files: ["all.ts"]
      })
    )
    const uses = folders.map((folder) => {
      const name = folder.replaceAll("-", "_")
      return `import * as ${name} from "@turnpike/${folder}"\nexport const names_of_${name}: ReadonlyArray<string> = Object.keys(${name})`
    })
    // A name that does not exist has to be an error, or the packages would be `any`.
    fs.writeFileSync(path.join(project, "all.ts"), `${uses.join("\n")}\n// @ts-expect-error there is no such export\nexport const missing = kernel.NoSuchExport\n`)
    const ran = run("tsc", ["-p", "."], project, strangerEnvironment)
    assert.strictEqual(ran.status, 0, ran.stdout)
  })

  it("cannot reach into a package", () => {
    const ran = run("node", ["--input-type=module", "-e", `await import("@turnpike/kernel/src/index.ts")`], project, strangerEnvironment)
    assert.include(ran.stderr, "ERR_PACKAGE_PATH_NOT_EXPORTED")
    assert.strictEqual(ran.status, 1)
  })

  it.runIf(hasCommand())("runs the command by npx", () => {
    const version = JSON.parse(readPacked(find("cli"), "package.json")).version as string
    const ran = run("npx", ["--no-install", "turnpike", "--version"], project, strangerEnvironment)
    assert.strictEqual(ran.status, 0, ran.stderr)
    assert.include(ran.stdout, version)
  })

  it.runIf(hasCommand())("runs a task on the scripted harness by npx", () => {
    const ran = run("npx", ["--no-install", "turnpike", "run", "--harness", "scripted", "--format", "events", "Say hello"], project, strangerEnvironment)
    assert.strictEqual(ran.status, 0, ran.stdout + ran.stderr)
    const types = ran.stdout.trimEnd().split("\n").map((line) => (JSON.parse(line) as { type: string }).type)
    assert.deepStrictEqual(types.slice(-2), ["session_end", "result"])
    assert.strictEqual(types.filter((type) => type === "session_end").length, 1)
  })
})

describe("the clone", () => {
  it.runIf(hasCommand())("runs the bundle that was built, by npx", () => {
    const ran = run("npx", ["--no-install", "turnpike", "--version"], root)
    assert.strictEqual(ran.status, 0, ran.stderr)
    assert.match(ran.stdout, /\d+\.\d+\.\d+/)
  })

  it("is told by an old Node what it needs, before anything else goes wrong", () => {
    const launcher = fs.readFileSync(path.join(root, "packages/cli/bin/turnpike.mjs"), "utf8")
    // The launcher, believing that it runs on an old Node.
    const pretended = path.join(directory, "turnpike.mjs")
    fs.writeFileSync(pretended, launcher.replace("process.versions.node.split", `"18.20.0".split`))
    const ran = run("node", [pretended, "--version"], directory)
    assert.strictEqual(ran.status, 1)
    assert.match(ran.stderr, /too old: need >= 22\.19/)
  })
})
