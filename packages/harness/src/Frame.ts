/**
 * What a program's line of output holds: JSON objects, or something else.
 *
 * A frame is one JSON object. Usually a line is one frame; some programs write
 * two objects without a line end between them, and others print remarks among
 * their frames. Nothing of a line is dropped: what is no frame is kept as bytes.
 * Such an item is `terminated` unless the output ended in the middle of it.
 */
import { Line } from "@turnpike/process"
import type * as Schema from "effect/Schema"

/** One JSON object, as the program wrote it. */
export type Frame = { readonly [key: string]: Schema.Json }

export type Received =
  | { readonly _tag: "Frame"; readonly frame: Frame }
  /** Text that is no JSON object, or bytes that are no UTF-8. */
  | { readonly _tag: "Unparsed"; readonly bytes: Uint8Array; readonly text: string; readonly terminated: boolean }
  /** A line over the reader's bound, of which only the beginning was kept. */
  | { readonly _tag: "Oversize"; readonly bytesTotal: number; readonly head: Uint8Array; readonly terminated: boolean }

const isFrame = (value: unknown): value is Frame => typeof value === "object" && value !== null && !Array.isArray(value)

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The index after the object that begins at `start`; -1 where it has no end. */
const objectEnd = (text: string, start: number): number => {
  let depth = 0
  let inString = false
  for (let index = start; index < text.length; index++) {
    const character = text.charCodeAt(index)
    if (inString) {
      if (character === 0x5c) index++
      else if (character === 0x22) inString = false
    } else if (character === 0x22) inString = true
    else if (character === 0x7b || character === 0x5b) depth++
    else if (character === 0x7d || character === 0x5d) {
      depth--
      if (depth === 0) return index + 1
    }
  }
  return -1
}

const encoder = new TextEncoder()
const unparsed = (text: string, terminated = true): ReadonlyArray<Received> =>
  text.trim() === "" ? [] : [{ _tag: "Unparsed", bytes: encoder.encode(text), text, terminated }]

/** Takes the objects out of a text that is not one object as a whole, and keeps what is between them. */
const split = (text: string, terminated: boolean): ReadonlyArray<Received> => {
  const received: Array<Received> = []
  let kept = 0
  let at = text.indexOf("{")
  while (at !== -1) {
    const end = objectEnd(text, at)
    if (end === -1) break
    const value = parse(text.slice(at, end))
    if (isFrame(value)) {
      received.push(...unparsed(text.slice(kept, at)), { _tag: "Frame", frame: value })
      kept = end
      at = text.indexOf("{", end)
    } else at = text.indexOf("{", at + 1)
  }
  return [...received, ...unparsed(text.slice(kept), terminated)]
}

/**
 * Reads one line. A line of white space holds nothing; a number, a list or any
 * other JSON that is no object is not a frame.
 *
 * The search for objects within a line reads at most `maxSplit` characters from
 * each brace on, so a long line without objects costs a bounded time; a longer
 * line that is not one object is kept whole.
 */
export const fromLine = (line: Line.Line, maxSplit = 65_536): ReadonlyArray<Received> => {
  switch (line._tag) {
    case "Oversize":
      return [{ _tag: "Oversize", bytesTotal: line.bytesTotal, head: line.head, terminated: line.terminated }]
    case "InvalidUtf8":
      return [{ _tag: "Unparsed", bytes: line.bytes, text: line.lossyText, terminated: line.terminated }]
    case "Text": {
      const value = parse(line.text)
      if (isFrame(value)) return [{ _tag: "Frame", frame: value }]
      return line.text.length > maxSplit ? concatenated(line.text, line.terminated) : split(line.text, line.terminated)
    }
  }
}

/** Splits a long text only where it begins with an object and each object follows the one before: linear time. */
const concatenated = (text: string, terminated: boolean): ReadonlyArray<Received> => {
  const received: Array<Received> = []
  let at = 0
  while (at < text.length) {
    const start = at + (text.slice(at, at + 64).length - text.slice(at, at + 64).trimStart().length)
    if (text[start] !== "{") break
    const end = objectEnd(text, start)
    const value = end === -1 ? undefined : parse(text.slice(start, end))
    if (!isFrame(value)) break
    received.push({ _tag: "Frame", frame: value })
    at = end
  }
  return [...received, ...unparsed(text.slice(at), terminated)]
}

/** A place where a text can be cut, and what closes it there. */
interface Cut {
  readonly at: number
  readonly closers: string
}

/** The cuts after whole fields and elements, in order, as far as brackets and commas tell. */
const cutsOf = (text: string): ReadonlyArray<Cut> => {
  const cuts: Array<Cut> = []
  let closers = ""
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const character = text[index]!
    if (inString) {
      if (character === "\\") index++
      else if (character === "\"") inString = false
    } else if (character === "\"") inString = true
    else if (character === "{" || character === "[") closers = (character === "{" ? "}" : "]") + closers
    else if (character === ",") cuts.push({ at: index, closers })
    else if (character === "}" || character === "]") {
      if (closers[0] !== character) break
      closers = closers.slice(1)
      cuts.push({ at: index + 1, closers })
      if (closers === "") break
    }
  }
  return cuts
}

/** How much of an unreadable item is looked at, in characters. */
const lookedAt = 4096

/**
 * What can be read of something that is no frame: from its first brace on, all
 * fields and elements that are whole before its first fault or the 4096th
 * character. `undefined` where that is no object, and where the output ended in
 * the middle of the item: its end says the rest.
 */
export const beginning = (item: Exclude<Received, { _tag: "Frame" }>): Frame | undefined => {
  if (!item.terminated) return undefined
  const all = item._tag === "Unparsed" ? item.text : new TextDecoder().decode(item.head)
  const text = all.slice(Math.max(0, all.indexOf("{"))).slice(0, lookedAt)
  const cuts = cutsOf(text)
  // Every cut before the first fault can be read, and none after it.
  let read: unknown
  for (let low = 0, high = cuts.length - 1; low <= high;) {
    const middle = (low + high) >> 1
    const { at, closers } = cuts[middle]!
    const value = parse(text.slice(0, at) + closers)
    if (value === undefined) high = middle - 1
    else {
      read = value
      low = middle + 1
    }
  }
  return isFrame(read) ? read : undefined
}
