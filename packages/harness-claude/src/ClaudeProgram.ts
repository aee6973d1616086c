/**
 * Claude Code's program: where it is, what version it has, and whether it looks
 * signed in.
 */
import { Failure } from "@turnpike/contract"
import { ProgramSearch, SessionEnvironment } from "@turnpike/harness"
import { type Harness, HarnessError } from "@turnpike/kernel"
import type { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"

/** The oldest version whose records these adapters' tests know: 2.1.197. */
export const oldest = "2.1.197"
/** The version that the real tests run. */
export const tested = "2.1.332"
/** The first version that is known to take a prompt as text whatever it begins with. */
export const takesPromptsAsText = "2.1.332"

/** Orders two versions such as 2.1.9 and 2.1.10: negative, 0, or positive. */
export const compareVersions = (one: string, other: string): number => {
  const numbers = (version: string) => version.split(".").map(Number)
  const [a, b] = [numbers(one), numbers(other)]
  for (let index = 0; index < 3; index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

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

const install = "npm install -g @anthropic-ai/claude-code"

const places = [
  "~/.local/bin/claude",
  "~/.claude/local/claude",
  "~/.npm-global/bin/claude",
  "/usr/local/bin/claude",
  "/opt/homebrew/bin/claude",
  "/usr/bin/claude"
]

type Session = Pick<Harness.SessionOptions, "program" | "inheritedEnv" | "cwd"> & Partial<Pick<Harness.SessionOptions, "env" | "redact">>

export const find = (session: Session): Effect.Effect<ProgramSearch.Found, HarnessError.HarnessError> =>
  ProgramSearch.find({
    harness: "Claude Code",
    program: session.program,
    names: ["claude"],
    cwd: session.cwd,
    env: { ...session.inheritedEnv, ...session.env },
    places,
    install,
    nativeBehind
  })

/** "2.1.332 (Claude Code)" */
const versionIn = (text: string): string | undefined => /^(\d+\.\d+\.\d+)\S* \(Claude Code\)\s*$/m.exec(text)?.[1]

export interface Identified extends ProgramSearch.Found {
  readonly version: string
}

export interface Program {
  /** Finds the program and makes sure that it is Claude Code, by its `--version`. Asked once for a file that does not change. */
  readonly identify: (session: Session) => Effect.Effect<Identified, HarnessError.HarnessError>
}

export const make = (supervisor: Supervisor.Service): Program => {
  const known = new Map<string, string>()
  return {
    identify: Effect.fn("ClaudeProgram.identify")(function*(session: Session) {
      const found = yield* find(session)
      const { mtimeMs, size } = fs.statSync(found.file)
      const identity = `${found.file}\0${mtimeMs}\0${size}`
      const remembered = known.get(identity)
      if (remembered !== undefined) return { ...found, version: remembered }
      const said = yield* ProgramSearch.describe({
        program: found.file,
        args: ["--version"],
        cwd: session.cwd,
        env: SessionEnvironment.changes({ inheritedEnv: session.inheritedEnv, env: session.env ?? {} })
      }, supervisor.spawn)
      const version = versionIn(said.text)
      if (version === undefined) {
        return yield* ProgramSearch.notTheHarness("Claude Code", found.file, said, session.redact ?? ((text) => text))
      }
      if (compareVersions(version, oldest) < 0) {
        return yield* HarnessError.notStarted(
          Failure.make("HARNESS_PROTOCOL", `${found.file} is Claude Code ${version}; the oldest that works here is ${oldest}`, {
            remedy: `Update Claude Code: \`claude update\`, or ${install}.`
          })
        )
      }
      known.set(identity, version)
      return { ...found, version }
    })
  }
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

const helperIn = (file: string): boolean => {
  try {
    const settings: unknown = JSON.parse(fs.readFileSync(file, "utf8"))
    return typeof settings === "object" && settings !== null && "apiKeyHelper" in settings
  } catch {
    // No settings, or none that can be read: Claude Code ignores them, too.
    return false
  }
}
