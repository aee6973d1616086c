import { assert, describe, it } from "@effect/vitest"
import { CodexFailure } from "@turnpike/harness-codex"
import { Redaction } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"

const of = (codexErrorInfo: Schema.Json, message = "no") => {
  const { code, http_status } = CodexFailure.make({ message, codexErrorInfo, additionalDetails: null }, Redaction.shapes)
  return [code, http_status]
}
const withStatus = (httpStatusCode: number | null) => ({ httpConnectionFailed: { httpStatusCode } })

describe("CodexFailure", () => {
  it("takes the HTTP status first", () => {
    assert.deepStrictEqual([401, 402, 403, 404, 408, 413, 429, 500, 503, 504, 529, 400, 422].map((status) => of(withStatus(status))), [
      ["INVALID_CREDENTIAL", 401],
      ["QUOTA", 402],
      ["PERMISSION_DENIED", 403],
      ["MODEL_NOT_FOUND", 404],
      ["TIMEOUT", 408],
      ["CONTEXT_WINDOW_EXCEEDED", 413],
      ["RATE_LIMIT", 429],
      ["SERVER", 500],
      ["SERVER", 503],
      ["TIMEOUT", 504],
      ["OVERLOADED", 529],
      ["INVALID_REQUEST", 400],
      ["INVALID_REQUEST", 422]
    ])
  })

  it("takes Codex's word where there is no status", () => {
    const words = ["contextWindowExceeded", "usageLimitExceeded", "rateLimitExceeded", "serverOverloaded", "modelNotFound", "internalServerError", "unauthorized", "badRequest", "sandboxError", "toString"]
    assert.deepStrictEqual([...words.map((word) => of(word)), of(withStatus(null)), of({ responseStreamDisconnected: { httpStatusCode: null } }), of(null), of({})], [
      ["CONTEXT_WINDOW_EXCEEDED", undefined],
      ["QUOTA", undefined],
      ["RATE_LIMIT", undefined],
      ["OVERLOADED", undefined],
      ["MODEL_NOT_FOUND", undefined],
      ["SERVER", undefined],
      ["INVALID_CREDENTIAL", undefined],
      ["INVALID_REQUEST", undefined],
      ["HARNESS_FAILED", undefined],
      ["HARNESS_FAILED", undefined],
      ["TRANSPORT", undefined],
      ["TRANSPORT", undefined],
      ["HARNESS_FAILED", undefined],
      ["HARNESS_FAILED", undefined]
    ])
  })

  it("takes the message only where Codex has no word for it", () => {
    assert.deepStrictEqual(
      ["stream disconnected before completion: x", "Missing environment variable: `KEY`.", "something"].map((message) => of("other", message)[0]),
      ["TRANSPORT", "INVALID_CREDENTIAL", "HARNESS_FAILED"]
    )
    assert.strictEqual(of("badRequest", "stream disconnected before completion: x")[0], "INVALID_REQUEST")
  })

  it("redacts, then bounds, and always says something", () => {
    const long = CodexFailure.make({ message: `api_key=sk-abcdefghijkl ${"x".repeat(5000)}` }, Redaction.shapes)
    assert.notInclude(long.message, "sk-abcdefghijkl")
    assert.isAtMost(long.message.length, 2100)
    assert.strictEqual(CodexFailure.make({ message: "" }, Redaction.shapes).message, "Codex says: (nothing)")
  })

  it("tells a refusal and a full answer from a failure", () => {
    const reason = (message: string, codexErrorInfo: Schema.Json = "other") => CodexFailure.stopReason({ message, codexErrorInfo })
    assert.deepStrictEqual([
      reason("Incomplete response returned, reason: max_output_tokens"),
      reason("stream disconnected before completion: Incomplete response returned, reason: content_filter"),
      reason("no", "cyberPolicy"),
      reason("no")
    ], ["max-tokens", "refusal", "refusal", undefined])
  })
})
