/**
 * What Copilot would sign in with, and what of its variables is not what it seems
 * to be. Its directory, `COPILOT_HOME`, is read by nobody but Copilot.
 */
import type { Harness } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as CopilotProvider from "./CopilotProvider.ts"

type Environment = Readonly<Record<string, string | undefined>>

const present = (value: string | undefined): string | undefined => value === "" ? undefined : value

/** What Copilot's server tells of its sign-in. */
export interface Status {
  readonly isAuthenticated: boolean
  readonly login: string | undefined
}

/** How a session will sign in, as far as the environment tells; `undefined` where Copilot has to be asked. */
export const signIn = (env: Environment): Harness.Finding | undefined => {
  if (present(env["COPILOT_PROVIDER_BASE_URL"]) !== undefined) {
    return present(env["COPILOT_MODEL"]) === undefined && present(env["COPILOT_PROVIDER_MODEL_ID"]) === undefined
      ? {
        level: "warning",
        message: "uses a model's service of its own by COPILOT_PROVIDER_BASE_URL, and no model is named",
        remedy: "Set COPILOT_MODEL, or name a model with --model."
      }
      : { level: "ok", message: "uses a model's service of its own by COPILOT_PROVIDER_BASE_URL; whether its key is valid shows with the first turn" }
  }
  const variable = ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"].find((name) => present(env[name]) !== undefined)
  return variable === undefined
    ? undefined
    : { level: "ok", message: `signs in by ${variable} of the environment; whether it is valid shows with the first turn` }
}

/** What Copilot itself says of its sign-in; `undefined` where it could not be asked. */
export const signInOf = (status: Status | undefined): Harness.Finding =>
  status?.isAuthenticated === true
    ? { level: "ok", message: `is signed in${status.login === undefined ? "" : ` as ${status.login}`}; whether that is valid shows with the first turn` }
    : {
      level: status === undefined ? "warning" : "problem",
      message: status === undefined ? "could not be asked whether it is signed in" : "is not signed in, and the environment names no token and no service",
      remedy: "Run `copilot` and type /login, or set COPILOT_GITHUB_TOKEN, or set COPILOT_PROVIDER_BASE_URL with its key and COPILOT_MODEL."
    }

/** Variables with which a session would be refused. */
export const traps = (env: Environment): ReadonlyArray<Harness.Finding> => {
  // Stands for the model that a session may name.
  const provider = CopilotProvider.choose(env, "any")
  if (Result.isSuccess(provider)) return []
  const { message, remedy } = provider.failure.failure
  return [{ level: "problem", message, remedy }]
}

/** What is worth knowing of Copilot on this machine. It is asked for its `status` where the environment does not tell. */
export const findings = (
  { inheritedEnv }: Harness.DiagnosisOptions,
  status: Effect.Effect<Status | undefined>
): Effect.Effect<ReadonlyArray<Harness.Finding>> =>
  Effect.gen(function*() {
    return [signIn(inheritedEnv) ?? signInOf(yield* status), ...traps(inheritedEnv)]
  })
