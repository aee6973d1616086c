/**
 * What went wrong with a turn, from the facts that Claude Code reports.
 *
 * The HTTP status comes first, Claude Code's own words for the error second; its
 * `subtype`, its exit code and its prose decide nothing, but for the two cases
 * that have no other mark. Facts of 2.1.332; 2.1.197 has fewer of the fields.
 */
import { Failure } from "@turnpike/contract"
import { Redaction } from "@turnpike/kernel"

export interface Facts {
  /** What Claude Code says to people. */
  readonly message: string
  readonly status: number | undefined
  /** Such as `authentication_failed`, `rate_limit`, `server_error`; of the last message of Claude Code's own. */
  readonly error: string | undefined
  /** Such as `connection_failed`, `max_output_tokens`. */
  readonly apiError: string | undefined
  /** Such as `api_error`, `prompt_too_long`. */
  readonly terminalReason: string | undefined
  readonly subtype: string
  /** Whether the last request before it got no HTTP answer at all. */
  readonly unanswered: boolean
}

const ofStatus = (status: number, facts: Facts): Failure.FailureCode => {
  if (facts.error === "billing_error") return "QUOTA"
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

/** Claude Code's words for errors, from its own list. */
const ofWord: Readonly<Record<string, Failure.FailureCode>> = {
  connection_failed: "TRANSPORT",
  computer_slept: "TRANSPORT",
  stream_idle_timeout: "TIMEOUT",
  provider_credentials: "INVALID_CREDENTIAL",
  gateway_signin_required: "INVALID_CREDENTIAL",
  gateway_session_expired: "INVALID_CREDENTIAL",
  invalid_credential_header: "INVALID_CREDENTIAL",
  authentication_failed: "INVALID_CREDENTIAL",
  cloud_credential_error: "INVALID_CREDENTIAL",
  oauth_org_not_allowed: "PERMISSION_DENIED",
  account_on_hold: "PERMISSION_DENIED",
  verification_required: "PERMISSION_DENIED",
  api_key_auth_disabled: "PERMISSION_DENIED",
  org_disabled_credential: "PERMISSION_DENIED",
  billing_error: "QUOTA",
  model_requires_usage_credits: "QUOTA",
  long_context_credits_required: "QUOTA",
  rate_limit: "RATE_LIMIT",
  overloaded: "OVERLOADED",
  model_not_found: "MODEL_NOT_FOUND",
  invalid_request: "INVALID_REQUEST",
  server_error: "SERVER"
}

const word = (name: string | undefined): Failure.FailureCode | undefined =>
  name !== undefined && Object.hasOwn(ofWord, name) ? ofWord[name] : undefined

const codeOf = (facts: Facts): Failure.FailureCode => {
  // 2.1.197 has no terminal_reason for it.
  if (facts.terminalReason === "prompt_too_long" || /^Prompt is too long\b/.test(facts.message)) return "CONTEXT_WINDOW_EXCEEDED"
  if (facts.subtype === "error_max_budget_usd") return "BUDGET"
  if (facts.status !== undefined) return ofStatus(facts.status, facts)
  // 2.1.197 calls a connection that failed a server's error.
  return word(facts.apiError) ?? (facts.unanswered ? "TRANSPORT" : word(facts.error)) ?? "HARNESS_FAILED"
}

const isStatus = (status: number | undefined): status is number =>
  status !== undefined && Number.isInteger(status) && status >= 100 && status <= 599

/** Makes the failure. The message is redacted, then cut at its end. */
export const make = (facts: Facts, redact: Redaction.Redactor): Failure.Failure => {
  const said = redact(facts.message).trim()
  const code = codeOf(facts)
  return Failure.make(code, `Claude Code says: ${said === "" ? `(nothing; ${facts.subtype})` : said.slice(0, 2048)}`, {
    ...(isStatus(facts.status) ? { http_status: facts.status } : {}),
    ...(code === "INVALID_CREDENTIAL"
      ? { remedy: "Sign in with `claude` and /login, or give it a valid ANTHROPIC_API_KEY; `turnpike doctor` says what is there." }
      : {})
  })
}
