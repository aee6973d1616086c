/**
 * The floors of the repository, and what a manifest may say on each of them.
 *
 * A package depends on floors below its own, never on its own floor or above. Each rule answers
 * sentences, one for each violation; none is the good answer.
 */
import type { Manifest, Package, TsConfig } from "./Workspace.ts"

/** The floor of every package that may exist; a package that is not listed has no place yet. */
export const floors: Readonly<Record<string, number>> = {
  "contract": 0,
  "kernel": 1,
  "process": 1,
  "harness": 2,
  "harness-claude": 3,
  "harness-codex": 3,
  "harness-copilot": 3,
  "harness-acp": 3,
  "harness-scripted": 3,
  "agent": 3,
  "channel-terminal": 3,
  "channel-http": 3,
  "channel-acp": 3,
  "channel-signal": 3,
  "session-store": 3,
  "workspace": 3,
  "testkit": 3,
  "cli": 4
}

/** Where the floors alone allow more than the subject does. */
const mayKnow: Readonly<Record<string, ReadonlyArray<string>>> = {
  testkit: ["contract", "kernel", "process"],
  kernel: ["contract"],
  process: ["contract"]
}

const scope = "@turnpike/"

/** The workspace packages among some dependencies, as folder names. */
export const workspaceNames = (dependencies: Readonly<Record<string, string>> | undefined): ReadonlyArray<string> =>
  Object.keys(dependencies ?? {}).filter((name) => name.startsWith(scope)).map((name) => name.slice(scope.length)).sort()

/** Edges that go up, sideways, or to a package that the subject must not know. */
export const edgeViolations = (folder: string, manifest: Manifest): ReadonlyArray<string> => {
  const floor = floors[folder]
  if (floor === undefined) return [`${folder} is on no floor: add it to the table of the architecture first`]
  const violations: Array<string> = []
  const check = (kind: string, names: ReadonlyArray<string>, isDevelopment: boolean) => {
    for (const name of names) {
      const other = floors[name]
      if (other === undefined) violations.push(`${folder} ${kind} ${name}, which is on no floor`)
      else if (name === "testkit") {
        if (!isDevelopment) violations.push(`${folder} ${kind} testkit, which is a devDependency or nothing`)
        else if (floor < 3) violations.push(`${folder} ${kind} testkit, which is not for floor ${floor}`)
      } else if (other > floor) violations.push(`${folder} (floor ${floor}) ${kind} ${name} (floor ${other}), which is above it`)
      else if (other === floor) violations.push(`${folder} (floor ${floor}) ${kind} ${name}, which is beside it`)
      else if (!isDevelopment && mayKnow[folder] !== undefined && !mayKnow[folder].includes(name)) {
        violations.push(`${folder} ${kind} ${name}, which it must not know`)
      }
    }
  }
  check("depends on", workspaceNames(manifest.dependencies), false)
  check("has the peer", workspaceNames(manifest.peerDependencies), false)
  check("optionally depends on", workspaceNames(manifest.optionalDependencies), false)
  check("develops with", workspaceNames(manifest.devDependencies), true)
  return violations
}

/** A missing reference does not fail `tsc`, which is why the two lists are compared here. */
export const referenceViolations = (folder: string, manifest: Manifest, tsconfig: TsConfig): ReadonlyArray<string> => {
  const referenced = (tsconfig.references ?? []).map((reference) => reference.path.replace(/^\.\.\//, "")).sort()
  const depended = workspaceNames(manifest.dependencies)
  return [
    ...depended.filter((name) => !referenced.includes(name)).map((name) => `${folder} depends on ${name}, but its tsconfig does not reference it`),
    ...referenced.filter((name) => !depended.includes(name)).map((name) => `${folder} references ${name} in its tsconfig, but does not depend on it`)
  ]
}

const isExact = (version: string): boolean => /^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)

/** Versions: exact everywhere, `workspace:^` between packages, and effect as a peer that is pinned to develop with. */
export const versionViolations = (folder: string, manifest: Manifest): ReadonlyArray<string> => {
  const violations: Array<string> = []
  if (manifest.peerDependencies?.["effect"] !== "~4.1.0") {
    violations.push(`${folder} needs the peer effect ~4.1.0, not ${manifest.peerDependencies?.["effect"]}`)
  }
  if (manifest.devDependencies?.["effect"] !== "4.1.0") {
    violations.push(`${folder} develops with effect 4.1.0, not ${manifest.devDependencies?.["effect"]}`)
  }
  if (manifest.dependencies?.["effect"] !== undefined) violations.push(`${folder} depends on effect instead of having it as a peer`)
  for (const kind of ["dependencies", "devDependencies", "optionalDependencies"] as const) {
    for (const [name, version] of Object.entries(manifest[kind] ?? {})) {
      const isGood = name.startsWith(scope) ? version === "workspace:^" || version === "workspace:*" : isExact(version)
      if (!isGood) violations.push(`${folder} has ${name} ${version} in ${kind}, which is not an exact version`)
    }
  }
  if (floors[folder] === 0 || folder === "kernel") {
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      if (!name.startsWith(scope)) violations.push(`${folder} depends on ${name}; it may know effect and nothing else of others`)
    }
  }
  return violations
}

/** What makes a package publishable: licence, engines, files and exports that agree with what is published. */
export const shapeViolations = ({ folder, manifest }: Pick<Package, "folder" | "manifest">): ReadonlyArray<string> => {
  const violations: Array<string> = []
  const expect = (field: string, actual: unknown, expected: unknown) => {
    if (JSON.stringify(actual) !== JSON.stringify(expected)) {
      violations.push(`${folder}: ${field} is ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`)
    }
  }
  expect("name", manifest.name, `${scope}${folder}`)
  expect("license", manifest.license, "Apache-2.0")
  expect("type", manifest.type, "module")
  expect("engines", manifest.engines, { node: ">=22.19.0" })
  expect("sideEffects", manifest.sideEffects, false)
  expect("private", manifest.private, undefined)
  expect("repository.directory", manifest.repository?.directory, `packages/${folder}`)
  expect("publishConfig.access", manifest.publishConfig?.access, "public")
  if ((manifest.description ?? "") === "") violations.push(`${folder}: description is missing`)
  for (const entry of ["dist", "src", "!dist/.tsbuildinfo"]) {
    if (!manifest.files?.includes(entry)) violations.push(`${folder}: files does not list ${entry}`)
  }
  for (const [name, target] of Object.entries(manifest.bin ?? {})) {
    const directory = target.replace(/^\.\//, "").split("/")[0] ?? ""
    if (!manifest.files?.includes(directory)) violations.push(`${folder}: files does not list ${directory}, where the command ${name} lies`)
  }
  if (manifest.exports === undefined || !("." in manifest.exports)) violations.push(`${folder}: exports has no "."`)
  const published: Record<string, unknown> = {}
  for (const [subpath, target] of Object.entries(manifest.exports ?? {})) {
    if (target === null || typeof target === "string") {
      published[subpath] = target
      continue
    }
    expect(`the conditions of ${subpath}`, Object.keys(target), ["turnpike-source", "types", "default"])
    const { "turnpike-source": source, ...rest } = target
    published[subpath] = rest
    const stem = source?.replace(/^\.\/src\//, "").replace(/\.ts$/, "")
    expect(`the targets of ${subpath}`, target, {
      "turnpike-source": `./src/${stem}.ts`,
      "types": `./dist/${stem}.d.ts`,
      "default": `./dist/${stem}.js`
    })
  }
  expect("publishConfig.exports", manifest.publishConfig?.exports, published)
  return violations
}
