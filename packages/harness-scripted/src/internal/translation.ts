/**
 * The scripted agent's frames in Turnpike's words. Pure: the state of one
 * process's conversation goes in, the next state and what is to be done come out.
 */
import { Failure, type Scalars, TurnEvent } from "@turnpike/contract"
import { type Dialect, type Frame, Notices } from "@turnpike/harness"
import { type Redaction, ToolAllowlist } from "@turnpike/kernel"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as ScriptedWire from "../ScriptedWire.ts"

export interface State {
  /** The id that was to be resumed; the agent may go on under another. */
  readonly wanted: string | undefined
  readonly opened: ScriptedWire.Opened
  /** Whether `session/bound` has been said by this process. */
  readonly bound: boolean
  /** Prompts sent so far; each is named by its number. */
  readonly prompts: number
  /** The running turn's prompt, empty where the agent began it by itself; `undefined` between turns. */
  readonly turn: string | undefined
  readonly worked: boolean
  /** Calls that were allowed by an answer. */
  readonly answered: ReadonlySet<string>
  readonly tasks: ReadonlyArray<TurnEvent.BackgroundTask>
}

export interface Facts {
  readonly tools: ToolAllowlist.ToolAllowlist
  readonly model: string | undefined
  readonly redact: Redaction.Redactor
}

type Step = Dialect.Step<State>
type Output = Dialect.Output

const event = (value: Dialect.Event): Output => ({ _tag: "Event", event: value })
const step = (state: State, ...outputs: ReadonlyArray<Output>): Step => ({ state, outputs })

export const begin = (opened: ScriptedWire.Opened, wanted: string | undefined): State => ({
  wanted,
  opened,
  bound: false,
  prompts: 0,
  turn: undefined,
  worked: false,
  answered: new Set(),
  tasks: []
})

/** Whether a tool may run unasked. The agent's tools are named as the neutral classes, or by names of their own. */
export const isListed = (list: ToolAllowlist.ToolAllowlist, tool: string): boolean =>
  list._tag === "DangerousAll"
  || list.tools.some((each) => each === tool || (ToolAllowlist.classOf(each) !== undefined && ToolAllowlist.classOf(each) === ToolAllowlist.classOf(tool)))

/** The names that the agent is given: classes where there is one, in order, each once. */
export const toolNames = (list: ToolAllowlist.ToolAllowlist): ReadonlyArray<string> | undefined =>
  list._tag === "DangerousAll" ? undefined : [...new Set(list.tools.map((tool) => ToolAllowlist.classOf(tool) ?? tool))]

/** What the agent says is in force, and where that is not what was asked. */
const announcement = (facts: Facts, opened: ScriptedWire.Opened): ReadonlyArray<Output> => {
  const { model, tools } = facts
  const extra = opened.tools.filter((tool) => !isListed(tools, tool))
  return [
    { _tag: "Session", harnessSessionId: opened.session_id },
    event(TurnEvent.make("session/bound", {
      harness_session_id: opened.session_id,
      resumed: opened.resumed,
      harness_version: opened.version,
      model: opened.model,
      tools: opened.tools,
      ...(opened.mcp_servers === undefined ? {} : { mcp_servers: opened.mcp_servers }),
      cwd: opened.cwd
    })),
    ...(model === undefined || model === opened.model
      ? []
      : [event(Notices.make("model_differs", `the model is ${opened.model}; ${model} was asked for`))]),
    ...(opened.mcp_servers ?? []).filter(({ status }) => status !== "connected").map(({ name, status }) =>
      event(Notices.make("mcp_server_failed", `the MCP server ${name} is not there: ${facts.redact(status)}`))
    ),
    ...(extra.length === 0
      ? []
      : [event(Notices.make("tools_differ", `the agent has tools that the allow-list does not hold: ${extra.join(", ")}`))])
  ]
}

/** Tells of an id that is not the one of before. */
const rebound = (before: string | undefined, now: string): ReadonlyArray<Output> =>
  before === undefined || before === now
    ? []
    : [event(Notices.make("rebound", `the agent changed its session's id from ${before} to ${now}`))]

export const prompt = (facts: Facts) => (state: State, text: string): Step => {
  const id = `p${state.prompts + 1}`
  return step(
    { ...state, prompts: state.prompts + 1, turn: id, worked: false, bound: true },
    ...(state.bound ? [] : [...rebound(state.wanted, state.opened.session_id), ...announcement(facts, state.opened)]),
    { _tag: "Send", frame: { type: "prompt", id, text } }
  )
}

const usage = (frame: Extract<ScriptedWire.Frame, { type: "usage" }>): Output => {
  const { cost_usd, turn: _, type: __, ...tokens } = frame
  return event(TurnEvent.make("usage", {
    usage: {
      tokens: { source: "reported", ...tokens },
      cost: cost_usd === undefined ? { source: "unavailable" } : { source: "reported", usd: cost_usd }
    },
    final: true
  }))
}

const call = (id: Scalars.CallId, name: string, input: Schema.Json): Output =>
  event(TurnEvent.make("tool/call", { call_id: id, name, input }))

/** Frames of the running turn. */
const ofTurn = (facts: Facts, state: State, frame: Exclude<ScriptedWire.Frame, { type: "opened" | "refused" | "background" }>): Step => {
  const over = { ...state, turn: undefined, answered: new Set<string>() }
  const stepEnd = event(TurnEvent.make("step/end", { step: 1 }))
  switch (frame.type) {
    case "started":
      return step(state, event(TurnEvent.make("step/start", { step: 1 })))
    case "text_delta":
      return step(state, event(TurnEvent.make("assistant/chunk", { kind: "text", text: frame.text })))
    case "reasoning_delta":
      return step(state, event(TurnEvent.make("assistant/chunk", { kind: "reasoning", text: frame.text })))
    case "message":
      return step(state, event(TurnEvent.make("assistant/message", { text: frame.text })))
    case "tool_call": {
      const called = call(frame.id, frame.name, frame.input)
      if (isListed(facts.tools, frame.name)) return step({ ...state, worked: true }, called)
      return step(over, called, {
        _tag: "Kill",
        failure: Failure.make("POLICY_VIOLATION", `the agent ran ${frame.name} without asking, which the allow-list (${ToolAllowlist.describe(facts.tools)}) does not hold`)
      })
    }
    case "tool_result":
      return step(
        state,
        event(TurnEvent.make("tool/result", {
          call_id: frame.id,
          is_error: frame.is_error,
          output: frame.output,
          ...(frame.denied === undefined ? {} : { denied: true })
        }))
      )
    case "ask":
      return step(
        { ...state, worked: true },
        call(frame.call_id, frame.name, frame.input),
        {
          _tag: "Ask",
          callId: frame.call_id,
          request: {
            requestId: frame.id,
            toolName: frame.name,
            input: frame.input,
            description: frame.description,
            listed: isListed(facts.tools, frame.name)
          },
          respond: ({ decision, reason }) => [{ type: "answer", id: frame.id, allow: decision === "allow", reason }]
        }
      )
    case "usage":
      return step(state, usage(frame))
    case "todo":
      return step(state, event(TurnEvent.make("todo/write", { todos: frame.todos })))
    case "retry":
      return step(
        state,
        event(TurnEvent.make("retry/scheduled", {
          attempt: frame.attempt,
          max_attempts: frame.max_attempts,
          delay_ms: frame.delay_ms,
          ...(frame.http_status === undefined
            ? {}
            : { error: Failure.make("SERVER", `the model's service answered ${frame.http_status}`, { http_status: frame.http_status }) })
        }))
      )
    case "note":
      return step(state, event(Notices.make("harness_note", facts.redact(frame.text))))
    case "end":
      return step(over, stepEnd, {
        _tag: "End",
        end: {
          stop_reason: frame.reason,
          text: frame.text,
          worked: state.worked,
          denials: frame.denials.map(({ call_id, input, name }) => ({ tool_name: name, call_id, input })),
          background: state.tasks,
          harness_reason: frame.reason
        }
      })
    case "fail":
      return step(over, stepEnd, {
        _tag: "Fail",
        failure: Failure.make(frame.code, facts.redact(frame.message), frame.http_status === undefined ? {} : { http_status: frame.http_status })
      })
  }
}

export const frame = (facts: Facts) => (state: State, raw: Frame.Frame): Step => {
  const decoded = ScriptedWire.decode(raw)
  if (Result.isFailure(decoded)) {
    return step(state, event(Notices.unknownFrame(raw, String(raw["type"] ?? "(without a type)"), facts.redact)))
  }
  const said = decoded.success
  switch (said.type) {
    case "opened":
      return step({ ...state, opened: said }, ...rebound(state.opened.session_id, said.session_id), ...announcement(facts, said))
    case "refused":
      return step(state, { _tag: "Late", frame: raw })
    case "background":
      return step({ ...state, tasks: said.tasks }, { _tag: "Tasks", tasks: said.tasks })
    case "started":
      if (said.turn === "" && state.turn === undefined) {
        const begun = { ...state, turn: "", worked: false }
        return step(begun, { _tag: "Own" }, ...ofTurn(facts, begun, said).outputs)
      }
      return said.turn === state.turn ? ofTurn(facts, state, said) : step(state, { _tag: "Late", frame: raw })
    default:
      return said.turn === state.turn ? ofTurn(facts, state, said) : step(state, { _tag: "Late", frame: raw })
  }
}
