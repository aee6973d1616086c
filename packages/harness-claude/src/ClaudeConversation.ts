/**
 * The translation: Claude Code's records in, a turn's events and answers out.
 *
 * It is a function of the records alone. One value of {@link State} stands for
 * the conversation with one process; a turn is within it from `prompt` to the
 * record that ends it. What Claude Code does on its own account, when one of its
 * background tasks has ended, is told with `origin: "background"` while a turn
 * waits behind it, and as late records otherwise.
 */
import { Failure, TurnEvent } from "@turnpike/contract"
import { Dialect, type Frame, Notices } from "@turnpike/harness"
import { type Prompt, type Redaction } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"
import * as ClaudeFailure from "./ClaudeFailure.ts"
import * as ClaudeTools from "./ClaudeTools.ts"
import * as ClaudeUsage from "./ClaudeUsage.ts"
import * as ClaudeWire from "./ClaudeWire.ts"

/** What was asked for, to be compared with what is in force. */
export interface Asked {
  readonly tools: ClaudeTools.Plan
  readonly model: string | undefined
  /** The session that is continued; undefined where one begins. */
  readonly resumes: string | undefined
  readonly redact: Redaction.Redactor
  /** Makes ids that no conversation has seen. */
  readonly uuid: () => string
  /** Whether a prompt that looks like a command reaches the model as text. */
  readonly takesPromptsAsText: boolean
  readonly version: string
  readonly testedVersion: string
}

interface Call {
  readonly name: string
  /** Whether the allow-list holds it, or Claude Code asked before it ran. */
  readonly cleared: boolean
}

interface Turn {
  readonly uuid: string
  /** Whether Claude Code tells what becomes of the prompt. */
  readonly announced: boolean
  readonly begun: boolean
  readonly interrupted: boolean
  readonly step: number
  readonly stepOpen: boolean
  /** The model's message that is being told. */
  readonly messageId: string | undefined
  /** Whether pieces of that message's text were told as they came. */
  readonly textStreamed: boolean
  readonly reasoningStreamed: boolean
  /** Whether the message's text was told whole. */
  readonly messageTold: boolean
  /** What the model has answered since the last tool. */
  readonly answer: string
  readonly worked: boolean
  readonly calls: ReadonlyMap<string, Call>
  /** The last message of Claude Code's own that tells of an error. */
  readonly trouble: { readonly error: string | undefined; readonly apiError: string | undefined; readonly status: number | undefined } | undefined
  readonly refused: boolean
  /** Whether the last request that failed got no HTTP answer. */
  readonly unanswered: boolean
  readonly seen: ClaudeUsage.Seen
}

export interface State {
  readonly asked: Asked
  readonly sessionId: string | undefined
  /** What was told of the session last, to tell it again only when it changed. */
  readonly told: string | undefined
  readonly costUsd: number
  readonly tasks: ReadonlyArray<TurnEvent.BackgroundTask>
  /** Whether Claude Code runs a turn that nobody here prompted, or owes one. */
  readonly ownTurn: boolean
  readonly turn: Turn | undefined
}

export const initial = (asked: Asked): State => ({
  asked,
  sessionId: asked.resumes,
  told: undefined,
  costUsd: 0,
  tasks: [],
  ownTurn: false,
  turn: undefined
})

type Step = Dialect.Step<State>
type Outputs = ReadonlyArray<Dialect.Output>

const step = (state: State, ...outputs: Outputs): Step => ({ state, outputs })
const event = (value: Dialect.Event): Dialect.Output => ({ _tag: "Event", event: value })
const notice = (kind: TurnEvent.NoticeKind, message: string): Dialect.Output => event(Notices.make(kind, message))
const withTurn = (state: State, turn: Turn, change: Partial<Turn>): State => ({ ...state, turn: { ...turn, ...change } })
const isOther = (parent: string | null | undefined): boolean => parent !== null && parent !== undefined

/** The most characters of a tool's output that an event carries: 32768. */
export const maxToolOutput = 32_768

const bounded = (text: string): string =>
  text.length <= maxToolOutput ? text : `${text.slice(0, maxToolOutput)}… (${text.length - maxToolOutput} more characters)`

const contentText = (content: Schema.Json | undefined): string | undefined =>
  content === undefined
    ? undefined
    : typeof content === "string"
    ? content
    : Array.isArray(content)
    ? content.map((block) =>
      typeof block === "object" && block !== null && !Array.isArray(block) && typeof (block as { text?: unknown }).text === "string"
        ? (block as { text: string }).text
        : `(${JSON.stringify(block).slice(0, 80)})`
    ).join("\n")
    : JSON.stringify(content)

/** Begins a turn. */
export const prompt = (state: State, { text }: Prompt.Prompt): Step => {
  if (!state.asked.takesPromptsAsText && text.trimStart().startsWith("/")) {
    return step(
      // Open for the moment in which it fails.
      { ...state, turn: undefined },
      {
        _tag: "Fail",
        failure: Failure.make(
          "UNSUPPORTED",
          `Claude Code ${state.asked.version} runs a prompt that begins with a slash as a command of its own; it was not sent`,
          { remedy: "Update Claude Code, or begin the prompt with another character." }
        )
      }
    )
  }
  const uuid = state.asked.uuid()
  const turn: Turn = {
    uuid,
    announced: false,
    begun: false,
    interrupted: false,
    step: 0,
    stepOpen: false,
    messageId: undefined,
    textStreamed: false,
    reasoningStreamed: false,
    messageTold: false,
    answer: "",
    worked: false,
    calls: new Map(),
    trouble: undefined,
    refused: false,
    unanswered: false,
    seen: ClaudeUsage.nothingSeen
  }
  return step({ ...state, turn }, { _tag: "Send", frame: ClaudeWire.prompt(uuid, text) })
}

/** Asks for the end of the running turn; Claude Code answers with a result within moments, also before the turn has begun. */
export const interrupt = (state: State): Step =>
  state.turn === undefined
    ? step(state)
    : step(withTurn(state, state.turn, { interrupted: true }), { _tag: "Send", frame: ClaudeWire.interrupt(state.asked.uuid()) })

/** Reads one record. */
export const frame = (state: State, frame: Frame.Frame): Step => {
  const message = ClaudeWire.read(frame)
  switch (message.kind) {
    case "chatter":
      return step(state)
    case "unknown":
      return step(state, event(Notices.unknownFrame(frame, message.name, state.asked.redact)))
    case "control_response":
      // Answers to an interrupt; the result tells what came of it.
      return message.record.response.subtype === "error"
        ? step(state, notice("harness_note", `Claude Code refused a request: ${state.asked.redact(message.record.response.error ?? "")}`))
        : step(state)
    case "control_request":
      return controlRequest(state, message.record)
    case "control_cancel_request":
      return step(state, { _tag: "Withdraw", requestId: message.record.request_id })
    case "command_lifecycle":
      return lifecycle(state, message.record)
    case "conversation_reset":
      return state.turn === undefined ? step(state, { _tag: "Late", frame }) : ranAsCommand(state)
    case "system/init":
      return init(state, message.record)
    case "system/background_tasks_changed":
      return tasks(state, message.record)
    case "system/task_notification":
      return state.turn === undefined ? step({ ...state, ownTurn: true }, { _tag: "Busy", busy: true }) : step(state)
    case "system/informational":
      return step(state, notice("harness_note", state.asked.redact(message.record.content).slice(0, 2048)))
    case "system/model_fallback":
      return step(state, notice("model_differs", "Claude Code goes on with another model than the one that was asked for"))
    case "system/api_retry":
      return state.turn === undefined
        ? step(state, { _tag: "Late", frame })
        : step(withTurn(state, state.turn, { unanswered: message.record.error_status == null }), event(retry(state, message.record)))
    case "system/model_refusal_no_fallback":
      return state.turn === undefined ? step(state) : step(withTurn(state, state.turn, { refused: true }))
    case "system/permission_denied":
      return state.turn === undefined ? step(state, { _tag: "Late", frame }) : step(state)
    case "stream_event":
      return state.turn === undefined ? late(state, frame) : streamed(state, state.turn, message.record)
    case "assistant":
      return state.turn === undefined ? late(state, frame) : assistant(state, state.turn, message.record)
    case "user":
      return state.turn === undefined ? late(state, frame) : user(state, state.turn, message.record)
    case "result":
      return result(state, message.record, frame)
  }
}

/** Of a turn that nobody prompted only the whole messages are kept, not their pieces. */
const late = (state: State, frame: Frame.Frame): Step =>
  frame["type"] === "stream_event" ? step(state) : step(state, { _tag: "Late", frame })

const origin = (turn: Turn, parent: string | null | undefined): { readonly origin?: "background" | "subagent" } =>
  isOther(parent) ? { origin: "subagent" } : turn.begun ? {} : { origin: "background" }

const lifecycle = (state: State, record: typeof ClaudeWire.CommandLifecycle.Type): Step => {
  const { turn } = state
  if (turn === undefined || record.command_uuid !== turn.uuid) return step(state)
  switch (record.state) {
    case "queued":
      return step(withTurn(state, turn, { announced: true }))
    case "started":
      return step(withTurn(state, turn, { announced: true, begun: true }))
    case "completed":
    case "cancelled":
    case "discarded":
      // It follows the result, which has ended the turn; without one there will be none.
      return ended(state, turn, {
        _tag: "Fail",
        failure: Failure.make("NO_TERMINAL", `Claude Code says that the prompt is ${record.state}, without a result`)
      })
    default:
      return step(state)
  }
}

const ranAsCommand = (state: State): Step => ({
  state: { ...state, turn: undefined },
  outputs: [{
    _tag: "Kill",
    failure: Failure.make(
      "HARNESS_PROTOCOL",
      "Claude Code ran the prompt as a command of its own instead of giving it to the model; the session's history may be gone"
    )
  }]
})

const init = (state: State, record: typeof ClaudeWire.Init.Type): Step => {
  const { asked } = state
  const outputs: Array<Dialect.Output> = []
  const bound = TurnEvent.make("session/bound", {
    harness_session_id: record.session_id,
    resumed: asked.resumes !== undefined,
    ...(record.claude_code_version == null ? {} : { harness_version: record.claude_code_version }),
    ...(record.model == null ? {} : { model: record.model }),
    ...(record.tools == null ? {} : { tools: record.tools }),
    ...(record.mcp_servers == null ? {} : { mcp_servers: record.mcp_servers }),
    ...(record.cwd == null ? {} : { cwd: record.cwd })
  })
  const told = JSON.stringify(bound)
  if (state.sessionId !== undefined && state.sessionId !== record.session_id) {
    outputs.push(notice("rebound", `Claude Code goes on under the session id ${record.session_id} instead of ${state.sessionId}`))
  }
  if (state.sessionId !== record.session_id) outputs.push({ _tag: "Session", harnessSessionId: record.session_id })
  const { turn } = state
  const begins = turn !== undefined && !turn.announced
  const own = turn === undefined || (turn.announced && !turn.begun)
  // Between turns nobody would hear of it; the next turn begins with an init of its own.
  const tells = turn !== undefined && told !== state.told
  if (tells) outputs.push(event(bound), ...differences(asked, record))
  if (own) outputs.push({ _tag: "Busy", busy: true })
  return step(
    {
      ...state,
      sessionId: record.session_id,
      told: tells ? told : state.told,
      ownTurn: own || state.ownTurn,
      turn: begins ? { ...turn, begun: true } : turn
    },
    ...outputs
  )
}

/** Claude Code reports an alias such as `opus` as the model's full name. */
const isModel = (asked: string, inForce: string): boolean =>
  inForce === asked || inForce.replace(/\[1m\]$/, "") === asked || inForce.toLowerCase().includes(asked.toLowerCase())

const differences = (asked: Asked, record: typeof ClaudeWire.Init.Type): Outputs => {
  const outputs: Array<Dialect.Output> = []
  if (record.claude_code_version != null && record.claude_code_version !== asked.testedVersion) {
    outputs.push(notice(
      "untested_version",
      `Claude Code ${record.claude_code_version} is not the version that is tested, ${asked.testedVersion}`
    ))
  }
  if (asked.model !== undefined && record.model != null && !isModel(asked.model, record.model)) {
    outputs.push(notice("model_differs", `the model is ${record.model}; asked for was ${asked.model}`))
  }
  if (record.tools != null) {
    const { beyond, missing } = ClaudeTools.compare(asked.tools, record.tools)
    if (missing.length > 0) outputs.push(notice("tools_differ", `Claude Code does not offer ${missing.join(", ")}`))
    if (beyond.length > 0) {
      outputs.push(notice(
        "tools_differ",
        `Claude Code offers ${beyond.join(", ")} beyond the allow-list; a call is refused unless it is permitted when it asks`
      ))
    }
  }
  for (const server of record.mcp_servers ?? []) {
    if (server.status === "failed" || server.status === "needs-auth") {
      outputs.push(notice("mcp_server_failed", `the MCP server ${server.name} is not there: ${server.status}`))
    }
  }
  return outputs
}

const tasks = (state: State, record: typeof ClaudeWire.BackgroundTasksChanged.Type): Step => {
  const list = record.tasks.map(({ description, task_id }) => ({
    id: task_id,
    ...(description == null ? {} : { description })
  }))
  return step({ ...state, tasks: list }, { _tag: "Tasks", tasks: list })
}

const retry = (state: State, record: typeof ClaudeWire.ApiRetry.Type): Dialect.Event =>
  TurnEvent.make("retry/scheduled", {
    attempt: Math.max(0, Math.round(record.attempt)),
    ...(record.max_retries == null ? {} : { max_attempts: Math.max(0, Math.round(record.max_retries)) }),
    ...(record.retry_delay_ms == null ? {} : { delay_ms: Math.max(0, Math.round(record.retry_delay_ms)) }),
    error: ClaudeFailure.make({
      message: `${record.error ?? "the request failed"}${record.error_status == null ? "" : ` (HTTP ${record.error_status})`}`,
      status: record.error_status ?? undefined,
      error: record.error ?? undefined,
      apiError: undefined,
      terminalReason: undefined,
      subtype: "",
      unanswered: record.error_status == null
    }, state.asked.redact)
  })

const closeStep = (turn: Turn): Outputs => turn.stepOpen ? [event(TurnEvent.make("step/end", { step: turn.step }))] : []

/** Begins a step with each new message of the model. */
const openMessage = (turn: Turn, messageId: string): { readonly turn: Turn; readonly outputs: Outputs } =>
  turn.messageId === messageId ? { turn, outputs: [] } : {
    turn: {
      ...turn,
      messageId,
      step: turn.step + 1,
      stepOpen: true,
      textStreamed: false,
      reasoningStreamed: false,
      messageTold: false
    },
    outputs: [
      ...(turn.textStreamed && !turn.messageTold
        ? [notice("harness_note", "the answer broke off and Claude Code asked for it again; what was told of it does not count")]
        : []),
      ...closeStep(turn),
      event(TurnEvent.make("step/start", { step: turn.step + 1 }))
    ]
  }

const streamed = (state: State, turn: Turn, record: typeof ClaudeWire.StreamEvent.Type): Step => {
  const { event: inner, parent_tool_use_id } = record
  const others = origin(turn, parent_tool_use_id)
  if (inner.type === "message_start" && inner.message !== undefined && others.origin === undefined) {
    const opened = openMessage(turn, inner.message.id)
    return step({ ...state, turn: { ...opened.turn, seen: ClaudeUsage.begun(opened.turn.seen) } }, ...opened.outputs)
  }
  if (inner.type !== "content_block_delta" || inner.delta == null || !("type" in inner.delta)) return step(state)
  const { text, thinking, type } = inner.delta
  if (type === "text_delta" && text != null && text !== "") {
    return step(
      others.origin === undefined ? withTurn(state, turn, { textStreamed: true }) : state,
      event(TurnEvent.make("assistant/chunk", { kind: "text", text, ...others }))
    )
  }
  if (type === "thinking_delta" && thinking != null && thinking !== "") {
    return step(
      others.origin === undefined ? withTurn(state, turn, { reasoningStreamed: true }) : state,
      event(TurnEvent.make("assistant/chunk", { kind: "reasoning", text: thinking, ...others }))
    )
  }
  return step(state)
}

const synthetic = "<synthetic>"

const assistant = (state: State, before: Turn, record: typeof ClaudeWire.Assistant.Type): Step => {
  const { message, parent_tool_use_id } = record
  if (message.model === synthetic) return ownWords(state, before, record)
  const others = origin(before, parent_tool_use_id)
  const isOwn = others.origin === undefined
  const opened = isOwn ? openMessage(before, message.id) : { turn: before, outputs: [] }
  let { turn } = opened
  const outputs: Array<Dialect.Output> = [...opened.outputs]
  for (const block of message.content) {
    if (block.type === "text" && "text" in block) {
      if (block.text === "") continue
      if (isOwn && !turn.textStreamed) outputs.push(event(TurnEvent.make("assistant/chunk", { kind: "text", text: block.text })))
      outputs.push(event(TurnEvent.make("assistant/message", {
        text: block.text,
        ...(record.aborted === true ? { partial: true } : {}),
        ...others
      })))
      if (isOwn) turn = { ...turn, answer: turn.answer + block.text, messageTold: true }
    } else if (block.type === "thinking" && "thinking" in block) {
      if (!turn.reasoningStreamed && block.thinking !== "") {
        outputs.push(event(TurnEvent.make("assistant/chunk", { kind: "reasoning", text: block.thinking, ...others })))
      }
    } else if (block.type === "tool_use" && "name" in block) {
      outputs.push(event(TurnEvent.make("tool/call", {
        call_id: block.id,
        name: block.name,
        ...(block.input === undefined ? {} : { input: block.input }),
        ...others
      })))
      const todos = todosOf(block.input)
      if (block.name === "TodoWrite" && todos !== undefined) outputs.push(event(TurnEvent.make("todo/write", { todos })))
      const call: Call = { name: block.name, cleared: ClaudeTools.holds(state.asked.tools, block.name, block.input) }
      turn = {
        ...turn,
        answer: isOwn ? "" : turn.answer,
        calls: new Map(turn.calls).set(block.id, turn.calls.get(block.id) ?? call)
      }
    }
  }
  return step({ ...state, turn }, ...outputs)
}

/** A message of Claude Code's own: an error that the result repeats, or a remark. */
const ownWords = (state: State, turn: Turn, record: typeof ClaudeWire.Assistant.Type): Step => {
  if (record.error != null || record.is_api_error_message === true) {
    return step(withTurn(state, turn, {
      trouble: {
        error: record.error ?? undefined,
        apiError: record.api_error ?? undefined,
        status: record.api_error_status ?? undefined
      }
    }))
  }
  const text = record.message.content.flatMap((block) => block.type === "text" && "text" in block ? [block.text] : []).join("\n")
  return text === "" ? step(state) : step(state, notice("harness_note", state.asked.redact(text).slice(0, 2048)))
}

type TodoStatus = TurnEvent.Of<"todo/write">["data"]["todos"][number]["status"]
const isTodoStatus = (value: unknown): value is TodoStatus => value === "pending" || value === "in_progress" || value === "completed"

const todosOf = (input: Schema.Json | undefined): TurnEvent.Of<"todo/write">["data"]["todos"] | undefined => {
  const list = typeof input === "object" && input !== null && !Array.isArray(input) ? (input as Frame.Frame)["todos"] : undefined
  if (!Array.isArray(list)) return undefined
  const todos = list.flatMap((item: Schema.Json) => {
    if (typeof item !== "object" || item === null || Array.isArray(item)) return []
    const { content, status } = item as Frame.Frame
    return typeof content === "string" && isTodoStatus(status) ? [{ content, status }] : []
  })
  return todos.length === list.length ? todos : undefined
}

const user = (state: State, turn: Turn, record: typeof ClaudeWire.User.Type): Step => {
  const { content } = record.message
  if (record.isReplay === true || typeof content === "string") return step(state)
  const others = origin(turn, record.parent_tool_use_id)
  const outputs: Array<Dialect.Output> = []
  let broken: string | undefined
  let worked = turn.worked
  for (const block of content) {
    if (block.type !== "tool_result" || !("tool_use_id" in block)) continue
    const id = block.tool_use_id
    const failed = block.is_error === true
    const output = contentText(block.content)
    const denied = failed && (record.tool_result_meta ?? []).some((meta) =>
      meta.id === id && (meta.non_execution_kind === "permission-rule" || meta.non_execution_kind === "user-rejected")
    )
    outputs.push(event(TurnEvent.make("tool/result", {
      call_id: id,
      is_error: failed,
      ...(output === undefined ? {} : { output: bounded(output) }),
      ...(denied ? { denied: true } : {}),
      ...others
    })))
    worked ||= !denied
    const call = turn.calls.get(id)
    if (!failed && call !== undefined && !call.cleared) broken ??= call.name
  }
  if (broken === undefined) return step(withTurn(state, turn, { worked }), ...outputs)
  return {
    state: { ...state, turn: undefined },
    outputs: [...outputs, {
      _tag: "Kill",
      failure: Failure.make("POLICY_VIOLATION", `Claude Code ran ${broken}, which the allow-list does not hold, without asking`)
    }]
  }
}

const clear = (state: State, callId: string | null | undefined): State => {
  const { turn } = state
  if (turn === undefined || callId == null) return state
  const calls = new Map(turn.calls).set(callId, { name: turn.calls.get(callId)?.name ?? "", cleared: true })
  return withTurn(state, turn, { calls })
}

const controlRequest = (state: State, record: typeof ClaudeWire.ControlRequest.Type): Step => {
  const { request, request_id } = record
  if (request.subtype === "hook_callback" && "callback_id" in request) {
    const { tool_input, tool_name } = request.input
    const held = tool_name != null && ClaudeTools.holds(state.asked.tools, tool_name, tool_input)
    return step(state, {
      _tag: "Send",
      frame: ClaudeWire.gateAnswer(
        request_id,
        held ? "allow" : "ask",
        held ? "the allow-list holds the tool" : "the allow-list does not hold the tool"
      )
    })
  }
  if (request.subtype === "can_use_tool" && "tool_name" in request) {
    const listed = ClaudeTools.holds(state.asked.tools, request.tool_name, request.input)
    return step(clear(state, request.tool_use_id), {
      _tag: "Ask",
      callId: request.tool_use_id ?? undefined,
      request: {
        requestId: request_id,
        toolName: request.tool_name,
        input: request.input,
        description: [request.description, request.decision_reason].filter((text) => text != null).join("; ") || undefined,
        listed
      },
      ...(state.asked.tools.all
        ? { preset: { decision: "allow", reason: "all tools were allowed, dangerously", by: "dangerous-all" } as const }
        : {}),
      respond: (outcome) => [
        outcome.decision === "allow"
          ? ClaudeWire.allow(request_id, request.input)
          : ClaudeWire.deny(request_id, outcome.reason, outcome.decision === "cancelled")
      ]
    })
  }
  return step(
    state,
    { _tag: "Send", frame: ClaudeWire.cannot(request_id, `${request.subtype} is not supported here`) },
    notice("unknown_frame", `Claude Code asked for ${request.subtype}, which nobody here answers; it was told so`)
  )
}

const ended = (state: State, turn: Turn, ending: Extract<Dialect.Output, { _tag: "End" | "Fail" }>, ...before: Outputs): Step =>
  step({ ...state, turn: undefined }, ...before, ...closeStep(turn), ending)

const result = (state: State, record: typeof ClaudeWire.ResultRecord.Type, frame: Frame.Frame): Step => {
  const cost = record.total_cost_usd ?? state.costUsd
  const after: State = { ...state, costUsd: cost }
  const { turn } = state
  if (turn === undefined || (turn.announced && !turn.begun)) {
    // The end of a turn that nobody prompted.
    return step({ ...after, ownTurn: false }, { _tag: "Busy", busy: false }, { _tag: "Late", frame })
  }
  const own: Outputs = state.ownTurn ? [{ _tag: "Busy", busy: false }] : []
  if (record.local_command !== undefined) {
    const command = ranAsCommand(after)
    return { ...command, outputs: [...own, ...command.outputs] }
  }
  const usage = event(TurnEvent.make("usage", { usage: ClaudeUsage.ofResult(record, state.costUsd, turn.seen), final: true }))
  return ended({ ...after, ownTurn: false }, turn, ending(state, turn, record), ...own, usage)
}

const stopReason = (turn: Turn, record: typeof ClaudeWire.ResultRecord.Type): TurnEvent.StopReason | undefined => {
  if (record.terminal_reason?.startsWith("aborted") === true) return "aborted"
  if (record.subtype === "error_max_turns") return "max-turns"
  if ((record.api_error ?? turn.trouble?.apiError ?? turn.trouble?.error) === "max_output_tokens") return "max-tokens"
  if (record.stop_reason === "refusal" || turn.refused) return "refusal"
  // 2.1.197 has no word for it but this.
  if (record.subtype === "error_during_execution" && turn.interrupted) return "aborted"
  return record.is_error || turn.trouble !== undefined ? undefined : "completed"
}

const ending = (
  state: State,
  turn: Turn,
  record: typeof ClaudeWire.ResultRecord.Type
): Extract<Dialect.Output, { _tag: "End" | "Fail" }> => {
  const reason = stopReason(turn, record)
  if (reason === undefined) {
    return {
      _tag: "Fail",
      failure: ClaudeFailure.make({
        message: record.result ?? record.errors?.join("; ") ?? "",
        status: record.api_error_status ?? turn.trouble?.status,
        error: turn.trouble?.error,
        apiError: record.api_error ?? turn.trouble?.apiError,
        terminalReason: record.terminal_reason ?? undefined,
        subtype: record.subtype,
        unanswered: turn.unanswered
      }, state.asked.redact)
    }
  }
  return {
    _tag: "End",
    end: {
      stop_reason: reason,
      text: reason === "completed" ? record.result ?? turn.answer : turn.answer,
      worked: turn.worked,
      denials: (record.permission_denials ?? []).map((denial) => ({
        tool_name: denial.tool_name,
        ...(denial.tool_use_id == null ? {} : { call_id: denial.tool_use_id }),
        ...(denial.tool_input === undefined ? {} : { input: denial.tool_input })
      })),
      background: state.tasks,
      harness_reason: record.terminal_reason ?? record.subtype
    }
  }
}
