/**
 * The translation: Codex's frames in, a turn's events and answers out.
 *
 * It is a function of the frames alone. One value of {@link State} stands for
 * the conversation with one process, which holds one thread; a turn is within it
 * from `prompt` to the notification that ends it.
 */
import { Failure, TurnEvent } from "@turnpike/contract"
import { type Dialect, type Frame, InstalledProgram, Notices } from "@turnpike/harness"
import { type Prompt, type Redaction } from "@turnpike/kernel"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as CodexFailure from "./CodexFailure.ts"
import * as CodexProgram from "./CodexProgram.ts"
import * as CodexTools from "./CodexTools.ts"
import * as CodexTurn from "./CodexTurn.ts"
import * as CodexWire from "./CodexWire.ts"

/** What was asked for, to be compared with what is in force. */
export interface Asked {
  readonly tools: CodexTools.Plan
  readonly model: string | undefined
  /** The thread that is continued; undefined where one begins. */
  readonly resumes: string | undefined
  readonly redact: Redaction.Redactor
  readonly version: string
  /** Remarks about what lies around the session, told with its first turn. */
  readonly remarks: ReadonlyArray<TurnEvent.Of<"notice">>
}

export interface State {
  readonly asked: Asked
  /** The answer to the thread's start. */
  readonly thread: typeof CodexWire.Thread.Type
  readonly bound: boolean
  /** Counts requests, whose ids no other request of the process has. */
  readonly requests: number
  readonly turn: CodexTurn.Turn | undefined
}

export const initial = (asked: Asked, thread: typeof CodexWire.Thread.Type): State => ({
  asked,
  thread,
  bound: false,
  requests: 0,
  turn: undefined
})

type Step = Dialect.Step<State>
type Outputs = ReadonlyArray<Dialect.Output>

const step = (state: State, ...outputs: Outputs): Step => ({ state, outputs })
const { event, notice } = CodexTurn

const nextId = (state: State): { readonly id: string; readonly state: State } => ({
  id: `turnpike-${state.requests + 1}`,
  state: { ...state, requests: state.requests + 1 }
})

/** Begins a turn. */
export const prompt = (state: State, { text }: Prompt.Prompt): Step => {
  const next = nextId(state)
  return step({ ...next.state, turn: CodexTurn.begin(next.id) }, {
    _tag: "Send",
    frame: CodexWire.startTurn(next.id, state.thread.thread.id, text, {
      approvalPolicy: CodexTools.approvalPolicy(state.asked.tools),
      sandboxPolicy: CodexTools.sandboxPolicy(state.asked.tools)
    })
  })
}

/** Puts a message into the running turn, once Codex has begun it. */
export const steer = (state: State, { text }: Prompt.Prompt): Dialect.Steering<State> | undefined => {
  const { turn } = state
  if (turn?.id === undefined || !turn.started) return undefined
  const next = nextId(state)
  return {
    state: next.state,
    requestId: next.id,
    frame: CodexWire.steerTurn(next.id, state.thread.thread.id, turn.id, text),
    isTaken: (answer) => CodexWire.read(answer).kind === "result"
  }
}

const sendInterrupt = (state: State, turnId: string): Step => {
  const next = nextId(state)
  return step(next.state, { _tag: "Send", frame: CodexWire.interruptTurn(next.id, state.thread.thread.id, turnId) })
}

/** Asks for the end of the running turn. A turn that Codex has not begun yet is interrupted as soon as it has. */
export const interrupt = (state: State): Step => {
  const { turn } = state
  if (turn === undefined) return step(state)
  const after = { ...state, turn: { ...turn, interrupted: true } }
  return turn.started && turn.id !== undefined ? sendInterrupt(after, turn.id) : step(after)
}

const remark = (state: State, text: string): Step => step(state, notice("harness_note", state.asked.redact(text).slice(0, 2048)))

/** Reads one frame. */
export const frame = (state: State, frame: Frame.Frame): Step => {
  const message = CodexWire.read(frame)
  switch (message.kind) {
    case "chatter":
      return step(state)
    case "unknown":
      return step(state, event(Notices.unknownFrame(frame, message.name, state.asked.redact)))
    case "unknown request":
      return step(
        state,
        { _tag: "Send", frame: CodexWire.cannot(message.id, message.name) },
        notice("unknown_frame", `Codex asked for ${message.name}, which nobody here answers; it was told so`)
      )
    case "request":
      return asks(state, message.id, message.request)
    case "result":
      return answered(state, message)
    case "failure":
      return refused(state, message)
    case "serverRequest/resolved":
      return step(state, { _tag: "Withdraw", requestId: requestName(message.params.requestId) })
    case "warning":
    case "guardianWarning":
      return remark(state, message.params.message)
    case "configWarning":
    case "deprecationNotice":
      return remark(state, [message.params.summary, message.params.details ?? ""].filter((text) => text !== "").join(": "))
    case "model/rerouted":
      return step(state, notice("model_differs", `Codex goes on with the model ${message.params.toModel} instead of ${message.params.fromModel}`))
    case "mcpServer/startupStatus/updated":
      return message.params.status === "failed"
        ? step(state, notice("mcp_server_failed", state.asked.redact(`the MCP server ${message.params.name} is not there: ${message.params.error ?? "failed"}`).slice(0, 2048)))
        : step(state)
    case "turn/started":
      return started(state, message.params.threadId, message.params.turn.id, frame)
    case "turn/completed":
      return completed(state, message.params, frame)
    case "turn/plan/updated":
      return within(state, message.params, frame, (turn) => ({ turn, outputs: [event(TurnEvent.make("todo/write", { todos: message.params.plan.map(todo) }))] }))
    case "thread/tokenUsage/updated":
      // Told once more of the last turn when a thread is resumed, and of agents that Codex runs itself.
      return isOwnTurn(state, message.params) && state.turn !== undefined
        ? take(state, CodexTurn.reported(state.turn, message.params.tokenUsage))
        : step(state)
    case "item/agentMessage/delta":
      return within(state, message.params, frame, (turn, isOwn) => CodexTurn.streamed(turn, isOwn, "text", message.params))
    case "item/reasoning/summaryTextDelta":
    case "item/reasoning/textDelta":
      return within(state, message.params, frame, (turn, isOwn) => CodexTurn.streamed(turn, isOwn, "reasoning", message.params))
    case "item/started":
      return within(state, message.params, frame, (turn, isOwn) => CodexTurn.itemStarted(turn, isOwn, message.params.item))
    case "item/completed":
      return itemCompleted(state, message.params, frame)
    case "error":
      return failing(state, message.params, frame)
  }
}

const todo = ({ status, step: content }: { readonly step: string; readonly status: string }) => ({
  content,
  status: status === "inProgress" ? "in_progress" as const : status === "completed" ? "completed" as const : "pending" as const
})

const take = (state: State, { outputs, turn }: CodexTurn.Taken): Step => step({ ...state, turn }, ...outputs)

interface Place {
  readonly threadId: string
  readonly turnId: string
}

/** Codex answers a prompt with its turn's id before it tells anything of the turn; until then it may still tell of earlier ones. */
const isOwnTurn = (state: State, place: Place): boolean =>
  place.threadId === state.thread.thread.id && state.turn?.id === place.turnId

/** Takes what belongs to the running turn in: of its thread, or of an agent that Codex runs within it. */
const within = (
  state: State,
  place: Place,
  frame: Frame.Frame,
  read: (turn: CodexTurn.Turn, isOwn: boolean) => CodexTurn.Taken
): Step => {
  const { turn } = state
  const isOwn = place.threadId === state.thread.thread.id
  if (turn === undefined || (isOwn && !isOwnTurn(state, place))) return step(state, { _tag: "Late", frame })
  return take(state, read(turn, isOwn))
}

const itemCompleted = (state: State, { item, ...place }: Place & { readonly item: CodexWire.Item }, frame: Frame.Frame): Step => {
  let broken: string | undefined
  const taken = within(state, place, frame, (turn, isOwn) => {
    const completed = CodexTurn.itemCompleted(state.asked, turn, isOwn, item)
    broken = completed.broken
    return completed
  })
  return broken === undefined ? taken : {
    state: { ...taken.state, turn: undefined },
    outputs: [...taken.outputs, {
      _tag: "Kill",
      failure: Failure.make("POLICY_VIOLATION", `Codex ran ${broken}, which the allow-list does not hold, without asking`)
    }]
  }
}

/** The first turn that Codex begins makes the thread one that can be resumed. */
const started = (state: State, threadId: string, turnId: string, frame: Frame.Frame): Step => {
  const { turn } = state
  if (threadId !== state.thread.thread.id) return step(state)
  if (turn === undefined || (turn.id !== undefined && turn.id !== turnId)) return step(state, { _tag: "Late", frame })
  const after: State = { ...state, bound: true, turn: { ...turn, id: turnId, started: true } }
  const outputs = state.bound ? [] : binding(state)
  if (!turn.interrupted) return step(after, ...outputs)
  const sent = sendInterrupt(after, turnId)
  return step(sent.state, ...outputs, ...sent.outputs)
}

const binding = ({ asked, thread }: State): Outputs => {
  const outputs: Array<Dialect.Output> = []
  const { id } = thread.thread
  if (asked.resumes !== undefined && asked.resumes !== id) {
    outputs.push(notice("rebound", `Codex goes on under the thread id ${id} instead of ${asked.resumes}`))
  }
  outputs.push(
    { _tag: "Session", harnessSessionId: id },
    event(TurnEvent.make("session/bound", {
      harness_session_id: id,
      resumed: asked.resumes !== undefined,
      harness_version: asked.version,
      ...(thread.model == null ? {} : { model: thread.model }),
      ...(thread.cwd == null ? {} : { cwd: thread.cwd })
    }))
  )
  outputs.push(...InstalledProgram.untested(CodexProgram.description, asked.version).map(event))
  if (asked.model !== undefined && thread.model != null && thread.model !== asked.model) {
    outputs.push(notice("model_differs", `the model is ${thread.model}; asked for was ${asked.model}`))
  }
  if (thread.sandbox != null && thread.sandbox.type !== CodexTools.inForce(asked.tools)) {
    outputs.push(notice("tools_differ", `the sandbox is ${thread.sandbox.type}; asked for was ${CodexTools.inForce(asked.tools)}`))
  }
  return [...outputs, ...asked.remarks.map(event)]
}

const completed = (
  state: State,
  { threadId, turn: { error, id, status } }: Extract<CodexWire.Message, { readonly kind: "turn/completed" }>["params"],
  frame: Frame.Frame
): Step => {
  const { turn } = state
  if (threadId !== state.thread.thread.id) return step(state)
  if (turn === undefined || (turn.id !== undefined && turn.id !== id)) return step(state, { _tag: "Late", frame })
  return step({ ...state, turn: undefined }, ...CodexTurn.ending(state.asked, turn, status, error))
}

/** The answer to a prompt names its turn; the others need no reading. */
const answered = (state: State, { id, result }: Extract<CodexWire.Message, { readonly kind: "result" }>): Step => {
  const { turn } = state
  if (turn === undefined || turn.requestId !== id || turn.id !== undefined) return step(state)
  const read = CodexWire.readTurn(result)
  return Result.isSuccess(read) ? step({ ...state, turn: { ...turn, id: read.success.turn.id } }) : step(state)
}

const refused = (state: State, { error, id }: Extract<CodexWire.Message, { readonly kind: "failure" }>): Step => {
  const { turn } = state
  if (turn !== undefined && turn.requestId === id) {
    return step({ ...state, turn: undefined }, ...CodexTurn.closeStep(turn), {
      _tag: "Fail",
      failure: CodexFailure.ofRefusal(error, state.asked.redact)
    })
  }
  // An interrupt that came when the turn was over already.
  return turn === undefined ? step(state) : remark(state, `Codex refused a request: ${error.message}`)
}

const failing = (
  state: State,
  { error, threadId, turnId, willRetry }: Extract<CodexWire.Message, { readonly kind: "error" }>["params"],
  frame: Frame.Frame
): Step => {
  const isOwn = threadId == null || turnId == null || isOwnTurn(state, { threadId, turnId })
  if (state.turn === undefined || !isOwn) return step(state, { _tag: "Late", frame })
  // What is not tried again is said again by the turn's end.
  return willRetry ? take(state, CodexTurn.retried(state.asked, state.turn, error)) : step(state)
}

/** An id for the log, where a permission request of another process may have the same number. */
const requestName = (id: CodexWire.RequestId): string => `codex-${id}`

interface Question {
  readonly callId: string | undefined
  readonly toolName: string
  readonly input: Schema.Json | undefined
  readonly description: string | undefined
  readonly listed: boolean
}

const asks = (state: State, id: CodexWire.RequestId, request: CodexWire.ServerRequest): Step => {
  const { tools } = state.asked
  const cleared = (callId: string) => state.turn === undefined ? { turn: undefined, input: undefined } : CodexTurn.clear(state.turn, callId)
  const ask = (turn: CodexTurn.Turn | undefined, question: Question, respond: (outcome: Dialect.Outcome) => Frame.Frame): Step =>
    step({ ...state, turn }, {
      _tag: "Ask",
      callId: question.callId,
      request: {
        requestId: requestName(id),
        toolName: question.toolName,
        input: question.input,
        description: question.description,
        listed: question.listed
      },
      ...(tools.all ? { preset: { decision: "allow", reason: "all tools were allowed, dangerously", by: "dangerous-all" } as const } : {}),
      respond: (outcome) => [respond(outcome)]
    })
  const verdict = (outcome: Dialect.Outcome) => outcome.decision === "allow" ? "accept" : outcome.decision === "deny" ? "decline" : "cancel"
  switch (request.kind) {
    case "item/commandExecution/requestApproval": {
      const { command, cwd, itemId, networkApprovalContext, reason } = request.params
      const { input, turn } = cleared(itemId)
      return ask(turn, {
        callId: itemId,
        toolName: "commandExecution",
        input: command == null ? input : { command, ...(cwd == null ? {} : { cwd }) },
        description: reason ?? undefined,
        listed: CodexTools.holds(tools, networkApprovalContext == null ? "execute" : "fetch")
      }, (outcome) => CodexWire.decide(id, verdict(outcome)))
    }
    case "item/fileChange/requestApproval": {
      const { grantRoot, itemId, reason } = request.params
      const { input, turn } = cleared(itemId)
      return ask(turn, {
        callId: itemId,
        toolName: "fileChange",
        input,
        description: [reason, grantRoot == null ? undefined : `for all of ${grantRoot}`].filter((text) => text != null).join("; ") || undefined,
        listed: CodexTools.holds(tools, "edit")
      }, (outcome) => CodexWire.decide(id, verdict(outcome)))
    }
    case "item/permissions/requestApproval": {
      const { itemId, permissions, reason } = request.params
      const asked: Frame.Frame = {
        ...(permissions.network == null ? {} : { network: permissions.network }),
        ...(permissions.fileSystem == null ? {} : { fileSystem: permissions.fileSystem })
      }
      return ask(cleared(itemId).turn, {
        callId: itemId,
        toolName: "permissions",
        input: asked,
        description: reason ?? undefined,
        // More than the sandbox of the list gives is never within the list.
        listed: false
      }, (outcome) => CodexWire.grant(id, outcome.decision === "allow" ? asked : {}))
    }
    case "mcpServer/elicitation/request": {
      const { _meta, message, serverName } = request.params
      if (_meta?.codex_approval_kind !== "mcp_tool_call" || _meta.tool_name == null) {
        return step(
          state,
          { _tag: "Send", frame: CodexWire.elicited(id, "decline") },
          notice("harness_note", `the MCP server ${serverName} asked a question, which nobody here answers; it was told so`)
        )
      }
      const name = CodexTurn.mcpName(serverName, _meta.tool_name)
      // The request does not name its call: it is the one of that tool which runs.
      const call = [...state.turn?.calls ?? []].findLast(([, each]) => each.name === name && each.open && !each.asked)?.[0]
      return ask(call === undefined ? state.turn : cleared(call).turn, {
        callId: call,
        toolName: name,
        input: _meta.tool_params,
        description: message ?? undefined,
        listed: false
      }, (outcome) => CodexWire.elicited(id, verdict(outcome)))
    }
  }
}
