/**
 * What a run says while it runs, one JSON object a line.
 *
 * `seq` starts at 0 and has no gaps; `run_id` is the same on every line. The
 * last event of a run's life is its one `session_end`; only a `result`, which
 * delivers what was found, may follow it.
 */
import * as Schema from "effect/Schema"
import { AgentRunOutcome, AgentRunResult, ProcessInfo } from "./AgentRunResult.ts"
import { Capabilities } from "./Capabilities.ts"
import { Failure } from "./Failure.ts"
import { CallId, Count, Json, NonEmptyString, Ordinal, RunId, SessionId, Timestamp, UsDollars } from "./Scalars.ts"
import { Trigger } from "./SessionEvent.ts"
import { Decision, McpServer, NoticeKind, Origin } from "./TurnEvent.ts"
import { partsWithinWhole } from "./Usage.ts"
import { TerminalReason, Verdict } from "./Verdict.ts"

const envelope = { run_id: RunId, seq: Count.annotateKey({ description: "From 0, without gaps." }), ts: Timestamp }

const event = <const T extends string, F extends Schema.Struct.Fields>(type: T, description: string, payload: F) =>
  Schema.Struct({ ...envelope, type: Schema.Literal(type), ...payload }).annotate({ description })

export const ToolKind = Schema.Literals(["tool", "phase"]).annotate({
  identifier: "ToolKind",
  description: "tool: a tool of the harness; phase: a part of the run itself (provision, launch, submit, await, capture)."
})

const origin = Schema.optionalKey(Origin).annotateKey({ description: "Absent means turn." })

export const SessionStart = event("session_start", "The session is open.", {
  session_id: SessionId,
  harness: NonEmptyString,
  harness_session_id: Schema.optionalKey(NonEmptyString),
  harness_version: Schema.optionalKey(Schema.String),
  turnpike_version: NonEmptyString,
  resumed: Schema.Boolean,
  cwd: Schema.String,
  model: Schema.optionalKey(Schema.String).annotateKey({ description: "The model in force, as the harness reports it." }),
  tools: Schema.optionalKey(Schema.Array(Schema.String)).annotateKey({
    description: "The tools in force, in the harness's own names. Absent where it reports none."
  }),
  mcp_servers: Schema.optionalKey(Schema.Array(McpServer)),
  capabilities: Capabilities
})

export const TurnStart = event("turn_start", "A turn begins.", {
  turn: Ordinal.annotateKey({ description: "1 for the session's first turn." }),
  trigger: Schema.optionalKey(Trigger).annotateKey({
    description: "Why it began: a prompt and who wrote it, or the harness by itself. In a conversation others may write prompts, too."
  })
})
export const TurnEnd = event("turn_end", "The turn has ended.", { turn: Ordinal, verdict: Verdict })
export const TextDelta = event("text_delta", "A piece of the answer.", { text: Schema.String, origin })
export const ReasoningDelta = event("reasoning_delta", "A piece of the model's reasoning.", { text: Schema.String, origin })
export const Message = event("message", "A whole message of the model; it sums up the text_delta events before it.", {
  text: Schema.String,
  partial: Schema.optionalKey(Schema.Boolean).annotateKey({ description: "True where it was cut off. Absent means false." }),
  origin
})
export const ToolStart = event("tool_start", "A tool or a phase begins.", {
  kind: ToolKind,
  call_id: CallId,
  tool_name: NonEmptyString,
  tool_input: Schema.optionalKey(Json),
  origin
})
export const ToolEnd = event("tool_end", "The tool or phase with the same call_id has ended.", {
  kind: ToolKind,
  call_id: CallId,
  tool_name: NonEmptyString,
  success: Schema.Boolean,
  output_summary: Schema.optionalKey(Schema.String).annotateKey({ description: "What came of it, bounded." }),
  denied: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "True where the tool did not run because it was not allowed. Absent means false."
  }),
  origin
})
export const TokenUsage = event("token_usage", "What the turn has consumed so far. The last one counts.", {
  input_tokens: Count,
  output_tokens: Count,
  cache_read_tokens: Schema.optionalKey(Count),
  cache_write_tokens: Schema.optionalKey(Count),
  cost_usd: Schema.optionalKey(UsDollars),
  final: Schema.Boolean.annotateKey({ description: "True where the figures are those of the whole turn." })
}).check(partsWithinWhole)
export const PermissionRequest = event("permission_request", "The harness asks whether a tool may run.", {
  request_id: CallId,
  call_id: Schema.optionalKey(CallId),
  tool_name: NonEmptyString,
  tool_input: Schema.optionalKey(Json),
  description: Schema.optionalKey(Schema.String)
})
export const PermissionDecision = event("permission_decision", "What was answered.", {
  request_id: CallId,
  decision: Decision,
  by: Schema.String,
  reason: Schema.optionalKey(Schema.String)
})
export const Notice = event("notice", "Something worth knowing that is neither an answer nor a failure.", {
  kind: Schema.Union([NoticeKind, Schema.Literals(["retry", "todo"])]),
  message: Schema.String,
  bytes_base64: Schema.optionalKey(Schema.String),
  raw: Schema.optionalKey(Json),
  error: Schema.optionalKey(Failure),
  processes: Schema.optionalKey(Schema.Array(ProcessInfo))
})
/** The outcome's success and the reason are one fact said twice. */
const successMeansReason = Schema.makeFilter<{ readonly outcome: AgentRunOutcome; readonly reason: TerminalReason }>(
  ({ outcome, reason }) =>
    outcome.success === (reason === "success")
      ? undefined
      : { path: ["reason"], issue: "Expected success exactly where outcome.success is true" },
  {
    toJsonSchema: () => [{
      if: {
        type: "object",
        properties: { outcome: { type: "object", properties: { success: { const: true } } } }
      },
      then: { properties: { reason: { const: "success" } } },
      else: { properties: { reason: { not: { const: "success" } } } }
    }, true]
  }
)

export const SessionEnd = event("session_end", "The run is over. Nothing but a result may follow.", {
  outcome: AgentRunOutcome,
  reason: TerminalReason
}).check(successMeansReason)
export const Result = event("result", "Delivers what came of the run.", { result: AgentRunResult })

export const members = [
  SessionStart,
  TurnStart,
  TurnEnd,
  TextDelta,
  ReasoningDelta,
  Message,
  ToolStart,
  ToolEnd,
  TokenUsage,
  PermissionRequest,
  PermissionDecision,
  Notice,
  SessionEnd,
  Result
] as const

export const AgentRunEvent = Schema.Union(members).annotate({
  identifier: "AgentRunEvent",
  description: "One line of what a run says."
})
export type AgentRunEvent = typeof AgentRunEvent.Type

/** Narrows a run event to one type. */
export type Of<T extends AgentRunEvent["type"]> = Extract<AgentRunEvent, { readonly type: T }>

type WithoutEnvelope<E> = E extends unknown ? Omit<E, "run_id" | "seq" | "ts"> : never

/** A run event before it has its place in the stream. */
export type Payload = WithoutEnvelope<AgentRunEvent>
