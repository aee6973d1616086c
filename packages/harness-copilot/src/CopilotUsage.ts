/**
 * What a turn consumed: the sum of what Copilot reports after each model call,
 * those of subagents included.
 *
 * A call that was cut off is reported by nobody; a turn of which nothing was
 * reported is unavailable. Copilot counts premium requests and never money.
 */
import { Usage } from "@turnpike/contract"
import type * as CopilotWire from "./CopilotWire.ts"

export interface Sum {
  /** Calls that were reported with their tokens. */
  readonly calls: number
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  /** Undefined where one of the calls did not tell. */
  readonly reasoning: number | undefined
}

export const nothing: Sum = { calls: 0, input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }

const count = (value: number | null | undefined): number => Math.max(0, Math.round(value ?? 0))

/** Adds one report; a report without tokens adds nothing. */
export const add = (sum: Sum, report: typeof CopilotWire.Usage.Type): Sum => {
  if (report.inputTokens == null && report.outputTokens == null) return sum
  const read = count(report.cacheReadTokens)
  const written = count(report.cacheWriteTokens)
  const output = count(report.outputTokens)
  return {
    calls: sum.calls + 1,
    input: sum.input + Math.max(count(report.inputTokens), read + written),
    output: sum.output + output,
    cacheRead: sum.cacheRead + read,
    cacheWrite: sum.cacheWrite + written,
    reasoning: sum.reasoning === undefined || report.reasoningTokens == null
      ? undefined
      : sum.reasoning + Math.min(count(report.reasoningTokens), output)
  }
}

export const toUsage = (sum: Sum): Usage.Usage =>
  sum.calls === 0 ? Usage.unavailable : {
    tokens: {
      source: "reported",
      input_tokens: sum.input,
      output_tokens: sum.output,
      cache_read_tokens: sum.cacheRead,
      cache_write_tokens: sum.cacheWrite,
      ...(sum.reasoning === undefined ? {} : { reasoning_tokens: sum.reasoning })
    },
    cost: { source: "unavailable" }
  }
