/** Claude Code's program: where it is and what version it has. */
import type { InstalledProgram } from "@turnpike/harness"
import * as path from "node:path"

/** The oldest version whose records these adapters' tests know: 2.1.197. */
export const oldest = "2.1.197"
/** The version that the real tests run. */
export const tested = "2.1.332"
/** The first version that is known to take a prompt as text whatever it begins with. */
export const takesPromptsAsText = "2.1.332"

const exe = process.platform === "win32" ? "claude.exe" : "claude"

/**
 * The native programs behind the npm package's launcher: the package of the
 * platform, beside it or within it, as npm and pnpm lay them out.
 */
const nativeBehind = (launcher: string): ReadonlyArray<string> => {
  const at = launcher.lastIndexOf(`${path.sep}@anthropic-ai${path.sep}claude-code${path.sep}`)
  if (at === -1) return []
  const scope = launcher.slice(0, at + `${path.sep}@anthropic-ai`.length)
  const native = `claude-code-${process.platform}-${process.arch}`
  return [
    path.join(scope, native, exe),
    path.join(scope, "claude-code", "node_modules", "@anthropic-ai", native, exe),
    path.join(scope, "claude-code", "bin", "claude.exe")
  ]
}

export const description: InstalledProgram.Description = {
  harness: "claude",
  product: "Claude Code",
  names: ["claude"],
  places: ["~/.claude/local/claude"],
  nativeBehind,
  npmPackage: "@anthropic-ai/claude-code",
  update: "claude update",
  // "2.1.332 (Claude Code)"
  version: /^(\d+\.\d+\.\d+)\S* \(Claude Code\)\s*$/m,
  tested,
  oldest
}
