/**
 * The scripted agent's own protocol, version 1: one JSON object a line.
 *
 * The owner writes `open` and gets `opened` or `refused`. Then it writes
 * prompts, each with an id of its own; every frame of a turn carries the id of
 * its prompt in `turn`, and a turn ends with one `end` or `fail`. The turn of an
 * empty id is one that the agent begins by itself while no other runs. `opened` is
 * said again when the agent changes its session's id. `background` belongs to
 * no turn. The end of input asks the agent to end once its turn has.
 */
import { Failure, Scalars, TurnEvent } from "@turnpike/contract"
import * as Schema from "effect/Schema"

export const protocol = 1

const frame = <const T extends string, F extends Schema.Struct.Fields>(type: T, fields: F) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })
const turn = Schema.String.annotate({ description: "The id of the prompt; empty for a turn that the agent begins by itself." })

/** What the agent is told. */
export const Command = Schema.Union([
  frame("open", {
    protocol: Scalars.Count,
    model: Schema.optionalKey(Schema.String),
    system: Schema.optionalKey(Schema.String),
    tools: Schema.optionalKey(Schema.Array(Schema.String)).annotate({ description: "The tools that may run unasked. Absent means all." })
  }),
  frame("prompt", { id: Schema.String, text: Schema.String }),
  frame("interrupt", {}),
  frame("answer", { id: Schema.String, allow: Schema.Boolean, reason: Schema.String })
])
export type Command = typeof Command.Type

const Denied = Schema.Struct({ call_id: Scalars.CallId, name: Scalars.NonEmptyString, input: Scalars.Json })

/** What the agent says. */
export const Frame = Schema.Union([
  frame("opened", {
    protocol: Scalars.Count,
    version: Schema.String,
    session_id: Scalars.NonEmptyString,
    resumed: Schema.Boolean,
    model: Schema.String,
    tools: Schema.Array(Schema.String),
    mcp_servers: Schema.optionalKey(Schema.Array(TurnEvent.McpServer)),
    cwd: Schema.String
  }),
  frame("refused", { why: Schema.Literals(["unknown", "in_use"]), message: Schema.String }),
  frame("started", { turn }),
  frame("text_delta", { turn, text: Schema.String }),
  frame("reasoning_delta", { turn, text: Schema.String }),
  frame("message", { turn, text: Schema.String }),
  frame("tool_call", { turn, id: Scalars.CallId, name: Scalars.NonEmptyString, input: Scalars.Json }),
  frame("tool_result", {
    turn,
    id: Scalars.CallId,
    output: Schema.String,
    is_error: Schema.Boolean,
    denied: Schema.optionalKey(Schema.Literal(true))
  }),
  frame("ask", {
    turn,
    id: Scalars.CallId,
    call_id: Scalars.CallId,
    name: Scalars.NonEmptyString,
    input: Scalars.Json,
    description: Schema.optionalKey(Schema.String)
  }),
  frame("usage", {
    turn,
    input_tokens: Scalars.Count,
    output_tokens: Scalars.Count,
    cache_read_tokens: Schema.optionalKey(Scalars.Count),
    cache_write_tokens: Schema.optionalKey(Scalars.Count),
    cost_usd: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))
  }),
  frame("todo", { turn, todos: Schema.Array(TurnEvent.Todo) }),
  frame("retry", {
    turn,
    attempt: Scalars.Count,
    max_attempts: Scalars.Count,
    delay_ms: Scalars.Count,
    http_status: Schema.optionalKey(Scalars.Count)
  }),
  frame("note", { turn, text: Schema.String }),
  frame("background", { tasks: Schema.Array(TurnEvent.BackgroundTask) }),
  frame("end", { turn, reason: TurnEvent.StopReason, text: Schema.String, denials: Schema.Array(Denied) }),
  frame("fail", { turn, code: Failure.FailureCode, message: Scalars.NonEmptyString, http_status: Schema.optionalKey(Scalars.Count) })
])
export type Frame = typeof Frame.Type
export type Opened = Extract<Frame, { readonly type: "opened" }>

/** Decodes a frame. Fields that the frame does not have are a mistake. */
export const decode = Schema.decodeUnknownResult(Frame, { onExcessProperty: "error" })

/** Whether a turn waits for a frame that begins like this: its ending, or a request for permission. */
export const needed = ({ type }: { readonly [key: string]: Schema.Json }): boolean => type === "end" || type === "fail" || type === "ask"
