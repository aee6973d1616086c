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
import * as Inbox from "./InboxEntry.ts"
import { parseJson } from "./internal/jsonText.ts"
import { type Fault, format, strictDecoder } from "./internal/strictDecoder.ts"
import * as Log from "./SessionEvent.ts"
import { SessionHeader } from "./SessionHeader.ts"
import { rules } from "./StreamRules.ts"
import * as Event from "./TurnEvent.ts"
import { TurnEvent } from "./TurnEvent.ts"
import * as Verdict from "./Verdict.ts"

export { repeatedKey } from "./internal/jsonText.ts"
export { type Fault, format, isDeeperThan, maxDepth } from "./internal/strictDecoder.ts"

/** The contract's major version. Within it schemas only grow. */
export const version = "v1"

const schemas = {
  "agent-run-spec": AgentRunSpec,
  "agent-run-event": AgentRunEvent,
  "agent-run-result": AgentRunResult,
  "session-event": Log.SessionEvent,
  "session-header": SessionHeader,
  "inbox-entry": Inbox.InboxEntry,
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

/** The schema of a contract, for those who use Effect. */
export const schema = <N extends Name>(name: N): (typeof schemas)[N] => schemas[name]

/**
 * Makes a decoder that refuses unknown fields, unknown tags, and JSON nested
 * deeper than `maxDepth`. All faults are found, not the first alone.
 */
export const check = <N extends Name>(
  name: N
): (input: unknown) => Result.Result<TypeOf<N>, ReadonlyArray<Fault>> =>
  // The compiler does not see that the schema of a name has that name's type.
  strictDecoder(schemas[name] as unknown as Schema.Codec<TypeOf<N>, unknown>)

/** As {@link check}, with the faults said in one line. The line says where and what, not the value. */
export const decode = <N extends Name>(name: N): (input: unknown) => Result.Result<TypeOf<N>, string> => {
  const decoder = check(name)
  return (input) => Result.mapError(decoder(input), format)
}

/** A fault in a text. */
export interface TextFault extends Fault {
  /** From 1; in a text of one JSON value the line where parsing stopped, or 1. */
  readonly line: number
}

/** What was found in a text. */
export interface TextReport {
  /** How many JSON values were looked at, good or bad. */
  readonly values: number
  readonly faults: ReadonlyArray<TextFault>
}

export interface TextOptions {
  /** Whether each line is a JSON value of its own (JSONL). Blank lines are faults; one final line feed is not a line. */
  readonly lines: boolean
}

/**
 * Begins to check JSONL line by line, for texts that are too long to hold.
 * Give each line without its line feed, and none for a final line feed.
 */
export const lineChecker = (name: Name): (line: string) => ReadonlyArray<TextFault> => {
  const checkText = textChecker(name)
  let line = 0
  return (text) => checkText(text, ++line)
}

const textChecker = (name: Name) => {
  const decoder = check(name)
  return (json: string, line: number): ReadonlyArray<TextFault> => {
    const parsed = parseJson(json)
    if (Result.isFailure(parsed)) {
      return [{ line: line + parsed.failure.line - 1, path: "", message: parsed.failure.message }]
    }
    const decoded = decoder(parsed.success)
    return Result.isFailure(decoded) ? decoded.failure.map((fault) => ({ line, ...fault })) : []
  }
}

/** Checks a text of JSON or JSONL against a contract. An empty JSONL text has no values and no faults. */
export const validateText = (name: Name, text: string, options: TextOptions): TextReport => {
  if (!options.lines) return { values: 1, faults: textChecker(name)(text, 1) }
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  const checkLine = lineChecker(name)
  return { values: lines.length, faults: lines.flatMap((line) => checkLine(line)) }
}

type JsonObject = { readonly [key: string]: unknown }

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Makes a generated schema shorter and portable.
 *
 * A reference and its field's description become one object instead of an
 * `allOf` of two. Names under a pattern may not hold a line feed, because
 * Python's `$` also matches before a final one.
 */
const tidy = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(tidy)
  if (!isObject(value)) return value
  const object: JsonObject = {
    ...Object.fromEntries(Object.entries(value).map(([key, child]) => [key, tidy(child)])),
    ...("patternProperties" in value ? { propertyNames: { type: "string", not: { pattern: "\\n" } } } : {})
  }
  const { allOf, ...rest } = object
  if (!Array.isArray(allOf)) return object
  const parts: ReadonlyArray<unknown> = allOf
  const described = parts.filter((part): part is JsonObject => isObject(part) && Object.keys(part).join() === "description")
  const others = parts.filter((part) => !described.includes(part as JsonObject))
  const [only, ...more] = others
  const merged = more.length === 0 && isObject(only) && !Object.keys(only).some((key) => key in rest)
    ? { ...rest, ...only }
    : { ...rest, ...(others.length === 0 ? {} : { allOf: others }) }
  return Object.assign(merged, ...described)
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
    ...(tidy(root) as JsonObject),
    ...(Object.keys(others).length === 0 ? {} : { $defs: tidy(others) })
  }
}

const tags = (members: ReadonlyArray<{ readonly fields: { readonly type: { readonly literal: string } } }>) =>
  members.map((member) => member.fields.type.literal)

/** The words of the contract: what a program in another language enumerates. */
export const meta = (): Record<string, unknown> => ({
  version,
  contracts: names,
  run_event_types: tags(RunEvent.members),
  session_event_types: tags(Log.bodies),
  inbox_entry_types: tags(Inbox.members),
  turn_event_types: [...tags(Event.members), Event.TurnEnd.fields.type.literal],
  verdict_types: Verdict.Verdict.members.map((member) => member.fields.type.literal),
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
