import { assert, describe, it } from "@effect/vitest"
import { Usage } from "@turnpike/contract"

const tokens = (source: "reported" | "estimated", figures: Omit<Usage.Tokens, "source">): Usage.Usage => ({
  tokens: { source, ...figures },
  cost: { source: "unavailable" }
})

describe("the sum of two usages", () => {
  it("adds what both know, and leaves out what one of them does not", () => {
    const one: Usage.Usage = {
      tokens: { source: "reported", input_tokens: 10, output_tokens: 2, cache_read_tokens: 4 },
      cost: { source: "reported", usd: 0.25 }
    }
    const other: Usage.Usage = {
      tokens: { source: "reported", input_tokens: 5, output_tokens: 1, reasoning_tokens: 1 },
      cost: { source: "estimated", usd: 0.5 }
    }
    assert.deepStrictEqual(Usage.sum(one, other), {
      tokens: { source: "reported", input_tokens: 15, output_tokens: 3 },
      cost: { source: "estimated", usd: 0.75 }
    })
  })

  it("is not available where one of them is not, and never 0", () => {
    assert.deepStrictEqual(Usage.sum(tokens("reported", { input_tokens: 1 }), Usage.unavailable), Usage.unavailable)
    assert.deepStrictEqual(Usage.sum(Usage.unavailable, Usage.unavailable), Usage.unavailable)
    assert.deepStrictEqual(Usage.sum(tokens("reported", { input_tokens: 1 }), tokens("reported", { output_tokens: 1 })), Usage.unavailable)
  })

  it("is no better than the worse of the two", () => {
    assert.deepStrictEqual(
      Usage.sum(tokens("estimated", { input_tokens: 1, output_tokens: 1 }), tokens("reported", { input_tokens: 1, output_tokens: 1 })),
      tokens("estimated", { input_tokens: 2, output_tokens: 2 })
    )
  })
})
