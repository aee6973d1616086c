/**
 * Codex's directory, `CODEX_HOME`: its settings, sign-in and threads, and two
 * things in it that decide what a session may do.
 */
import { Failure, type TurnEvent } from "@turnpike/contract"
import { InstalledProgram, Notices } from "@turnpike/harness"
import { type Harness, HarnessError } from "@turnpike/kernel"
import type { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

type Environment = Readonly<Record<string, string | undefined>>
type Session = Pick<Harness.SessionOptions, "configDir" | "env" | "inheritedEnv" | "credentials">

const present = (value: string | undefined): string | undefined => value === "" ? undefined : value

/** Where Codex keeps what is its own; `undefined` where nothing says so. */
export const directory = (env: Environment): string | undefined => {
  const home = present(env["HOME"])
  return present(env["CODEX_HOME"]) ?? (home === undefined ? undefined : path.join(home, ".codex"))
}

const variables = (session: Session): Environment => ({
  ...session.inheritedEnv,
  ...(session.configDir === undefined ? {} : { CODEX_HOME: session.configDir }),
  ...session.env
})

/** The path with links followed as far as it exists. */
const real = (file: string): string => {
  const absolute = path.resolve(file)
  try {
    return fs.realpathSync(absolute)
  } catch {
    const parent = path.dirname(absolute)
    return parent === absolute ? absolute : path.join(real(parent), path.basename(absolute))
  }
}

const isWithin = (file: string, folder: string): boolean => {
  const relative = path.relative(real(folder), real(file))
  return relative === "" || (!relative.startsWith("..") && !path.isAbsolute(relative))
}

/**
 * Whether Codex would find its directory under the one for temporary files. It
 * then makes no helper for its sandbox, says so on standard error alone, and
 * every command that the sandbox is to hold fails (0.171.0).
 */
export const isTrapped = (env: Environment): boolean => {
  const own = directory(env)
  return own !== undefined && isWithin(own, present(env["TMPDIR"]) ?? os.tmpdir())
}

const unsupported = (option: string, detail: string) => Effect.fail(HarnessError.unsupported("codex", option, detail))

const isJsonObject = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** Refuses what cannot be honoured. Writes nothing. */
export const check = (session: Session): Effect.Effect<void, HarnessError.HarnessError> =>
  Effect.suspend(() => {
    const auth = session.credentials?.codex?.auth_json
    if (auth !== undefined && session.configDir === undefined) {
      return unsupported("credentials.codex", "it would replace your own sign-in; ask for isolation, too")
    }
    if (auth !== undefined && !isJsonObject(auth)) return unsupported("credentials.codex.auth_json", "it is no JSON object, as Codex's auth.json is")
    if (session.configDir !== undefined && present(session.env["CODEX_HOME"]) !== undefined) {
      return unsupported("env.CODEX_HOME", "a directory of the session's own was asked for, too")
    }
    if (present(session.env["TMPDIR"]) !== undefined && isTrapped(variables(session))) {
      return unsupported(
        "env.TMPDIR",
        `Codex's directory ${directory(variables(session)) ?? ""} is under it, and Codex then runs no command; choose another for one of them`
      )
    }
    return Effect.void
  })

const failed = (what: string, cause: unknown) =>
  HarnessError.notStarted(Failure.make("DATA_DIR_UNUSABLE", `${what}: ${cause instanceof Error ? cause.message : String(cause)}`))

/** Replaces the file as a whole; nobody else may read it, not for a moment. */
const writeSecret = (file: string, text: string): void => {
  const beside = `${file}.${randomUUID().slice(0, 8)}`
  try {
    fs.writeFileSync(beside, text, { mode: 0o600, flag: "wx" })
    fs.renameSync(beside, file)
  } catch (cause) {
    fs.rmSync(beside, { force: true })
    throw cause
  }
}

/**
 * Makes the directory ready and answers the variables that Codex needs. The
 * trap of {@link isTrapped} is met by a directory for temporary files within
 * Codex's own. A sign-in of the caller's is written as `auth.json`, and keys
 * that lie about in the environment are then left out.
 */
export const prepare = (session: Session): Effect.Effect<Record<string, string | undefined>, HarnessError.HarnessError> =>
  Effect.gen(function*() {
    yield* check(session)
    const auth = session.credentials?.codex?.auth_json
    const own = directory(variables(session))
    const trapped = isTrapped(variables(session))
    const temporary = own !== undefined && trapped ? path.join(own, "tmp") : undefined
    yield* Effect.try({
      try: () => {
        for (const each of [session.configDir, temporary]) if (each !== undefined) fs.mkdirSync(each, { recursive: true, mode: 0o700 })
        if (session.configDir !== undefined && auth !== undefined) writeSecret(path.join(session.configDir, "auth.json"), auth)
      },
      catch: (cause) => failed("Codex's directory cannot be made ready", cause)
    })
    return {
      ...(session.configDir === undefined ? {} : { CODEX_HOME: session.configDir }),
      ...(temporary === undefined ? {} : { TMPDIR: temporary }),
      ...(auth === undefined ? {} : { OPENAI_API_KEY: undefined, CODEX_API_KEY: undefined, CODEX_ACCESS_TOKEN: undefined })
    }
  })

const rulesIn = (folder: string): ReadonlyArray<string> => {
  try {
    return fs.readdirSync(folder).filter((name) => name.endsWith(".rules")).map((name) => path.join(folder, name))
  } catch {
    // No such directory: no rules.
    return []
  }
}

/** A rule allows unless it says otherwise. */
const mayAllow = (file: string): boolean => {
  try {
    return [...fs.readFileSync(file, "utf8").matchAll(/prefix_rule\s*\(([^)]*)\)/g)].some(([, body]) => !/decision\s*=\s*["'](?:prompt|forbidden)["']/.test(body ?? ""))
  } catch {
    // Whoever cannot read them cannot tell: then they may.
    return true
  }
}

/**
 * Tells of rules of the user's that let commands run outside the sandbox, which
 * Codex does without asking and nothing here can see (0.171.0).
 */
export const remarks = (session: Session & Pick<Harness.SessionOptions, "cwd">): ReadonlyArray<TurnEvent.Of<"notice">> => {
  const own = directory(variables(session))
  return [...(own === undefined ? [] : rulesIn(path.join(own, "rules"))), ...rulesIn(path.join(session.cwd, ".codex", "rules"))]
    .filter(mayAllow)
    .map((file) => Notices.make("tools_differ", `the rules in ${file} let Codex run commands outside its sandbox without asking`))
}

/** The value of a key in a table of a TOML file, where it is a string on one line; enough to tell people where to look. */
const stringIn = (text: string, table: string | undefined, key: string): string | undefined => {
  let current: string | undefined
  for (const line of text.split("\n")) {
    const header = /^\s*\[([^\]]+)\]/.exec(line)
    if (header !== null) current = header[1]?.replaceAll("\"", "").trim()
    else if (current === table) {
      const value = new RegExp(`^\\s*${key}\\s*=\\s*["']([^"']*)["']`).exec(line)?.[1]
      if (value !== undefined) return value
    }
  }
  return undefined
}

const readText = (file: string): string => {
  try {
    return fs.readFileSync(file, "utf8")
  } catch {
    // Codex cannot read it either, and says so when it starts.
    return ""
  }
}

/** How a session will sign in by a provider of the user's own, as far as files and variables tell; `undefined` where it uses OpenAI's. */
const providerIn = (env: Environment): Harness.Finding | undefined => {
  const own = directory(env)
  const config = own === undefined ? undefined : path.join(own, "config.toml")
  const settings = config !== undefined && fs.existsSync(config) ? readText(config) : ""
  const provider = stringIn(settings, undefined, "model_provider")
  if (provider === undefined || provider === "openai") return undefined
  const variable = stringIn(settings, `model_providers.${provider}`, "env_key")
  return variable === undefined || present(env[variable]) !== undefined
    ? { level: "ok", message: `uses the provider ${provider} of ${config}${variable === undefined ? "" : `, with the key in ${variable}`}` }
    : { level: "problem", message: `the provider ${provider} of ${config} needs a key in ${variable}, which is not set`, remedy: `Set ${variable}.` }
}

/**
 * How a session will sign in. `said` is what Codex says to `codex login status`
 * (0.171.0), which reads its configuration first; versions that say something else
 * leave it to the files.
 */
export const signIn = (env: Environment, said = ""): Harness.Finding => {
  const unreadable = /^Error loading configuration: (.+)$/m.exec(said)?.[1]
  if (unreadable !== undefined) {
    return {
      level: "problem",
      message: `Codex cannot read its configuration: ${unreadable}`,
      remedy: unreadable.startsWith("CODEX_HOME points to") ? "Make that directory, or unset CODEX_HOME." : "Correct what it names."
    }
  }
  const provider = providerIn(env)
  if (provider !== undefined) return provider
  const own = directory(env)
  const auth = own === undefined ? undefined : path.join(own, "auth.json")
  const isSpoiled = /^Error checking login status: (.+)$/m.exec(said)?.[1]
  const isSignedIn = /^(?:Logged in|API key configured)/m.test(said) || (!/^Not logged in/m.test(said) && auth !== undefined && fs.existsSync(auth))
  if (isSpoiled === undefined && isSignedIn) {
    return { level: "ok", message: `signs in by ${auth ?? "its own files"}; whether it is valid shows with the first turn` }
  }
  return {
    level: "problem",
    message: isSpoiled === undefined
      ? `no sign-in was found: none in ${auth ?? "auth.json"}, and no provider of your own in ${own === undefined ? "config.toml" : path.join(own, "config.toml")}`
      : `the sign-in in ${auth ?? "auth.json"} cannot be read: ${isSpoiled}`,
    remedy: "Run `codex login`, or `printenv OPENAI_API_KEY | codex login --with-api-key`."
  }
}

/** What of the user's directory is not what it seems to be. */
export const traps = (env: Readonly<Record<string, string>>, cwd: string): ReadonlyArray<Harness.Finding> => [
  ...(isTrapped(env)
    ? [{
      level: "warning" as const,
      message: `Codex's directory ${directory(env) ?? ""} is under the one for temporary files, where Codex itself runs no command; Turnpike gives it another TMPDIR`,
      remedy: "Choose a CODEX_HOME or a TMPDIR elsewhere."
    }]
    : []),
  ...remarks({ configDir: undefined, env: {}, inheritedEnv: env, credentials: undefined, cwd }).map(({ data }): Harness.Finding => ({
    level: "warning",
    message: data.message,
    remedy: "Take the rules out, or run isolated, where an allow-list matters."
  }))
]

/** What is worth knowing of Codex on this machine. */
export const findings = (
  asked: Harness.DiagnosisOptions,
  program: InstalledProgram.Identified,
  supervisor: Supervisor.Service
): Effect.Effect<ReadonlyArray<Harness.Finding>> =>
  Effect.map(Effect.result(InstalledProgram.ask({}, asked, program, ["login", "status"], supervisor)), (said) => [
    signIn(asked.inheritedEnv, Result.isSuccess(said) ? said.success.text : undefined),
    ...traps(asked.inheritedEnv, asked.cwd)
  ])
