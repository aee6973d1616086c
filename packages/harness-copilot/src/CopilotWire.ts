/**
 * Copilot's words: the JSON-RPC 2.0 of `copilot --headless --stdio`, protocol
 * version 3, whose frames announce their length.
 *
 * Names and casing are Copilot's. Observed in 1.0.102, whose recordings are in
 * `test/fixtures/copilot/`; the server is hidden from its help, and is the one
 * that GitHub's own SDK (@github/copilot-sdk 1.0.14) speaks to. Fields that are
 * not named here are ignored, and a record that does not fit is not guessed at:
 * {@link read} says that it is unknown.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** The version that `connect` has to answer. */
export const protocolVersion = 3
/** JSON-RPC's code for a method that the server does not have. */
export const methodNotFound = -32601

/** A field that is absent, null, or there. */
const maybe = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** An answer to one of our requests. */
export const Answer = Schema.Struct({
  id: Schema.String,
  result: Schema.optionalKey(Schema.Json),
  error: Schema.optionalKey(Schema.Struct({ code: maybe(Schema.Finite), message: Schema.String }))
})

const Id = Schema.Union([Schema.String, Schema.Finite])

/** A request of Copilot's, which waits for an answer. */
export const Request = Schema.Struct({ id: Id, method: Schema.String, params: maybe(Schema.Json) })

/** A hook before or after something; `preToolUse` gates tools. Asked of subagents' tools, too. */
export const HookInvoke = Schema.Struct({
  id: Id,
  method: Schema.Literal("hooks.invoke"),
  params: Schema.Struct({
    hookType: Schema.String,
    input: maybe(Schema.Struct({ toolName: maybe(Schema.String), toolArgs: maybe(Schema.Json) }))
  })
})

/** What `connect` answers. */
export const Connected = Schema.Struct({ protocolVersion: Schema.Finite, version: maybe(Schema.String) })
/** What `auth.getStatus` answers. It spends no token. */
export const AuthStatus = Schema.Struct({ isAuthenticated: Schema.Boolean, login: maybe(Schema.String) })
/** What `session.create` and `session.resume` answer. */
export const Opened = Schema.Struct({
  sessionId: Schema.String,
  modelState: maybe(Schema.Struct({ modelId: maybe(Schema.String) }))
})

/** Begins and ends one model call and the tools that it asked for. */
export const TurnStart = Schema.Struct({ turnId: Schema.String })
export const TurnEnd = Schema.Struct({ turnId: Schema.String })
export const MessageStart = Schema.Struct({ messageId: Schema.String })
export const MessageDelta = Schema.Struct({ messageId: Schema.String, deltaContent: Schema.String })
export const ReasoningDelta = Schema.Struct({ deltaContent: Schema.String })
export const Message = Schema.Struct({
  messageId: Schema.String,
  content: Schema.String,
  reasoningText: maybe(Schema.String),
  toolRequests: maybe(Schema.Array(Schema.Struct({ toolCallId: Schema.String, name: Schema.String }))),
  parentToolCallId: maybe(Schema.String)
})
/** After each model call. Input includes what was read from and written to a cache, on every wire. `cost` counts premium requests, not money. */
export const Usage = Schema.Struct({
  model: maybe(Schema.String),
  inputTokens: maybe(Schema.Finite),
  outputTokens: maybe(Schema.Finite),
  cacheReadTokens: maybe(Schema.Finite),
  cacheWriteTokens: maybe(Schema.Finite),
  reasoningTokens: maybe(Schema.Finite),
  /** `stop`, `length`, `tool_calls`, `content_filter`, whatever the wire calls them. */
  finishReason: maybe(Schema.String),
  contentFilterTriggered: maybe(Schema.Boolean),
  parentToolCallId: maybe(Schema.String)
})
/** Comes with each request to the model that failed, also with those that are sent again. */
export const CallFailure = Schema.Struct({
  statusCode: maybe(Schema.Finite),
  /** `api`, or `transport` where no whole answer came. */
  failureKind: maybe(Schema.String),
  errorMessage: maybe(Schema.String),
  errorCode: maybe(Schema.String),
  errorType: maybe(Schema.String)
})
export const TurnRetry = Schema.Struct({ reason: maybe(Schema.String) })
/** `errorType` is one of authentication, authorization, quota, rate_limit, context_limit, query and others. */
export const SessionError = Schema.Struct({
  errorType: Schema.String,
  message: Schema.String,
  statusCode: maybe(Schema.Finite),
  errorCode: maybe(Schema.String)
})
export const Warning = Schema.Struct({ warningType: maybe(Schema.String), message: Schema.String })
export const Info = Schema.Struct({ infoType: maybe(Schema.String), message: Schema.String })
export const ToolStart = Schema.Struct({
  toolCallId: Schema.String,
  toolName: Schema.NonEmptyString,
  arguments: maybe(Schema.Json),
  parentToolCallId: maybe(Schema.String)
})
export const ToolComplete = Schema.Struct({
  toolCallId: Schema.String,
  success: Schema.Boolean,
  result: maybe(Schema.Struct({ content: maybe(Schema.String) })),
  /** `denied` and `rejected` are the codes of a call that was not allowed. */
  error: maybe(Schema.Struct({ message: maybe(Schema.String), code: maybe(Schema.String) })),
  parentToolCallId: maybe(Schema.String)
})
/** `kind` is hook where our gate asked, and shell, write, read, mcp, url, custom-tool and others where Copilot's own rules did. */
export const PermissionRequested = Schema.Struct({
  requestId: Schema.String,
  resolvedByHook: maybe(Schema.Boolean),
  permissionRequest: Schema.Struct({
    kind: Schema.String,
    toolCallId: maybe(Schema.String),
    toolName: maybe(Schema.String),
    toolArgs: maybe(Schema.Json),
    fullCommandText: maybe(Schema.String),
    fileName: maybe(Schema.String),
    path: maybe(Schema.String),
    url: maybe(Schema.String),
    intention: maybe(Schema.String)
  })
})
export const PermissionCompleted = Schema.Struct({ requestId: Schema.String })
export const Abort = Schema.Struct({ reason: maybe(Schema.String) })
/** Nothing is left to be done: the end of a turn, whatever became of it. */
export const Idle = Schema.Struct({ aborted: maybe(Schema.Boolean) })
export const McpServersLoaded = Schema.Struct({
  servers: Schema.Array(Schema.Struct({ name: Schema.String, status: maybe(Schema.String) }))
})

const decoders = {
  "assistant.turn_start": Schema.decodeUnknownResult(TurnStart),
  "assistant.turn_end": Schema.decodeUnknownResult(TurnEnd),
  "assistant.message_start": Schema.decodeUnknownResult(MessageStart),
  "assistant.message_delta": Schema.decodeUnknownResult(MessageDelta),
  "assistant.reasoning_delta": Schema.decodeUnknownResult(ReasoningDelta),
  "assistant.message": Schema.decodeUnknownResult(Message),
  "assistant.usage": Schema.decodeUnknownResult(Usage),
  "assistant.turn_retry": Schema.decodeUnknownResult(TurnRetry),
  "model.call_failure": Schema.decodeUnknownResult(CallFailure),
  "session.error": Schema.decodeUnknownResult(SessionError),
  "session.warning": Schema.decodeUnknownResult(Warning),
  "session.info": Schema.decodeUnknownResult(Info),
  "session.mcp_servers_loaded": Schema.decodeUnknownResult(McpServersLoaded),
  "tool.execution_start": Schema.decodeUnknownResult(ToolStart),
  "tool.execution_complete": Schema.decodeUnknownResult(ToolComplete),
  "permission.requested": Schema.decodeUnknownResult(PermissionRequested),
  "permission.completed": Schema.decodeUnknownResult(PermissionCompleted),
  abort: Schema.decodeUnknownResult(Abort),
  "session.idle": Schema.decodeUnknownResult(Idle)
}

/** Events that are known and say nothing that a turn's reader needs; the names are of 1.0.102. Those of `model.` repeat the rest for debugging. */
const chatter = new Set([
  ...[
    "auto_mode_resolved",
    "background_tasks_changed",
    "canvas.registry_changed",
    "compaction_complete",
    "compaction_start",
    "context_changed",
    "context_cleared",
    "custom_agents_updated",
    "custom_notification",
    "extensions_loaded",
    "indexed_search",
    "managed_settings_enforced",
    "managed_settings_resolved",
    "mcp_server_status_changed",
    "mode_changed",
    "mode_notice_delivered",
    "model_change",
    "permissions_changed",
    "plan_changed",
    "remote_steerable_changed",
    "resume",
    "session_limits_changed",
    "shutdown",
    "skills_loaded",
    "start",
    "task_complete",
    "title_changed",
    "todos_changed",
    "tools_updated",
    "truncation",
    "usage_checkpoint",
    "usage_info",
    "workspace_file_changed"
  ].map((name) => `session.${name}`),
  ...["idle", "intent", "reasoning", "server_tool_progress", "streaming_delta", "tool_call_delta"].map((name) => `assistant.${name}`),
  ...["execution_partial_result", "execution_progress", "shell_output", "user_requested"].map((name) => `tool.${name}`),
  ...["completed", "configured", "deselected", "failed", "selected", "started"].map((name) => `subagent.${name}`),
  "agent.interrupted",
  "capabilities.changed",
  "commands.changed",
  "hook.end",
  "hook.progress",
  "hook.start",
  "mcp.prompts.list_changed",
  "mcp.resources.list_changed",
  "mcp.tools.list_changed",
  "pending_messages.modified",
  "sandbox.decision",
  "skill.invoked",
  "system.message",
  "system.notification",
  "tool_search.activated",
  "user.message"
])

/** Notifications that are no events of a session. */
const chatterMethods = new Set(["session.lifecycle", "host.event"])

type Decoded<K extends keyof typeof decoders> = Result.Result.Success<ReturnType<(typeof decoders)[K]>>

/** An event, and the subagent that it is of; undefined for the session's own agent. */
export type Event = { [K in keyof typeof decoders]: { readonly kind: K; readonly data: Decoded<K>; readonly agentId: string | undefined } }[keyof typeof decoders]

export type Message =
  | Event
  | { readonly kind: "answer"; readonly record: typeof Answer.Type }
  | { readonly kind: "hook"; readonly record: typeof HookInvoke.Type }
  | { readonly kind: "request"; readonly record: typeof Request.Type }
  | { readonly kind: "chatter" }
  /** Of a kind that is not known, or one that is known and does not fit. */
  | { readonly kind: "unknown"; readonly name: string }

const isKnown = (name: string): name is keyof typeof decoders => Object.hasOwn(decoders, name)
const decodeAnswer = Schema.decodeUnknownResult(Answer)
const decodeRequest = Schema.decodeUnknownResult(Request)
const decodeHook = Schema.decodeUnknownResult(HookInvoke)
const decodeEvent = Schema.decodeUnknownResult(Schema.Struct({
  event: Schema.Struct({ type: Schema.String, data: Schema.optionalKey(Schema.Json), agentId: maybe(Schema.String) })
}))

type Incoming = { readonly [key: string]: Schema.Json }

const unfit = (name: string): Message => ({ kind: "unknown", name: `${name}, which does not have the expected shape` })

const readEvent = (frame: Incoming): Message => {
  const decoded = decodeEvent(frame["params"])
  if (Result.isFailure(decoded)) return unfit("session.event")
  const { agentId, data, type } = decoded.success.event
  if (isKnown(type)) {
    const decode: (data: unknown) => Result.Result<unknown, Schema.SchemaError> = decoders[type]
    const known = decode(data ?? {})
    // The decoder was chosen by the kind, which the compiler does not follow.
    return Result.isSuccess(known) ? { kind: type, data: known.success, agentId: agentId ?? undefined } as Message : unfit(type)
  }
  return chatter.has(type) || type.startsWith("model.") ? { kind: "chatter" } : { kind: "unknown", name: type }
}

/** Which request a frame answers; `undefined` for a frame that is no answer. */
export const answered = (frame: { readonly [key: string]: Schema.Json }): string | undefined => {
  const message = frame["method"] === undefined ? read(frame) : undefined
  return message?.kind === "answer" ? message.record.id : undefined
}

/** Whether a turn waits for a frame that begins like this: its ending, an answer, or a request of Copilot's own. */
export const needed = (frame: Incoming): boolean => {
  if (frame["id"] !== undefined) return true
  const decoded = decodeEvent(frame["params"])
  return Result.isSuccess(decoded) && ["permission.requested", "session.idle"].includes(decoded.success.event.type)
}

/** Reads one frame. */
export const read = (frame: Incoming): Message => {
  const { id, method } = frame
  if (typeof method !== "string") {
    const answer = decodeAnswer(frame)
    return Result.isSuccess(answer) ? { kind: "answer", record: answer.success } : { kind: "unknown", name: "without a method" }
  }
  if (id !== undefined) {
    if (method === "hooks.invoke") {
      const hook = decodeHook(frame)
      if (Result.isSuccess(hook)) return { kind: "hook", record: hook.success }
    }
    const request = decodeRequest(frame)
    return Result.isSuccess(request) ? { kind: "request", record: request.success } : unfit(method)
  }
  if (method === "session.event") return readEvent(frame)
  return chatterMethods.has(method) ? { kind: "chatter" } : { kind: "unknown", name: method }
}

type Outgoing = { readonly [key: string]: Schema.Json }

const request = (id: string, method: string, params: Outgoing): Outgoing => ({ jsonrpc: "2.0", id, method, params })

export const connect = (id: string): Outgoing => request(id, "connect", {})

export const authStatus = (id: string): Outgoing => request(id, "auth.getStatus", {})

/** The model's service, where it is not GitHub's: what the server takes in place of the environment's COPILOT_PROVIDER_ variables, which it does not read. */
export type Provider = { readonly [key: string]: Schema.Json }

export interface SessionOptions {
  readonly sessionId: string
  readonly cwd: string
  readonly model: string | undefined
  readonly provider: Provider | undefined
  /** Added to Copilot's own instructions; sent with each opening, as resuming does not keep it. */
  readonly system: string | undefined
  /** The tools that the model is offered; undefined for all. */
  readonly availableTools: ReadonlyArray<string> | undefined
  /** Whether every call of a tool is asked about in a `hooks.invoke`, whatever the user's settings allow. */
  readonly gateTools: boolean
}

/** Begins a session, or goes on with one that Copilot has. */
export const open = (id: string, how: "create" | "resume", options: SessionOptions): Outgoing =>
  request(id, `session.${how}`, {
    sessionId: options.sessionId,
    clientName: "turnpike",
    workingDirectory: options.cwd,
    streaming: true,
    requestPermission: true,
    // Nobody here can answer a question that is not about permission.
    requestUserInput: false,
    requestElicitation: false,
    envValueMode: "direct",
    hooks: options.gateTools,
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(options.provider === undefined ? {} : { provider: options.provider }),
    ...(options.system === undefined ? {} : { systemMessage: { mode: "append", content: options.system } }),
    ...(options.availableTools === undefined ? {} : { availableTools: options.availableTools })
  })

/** A prompt. It is text whatever it begins with: no slash command runs and no file is put in for `@path`. */
export const send = (id: string, sessionId: string, prompt: string): Outgoing => request(id, "session.send", { sessionId, prompt })

export const abort = (id: string, sessionId: string): Outgoing => request(id, "session.abort", { sessionId })

/** A rejection without feedback would end the turn; with it the model is told and goes on. */
export const decide = (
  id: string,
  sessionId: string,
  requestId: string,
  result: { readonly kind: "approve-once" } | { readonly kind: "reject"; readonly feedback: string }
): Outgoing => request(id, "session.permissions.handlePendingPermissionRequest", { sessionId, requestId, result })

/** The gate's answer: `ask` makes Copilot ask for permission, whatever its settings say. */
export const gateAnswer = (id: string | number, decision: "allow" | "ask", reason: string): Outgoing => ({
  jsonrpc: "2.0",
  id,
  result: { output: { permissionDecision: decision, permissionDecisionReason: reason } }
})

/** Nothing to add to a hook. */
export const noOutput = (id: string | number): Outgoing => ({ jsonrpc: "2.0", id, result: {} })

/** Says that a request is not understood, so that Copilot does not wait. */
export const cannot = (id: string | number, method: string): Outgoing => ({
  jsonrpc: "2.0",
  id,
  error: { code: -32601, message: `${method} is not supported here` }
})
