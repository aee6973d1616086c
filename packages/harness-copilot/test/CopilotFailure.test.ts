import { assert, describe, it } from "@effect/vitest"
import { CopilotFailure } from "@turnpike/harness-copilot"
import { Redaction } from "@turnpike/kernel"

const nothing: CopilotFailure.Facts = { message: "it failed", errorType: "query", status: undefined, errorCode: undefined, call: undefined }
const call = (more: Partial<CopilotFailure.Call>): CopilotFailure.Call => ({ status: undefined, kind: "api", errorCode: undefined, errorType: undefined, ...more })
const code = (more: Partial<CopilotFailure.Facts>) => CopilotFailure.make({ ...nothing, ...more }, Redaction.shapes).code

describe("CopilotFailure", () => {
  it("goes by the HTTP status first", () => {
    assert.deepStrictEqual(
      [400, 401, 402, 403, 404, 408, 413, 429, 500, 503, 504, 529].map((status) => code({ status, errorType: "authentication" })),
      [
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
      ]
    )
  })

  it("goes by Copilot's kinds where there is no status", () => {
    assert.deepStrictEqual(
      ["authentication", "authorization", "quota", "rate_limit", "context_limit", "query", "constructor"].map((errorType) => code({ errorType })),
      ["INVALID_CREDENTIAL", "PERMISSION_DENIED", "QUOTA", "RATE_LIMIT", "CONTEXT_WINDOW_EXCEEDED", "HARNESS_FAILED", "HARNESS_FAILED"]
    )
    assert.strictEqual(code({ errorType: "quota", status: 429 }), "QUOTA")
  })

  it("goes by the last request that failed where there is neither", () => {
    assert.deepStrictEqual(
      [
        code({ call: call({ status: 500 }) }),
        code({ call: call({ kind: "transport" }) }),
        code({ call: call({ errorType: "server_error" }) }),
        code({ call: call({ errorCode: "context_length_exceeded", status: 400 }) })
      ],
      ["SERVER", "TRANSPORT", "SERVER", "CONTEXT_WINDOW_EXCEEDED"]
    )
  })

  it("goes by its words where nothing else tells", () => {
    assert.deepStrictEqual(
      [
        "Execution failed: InvalidArg, No GitHub OAuth token or Copilot HMAC key provided",
        "The provider rejected the prompt as too long, but automatic recovery could not reduce it.",
        "Request exceeds the model's prompt budget after reserving output (920996 tokens; limit 128000).",
        "No response was returned. Send your message again to retry.",
        "Could not connect to local model provider at http://127.0.0.1:9/v1."
      ].map((message) => code({ message })),
      ["INVALID_CREDENTIAL", "CONTEXT_WINDOW_EXCEEDED", "CONTEXT_WINDOW_EXCEEDED", "EMPTY_RESPONSE", "TRANSPORT"]
    )
  })

  it("redacts, then bounds, and says what to do", () => {
    const failure = CopilotFailure.make({ ...nothing, status: 401, message: `key sk-0123456789abcdef ${"x".repeat(4000)}` }, Redaction.shapes)
    assert.include(failure.message, "Copilot says: key [REDACTED] x")
    assert.isTrue(failure.message.length < 2100)
    assert.strictEqual(failure.http_status, 401)
    assert.include(failure.remedy, "/login")
    assert.strictEqual(CopilotFailure.make({ ...nothing, message: " " }, Redaction.shapes).message, "Copilot says: (nothing; query)")
    assert.isFalse("http_status" in CopilotFailure.make({ ...nothing, status: 0 }, Redaction.shapes))
  })
})
