/**
 * Tokens and money, with how far each figure can be trusted.
 *
 * A figure that nobody reported is `unavailable` and absent; it is never 0.
 */
import * as Schema from "effect/Schema"
import { Count, UsDollars } from "./Scalars.ts"

/** How a figure came about. */
export const Source = Schema.Literals(["reported", "estimated", "unavailable"]).annotate({
  identifier: "UsageSource",
  description:
    "reported: the harness said so; estimated: worked out by Turnpike or by the harness's price list; unavailable: unknown, and then the figures are absent."
})

/** `unavailable` and figures exclude each other; a source without a figure is no source. */
const figuresMatchSource = Schema.makeFilter<{ readonly source: string }>(
  (figures) => {
    const some = Object.keys(figures).length > 1
    if (figures.source === "unavailable") return some ? "Expected no figures where the source is unavailable" : undefined
    return some ? undefined : "Expected at least one figure where the source is reported or estimated"
  },
  {
    toJsonSchema: () => [{
      if: { type: "object", properties: { source: { const: "unavailable" } } },
      then: { maxProperties: 1 },
      else: { minProperties: 2 }
    }, true]
  }
)

interface TokenFigures {
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly cache_read_tokens?: number
  readonly cache_write_tokens?: number
  readonly reasoning_tokens?: number
}

/** A part is never more than its whole. JSON Schema cannot compare two numbers. */
export const partsWithinWhole = Schema.makeFilter<TokenFigures>(
  (figures) => {
    const cached = (figures.cache_read_tokens ?? 0) + (figures.cache_write_tokens ?? 0)
    if (figures.input_tokens !== undefined && cached > figures.input_tokens) {
      return { path: ["input_tokens"], issue: "Expected at least cache_read_tokens and cache_write_tokens together" }
    }
    if (figures.output_tokens !== undefined && (figures.reasoning_tokens ?? 0) > figures.output_tokens) {
      return { path: ["output_tokens"], issue: "Expected at least reasoning_tokens" }
    }
    return undefined
  },
  { toJsonSchema: () => [{}, true] }
)

/** Input tokens include those read from and written to a cache; output tokens include reasoning. */
export const Tokens = Schema.Struct({
  source: Source,
  input_tokens: Schema.optionalKey(Count).annotateKey({
    description: "All tokens sent to models, cached ones included."
  }),
  output_tokens: Schema.optionalKey(Count).annotateKey({
    description: "All tokens that models produced, reasoning included."
  }),
  cache_read_tokens: Schema.optionalKey(Count).annotateKey({ description: "The part of input_tokens read from a cache." }),
  cache_write_tokens: Schema.optionalKey(Count).annotateKey({
    description: "The part of input_tokens written to a cache."
  }),
  reasoning_tokens: Schema.optionalKey(Count).annotateKey({
    description: "The part of output_tokens spent on reasoning."
  })
}).check(figuresMatchSource, partsWithinWhole).annotate({
  identifier: "UsageTokens",
  description: "Tokens. Parts never exceed what they are part of."
})
export type Tokens = typeof Tokens.Type

export const Cost = Schema.Struct({
  source: Source,
  usd: Schema.optionalKey(UsDollars)
}).check(figuresMatchSource).annotate({ identifier: "UsageCost", description: "Money." })
export type Cost = typeof Cost.Type

export const Usage = Schema.Struct({ tokens: Tokens, cost: Cost }).annotate({
  identifier: "Usage",
  description: "What a turn or a run consumed."
})
export type Usage = typeof Usage.Type

/** What is known of two amounts together; a figure that one of them lacks is not known of both. */
const both = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? undefined : one + other

const sourceOf = (one: typeof Source.Type, other: typeof Source.Type): typeof Source.Type =>
  one === "unavailable" || other === "unavailable" ? "unavailable" : one === "estimated" || other === "estimated" ? "estimated" : "reported"

/** Figures with their source; without any nothing is known. */
const known = <F extends Readonly<Record<string, number | undefined>>>(source: typeof Source.Type, figures: F) => {
  const given = Object.entries(figures).filter(([, value]) => value !== undefined)
  return source === "unavailable" || given.length === 0
    ? { source: "unavailable" } as const
    : { source, ...Object.fromEntries(given) as { readonly [k in keyof F]?: number } }
}

/** Two usages together. A figure that one of them lacks is left out; where none is left the sum is not available. */
export const sum = (one: Usage, other: Usage): Usage => ({
  tokens: known(sourceOf(one.tokens.source, other.tokens.source), {
    input_tokens: both(one.tokens.input_tokens, other.tokens.input_tokens),
    output_tokens: both(one.tokens.output_tokens, other.tokens.output_tokens),
    cache_read_tokens: both(one.tokens.cache_read_tokens, other.tokens.cache_read_tokens),
    cache_write_tokens: both(one.tokens.cache_write_tokens, other.tokens.cache_write_tokens),
    reasoning_tokens: both(one.tokens.reasoning_tokens, other.tokens.reasoning_tokens)
  }),
  cost: known(sourceOf(one.cost.source, other.cost.source), { usd: both(one.cost.usd, other.cost.usd) })
})

export const unavailable: Usage = { tokens: { source: "unavailable" }, cost: { source: "unavailable" } }
