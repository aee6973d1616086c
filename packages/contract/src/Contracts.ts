/**
 * The contracts by name: what `schemas/` holds and `turnpike validate` checks.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { AgentRunEvent } from "./AgentRunEvent.ts"
import * as RunEvent from "./AgentRunEvent.ts"
import { AgentRunResult } from "./AgentRunResult.ts"
import { AgentRunSpec } from "./AgentRunSpec.ts"
import { Capabilities } from "./Capabilities.ts"
import * as Failure from "./Failure.ts"
import { rules } from "./StreamRules.ts"
import * as Event from "./TurnEvent.ts"
import { TurnEvent } from "./TurnEvent.ts"
import * as Verdict from "./Verdict.ts"

/** The contract's major version. Within it schemas only grow. */
export const version = "v1"

const schemas = {
  "agent-run-spec": AgentRunSpec,
  "agent-run-event": AgentRunEvent,
  "agent-run-result": AgentRunResult,
  "turn-event": TurnEvent,
  capabilities: Capabilities,
  failure: Failure.Failure,
  verdict: Verdict.Verdict
} as const

export type Name = keyof typeof schemas
export type TypeOf<N extends Name> = (typeof schemas)[N]["Type"]

/** All names, in the order of the documentation. */
export const names = Object.keys(schemas) as ReadonlyArray<Name>

export const isName = (text: string): text is Name => Object.hasOwn(schemas, text)

const strict = { onExcessProperty: "error", errors: "all" } as const

/** Decodes strictly: unknown fields and tags are failures. The failure says where and what, not the value. */
export const decode = <N extends Name>(name: N): (input: unknown) => Result.Result<TypeOf<N>, string> => {
  const decoder = Schema.decodeUnknownResult(schemas[name] as unknown as Schema.Codec<TypeOf<N>>, strict)
  return (input) => Result.mapError(decoder(input), (error) => error.message)
}

/** What a name's JSON Schema says beyond what its type does. */
const amendments: Partial<Record<Name, Record<string, unknown>>> = {
  "agent-run-spec": { oneOf: [{ required: ["harness"] }, { required: ["recipe"] }] }
}

/** The JSON Schema (draft 2020-12) of one contract, complete in itself. */
export const jsonSchema = (name: Name): Record<string, unknown> => {
  const document = Schema.toJsonSchemaDocument(schemas[name], { onExcessProperty: "error" })
  const { schema, definitions } = document
  const ref = (schema as { readonly $ref?: string }).$ref
  const own = ref?.replace("#/$defs/", "")
  const root = own === undefined ? schema : definitions[own]
  const others = Object.fromEntries(
    Object.entries(definitions).filter(([key]) => key !== own).sort(([a], [b]) => (a < b ? -1 : 1))
  )
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: `https://turnpike.dev/schemas/${version}/${name}.schema.json`,
    title: name,
    ...root,
    ...amendments[name],
    ...(Object.keys(others).length === 0 ? {} : { $defs: others })
  }
}

const tags = (members: ReadonlyArray<{ readonly fields: { readonly type: { readonly literal: string } } }>) =>
  members.map((member) => member.fields.type.literal)

/** The words of the contract: what a program in another language enumerates. */
export const meta = (): Record<string, unknown> => ({
  version,
  contracts: names,
  run_event_types: tags(RunEvent.members),
  turn_event_types: [...tags(Event.members), Event.TurnEnd.fields.type.literal],
  stop_reasons: Event.StopReason.literals,
  notice_kinds: Event.NoticeKind.literals,
  abort_causes: Verdict.AbortCause.literals,
  terminal_reasons: Verdict.reasonsByRank,
  exit_codes: {
    "0": "the run finished and its verdict is success",
    "1": "it could not start, or its result could not be written",
    "2": "usage error",
    "3": "the run finished without success; the result says why",
    "130": "cancelled by an interrupt; the result was still written",
    "143": "cancelled by a termination signal; the result was still written"
  },
  failure_codes: Failure.codes,
  stream_rules: rules
})
