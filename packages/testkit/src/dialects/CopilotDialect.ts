/**
 * Copilot's server, as its version 1.0.102 speaks it: JSON-RPC behind lengths,
 * for a client that opens one session. Written from recordings of the real
 * program (`test/fixtures/copilot/1.0.102`), whose frames a test compares with
 * these.
 *
 * Loaded by path into the scripted agent's executable, so it imports nothing but
 * what stands beside it. Not played, and therefore no evidence of what the
 * program does: subagents, its own limits of a model's context, tools of servers,
 * and the three attempts after an answer that was cut. A session's id changes
 * where a scenario says so; the program's never does. It declares no background
 * task. The number of another protocol is made up.
 */
import * as path from "node:path"
import type { Asked, Dialect, DialectHost, Ending, Failing, Figures, Input, Json, Opening, Question, Spoken, TurnState } from "../DialectWords.ts"
import { type JsonObject, objectAt, parse, textAt } from "./jsonObject.ts"

export const version = "1.0.102"

/** Copilot's words for the kinds of failure that it tells apart. */
const errorTypes: Readonly<Record<string, string>> = { "401": "authentication", "403": "authorization", "402": "quota", "429": "rate_limit" }

/** What the wire calls the endings that are no success. */
const finishReasons: Readonly<Record<string, string>> = { "max-tokens": "length", refusal: "content_filter" }

/** A model's answer that is under way: one message, whatever it is made of. */
interface Message {
  readonly id: string
  content: string
  readonly toolRequests: Array<Json>
}

/** A call that the gate, or a person, has not answered yet. */
interface Waiting {
  readonly callId: string
  readonly name: string
  readonly input: Json
  /** The id of the request to the person, once there is one. */
  requestId: string | undefined
}

export const makeDialect = (host: DialectHost): Dialect => {
  const home = host.env["COPILOT_HOME"] ?? path.join(host.env["HOME"] ?? "", ".copilot")
  const directory = path.join(home, "session-state")
  const startTime = new Date().toISOString()
  let model = "gpt-5.4"
  let hasHooks = false
  let hookIds = 0
  let parentId: string | null = null
  let steps = 0
  let interactionId = ""
  let message: Message | undefined
  let reasoning: { readonly id: string; text: string } | undefined
  /** Whether tools have run whose results the next step reads. */
  let toolsRan = false
  let abortId: Json | undefined
  let running: TurnState | undefined
  const waiting = new Map<string, Waiting>()
  const called = new Map<string, { readonly name: string }>()

  const rpc = (fields: JsonObject): void => host.frame({ jsonrpc: "2.0", ...fields })
  const reply = (id: Json | undefined, result: JsonObject): void => rpc({ id: id ?? null, result })
  const refuse = (id: Json | undefined, message: string): void => rpc({ id: id ?? null, error: { code: -32603, message } })
  const sessionId = (): string => host.session().id

  const event = (type: string, data: JsonObject, isEphemeral = false): void => {
    const id = crypto.randomUUID()
    rpc({
      method: "session.event",
      params: {
        sessionId: sessionId(),
        event: { type, data, ...(isEphemeral ? { ephemeral: true } : {}), id, timestamp: new Date().toISOString(), parentId }
      }
    })
    if (!isEphemeral) parentId = id
  }

  const hook = (hookType: string, input: JsonObject): number => {
    const id = ++hookIds
    rpc({ id, method: "hooks.invoke", params: { sessionId: sessionId(), hookType, input: { sessionId: sessionId(), timestamp: Date.now(), cwd: host.cwd, ...input } } })
    return id
  }

  const open = (id: Json | undefined, params: JsonObject, isResumed: boolean): void => {
    const lies = host.scenario.reports_violations === true
    const session = host.session()
    model = (lies ? host.scenario.model : undefined) ?? textAt(params, "model") ?? host.scenario.model ?? model
    session.model = model
    session.system = textAt(objectAt(params, "systemMessage"), "content") ?? ""
    hasHooks = params["hooks"] === true
    reply(id, {
      sessionId: sessionId(),
      nativeSessionId: sessionId(),
      startTime,
      isRemote: false,
      mode: "interactive",
      workspacePath: path.join(directory, sessionId()),
      capabilities: { ui: { elicitation: false, mcpApps: false, canvases: false }, extensions: false },
      modelState: { modelId: model }
    })
    if (isResumed) {
      event("session.resume", {
        resumeTime: new Date().toISOString(),
        selectedModel: model,
        contextTier: null,
        sessionLimits: null,
        context: { cwd: host.cwd },
        remoteSteerable: false,
        eventsFileSizeBytes: 1,
        eventCount: 1,
        alreadyInUse: false,
        sessionWasActive: false
      })
    } else {
      event("session.start", {
        sessionId: sessionId(),
        version: 1,
        producer: "copilot-agent",
        copilotVersion: version,
        startTime,
        selectedModel: model,
        contextTier: null,
        context: { cwd: host.cwd },
        remoteSteerable: false,
        alreadyInUse: false
      })
    }
  }

  const create = (id: Json | undefined, params: JsonObject): void => {
    host.session().id = textAt(params, "sessionId") ?? host.session().id
    open(id, params, false)
  }

  const resume = (id: Json | undefined, params: JsonObject): boolean => {
    const wanted = textAt(params, "sessionId") ?? ""
    switch (host.resume(wanted)) {
      case "unknown":
        refuse(id, `Failed to load session events: Session not found: ${wanted}`)
        return false
      case "in_use":
        throw new Error("no recording shows what Copilot says of a session that is in use")
      case "resumed":
        open(id, params, true)
        return true
    }
  }

  const complete = (callId: string, result: JsonObject): void => {
    event("tool.execution_complete", {
      toolCallId: callId,
      model,
      interactionId,
      turnId: String(steps),
      rte: false,
      ...result,
      toolTelemetry: {}
    })
    toolsRan = true
  }

  const denial = (feedback: string): string =>
    `Denied by user via preToolUse hook prompt: the allow-list does not hold the tool. The user provided the following feedback: ${feedback}`

  /** The gate's answer to a call: it may run, or a person is asked. */
  const gateAnswered = (hookId: string, frame: JsonObject): Input => {
    const call = waiting.get(hookId)
    if (call === undefined) return { kind: "handled" }
    waiting.delete(hookId)
    const decision = textAt(objectAt(objectAt(frame, "result"), "output"), "permissionDecision")
    if (decision === "allow") return { kind: "answer", requestId: call.callId, allow: true, reason: "" }
    call.requestId = crypto.randomUUID()
    waiting.set(call.requestId, call)
    const request = {
      kind: "hook",
      toolCallId: call.callId,
      toolName: call.name,
      toolArgs: call.input,
      hookMessage: textAt(objectAt(objectAt(frame, "result"), "output"), "permissionDecisionReason") ?? "",
      workingDirectory: host.cwd
    }
    event("permission.requested", {
      requestId: call.requestId,
      permissionRequest: request,
      promptRequest: request,
      agentMode: "interactive",
      permissionMode: "manual"
    })
    return { kind: "handled" }
  }

  const decided = (id: Json | undefined, params: JsonObject): Input => {
    const requestId = textAt(params, "requestId") ?? ""
    const call = waiting.get(requestId)
    const result = objectAt(params, "result")
    if (call === undefined) {
      reply(id, { success: false })
      return { kind: "handled" }
    }
    waiting.delete(requestId)
    const feedback = textAt(result, "feedback") ?? ""
    const allows = result["kind"] === "approve-once"
    event("permission.completed", {
      requestId,
      toolCallId: call.callId,
      result: allows ? { kind: "approved" } : { kind: "denied-interactively-by-user", feedback }
    })
    reply(id, { success: true })
    return { kind: "answer", requestId: call.callId, allow: allows, reason: denial(feedback) }
  }

  const read = (text: string): Input => {
    const frame = parse(text)
    if (frame === undefined) return { kind: "handled" }
    const { id, method } = frame
    const params = objectAt(frame, "params")
    switch (method) {
      case undefined:
        return gateAnswered(String(id), frame)
      case "connect":
        if (host.scenario.handshake !== "never") {
          reply(id, { ok: true, protocolVersion: host.scenario.handshake === "other_protocol" ? 4 : 3, version, taskKinds: ["agent", "shell"] })
        }
        return { kind: "handled", opening: true }
      case "auth.getStatus":
        reply(id, { isAuthenticated: true, login: "scripted" })
        return { kind: "handled", opening: true }
      case "session.create":
        create(id, params)
        return { kind: "handled" }
      case "session.resume":
        return resume(id, params) ? { kind: "handled" } : { kind: "handled", opening: true }
      case "session.send":
        return { kind: "prompt", id: String(id), text: textAt(params, "prompt") ?? "" }
      case "session.abort":
        if (running === undefined) {
          reply(id, { success: true })
          return { kind: "handled" }
        }
        abortId = id
        return { kind: "interrupt" }
      case "session.permissions.handlePendingPermissionRequest":
        return decided(id, params)
      default:
        rpc({ id: id ?? null, error: { code: -32601, message: `Unhandled method ${String(method)}` } })
        return { kind: "handled" }
    }
  }

  const turnStarted = (turn: TurnState): void => {
    running = turn
    steps = 0
    toolsRan = false
    message = undefined
    reasoning = undefined
    interactionId = crypto.randomUUID()
    const messageId = crypto.randomUUID()
    reply(turn.promptId, { messageId })
    event("session.mcp_servers_loaded", {
      servers: (host.scenario.mcp_servers ?? []).map(({ name, status }) => ({ name, status }))
    }, true)
    if (hasHooks) hook("userPromptSubmitted", { prompt: turn.prompt })
    event("user.message", {
      content: turn.prompt,
      transformedContent: turn.prompt,
      messageId,
      supportedNativeDocumentMimeTypes: [],
      delivery: "idle"
    })
    event("assistant.turn_start", { turnId: "0", interactionId })
  }

  /** Begins the step that reads what the tools answered. */
  const nextStep = (): void => {
    if (!toolsRan) return
    toolsRan = false
    event("assistant.turn_end", { turnId: String(steps) })
    steps++
    event("assistant.turn_start", { turnId: String(steps), interactionId })
  }

  const tell = (figures: Partial<Figures>, finishReason: string): void =>
    event("assistant.usage", {
      model,
      modelDisplayName: model,
      inputTokens: figures.input_tokens ?? null,
      outputTokens: figures.output_tokens ?? null,
      cacheReadTokens: figures.cache_read_tokens ?? null,
      cacheWriteTokens: figures.cache_write_tokens ?? null,
      reasoningTokens: 0,
      cost: 0,
      duration: 1,
      initiator: "user",
      finishReason
    }, true)

  /** Ends the model's answer: its usage, then the message that sums it up. */
  const flush = (turn: TurnState, finishReason: string, figures?: Partial<Figures>): void => {
    if (figures !== undefined) tell(figures, finishReason)
    const whole = message
    const thought = reasoning
    message = undefined
    reasoning = undefined
    if (whole !== undefined) {
      event("assistant.message", {
        messageId: whole.id,
        originatingMessageId: turn.promptId,
        model,
        content: whole.content,
        toolRequests: whole.toolRequests,
        interactionId,
        turnId: String(steps),
        rte: false,
        apiCallId: "chatcmpl-played"
      })
    }
    if (thought !== undefined) event("assistant.reasoning", { reasoningId: thought.id, content: thought.text, rte: false }, true)
  }

  const openMessage = (): Message => {
    if (message === undefined) {
      message = { id: crypto.randomUUID(), content: "", toolRequests: [] }
      event("assistant.message_start", { messageId: message.id }, true)
    }
    return message
  }

  const start = (turn: TurnState, callId: string, name: string, input: Json): void => {
    nextStep()
    if (message !== undefined) message.toolRequests.push({ toolCallId: callId, name, arguments: input, type: "function", intentionSummary: name, toolTitle: name })
    flush(turn, "tool_calls")
    called.set(callId, { name })
    event("tool.execution_start", { toolCallId: callId, toolName: name, arguments: input, turnId: String(steps), model, toolTitle: name })
  }

  const ask = (turn: TurnState, { id, input = {}, name }: Question): Asked => {
    start(turn, id, name, input)
    if (!hasHooks) return { kind: "allowed" }
    waiting.set(String(hook("preToolUse", { toolName: name, toolArgs: input })), { callId: id, name, input, requestId: undefined })
    return { kind: "asked", requestId: id }
  }

  const idle = (isAborted: boolean): void => {
    running = undefined
    const aborted = isAborted ? { aborted: true } : {}
    event("assistant.idle", aborted, true)
    event("session.idle", { ...aborted, mode: "interactive" }, true)
  }

  const aborted = (): void => {
    event("abort", { reason: "user_initiated" })
    for (const [key, { callId, requestId }] of waiting) {
      waiting.delete(key)
      if (requestId === key) event("permission.completed", { requestId, toolCallId: callId, result: { kind: "cancelled", reason: "Session aborted" } })
    }
    // No message sums up what was cut off.
    message = undefined
    reasoning = undefined
    event("assistant.turn_end", { turnId: String(steps) })
    if (abortId !== undefined) reply(abortId, { success: true })
    abortId = undefined
    idle(true)
  }

  const callFailed = (message: string, http_status: number | undefined): void =>
    event("model.call_failure", {
      model,
      ...(http_status === undefined ? {} : { statusCode: http_status }),
      durationMs: 1,
      failureKind: "api",
      source: "top_level",
      errorMessage: message
    }, true)

  const failed = (turn: TurnState, { code, http_status, message }: Failing): void => {
    nextStep()
    flush(turn, "stop")
    callFailed(message, http_status)
    event("assistant.turn_end", { turnId: String(steps) })
    event("session.error", {
      errorType: errorTypes[String(http_status)] ?? (code === "CONTEXT_WINDOW_EXCEEDED" ? "context_limit" : "query"),
      message,
      ...(http_status === undefined ? {} : { statusCode: http_status }),
      originatingMessageId: turn.promptId
    })
    idle(false)
  }

  const say = (turn: TurnState, action: Spoken): void => {
    switch (action.type) {
      case "tool_call":
        return start(turn, action.id, action.name, action.input ?? {})
      case "tool_result":
        return complete(
          action.id,
          action.denied !== undefined
            ? { success: false, error: { message: action.denied, code: "denied" } }
            : action.is_error === true
            ? { success: false, error: { message: action.output, code: "failure" } }
            : { success: true, result: { content: action.output, detailedContent: action.output } }
        )
      case "retry":
        callFailed("the service did not answer", action.http_status)
        return event("assistant.turn_retry", { turnId: String(steps), model, reason: "streaming_error" }, true)
      case "note":
        return event("session.warning", { warningType: "played", message: action.text }, true)
      case "background":
      case "bind":
      case "todo":
        throw new Error(`Copilot has no word for ${action.type}`)
      case "usage":
        // Told where the answer of the model ends.
        return
    }
  }

  const end = (turn: TurnState, { reason, text }: Ending): void => {
    if (reason === "aborted") return aborted()
    nextStep()
    // What the scenario calls the answer is what the message says.
    if (text !== undefined) openMessage().content = text
    const finishReason = finishReasons[reason] ?? "stop"
    flush(turn, finishReason, turn.usage ?? (finishReason === "stop" ? undefined : {}))
    event("assistant.turn_end", { turnId: String(steps) })
    idle(false)
  }

  return {
    framing: "content-length",
    open: (): Opening =>
      host.argv[0] === "--version"
        ? { kind: "exit", code: 0, stdout: `GitHub Copilot CLI ${version}.\nRun 'copilot update' to check for updates.\n`, stderr: "" }
        : !host.argv.includes("--headless") || !host.argv.includes("--stdio")
        ? { kind: "exit", code: 1, stdout: "", stderr: `error: unknown option '${host.argv[0] ?? ""}'\n` }
        : { kind: "session", session: { kind: "new", id: undefined }, directory, model: undefined, system: undefined },
    opened: () => {},
    refuse: (why, id) => ({ code: 1, stderr: `${why}: ${id}\n` }),
    read,
    turnStarted,
    messageStarted: (_, kind) => {
      nextStep()
      if (kind === "text") openMessage()
      else reasoning ??= { id: crypto.randomUUID(), text: "" }
    },
    piece: (_, { kind, text }) => {
      if (kind === "reasoning") {
        if (reasoning === undefined) return
        reasoning.text += text
        return event("assistant.reasoning_delta", { reasoningId: reasoning.id, deltaContent: text }, true)
      }
      const open = openMessage()
      open.content += text
      event("assistant.message_delta", { messageId: open.id, deltaContent: text }, true)
    },
    messageEnded: () => {},
    say,
    ask,
    end,
    fail: failed,
    interrupted: aborted,
    signalled: () => undefined,
    exitCode: () => 0
  }
}
