/**
 * Copilot's program: where it is, what version it has, whose models it will use,
 * and whether it looks signed in.
 */
import { Failure } from "@turnpike/contract"
import type { InstalledProgram } from "@turnpike/harness"
import { type Harness, HarnessError } from "@turnpike/kernel"
import * as path from "node:path"

/** The version that the real tests run. */
export const tested = "1.0.102"

const npmPackage = "@github/copilot"

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

export const description: InstalledProgram.Description = {
  harness: "copilot",
  product: "Copilot",
  names: ["copilot"],
  places,
  nativeBehind,
  npmPackage,
  // "GitHub Copilot CLI 1.0.102."
  version: /^GitHub Copilot CLI (\d+\.\d+\.\d+)/m,
  tested,
  // It would look for a newer version, and could become that one.
  environment: { COPILOT_AUTO_UPDATE: "false" }
}

/** Why a program that answers another protocol cannot be used. */
export const otherProtocol = (version: number | undefined, expected: number): HarnessError.HarnessError =>
  HarnessError.notStarted(
    Failure.make("HARNESS_PROTOCOL", `Copilot speaks protocol version ${version ?? "(none)"}; the one that works here is ${expected}`, {
      remedy: `Install the version that is tested: npm install -g ${npmPackage}@${tested}.`
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
