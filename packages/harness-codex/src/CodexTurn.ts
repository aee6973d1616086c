/**
 * One turn of Codex's, from its prompt to the notification that ends it: what the
 * model says, the tools that it calls, and what they cost.
 *
 * A step is one answer of the model with the tools that it asked for; Codex
 * tells of its end by a report of tokens. What agents do that Codex itself runs
 * comes with another thread's id and is told with `origin: "subagent"`.
 */
import { TurnEvent } from "@turnpike/contract"
import { type Dialect, Notices } from "@turnpike/harness"
import type { Redaction } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"
import * as CodexFailure from "./CodexFailure.ts"
import * as CodexTools from "./CodexTools.ts"
import * as CodexUsage from "./CodexUsage.ts"
import type * as CodexWire from "./CodexWire.ts"

/** What the translation of a turn depends on besides its notifications. */
export interface Terms {
  readonly tools: CodexTools.Plan
  readonly redact: Redaction.Redactor
}

interface Call {
  readonly name: string
  readonly input: Schema.Json
  /** Whether Codex asked before it ran. */
  readonly asked: boolean
  readonly open: boolean
}

export interface Turn {
  /** The id of the request that carries the prompt. */
  readonly requestId: string
  /** Codex's own id; undefined until it is told. */
  readonly id: string | undefined
  readonly started: boolean
  readonly interrupted: boolean
  readonly step: number
  readonly stepOpen: boolean
  /** Whether the model's answer was reported whole while a tool of it still ran. */
  readonly stepDue: boolean
  /** The items whose pieces were told, with what was told of them. */
  readonly streaming: ReadonlyMap<string, string>
  /** What the model has answered since the last tool. */
  readonly answer: string
  readonly worked: boolean
  readonly calls: ReadonlyMap<string, Call>
  readonly denials: ReadonlyArray<TurnEvent.Denial>
  readonly usage: CodexUsage.Seen
}

export const begin = (requestId: string): Turn => ({
  requestId,
  id: undefined,
  started: false,
  interrupted: false,
  step: 0,
  stepOpen: false,
  stepDue: false,
  streaming: new Map(),
  answer: "",
  worked: false,
  calls: new Map(),
  denials: [],
  usage: CodexUsage.nothingSeen
})

/** A turn that has taken a notification in, and what is to be done about it. */
export interface Taken {
  readonly turn: Turn
  readonly outputs: ReadonlyArray<Dialect.Output>
}

const taken = (turn: Turn, ...outputs: ReadonlyArray<Dialect.Output>): Taken => ({ turn, outputs })
export const event = (value: Dialect.Event): Dialect.Output => ({ _tag: "Event", event: value })
export const notice = (kind: TurnEvent.NoticeKind, message: string): Dialect.Output => event(Notices.make(kind, message))

/** The most characters of a tool's output that an event carries: 32768. */
export const maxToolOutput = 32_768

const bounded = (text: string): string => {
  if (text.length <= maxToolOutput) return text
  const splitsPair = /[\ud800-\udbff]/.test(text.charAt(maxToolOutput - 1))
  const kept = text.slice(0, splitsPair ? maxToolOutput - 1 : maxToolOutput)
  return `${kept}… (${text.length - kept.length} more characters)`
}

const subagent = { origin: "subagent" } as const
const originOf = (isOwn: boolean): { readonly origin?: "subagent" } => isOwn ? {} : subagent

/** Ends the step that is open. */
export const closeStep = (turn: Turn): ReadonlyArray<Dialect.Output> => turn.stepOpen ? [event(TurnEvent.make("step/end", { step: turn.step }))] : []

const hasOpenCall = (turn: Turn): boolean => [...turn.calls.values()].some(({ open }) => open)

const openStep = (turn: Turn): Taken =>
  turn.stepOpen
    ? taken(turn)
    : taken({ ...turn, step: turn.step + 1, stepOpen: true, stepDue: false }, event(TurnEvent.make("step/start", { step: turn.step + 1 })))

/** The model says something: a step that is over but for its tools makes room. */
const modelSpeaks = (turn: Turn): Taken => {
  if (!turn.stepDue) return openStep(turn)
  const opened = openStep({ ...turn, stepOpen: false, stepDue: false })
  return taken(opened.turn, ...closeStep(turn), ...opened.outputs)
}

/** Takes a piece of an answer or of reasoning in. */
export const streamed = (
  before: Turn,
  isOwn: boolean,
  kind: "text" | "reasoning",
  { delta, itemId }: { readonly itemId: string; readonly delta: string }
): Taken => {
  if (delta === "") return taken(before)
  const { outputs, turn } = isOwn ? modelSpeaks(before) : taken(before)
  return taken(
    { ...turn, streaming: new Map(turn.streaming).set(itemId, (turn.streaming.get(itemId) ?? "") + delta) },
    ...outputs,
    event(TurnEvent.make("assistant/chunk", { kind, text: delta, ...originOf(isOwn) }))
  )
}

/** Tools by Codex's own names for their items, a server's by the name that the model knows it under. */
const callOf = (item: CodexWire.Item): { readonly name: string; readonly input: Schema.Json } | undefined => {
  if (item.type === "commandExecution" && "command" in item) {
    return { name: item.type, input: { command: item.command, ...(item.cwd == null ? {} : { cwd: item.cwd }) } }
  }
  if (item.type === "fileChange" && "changes" in item) {
    return {
      name: item.type,
      input: { changes: item.changes.map(({ diff, kind, path }) => ({ path, ...(kind === undefined ? {} : { kind }), ...(diff == null ? {} : { diff }) })) }
    }
  }
  if (item.type === "mcpToolCall" && "tool" in item) return { name: mcpName(item.server, item.tool), input: item.arguments ?? null }
  if (item.type === "webSearch" && "query" in item) return { name: item.type, input: { query: item.query ?? null } }
  return undefined
}

export const mcpName = (server: string, tool: string): string => `mcp__${server}__${tool}`

const called = (before: Turn, isOwn: boolean, id: string, { input, name }: { readonly name: string; readonly input: Schema.Json }): Taken => {
  const opened = isOwn ? openStep(before) : taken(before)
  return taken(
    {
      ...opened.turn,
      answer: isOwn ? "" : opened.turn.answer,
      calls: new Map(opened.turn.calls).set(id, { name, input, asked: false, open: true })
    },
    ...opened.outputs,
    event(TurnEvent.make("tool/call", { call_id: id, name, input, ...originOf(isOwn) }))
  )
}

/** Takes the beginning of an item in. */
export const itemStarted = (turn: Turn, isOwn: boolean, item: CodexWire.Item): Taken => {
  const call = callOf(item)
  if (call !== undefined) return turn.calls.has(item.id) ? taken(turn) : called(turn, isOwn, item.id, call)
  return isOwn && (item.type === "agentMessage" || item.type === "reasoning") ? modelSpeaks(turn) : taken(turn)
}

/** The words that Codex has for a call to a server's tool that was refused. */
const mcpRefused = "user rejected MCP tool call"

interface Outcome {
  readonly failed: boolean
  readonly denied: boolean
  readonly output: string | undefined
}

const outcomeOf = (item: CodexWire.Item): Outcome => {
  const status = "status" in item ? item.status : "completed"
  const denied = status === "declined"
  if (item.type === "commandExecution" && "command" in item) {
    const failed = status !== "completed" || (item.exitCode ?? 0) !== 0
    return { failed, denied, output: item.aggregatedOutput ?? (denied ? "the command was not allowed" : undefined) }
  }
  if (item.type === "fileChange" && "changes" in item) {
    return { failed: status !== "completed", denied, output: item.changes.map(({ path }) => path).join("\n") }
  }
  if (item.type === "mcpToolCall" && "tool" in item) {
    const refused = item.error?.message === mcpRefused
    return { failed: status !== "completed", denied: refused, output: item.error?.message ?? (item.result == null ? undefined : JSON.stringify(item.result)) }
  }
  return { failed: false, denied: false, output: undefined }
}

/** Whether an item is of a kind that the list does not hold and Codex must not run unasked. */
const oversteps = (tools: CodexTools.Plan, item: CodexWire.Item): boolean => {
  switch (item.type) {
    case "mcpToolCall":
      return !tools.all
    case "fileChange":
      return !CodexTools.holds(tools, "edit") && !CodexTools.holds(tools, "execute")
    case "webSearch":
      return !CodexTools.holds(tools, "fetch")
    default:
      return false
  }
}

const messageCompleted = (before: Turn, isOwn: boolean, id: string, text: string): Taken => {
  const { outputs, turn } = isOwn ? modelSpeaks(before) : taken(before)
  const told = turn.streaming.get(id)
  const streaming = new Map(turn.streaming)
  streaming.delete(id)
  if (text === "") return taken({ ...turn, streaming }, ...outputs)
  return taken(
    { ...turn, streaming, answer: isOwn ? turn.answer + text : turn.answer },
    ...outputs,
    ...(told === undefined ? [event(TurnEvent.make("assistant/chunk", { kind: "text", text, ...originOf(isOwn) }))] : []),
    event(TurnEvent.make("assistant/message", { text, ...originOf(isOwn) }))
  )
}

const reasoningCompleted = (before: Turn, isOwn: boolean, id: string, texts: ReadonlyArray<string>): Taken => {
  const { outputs, turn } = isOwn ? modelSpeaks(before) : taken(before)
  const text = texts.join("\n")
  const streaming = new Map(turn.streaming)
  const told = streaming.delete(id)
  return taken(
    { ...turn, streaming },
    ...outputs,
    ...(told || text === "" ? [] : [event(TurnEvent.make("assistant/chunk", { kind: "reasoning", text, ...originOf(isOwn) }))])
  )
}

/** Takes the end of an item in. `broken` names a tool that ran although the allow-list does not hold it and nobody was asked. */
export const itemCompleted = (terms: Terms, before: Turn, isOwn: boolean, item: CodexWire.Item): Taken & { readonly broken: string | undefined } => {
  if (item.type === "agentMessage" && "text" in item) return { ...messageCompleted(before, isOwn, item.id, item.text), broken: undefined }
  if (item.type === "reasoning" && "summary" in item) {
    return { ...reasoningCompleted(before, isOwn, item.id, [...item.summary ?? [], ...item.content ?? []]), broken: undefined }
  }
  const call = callOf(item)
  if (call === undefined) return { ...taken(before), broken: undefined }
  const opened = before.calls.has(item.id) ? taken(before) : called(before, isOwn, item.id, call)
  const { denied, failed, output } = outcomeOf(item)
  const known = opened.turn.calls.get(item.id)
  const closed: Turn = {
    ...opened.turn,
    worked: opened.turn.worked || !denied,
    calls: new Map(opened.turn.calls).set(item.id, { ...call, asked: known?.asked ?? false, open: false }),
    denials: denied ? [...opened.turn.denials, { tool_name: call.name, call_id: item.id, input: call.input }] : opened.turn.denials
  }
  const stepOver = closed.stepDue && !hasOpenCall(closed)
  return {
    ...taken(
      stepOver ? { ...closed, stepOpen: false, stepDue: false } : closed,
      ...opened.outputs,
      event(TurnEvent.make("tool/result", {
        call_id: item.id,
        is_error: failed,
        ...(output === undefined ? {} : { output: bounded(output) }),
        ...(denied ? { denied: true } : {}),
        ...originOf(isOwn)
      })),
      ...(stepOver ? closeStep(closed) : [])
    ),
    broken: !failed && !(known?.asked ?? false) && oversteps(terms.tools, item) ? call.name : undefined
  }
}

/** Notes that Codex asked before it ran a call, and answers what is known of it. */
export const clear = (turn: Turn, callId: string): { readonly turn: Turn; readonly input: Schema.Json | undefined } => {
  const call = turn.calls.get(callId)
  return call === undefined
    ? { turn, input: undefined }
    : { turn: { ...turn, calls: new Map(turn.calls).set(callId, { ...call, asked: true }) }, input: call.input }
}

/** Takes a report of tokens in, which ends a step. */
export const reported = (before: Turn, report: Parameters<typeof CodexUsage.seen>[1]): Taken => {
  const turn = { ...before, usage: CodexUsage.seen(before.usage, report) }
  if (!turn.stepOpen) return taken(turn)
  return hasOpenCall(turn) ? taken({ ...turn, stepDue: true }) : taken({ ...turn, stepOpen: false }, ...closeStep(turn))
}

/** Takes in that the running request failed and will be sent again. */
export const retried = (terms: Terms, turn: Turn, error: typeof CodexWire.TurnError.Type): Taken => {
  const [, attempt, attempts] = /(\d+)\/(\d+)/.exec(error.message) ?? []
  return taken(
    { ...turn, streaming: new Map() },
    ...(turn.streaming.size > 0
      ? [notice("harness_note", "the answer broke off and Codex asks for it again; what was told of it does not count")]
      : []),
    event(TurnEvent.make("retry/scheduled", {
      attempt: Math.max(1, Number(attempt ?? 1)),
      ...(attempts === undefined || Number(attempts) < 1 ? {} : { max_attempts: Number(attempts) }),
      error: CodexFailure.make(error, terms.redact)
    }))
  )
}

/** What ends with the turn: its pieces, its step, its figures. */
const leave = (turn: Turn, whole: boolean): ReadonlyArray<Dialect.Output> => {
  const pieces = [...turn.streaming.values()].join("")
  return [
    ...(pieces === "" ? [] : [event(TurnEvent.make("assistant/message", { text: pieces, partial: true }))]),
    ...closeStep(turn),
    ...(turn.usage.latest === undefined ? [] : [event(TurnEvent.make("usage", { usage: CodexUsage.ofTurn(turn.usage), final: whole }))])
  ]
}

/** How the turn ends by what Codex says of it. */
export const ending = (
  terms: Terms,
  turn: Turn,
  status: string,
  error: typeof CodexWire.TurnError.Type | null | undefined
): ReadonlyArray<Dialect.Output> => {
  const reason = status === "completed"
    ? "completed"
    : status === "interrupted"
    ? "aborted"
    : error == null
    ? undefined
    : CodexFailure.stopReason(error)
  if (reason === undefined) {
    return [...leave(turn, true), {
      _tag: "Fail",
      failure: CodexFailure.make(error ?? { message: `the turn ended as ${status}, without an error` }, terms.redact)
    }]
  }
  return [...leave(turn, reason !== "aborted"), {
    _tag: "End",
    end: {
      stop_reason: reason,
      text: turn.answer + [...turn.streaming.values()].join(""),
      worked: turn.worked,
      denials: turn.denials,
      background: [],
      harness_reason: error == null ? status : terms.redact(error.message).slice(0, 2048)
    }
  }]
}
