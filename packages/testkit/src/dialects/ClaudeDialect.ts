/**
 * Claude Code's stream-json protocol, as its version 2.1.332 speaks it with
 * `-p --input-format stream-json`: written from recordings of the real program
 * (`test/fixtures/claude/2.1.332`), whose frames a test compares with these.
 *
 * Loaded by path into the scripted agent's executable, so it imports types only.
 * Not recorded, and therefore no evidence of what the program does: the entries
 * of `background_tasks_changed`, an interrupt while a hook or a person is asked,
 * and every command of its own but `/clear`. Other input formats are not played.
 */
import type { Asked, Dialect, DialectHost, Ending, Failing, Input, Json, Opening, Question, Spoken, TurnState } from "../DialectWords.ts"
import * as Argv from "./claudeArguments.ts"
import * as Frames from "./claudeFrames.ts"

/** A field that only frames of reasoning have. */
const display = (kind: "text" | "reasoning"): Object => (kind === "reasoning" ? { thinking_display: "updates" } : {})

const aborted = "[Request interrupted by user]"

interface Message {
  readonly id: string
  /** The index of the next content block. */
  blocks: number
  /** What the open block says so far; absent where none is open. */
  open: { readonly kind: "text" | "reasoning"; text: string } | undefined
}

type Object = { readonly [key: string]: Json }

const isObject = (value: unknown): value is Object => typeof value === "object" && value !== null && !Array.isArray(value)

const parse = (line: string): Object | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The text of a user message, whose content is a string or a list of blocks. */
const textOf = (content: Json | undefined): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
    ? content.map((block: Json) => (isObject(block) && typeof block["text"] === "string" ? block["text"] : "")).join("")
    : ""

export const makeDialect = (host: DialectHost): Dialect => {
  const options = Argv.read(host.argv)
  const facts = (): Frames.Facts => ({ session: host.session(), cwd: host.cwd, options, mcpServers: host.scenario.mcp_servers ?? [] })
  const tag = (frame: Object): void => host.frame({ ...frame, session_id: host.session().id, uuid: crypto.randomUUID() })
  const totals = { cost: 0, results: 0, usage: undefined as Frames.ModelUsage | undefined }
  const decisions = new Map<string, Frames.DecidedBy>()
  /** The hook that is called before every tool; absent where the caller registered none. */
  let hook: string | undefined
  /** Questions to that hook, by the ids of their requests, with the id under which a person is asked next. */
  const hooked = new Map<string, { readonly question: Question; readonly requestId: string }>()
  let message: Message | undefined
  let steps = 0
  let begun: Array<string> = []
  let startedAt = 0
  let lastResultFailed = false
  /** Whether the program has said that it asks the model, and the model has not yet begun to answer. */
  let isRequesting = false
  /** The id of the message that the running turn answers; empty where the caller gave none. */
  let answered: { readonly uuid: string; readonly text: string } | undefined

  const event = (value: Object, more: Object = {}): void => {
    if (!options.partial) return
    tag({
      type: "stream_event",
      event: value,
      parent_tool_use_id: null,
      ...more,
      ...(message === undefined ? {} : { api_message_id: message.id })
    })
  }

  /** Fields that say which of the caller's messages is being answered. */
  const marks = (): Object => (answered === undefined ? {} : { user_message_uuid: answered.uuid, user_message_uuids: [answered.uuid] })

  const requesting = (): void => {
    if (!options.partial) return
    tag({ type: "system", subtype: "status", status: "requesting", ...(answered === undefined ? {} : { user_message_uuids: [answered.uuid] }) })
  }

  const beginMessage = (): Message => {
    if (message !== undefined) return message
    const id = `msg_${crypto.randomUUID().replaceAll("-", "").slice(0, 10)}`
    message = { id, blocks: 0, open: undefined }
    begun.push(id)
    steps++
    if (!isRequesting) requesting()
    isRequesting = false
    event({ type: "message_start", message: { ...Frames.message(host.session().model, id, []), usage: Frames.placeholder } }, {
      ttft_ms: 81,
      thinking_display: "updates",
      ...(answered === undefined ? {} : { ...marks(), owed_rows: [] })
    })
    return message
  }

  const endMessage = (stopReason: string): void => {
    if (message === undefined) return
    event({ type: "message_delta", delta: { stop_reason: stopReason, stop_sequence: null }, usage: { output_tokens: 4 } })
    event({ type: "message_stop" })
    message = undefined
  }

  const assistant = (content: Json, more: Object = {}): void => {
    const current = beginMessage()
    tag({
      type: "assistant",
      message: { ...Frames.message(host.session().model, current.id, [content]), usage: Frames.placeholder, context_management: null },
      parent_tool_use_id: null,
      timestamp: new Date().toISOString(),
      request_id: `req_${current.id.slice(4)}`,
      ...marks(),
      ...more
    })
  }

  const user = (content: Json, more: Object = {}): void =>
    tag({ type: "user", message: { role: "user", content }, parent_tool_use_id: null, timestamp: new Date().toISOString(), ...more })

  const toolUse = (id: string, name: string, input: Json, before: () => void = () => {}): void => {
    const current = beginMessage()
    const index = current.blocks++
    event({ type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } })
    event({ type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: JSON.stringify(input) } })
    assistant({ type: "tool_use", id, name, input })
    before()
    event({ type: "content_block_stop", index })
  }

  /**
   * What is told of usage: that of the turn; nothing where the service refused;
   * or, recorded of interrupted turns, zeros in `usage` and the truth beside it.
   */
  type Tells = "usage" | "none" | "zeros"

  const result = (turn: TurnState, more: Object, tells: Tells): void => {
    const usage = turn.usage
    if (usage?.cost_usd !== undefined) totals.cost += usage.cost_usd
    const since = usage === undefined || tells === "none" ? undefined : Frames.modelUsage(usage)
    if (since !== undefined) totals.usage = Frames.addModelUsage(totals.usage, since)
    lastResultFailed = more["is_error"] === true
    tag({
      ...Frames.result,
      total_cost_usd: totals.cost,
      // What nobody set is not reported: an invented 0 would be a lie of the player's.
      ...(usage === undefined && tells === "usage" ? {} : { usage: Frames.usage(tells === "usage" ? usage : undefined) }),
      modelUsage: totals.usage === undefined ? {} : { [host.session().model]: totals.usage },
      ...(since === undefined ? {} : { model_usage_since_last_result: { [host.session().model]: since } }),
      permission_denials: turn.denials.map((denial) => ({ tool_name: denial.name, tool_use_id: denial.call_id, tool_input: denial.input })),
      num_turns: Math.max(1, steps),
      duration_ms: Date.now() - startedAt,
      result_index: totals.results++,
      ...(answered === undefined
        ? {}
        : { ...marks(), request_sent_wall_ms: startedAt, first_request_input_tokens: 1001, first_request_cache_read_input_tokens: 22 }),
      ...(begun.length === 0 || !options.partial ? {} : { begun_message_ids: [...begun] }),
      ...more
    })
    if (answered !== undefined) {
      tag({ type: "command_lifecycle", command_uuid: answered.uuid, state: "completed" })
      answered = undefined
    }
  }

  /** What the program says where the model's service has failed it: a message of its own making, then a result. */
  const apiError = (turn: TurnState, text: string, told: Object, resultTold: Object, stopReason = "stop_sequence"): void => {
    endMessage("end_turn")
    tag(Frames.synthetic(text, stopReason, told))
    result(turn, {
      stop_reason: stopReason,
      terminal_reason: "api_error",
      is_error: true,
      subtype: "success",
      api_error_status: null,
      model_usage_since_last_result: {},
      result: text,
      ...resultTold
    }, stopReason === "refusal" || told["api_error"] === "max_output_tokens" ? "usage" : "none")
  }

  const open = (): Opening => {
    if (options.answer !== undefined) return { kind: "exit", ...options.answer }
    const config = host.env["CLAUDE_CONFIG_DIR"] ?? `${host.env["HOME"] ?? ""}/.claude`
    return {
      kind: "session",
      session: options.resume === undefined
        ? { kind: "new", id: options.sessionId }
        : options.fork
        ? { kind: "resume", id: options.resume, newId: options.sessionId ?? crypto.randomUUID() }
        : { kind: "resume", id: options.resume },
      directory: `${config}/projects/played`,
      model: (host.scenario.reports_violations === true ? host.scenario.model : undefined) ?? options.model ?? host.scenario.model ?? "claude-opus-5-5",
      system: options.system
    }
  }

  const control = (frame: Object): Input => {
    const request = isObject(frame["request"]) ? frame["request"] : {}
    const respond = (response: Json, more: Object = {}): void =>
      host.frame({ type: "control_response", response: { subtype: "success", request_id: frame["request_id"] ?? "", response, ...more } })
    switch (request["subtype"]) {
      case "initialize":
        if (host.scenario.handshake === "never") return { kind: "handled" }
        if (typeof request["appendSystemPrompt"] === "string") host.session().system = request["appendSystemPrompt"]
        hook = Argv.hookOf(request["hooks"])
        respond({
          ...Frames.initialized(host.scenario.handshake === "other_protocol" ? "0.2.9" : Frames.version),
          ...(hook === undefined ? {} : { hooks_applied: true })
        }, {
          pending_permission_requests: [],
          pending_user_dialog_requests: []
        })
        return { kind: "handled" }
      case "interrupt":
        respond({ still_queued: [] })
        return { kind: "interrupt" }
      case "set_model":
        host.session().model = String(request["model"] ?? host.session().model)
        respond({ model: host.session().model })
        return { kind: "handled" }
      case "set_permission_mode":
        options.permissionMode = String(request["mode"])
        respond({ mode: options.permissionMode })
        tag({ type: "system", subtype: "status", status: null, permissionMode: options.permissionMode })
        return { kind: "handled" }
      default:
        host.frame({
          type: "control_response",
          response: {
            subtype: "error",
            request_id: frame["request_id"] ?? "",
            error: `Unsupported control request subtype: ${String(request["subtype"])}`,
            error_code: "unsupported_request"
          }
        })
        return { kind: "handled" }
    }
  }

  const read = (line: string): Input => {
    const frame = parse(line)
    switch (frame?.["type"]) {
      case "user": {
        const text = textOf(isObject(frame["message"]) ? frame["message"]["content"] : undefined)
        const uuid = frame["uuid"]
        if (text === "/clear" && frame["text_not_typed"] !== true) {
          reset()
          return { kind: "handled" }
        }
        // Told for every message with an id, whether messages are replayed or not (seen in 2.1.332).
        if (typeof uuid === "string") {
          tag({ type: "command_lifecycle", command_uuid: uuid, state: "queued" })
          return { kind: "prompt", id: uuid, text }
        }
        return { kind: "prompt", id: "", text }
      }
      case "control_request":
        return control(frame)
      case "control_response": {
        const response = isObject(frame["response"]) ? frame["response"] : {}
        const answer = isObject(response["response"]) ? response["response"] : {}
        const asked = hooked.get(String(response["request_id"] ?? ""))
        if (asked !== undefined) return decided(asked, isObject(answer["hookSpecificOutput"]) ? answer["hookSpecificOutput"] : {})
        return {
          kind: "answer",
          requestId: String(response["request_id"] ?? ""),
          allow: answer["behavior"] === "allow",
          reason: String(answer["message"] ?? "")
        }
      }
      case "control_cancel_request":
      case "keep_alive":
        return { kind: "handled" }
      default:
        return { kind: "exit", code: 1, stderr: `Error parsing streaming input line (type=${String(frame?.["type"] ?? "unknown")}, ${line.length} chars): SyntaxError\n` }
    }
  }

  /** What the program does with `/clear`: the conversation goes on as another one, and no model is asked. */
  const reset = (): void => {
    const session = host.session()
    const id = crypto.randomUUID()
    host.frame({
      type: "conversation_reset",
      new_conversation_id: id,
      uuid: id,
      trigger: "clear",
      user_message_uuid: crypto.randomUUID(),
      timestamp: new Date().toISOString(),
      session_id: session.id
    })
    tag({ type: "system", subtype: "background_tasks_changed", tasks: [] })
    session.id = id
    session.prompts.length = 0
    tag(Frames.init(facts()))
    tag({ ...Frames.localCommand, result_index: totals.results++ })
  }

  /** What follows when the hook has answered. */
  const decided = ({ question, requestId }: { readonly question: Question; readonly requestId: string }, output: Object): Input => {
    const reason = String(output["permissionDecisionReason"] ?? "")
    switch (output["permissionDecision"]) {
      case "allow":
        decisions.set(question.id, "hook")
        return { kind: "answer", requestId, allow: true, reason }
      case "deny":
        decisions.set(question.id, "hook")
        return { kind: "answer", requestId, allow: false, reason: `PreToolUse:${question.name} hook error: ${reason}` }
      default:
        if (!options.asksOverStdio) {
          tag(Frames.permissionDenied(question.name, question.id))
          return { kind: "answer", requestId, allow: false, reason: Frames.noApprovalSurface }
        }
        host.frame(Frames.canUseToolAfterHook(requestId, question, reason))
        return { kind: "handled" }
    }
  }

  const callHook = (callback: string, question: Question): Asked => {
    const hookId = crypto.randomUUID()
    const requestId = crypto.randomUUID()
    hooked.set(hookId, { question, requestId })
    decisions.set(question.id, "user")
    toolUse(question.id, question.name, question.input ?? {}, () => host.frame(Frames.hookCallback(hookId, callback, question, facts())))
    endMessage("tool_use")
    return { kind: "asked", requestId }
  }

  const ask = (question: Question): Asked => {
    if (hook !== undefined) return callHook(hook, question)
    toolUse(question.id, question.name, question.input ?? {})
    event({ type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 3 } })
    const leave = (asked: Asked): Asked => {
      event({ type: "message_stop" })
      message = undefined
      return asked
    }
    if (Argv.allows(options, question.name)) {
      decisions.set(question.id, "config")
      return leave({ kind: "allowed" })
    }
    if (!options.asksOverStdio) {
      tag(Frames.permissionDenied(question.name, question.id))
      return leave({ kind: "denied", reason: Frames.noApprovalSurface })
    }
    const requestId = crypto.randomUUID()
    decisions.set(question.id, "user")
    host.frame(Frames.canUseTool(requestId, question, host.cwd))
    return leave({ kind: "asked", requestId })
  }

  const say = (action: Spoken): void => {
    switch (action.type) {
      case "tool_call":
        toolUse(action.id, action.name, action.input ?? {})
        decisions.set(action.id, "config")
        return endMessage("tool_use")
      case "tool_result":
        endMessage("tool_use")
        return user([{ tool_use_id: action.id, type: "tool_result", content: action.output, is_error: action.is_error ?? false }],
          Frames.toolResult(action, decisions.get(action.id) ?? "config"))
      case "todo": {
        const id = `toolu_${crypto.randomUUID().slice(0, 8)}`
        const todos = action.todos.map((todo) => ({ ...todo, activeForm: todo.content }))
        say({ type: "tool_call", id, name: "TodoWrite", input: { todos } })
        return say({ type: "tool_result", id, output: "Todos have been modified successfully." })
      }
      case "retry":
        return tag({
          type: "system",
          subtype: "api_retry",
          attempt: action.attempt,
          max_retries: action.max_attempts,
          retry_delay_ms: action.delay_ms,
          error_status: action.http_status ?? null,
          error: Frames.retryError(action.http_status)
        })
      case "note":
        return tag({ type: "system", subtype: "informational", content: action.text, level: "notice" })
      case "background":
        return tag({
          type: "system",
          subtype: "background_tasks_changed",
          tasks: action.tasks.map((task) => ({ task_id: task.id, task_type: "local_bash", description: task.description ?? task.id }))
        })
      case "bind":
        if (action.session_id !== undefined) host.session().id = action.session_id
        return tag(Frames.init(facts()))
      case "usage":
        return
    }
  }

  const end = (turn: TurnState, ending: Ending): void => {
    const text = ending.text ?? turn.text
    switch (ending.reason) {
      case "completed":
        endMessage("end_turn")
        return result(turn, {
          stop_reason: "end_turn",
          terminal_reason: "completed",
          is_error: false,
          subtype: "success",
          api_error_status: null,
          result: text,
          ttft_ms: 483,
          ttft_stream_ms: 476,
          time_to_request_ms: 403,
          first_content_frame_ms: 480
        }, "usage")
      case "max-turns":
        endMessage("tool_use")
        return result(turn, {
          stop_reason: "tool_use",
          terminal_reason: "max_turns",
          is_error: true,
          subtype: "error_max_turns",
          errors: [`Reached maximum number of turns (${Math.max(1, steps)})`]
        }, "usage")
      case "max-tokens":
        return apiError(turn, Frames.maxTokens, {
          error: "max_output_tokens",
          api_error: "max_output_tokens",
          api_error_params: { cut: "output_limit" }
        }, { api_error: "max_output_tokens" })
      case "refusal": {
        const id = message?.id ?? "msg_none"
        return apiError(turn, Frames.refused, { error: "invalid_request", request_id: `req_${id.slice(4)}`, refused_message_id: id }, {}, "refusal")
      }
      case "aborted":
        return interrupted(turn)
    }
  }

  const fail = (turn: TurnState, failing: Failing): void => {
    const known = Frames.apiErrors[failing.code] ?? Frames.apiErrors["SERVER"]
    const status = failing.http_status ?? known?.status
    const kind = known?.type === undefined ? {} : { api_error_type: known.type }
    const lost = known?.status === undefined && known?.type === undefined ? { api_error: "connection_failed" } : {}
    apiError(
      turn,
      failing.code === "AUTH" && status === 401 ? Frames.invalidKey : `API Error: ${status === undefined ? "" : `${status} `}${failing.message}`,
      {
        error: known?.error ?? "unknown",
        // A connection that was refused has brought no answer, and so no id of one.
        ...(status === undefined ? {} : { api_error_status: status, request_id: "req_played" }),
        ...kind,
        ...lost
      },
      {
        ...(failing.code === "CONTEXT_WINDOW_EXCEEDED" ? { terminal_reason: "prompt_too_long" } : {}),
        ...(status === undefined ? {} : { api_error_status: status }),
        ...kind,
        ...lost
      }
    )
  }

  const interrupted = (turn: TurnState): void => {
    const wasStreaming = message !== undefined
    const partial = message?.open
    if (partial !== undefined) {
      assistant(
        partial.kind === "text" ? { type: "text", text: partial.text } : { type: "thinking", thinking: partial.text, signature: "" },
        { aborted: true }
      )
    }
    user([{ type: "text", text: aborted }])
    if (message !== undefined) {
      if (partial !== undefined) event({ type: "content_block_stop", index: message.blocks - 1 })
      event({
        type: "message_delta",
        context_management: null,
        delta: { container: null, stop_details: null, stop_reason: null, stop_sequence: null },
        usage: Frames.abandonedUsage
      })
      event({ type: "message_stop" }, { abandoned_blocks: { api_message_id: message.id, from_block_index: message.blocks } })
      message = undefined
    }
    result(turn, {
      stop_reason: null,
      terminal_reason: wasStreaming ? "aborted_streaming" : "aborted_tools",
      is_error: true,
      subtype: "error_during_execution",
      errors: ["[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null"],
      num_turns: steps + 1
    }, "zeros")
  }

  return {
    open,
    opened: () => {
      host.session().tools = Argv.toolsInForce(options, host.scenario)
    },
    refuse: (why, id) => {
      if (why === "in_use") return { code: 1, stderr: `Error: Session ID ${id} is already in use.\n` }
      const text = `No conversation found with session ID: ${id}`
      host.frame({ ...Frames.lost, session_id: id, uuid: crypto.randomUUID(), errors: [text] })
      return { code: 1, stderr: `${text}\n` }
    },
    read,
    turnStarted: (turn) => {
      message = undefined
      steps = 0
      begun = []
      startedAt = Date.now()
      if (turn.promptId !== "") {
        answered = { uuid: turn.promptId, text: turn.prompt }
        tag({ type: "command_lifecycle", command_uuid: turn.promptId, state: "started" })
      }
      tag({ ...Frames.init(facts()), ...(answered === undefined ? {} : { user_message_uuids: [answered.uuid] }) })
      isRequesting = false
      if (answered !== undefined) {
        requesting()
        isRequesting = true
        if (options.replaysUserMessages) {
          host.frame({
            type: "user",
            message: { role: "user", content: answered.text },
            session_id: host.session().id,
            parent_tool_use_id: null,
            uuid: answered.uuid,
            timestamp: new Date().toISOString(),
            isReplay: true
          })
        }
      }
    },
    messageStarted: (_, kind) => {
      const current = beginMessage()
      current.open = { kind, text: "" }
      event({
        type: "content_block_start",
        index: current.blocks++,
        content_block: kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "", signature: "" }
      }, display(kind))
    },
    piece: (_, piece) => {
      if (message?.open === undefined) return
      if (piece.kind === "reasoning" && message.open.text === "" && options.partial) {
        tag({ type: "system", subtype: "thinking_tokens", estimated_tokens: 6, estimated_tokens_delta: 6 })
      }
      message.open.text += piece.text
      event({
        type: "content_block_delta",
        index: message.blocks - 1,
        delta: piece.kind === "text" ? { type: "text_delta", text: piece.text } : { type: "thinking_delta", thinking: piece.text }
      }, display(piece.kind))
    },
    messageEnded: (_, whole) => {
      if (message === undefined) return
      message.open = undefined
      if (whole.kind === "reasoning") {
        event({ type: "content_block_delta", index: message.blocks - 1, delta: { type: "signature_delta", signature: "cGxheWVk" } })
        assistant({ type: "thinking", thinking: whole.text, signature: "cGxheWVk" }, { thinking_duration_ms: 1, thinking_display: "updates" })
      } else assistant({ type: "text", text: whole.text })
      event({ type: "content_block_stop", index: message.blocks - 1 })
    },
    say: (_, action) => say(action),
    ask: (_, question) => ask(question),
    end,
    fail,
    interrupted,
    // Recorded: INT ends the turn with a result and the process with 0; TERM ends it with 143 and without one.
    signalled: (signal, turn) => {
      if (signal === "SIGTERM") return { code: 143 }
      if (turn !== undefined) interrupted(turn)
      return { code: 0 }
    },
    exitCode: () => (lastResultFailed ? 1 : 0)
  }
}
