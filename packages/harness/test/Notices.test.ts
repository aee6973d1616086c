import { assert, describe, it } from "@effect/vitest"
import { TurnEvent } from "@turnpike/contract"
import { Notices } from "@turnpike/harness"
import { Redaction } from "@turnpike/kernel"

const redact = Redaction.withSecrets(["very-secret-value"])
const decode = (notice: TurnEvent.Of<"notice">) => Buffer.from(notice.data.bytes_base64 ?? "", "base64").toString()

describe("Notices", () => {
  it("carries a frame without its credentials, whether a value or a name gives them away", () => {
    assert.deepStrictEqual(
      Notices.raw({ a: ["x very-secret-value y"], token: "abc", nested: { api_key: "def", other: "def" }, n: 1, no: null }, redact),
      { a: ["x [REDACTED] y"], token: "[REDACTED]", nested: { api_key: "[REDACTED]", other: "def" }, n: 1, no: null }
    )
  })

  it("carries the beginning of a long frame", () => {
    const raw = Notices.raw({ text: "x".repeat(10_000) }, redact)
    assert.deepStrictEqual(raw, { beginning: `{"text":"${"x".repeat(Notices.maxKept - 9)}`, characters: 10_011 })
  })

  it("redacts a line before it cuts it", () => {
    const text = `${"x".repeat(Notices.maxKept - 8)}very-secret-value`
    const bytes = new TextEncoder().encode(text)
    const notice = Notices.unreadable({ _tag: "Unparsed", bytes, text, terminated: true }, redact)
    assert.strictEqual(decode(notice), `${"x".repeat(Notices.maxKept - 8)}[REDACTE`)
    assert.strictEqual(notice.data.message, `a line of ${bytes.length} bytes is no JSON object`)
  })

  it("does not show the end of a cut line, which may be half a credential", () => {
    const head = new TextEncoder().encode(`${"x".repeat(1000)}very-secr`)
    const notice = Notices.unreadable({ _tag: "Oversize", bytesTotal: 9_000_000, head, terminated: true }, redact)
    assert.strictEqual(decode(notice), "x".repeat(1009 - 256))
  })
})
