/**
 * Claude Code's words: the lines of `claude -p --input-format stream-json
 * --output-format stream-json --verbose --include-partial-messages`.
 *
 * Names and casing are Claude Code's. Observed in 2.1.332 and, where it differs,
 * 2.1.197; recordings of both are in `test/fixtures/claude/`, by version. Fields
 * that are not named here are ignored, and a record that does not fit is not
 * guessed at: {@link read} says that it is unknown.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** A field that is absent, null, or there. */
const maybe = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const record = <const Type extends string, const Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })
const system = <const Subtype extends string, const Fields extends Schema.Struct.Fields>(subtype: Subtype, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal("system"), subtype: Schema.Literal(subtype), ...fields })

const Tokens = Schema.Struct({
  input_tokens: maybe(Schema.Finite),
  cache_creation_input_tokens: maybe(Schema.Finite),
  cache_read_input_tokens: maybe(Schema.Finite),
  output_tokens: maybe(Schema.Finite)
})

/** What one model consumed. `costUSD` is worked out from Claude Code's own price list. */
const ModelUsage = Schema.Struct({
  inputTokens: Schema.Finite,
  outputTokens: Schema.Finite,
  cacheReadInputTokens: Schema.Finite,
  cacheCreationInputTokens: Schema.Finite,
  thinkingTokens: maybe(Schema.Finite),
  costUSD: maybe(Schema.Finite)
})

/** Comes at the beginning of each turn, also of a turn that Claude Code begins on its own account. */
export const Init = system("init", {
  session_id: Schema.String,
  cwd: maybe(Schema.String),
  tools: maybe(Schema.Array(Schema.String)),
  mcp_servers: maybe(Schema.Array(Schema.Struct({ name: Schema.String, status: Schema.String }))),
  model: maybe(Schema.String),
  permissionMode: maybe(Schema.String),
  claude_code_version: maybe(Schema.String)
})

/** `error_status` is null where no HTTP answer came. The delay is Claude Code's own, not the service's. */
export const ApiRetry = system("api_retry", {
  attempt: Schema.Finite,
  max_retries: maybe(Schema.Finite),
  retry_delay_ms: maybe(Schema.Finite),
  error_status: maybe(Schema.Finite),
  error: maybe(Schema.String)
})

export const PermissionDenied = system("permission_denied", {
  tool_name: Schema.String,
  tool_use_id: maybe(Schema.String),
  message: maybe(Schema.String)
})

/** The whole list, whenever it changes. */
export const BackgroundTasksChanged = system("background_tasks_changed", {
  tasks: Schema.Array(Schema.Struct({ task_id: Schema.String, description: maybe(Schema.String) }))
})

/** A background task has ended. Claude Code then begins a turn of its own. */
export const TaskNotification = system("task_notification", { task_id: Schema.String, status: maybe(Schema.String) })

export const Informational = system("informational", { content: Schema.String, level: maybe(Schema.String) })

export const Refused = system("model_refusal_no_fallback", { content: maybe(Schema.String) })

/** Claude Code takes another model than the one that was asked for. */
export const ModelFallback = system("model_fallback", {})

const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
const ThinkingBlock = Schema.Struct({ type: Schema.Literal("thinking"), thinking: Schema.String })
const ToolUseBlock = Schema.Struct({
  type: Schema.Literal("tool_use"),
  id: Schema.String,
  name: Schema.String,
  input: Schema.optionalKey(Schema.Json)
})
const ToolResultBlock = Schema.Struct({
  type: Schema.Literal("tool_result"),
  tool_use_id: Schema.String,
  content: Schema.optionalKey(Schema.Json),
  is_error: maybe(Schema.Boolean)
})
const OtherBlock = Schema.Struct({ type: Schema.String })

/**
 * One content block of a message; the blocks of one message share its id. The
 * model `<synthetic>` is Claude Code itself: `error` then says what went wrong.
 */
export const Assistant = record("assistant", {
  message: Schema.Struct({
    id: Schema.String,
    model: maybe(Schema.String),
    content: Schema.Array(Schema.Union([TextBlock, ThinkingBlock, ToolUseBlock, OtherBlock]))
  }),
  parent_tool_use_id: maybe(Schema.String),
  error: maybe(Schema.String),
  api_error: maybe(Schema.String),
  api_error_status: maybe(Schema.Finite),
  is_api_error_message: maybe(Schema.Boolean),
  aborted: maybe(Schema.Boolean)
})

/** What the model is told: results of tools, or text of Claude Code's own. `tool_result_meta` came between 2.1.197 and 2.1.332. */
export const User = record("user", {
  message: Schema.Struct({
    content: Schema.Union([Schema.String, Schema.Array(Schema.Union([TextBlock, ToolResultBlock, OtherBlock]))])
  }),
  parent_tool_use_id: maybe(Schema.String),
  isReplay: maybe(Schema.Boolean),
  isSynthetic: maybe(Schema.Boolean),
  tool_result_meta: maybe(Schema.Array(Schema.Struct({
    id: Schema.String,
    non_execution_kind: maybe(Schema.String)
  })))
})

const Delta = Schema.Struct({ type: Schema.String, text: maybe(Schema.String), thinking: maybe(Schema.String) })

/** An event of the model's own stream. Unknown ones carry nothing that a whole message does not. */
export const StreamEvent = record("stream_event", {
  event: Schema.Struct({
    type: Schema.String,
    message: Schema.optionalKey(Schema.Struct({ id: Schema.String })),
    delta: Schema.optionalKey(Schema.NullOr(Schema.Union([Delta, Schema.Struct({ stop_reason: maybe(Schema.String) })])))
  }),
  parent_tool_use_id: maybe(Schema.String)
})

/**
 * The end of a turn. `subtype` is `success` also for failures: `is_error` tells.
 * `usage` and `model_usage_since_last_result` are this turn's, the latter with
 * requests whose answers were cut off; `total_cost_usd` is the process's.
 */
export const ResultRecord = record("result", {
  subtype: Schema.String,
  is_error: Schema.Boolean,
  session_id: maybe(Schema.String),
  result: maybe(Schema.String),
  errors: maybe(Schema.Array(Schema.String)),
  stop_reason: maybe(Schema.String),
  terminal_reason: maybe(Schema.String),
  api_error: maybe(Schema.String),
  api_error_status: maybe(Schema.Finite),
  usage: maybe(Tokens),
  model_usage_since_last_result: maybe(Schema.Record(Schema.String, ModelUsage)),
  total_cost_usd: maybe(Schema.Finite),
  permission_denials: maybe(Schema.Array(Schema.Struct({
    tool_name: Schema.String,
    tool_use_id: maybe(Schema.String),
    tool_input: Schema.optionalKey(Schema.Json)
  }))),
  local_command: Schema.optionalKey(Schema.Json)
})

/** What became of a user message that was sent with a uuid: queued, started, and completed or cancelled after its turn's result. */
export const CommandLifecycle = record("command_lifecycle", { command_uuid: Schema.String, state: Schema.String })

/** A prompt was run as a command that forgets the conversation. */
export const ConversationReset = record("conversation_reset", { new_conversation_id: maybe(Schema.String) })

export const CanUseTool = Schema.Struct({
  subtype: Schema.Literal("can_use_tool"),
  tool_name: Schema.String,
  input: Schema.optionalKey(Schema.Json),
  description: maybe(Schema.String),
  decision_reason: maybe(Schema.String),
  tool_use_id: maybe(Schema.String)
})
export const HookCallback = Schema.Struct({
  subtype: Schema.Literal("hook_callback"),
  callback_id: Schema.String,
  input: Schema.Struct({
    hook_event_name: Schema.String,
    tool_name: maybe(Schema.String),
    tool_input: Schema.optionalKey(Schema.Json),
    tool_use_id: maybe(Schema.String)
  })
})

/** Claude Code asks, and waits for a `control_response`. */
export const ControlRequest = record("control_request", {
  request_id: Schema.String,
  request: Schema.Union([CanUseTool, HookCallback, Schema.Struct({ subtype: Schema.String })])
})

/** Claude Code no longer waits. */
export const ControlCancelRequest = record("control_cancel_request", { request_id: Schema.String })

export const ControlResponse = record("control_response", {
  response: Schema.Struct({
    subtype: Schema.String,
    request_id: Schema.String,
    error: maybe(Schema.String)
  })
})

const decoders = {
  "system/init": Schema.decodeUnknownResult(Init),
  "system/api_retry": Schema.decodeUnknownResult(ApiRetry),
  "system/permission_denied": Schema.decodeUnknownResult(PermissionDenied),
  "system/background_tasks_changed": Schema.decodeUnknownResult(BackgroundTasksChanged),
  "system/task_notification": Schema.decodeUnknownResult(TaskNotification),
  "system/informational": Schema.decodeUnknownResult(Informational),
  "system/model_refusal_no_fallback": Schema.decodeUnknownResult(Refused),
  "system/model_fallback": Schema.decodeUnknownResult(ModelFallback),
  assistant: Schema.decodeUnknownResult(Assistant),
  user: Schema.decodeUnknownResult(User),
  stream_event: Schema.decodeUnknownResult(StreamEvent),
  result: Schema.decodeUnknownResult(ResultRecord),
  command_lifecycle: Schema.decodeUnknownResult(CommandLifecycle),
  conversation_reset: Schema.decodeUnknownResult(ConversationReset),
  control_request: Schema.decodeUnknownResult(ControlRequest),
  control_cancel_request: Schema.decodeUnknownResult(ControlCancelRequest),
  control_response: Schema.decodeUnknownResult(ControlResponse)
} as const

/**
 * Records that say nothing of a turn: progress of what another record tells
 * whole, state of the interface, marks of life. The names stand in 2.1.332's own
 * list of its messages; `status`, `task_started`, `task_updated`, `ui_invalidate`
 * and `thinking_tokens` were seen. So do all that begin with `system/ui_`.
 */
const chatter: ReadonlySet<string> = new Set([
  "keep_alive",
  "tool_progress",
  "tool_use_summary",
  "prompt_suggestion",
  "rate_limit_event",
  "auth_status",
  ...[
    "status",
    "session_state_changed",
    "session_title_changed",
    "session_metadata",
    "thinking",
    "thinking_tokens",
    "task_started",
    "task_updated",
    "task_progress",
    "task_summary",
    "task_list_statuses",
    "turn_duration",
    "post_turn_summary",
    "commands_changed",
    "files_persisted",
    "file_snapshot",
    "shell_cwd",
    "vcs_state_changed",
    "hook_started",
    "hook_progress",
    "hook_response",
    "per_turn_effort_changed",
    "permission_check_status"
  ].map((subtype) => `system/${subtype}`)
])

type Decoded<K extends keyof typeof decoders> = Result.Result.Success<ReturnType<(typeof decoders)[K]>>

export type Message =
  | { [K in keyof typeof decoders]: { readonly kind: K; readonly record: Decoded<K> } }[keyof typeof decoders]
  | { readonly kind: "chatter" }
  /** Of a kind that is not known, or one that is known and does not fit. */
  | { readonly kind: "unknown"; readonly name: string }

const isKnown = (name: string): name is keyof typeof decoders => Object.hasOwn(decoders, name)

/** Reads one record. */
export const read = (frame: { readonly [key: string]: Schema.Json }): Message => {
  const { subtype, type } = frame
  if (typeof type !== "string") return { kind: "unknown", name: "without a type" }
  const name = type === "system" && typeof subtype === "string" ? `system/${subtype}` : type
  if (chatter.has(name) || name.startsWith("system/ui_")) return { kind: "chatter" }
  if (!isKnown(name)) return { kind: "unknown", name }
  const decode: (frame: unknown) => Result.Result<unknown, Schema.SchemaError> = decoders[name]
  const decoded = decode(frame)
  // The decoder was chosen by the kind, which the compiler does not follow.
  return Result.isSuccess(decoded)
    ? { kind: name, record: decoded.success } as Message
    : { kind: "unknown", name: `${name}, which does not have the expected shape` }
}

/** Which request a frame answers; `undefined` for a frame that is no answer. */
export const answered = (frame: { readonly [key: string]: Schema.Json }): string | undefined => {
  const message = frame["type"] === "control_response" ? read(frame) : undefined
  return message?.kind === "control_response" ? message.record.response.request_id : undefined
}

/** Whether a turn waits for a record that begins like this: its result, or a request that Claude Code wants answered. */
export const needed = ({ type }: { readonly [key: string]: Schema.Json }): boolean => type === "result" || type === "control_request"

type Outgoing = { readonly [key: string]: Schema.Json }

/** The name under which the gate of tools is registered. */
export const gate = "turnpike-tools"

/**
 * The first words to a process. With `gateTools` every call of a tool, also of
 * subagents, is asked about in a `hook_callback`, whatever the user's settings
 * allow. `systemPromptSnapshot` false makes a resumed session use the system
 * prompt of this launch; without it the first launch's is sent for ever.
 */
export const initialize = (
  requestId: string,
  options: { readonly system: string | undefined; readonly gateTools: boolean }
): Outgoing => ({
  type: "control_request",
  request_id: requestId,
  request: {
    subtype: "initialize",
    systemPromptSnapshot: false,
    ...(options.system === undefined ? {} : { appendSystemPrompt: options.system }),
    ...(options.gateTools ? { hooks: { PreToolUse: [{ matcher: "*", hookCallbackIds: [gate] }] } } : {})
  }
})

/**
 * A prompt. `text_not_typed` delivers the text as it is: no slash command, no
 * file put in for `@path`, nothing triggered by a keyword. Its name and meaning
 * are in 2.1.332's own description of its input; 2.1.197 ignores it. A uuid that
 * the conversation has seen already is dropped without a turn.
 */
export const prompt = (uuid: string, text: string): Outgoing => ({
  type: "user",
  uuid,
  session_id: "",
  parent_tool_use_id: null,
  text_not_typed: true,
  message: { role: "user", content: text }
})

export const interrupt = (requestId: string): Outgoing => ({
  type: "control_request",
  request_id: requestId,
  request: { subtype: "interrupt" }
})

const answer = (requestId: string, response: Outgoing): Outgoing => ({
  type: "control_response",
  response: { subtype: "success", request_id: requestId, response }
})

export const allow = (requestId: string, input: Schema.Json | undefined): Outgoing =>
  answer(requestId, { behavior: "allow", updatedInput: input ?? {} })
/** With `interrupt` the turn is stopped, too; without it the model is told the message and goes on. */
export const deny = (requestId: string, message: string, interrupt: boolean): Outgoing =>
  answer(requestId, { behavior: "deny", message, ...(interrupt ? { interrupt } : {}) })

/** The gate's answer: `ask` makes Claude Code ask for permission, whatever its settings say. */
export const gateAnswer = (requestId: string, decision: "allow" | "ask", reason: string): Outgoing =>
  answer(requestId, {
    hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: decision, permissionDecisionReason: reason }
  })

/** Says that a request is not understood, so that Claude Code does not wait. */
export const cannot = (requestId: string, error: string): Outgoing => ({
  type: "control_response",
  response: { subtype: "error", request_id: requestId, error }
})
