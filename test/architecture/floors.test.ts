import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { edgeViolations, floors, referenceViolations, shapeViolations, versionViolations, workspaceNames } from "./support/Floors.ts"
import { importsOfFile, type Manifest, packages, readJson, root, shown, type TsConfig, typescriptFiles } from "./support/Workspace.ts"

const all = packages()

describe("floors", () => {
  it("hold every package that the spine needs", () => {
    const spine = ["channel-terminal", "cli", "contract", "harness", "harness-claude", "harness-codex", "harness-copilot", "harness-scripted", "kernel", "process", "session-store", "testkit"]
    assert.deepStrictEqual(spine.filter((folder) => !all.some((each) => each.folder === folder)), [])
  })

  it("have no edge upwards or sideways in a manifest", () => {
    assert.deepStrictEqual(all.flatMap(({ folder, manifest }) => edgeViolations(folder, manifest)), [])
  })

  it("have the same edges in the TypeScript projects as in the manifests", () => {
    assert.deepStrictEqual(all.flatMap(({ folder, manifest, tsconfig }) => referenceViolations(folder, manifest, tsconfig)), [])
  })

  it("are built from the root, each package once", () => {
    const references = readJson<TsConfig>("tsconfig.json").references?.map((reference) => reference.path).sort()
    assert.deepStrictEqual(references, all.map(({ folder }) => `packages/${folder}`))
  })

  it("are all within reach of the tests that belong to no package", () => {
    const manifest = readJson<Manifest>("test/package.json")
    assert.deepStrictEqual(workspaceNames(manifest.devDependencies), all.map(({ folder }) => folder))
  })

  it("give no types of Node to the packages that may not use it", () => {
    const withoutNode = all.filter(({ folder }) => folder === "contract" || folder === "kernel")
    assert.deepStrictEqual(readJson<TsConfig>("tsconfig.base.json").compilerOptions?.types, [])
    assert.deepStrictEqual(withoutNode.map(({ folder, tsconfig }) => [folder, tsconfig.compilerOptions?.types ?? []]), [
      ["contract", []],
      ["kernel", []]
    ])
  })

  it("are kept by what the sources import, not only by what the manifests say", () => {
    const violations = all.flatMap(({ directory, folder, manifest }) =>
      typescriptFiles(path.join(directory, "src")).flatMap((file) =>
        importsOfFile(file).flatMap(({ specifier }) => {
          if (!specifier.startsWith("@turnpike/")) return []
          const name = specifier.split("/").slice(0, 2).join("/")
          if (name === "@turnpike/testkit") return [`${shown(file)} imports testkit, which is for tests`]
          return manifest.dependencies?.[name] === undefined ? [`${shown(file)} imports ${name}, which ${folder} does not depend on`] : []
        })
      )
    )
    assert.deepStrictEqual(violations, [])
  })

  it("keep testkit out of the kernel's own tests", () => {
    const files = ["contract", "kernel", "process", "harness"].flatMap((folder) => typescriptFiles(path.join(root, "packages", folder, "test")))
    const users = files.filter((file) => importsOfFile(file).some(({ specifier }) => /(^@turnpike\/|\/)testkit(\/|$)/.test(specifier)))
    assert.deepStrictEqual(users.map(shown), [])
  })
})

describe("manifests", () => {
  it("pin every version and take effect as a peer", () => {
    assert.deepStrictEqual(all.flatMap(({ folder, manifest }) => versionViolations(folder, manifest)), [])
  })

  it("can be published as they are", () => {
    assert.deepStrictEqual(all.flatMap(shapeViolations), [])
  })

  it("share one version", () => {
    assert.strictEqual(new Set(all.map(({ manifest }) => manifest.version)).size, 1)
  })

  it("pin every tool of the repository", () => {
    const manifests = ["package.json", "test/package.json", "examples/package.json"].map((file) => readJson<Manifest>(file))
    const loose = manifests.flatMap((manifest) =>
      Object.entries({ ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies })
        .filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version) && version !== "workspace:*")
        .map(([name, version]) => `${manifest.name}: ${name} ${version}`)
    )
    assert.deepStrictEqual(loose, [])
  })

  it("name only scripts that exist", () => {
    const scripts = readJson<Manifest>("package.json").scripts ?? {}
    const missing = Object.entries(scripts).flatMap(([name, command]) =>
      [...command.matchAll(/(?:^|\s)((?:scripts|packages)\/\S+\.\w+|vitest\.\S+)/g)]
        .map((match) => match[1] ?? "")
        .filter((file) => !fs.existsSync(path.join(root, file)))
        .map((file) => `${name}: ${file}`)
    )
    assert.deepStrictEqual(missing, [])
  })
})

describe("the rules for manifests", () => {
  const good: Manifest = {
    name: "@turnpike/kernel",
    dependencies: { "@turnpike/contract": "workspace:^" },
    peerDependencies: { effect: "~4.1.0" },
    devDependencies: { effect: "4.1.0" }
  }

  it("see an edge upwards, an edge sideways, testkit in the wrong place and a package without a floor", () => {
    assert.deepStrictEqual(
      edgeViolations("kernel", {
        ...good,
        dependencies: { "@turnpike/harness": "workspace:^", "@turnpike/process": "workspace:^", "@turnpike/testkit": "workspace:^" },
        devDependencies: { "@turnpike/testkit": "workspace:^", "@turnpike/attic": "workspace:^" }
      }),
      [
        "kernel (floor 1) depends on harness (floor 2), which is above it",
        "kernel (floor 1) depends on process, which is beside it",
        "kernel depends on testkit, which is a devDependency or nothing",
        "kernel develops with attic, which is on no floor",
        "kernel develops with testkit, which is not for floor 1"
      ]
    )
    assert.deepStrictEqual(edgeViolations("harness-codex", { ...good, devDependencies: { "@turnpike/harness-claude": "workspace:^" } }), [
      "harness-codex (floor 3) develops with harness-claude, which is beside it"
    ])
    assert.deepStrictEqual(edgeViolations("testkit", { ...good, dependencies: { "@turnpike/harness": "workspace:^" } }), [
      "testkit depends on harness, which it must not know"
    ])
    assert.deepStrictEqual(edgeViolations("attic", good), ["attic is on no floor: add it to the table of the architecture first"])
    assert.strictEqual(floors["cli"], 4)
  })

  it("see a reference that is missing and one that is too many", () => {
    assert.deepStrictEqual(referenceViolations("kernel", good, { references: [{ path: "../process" }] }), [
      "kernel depends on contract, but its tsconfig does not reference it",
      "kernel references process in its tsconfig, but does not depend on it"
    ])
  })

  it("see a version that floats and effect in the wrong place", () => {
    assert.deepStrictEqual(
      versionViolations("process", { name: "@turnpike/process", dependencies: { effect: "4.1.0", execa: "^10.2.1" } }),
      [
        "process needs the peer effect ~4.1.0, not undefined",
        "process develops with effect 4.1.0, not undefined",
        "process depends on effect instead of having it as a peer",
        "process has execa ^10.2.1 in dependencies, which is not an exact version"
      ]
    )
    assert.deepStrictEqual(versionViolations("kernel", { ...good, dependencies: { nanoid: "5.0.0" } }), [
      "kernel depends on nanoid; it may know effect and nothing else of others"
    ])
  })
})
