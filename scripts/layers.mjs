/**
 * `npm run layers`: the floors by source edge (dependency-cruiser) and what nobody uses or declares (knip).
 *
 * Both tools are green when they look at nothing, so this first shows that the rules catch a tree
 * that breaks each of them, and then that every source of the workspace was looked at.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { expectNone, root, runSteps, tool } from "./steps.mjs"

const config = path.join(root, ".dependency-cruiser.mjs")

const cruise = (cwd) =>
  JSON.parse(tool("depcruise", ["packages", "--config", config, "--output-type", "json"], { cwd, exitCodes: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] }).stdout)

/** One file for each rule, which breaks it. */
const brokenTree = {
  "packages/contract/src/Words.ts": `import "../../kernel/src/Turn.ts"\n`,
  "packages/kernel/src/Turn.ts": `import { connect } from "node:net"\nimport "../../process/src/Child.ts"\nexport { connect }\n`,
  "packages/process/src/Child.ts": `import "./Nowhere.ts"\nimport "../test/Fake.ts"\n`,
  "packages/process/test/Fake.ts": `export const fake = 1\n`,
  "packages/harness/src/Peer.ts": `import type { Wire } from "../../harness-claude/src/ClaudeWire.ts"\nexport type P = Wire\n`,
  "packages/harness-claude/src/ClaudeWire.ts": `import "../../harness-codex/src/internal/secret.ts"\nexport type Wire = string\n`,
  "packages/harness-codex/src/internal/secret.ts": `import "../Other.ts"\nexport const a = 1\n`,
  "packages/harness-codex/src/Other.ts": `import "./internal/secret.ts"\n`,
  "packages/cli/src/bin.ts": `import "../../testkit/src/Fake.ts"\nimport "../../harness/src/Peer.ts"\n`,
  "packages/testkit/src/Fake.ts": `export const fake = 1\n`
}

const brokenRules = [
  "everything-resolves",
  "floor-0-depends-on-lower-floors-only",
  "floor-1-depends-on-lower-floors-only",
  "floor-2-depends-on-lower-floors-only",
  "floor-3-depends-on-lower-floors-only",
  "internals-stay-home",
  "no-cycles",
  "no-runtime-modules-in-the-core",
  "sources-import-no-tests",
  "testkit-is-for-tests"
]

const sourcesOfWorkspace = () =>
  fs.readdirSync(path.join(root, "packages")).flatMap((folder) =>
    fs.readdirSync(path.join(root, "packages", folder, "src"), { recursive: true })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => path.posix.join("packages", folder, "src", file.split(path.sep).join("/")))
  )

await runSteps([
  ["the rules of the floors catch a tree that breaks each of them", () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-layers-"))
    try {
      fs.writeFileSync(path.join(directory, "package.json"), `{"type":"module"}`)
      for (const [file, text] of Object.entries(brokenTree)) {
        fs.mkdirSync(path.dirname(path.join(directory, file)), { recursive: true })
        fs.writeFileSync(path.join(directory, file), text)
      }
      const caught = new Set(cruise(directory).summary.violations.map((violation) => violation.rule.name))
      expectNone("rules that caught nothing:", brokenRules.filter((rule) => !caught.has(rule)))
      return `${caught.size} rules`
    } finally {
      fs.rmSync(directory, { recursive: true })
    }
  }],
  ["no source imports upwards, sideways, in a circle, or somebody's internals", () => {
    const { modules, summary } = cruise(root)
    const cruised = new Set(modules.map((module) => module.source))
    const sources = sourcesOfWorkspace()
    expectNone("sources that dependency-cruiser did not see:", sources.filter((file) => !cruised.has(file)))
    expectNone("violations:", summary.violations.map(({ from, rule, to }) => `${rule.name}: ${from} -> ${to}`))
    return `${sources.length} sources, ${summary.totalDependenciesCruised} edges`
  }],
  ["nothing is unused or undeclared, tests and tools included", () => {
    tool("knip", ["--no-progress", "--no-config-hints"])
  }],
  ["published code depends only on what its manifest declares", () => {
    tool("knip", ["--no-progress", "--no-config-hints", "--strict", "--production", "--include", "files,dependencies,unlisted,unresolved"])
  }]
])
