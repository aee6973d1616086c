/**
 * What a harness says during one turn.
 *
 * The stream of a turn ends with exactly one {@link TurnEnd} and nothing after
 * it, or it fails, or it is interrupted. `turn/start` and `turn/end` are not
 * among these events: they belong to whoever drives the session.
 *
 * Order within a turn: `session/bound` before anything of the model;
 * `step/start` … `step/end` around each model call that the harness reveals
 * (one around the whole turn otherwise); `tool/call` before its `tool/result`;
 * `permission/request` before its `permission/decision`.
 */
import * as Schema from "effect/Schema"
import * as Failure from "./Failure.ts"
import { CallId, Count, Json, NonEmptyString, Ordinal } from "./Scalars.ts"
import * as Usage from "./Usage.ts"

const event = <const T extends string, F extends Schema.Struct.Fields>(type: T, description: string, data: F) =>
  Schema.Struct({ type: Schema.Literal(type), data: Schema.Struct(data) }).annotate({ description })

/** The source of an event that does not come from the turn's own conversation. */
export const Origin = Schema.Literals(["turn", "background", "subagent"]).annotate({
  identifier: "EventOrigin",
  description:
    "turn: the turn's own conversation; background: a task that outlived the turn that began it; subagent: an agent that the harness itself runs."
})

const origin = Schema.optionalKey(Origin).annotateKey({ description: "Absent means turn." })

export const McpServer = Schema.Struct({
  name: Schema.String,
  status: Schema.String.annotateKey({ description: "In the harness's own words." })
}).annotate({ identifier: "McpServer", description: "An MCP server as the harness reports it at its start." })

/** The harness's process runs and has named its session. Repeated when the harness's id changes. */
export const SessionBound = event("session/bound", "The harness named its session and what is in force.", {
  harness_session_id: NonEmptyString.annotateKey({ description: "The harness's own id of the session." }),
  resumed: Schema.Boolean.annotateKey({ description: "Whether the harness continued a conversation that it already had." }),
  harness_version: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String).annotateKey({ description: "The model in force, as the harness reports it." }),
  tools: Schema.optionalKey(Schema.Array(Schema.String)).annotateKey({
    description: "The tools in force, in the harness's own names, as it reports them. Absent where it reports none."
  }),
  mcp_servers: Schema.optionalKey(Schema.Array(McpServer)),
  cwd: Schema.optionalKey(Schema.String)
})

export const StepStart = event("step/start", "A model call begins.", {
  step: Ordinal.annotateKey({ description: "1 for the turn's first model call." })
})
export const StepEnd = event("step/end", "A model call and the tools that it asked for are over.", { step: Ordinal })

export const AssistantChunk = event("assistant/chunk", "A piece of an answer as it arrives.", {
  kind: Schema.Literals(["text", "reasoning"]),
  text: Schema.String,
  origin
})

export const AssistantMessage = event("assistant/message", "A whole message of the model. It sums up the chunks before it.", {
  text: Schema.String.annotateKey({ description: "The message's text; empty where it only calls tools." }),
  partial: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "True where the message was cut off. Absent means false."
  }),
  origin
})

export const ToolCall = event("tool/call", "The harness runs a tool, or asks to.", {
  call_id: CallId,
  name: NonEmptyString.annotateKey({ description: "In the harness's own words." }),
  input: Schema.optionalKey(Json),
  origin
})

export const ToolResult = event("tool/result", "A tool has ended.", {
  call_id: CallId,
  is_error: Schema.Boolean,
  output: Schema.optionalKey(Schema.String).annotateKey({ description: "What the model was told, bounded." }),
  denied: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "True where the tool did not run because it was not allowed. Absent means false."
  }),
  error_code: Schema.optionalKey(Schema.Literals(["TOOL_NOT_STARTED", "TOOL_OUTCOME_UNKNOWN", "ABORTED_BEFORE_DISPATCH"])).annotateKey({
    description:
      "Where nobody saw the tool end. TOOL_NOT_STARTED: it certainly did not begin; TOOL_OUTCOME_UNKNOWN: it may have done something; ABORTED_BEFORE_DISPATCH: the turn was cancelled before its turn came."
  }),
  origin
})

export const PermissionRequest = event("permission/request", "The harness asks whether a tool may run.", {
  request_id: CallId,
  call_id: Schema.optionalKey(CallId),
  tool_name: NonEmptyString,
  input: Schema.optionalKey(Json),
  description: Schema.optionalKey(Schema.String)
})

export const Decision = Schema.Literals(["allow", "deny", "cancelled"]).annotate({
  identifier: "PermissionOutcome",
  description: "cancelled: the turn ended before anyone answered; the tool did not run."
})

export const PermissionDecision = event("permission/decision", "What was answered to a permission request.", {
  request_id: CallId,
  decision: Decision,
  by: Schema.String.annotateKey({ description: "The policy or person that answered." }),
  reason: Schema.optionalKey(Schema.String)
})

export const UsageReported = event("usage", "What the turn has consumed so far. Each report replaces the one before.", {
  usage: Usage.Usage,
  final: Schema.Boolean.annotateKey({ description: "True where the figures are those of the whole turn." })
})

export const Todo = Schema.Struct({
  content: Schema.String,
  status: Schema.Literals(["pending", "in_progress", "completed"])
}).annotate({ identifier: "Todo", description: "One thing that the agent means to do." })

export const TodoWrite = event("todo/write", "The agent's whole list of things to do; the last one written counts.", {
  todos: Schema.Array(Todo)
})

export const RetryScheduled = event("retry/scheduled", "The harness will send a model request again.", {
  attempt: Ordinal.annotateKey({ description: "1 for the first repetition." }),
  max_attempts: Schema.optionalKey(Ordinal),
  delay_ms: Schema.optionalKey(Count).annotateKey({ description: "Milliseconds until it is sent." }),
  error: Schema.optionalKey(Failure.Failure)
})

export const NoticeKind = Schema.Literals([
  "unparsed_line",
  "oversize_line",
  "unknown_frame",
  "late_frame",
  "rebound",
  "model_differs",
  "tools_differ",
  "mcp_server_failed",
  "fresh_session",
  "replayed",
  "restarted",
  "turn_in_doubt",
  "untested_version",
  "killed_leftovers",
  "teardown_failed",
  "text_lost",
  "harness_note"
]).annotate({
  identifier: "NoticeKind",
  description:
    "unparsed_line: a line of the harness that is not JSON; oversize_line: a line over the bound; unknown_frame: a record of a type that the adapter does not know; late_frame: a record of an earlier turn; rebound: the harness changed its own session id; model_differs, tools_differ: what is in force is not what was asked; mcp_server_failed: an MCP server did not start; fresh_session: the harness's history was gone and the session goes on without it; replayed: the harness's history was gone and a new session of it is told what the log has; restarted: the harness's process was started again; turn_in_doubt: the turn before was cut off, and the harness, which goes on with the session, may not have all of it; untested_version: the harness's version is outside the tested range; killed_leftovers: processes of the turn were killed; teardown_failed: closing the session failed; text_lost: bytes were dropped; harness_note: a remark of the harness's own."
})
export type NoticeKind = typeof NoticeKind.Type

export const Notice = event("notice", "Something worth knowing that is neither an answer nor a failure.", {
  kind: NoticeKind,
  message: Schema.String,
  bytes_base64: Schema.optionalKey(Schema.String).annotateKey({
    description: "The bytes that could not be understood, bounded, credentials removed."
  }),
  raw: Schema.optionalKey(Json).annotateKey({ description: "The record that could not be understood, credentials removed." })
})

export const BackgroundTask = Schema.Struct({
  id: NonEmptyString,
  description: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "BackgroundTask", description: "A task that the harness declares to go on after its turn." })
export type BackgroundTask = typeof BackgroundTask.Type

export const Denial = Schema.Struct({
  tool_name: NonEmptyString,
  call_id: Schema.optionalKey(CallId),
  input: Schema.optionalKey(Json)
}).annotate({ identifier: "Denial", description: "A tool that did not run because it was not allowed." })
export type Denial = typeof Denial.Type

/** The harness's own ending of its turn. */
export const StopReason = Schema.Literals(["completed", "max-tokens", "max-turns", "refusal", "aborted"]).annotate({
  identifier: "StopReason",
  description: "How the harness says that its turn ended."
})
export type StopReason = typeof StopReason.Type

export const TurnEnd = event("harness/end", "The harness's own ending of its turn: the last event of the turn, with the evidence.", {
  stop_reason: StopReason,
  text: Schema.String.annotateKey({ description: "The final answer, whole and unchanged; may be empty." }),
  worked: Schema.Boolean.annotateKey({ description: "Whether the turn did anything besides answering, such as running a tool." }),
  denials: Schema.Array(Denial),
  background: Schema.Array(BackgroundTask).annotateKey({ description: "Tasks that still run." }),
  exit_code: Schema.optionalKey(Schema.Int).annotateKey({
    description: "Exit code of the harness's process where it ended by itself after its last record."
  }),
  harness_reason: Schema.optionalKey(Schema.String).annotateKey({ description: "The ending in the harness's own words." })
})
export type TurnEnd = typeof TurnEnd.Type

/** Every event that may stand before the ending. */
export const members = [
  SessionBound,
  StepStart,
  StepEnd,
  AssistantChunk,
  AssistantMessage,
  ToolCall,
  ToolResult,
  PermissionRequest,
  PermissionDecision,
  UsageReported,
  TodoWrite,
  RetryScheduled,
  Notice
] as const

export const TurnEvent = Schema.Union([...members, TurnEnd]).annotate({
  identifier: "TurnEvent",
  description: "What a harness says during one turn. The last one is harness/end."
})
export type TurnEvent = typeof TurnEvent.Type

/** Narrows a turn event to one type. */
export type Of<T extends TurnEvent["type"]> = Extract<TurnEvent, { readonly type: T }>

export const make = <const T extends TurnEvent["type"]>(type: T, data: Of<T>["data"]): Of<T> => ({ type, data }) as Of<T>

/** The event with its origin, unless it names one; unchanged where its type has none. */
export const from = (event: TurnEvent, origin: typeof Origin.Type): TurnEvent => {
  switch (event.type) {
    case "assistant/chunk":
      return { ...event, data: { origin, ...event.data } }
    case "assistant/message":
      return { ...event, data: { origin, ...event.data } }
    case "tool/call":
      return { ...event, data: { origin, ...event.data } }
    case "tool/result":
      return { ...event, data: { origin, ...event.data } }
    default:
      return event
  }
}
