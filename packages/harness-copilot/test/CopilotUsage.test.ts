import { assert, describe, it } from "@effect/vitest"
import { CopilotUsage } from "@turnpike/harness-copilot"

describe("CopilotUsage", () => {
  it("is unavailable where nothing was reported, and never nothing", () => {
    assert.deepStrictEqual(CopilotUsage.toUsage(CopilotUsage.nothing), { tokens: { source: "unavailable" }, cost: { source: "unavailable" } })
    assert.deepStrictEqual(CopilotUsage.toUsage(CopilotUsage.add(CopilotUsage.nothing, { finishReason: "stop" })).tokens, { source: "unavailable" })
  })

  it("is the sum of all calls", () => {
    const one = { inputTokens: 100, outputTokens: 10, cacheReadTokens: 60, cacheWriteTokens: 5, reasoningTokens: 4 }
    assert.deepStrictEqual(CopilotUsage.toUsage(CopilotUsage.add(CopilotUsage.add(CopilotUsage.nothing, one), one)), {
      tokens: { source: "reported", input_tokens: 200, output_tokens: 20, cache_read_tokens: 120, cache_write_tokens: 10, reasoning_tokens: 8 },
      cost: { source: "unavailable" }
    })
  })

  it("does not tell what one of the calls did not tell, and no part larger than its whole", () => {
    const sum = CopilotUsage.add(CopilotUsage.add(CopilotUsage.nothing, { inputTokens: 1, outputTokens: 1 }), {
      inputTokens: 1,
      outputTokens: 1,
      cacheReadTokens: 5,
      reasoningTokens: 9
    })
    assert.deepStrictEqual(CopilotUsage.toUsage(sum).tokens, {
      source: "reported",
      input_tokens: 6,
      output_tokens: 2,
      cache_read_tokens: 5,
      cache_write_tokens: 0
    })
    const alone = CopilotUsage.toUsage(CopilotUsage.add(CopilotUsage.nothing, { outputTokens: 2, reasoningTokens: 9 })).tokens
    assert.strictEqual(alone.reasoning_tokens, 2)
  })
})
