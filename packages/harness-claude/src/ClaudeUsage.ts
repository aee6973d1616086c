/**
 * What a turn consumed, from Claude Code's result.
 *
 * `model_usage_since_last_result` counts all models and also requests whose
 * answers were cut off, so it comes first; `usage` stands in for it where there
 * is none. Money is always an estimate: Claude Code works it out by its own
 * price list.
 */
import { Usage } from "@turnpike/contract"
import type * as ClaudeWire from "./ClaudeWire.ts"

/** What the stream showed: how many answers of a model began. */
export interface Seen {
  readonly answers: number
}
export const nothingSeen: Seen = { answers: 0 }
export const begun = (seen: Seen): Seen => ({ answers: seen.answers + 1 })

type ResultRecord = typeof ClaudeWire.ResultRecord.Type

const count = (value: number | null | undefined): number => Math.max(0, Math.round(value ?? 0))

const ofModels = (record: ResultRecord): Usage.Usage | undefined => {
  const models = Object.values(record.model_usage_since_last_result ?? {})
  if (models.length === 0) return undefined
  const sum = (pick: (model: (typeof models)[number]) => number | null | undefined) =>
    models.reduce((total, model) => total + count(pick(model)), 0)
  const read = sum((model) => model.cacheReadInputTokens)
  const written = sum((model) => model.cacheCreationInputTokens)
  const costs = models.map((model) => model.costUSD)
  return {
    tokens: {
      source: "reported",
      input_tokens: sum((model) => model.inputTokens) + read + written,
      output_tokens: sum((model) => model.outputTokens),
      cache_read_tokens: read,
      cache_write_tokens: written,
      ...(models.every((model) => model.thinkingTokens != null)
        ? { reasoning_tokens: Math.min(sum((model) => model.thinkingTokens), sum((model) => model.outputTokens)) }
        : {})
    },
    cost: costs.every((cost) => cost != null)
      ? { source: "estimated", usd: Math.max(0, costs.reduce<number>((total, cost) => total + (cost ?? 0), 0)) }
      : { source: "unavailable" }
  }
}

/** `costBefore` is the process's total before this turn. */
export const ofResult = (record: ResultRecord, costBefore: number, seen: Seen): Usage.Usage => {
  const models = ofModels(record)
  if (models !== undefined) return models
  const { usage } = record
  const cost: Usage.Cost = record.total_cost_usd == null
    ? { source: "unavailable" }
    : { source: "estimated", usd: Math.max(0, record.total_cost_usd - costBefore) }
  if (usage == null) return { tokens: { source: "unavailable" }, cost }
  const read = count(usage.cache_read_input_tokens)
  const written = count(usage.cache_creation_input_tokens)
  const input = count(usage.input_tokens) + read + written
  const output = count(usage.output_tokens)
  // Nothing is what it reports also for an answer that was cut off, which did cost something, and for
  // a request that failed, of which it does not know what it cost.
  if (input + output === 0 && (seen.answers > 0 || record.is_error)) return Usage.unavailable
  return {
    tokens: {
      source: "reported",
      input_tokens: input,
      output_tokens: output,
      cache_read_tokens: read,
      cache_write_tokens: written
    },
    cost
  }
}
