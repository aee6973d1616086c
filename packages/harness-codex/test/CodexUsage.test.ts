import { assert, describe, it } from "@effect/vitest"
import { CodexUsage } from "@turnpike/harness-codex"

const counts = (inputTokens: number, outputTokens: number, more: { readonly cachedInputTokens?: number; readonly reasoningOutputTokens?: number } = {}) => ({
  inputTokens,
  outputTokens,
  ...more
})
const of = (...reports: ReadonlyArray<Parameters<typeof CodexUsage.seen>[1]>) => CodexUsage.ofTurn(reports.reduce(CodexUsage.seen, CodexUsage.nothingSeen)).tokens

describe("CodexUsage", () => {
  it("is unavailable where nothing was reported", () => {
    assert.deepStrictEqual(of(), { source: "unavailable" })
  })

  it("is the turn's and not the thread's, and counts a report that comes twice once", () => {
    const first = { total: counts(1100, 50, { cachedInputTokens: 300 }), last: counts(100, 10, { cachedInputTokens: 30 }) }
    const second = { total: counts(1300, 70, { cachedInputTokens: 360 }), last: counts(200, 20, { cachedInputTokens: 60 }) }
    assert.deepStrictEqual(of(first, first, second, second), {
      source: "reported",
      input_tokens: 300,
      output_tokens: 30,
      cache_read_tokens: 90,
      cache_write_tokens: 0,
      reasoning_tokens: 0
    })
  })

  it("is unavailable where the report says 0, as Codex does of an answer that was cut", () => {
    assert.deepStrictEqual(of({ total: counts(0, 0), last: counts(0, 0) }), { source: "unavailable" })
  })

  it("leaves out a part that is more than its whole", () => {
    const odd = counts(10, 2, { cachedInputTokens: 11, reasoningOutputTokens: 3 })
    assert.deepStrictEqual(of({ total: odd, last: odd }), { source: "reported", input_tokens: 10, output_tokens: 2 })
  })
})
