/**
 * What went wrong with a turn, from the facts that Codex reports.
 *
 * `codexErrorInfo` comes first, its HTTP status before its word; only for
 * `other`, which says nothing, the message decides, by the words of 0.171.0.
 */
import { Failure, type TurnEvent } from "@turnpike/contract"
import type { Redaction } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"
import * as CodexWire from "./CodexWire.ts"

type TurnError = typeof CodexWire.TurnError.Type

/** The kind of an error, and the HTTP status that it carries. */
export interface Kind {
  readonly word: string
  readonly status: number | undefined
}

const isObject = (value: unknown): value is { readonly [key: string]: Schema.Json } => typeof value === "object" && value !== null && !Array.isArray(value)

export const kindOf = (info: Schema.Json | undefined): Kind => {
  if (typeof info === "string") return { word: info, status: undefined }
  if (!isObject(info)) return { word: "other", status: undefined }
  const [entry] = Object.entries(info)
  if (entry === undefined) return { word: "other", status: undefined }
  const status = isObject(entry[1]) ? entry[1]["httpStatusCode"] : undefined
  const isStatus = typeof status === "number" && Number.isInteger(status) && status >= 100 && status <= 599
  return { word: entry[0], status: isStatus ? status : undefined }
}

const ofStatus = (status: number): Failure.FailureCode => {
  switch (status) {
    case 401:
      return "INVALID_CREDENTIAL"
    case 402:
      return "QUOTA"
    case 403:
      return "PERMISSION_DENIED"
    case 404:
      return "MODEL_NOT_FOUND"
    case 408:
    case 504:
      return "TIMEOUT"
    case 413:
      return "CONTEXT_WINDOW_EXCEEDED"
    case 429:
      return "RATE_LIMIT"
    case 529:
      return "OVERLOADED"
    default:
      return status >= 500 ? "SERVER" : "INVALID_REQUEST"
  }
}

/** Codex's words for errors, from its own list. */
const ofWord: Readonly<Record<string, Failure.FailureCode>> = {
  contextWindowExceeded: "CONTEXT_WINDOW_EXCEEDED",
  sessionBudgetExceeded: "BUDGET",
  usageLimitExceeded: "QUOTA",
  rateLimitExceeded: "RATE_LIMIT",
  flexUnavailable: "OVERLOADED",
  policyCapacityUnavailable: "OVERLOADED",
  serverOverloaded: "OVERLOADED",
  modelNotFound: "MODEL_NOT_FOUND",
  internalServerError: "SERVER",
  unauthorized: "INVALID_CREDENTIAL",
  badRequest: "INVALID_REQUEST",
  httpConnectionFailed: "TRANSPORT",
  responseStreamConnectionFailed: "TRANSPORT",
  responseStreamDisconnected: "TRANSPORT",
  responseTooManyFailedAttempts: "TRANSPORT"
}

const ofMessage = (message: string): Failure.FailureCode =>
  message.startsWith("stream disconnected before completion")
    ? "TRANSPORT"
    : message.startsWith("Missing environment variable")
    ? "INVALID_CREDENTIAL"
    : "HARNESS_FAILED"

const codeOf = ({ status, word }: Kind, message: string): Failure.FailureCode =>
  status !== undefined ? ofStatus(status) : (Object.hasOwn(ofWord, word) ? ofWord[word] : undefined) ?? ofMessage(message)

/** Endings that Codex reports as failures and that are none of the machine's. */
export const stopReason = (error: TurnError): Extract<TurnEvent.StopReason, "max-tokens" | "refusal"> | undefined => {
  const { word } = kindOf(error.codexErrorInfo)
  if (["cyberPolicy", "bioPolicy", "misalignmentPolicyViolation", "inferenceHookDenied"].includes(word)) return "refusal"
  if (error.message.endsWith("Incomplete response returned, reason: max_output_tokens")) return "max-tokens"
  if (error.message.endsWith("Incomplete response returned, reason: content_filter")) return "refusal"
  return undefined
}

/** What Codex says, redacted, then cut at its end. */
const says = (text: string, redact: Redaction.Redactor): string => {
  const said = redact(text).trim()
  return `Codex says: ${said === "" ? "(nothing)" : said.slice(0, 2048)}`
}

const signIn = "Sign in with `codex login`, or set the variable that the provider in config.toml names; `turnpike doctor` says what is there."

/** Makes the failure of a turn, or of an attempt that is repeated. */
export const make = (error: TurnError, redact: Redaction.Redactor): Failure.Failure => {
  const kind = kindOf(error.codexErrorInfo)
  const details = error.additionalDetails ?? ""
  const code = codeOf(kind, details === "" ? error.message : details)
  return Failure.make(code, says([error.message, details].filter((text) => text !== "").join(": "), redact), {
    ...(kind.status === undefined ? {} : { http_status: kind.status }),
    ...(code === "INVALID_CREDENTIAL" ? { remedy: signIn } : {})
  })
}

/** Makes the failure of a request that Codex refused. */
export const ofRefusal = (error: CodexWire.RpcError, redact: Redaction.Redactor): Failure.Failure => {
  if (error.code === CodexWire.overloaded) return Failure.make("OVERLOADED", says(error.message, redact))
  if (isObject(error.data) && error.data["input_error_code"] === "input_too_large") {
    return Failure.make("UNSUPPORTED", says(error.message, redact), {
      remedy: "Put what is long into a file and ask Codex to read it."
    })
  }
  return Failure.make("HARNESS_PROTOCOL", says(error.message, redact), { data: { rpc_code: error.code } })
}
