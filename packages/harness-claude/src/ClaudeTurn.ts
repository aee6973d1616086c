/**
 * One turn of Claude Code's, from its prompt to the record that ends it: what the
 * model says, the tools that it calls, and how the result is to be taken.
 *
 * A turn of its own, which Claude Code runs before it begins the prompt, is told
 * with `origin: "background"`; what its subagents do with `origin: "subagent"`.
 */
import { TurnEvent } from "@turnpike/contract"
import { type Dialect, type Frame, Notices } from "@turnpike/harness"
import type { Redaction } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"
import * as ClaudeFailure from "./ClaudeFailure.ts"
import * as ClaudeTools from "./ClaudeTools.ts"
import * as ClaudeUsage from "./ClaudeUsage.ts"
import type * as ClaudeWire from "./ClaudeWire.ts"

/** What the translation of a turn depends on besides its records. */
export interface Terms {
  readonly tools: ClaudeTools.Plan
  readonly redact: Redaction.Redactor
}

interface Call {
  readonly name: string
  /** Whether the allow-list holds it, or Claude Code asked before it ran. */
  readonly cleared: boolean
}

export interface Turn {
  readonly uuid: string
  /** Whether Claude Code tells what becomes of the prompt. */
  readonly announced: boolean
  readonly begun: boolean
  readonly interrupted: boolean
  readonly step: number
  readonly stepOpen: boolean
  /** The model's message that is being told. */
  readonly messageId: string | undefined
  /** Whether pieces of that message's text were told as they came. */
  readonly textStreamed: boolean
  readonly reasoningStreamed: boolean
  /** Whether the message's text was told whole. */
  readonly messageTold: boolean
  /** What the model has answered since the last tool. */
  readonly answer: string
  readonly worked: boolean
  readonly calls: ReadonlyMap<string, Call>
  /** The last message of Claude Code's own that tells of an error. */
  readonly trouble: { readonly error: string | undefined; readonly apiError: string | undefined; readonly status: number | undefined } | undefined
  readonly refused: boolean
  /** Whether the last request that failed got no HTTP answer. */
  readonly unanswered: boolean
  readonly seen: ClaudeUsage.Seen
}

export const begin = (uuid: string): Turn => ({
  uuid,
  announced: false,
  begun: false,
  interrupted: false,
  step: 0,
  stepOpen: false,
  messageId: undefined,
  textStreamed: false,
  reasoningStreamed: false,
  messageTold: false,
  answer: "",
  worked: false,
  calls: new Map(),
  trouble: undefined,
  refused: false,
  unanswered: false,
  seen: ClaudeUsage.nothingSeen
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

const contentText = (content: Schema.Json | undefined): string | undefined =>
  content === undefined
    ? undefined
    : typeof content === "string"
    ? content
    : Array.isArray(content)
    ? content.map((block) =>
      typeof block === "object" && block !== null && !Array.isArray(block) && typeof (block as { text?: unknown }).text === "string"
        ? (block as { text: string }).text
        : `(${JSON.stringify(block).slice(0, 80)})`
    ).join("\n")
    : JSON.stringify(content)

const origin = (turn: Turn, parent: string | null | undefined): { readonly origin?: "background" | "subagent" } =>
  parent !== null && parent !== undefined ? { origin: "subagent" } : turn.begun ? {} : { origin: "background" }

/** Ends the step that is open. */
export const closeStep = (turn: Turn): ReadonlyArray<Dialect.Output> => turn.stepOpen ? [event(TurnEvent.make("step/end", { step: turn.step }))] : []

/** Begins a step with each new message of the model. */
const openMessage = (turn: Turn, messageId: string): Taken =>
  turn.messageId === messageId ? { turn, outputs: [] } : {
    turn: {
      ...turn,
      messageId,
      step: turn.step + 1,
      stepOpen: true,
      textStreamed: false,
      reasoningStreamed: false,
      messageTold: false
    },
    outputs: [
      ...(turn.textStreamed && !turn.messageTold
        ? [notice("harness_note", "the answer broke off and Claude Code asked for it again; what was told of it does not count")]
        : []),
      ...closeStep(turn),
      event(TurnEvent.make("step/start", { step: turn.step + 1 }))
    ]
  }

/** Takes a piece of an answer in. */
export const streamed = (turn: Turn, record: typeof ClaudeWire.StreamEvent.Type): Taken => {
  const { event: inner, parent_tool_use_id } = record
  const others = origin(turn, parent_tool_use_id)
  if (inner.type === "message_start" && inner.message !== undefined && others.origin === undefined) {
    const opened = openMessage(turn, inner.message.id)
    return taken({ ...opened.turn, seen: ClaudeUsage.begun(opened.turn.seen) }, ...opened.outputs)
  }
  if (inner.type !== "content_block_delta" || inner.delta == null || !("type" in inner.delta)) return taken(turn)
  const { text, thinking, type } = inner.delta
  if (type === "text_delta" && text != null && text !== "") {
    return taken(
      others.origin === undefined ? { ...turn, textStreamed: true } : turn,
      event(TurnEvent.make("assistant/chunk", { kind: "text", text, ...others }))
    )
  }
  if (type === "thinking_delta" && thinking != null && thinking !== "") {
    return taken(
      others.origin === undefined ? { ...turn, reasoningStreamed: true } : turn,
      event(TurnEvent.make("assistant/chunk", { kind: "reasoning", text: thinking, ...others }))
    )
  }
  return taken(turn)
}

const synthetic = "<synthetic>"

/** Takes a block of a message in. */
export const assistant = (terms: Terms, before: Turn, record: typeof ClaudeWire.Assistant.Type): Taken => {
  const { message, parent_tool_use_id } = record
  if (message.model === synthetic) return ownWords(terms, before, record)
  const others = origin(before, parent_tool_use_id)
  const isOwn = others.origin === undefined
  const opened = isOwn ? openMessage(before, message.id) : { turn: before, outputs: [] }
  // What the model says after an error of Claude Code's shows that it got over it.
  let turn: Turn = isOwn ? { ...opened.turn, trouble: undefined, refused: false, unanswered: false } : opened.turn
  const outputs: Array<Dialect.Output> = [...opened.outputs]
  for (const block of message.content) {
    if (block.type === "text" && "text" in block) {
      if (block.text === "") continue
      if (isOwn && !turn.textStreamed) outputs.push(event(TurnEvent.make("assistant/chunk", { kind: "text", text: block.text })))
      outputs.push(event(TurnEvent.make("assistant/message", {
        text: block.text,
        ...(record.aborted === true ? { partial: true } : {}),
        ...others
      })))
      if (isOwn) turn = { ...turn, answer: turn.answer + block.text, messageTold: true }
    } else if (block.type === "thinking" && "thinking" in block) {
      if (!turn.reasoningStreamed && block.thinking !== "") {
        outputs.push(event(TurnEvent.make("assistant/chunk", { kind: "reasoning", text: block.thinking, ...others })))
      }
    } else if (block.type === "tool_use" && "name" in block) {
      outputs.push(event(TurnEvent.make("tool/call", {
        call_id: block.id,
        name: block.name,
        ...(block.input === undefined ? {} : { input: block.input }),
        ...others
      })))
      const todos = todosOf(block.input)
      if (block.name === "TodoWrite" && todos !== undefined) outputs.push(event(TurnEvent.make("todo/write", { todos })))
      const call: Call = { name: block.name, cleared: ClaudeTools.holds(terms.tools, block.name, block.input) }
      turn = {
        ...turn,
        answer: isOwn ? "" : turn.answer,
        calls: new Map(turn.calls).set(block.id, turn.calls.get(block.id) ?? call)
      }
    }
  }
  return taken(turn, ...outputs)
}

/** A message of Claude Code's own: an error that the result repeats, or a remark. */
const ownWords = (terms: Terms, turn: Turn, record: typeof ClaudeWire.Assistant.Type): Taken => {
  if (record.error != null || record.is_api_error_message === true) {
    return taken({
      ...turn,
      trouble: {
        error: record.error ?? undefined,
        apiError: record.api_error ?? undefined,
        status: record.api_error_status ?? undefined
      }
    })
  }
  const text = record.message.content.flatMap((block) => block.type === "text" && "text" in block ? [block.text] : []).join("\n")
  return text === "" ? taken(turn) : taken(turn, notice("harness_note", terms.redact(text).slice(0, 2048)))
}

type TodoStatus = TurnEvent.Of<"todo/write">["data"]["todos"][number]["status"]
const isTodoStatus = (value: unknown): value is TodoStatus => value === "pending" || value === "in_progress" || value === "completed"

const todosOf = (input: Schema.Json | undefined): TurnEvent.Of<"todo/write">["data"]["todos"] | undefined => {
  const list = typeof input === "object" && input !== null && !Array.isArray(input) ? (input as Frame.Frame)["todos"] : undefined
  if (!Array.isArray(list)) return undefined
  const todos = list.flatMap((item: Schema.Json) => {
    if (typeof item !== "object" || item === null || Array.isArray(item)) return []
    const { content, status } = item as Frame.Frame
    return typeof content === "string" && isTodoStatus(status) ? [{ content, status }] : []
  })
  return todos.length === list.length ? todos : undefined
}

/**
 * Takes in what the model was told. `broken` names a tool that ran although the
 * allow-list does not hold it and nobody was asked.
 */
export const user = (turn: Turn, record: typeof ClaudeWire.User.Type): Taken & { readonly broken: string | undefined } => {
  const { content } = record.message
  if (record.isReplay === true || typeof content === "string") return { ...taken(turn), broken: undefined }
  const others = origin(turn, record.parent_tool_use_id)
  const outputs: Array<Dialect.Output> = []
  let broken: string | undefined
  let worked = turn.worked
  for (const block of content) {
    if (block.type !== "tool_result" || !("tool_use_id" in block)) continue
    const id = block.tool_use_id
    const failed = block.is_error === true
    const output = contentText(block.content)
    const denied = failed && (record.tool_result_meta ?? []).some((meta) =>
      meta.id === id && (meta.non_execution_kind === "permission-rule" || meta.non_execution_kind === "user-rejected")
    )
    outputs.push(event(TurnEvent.make("tool/result", {
      call_id: id,
      is_error: failed,
      ...(output === undefined ? {} : { output: bounded(output) }),
      ...(denied ? { denied: true } : {}),
      ...others
    })))
    worked ||= !denied
    const call = turn.calls.get(id)
    if (!failed && call !== undefined && !call.cleared) broken ??= call.name
  }
  return { ...taken({ ...turn, worked }, ...outputs), broken }
}

/** Notes that Claude Code asked before it ran a call. */
export const clear = (turn: Turn, callId: string): Turn => ({
  ...turn,
  calls: new Map(turn.calls).set(callId, { name: turn.calls.get(callId)?.name ?? "", cleared: true })
})

const stopReason = (turn: Turn, record: typeof ClaudeWire.ResultRecord.Type): TurnEvent.StopReason | undefined => {
  if (record.terminal_reason?.startsWith("aborted") === true) return "aborted"
  if (record.subtype === "error_max_turns") return "max-turns"
  if ((record.api_error ?? turn.trouble?.apiError ?? turn.trouble?.error) === "max_output_tokens") return "max-tokens"
  if (record.stop_reason === "refusal" || turn.refused) return "refusal"
  // 2.1.197 has no word for it but this.
  if (record.subtype === "error_during_execution" && turn.interrupted) return "aborted"
  return record.is_error || turn.trouble !== undefined ? undefined : "completed"
}

/** How the turn ends by its result. `background` are the tasks that still run. */
export const ending = (
  terms: Terms,
  turn: Turn,
  record: typeof ClaudeWire.ResultRecord.Type,
  background: ReadonlyArray<TurnEvent.BackgroundTask>
): Extract<Dialect.Output, { _tag: "End" | "Fail" }> => {
  const reason = stopReason(turn, record)
  if (reason === undefined) {
    return {
      _tag: "Fail",
      failure: ClaudeFailure.make({
        message: record.result ?? record.errors?.join("; ") ?? "",
        status: record.api_error_status ?? turn.trouble?.status,
        error: turn.trouble?.error,
        apiError: record.api_error ?? turn.trouble?.apiError,
        terminalReason: record.terminal_reason ?? undefined,
        subtype: record.subtype,
        unanswered: turn.unanswered
      }, terms.redact)
    }
  }
  return {
    _tag: "End",
    end: {
      stop_reason: reason,
      text: reason === "completed" ? record.result ?? turn.answer : turn.answer,
      worked: turn.worked,
      denials: (record.permission_denials ?? []).map((denial) => ({
        tool_name: denial.tool_name,
        ...(denial.tool_use_id == null ? {} : { call_id: denial.tool_use_id }),
        ...(denial.tool_input === undefined ? {} : { input: denial.tool_input })
      })),
      background,
      harness_reason: record.terminal_reason ?? record.subtype
    }
  }
}
