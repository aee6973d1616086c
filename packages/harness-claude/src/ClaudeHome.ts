/**
 * Claude Code's directory, `CLAUDE_CONFIG_DIR`: its settings and sign-in, and
 * what in them is not what it seems to be.
 */
import type { TurnEvent } from "@turnpike/contract"
import { InstalledProgram, Notices } from "@turnpike/harness"
import type { Harness } from "@turnpike/kernel"
import type { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import * as ClaudeProgram from "./ClaudeProgram.ts"

type Environment = Readonly<Record<string, string | undefined>>

const present = (value: string | undefined): string | undefined => value === "" ? undefined : value

/** Where Claude Code keeps what is its own; `undefined` where nothing says so. */
export const directory = (env: Environment): string | undefined => {
  const home = present(env["HOME"])
  return present(env["CLAUDE_CONFIG_DIR"]) ?? (home === undefined ? undefined : path.join(home, ".claude"))
}

/** A file of the directory that exists. */
const fileIn = (env: Environment, name: string): string | undefined => {
  const own = directory(env)
  const file = own === undefined ? undefined : path.join(own, name)
  return file !== undefined && fs.existsSync(file) ? file : undefined
}

const keys = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]
const clouds = ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"]

/** The user's settings; `unreadable` where the file is no JSON object. */
const settingsOf = (env: Environment): { readonly file: string; readonly settings: object | "unreadable" } | undefined => {
  const file = fileIn(env, "settings.json")
  if (file === undefined) return undefined
  try {
    const settings: unknown = JSON.parse(fs.readFileSync(file, "utf8"))
    return { file, settings: typeof settings === "object" && settings !== null && !Array.isArray(settings) ? settings : "unreadable" }
  } catch {
    return { file, settings: "unreadable" }
  }
}

/** How a session will sign in, as far as variables and files tell; `undefined` where Claude Code has to be asked. */
export const signIn = (env: Environment): Harness.Finding | undefined => {
  const ok = (by: string): Harness.Finding => ({ level: "ok", message: `signs in by ${by}; whether it is valid shows with the first turn` })
  const variable = [...clouds, ...keys, "CLAUDE_CODE_OAUTH_TOKEN"].find((name) => present(env[name]) !== undefined)
  if (variable !== undefined) return ok(`${variable} of the environment`)
  const credentials = fileIn(env, ".credentials.json")
  if (credentials !== undefined) return ok(credentials)
  const own = settingsOf(env)
  return own !== undefined && own.settings !== "unreadable" && "apiKeyHelper" in own.settings ? ok(`the apiKeyHelper of ${own.file}`) : undefined
}

const decodeStatus = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({
  loggedIn: Schema.Boolean,
  authMethod: Schema.optionalKey(Schema.String)
})))

/** What Claude Code says of its sign-in to `claude auth status --json` (2.1.332); versions that have no such command say something else. */
export const signInOf = (env: Environment, said: string | undefined): Harness.Finding => {
  const status = Option.getOrUndefined(decodeStatus(said))
  if (status?.loggedIn === true) {
    return { level: "ok", message: `is signed in (${status.authMethod ?? "it does not say how"}); whether that is valid shows with the first turn` }
  }
  const own = directory(env)
  return {
    // On macOS the sign-in is in the keychain, where only Claude Code looks.
    level: status === undefined && process.platform === "darwin" ? "warning" : "problem",
    message: `no sign-in was found: none in the environment${own === undefined ? "" : `, none in ${own}`}`,
    remedy: "Run `claude` and type /login, or set ANTHROPIC_API_KEY, or make a token with `claude setup-token` and set CLAUDE_CODE_OAUTH_TOKEN."
  }
}

const passedOver = (file: string): string => `${file} is no JSON object, and Claude Code goes on without it`

/** Tells of settings of the user's that Claude Code passes over without a word (2.1.332), whatever they forbid. */
export const remarks = ({ configDir, env, inheritedEnv }: Pick<Harness.SessionOptions, "configDir" | "env" | "inheritedEnv">): ReadonlyArray<TurnEvent.Of<"notice">> => {
  const own = settingsOf({ ...inheritedEnv, ...(configDir === undefined ? {} : { CLAUDE_CONFIG_DIR: configDir }), ...env })
  return own?.settings === "unreadable" ? [Notices.make("harness_note", passedOver(own.file))] : []
}

/** What of the user's settings, or of this version, is not what it seems to be. */
export const traps = (env: Environment, version: string): ReadonlyArray<Harness.Finding> => {
  const own = settingsOf(env)
  const key = keys.find((name) => present(env[name]) !== undefined)
  const credentials = fileIn(env, ".credentials.json")
  return [
    ...(own?.settings === "unreadable"
      ? [{ level: "warning" as const, message: passedOver(own.file), remedy: `Correct ${own.file}.` }]
      : []),
    ...(key !== undefined && credentials !== undefined
      ? [{
        level: "warning" as const,
        message: `${key} of the environment is used, and is billed, in place of the sign-in in ${credentials}`,
        remedy: `Unset ${key} if the sign-in is meant.`
      }]
      : []),
    ...(InstalledProgram.compareVersions(version, ClaudeProgram.takesPromptsAsText) < 0
      ? [{
        level: "warning" as const,
        message: `version ${version} would run a prompt that begins with a slash as a command of its own, so such a prompt is refused`,
        remedy: `Update Claude Code: \`${ClaudeProgram.description.update ?? ""}\`.`
      }]
      : [])
  ]
}

/** What is worth knowing of Claude Code on this machine. It is asked only what the environment and its files do not tell. */
export const findings = (
  asked: Harness.DiagnosisOptions,
  program: InstalledProgram.Identified,
  supervisor: Supervisor.Service
): Effect.Effect<ReadonlyArray<Harness.Finding>> =>
  Effect.gen(function*() {
    const env = asked.inheritedEnv
    // Without these it also asks its maker's service, which a diagnosis is not to do.
    const environment = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" }
    const status = Effect.map(
      Effect.result(InstalledProgram.ask({ environment }, asked, program, ["auth", "status", "--json"], supervisor)),
      (said) => signInOf(env, Result.isSuccess(said) ? said.success.text : undefined)
    )
    return [signIn(env) ?? (yield* status), ...traps(env, program.version)]
  })
