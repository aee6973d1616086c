/**
 * Writes the table of `docs/harnesses.md` from what the adapters declare.
 *
 *     node --conditions=turnpike-source scripts/harness-table.ts [--check]
 *
 * With `--check` nothing is written, and the exit code is 1 where the page differs.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { Capabilities } from "../packages/contract/src/index.ts"
import type { InstalledProgram } from "../packages/harness/src/index.ts"
import { ClaudeHarness, ClaudeProgram } from "../packages/harness-claude/src/index.ts"
import { CodexHarness, CodexProgram } from "../packages/harness-codex/src/index.ts"
import { CopilotHarness, CopilotProgram } from "../packages/harness-copilot/src/index.ts"
import { ScriptedHarness } from "../packages/harness-scripted/src/index.ts"

const page = path.join(path.dirname(path.dirname(fileURLToPath(import.meta.url))), "docs", "harnesses.md")
const begin = "<!-- capabilities: begin -->"
const end = "<!-- capabilities: end -->"

const adapters = [
  { ...ClaudeHarness, program: ClaudeProgram.description },
  { ...CodexHarness, program: CodexProgram.description },
  { ...CopilotHarness, program: CopilotProgram.description },
  { ...ScriptedHarness, program: undefined }
]

const versions = (program: InstalledProgram.Description | undefined): string =>
  program === undefined ? "its own" : `${program.tested}${program.oldest === undefined ? "" : `; at least ${program.oldest}`}`

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

/** The table, in the contract's order of capabilities. */
const table = (): string => {
  const names = Object.keys(Capabilities.Capabilities.fields) as ReadonlyArray<keyof Capabilities.Capabilities>
  const describe = (name: keyof Capabilities.Capabilities) =>
    Capabilities.Capabilities.fields[name].ast.context?.annotations?.["description"]
  return [
    row(["capability", "what it is", ...adapters.map(({ name }) => name)]),
    row(["---", "---", ...adapters.map(() => "---")]),
    row(["tested with", "The version that the real tests run; others work with a notice.", ...adapters.map(({ program }) => versions(program))]),
    ...names.map((name) => row([`\`${name}\``, String(describe(name)), ...adapters.map(({ capabilities }) => capabilities[name])]))
  ].join("\n")
}

const present = fs.readFileSync(page, "utf8")
const [head, rest] = present.split(begin)
const tail = rest?.split(end)[1]
if (head === undefined || tail === undefined) throw new Error(`${page} has no ${begin} … ${end}`)
const wanted = `${head}${begin}\n${table()}\n${end}${tail}`

if (!process.argv.includes("--check")) {
  fs.writeFileSync(page, wanted)
} else if (wanted !== present) {
  process.stderr.write("docs/harnesses.md is not what the adapters declare: run `npm run harnesses`\n")
  process.exitCode = 1
}
