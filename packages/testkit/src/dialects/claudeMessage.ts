/**
 * What the model says in a turn of Claude Code's: messages, one at a time, made
 * of blocks, and the frames that tell of them. Pieces are told only where the
 * caller asked for partial messages.
 */
import type { Json, Piece } from "../DialectWords.ts"
import * as Frames from "./claudeFrames.ts"
import type { JsonObject } from "./jsonObject.ts"

/** What is told with: every frame gets the session's id. */
export interface Voice {
  readonly tag: (frame: JsonObject) => void
  readonly model: () => string
  /** Whether partial messages are told. */
  readonly partial: boolean
}

export interface Messages {
  /** Begins a turn. `uuid` is the id of the message that it answers; absent where the caller gave none. */
  readonly turnStarted: (uuid: string | undefined) => void
  /** Says that the model is asked, and has not yet begun to answer. */
  readonly requesting: () => void
  /** The id of the message that the running turn answers. */
  readonly answered: () => string | undefined
  /** The turn's message was answered. */
  readonly settled: () => void
  /** Fields that say which of the caller's messages is being answered. */
  readonly marks: () => JsonObject
  /** How many messages the turn has. */
  readonly steps: () => number
  /** The ids of the turn's messages. */
  readonly begun: () => ReadonlyArray<string>
  /** The id of the message that is under way. */
  readonly id: () => string | undefined
  readonly blockStarted: (kind: Piece["kind"]) => void
  readonly piece: (piece: Piece) => void
  readonly blockEnded: (whole: Piece) => void
  /** Tells a call; `before` says what comes before its block ends. */
  readonly toolUse: (id: string, name: string, input: Json, before?: () => void) => void
  /** Ends the message that is under way, if one is; `before` says what comes before its last frame. */
  readonly end: (stopReason: string, before?: () => void) => void
  /** Cuts off the message that is under way; `notes` comes between what it had said and its end. Answers whether there was one. */
  readonly cutOff: (notes: () => void) => boolean
}

interface Message {
  readonly id: string
  /** The index of the next content block. */
  blocks: number
  /** What the open block says so far; absent where none is open. */
  open: { readonly kind: Piece["kind"]; text: string } | undefined
}

/** A field that only frames of reasoning have. */
const display = (kind: Piece["kind"]): JsonObject => (kind === "reasoning" ? { thinking_display: "updates" } : {})

export const make = ({ model, partial, tag }: Voice): Messages => {
  let message: Message | undefined
  let steps = 0
  let begun: Array<string> = []
  let isRequesting = false
  let answered: string | undefined

  const event = (value: JsonObject, more: JsonObject = {}): void => {
    if (!partial) return
    tag({
      type: "stream_event",
      event: value,
      parent_tool_use_id: null,
      ...more,
      ...(message === undefined ? {} : { api_message_id: message.id })
    })
  }

  const marks = (): JsonObject => (answered === undefined ? {} : { user_message_uuid: answered, user_message_uuids: [answered] })

  const sayRequesting = (): void => {
    if (!partial) return
    tag({ type: "system", subtype: "status", status: "requesting", ...(answered === undefined ? {} : { user_message_uuids: [answered] }) })
  }

  const begin = (): Message => {
    if (message !== undefined) return message
    const id = `msg_${crypto.randomUUID().replaceAll("-", "").slice(0, 10)}`
    message = { id, blocks: 0, open: undefined }
    begun.push(id)
    steps++
    if (!isRequesting) sayRequesting()
    isRequesting = false
    event({ type: "message_start", message: { ...Frames.message(model(), id, []), usage: Frames.placeholder } }, {
      ttft_ms: 81,
      thinking_display: "updates",
      ...(answered === undefined ? {} : { ...marks(), owed_rows: [] })
    })
    return message
  }

  const assistant = (content: Json, more: JsonObject = {}): void => {
    const { id } = begin()
    tag({
      type: "assistant",
      message: { ...Frames.message(model(), id, [content]), usage: Frames.placeholder, context_management: null },
      parent_tool_use_id: null,
      timestamp: new Date().toISOString(),
      request_id: `req_${id.slice(4)}`,
      ...marks(),
      ...more
    })
  }

  return {
    turnStarted: (uuid) => {
      message = undefined
      steps = 0
      begun = []
      isRequesting = false
      answered = uuid
    },
    requesting: () => {
      sayRequesting()
      isRequesting = true
    },
    answered: () => answered,
    settled: () => {
      answered = undefined
    },
    marks,
    steps: () => steps,
    begun: () => [...begun],
    id: () => message?.id,
    blockStarted: (kind) => {
      const current = begin()
      current.open = { kind, text: "" }
      event({
        type: "content_block_start",
        index: current.blocks++,
        content_block: kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "", signature: "" }
      }, display(kind))
    },
    piece: ({ kind, text }) => {
      if (message?.open === undefined) return
      if (kind === "reasoning" && message.open.text === "" && partial) {
        tag({ type: "system", subtype: "thinking_tokens", estimated_tokens: 6, estimated_tokens_delta: 6 })
      }
      message.open.text += text
      event({
        type: "content_block_delta",
        index: message.blocks - 1,
        delta: kind === "text" ? { type: "text_delta", text } : { type: "thinking_delta", thinking: text }
      }, display(kind))
    },
    blockEnded: ({ kind, text }) => {
      if (message === undefined) return
      message.open = undefined
      if (kind === "reasoning") {
        event({ type: "content_block_delta", index: message.blocks - 1, delta: { type: "signature_delta", signature: "cGxheWVk" } })
        assistant({ type: "thinking", thinking: text, signature: "cGxheWVk" }, { thinking_duration_ms: 1, thinking_display: "updates" })
      } else assistant({ type: "text", text })
      event({ type: "content_block_stop", index: message.blocks - 1 })
    },
    toolUse: (id, name, input, before = () => {}) => {
      const current = begin()
      const index = current.blocks++
      event({ type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } })
      event({ type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: JSON.stringify(input) } })
      assistant({ type: "tool_use", id, name, input })
      before()
      event({ type: "content_block_stop", index })
    },
    end: (stopReason, before = () => {}) => {
      if (message === undefined) return
      event({ type: "message_delta", delta: { stop_reason: stopReason, stop_sequence: null }, usage: { output_tokens: 4 } })
      before()
      event({ type: "message_stop" })
      message = undefined
    },
    cutOff: (notes) => {
      const open = message?.open
      if (open !== undefined) {
        assistant(
          open.kind === "text" ? { type: "text", text: open.text } : { type: "thinking", thinking: open.text, signature: "" },
          { aborted: true }
        )
      }
      notes()
      if (message === undefined) return false
      if (open !== undefined) event({ type: "content_block_stop", index: message.blocks - 1 })
      event({
        type: "message_delta",
        context_management: null,
        delta: { container: null, stop_details: null, stop_reason: null, stop_sequence: null },
        usage: Frames.abandonedUsage
      })
      event({ type: "message_stop" }, { abandoned_blocks: { api_message_id: message.id, from_block_index: message.blocks } })
      message = undefined
      return true
    }
  }
}
