/**
 * Valid values of every contract, at random.
 *
 * Schemas generate themselves, but for results: their four ways to say
 * "success" would hardly ever agree by chance, so they are made of a verdict.
 */
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { AgentRunEvent, AgentRunResult, Contracts, Verdict } from "@turnpike/contract"

const parts = Schema.Struct(AgentRunResult.AgentRunResult.fields)

export const result: Arbitrary.Arbitrary<AgentRunResult.AgentRunResult> = Arbitrary.map(
  Arbitrary.all([Arbitrary.schema(parts), Arbitrary.schema(Verdict.Verdict)] as const),
  ([rest, verdict]) => {
    const { reason, success } = Verdict.consequences(verdict)
    return {
      ...rest,
      result: { success, summary: rest.result.summary },
      reason,
      verdict,
      error: Verdict.failureOf(verdict) ?? null
    }
  }
)

const withoutResult = Schema.Union(AgentRunEvent.members.filter((member) => member !== AgentRunEvent.Result))

export const runEvent: Arbitrary.Arbitrary<AgentRunEvent.AgentRunEvent> = Arbitrary.map(
  Arbitrary.all([Arbitrary.schema(withoutResult), result, Arbitrary.schema(Schema.Int)] as const),
  ([event, result, choice]) =>
    choice % 8 === 0 ? { run_id: event.run_id, seq: event.seq, ts: event.ts, type: "result", result } : event
)

/** Valid values of one contract. */
export const of = (name: Contracts.Name): Arbitrary.Arbitrary<unknown> => {
  switch (name) {
    case "agent-run-event":
      return runEvent
    case "agent-run-result":
      return result
    case "agent-run-spec":
    case "session-event":
    case "turn-event":
    case "capabilities":
    case "failure":
    case "verdict":
      // A union of schemas has no single type of value; the generator only needs one schema.
      return Arbitrary.schema(Contracts.schema(name) as Schema.Codec<unknown, unknown>)
  }
}
