/**
 * The frames of Claude Code 2.1.332 that do not depend on what is played:
 * their fields and fixed values, from the recordings.
 */
import type { Figures, Json, Question, SessionState } from "../DialectWords.ts"
import type { JsonObject as Frame } from "./jsonObject.ts"

export const version = "2.1.332"

export interface Facts {
  readonly session: SessionState
  readonly cwd: string
  readonly options: { readonly permissionMode: string }
  readonly mcpServers: ReadonlyArray<{ readonly name: string; readonly status: string }>
}

/** The built-in tools that the program names where nothing limits them. */
export const tools: ReadonlyArray<string> = [
  "Task", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterWorktree", "ExitWorktree", "ListAgents", "Monitor", "NotebookEdit",
  "Read", "ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "TaskStop", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write"
]

/** The first frame of every turn. */
export const init = ({ cwd, mcpServers, options, session }: Facts): Frame => ({
  type: "system",
  subtype: "init",
  cwd,
  session_id: session.id,
  tools: [...session.tools],
  mcp_servers: mcpServers.map((server) => ({ ...server })),
  model: session.model,
  permissionMode: options.permissionMode,
  slash_commands: ["clear", "compact", "context", "init", "review"],
  terminal_slash_commands: ["doctor", "color"],
  apiKeySource: "ANTHROPIC_API_KEY",
  claude_code_version: version,
  output_style: "default",
  agents: ["claude", "Explore", "general-purpose", "Plan"],
  skills: ["debug", "code-review"],
  plugins: [{ name: "cc-plugin-privacy", path: "builtin", source: "cc-plugin-privacy@builtin" }],
  capabilities: ["interrupt_receipt_v1", "msg_lifecycle_v1"],
  analytics_disabled: true,
  product_feedback_disabled: true,
  served_by_anthropic: false,
  sandbox_enabled: false,
  memory_paths: { auto: `${cwd}/memory/` },
  original_cwd: cwd,
  additional_directories: [],
  messaging_socket_path: "/tmp/cc-socks/0.sock",
  fast_mode_state: "off",
  fast_mode_disabled_reason: "sdk_opt_in_required",
  per_turn_effort_active: true,
  ultrathink_available: false,
  ultrathink_typed_raises: false,
  view_mode: "default"
})

/** The answer to `initialize`. */
export const initialized = (claudeCodeVersion: string): Frame => ({
  commands: [{ name: "clear", description: "Start over with an empty context", argumentHint: "", builtin: true, aliases: ["reset"] }],
  agents: [{ name: "claude", description: "Catch-all for any task" }, { name: "Explore", description: "Looks around", model: "haiku" }],
  output_style: "default",
  available_output_styles: ["default", "Concise"],
  user_output_styles_dir: "/nowhere/output-styles",
  models: [{
    value: "default",
    resolvedModel: "claude-opus-5-5",
    displayName: "Default (recommended)",
    description: "The default model",
    supportsEffort: true,
    supportedEffortLevels: ["low", "high"],
    supportsAdaptiveThinking: true,
    supportsFastMode: true,
    supportsAutoMode: true,
    supportsThinkingOff: true
  }],
  account: { tokenSource: "none", apiKeySource: "ANTHROPIC_API_KEY", apiProvider: "firstParty" },
  pid: 1,
  claude_code_version: claudeCodeVersion,
  current_permission_mode: "default",
  hook_on_failure_supported: true,
  hooks_when_unanswered_kept: 0,
  other_hook_ask_outranks_host: true,
  feedback_mode: { kind: "disabled" },
  analytics_disabled: true,
  sandbox_enabled: false,
  remote_control_auto_enable: false,
  remote_control_auto_connect_default: false,
  remote_control_available: false,
  remote_control_auto_on_by_default: false,
  ide_rc_auto_enable_gate: false,
  fast_mode_state: "off",
  fast_mode_disabled_reason: "sdk_opt_in_required",
  session_state: "idle",
  capabilities: ["ui_surface_v1"]
})

/** In messages the program's usage is a placeholder; the figures that count are in the result. */
export const placeholder: Frame = { input_tokens: 1002, cache_creation_input_tokens: 11, cache_read_input_tokens: 22, output_tokens: 1 }

/** The usage of a message that was cut off. */
export const abandonedUsage: Frame = {
  ...placeholder,
  output_tokens_details: { thinking_tokens: 0 },
  iterations: [],
  server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 },
  fallback_credit: null
}

export const message = (model: string, id: string, content: ReadonlyArray<Json>): Frame => ({
  id,
  type: "message",
  role: "assistant",
  model,
  content,
  stop_reason: null,
  stop_sequence: null
})

/** A message on the user's side: what the user says, or a tool. */
export const user = (content: Json, more: Frame = {}): Frame => ({
  type: "user",
  message: { role: "user", content },
  parent_tool_use_id: null,
  timestamp: new Date().toISOString(),
  ...more
})

const emptyUsage: Frame = {
  server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 },
  service_tier: "standard",
  cache_creation: { ephemeral_1h_input_tokens: 0, ephemeral_5m_input_tokens: 0 },
  inference_geo: "",
  iterations: [],
  speed: "standard",
  fallback_credit: null
}

/** The usage of a result. Its input tokens leave cached ones out. */
export const usage = (figures: Figures | undefined): Frame => ({
  output_tokens_details: { thinking_tokens: 0 },
  input_tokens: figures === undefined ? 0 : figures.input_tokens - (figures.cache_read_tokens ?? 0) - (figures.cache_write_tokens ?? 0),
  cache_creation_input_tokens: figures?.cache_write_tokens ?? 0,
  cache_read_input_tokens: figures?.cache_read_tokens ?? 0,
  output_tokens: figures?.output_tokens ?? 0,
  ...emptyUsage
})

export interface ModelUsage {
  readonly [key: string]: Json
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadInputTokens: number
  readonly cacheCreationInputTokens: number
  readonly costUSD: number
}

export const modelUsage = (figures: Figures): ModelUsage => ({
  inputTokens: figures.input_tokens - (figures.cache_read_tokens ?? 0) - (figures.cache_write_tokens ?? 0),
  outputTokens: figures.output_tokens,
  cacheReadInputTokens: figures.cache_read_tokens ?? 0,
  cacheCreationInputTokens: figures.cache_write_tokens ?? 0,
  webSearchRequests: 0,
  costUSD: figures.cost_usd ?? 0,
  contextWindow: 1_000_000,
  maxOutputTokens: 128_000,
  thinkingTokens: 0,
  cacheCreationEphemeral5mInputTokens: 0,
  cacheCreationEphemeral1hInputTokens: 0,
  canonicalModel: "claude-opus-5-5",
  provider: "firstParty",
  costBasis: "list"
})

export const addModelUsage = (one: ModelUsage | undefined, other: ModelUsage): ModelUsage =>
  one === undefined ? other : {
    ...other,
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cacheReadInputTokens: one.cacheReadInputTokens + other.cacheReadInputTokens,
    cacheCreationInputTokens: one.cacheCreationInputTokens + other.cacheCreationInputTokens,
    costUSD: one.costUSD + other.costUSD
  }

/** What every result has. */
export const result: Frame = {
  type: "result",
  duration_api_ms: 122,
  fast_mode_state: "off",
  fast_mode_disabled_reason: "sdk_opt_in_required",
  subagent_stats: {
    spawned: 0,
    requested: { background: 0, foreground: 0, unset: 0 },
    started_in_background: 0,
    max_depth: 0,
    spawned_by_subagents: 0,
    completed: 0,
    failed: 0,
    killed: { parent: 0, user: 0, system: 0 },
    refused: { depth_limit: 0, concurrency_limit: 0, budget: 0 },
    by_type: {}
  },
  safety_stops: 0,
  queued_turn_count: 0
}

/** The result of a start with a session that does not exist. */
export const lost: Frame = {
  type: "result",
  subtype: "error_during_execution",
  duration_ms: 0,
  duration_api_ms: 0,
  is_error: true,
  num_turns: 0,
  stop_reason: null,
  total_cost_usd: 0,
  usage: usage(undefined),
  modelUsage: {},
  permission_denials: [],
  result_index: 0
}

/** A message of the program's own that tells of an error of the model's service. */
export const synthetic = (text: string, stopReason: string, told: Frame): Frame => ({
  type: "assistant",
  message: {
    diagnostics: null,
    id: crypto.randomUUID(),
    container: null,
    model: "<synthetic>",
    role: "assistant",
    stop_details: null,
    stop_reason: stopReason,
    stop_sequence: "",
    type: "message",
    usage: {
      output_tokens_details: null,
      input_tokens: 0,
      output_tokens: 0,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 },
      service_tier: null,
      cache_creation: { ephemeral_1h_input_tokens: 0, ephemeral_5m_input_tokens: 0 },
      inference_geo: null,
      iterations: null,
      speed: null,
      fallback_credit: null
    },
    content: [{ type: "text", text }],
    context_management: null
  },
  parent_tool_use_id: null,
  timestamp: new Date().toISOString(),
  is_api_error_message: true,
  ...told
})

interface ApiError {
  readonly error: string
  readonly status?: number
  readonly type?: string
}

/** What the program calls each kind of failure. `d-e401` to `k12-cut-nofallback` are the recordings. */
export const apiErrors: Readonly<Record<string, ApiError>> = {
  AUTH: { error: "authentication_failed", status: 401, type: "authentication_error" },
  PERMISSION_DENIED: { error: "authentication_failed", status: 403, type: "permission_error" },
  MODEL_NOT_FOUND: { error: "model_not_found", status: 404, type: "not_found_error" },
  INVALID_REQUEST: { error: "unknown", status: 400, type: "invalid_request_error" },
  CONTEXT_WINDOW_EXCEEDED: { error: "invalid_request", status: 400, type: "invalid_request_error" },
  RATE_LIMIT: { error: "rate_limit", status: 429, type: "rate_limit_error" },
  OVERLOADED: { error: "server_error", status: 529, type: "overloaded_error" },
  SERVER: { error: "server_error", status: 500, type: "api_error" },
  TRANSPORT: { error: "server_error" },
  TIMEOUT: { error: "server_error" }
}

export const retryError = (status: number | undefined): string => {
  switch (status) {
    case 401:
      return "authentication_failed"
    case 429:
      return "rate_limit"
    case 500:
      return "server_error"
    case 529:
      return "overloaded"
    default:
      return "unknown"
  }
}

export const invalidKey = "Invalid API key · Fix external API key"
export const maxTokens =
  "API Error: Claude's response exceeded the 128000 output token maximum. To configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable."
export const refused = "API Error: Opus 5.5's safeguards flagged this message."

export const noApprovalSurface =
  "Permission for this tool use was denied. It requires approval, and this session has no approval surface — nobody can answer a permission prompt here — so it was denied automatically."

export const permissionDenied = (name: string, id: string): Frame => ({
  type: "system",
  subtype: "permission_denied",
  tool_name: name,
  tool_use_id: id,
  decision_reason_type: "asyncAgent",
  decision_reason: "no approval surface in this session; permission request denied automatically",
  message: noApprovalSurface
})

/** The question whether a tool may run. */
export const canUseTool = (requestId: string, { description, id, input, name }: Question, cwd: string): Frame => ({
  type: "control_request",
  request_id: requestId,
  request: {
    subtype: "can_use_tool",
    tool_name: name,
    display_name: name,
    input: input ?? {},
    description: description ?? name,
    permission_suggestions: [
      { type: "addRules", rules: [{ toolName: name, ruleContent: "played" }], behavior: "allow", destination: "localSettings" },
      { type: "addDirectories", directories: [cwd], destination: "session" },
      { type: "setMode", mode: "acceptEdits", destination: "session" }
    ],
    blocked_path: `${cwd}/played.txt`,
    tool_use_id: id
  }
})

/** The question of a tool that a hook left to a person. */
export const canUseToolAfterHook = (requestId: string, { description, id, input, name }: Question, reason: string): Frame => ({
  type: "control_request",
  request_id: requestId,
  request: {
    subtype: "can_use_tool",
    tool_name: name,
    display_name: name,
    input: input ?? {},
    description: description ?? name,
    decision_reason: reason,
    decision_reason_type: "hook",
    decision_reason_hook_event: "PreToolUse",
    decision_reason_hook_source: "settings",
    tool_use_id: id
  }
})

/** The call of a hook before a tool runs. */
export const hookCallback = (requestId: string, callback: string, { id, input, name }: Question, { cwd, options, session }: Facts): Frame => ({
  type: "control_request",
  request_id: requestId,
  request: {
    subtype: "hook_callback",
    callback_id: callback,
    input: {
      session_id: session.id,
      transcript_path: `${cwd}/${session.id}.jsonl`,
      cwd,
      prompt_id: crypto.randomUUID(),
      permission_mode: options.permissionMode,
      effort: { level: "medium" },
      hook_event_name: "PreToolUse",
      tool_name: name,
      tool_input: input ?? {},
      tool_use_id: id
    },
    tool_use_id: id
  }
})

/** The result of a command of the program's own. */
export const localCommand: Frame = {
  ...result,
  duration_api_ms: 0,
  is_error: false,
  num_turns: 0,
  stop_reason: null,
  total_cost_usd: 0,
  usage: usage(undefined),
  modelUsage: {},
  permission_denials: [],
  subtype: "success",
  result: "",
  local_command: "clear",
  model_usage_since_last_result: {},
  duration_ms: 117
}

/** Who decided whether a tool runs: the settings, a person, or a hook. */
export type DecidedBy = "config" | "user" | "hook"

/** The fields that a tool's result has beside its message. */
export const toolResult = (
  action: { readonly id: string; readonly output: string; readonly is_error?: boolean; readonly denied?: string },
  decidedBy: DecidedBy
): Frame => {
  const meta = action.denied !== undefined
    ? {
      id: action.id,
      non_execution_kind: "permission-rule",
      permission_decision: decidedBy === "user"
        ? { decision: "reject", source: "user_reject" }
        : { decision: "reject", source: decidedBy, reason_type: decidedBy === "hook" ? "hook" : "asyncAgent" }
    }
    : {
      id: action.id,
      permission_decision: decidedBy === "user"
        ? { decision: "accept", source: "user_temporary" }
        : { decision: "accept", source: decidedBy, reason_type: decidedBy === "hook" ? "hook" : "rule" }
    }
  return {
    tool_use_result: action.is_error === true
      ? `Error: ${action.output}`
      : { stdout: action.output, stderr: "", interrupted: false, isImage: false, noOutputExpected: false },
    tool_result_meta: [meta]
  }
}
