/**
 * Copilot's program: where it is, what version it has, whose models it will use,
 * and whether it looks signed in.
 */
import { Failure } from "@turnpike/contract"
import { ProgramSearch, SessionEnvironment } from "@turnpike/harness"
import { type Harness, HarnessError } from "@turnpike/kernel"
import type { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"

/** The version that the real tests run. */
export const tested = "1.0.102"

const install = "npm install -g @github/copilot"

const exe = process.platform === "win32" ? "copilot.exe" : "copilot"

/**
 * The native programs behind the npm package's loader: the package of the
 * platform, beside it or within it. The loader waits for the native program
 * without passing signals on, so it must not stand between.
 */
const nativeBehind = (launcher: string): ReadonlyArray<string> => {
  const scope = `${path.sep}@github${path.sep}`
  const at = launcher.lastIndexOf(`${scope}copilot${path.sep}`)
  if (at === -1) return []
  const directory = launcher.slice(0, at + scope.length)
  return (process.platform === "linux" ? ["linux", "linuxmusl"] : [process.platform]).flatMap((platform) => {
    const native = `copilot-${platform}-${process.arch}`
    return [path.join(directory, native, exe), path.join(directory, "copilot", "node_modules", "@github", native, exe)]
  })
}

const places = [
  "~/.local/bin/copilot",
  "~/.npm-global/bin/copilot",
  "/usr/local/bin/copilot",
  "/opt/homebrew/bin/copilot",
  "/usr/bin/copilot"
]

type Session = Pick<Harness.SessionOptions, "program" | "inheritedEnv" | "cwd"> & Partial<Pick<Harness.SessionOptions, "env" | "redact">>

export const find = (session: Session): Effect.Effect<ProgramSearch.Found, HarnessError.HarnessError> =>
  ProgramSearch.find({
    harness: "Copilot",
    install,
    program: session.program,
    names: ["copilot"],
    cwd: session.cwd,
    env: { ...session.inheritedEnv, ...session.env },
    places,
    nativeBehind
  })

/** "GitHub Copilot CLI 1.0.102." */
const versionIn = (text: string): string | undefined => /^GitHub Copilot CLI (\d+\.\d+\.\d+)/m.exec(text)?.[1]

export interface Identified extends ProgramSearch.Found {
  readonly version: string
}

export interface Program {
  /** Finds the program and makes sure that it is Copilot, by its `--version`. Asked once for a file that does not change. */
  readonly identify: (session: Session) => Effect.Effect<Identified, HarnessError.HarnessError>
}

export const make = (supervisor: Supervisor.Service): Program => {
  const known = new Map<string, string>()
  return {
    identify: Effect.fn("CopilotProgram.identify")(function*(session: Session) {
      const found = yield* find(session)
      const { mtimeMs, size } = fs.statSync(found.file)
      const identity = `${found.file}\0${mtimeMs}\0${size}`
      const remembered = known.get(identity)
      if (remembered !== undefined) return { ...found, version: remembered }
      const said = yield* ProgramSearch.describe({
        program: found.file,
        args: ["--version"],
        cwd: session.cwd,
        env: SessionEnvironment.changes(
          { inheritedEnv: session.inheritedEnv, env: session.env ?? {} },
          // It would look for a newer version, and could become that one.
          { COPILOT_AUTO_UPDATE: "false" }
        )
      }, supervisor.spawn)
      const version = versionIn(said.text)
      if (version === undefined) {
        return yield* ProgramSearch.notTheHarness("Copilot", found.file, said, session.redact ?? ((text) => text))
      }
      known.set(identity, version)
      return { ...found, version }
    })
  }
}

/** Why a program that answers another protocol cannot be used. */
export const otherProtocol = (version: number | undefined, expected: number): HarnessError.HarnessError =>
  HarnessError.notStarted(
    Failure.make("HARNESS_PROTOCOL", `Copilot speaks protocol version ${version ?? "(none)"}; the one that works here is ${expected}`, {
      remedy: `Install the version that is tested: ${install}@${tested}.`
    })
  )

type Environment = Readonly<Record<string, string | undefined>>
const valueOf = (env: Environment, name: string): string | undefined => env[name] === "" ? undefined : env[name]

/** How a session will sign in, as far as the environment tells; undefined where Copilot has to be asked. */
export const signIn = (env: Environment): Harness.Finding | undefined => {
  const service = valueOf(env, "COPILOT_PROVIDER_BASE_URL")
  if (service !== undefined) {
    return valueOf(env, "COPILOT_MODEL") === undefined && valueOf(env, "COPILOT_PROVIDER_MODEL_ID") === undefined
      ? {
        level: "warning",
        message: "uses a model's service of its own by COPILOT_PROVIDER_BASE_URL, and no model is named",
        remedy: "Set COPILOT_MODEL, or name a model with --model."
      }
      : { level: "ok", message: "uses a model's service of its own by COPILOT_PROVIDER_BASE_URL; whether its key is valid shows with the first turn" }
  }
  const by = ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"].find((name) => valueOf(env, name) !== undefined)
  if (by !== undefined) return { level: "ok", message: `signs in by ${by} of the environment; whether it is valid shows with the first turn` }
  return undefined
}

/** What Copilot itself says of its sign-in; undefined where it could not be asked. */
export const signInOf = (status: { readonly isAuthenticated: boolean; readonly login: string | undefined } | undefined): Harness.Finding => {
  if (status?.isAuthenticated === true) {
    return { level: "ok", message: `is signed in${status.login === undefined ? "" : ` as ${status.login}`}; whether that is valid shows with the first turn` }
  }
  return {
    level: status === undefined ? "warning" : "problem",
    message: status === undefined ? "could not be asked whether it is signed in" : "is not signed in, and the environment names no token and no service",
    remedy: "Run `copilot` and type /login, or set COPILOT_GITHUB_TOKEN, or set COPILOT_PROVIDER_BASE_URL with its key and COPILOT_MODEL."
  }
}
