/**
 * Parses JSON and says where it is wrong without repeating what stands there,
 * as engines do in their messages: it may be a secret.
 */
import * as Result from "effect/Result"

export interface JsonFault {
  /** From 1. */
  readonly line: number
  readonly message: string
}

const token = /[ \t\n\r]*(?:(?<value>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)|(?<mark>[[\]{},:"]))/uy

const blank = /[ \t\n\r]*/uy

const escape = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/uy

const matchAt = (pattern: RegExp, text: string, offset: number) => {
  pattern.lastIndex = offset
  return pattern.exec(text)
}

/** Returns where a string ends that begins with the quote before `offset`, or where it goes wrong. */
const scanString = (text: string, offset: number): { readonly at: number; readonly closed: boolean } => {
  for (let at = offset; at < text.length; at++) {
    const character = text[at]
    if (character === "\"") return { at: at + 1, closed: true }
    if (character === "\\") {
      const match = matchAt(escape, text, at)
      if (match === null) return { at, closed: false }
      at += match[0].length - 1
    } else if (text.charCodeAt(at) < 0x20) return { at, closed: false }
  }
  return { at: text.length, closed: false }
}

/** What may come next: within an object a key and its colon come before each value. */
type Expected = "value" | "value or end" | "key" | "key or end" | "colon" | "comma or end"

/** Returns the offset of the first character that is not JSON; the length where the text ends too early. */
const offsetOfFault = (text: string): number => {
  const open: Array<"[" | "{"> = []
  let expected: Expected = "value"
  let at = 0
  while (true) {
    at += matchAt(blank, text, at)?.[0].length ?? 0
    if (expected === "comma or end" && open.length === 0) return at
    const match: RegExpExecArray | null = matchAt(token, text, at)
    if (match === null) return at
    const mark: string | undefined = match.groups?.["mark"]
    const wantsValue: boolean = expected === "value" || expected === "value or end"
    const wantsKey: boolean = expected === "key" || expected === "key or end"
    if (mark === undefined) {
      if (!wantsValue) return at
      at += match[0].length
      expected = "comma or end"
      continue
    }
    if (mark === "\"") {
      if (!wantsValue && !wantsKey) return at
      const string = scanString(text, at + 1)
      if (!string.closed) return string.at
      at = string.at
      expected = wantsKey ? "colon" : "comma or end"
      continue
    }
    if (mark === "[" || mark === "{") {
      if (!wantsValue) return at
      open.push(mark)
      expected = mark === "[" ? "value or end" : "key or end"
    } else if (mark === ":") {
      if (expected !== "colon") return at
      expected = "value"
    } else if (mark === ",") {
      if (expected !== "comma or end") return at
      expected = open.at(-1) === "{" ? "key" : "value"
    } else {
      const opened = open.at(-1)
      const ends = expected === "comma or end" || (expected === "value or end" && mark === "]") ||
        (expected === "key or end" && mark === "}")
      if (!ends || opened !== (mark === "]" ? "[" : "{")) return at
      open.pop()
      expected = "comma or end"
    }
    at++
  }
}

const explain = (text: string): JsonFault => {
  const offset = offsetOfFault(text)
  const before = text.slice(0, offset).split("\n")
  const column = (before.at(-1) ?? "").length + 1
  return {
    line: before.length,
    message: offset >= text.length
      ? "Expected JSON: the text ends too early"
      : `Expected JSON: the character at column ${column} cannot stand there`
  }
}

/** Parses one JSON value. */
export const parseJson = (text: string): Result.Result<unknown, JsonFault> => {
  if (/^[ \t\n\r]*$/u.test(text)) return Result.fail({ line: 1, message: "Expected JSON: the text is blank" })
  if (text.startsWith("\uFEFF")) {
    return Result.fail({ line: 1, message: "Expected JSON: the text begins with a byte order mark; remove it" })
  }
  try {
    return Result.succeed(JSON.parse(text) as unknown)
  } catch {
    return Result.fail(explain(text))
  }
}

/** A key that an object has a second time. */
export interface RepeatedKey {
  readonly key: string
  /** From 1: where it stands the second time. */
  readonly line: number
}

/** Finds the first key that an object of a valid JSON text has twice. JSON leaves open which of the two values counts. */
export const repeatedKey = (text: string): RepeatedKey | undefined => {
  /** The keys of the objects that are open; `undefined` for an array. */
  const open: Array<Set<string> | undefined> = []
  let wantsKey = false
  for (let at = 0; at < text.length;) {
    const character = text[at]
    if (character === "\"") {
      const end = scanString(text, at + 1).at
      const keys = open.at(-1)
      if (wantsKey && keys !== undefined) {
        const key = JSON.parse(text.slice(at, end)) as string
        if (keys.has(key)) return { key, line: text.slice(0, at).split("\n").length }
        keys.add(key)
        wantsKey = false
      }
      at = end
      continue
    }
    if (character === "{" || character === "[") {
      open.push(character === "{" ? new Set() : undefined)
      wantsKey = character === "{"
    } else if (character === "}" || character === "]") {
      open.pop()
      wantsKey = false
    } else if (character === ",") wantsKey = open.at(-1) !== undefined
    at++
  }
  return undefined
}
