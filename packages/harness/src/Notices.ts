/**
 * The notices about what could not be understood: redacted first, bounded second.
 */
import { TurnEvent } from "@turnpike/contract"
import type { Redaction } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"
import type * as Frame from "./Frame.ts"

/** The most bytes of a line, or characters of a frame, that a notice carries: 4096. */
export const maxKept = 4096

type Notice = TurnEvent.Of<"notice">

export const make = (
  kind: TurnEvent.NoticeKind,
  message: string,
  more: Omit<Notice["data"], "kind" | "message"> = {}
): Notice => TurnEvent.make("notice", { kind, message, ...more })

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")
const utf8 = new TextEncoder()

/** The bytes as they were written, unless a credential had to be taken out of them. */
const keptBytes = (bytes: Uint8Array, text: string, redact: Redaction.Redactor): Uint8Array => {
  const redacted = redact(text)
  return (redacted === text ? bytes : utf8.encode(redacted)).slice(0, maxKept)
}

/** Tells of a line that holds no frame. */
export const unreadable = (item: Exclude<Frame.Received, { _tag: "Frame" }>, redact: Redaction.Redactor): Notice => {
  switch (item._tag) {
    case "Unparsed":
      return make("unparsed_line", `a line of ${item.bytes.length} bytes is no JSON object`, {
        bytes_base64: base64(keptBytes(item.bytes, item.text, redact))
      })
    case "Oversize":
      return make("oversize_line", `a line of ${item.bytesTotal} bytes is over the bound; its beginning is kept`, {
        // A cut may have split a credential that no pattern then recognises, so the last 256 bytes are not shown.
        bytes_base64: base64(keptBytes(
          item.head.slice(0, Math.max(0, item.head.length - 256)),
          new TextDecoder().decode(item.head.slice(0, Math.max(0, item.head.length - 256))),
          redact
        ))
      })
  }
}

/** A key such as `token` says what its value is, which the value alone does not. */
const redactField = (key: string, value: string, redact: Redaction.Redactor): string => {
  const prefix = `${key}=`
  const redacted = redact(`${prefix}${value}`)
  return redacted.startsWith(prefix) ? redacted.slice(prefix.length) : redact(value)
}

const redactJson = (value: Schema.Json, redact: Redaction.Redactor): Schema.Json => {
  if (typeof value === "string") return redact(value)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((item) => redactJson(item, redact))
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      typeof item === "string" ? redactField(key, item, redact) : redactJson(item, redact)
    ])
  )
}

/** The frame without its credentials; a long one as the beginning of its text. */
export const raw = (frame: Frame.Frame, redact: Redaction.Redactor): Schema.Json => {
  const redacted = redactJson(frame, redact)
  const text = JSON.stringify(redacted)
  return text.length <= maxKept ? redacted : { beginning: text.slice(0, maxKept), characters: text.length }
}

/** Tells of a frame of a kind that the adapter does not know. */
export const unknownFrame = (frame: Frame.Frame, name: string, redact: Redaction.Redactor): Notice =>
  make("unknown_frame", `a record of the unknown kind ${name}`, { raw: raw(frame, redact) })

/** Tells of a frame that came outside the turn that it belongs to. */
export const lateFrame = (frame: Frame.Frame, redact: Redaction.Redactor): Notice =>
  make("late_frame", "a record that belongs to no running turn", { raw: raw(frame, redact) })
