/**
 * Codex's app-server, as its version 0.171.0 speaks it: JSON-RPC in lines, for a
 * client that starts or resumes one thread. Written from recordings of the real
 * program (`test/fixtures/codex/0.171.0`), whose frames a test compares with these.
 *
 * Loaded by path into the scripted agent's executable, so it imports nothing but
 * what stands beside it. Not played, and therefore no evidence of what the
 * program does: patches and tools of servers, when a model reads what steers its
 * turn, and the limit of 1048576 characters for a prompt. A thread's id changes
 * where a scenario says so; the program's never does. It declares no background
 * task, and has one protocol.
 */
import * as path from "node:path"
import type { Asked, Dialect, DialectHost, Ending, Failing, Figures, Input, Json, Opening, Piece, Question, Spoken, TurnState } from "../DialectWords.ts"
import { isObject, type JsonObject, objectAt, parse } from "./jsonObject.ts"

export const version = "0.171.0"

/** How the answer to a thread's start names the sandbox that was asked for. */
const sandboxes: Readonly<Record<string, JsonObject>> = {
  "read-only": { type: "readOnly", networkAccess: false },
  "workspace-write": { type: "workspaceWrite", writableRoots: [], networkAccess: false, excludeTmpdirEnvVar: false, excludeSlashTmp: false },
  "danger-full-access": { type: "dangerFullAccess" }
}

/** Codex's words for what it reports with an HTTP status, and for what it does not. */
const errorInfo = ({ code, http_status }: Failing): Json =>
  http_status !== undefined
    ? { httpConnectionFailed: { httpStatusCode: http_status } }
    : { CONTEXT_WINDOW_EXCEEDED: "contextWindowExceeded", SERVER: "internalServerError", OVERLOADED: "serverOverloaded" }[code] ?? "other"

const endings: Readonly<Record<string, string>> = {
  "max-tokens": "Incomplete response returned, reason: max_output_tokens",
  refusal: "stream disconnected before completion: Incomplete response returned, reason: content_filter",
  "max-turns": "the limit of turns is reached"
}

const none = { inputTokens: 0, cachedInputTokens: 0, cacheWriteInputTokens: 0, outputTokens: 0, reasoningOutputTokens: 0, totalTokens: 0 }
type Counts = typeof none
const countsOf = (figures: Figures): Counts => ({
  totalTokens: figures.input_tokens + figures.output_tokens,
  inputTokens: figures.input_tokens,
  cachedInputTokens: figures.cache_read_tokens ?? 0,
  cacheWriteInputTokens: figures.cache_write_tokens ?? 0,
  outputTokens: figures.output_tokens,
  reasoningOutputTokens: 0
})
const add = (one: Counts, other: Counts): Counts => ({
  totalTokens: one.totalTokens + other.totalTokens,
  inputTokens: one.inputTokens + other.inputTokens,
  cachedInputTokens: one.cachedInputTokens + other.cachedInputTokens,
  cacheWriteInputTokens: one.cacheWriteInputTokens + other.cacheWriteInputTokens,
  outputTokens: one.outputTokens + other.outputTokens,
  reasoningOutputTokens: one.reasoningOutputTokens + other.reasoningOutputTokens
})

interface Open {
  readonly id: string
  readonly kind: Piece["kind"]
  readonly startedAtMs: number
}

export const makeDialect = (host: DialectHost): Dialect => {
  const home = host.env["CODEX_HOME"] ?? path.join(host.env["HOME"] ?? "", ".codex")
  const directory = path.join(home, "sessions")
  let model = "gpt-5.4"
  let sandbox: JsonObject = {}
  let approvalPolicy: Json = "on-request"
  let totals = none
  let requests = 0
  let messages = 0
  /** Codex's own ids of the turns, by the prompts' ids. */
  const turnIds = new Map<string, string>()
  const startedAt = new Map<string, number>()
  let running: TurnState | undefined
  let open: Open | undefined
  const called = new Map<string, JsonObject>()

  const seconds = (): number => Math.floor(Date.now() / 1000)
  const notify = (method: string, params: JsonObject): void => host.frame({ method, params, emittedAtMs: Date.now() })
  const reply = (id: Json | undefined, result: JsonObject): void => host.frame({ id: id ?? null, result })
  const refuse = (id: Json | undefined, code: number, message: string): void => host.frame({ error: { code, message }, id: id ?? null })
  const threadId = (): string => host.session().id
  const turnId = (turn: TurnState): string => turnIds.get(turn.promptId) ?? "turn-unknown"
  const status = (active: boolean, ...activeFlags: ReadonlyArray<string>): void =>
    notify("thread/status/changed", { threadId: threadId(), status: active ? { type: "active", activeFlags } : { type: "idle" } })

  const thread = (): JsonObject => ({
    id: threadId(),
    environments: [{ environmentId: "local", cwd: host.cwd, runtimeWorkspaceRoots: [host.cwd] }],
    extra: null,
    sessionId: threadId(),
    forkedFromId: null,
    attachedToThreadId: null,
    parentThreadId: null,
    preview: "",
    ephemeral: false,
    section: null,
    sectionEnteredAt: null,
    projectId: null,
    historyMode: "paginated",
    modelProvider: "scripted",
    model,
    reasoningEffort: null,
    createdAt: seconds(),
    updatedAt: seconds(),
    recencyAt: seconds(),
    status: { type: "idle" },
    path: path.join(directory, `${threadId()}.json`),
    cwd: host.cwd,
    cliVersion: version,
    originator: "turnpike",
    source: "vscode",
    canAcceptDirectInput: true,
    threadSource: null,
    agentNickname: null,
    agentRole: null,
    gitInfo: null,
    name: null,
    daybreakEnabled: null,
    turns: []
  })

  const begin = (id: Json | undefined, params: JsonObject): void => {
    const lies = host.scenario.reports_violations === true
    const session = host.session()
    model = (lies ? host.scenario.model : undefined) ?? (typeof params["model"] === "string" ? params["model"] : undefined) ?? host.scenario.model ?? model
    session.model = model
    session.system = typeof params["developerInstructions"] === "string" ? params["developerInstructions"] : ""
    approvalPolicy = params["approvalPolicy"] ?? approvalPolicy
    sandbox = sandboxes[lies && host.scenario.tools !== undefined ? "danger-full-access" : String(params["sandbox"] ?? "read-only")] ?? {}
    reply(id, {
      thread: thread(),
      model,
      modelProvider: "scripted",
      serviceTier: null,
      disabledPluginIds: [],
      cwd: host.cwd,
      runtimeWorkspaceRoots: [host.cwd],
      instructionSources: [],
      approvalPolicy,
      approvalsReviewer: "user",
      sandbox,
      activePermissionProfile: null,
      reasoningEffort: null,
      multiAgentMode: "explicitRequestOnly"
    })
    notify("thread/started", { thread: thread() })
    for (const server of host.scenario.mcp_servers ?? []) {
      notify("mcpServer/startupStatus/updated", {
        threadId: threadId(),
        name: server.name,
        environmentId: null,
        status: server.status === "failed" ? "failed" : "ready",
        error: null,
        failureReason: null
      })
    }
  }

  const resume = (id: Json | undefined, params: JsonObject): void => {
    const wanted = String(params["threadId"] ?? "")
    switch (host.resume(wanted)) {
      case "unknown":
        return refuse(id, -32600, `no rollout found for thread id ${wanted}`)
      case "in_use":
        throw new Error("no recording shows what Codex says of a thread that is in use")
      case "resumed":
        return begin(id, params)
    }
  }

  const turnFields = (turn: TurnState, more: JsonObject): JsonObject => ({
    id: turnId(turn),
    rootTurnId: turnId(turn),
    items: [],
    itemsView: "notLoaded",
    status: "inProgress",
    error: null,
    startedAt: startedAt.get(turn.promptId) ?? null,
    completedAt: null,
    durationMs: null,
    ...more
  })

  const startTurn = (id: Json | undefined, params: JsonObject): Input => {
    const [input] = Array.isArray(params["input"]) ? params["input"] as ReadonlyArray<Json> : []
    const promptId = String(id)
    turnIds.set(promptId, crypto.randomUUID())
    return { kind: "prompt", id: promptId, text: isObject(input) ? String(input["text"] ?? "") : "" }
  }

  const answer = (frame: JsonObject): Input => {
    const decision = objectAt(frame, "result")["decision"]
    notify("serverRequest/resolved", { threadId: threadId(), requestId: frame["id"] ?? null })
    return { kind: "answer", requestId: String(frame["id"]), allow: decision === "accept", reason: "rejected by user" }
  }

  const read = (line: string): Input => {
    const frame = parse(line)
    if (frame === undefined) return { kind: "handled" }
    const { id, method } = frame
    const params = objectAt(frame, "params")
    switch (method) {
      case undefined:
        return answer(frame)
      case "initialize":
        if (host.scenario.handshake === "other_protocol") throw new Error("Codex names no version of its protocol that could be another")
        if (host.scenario.handshake !== "never") {
          reply(id, {
            userAgent: `turnpike/${version} (Debian 12.0.0; x86_64) unknown (turnpike; 0.1.0)`,
            codexHome: home,
            platformFamily: "unix",
            platformOs: "linux"
          })
          notify("remoteControl/status/changed", { status: "disabled", serverName: "host", installationId: "00000000-0000-4000-8000-000000000000", environmentId: null })
        }
        return { kind: "handled", opening: true }
      case "initialized":
        return { kind: "handled", opening: true }
      case "thread/start":
        begin(id, params)
        return { kind: "handled" }
      case "thread/resume":
        resume(id, params)
        return { kind: "handled" }
      case "thread/inject_items":
        reply(id, {})
        return { kind: "handled" }
      case "turn/start":
        return startTurn(id, params)
      case "turn/steer": {
        if (running === undefined || turnId(running) !== params["expectedTurnId"]) {
          refuse(id, -32600, "no active turn to steer")
          return { kind: "handled" }
        }
        const [message] = Array.isArray(params["input"]) ? params["input"] as ReadonlyArray<Json> : []
        host.session().prompts.push(isObject(message) ? String(message["text"] ?? "") : "")
        reply(id, { turnId: turnId(running) })
        return { kind: "handled" }
      }
      case "turn/interrupt":
        if (running === undefined || turnId(running) !== params["turnId"]) {
          refuse(id, -32600, "no active turn to interrupt")
          return { kind: "handled" }
        }
        reply(id, {})
        return { kind: "interrupt" }
      default:
        refuse(id, -32600, `Invalid request: unknown variant \`${String(method)}\``)
        return { kind: "handled" }
    }
  }

  const started = (turn: TurnState, item: JsonObject): void =>
    notify("item/started", { item, threadId: threadId(), turnId: turnId(turn), startedAtMs: Date.now() })
  const completed = (turn: TurnState, item: JsonObject): void =>
    notify("item/completed", { item, threadId: threadId(), turnId: turnId(turn), contentTokenCount: null, completedAtMs: Date.now() })

  const turnStarted = (turn: TurnState): void => {
    running = turn
    open = undefined
    reply(turn.promptId, { turn: turnFields(turn, {}) })
    startedAt.set(turn.promptId, seconds())
    status(true)
    notify("turn/started", { threadId: threadId(), turn: turnFields(turn, {}) })
    const item = {
      type: "userMessage",
      id: crypto.randomUUID(),
      clientId: null,
      content: [{ type: "text", text: turn.prompt, text_elements: [] }],
      startedAtMs: Date.now(),
      completedAtMs: null
    }
    started(turn, item)
    completed(turn, { ...item, completedAtMs: Date.now() })
  }

  const messageItem = ({ id, kind, startedAtMs }: Open, text: string, completedAtMs: number | null): JsonObject =>
    kind === "text"
      ? { type: "agentMessage", moderation: null, id, text, phase: null, memoryCitation: null, delivery: null, questions: null, startedAtMs, completedAtMs }
      : { type: "reasoning", id, summary: text === "" ? [] : [text], content: [], startedAtMs, completedAtMs }

  const messageStarted = (turn: TurnState, kind: Piece["kind"]): void => {
    open = { id: `${kind === "text" ? "msg" : "rs"}_played_${++messages}`, kind, startedAtMs: Date.now() }
    started(turn, messageItem(open, "", null))
    if (kind === "reasoning") {
      notify("item/reasoning/summaryPartAdded", { threadId: threadId(), turnId: turnId(turn), itemId: open.id, summaryIndex: 0 })
    }
  }

  const piece = (turn: TurnState, { kind, text }: Piece): void => {
    if (open === undefined) return
    const place = { threadId: threadId(), turnId: turnId(turn), itemId: open.id, delta: text }
    if (kind === "text") notify("item/agentMessage/delta", place)
    else notify("item/reasoning/summaryTextDelta", { ...place, summaryIndex: 0 })
  }

  const commandItem = (id: string, input: Json, more: JsonObject): JsonObject => {
    const command = isObject(input) && typeof input["command"] === "string" ? input["command"] : JSON.stringify(input)
    return {
      type: "commandExecution",
      id,
      pluginId: null,
      scriptPath: null,
      command: `/bin/bash -lc '${command}'`,
      cwd: host.cwd,
      processId: null,
      source: "agent",
      status: "inProgress",
      commandActions: [{ type: "unknown", command }],
      aggregatedOutput: null,
      exitCode: null,
      durationMs: null,
      startedAtMs: Date.now(),
      completedAtMs: null,
      ...more
    }
  }

  const call = (turn: TurnState, id: string, input: Json): void => {
    const item = commandItem(id, input, {})
    called.set(id, item)
    started(turn, item)
  }

  const ask = (turn: TurnState, { description, id, input = {} }: Question): Asked => {
    if (approvalPolicy === "never") {
      call(turn, id, input)
      return { kind: "allowed" }
    }
    status(true, "waitingOnApproval")
    call(turn, id, input)
    const { command, commandActions, cwd } = called.get(id) ?? {}
    const requestId = requests++
    host.frame({
      method: "item/commandExecution/requestApproval",
      id: requestId,
      params: {
        kind: "command",
        threadId: threadId(),
        turnId: turnId(turn),
        itemId: id,
        startedAtMs: Date.now(),
        environmentId: "local",
        reason: description ?? null,
        command: command ?? null,
        cwd: cwd ?? null,
        commandActions: commandActions ?? null,
        availableDecisions: ["accept", "cancel"]
      }
    })
    return { kind: "asked", requestId: String(requestId) }
  }

  const report = (turn: TurnState): void => {
    if (turn.usage === undefined) return
    const last = countsOf(turn.usage)
    totals = add(totals, last)
    notify("thread/tokenUsage/updated", { threadId: threadId(), turnId: turnId(turn), tokenUsage: { total: totals, last, modelContextWindow: 258_400 } })
    notify("account/rateLimits/updated", {
      rateLimits: {
        limitId: "codex",
        limitName: null,
        normalModelSlug: null,
        primary: null,
        secondary: null,
        credits: null,
        individualLimit: null,
        spendControlReached: null,
        planType: null,
        rateLimitReachedType: null
      }
    })
  }

  const over = (turn: TurnState, how: "completed" | "failed" | "interrupted", error: JsonObject | null): void => {
    running = undefined
    if (how !== "failed") status(false)
    const text = turn.text
    const items = how === "completed" && text !== "" && open !== undefined ? [messageItem(open, text, Date.now())] : []
    notify("turn/completed", {
      threadId: threadId(),
      turn: turnFields(turn, {
        items,
        itemsView: items.length > 0 ? "summary" : "notLoaded",
        status: how,
        error,
        completedAt: seconds(),
        durationMs: 100
      })
    })
  }

  const errorFields = (message: string, info: Json): JsonObject => ({ message, codexErrorInfo: info, additionalDetails: null, misalignment: null })

  const failed = (turn: TurnState, message: string, info: Json): void => {
    const error = errorFields(message, info)
    notify("thread/status/changed", { threadId: threadId(), status: { type: "systemError" } })
    notify("error", { error, willRetry: false, threadId: threadId(), turnId: turnId(turn) })
    over(turn, "failed", error)
  }

  const say = (turn: TurnState, action: Spoken): void => {
    switch (action.type) {
      case "tool_call":
        return call(turn, action.id, action.input ?? {})
      case "tool_result": {
        const item = called.get(action.id) ?? commandItem(action.id, {}, {})
        const denied = action.denied !== undefined
        return completed(turn, {
          ...item,
          status: denied ? "declined" : action.is_error === true ? "failed" : "completed",
          aggregatedOutput: denied || action.output === "" ? null : action.output,
          exitCode: denied ? null : action.is_error === true ? 1 : 0,
          durationMs: denied ? null : 1,
          completedAtMs: Date.now()
        })
      }
      case "todo":
        return notify("turn/plan/updated", {
          threadId: threadId(),
          turnId: turnId(turn),
          explanation: null,
          plan: action.todos.map(({ content, status: state }) => ({ step: content, status: state === "in_progress" ? "inProgress" : state }))
        })
      case "retry":
        return notify("error", {
          error: {
            message: `Reconnecting... ${action.attempt}/${action.max_attempts}`,
            codexErrorInfo: { responseStreamDisconnected: { httpStatusCode: action.http_status ?? null } },
            additionalDetails: "the service did not answer",
            misalignment: null
          },
          willRetry: true,
          threadId: threadId(),
          turnId: turnId(turn)
        })
      case "note":
        return notify("warning", { threadId: threadId(), message: action.text })
      case "background":
      case "bind":
        throw new Error(`Codex has no word for ${action.type}`)
      case "usage":
        // Told where the turn ends.
        return
    }
  }

  const end = (turn: TurnState, { reason, text }: Ending): void => {
    report(turn)
    if (text !== undefined) turn.text = text
    if (reason === "completed") return over(turn, "completed", null)
    if (reason === "aborted") return over(turn, "interrupted", null)
    return failed(turn, endings[reason] ?? reason, "other")
  }

  return {
    open: (): Opening =>
      host.argv[0] === "--version"
        ? { kind: "exit", code: 0, stdout: `codex-cli ${version}\n`, stderr: "" }
        : host.argv[0] !== "app-server"
        ? { kind: "exit", code: 2, stdout: "", stderr: `error: unexpected argument '${host.argv[0] ?? ""}' found\n` }
        : { kind: "session", session: { kind: "new", id: undefined }, directory, model: undefined, system: undefined },
    opened: () => {},
    refuse: (why, id) => ({ code: 1, stderr: `${why}: ${id}\n` }),
    read,
    turnStarted,
    messageStarted,
    piece,
    messageEnded: (turn, whole) => {
      if (open !== undefined) completed(turn, messageItem(open, whole.text, Date.now()))
    },
    say,
    ask,
    end,
    fail: (turn, failing) => {
      // Recorded: a conversation that is too long is reported with the tokens that it would have had.
      if (failing.code === "CONTEXT_WINDOW_EXCEEDED") report(turn)
      failed(turn, failing.message, errorInfo(failing))
    },
    interrupted: (turn) => over(turn, "interrupted", null),
    signalled: () => undefined,
    exitCode: () => 0
  }
}
