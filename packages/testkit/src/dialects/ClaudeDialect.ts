/**
 * Claude Code's stream-json protocol, as its version 2.1.332 speaks it with
 * `-p --input-format stream-json`: written from recordings of the real program
 * (`test/fixtures/claude/2.1.332`), whose frames a test compares with these.
 *
 * Loaded by path into the scripted agent's executable, so it imports nothing but
 * what stands beside it. Not recorded, and therefore no evidence of what the
 * program does: the entries of `background_tasks_changed`, an interrupt while a
 * hook or a person is asked, and every command of its own but `/clear`. Other
 * input formats are not played.
 */
import type { Asked, Dialect, DialectHost, Input, Json, Opening, Question, Spoken } from "../DialectWords.ts"
import * as Argv from "./claudeArguments.ts"
import * as Frames from "./claudeFrames.ts"
import * as Message from "./claudeMessage.ts"
import * as Result from "./claudeResult.ts"
import { isObject, type JsonObject, objectAt, parse } from "./jsonObject.ts"

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
  const tag = (frame: JsonObject): void => host.frame({ ...frame, session_id: host.session().id, uuid: crypto.randomUUID() })
  const voice: Message.Voice = { tag, model: () => host.session().model, partial: options.partial }
  const messages = Message.make(voice)
  const results = Result.make(voice, messages)
  const decisions = new Map<string, Frames.DecidedBy>()
  /** The hook that is called before every tool; absent where the caller registered none. */
  let hook: string | undefined
  /** Questions to that hook, by the ids of their requests, with the id under which a person is asked next. */
  const hooked = new Map<string, { readonly question: Question; readonly requestId: string }>()

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

  const control = (frame: JsonObject): Input => {
    const request = objectAt(frame, "request")
    const respond = (response: Json, more: JsonObject = {}): void =>
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
        const text = textOf(objectAt(frame, "message")["content"])
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
        const response = objectAt(frame, "response")
        const answer = objectAt(response, "response")
        const asked = hooked.get(String(response["request_id"] ?? ""))
        if (asked !== undefined) return decided(asked, objectAt(answer, "hookSpecificOutput"))
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
    results.localCommand()
  }

  /** What follows when the hook has answered. */
  const decided = ({ question, requestId }: { readonly question: Question; readonly requestId: string }, output: JsonObject): Input => {
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
    messages.toolUse(question.id, question.name, question.input ?? {}, () => host.frame(Frames.hookCallback(hookId, callback, question, facts())))
    messages.end("tool_use")
    return { kind: "asked", requestId }
  }

  /** Decides by the settings, or has a person asked. */
  const judge = (question: Question): Asked => {
    if (Argv.allows(options, question.name)) {
      decisions.set(question.id, "config")
      return { kind: "allowed" }
    }
    if (!options.asksOverStdio) {
      tag(Frames.permissionDenied(question.name, question.id))
      return { kind: "denied", reason: Frames.noApprovalSurface }
    }
    const requestId = crypto.randomUUID()
    decisions.set(question.id, "user")
    host.frame(Frames.canUseTool(requestId, question, host.cwd))
    return { kind: "asked", requestId }
  }

  const ask = (question: Question): Asked => {
    if (hook !== undefined) return callHook(hook, question)
    messages.toolUse(question.id, question.name, question.input ?? {})
    let asked: Asked = { kind: "allowed" }
    messages.end("tool_use", () => {
      asked = judge(question)
    })
    return asked
  }

  const say = (action: Spoken): void => {
    switch (action.type) {
      case "tool_call":
        messages.toolUse(action.id, action.name, action.input ?? {})
        decisions.set(action.id, "config")
        return messages.end("tool_use")
      case "tool_result":
        messages.end("tool_use")
        return tag(Frames.user(
          [{ tool_use_id: action.id, type: "tool_result", content: action.output, is_error: action.is_error ?? false }],
          Frames.toolResult(action, decisions.get(action.id) ?? "config")
        ))
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
    turnStarted: ({ prompt, promptId }) => {
      const uuid = promptId === "" ? undefined : promptId
      messages.turnStarted(uuid)
      results.turnStarted()
      if (uuid !== undefined) tag({ type: "command_lifecycle", command_uuid: uuid, state: "started" })
      tag({ ...Frames.init(facts()), ...(uuid === undefined ? {} : { user_message_uuids: [uuid] }) })
      if (uuid === undefined) return
      messages.requesting()
      if (!options.replaysUserMessages) return
      host.frame({ ...Frames.user(prompt), session_id: host.session().id, uuid, isReplay: true })
    },
    messageStarted: (_, kind) => messages.blockStarted(kind),
    piece: (_, piece) => messages.piece(piece),
    messageEnded: (_, whole) => messages.blockEnded(whole),
    say: (_, action) => say(action),
    ask: (_, question) => ask(question),
    end: results.ended,
    fail: results.failed,
    interrupted: results.interrupted,
    // Recorded: INT ends the turn with a result and the process with 0; TERM ends it with 143 and without one.
    signalled: (signal, turn) => {
      if (signal === "SIGTERM") return { code: 143 }
      if (turn !== undefined) results.interrupted(turn)
      return { code: 0 }
    },
    exitCode: () => (results.lastFailed() ? 1 : 0)
  }
}
