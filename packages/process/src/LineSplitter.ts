/**
 * Cuts a sequence of byte chunks into lines, whatever the chunks' borders are.
 *
 * A pure state machine: a state is never changed, and the same bytes give the
 * same lines for every way of cutting them into chunks. What is held between
 * two chunks is the unfinished line alone, and never more than `maxLineBytes`
 * of it: from there on only its length grows.
 */
import type { Line } from "./Line.ts"

export interface Options {
  /** The longest line that is kept, in bytes without its LF. */
  readonly maxLineBytes: number
  /** How much of the beginning of a longer line is kept, in bytes; at most `maxLineBytes`. */
  readonly headBytes: number
}

/** 32 MiB a line, and the first 4 KiB of a longer one. */
export const defaults: Options = { maxLineBytes: 32 * 1024 * 1024, headBytes: 4096 }

/** The unfinished line between two chunks. */
export interface State {
  readonly options: Options
  /** The held bytes, the latest first. */
  readonly parts: Parts | undefined
  readonly heldBytes: number
  /** Length of the unfinished line; more than `heldBytes` when it is too long to be kept. */
  readonly lineBytes: number
}

interface Parts {
  readonly bytes: Uint8Array
  readonly earlier: Parts | undefined
}

const LF = 10

/** The state before the first byte. */
export const initial = (options: Options = defaults): State => ({ options, parts: undefined, heldBytes: 0, lineBytes: 0 })

/**
 * Takes the next chunk; answers the next state and the lines that ended in the
 * chunk. The chunk is copied where it is kept, so its owner may reuse it.
 */
export const push = (state: State, chunk: Uint8Array): readonly [State, ReadonlyArray<Line>] => {
  const lines: Array<Line> = []
  let current = state
  let start = 0
  for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
    lines.push(finish(current, chunk.subarray(start, end), true))
    current = initial(state.options)
    start = end + 1
  }
  return [start < chunk.length ? hold(current, chunk.subarray(start)) : current, lines]
}

/** Answers the line that was left without an LF when the bytes ended, if there is one. */
export const end = (state: State): ReadonlyArray<Line> =>
  state.lineBytes === 0 ? [] : [finish(state, new Uint8Array(0), false)]

const hold = (state: State, rest: Uint8Array): State => {
  const { headBytes, maxLineBytes } = state.options
  const lineBytes = state.lineBytes + rest.length
  if (lineBytes <= maxLineBytes) {
    return { ...state, parts: prepend(state.parts, rest.slice()), heldBytes: lineBytes, lineBytes }
  }
  if (state.lineBytes > maxLineBytes) return { ...state, lineBytes }
  const head = join(state.parts, state.heldBytes, rest.subarray(0, Math.max(0, headBytes - state.heldBytes))).slice(0, headBytes)
  return { ...state, parts: { bytes: head, earlier: undefined }, heldBytes: head.length, lineBytes }
}

/** From this size on a part is left as it is: the parts of the longest line are few enough. */
const largePartBytes = 64 * 1024

/** Merges small parts of similar size, so that a line written byte by byte is held in few parts. */
const prepend = (parts: Parts | undefined, bytes: Uint8Array): Parts => {
  let latest = bytes
  let earlier = parts
  while (earlier !== undefined && earlier.bytes.length <= latest.length && latest.length < largePartBytes) {
    const merged = new Uint8Array(earlier.bytes.length + latest.length)
    merged.set(earlier.bytes, 0)
    merged.set(latest, earlier.bytes.length)
    latest = merged
    earlier = earlier.earlier
  }
  return { bytes: latest, earlier }
}

const join = (parts: Parts | undefined, heldBytes: number, last: Uint8Array): Uint8Array => {
  if (parts === undefined) return last
  const whole = new Uint8Array(heldBytes + last.length)
  whole.set(last, heldBytes)
  let offset = heldBytes
  for (let part: Parts | undefined = parts; part !== undefined; part = part.earlier) {
    offset -= part.bytes.length
    whole.set(part.bytes, offset)
  }
  return whole
}

const finish = (state: State, last: Uint8Array, terminated: boolean): Line => {
  const { headBytes, maxLineBytes } = state.options
  const bytesTotal = state.lineBytes + last.length
  if (bytesTotal > maxLineBytes) {
    const head = state.lineBytes > maxLineBytes
      ? join(state.parts, state.heldBytes, new Uint8Array(0))
      : join(state.parts, state.heldBytes, last.subarray(0, Math.max(0, headBytes - state.heldBytes)))
    return { _tag: "Oversize", bytesTotal, head: head.slice(0, headBytes), terminated }
  }
  const bytes = join(state.parts, state.heldBytes, last)
  try {
    return { _tag: "Text", text: strict.decode(bytes), byteLength: bytes.length, terminated }
  } catch {
    return { _tag: "InvalidUtf8", bytes: bytes.slice(), lossyText: lossy.decode(bytes), terminated }
  }
}

// `ignoreBOM` keeps a byte order mark in the text, so that nothing of a line is lost.
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const lossy = new TextDecoder("utf-8", { ignoreBOM: true })
