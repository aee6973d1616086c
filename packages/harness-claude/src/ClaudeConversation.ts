/**
 * The translation: Claude Code's records in, a turn's events and answers out.
 *
 * It is a function of the records alone. One value of {@link State} stands for
 * the conversation with one process; a turn is within it from `prompt` to the
 * record that ends it. What Claude Code does on its own account, when one of its
 * background tasks has ended, is told with `origin: "background"` while a prompt
 * waits behind it, and is a turn of its own otherwise.
 */
import { Failure, TurnEvent } from "@turnpike/contract"
import { Dialect, type Frame, InstalledProgram, Notices } from "@turnpike/harness"
import { type Prompt, type Redaction } from "@turnpike/kernel"
import * as ClaudeFailure from "./ClaudeFailure.ts"
import * as ClaudeProgram from "./ClaudeProgram.ts"
import * as ClaudeTools from "./ClaudeTools.ts"
import * as ClaudeTurn from "./ClaudeTurn.ts"
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
  /** Remarks about what lies around the session, told with its first turn. */
  readonly remarks: ReadonlyArray<TurnEvent.Of<"notice">>
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
  /** Whether it tells of every prompt that it has read it, before that prompt's turn begins. */
  readonly announces: boolean
  readonly turn: ClaudeTurn.Turn | undefined
}

export const initial = (asked: Asked): State => ({
  asked,
  sessionId: asked.resumes,
  told: undefined,
  costUsd: 0,
  tasks: [],
  ownTurn: false,
  announces: false,
  turn: undefined
})

type Step = Dialect.Step<State>
type Outputs = ReadonlyArray<Dialect.Output>

const step = (state: State, ...outputs: Outputs): Step => ({ state, outputs })
const { event, notice } = ClaudeTurn
const withTurn = (state: State, turn: ClaudeTurn.Turn, change: Partial<ClaudeTurn.Turn>): State => ({ ...state, turn: { ...turn, ...change } })

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
  const turn = ClaudeTurn.begin(state.asked.uuid())
  return step({ ...state, turn }, { _tag: "Send", frame: ClaudeWire.prompt(turn.uuid, text) })
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
      return state.turn === undefined ? late(state, frame) : take(state, ClaudeTurn.streamed(state.turn, message.record))
    case "assistant":
      return state.turn === undefined ? late(state, frame) : take(state, ClaudeTurn.assistant(state.asked, state.turn, message.record))
    case "user":
      return state.turn === undefined ? late(state, frame) : told(state, ClaudeTurn.user(state.turn, message.record))
    case "result":
      return result(state, message.record, frame)
  }
}

const take = (state: State, { outputs, turn }: ClaudeTurn.Taken): Step => step({ ...state, turn }, ...outputs)

const told = (state: State, user: ReturnType<typeof ClaudeTurn.user>): Step =>
  user.broken === undefined ? take(state, user) : {
    state: { ...state, turn: undefined },
    outputs: [...user.outputs, {
      _tag: "Kill",
      failure: Failure.make("POLICY_VIOLATION", `Claude Code ran ${user.broken}, which the allow-list does not hold, without asking`)
    }]
  }

/** Of a turn that nobody prompted only the whole messages are kept, not their pieces. */
const late = (state: State, frame: Frame.Frame): Step =>
  frame["type"] === "stream_event" ? step(state) : step(state, { _tag: "Late", frame })

const lifecycle = (before: State, record: typeof ClaudeWire.CommandLifecycle.Type): Step => {
  const state: State = { ...before, announces: true }
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

/** Whether a prompt's turn that has not begun is said to begin: what comes until then is of another one. */
const isKnownToWait = (state: State, turn: ClaudeTurn.Turn): boolean => turn.announced || state.announces

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
  const begins = turn !== undefined && !turn.begun && !isKnownToWait(state, turn)
  const own = turn === undefined || (!turn.begun && !begins)
  // Between turns nobody would hear of it; the next turn begins with an init of its own.
  const tells = turn !== undefined && told !== state.told
  if (tells) outputs.push(event(bound), ...differences(asked, record))
  if (own) outputs.push({ _tag: "Busy", busy: true })
  if (turn === undefined) outputs.push({ _tag: "Own" })
  return step(
    {
      ...state,
      sessionId: record.session_id,
      told: tells ? told : state.told,
      ownTurn: own || state.ownTurn,
      // One that nobody prompted has no prompt's id.
      turn: begins ? { ...turn, begun: true } : turn ?? { ...ClaudeTurn.begin(""), begun: true }
    },
    ...outputs
  )
}

/** Claude Code reports an alias such as `opus` as the model's full name. */
const isModel = (asked: string, inForce: string): boolean =>
  inForce === asked || inForce.replace(/\[1m\]$/, "") === asked || inForce.toLowerCase().includes(asked.toLowerCase())

const differences = (asked: Asked, record: typeof ClaudeWire.Init.Type): Outputs => {
  const outputs = [...InstalledProgram.untested(ClaudeProgram.description, record.claude_code_version ?? asked.version), ...asked.remarks].map(event)
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
    const cleared = state.turn === undefined || request.tool_use_id == null
      ? state
      : { ...state, turn: ClaudeTurn.clear(state.turn, request.tool_use_id) }
    return step(cleared, {
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

const ended = (state: State, turn: ClaudeTurn.Turn, ending: Extract<Dialect.Output, { _tag: "End" | "Fail" }>, ...before: Outputs): Step =>
  step({ ...state, turn: undefined }, ...before, ...ClaudeTurn.closeStep(turn), ending)

const result = (state: State, record: typeof ClaudeWire.ResultRecord.Type, frame: Frame.Frame): Step => {
  const cost = record.total_cost_usd ?? state.costUsd
  const after: State = { ...state, costUsd: cost }
  const { turn } = state
  if (turn === undefined || (!turn.begun && (state.ownTurn || isKnownToWait(state, turn)))) {
    // The end of a turn that nobody prompted, while a prompt waits.
    return step({ ...after, ownTurn: false }, { _tag: "Busy", busy: false }, { _tag: "Late", frame })
  }
  const own: Outputs = state.ownTurn ? [{ _tag: "Busy", busy: false }] : []
  if (record.local_command !== undefined) {
    const command = ranAsCommand(after)
    return { ...command, outputs: [...own, ...command.outputs] }
  }
  const usage = event(TurnEvent.make("usage", { usage: ClaudeUsage.ofResult(record, state.costUsd, turn.seen), final: true }))
  return ended({ ...after, ownTurn: false }, turn, ClaudeTurn.ending(state.asked, turn, record, state.tasks), ...own, usage)
}
