/**
 * The translation: Copilot's frames in, a turn's events and answers out.
 *
 * It is a function of the frames alone. One value of {@link State} stands for
 * the conversation with one process; a turn is within it from `prompt` to the
 * `session.idle` after Copilot has taken the prompt.
 */
import { Failure, TurnEvent } from "@turnpike/contract"
import { Dialect, type Frame, InstalledProgram, Notices } from "@turnpike/harness"
import { type Prompt, type Redaction } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"
import * as CopilotProgram from "./CopilotProgram.ts"
import * as CopilotTools from "./CopilotTools.ts"
import * as CopilotTurn from "./CopilotTurn.ts"
import * as CopilotWire from "./CopilotWire.ts"

/** What was asked for, to be compared with what is in force. */
export interface Asked {
  readonly tools: CopilotTools.Plan
  readonly model: string | undefined
  readonly sessionId: string
  /** The session that is continued; undefined where one begins. */
  readonly resumes: string | undefined
  readonly redact: Redaction.Redactor
  /** Makes ids that no conversation has seen. */
  readonly uuid: () => string
  readonly version: string
}

export interface State {
  readonly asked: Asked
  /** The model in force, as Copilot reported it when it opened the session. */
  readonly model: string | undefined
  /** Whether the session was told to a turn. */
  readonly told: boolean
  readonly turn: CopilotTurn.Turn | undefined
}

export const initial = (asked: Asked, model: string | undefined): State => ({ asked, model, told: false, turn: undefined })

type Step = Dialect.Step<State>
type Outputs = ReadonlyArray<Dialect.Output>

const step = (state: State, ...outputs: Outputs): Step => ({ state, outputs })
const { event, notice } = CopilotTurn

/** Begins a turn. */
export const prompt = (state: State, { text }: Prompt.Prompt): Step => {
  const { asked } = state
  const turn = CopilotTurn.begin(asked.uuid())
  return step(
    { ...state, told: true, turn },
    ...(state.told ? [] : announcement(state)),
    { _tag: "Send", frame: CopilotWire.send(turn.sendId, asked.sessionId, text) }
  )
}

/** Tells of the session, once for each process. */
const announcement = ({ asked, model }: State): Outputs => [
  ...(asked.resumes === undefined || asked.resumes === asked.sessionId
    ? []
    : [notice("rebound", `Copilot goes on under the session id ${asked.sessionId} instead of ${asked.resumes}`)]),
  { _tag: "Session", harnessSessionId: asked.sessionId },
  event(TurnEvent.make("session/bound", {
    harness_session_id: asked.sessionId,
    resumed: asked.resumes !== undefined,
    harness_version: asked.version,
    ...(model === undefined ? {} : { model })
  })),
  ...InstalledProgram.untested(CopilotProgram.description, asked.version).map(event),
  ...(asked.model === undefined || model === undefined || model === asked.model
    ? []
    : [notice("model_differs", `the model is ${model}; asked for was ${asked.model}`)])
]

/** Asks for the end of the running turn; Copilot is idle within moments, whatever the turn was at. */
export const interrupt = (state: State): Step =>
  state.turn === undefined ? step(state) : step(state, { _tag: "Send", frame: CopilotWire.abort(state.asked.uuid(), state.asked.sessionId) })

/** Reads one frame. */
export const frame = (state: State, frame: Frame.Frame): Step => {
  const message = CopilotWire.read(frame)
  switch (message.kind) {
    case "chatter":
      return step(state)
    case "unknown":
      return step(state, event(Notices.unknownFrame(frame, message.name, state.asked.redact)))
    case "answer":
      return answer(state, message.record)
    case "hook":
      return hook(state, message.record)
    case "request":
      return step(
        state,
        { _tag: "Send", frame: CopilotWire.cannot(message.record.id, message.record.method) },
        notice("unknown_frame", `Copilot asked for ${message.record.method}, which nobody here answers; it was told so`)
      )
    case "session.mcp_servers_loaded":
      return step(
        state,
        ...message.data.servers.flatMap(({ name, status }) =>
          status === "failed" || status === "needs-auth" ? [notice("mcp_server_failed", `the MCP server ${name} is not there: ${status}`)] : []
        )
      )
    case "session.warning":
      return step(state, notice("harness_note", state.asked.redact(message.data.message).slice(0, 2048)))
    case "session.info":
      return info(state, message.data)
    case "permission.requested":
      return permission(state, message.data)
    case "permission.completed":
      return step(state, { _tag: "Withdraw", requestId: message.data.requestId })
    default:
      return ofTurn(state, message, frame)
  }
}

/** What Copilot tells people about its settings and its repetitions is told otherwise here, or known. */
const info = (state: State, record: typeof CopilotWire.Info.Type): Step =>
  ["model_retry", "cancellation", "configuration", "notification"].includes(record.infoType ?? "")
    ? step(state)
    : step(state, notice("harness_note", state.asked.redact(record.message).slice(0, 2048)))

/** An answer to the prompt, an abort, or a decision. */
const answer = (state: State, { error, id }: typeof CopilotWire.Answer.Type): Step => {
  const { asked, turn } = state
  const why = error === undefined ? "" : asked.redact(error.message).slice(0, 2048)
  if (turn !== undefined && turn.sendId === id) {
    return error === undefined
      ? step({ ...state, turn: { ...turn, begun: true } })
      : step(
        { ...state, turn: undefined },
        ...CopilotTurn.closeStep(turn),
        { _tag: "Fail", failure: Failure.make("HARNESS_FAILED", `Copilot did not take the prompt: ${why}`) }
      )
  }
  return error === undefined ? step(state) : step(state, notice("harness_note", `Copilot refused a request: ${why}`))
}

const hook = (state: State, { id, params }: typeof CopilotWire.HookInvoke.Type): Step => {
  const toolName = params.input?.toolName
  if (params.hookType !== "preToolUse") return step(state, { _tag: "Send", frame: CopilotWire.noOutput(id) })
  const held = toolName != null && CopilotTools.holds(state.asked.tools, toolName, params.input?.toolArgs ?? undefined)
  return step(state, {
    _tag: "Send",
    frame: CopilotWire.gateAnswer(
      id,
      held ? "allow" : "ask",
      held ? "the allow-list holds the tool" : "the allow-list does not hold the tool"
    )
  })
}

/** Names of tools for the kinds of requests that name none. */
const toolOfKind: Readonly<Record<string, string>> = { shell: "bash", write: "edit", read: "view", url: "web_fetch" }

const permission = (state: State, record: typeof CopilotWire.PermissionRequested.Type): Step => {
  if (record.resolvedByHook === true) return step(state)
  const { asked, turn } = state
  const { permissionRequest, requestId } = record
  const callId = permissionRequest.toolCallId ?? undefined
  const call = callId === undefined ? undefined : turn?.calls.get(callId)
  const target = permissionRequest.fullCommandText == null ? undefined : { command: permissionRequest.fullCommandText }
  const input: Schema.Json | undefined = call?.input ?? permissionRequest.toolArgs ?? target
    ?? (permissionRequest.fileName ?? permissionRequest.path ?? permissionRequest.url ?? undefined)
  const toolName = call?.name ?? permissionRequest.toolName ?? toolOfKind[permissionRequest.kind] ?? permissionRequest.kind
  return step(
    turn === undefined || callId === undefined ? state : { ...state, turn: CopilotTurn.clear(turn, callId) },
    {
      _tag: "Ask",
      callId,
      request: {
        requestId,
        toolName,
        input,
        description: permissionRequest.intention ?? undefined,
        listed: CopilotTools.holds(asked.tools, toolName, input)
      },
      ...(asked.tools.all
        ? { preset: { decision: "allow", reason: "all tools were allowed, dangerously", by: "dangerous-all" } as const }
        : {}),
      respond: ({ decision, reason }) => {
        switch (decision) {
          case "allow":
            return [CopilotWire.decide(asked.uuid(), asked.sessionId, requestId, { kind: "approve-once" })]
          case "deny":
            return [CopilotWire.decide(asked.uuid(), asked.sessionId, requestId, { kind: "reject", feedback: reason })]
          case "cancelled":
            // The abort that follows ends the request.
            return []
        }
      }
    }
  )
}

type TurnKind =
  | "assistant.turn_start"
  | "assistant.turn_end"
  | "assistant.message_start"
  | "assistant.message_delta"
  | "assistant.reasoning_delta"
  | "assistant.message"
  | "assistant.usage"
  | "assistant.turn_retry"
  | "model.call_failure"
  | "session.error"
  | "tool.execution_start"
  | "tool.execution_complete"
  | "abort"
  | "session.idle"

/** What belongs to a turn, and to no other time. */
const ofTurn = (state: State, message: Extract<CopilotWire.Event, { kind: TurnKind }>, frame: Frame.Frame): Step => {
  const { asked, turn } = state
  const { agentId } = message
  if (turn === undefined) {
    // That nothing is left to be done is no news between turns.
    return message.kind === "session.idle" || message.kind === "abort" ? step(state) : step(state, { _tag: "Late", frame })
  }
  const went = ({ outputs, turn }: CopilotTurn.Taken): Step => step({ ...state, turn }, ...outputs)
  switch (message.kind) {
    case "assistant.turn_start":
      return went(CopilotTurn.stepStarts(turn, message))
    case "assistant.turn_end":
      return went(CopilotTurn.stepEnds(turn, message))
    case "assistant.message_start":
      return step(state)
    case "assistant.message_delta":
      return went(CopilotTurn.streamed(turn, message, message.data))
    case "assistant.reasoning_delta":
      return went(CopilotTurn.reasoned(turn, message, message.data))
    case "assistant.message":
      return went(CopilotTurn.message(turn, agentId, message.data))
    case "assistant.usage":
      return went(CopilotTurn.used(turn, agentId, message.data))
    case "model.call_failure":
      return went(CopilotTurn.callFailed(turn, message, message.data))
    case "assistant.turn_retry":
      return went(CopilotTurn.retried(asked, turn, message, message.data))
    case "session.error":
      return went(CopilotTurn.troubled(asked, turn, message, message.data))
    case "tool.execution_start":
      return went(CopilotTurn.toolStarts(asked, turn, agentId, message.data))
    case "tool.execution_complete": {
      const { broken, ...taken } = CopilotTurn.toolEnds(turn, agentId, message.data)
      return broken === undefined ? went(taken) : step({ ...state, turn: undefined }, ...taken.outputs, {
        _tag: "Kill",
        failure: Failure.make("POLICY_VIOLATION", `Copilot ran ${broken}, which the allow-list does not hold, without asking`)
      })
    }
    case "abort":
      return agentId === undefined ? step({ ...state, turn: { ...turn, aborted: message.data.reason ?? "aborted" } }) : step(state)
    case "session.idle":
      return !turn.begun || agentId !== undefined
        ? step(state)
        : step({ ...state, turn: undefined }, ...CopilotTurn.ending(turn, message.data.aborted === true))
  }
}
