/**
 * Frames that announce their length: `Content-Length: 42`, an empty line, 42
 * bytes of JSON. The base protocol of language servers, which some agents use.
 *
 * Nothing is dropped: bytes that are no header, a body that is no JSON object,
 * and what is left when the output ends are kept as they were. The length counts
 * bytes, so a body may be cut anywhere, within a character too.
 */
import { Buffer } from "node:buffer"
import * as Frame from "./Frame.ts"

/** The largest body that is kept, in bytes: 64 MiB. */
export const defaultMaxBytes = 64 * 1024 * 1024
/** How much of the beginning of a larger one is kept. */
const headBytes = 4096
/** No header is longer; from here on the bytes are something else. */
const maxHeaderBytes = 8192

const separator = Buffer.from("\r\n\r\n")
const nothing = Buffer.alloc(0)
const name = "content-length:"

/** Writes a frame. */
export const encode = (frame: Frame.Frame): string => {
  const body = JSON.stringify(frame)
  return `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

export interface Decoder {
  /** Takes the next bytes, which are copied where they are kept, and answers what they complete. */
  readonly push: (chunk: Uint8Array) => ReadonlyArray<Frame.Received>
  /** Answers what was left without an end. */
  readonly end: () => ReadonlyArray<Frame.Received>
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const lossy = new TextDecoder("utf-8", { ignoreBOM: true })

const unparsed = (bytes: Uint8Array, terminated = true): ReadonlyArray<Frame.Received> =>
  bytes.every((byte) => byte === 0x0d || byte === 0x0a || byte === 0x20)
    ? []
    : [{ _tag: "Unparsed", bytes: new Uint8Array(bytes), text: lossy.decode(bytes), terminated }]

/** A frame is the whole body; a body of anything else, also of two objects, is none. */
const ofBody = (bytes: Buffer): ReadonlyArray<Frame.Received> => {
  try {
    const value: unknown = JSON.parse(strict.decode(bytes))
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return [{ _tag: "Frame", frame: value as Frame.Frame }]
  } catch {
    // Not UTF-8 or not JSON: kept as bytes.
  }
  return unparsed(bytes)
}

/** The length that a header announces; `undefined` for what is no header. */
const lengthIn = (header: string): number | undefined => {
  let length: number | undefined
  for (const line of header.split("\r\n")) {
    const match = /^([A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line)
    if (match === null) return undefined
    if (match[1]!.toLowerCase() !== "content-length") continue
    if (!/^\d{1,12}$/.test(match[2]!)) return undefined
    length = Number(match[2])
  }
  return length
}

/** Where a header may begin in bytes that are not one as a whole; -1 for nowhere. */
const headerWithin = (bytes: Buffer): number => bytes.toString("latin1").toLowerCase().indexOf(name)

/** Makes a decoder, for one output. */
export const decoder = (maxBytes: number = defaultMaxBytes): Decoder => {
  let header: Buffer = nothing
  /** The body that is being read; undefined between bodies. */
  let body: { readonly length: number; readonly parts: Array<Buffer>; kept: number; seen: number } | undefined

  const finished = (): ReadonlyArray<Frame.Received> => {
    if (body === undefined || body.seen < body.length) return []
    const { length, parts } = body
    const [only] = parts
    const bytes = only !== undefined && parts.length === 1 ? only : Buffer.concat(parts)
    body = undefined
    return length > maxBytes
      ? [{ _tag: "Oversize", bytesTotal: length, head: new Uint8Array(bytes), terminated: true }]
      : ofBody(bytes)
  }

  /** Takes headers off the bytes that wait, as far as they go; what is behind the last one is its body's. */
  const take = (chunk: Buffer): ReadonlyArray<Frame.Received> => {
    const received: Array<Frame.Received> = []
    let rest = chunk
    while (rest.length > 0) {
      if (body !== undefined) {
        const part = rest.subarray(0, body.length - body.seen)
        const keep = body.length > maxBytes ? part.subarray(0, headBytes - body.kept) : part
        // A body that is whole in this chunk is read before the chunk's owner has it back.
        if (keep.length > 0) body.parts.push(part.length === body.length ? keep : Buffer.from(keep))
        body.kept += keep.length
        body.seen += part.length
        rest = rest.subarray(part.length)
        received.push(...finished())
        continue
      }
      const before = header.length
      const all = before === 0 ? rest : Buffer.concat([header, rest])
      header = nothing
      const end = all.indexOf(separator, Math.max(0, before - separator.length))
      if (end === -1) {
        if (all.length > maxHeaderBytes) received.push(...unparsed(all))
        else header = before === 0 ? Buffer.from(all) : all
        break
      }
      const text = all.subarray(0, end)
      rest = all.subarray(end + separator.length)
      let length = lengthIn(text.toString("latin1"))
      if (length === undefined) {
        // A remark of the program's before a header of its own.
        const at = headerWithin(text)
        received.push(...unparsed(at === -1 ? text : text.subarray(0, at)))
        length = at === -1 ? undefined : lengthIn(text.subarray(at).toString("latin1"))
        if (length === undefined) {
          if (at !== -1) received.push(...unparsed(text.subarray(at)))
          continue
        }
      }
      body = { length, parts: [], kept: 0, seen: 0 }
      received.push(...finished())
    }
    return received
  }

  return {
    push: (chunk) => take(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)),
    end: () => {
      const left = body === undefined ? header : Buffer.concat(body.parts)
      body = undefined
      header = nothing
      return unparsed(left, false)
    }
  }
}
