import { assert, describe, it } from "@effect/vitest"
import { ClaudeFailure } from "@turnpike/harness-claude"
import { Redaction } from "@turnpike/kernel"

const facts = (more: Partial<ClaudeFailure.Facts>): ClaudeFailure.Facts => ({
  message: "it failed",
  status: undefined,
  error: undefined,
  apiError: undefined,
  terminalReason: "api_error",
  subtype: "success",
  unanswered: false,
  ...more
})
const code = (more: Partial<ClaudeFailure.Facts>) => ClaudeFailure.make(facts(more), Redaction.shapes).code

describe("ClaudeFailure", () => {
  it("goes by the HTTP status first", () => {
    const statuses = [400, 401, 402, 403, 404, 408, 413, 429, 500, 502, 504, 529] as const
    assert.deepStrictEqual(statuses.map((status) => code({ status, error: "unknown" })), [
      "INVALID_REQUEST",
      "INVALID_CREDENTIAL",
      "QUOTA",
      "PERMISSION_DENIED",
      "MODEL_NOT_FOUND",
      "TIMEOUT",
      "CONTEXT_WINDOW_EXCEEDED",
      "RATE_LIMIT",
      "SERVER",
      "SERVER",
      "TIMEOUT",
      "OVERLOADED"
    ])
    assert.strictEqual(code({ status: 403, error: "authentication_failed" }), "PERMISSION_DENIED")
    assert.strictEqual(code({ status: 400, error: "billing_error" }), "QUOTA")
  })

  it("goes by Claude Code's words where there is no status", () => {
    assert.strictEqual(code({ error: "authentication_failed" }), "INVALID_CREDENTIAL")
    assert.strictEqual(code({ error: "server_error", apiError: "connection_failed" }), "TRANSPORT")
    assert.strictEqual(code({ error: "server_error", apiError: "stream_idle_timeout" }), "TIMEOUT")
    assert.strictEqual(code({ error: "overloaded" }), "OVERLOADED")
    assert.strictEqual(code({ error: "unknown" }), "HARNESS_FAILED")
    assert.strictEqual(code({ error: "toString" }), "HARNESS_FAILED")
    assert.strictEqual(code({ error: "server_error", unanswered: true }), "TRANSPORT")
    assert.strictEqual(code({ error: "server_error", status: 500, unanswered: true }), "SERVER")
    assert.strictEqual(code({ subtype: "error_max_budget_usd" }), "BUDGET")
  })

  it("knows a conversation that is too long, also in versions that have no word for it", () => {
    assert.strictEqual(code({ status: 400, terminalReason: "prompt_too_long" }), "CONTEXT_WINDOW_EXCEEDED")
    assert.strictEqual(code({ status: 400, terminalReason: "completed", message: "Prompt is too long" }), "CONTEXT_WINDOW_EXCEEDED")
  })

  it("redacts what Claude Code says, then cuts it", () => {
    const long = ClaudeFailure.make(facts({ message: `api_key=sk-abcdefghijklmnop ${"x".repeat(5000)}`, status: 500 }), Redaction.shapes)
    assert.match(long.message, /^Claude Code says: api_key=\[REDACTED\] x+$/)
    assert.strictEqual(long.message.length, "Claude Code says: ".length + 2048)
    assert.strictEqual(long.http_status, 500)
    assert.strictEqual(ClaudeFailure.make(facts({ message: " " }), Redaction.shapes).message, "Claude Code says: (nothing; success)")
  })

  it("tells no status that is none", () => {
    assert.isUndefined(ClaudeFailure.make(facts({ status: 0 }), Redaction.shapes).http_status)
  })
})
