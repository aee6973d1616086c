/**
 * One turn of Copilot's, from its prompt until nothing is left to be done: what
 * the model says, the tools that it calls, and how the end is to be taken.
 *
 * What a subagent does is told with `origin: "subagent"`.
 */
import { type Failure, TurnEvent } from "@turnpike/contract"
import { type Dialect, Notices } from "@turnpike/harness"
import type { Redaction } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"
import * as CopilotFailure from "./CopilotFailure.ts"
import * as CopilotTools from "./CopilotTools.ts"
import * as CopilotUsage from "./CopilotUsage.ts"
import type * as CopilotWire from "./CopilotWire.ts"

/** What the translation of a turn depends on besides its records. */
export interface Terms {
  readonly tools: CopilotTools.Plan
  readonly redact: Redaction.Redactor
}

interface Call {
  readonly name: string
  readonly input: Schema.Json | undefined
  /** Whether the allow-list holds it, or Copilot asked before it ran. */
  readonly cleared: boolean
}

export interface Turn {
  /** The id of the request that sent the prompt. */
  readonly sendId: string
  /** Whether Copilot has taken the prompt. An end before that is of something else. */
  readonly begun: boolean
  readonly step: number
  readonly stepOpen: boolean
  /** The message of which pieces were told and whose whole text was not. */
  readonly streaming: string | undefined
  readonly reasoningStreamed: boolean
  /** What the model has answered since the last tool. */
  readonly answer: string
  readonly worked: boolean
  readonly calls: ReadonlyMap<string, Call>
  readonly denials: ReadonlyArray<TurnEvent.Denial>
  readonly retries: number
  /** The last request to the model that failed, if no answer came since. */
  readonly failedCall: { readonly call: CopilotFailure.Call; readonly message: string } | undefined
  /** The error that Copilot told last, if it did not get over it. */
  readonly trouble: Failure.Failure | undefined
  /** Why Copilot stopped its turn. */
  readonly aborted: string | undefined
  /** Why the last answer of the model ended. */
  readonly finishReason: string | undefined
  readonly usage: CopilotUsage.Sum
}

export const begin = (sendId: string): Turn => ({
  sendId,
  begun: false,
  step: 0,
  stepOpen: false,
  streaming: undefined,
  reasoningStreamed: false,
  answer: "",
  worked: false,
  calls: new Map(),
  denials: [],
  retries: 0,
  failedCall: undefined,
  trouble: undefined,
  aborted: undefined,
  finishReason: undefined,
  usage: CopilotUsage.nothing
})

/** A turn that has taken a record in, and what is to be done about it. */
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

/** Whose event it is. */
export interface Source {
  readonly agentId: string | undefined
  readonly parentToolCallId?: string | null | undefined
}

const isOwn = (source: Source): boolean => source.agentId === undefined && source.parentToolCallId == null
const origin = (source: Source): { readonly origin?: "subagent" } => isOwn(source) ? {} : { origin: "subagent" }

/** Ends the step that is open. */
export const closeStep = (turn: Turn): ReadonlyArray<Dialect.Output> => turn.stepOpen ? [event(TurnEvent.make("step/end", { step: turn.step }))] : []

/** Takes in that the model is asked. */
export const stepStarts = (turn: Turn, source: Source): Taken =>
  isOwn(source)
    ? taken({ ...turn, step: turn.step + 1, stepOpen: true }, ...closeStep(turn), event(TurnEvent.make("step/start", { step: turn.step + 1 })))
    : taken(turn)

export const stepEnds = (turn: Turn, source: Source): Taken => isOwn(source) ? taken({ ...turn, stepOpen: false }, ...closeStep(turn)) : taken(turn)

const brokeOff = notice("harness_note", "the answer broke off and Copilot asked for it again; what was told of it does not count")

/** Takes a piece of an answer in. */
export const streamed = (turn: Turn, source: Source, record: typeof CopilotWire.MessageDelta.Type): Taken => {
  if (record.deltaContent === "") return taken(turn)
  const chunk = event(TurnEvent.make("assistant/chunk", { kind: "text", text: record.deltaContent, ...origin(source) }))
  if (!isOwn(source)) return taken(turn, chunk)
  const again = turn.streaming !== undefined && turn.streaming !== record.messageId
  return taken({ ...turn, streaming: record.messageId }, ...(again ? [brokeOff] : []), chunk)
}

export const reasoned = (turn: Turn, source: Source, record: typeof CopilotWire.ReasoningDelta.Type): Taken =>
  record.deltaContent === "" ? taken(turn) : taken(
    isOwn(source) ? { ...turn, reasoningStreamed: true } : turn,
    event(TurnEvent.make("assistant/chunk", { kind: "reasoning", text: record.deltaContent, ...origin(source) }))
  )

/** Takes a whole message in. What the model says after an error shows that Copilot got over it. */
export const message = (before: Turn, agentId: string | undefined, record: typeof CopilotWire.Message.Type): Taken => {
  const source = { agentId, parentToolCallId: record.parentToolCallId }
  const others = origin(source)
  const told = event(TurnEvent.make("assistant/message", { text: record.content, ...others }))
  if (!isOwn(source)) return record.content === "" ? taken(before) : taken(before, told)
  const outputs: Array<Dialect.Output> = []
  if (before.streaming !== undefined && before.streaming !== record.messageId && record.content !== "") outputs.push(brokeOff)
  if (record.reasoningText != null && record.reasoningText !== "" && !before.reasoningStreamed) {
    outputs.push(event(TurnEvent.make("assistant/chunk", { kind: "reasoning", text: record.reasoningText })))
  }
  if (record.content !== "") {
    if (before.streaming !== record.messageId) outputs.push(event(TurnEvent.make("assistant/chunk", { kind: "text", text: record.content })))
    outputs.push(told)
  }
  const calls = (record.toolRequests ?? []).length > 0
  return taken({
    ...before,
    streaming: undefined,
    reasoningStreamed: false,
    answer: calls ? "" : before.answer + record.content,
    failedCall: undefined,
    trouble: undefined
  }, ...outputs)
}

/** Takes in what a model call consumed. */
export const used = (turn: Turn, agentId: string | undefined, record: typeof CopilotWire.Usage.Type): Taken => {
  const own = isOwn({ agentId, parentToolCallId: record.parentToolCallId })
  return taken({
    ...turn,
    usage: CopilotUsage.add(turn.usage, record),
    finishReason: !own ? turn.finishReason : record.contentFilterTriggered === true ? "content_filter" : record.finishReason ?? undefined
  })
}

export const callFailed = (turn: Turn, source: Source, record: typeof CopilotWire.CallFailure.Type): Taken =>
  isOwn(source)
    ? taken({
      ...turn,
      failedCall: {
        message: record.errorMessage ?? "the request failed",
        call: {
          status: record.statusCode ?? undefined,
          kind: record.failureKind ?? undefined,
          errorCode: record.errorCode ?? undefined,
          errorType: record.errorType ?? undefined
        }
      }
    })
    : taken(turn)

/** Takes in that a request is to be sent again. */
export const retried = (terms: Terms, turn: Turn, source: Source, record: typeof CopilotWire.TurnRetry.Type): Taken => {
  if (!isOwn(source)) return taken(turn)
  const attempt = turn.retries + 1
  const { failedCall } = turn
  return taken(
    { ...turn, retries: attempt },
    event(TurnEvent.make("retry/scheduled", {
      attempt,
      error: CopilotFailure.make({
        message: failedCall === undefined ? record.reason ?? "" : said(failedCall.message),
        errorType: record.reason ?? "unknown",
        status: failedCall?.call.status,
        errorCode: undefined,
        call: failedCall?.call
      }, terms.redact)
    }))
  )
}

/** The service's own words, which Copilot repeats as JSON within a text. */
const said = (errorMessage: string): string => {
  try {
    const parsed: unknown = JSON.parse(errorMessage)
    if (typeof parsed === "string") return parsed
    if (typeof parsed === "object" && parsed !== null && "message" in parsed && typeof parsed.message === "string") return parsed.message
  } catch {
    // Not JSON: it stands for itself.
  }
  return errorMessage
}

export const troubled = (terms: Terms, turn: Turn, source: Source, record: typeof CopilotWire.SessionError.Type): Taken =>
  isOwn(source)
    ? taken({
      ...turn,
      trouble: CopilotFailure.make({
        message: record.message,
        errorType: record.errorType,
        status: record.statusCode ?? undefined,
        errorCode: record.errorCode ?? undefined,
        call: turn.failedCall?.call
      }, terms.redact)
    })
    : taken(turn, notice("harness_note", `a subagent failed: ${terms.redact(record.message).slice(0, 2048)}`))

/** Takes in that a tool begins, which it does before Copilot asks whether it may. */
export const toolStarts = (terms: Terms, turn: Turn, agentId: string | undefined, record: typeof CopilotWire.ToolStart.Type): Taken => {
  const input = record.arguments ?? undefined
  return taken(
    {
      ...turn,
      calls: new Map(turn.calls).set(record.toolCallId, {
        name: record.toolName,
        input,
        cleared: CopilotTools.holds(terms.tools, record.toolName, input)
      })
    },
    event(TurnEvent.make("tool/call", {
      call_id: record.toolCallId,
      name: record.toolName,
      ...(input === undefined ? {} : { input }),
      ...origin({ agentId, parentToolCallId: record.parentToolCallId })
    }))
  )
}

/**
 * Takes in that a tool has ended. `broken` names one that ran although the
 * allow-list does not hold it and nobody was asked.
 */
export const toolEnds = (
  turn: Turn,
  agentId: string | undefined,
  record: typeof CopilotWire.ToolComplete.Type
): Taken & { readonly broken: string | undefined } => {
  const call = turn.calls.get(record.toolCallId)
  const denied = !record.success && (record.error?.code === "denied" || record.error?.code === "rejected")
  const output = record.success ? record.result?.content : record.error?.message ?? record.result?.content
  const denial: TurnEvent.Denial | undefined = denied && call !== undefined
    ? { tool_name: call.name, call_id: record.toolCallId, ...(call.input === undefined ? {} : { input: call.input }) }
    : undefined
  return {
    ...taken(
      { ...turn, worked: turn.worked || !denied, denials: denial === undefined ? turn.denials : [...turn.denials, denial] },
      event(TurnEvent.make("tool/result", {
        call_id: record.toolCallId,
        is_error: !record.success,
        ...(output == null ? {} : { output: bounded(output) }),
        ...(denied ? { denied: true } : {}),
        ...origin({ agentId, parentToolCallId: record.parentToolCallId })
      }))
    ),
    broken: record.success && call !== undefined && !call.cleared ? call.name : undefined
  }
}

/** Notes that Copilot asked before it ran a call. */
export const clear = (turn: Turn, callId: string): Turn => {
  const call = turn.calls.get(callId)
  return call === undefined ? turn : { ...turn, calls: new Map(turn.calls).set(callId, { ...call, cleared: true }) }
}

const stopReason = (turn: Turn): TurnEvent.StopReason =>
  turn.aborted !== undefined
    ? "aborted"
    : turn.finishReason === "length"
    ? "max-tokens"
    : turn.finishReason === "content_filter"
    ? "refusal"
    : "completed"

/** How the turn ends, once nothing is left to be done. */
export const ending = (turn: Turn, aborted: boolean): ReadonlyArray<Dialect.Output> => {
  const ended: Turn = aborted && turn.aborted === undefined ? { ...turn, aborted: "aborted" } : turn
  const before: ReadonlyArray<Dialect.Output> = [
    event(TurnEvent.make("usage", { usage: CopilotUsage.toUsage(turn.usage), final: true })),
    ...closeStep(turn)
  ]
  if (ended.aborted === undefined && ended.trouble !== undefined) return [...before, { _tag: "Fail", failure: ended.trouble }]
  const stop_reason = stopReason(ended)
  return [...before, {
    _tag: "End",
    end: {
      stop_reason,
      text: turn.answer,
      worked: turn.worked,
      denials: turn.denials,
      background: [],
      harness_reason: ended.aborted ?? turn.finishReason ?? "idle"
    }
  }]
}
