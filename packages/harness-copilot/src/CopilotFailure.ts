/**
 * What went wrong with a turn, from the facts that Copilot reports.
 *
 * The HTTP status comes first, Copilot's `errorType` second, what is known of the
 * last request third; its prose decides only where there is no other mark. Facts
 * of 1.0.102, which calls most errors `query`.
 */
import { Failure } from "@turnpike/contract"
import type { Redaction } from "@turnpike/kernel"

/** The last request to the model that failed. */
export interface Call {
  readonly status: number | undefined
  /** `api` or `transport`. */
  readonly kind: string | undefined
  readonly errorCode: string | undefined
  readonly errorType: string | undefined
}

export interface Facts {
  /** What Copilot says to people. */
  readonly message: string
  readonly errorType: string
  readonly status: number | undefined
  readonly errorCode: string | undefined
  readonly call: Call | undefined
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

const ofType: Readonly<Record<string, Failure.FailureCode>> = {
  authentication: "INVALID_CREDENTIAL",
  authorization: "PERMISSION_DENIED",
  quota: "QUOTA",
  rate_limit: "RATE_LIMIT",
  context_limit: "CONTEXT_WINDOW_EXCEEDED"
}

/** Where the only mark is what Copilot says. */
const ofProse: ReadonlyArray<readonly [RegExp, Failure.FailureCode]> = [
  [/\bNo GitHub OAuth token\b|\bNo authentication information\b|\bnot (?:logged|signed) in\b|\bNot authenticated\b/i, "INVALID_CREDENTIAL"],
  [/\brejected the prompt as too long\b|^Request exceeds the model's prompt budget\b/, "CONTEXT_WINDOW_EXCEEDED"],
  [/^No response was returned\b/, "EMPTY_RESPONSE"],
  [/^Could not connect to\b/, "TRANSPORT"]
]

const codeOf = (facts: Facts): Failure.FailureCode => {
  const { call, errorCode, errorType, message, status } = facts
  if (errorCode === "context_length_exceeded" || call?.errorCode === "context_length_exceeded") return "CONTEXT_WINDOW_EXCEEDED"
  if (errorType === "quota") return "QUOTA"
  const prose = ofProse.find(([expression]) => expression.test(message))?.[1]
  if (prose !== undefined) return prose
  if (status !== undefined) return ofStatus(status)
  if (Object.hasOwn(ofType, errorType)) return ofType[errorType]!
  if (call?.status !== undefined) return ofStatus(call.status)
  if (call?.kind === "transport") return "TRANSPORT"
  return call?.errorType === "server_error" ? "SERVER" : "HARNESS_FAILED"
}

const isStatus = (status: number | undefined): status is number =>
  status !== undefined && Number.isInteger(status) && status >= 100 && status <= 599

/** Makes the failure. The message is redacted, then cut at its end. */
export const make = (facts: Facts, redact: Redaction.Redactor): Failure.Failure => {
  const said = redact(facts.message).trim()
  const code = codeOf(facts)
  const status = facts.status ?? facts.call?.status
  return Failure.make(code, `Copilot says: ${said === "" ? `(nothing; ${facts.errorType})` : said.slice(0, 2048)}`, {
    ...(isStatus(status) ? { http_status: status } : {}),
    ...(code === "INVALID_CREDENTIAL"
      ? {
        remedy:
          "Sign in with `copilot` and /login, or set COPILOT_GITHUB_TOKEN, or name a model's service with COPILOT_PROVIDER_BASE_URL and its key; `turnpike doctor` says what is there."
      }
      : {})
  })
}
