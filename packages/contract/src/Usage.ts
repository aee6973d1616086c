/**
 * Tokens and money, with how far each figure can be trusted.
 *
 * A figure that nobody reported is `unavailable` and absent; it is never 0.
 */
import * as Schema from "effect/Schema"
import { Count } from "./Scalars.ts"

/** How a figure came about. */
export const Source = Schema.Literals(["reported", "estimated", "unavailable"]).annotate({
  identifier: "UsageSource",
  description:
    "reported: the harness said so; estimated: worked out by Turnpike or by the harness's price list; unavailable: unknown, and then the figures are absent."
})

/** Input tokens include those read from and written to a cache; output tokens include reasoning. */
export const Tokens = Schema.Struct({
  source: Source,
  input_tokens: Schema.optionalKey(Count).annotate({
    description: "All tokens sent to models, cached ones included."
  }),
  output_tokens: Schema.optionalKey(Count).annotate({
    description: "All tokens that models produced, reasoning included."
  }),
  cache_read_tokens: Schema.optionalKey(Count).annotate({ description: "The part of input_tokens read from a cache." }),
  cache_write_tokens: Schema.optionalKey(Count).annotate({
    description: "The part of input_tokens written to a cache."
  }),
  reasoning_tokens: Schema.optionalKey(Count).annotate({ description: "The part of output_tokens spent on reasoning." })
}).annotate({ identifier: "UsageTokens", description: "Tokens. Subsets never exceed what they are part of." })
export type Tokens = typeof Tokens.Type

export const Cost = Schema.Struct({
  source: Source,
  usd: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))).annotate({
    description: "United States dollars."
  })
}).annotate({ identifier: "UsageCost", description: "Money." })
export type Cost = typeof Cost.Type

export const Usage = Schema.Struct({ tokens: Tokens, cost: Cost }).annotate({
  identifier: "Usage",
  description: "What a turn or a run consumed."
})
export type Usage = typeof Usage.Type

export const unavailable: Usage = { tokens: { source: "unavailable" }, cost: { source: "unavailable" } }
