/**
 * Claude Code's program: where it is, what version it has, and whether it looks
 * signed in.
 */
import type { InstalledProgram } from "@turnpike/harness"
import type { Harness } from "@turnpike/kernel"
import * as fs from "node:fs"
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

const places = [
  "~/.local/bin/claude",
  "~/.claude/local/claude",
  "~/.npm-global/bin/claude",
  "/usr/local/bin/claude",
  "/opt/homebrew/bin/claude",
  "/usr/bin/claude"
]

export const description: InstalledProgram.Description = {
  harness: "claude",
  product: "Claude Code",
  names: ["claude"],
  places,
  nativeBehind,
  npmPackage: "@anthropic-ai/claude-code",
  update: "claude update",
  // "2.1.332 (Claude Code)"
  version: /^(\d+\.\d+\.\d+)\S* \(Claude Code\)\s*$/m,
  tested,
  oldest
}

/** How a session will sign in, as far as that can be seen without asking the service. */
export const signIn = (env: Readonly<Record<string, string | undefined>>): Harness.Finding => {
  const has = (name: string) => (env[name] ?? "") !== ""
  const by = ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"]
    .find(has)
  if (by !== undefined) return { level: "ok", message: `signs in by ${by} of the environment; whether it is valid shows with the first turn` }
  const directory = env["CLAUDE_CONFIG_DIR"] ?? (env["HOME"] === undefined ? undefined : path.join(env["HOME"], ".claude"))
  const file = directory === undefined ? undefined : path.join(directory, ".credentials.json")
  if (file !== undefined && fs.existsSync(file)) return { level: "ok", message: `signs in by ${file}; whether it is valid shows with the first turn` }
  if (directory !== undefined && helperIn(path.join(directory, "settings.json"))) {
    return { level: "ok", message: `signs in by the apiKeyHelper of ${path.join(directory, "settings.json")}` }
  }
  return {
    // On macOS the sign-in is in the keychain, which is not looked into.
    level: process.platform === "darwin" ? "warning" : "problem",
    message: `no sign-in was found: none in the environment${file === undefined ? "" : `, no ${file}`}`,
    remedy: "Run `claude` and type /login, or set ANTHROPIC_API_KEY, or make a token with `claude setup-token` and set CLAUDE_CODE_OAUTH_TOKEN."
  }
}

/** What of the user's settings is not what it seems to be. */
export const traps = (env: Readonly<Record<string, string | undefined>>): ReadonlyArray<Harness.Finding> => {
  const directory = env["CLAUDE_CONFIG_DIR"] ?? (env["HOME"] === undefined ? undefined : path.join(env["HOME"], ".claude"))
  const file = directory === undefined ? undefined : path.join(directory, "settings.json")
  if (file === undefined || !fs.existsSync(file)) return []
  try {
    JSON.parse(fs.readFileSync(file, "utf8"))
    return []
  } catch {
    return [{ level: "warning", message: `${file} cannot be read as JSON, and Claude Code goes on without it`, remedy: `Correct ${file}.` }]
  }
}

const helperIn = (file: string): boolean => {
  try {
    const settings: unknown = JSON.parse(fs.readFileSync(file, "utf8"))
    return typeof settings === "object" && settings !== null && "apiKeyHelper" in settings
  } catch {
    // No settings, or none that can be read: Claude Code ignores them, too.
    return false
  }
}
