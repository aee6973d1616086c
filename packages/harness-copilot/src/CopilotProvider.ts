/**
 * The model's service where it is not GitHub's, from the environment.
 *
 * Copilot's server does not read the COPILOT_PROVIDER_ variables that its command
 * reads (observed in 1.0.102); it takes their contents when a session is opened.
 * Names and defaults are those of `copilot help providers`. What cannot be
 * handed on is refused by its variable's name.
 */
import { Failure } from "@turnpike/contract"
import { HarnessError } from "@turnpike/kernel"
import * as Result from "effect/Result"
import type * as CopilotWire from "./CopilotWire.ts"

type Environment = Readonly<Record<string, string | undefined>>

export interface Choice {
  /** Undefined for GitHub's own. */
  readonly provider: CopilotWire.Provider | undefined
  /** Undefined for Copilot's own choice. */
  readonly model: string | undefined
}

const refuse = (variable: string, why: string, remedy: string) =>
  Result.fail(HarnessError.notStarted(Failure.make("UNSUPPORTED", `${variable} ${why}`, { remedy })))

/** The value is not repeated: it may be a secret in the wrong place. */
const oneOf = (variable: string, allowed: ReadonlyArray<string>, value: string | undefined) =>
  value === undefined || allowed.includes(value)
    ? Result.succeed(value)
    : refuse(variable, `is none of ${allowed.join(", ")}`, `Set ${variable} to one of ${allowed.join(", ")}, or unset it.`)

const naturalNumber = (variable: string, value: string | undefined) =>
  value === undefined || /^[1-9]\d{0,8}$/.test(value)
    ? Result.succeed(value === undefined ? undefined : Number(value))
    : refuse(variable, "is no whole number above 0", `Set ${variable} to a number of tokens, or unset it.`)

/** Reads `Name: Value` lines; a literal `\n` separates lines, too. */
const headersOf = (value: string | undefined) => {
  const headers: Record<string, string> = {}
  for (const line of (value ?? "").split(/\r?\n|\\n/)) {
    if (line.trim() === "") continue
    const at = line.indexOf(":")
    if (at < 1) {
      return refuse("COPILOT_PROVIDER_HEADERS", "has a line that is not `Name: Value`", "Write one `Name: Value` a line.")
    }
    headers[line.slice(0, at).trim()] = line.slice(at + 1).trim()
  }
  return Result.succeed(headers)
}

/** Leaves out what is not set. */
const given = (fields: Readonly<Record<string, CopilotWire.Provider[string] | undefined>>): CopilotWire.Provider =>
  Object.fromEntries(Object.entries(fields).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]))

/** Reads the environment of a session. `model` is the caller's choice and comes first. */
export const choose = (env: Environment, model: string | undefined): Result.Result<Choice, HarnessError.HarnessError> =>
  Result.gen(function*() {
    const value = (name: string): string | undefined => env[name] === "" ? undefined : env[name]
    const chosen = model ?? value("COPILOT_MODEL")
    const baseUrl = value("COPILOT_PROVIDER_BASE_URL")
    if (baseUrl === undefined) {
      if (/^(?:true|1|yes|on|y)$/i.test(value("COPILOT_OFFLINE")?.trim() ?? "")) {
        return yield* refuse(
          "COPILOT_OFFLINE",
          "keeps Copilot from GitHub's models, and no other service is named",
          "Unset COPILOT_OFFLINE, or set COPILOT_PROVIDER_BASE_URL."
        )
      }
      return { provider: undefined, model: chosen }
    }
    const modelId = value("COPILOT_PROVIDER_MODEL_ID")
    const inForce = chosen ?? modelId
    if (inForce === undefined) {
      return yield* refuse(
        "COPILOT_PROVIDER_BASE_URL",
        "names a service of its own, and no model is named",
        "Name a model with --model, or set COPILOT_MODEL."
      )
    }
    if (value("COPILOT_PROVIDER_API_KEY_COMMAND") !== undefined && value("COPILOT_PROVIDER_BEARER_TOKEN") === undefined) {
      return yield* refuse(
        "COPILOT_PROVIDER_API_KEY_COMMAND",
        "cannot be handed to Copilot's server",
        "Run the command yourself and set COPILOT_PROVIDER_API_KEY or COPILOT_PROVIDER_BEARER_TOKEN to what it prints."
      )
    }
    const type = yield* oneOf("COPILOT_PROVIDER_TYPE", ["openai", "azure", "anthropic"], value("COPILOT_PROVIDER_TYPE"))
    const wireApi = yield* oneOf("COPILOT_PROVIDER_WIRE_API", ["completions", "responses"], value("COPILOT_PROVIDER_WIRE_API"))
    const transport = yield* oneOf("COPILOT_PROVIDER_TRANSPORT", ["http", "websockets"], value("COPILOT_PROVIDER_TRANSPORT"))
    const apiVersion = value("COPILOT_PROVIDER_AZURE_API_VERSION")
    const headers = yield* headersOf(value("COPILOT_PROVIDER_HEADERS"))
    return {
      model: inForce,
      provider: given({
        baseUrl,
        type: type ?? "openai",
        wireApi,
        transport,
        apiKey: value("COPILOT_PROVIDER_API_KEY"),
        bearerToken: value("COPILOT_PROVIDER_BEARER_TOKEN"),
        azure: apiVersion === undefined ? undefined : { apiVersion },
        headers: Object.keys(headers).length === 0 ? undefined : headers,
        modelId,
        // The model that the caller names goes out; the variable is for where none is.
        wireModel: model === undefined ? value("COPILOT_PROVIDER_WIRE_MODEL") : undefined,
        maxPromptTokens: yield* naturalNumber("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", value("COPILOT_PROVIDER_MAX_PROMPT_TOKENS")),
        maxOutputTokens: yield* naturalNumber("COPILOT_PROVIDER_MAX_OUTPUT_TOKENS", value("COPILOT_PROVIDER_MAX_OUTPUT_TOKENS"))
      })
    }
  })
