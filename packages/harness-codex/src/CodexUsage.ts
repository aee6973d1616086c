/**
 * What a turn consumed, from the running totals of its thread.
 *
 * Each report carries the thread's total and the last answer's share. The turn's
 * figures are the total of its last report less what the thread had consumed
 * before its first one, so a report that comes twice counts once. Codex names no
 * money.
 */
import { Usage } from "@turnpike/contract"
import type * as CodexWire from "./CodexWire.ts"

type Report = Extract<CodexWire.Message, { readonly kind: "thread/tokenUsage/updated" }>["params"]["tokenUsage"]

export interface Seen {
  readonly first: Report | undefined
  readonly latest: Report | undefined
}
export const nothingSeen: Seen = { first: undefined, latest: undefined }
export const seen = (self: Seen, report: Report): Seen => ({ first: self.first ?? report, latest: report })

/** The turn's usage so far; unavailable where nothing was reported. */
export const ofTurn = ({ first, latest }: Seen): Usage.Usage => {
  if (first === undefined || latest === undefined) return Usage.unavailable
  const since = (pick: (counts: Report["total"]) => number | null | undefined): number =>
    Math.max(0, Math.round((pick(latest.total) ?? 0) - (pick(first.total) ?? 0) + (pick(first.last) ?? 0)))
  const input = since((counts) => counts.inputTokens)
  const output = since((counts) => counts.outputTokens)
  // Codex reports nothing as 0, of an answer that was cut at its limit for one (0.171.0).
  if (input + output === 0) return Usage.unavailable
  const read = since((counts) => counts.cachedInputTokens)
  const written = since((counts) => counts.cacheWriteInputTokens)
  const reasoning = since((counts) => counts.reasoningOutputTokens)
  return {
    tokens: {
      source: "reported",
      input_tokens: input,
      output_tokens: output,
      // A part that is more than its whole is a mistake of the reporter's, and is left out.
      ...(read + written <= input ? { cache_read_tokens: read, cache_write_tokens: written } : {}),
      ...(reasoning <= output ? { reasoning_tokens: reasoning } : {})
    },
    cost: { source: "unavailable" }
  }
}
