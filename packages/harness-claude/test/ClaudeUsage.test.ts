import { assert, describe, it } from "@effect/vitest"
import { Usage } from "@turnpike/contract"
import { ClaudeUsage } from "@turnpike/harness-claude"

const record = (more: object) => ({ type: "result", subtype: "success", is_error: false, ...more }) as Parameters<typeof ClaudeUsage.ofResult>[0]
const model = { inputTokens: 10, outputTokens: 5, cacheReadInputTokens: 3, cacheCreationInputTokens: 2, thinkingTokens: 1, costUSD: 0.5 }
const seen = ClaudeUsage.begun(ClaudeUsage.nothingSeen)

describe("ClaudeUsage", () => {
  it("adds up all models of the turn, caches included", () => {
    assert.deepStrictEqual(ClaudeUsage.ofResult(record({ model_usage_since_last_result: { a: model, b: model }, usage: { input_tokens: 1 } }), 0, seen), {
      tokens: { source: "reported", input_tokens: 30, output_tokens: 10, cache_read_tokens: 6, cache_write_tokens: 4, reasoning_tokens: 2 },
      cost: { source: "estimated", usd: 1 }
    })
  })

  it("does not invent reasoning or money that a model does not tell", () => {
    const { costUSD: _, thinkingTokens: __, ...bare } = model
    assert.deepStrictEqual(ClaudeUsage.ofResult(record({ model_usage_since_last_result: { a: model, b: bare } }), 0, seen), {
      tokens: { source: "reported", input_tokens: 30, output_tokens: 10, cache_read_tokens: 6, cache_write_tokens: 4 },
      cost: { source: "unavailable" }
    })
  })

  it("takes the turn's own figures where there are no models, and the difference of the money", () => {
    assert.deepStrictEqual(
      ClaudeUsage.ofResult(
        record({
          model_usage_since_last_result: {},
          usage: { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 3, cache_creation_input_tokens: 2 },
          total_cost_usd: 1.5
        }),
        1,
        seen
      ),
      {
        tokens: { source: "reported", input_tokens: 15, output_tokens: 5, cache_read_tokens: 3, cache_write_tokens: 2 },
        cost: { source: "estimated", usd: 0.5 }
      }
    )
  })

  it("does not report nothing for an answer that was cut off", () => {
    const nothing = record({ usage: { input_tokens: 0, output_tokens: 0 }, total_cost_usd: 0 })
    assert.deepStrictEqual(ClaudeUsage.ofResult(nothing, 0, seen), Usage.unavailable)
    assert.deepStrictEqual(ClaudeUsage.ofResult(nothing, 0, ClaudeUsage.nothingSeen).tokens, {
      source: "reported",
      input_tokens: 0,
      output_tokens: 0,
      cache_read_tokens: 0,
      cache_write_tokens: 0
    })
  })

  it("does not report nothing for a request that failed", () => {
    const refused = record({ is_error: true, usage: { input_tokens: 0, output_tokens: 0 }, total_cost_usd: 0, modelUsage: {} })
    assert.deepStrictEqual(ClaudeUsage.ofResult(refused, 0, ClaudeUsage.nothingSeen), Usage.unavailable)
  })

  it("says that it does not know where nothing is told", () => {
    assert.deepStrictEqual(ClaudeUsage.ofResult(record({}), 0, seen), Usage.unavailable)
  })
})
