/**
 * Valid values of every contract, at random.
 *
 * Schemas generate themselves, but for two of them whose fields would hardly
 * ever agree by chance: a spec has exactly one of harness and recipe, and a
 * result's four ways to say "success" are made of one verdict.
 */
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { AgentRunEvent, AgentRunResult, AgentRunSpec, Contracts, Scalars, Verdict } from "@turnpike/contract"

const { harness: _harness, recipe: _recipe, ...specFields } = AgentRunSpec.AgentRunSpec.fields

export const spec: Arbitrary.Arbitrary<AgentRunSpec.AgentRunSpec> = Arbitrary.map(
  Arbitrary.all([
    Arbitrary.schema(Schema.Struct(specFields)),
    Arbitrary.schema(Schema.Literals(["harness", "recipe"])),
    Arbitrary.schema(Scalars.NonEmptySystemString)
  ] as const),
  ([rest, field, name]) => ({ ...rest, [field]: name })
)

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
      return spec
    case "inbox-entry":
    case "session-event":
    case "session-header":
    case "turn-event":
    case "capabilities":
    case "failure":
    case "verdict":
      // A union of schemas has no single type of value; the generator only needs one schema.
      return Arbitrary.schema(Contracts.schema(name) as Schema.Codec<unknown, unknown>)
  }
}
