/**
 * Reads the log of a session from the bytes of its file, and says what may be
 * done with it.
 *
 * The first line is the header, every other one an event; a line ends at a line
 * feed. A crash leaves a log whose last turn is open, and damage behind the last
 * `turn/end`: a last line that is torn, or what a disk makes of lines that it had
 * not been asked to keep. That is cut off and the turn is closed. Damage before the
 * end of a turn is not from a crash, and neither is a whole line of a later format,
 * nor damage to the beginning of a turn that has gone on: what begins a turn was on
 * disk before anything followed it. Such a log is refused and nothing of it changed.
 */
import type { InboxEntry, SessionEvent } from "@turnpike/contract"
import * as Result from "effect/Result"
import { bytesOf } from "./internal/utf8.ts"
import * as LogLine from "./LogLine.ts"
import * as LogState from "./LogState.ts"

export type Header = LogLine.Record<"session-header">

export type Verdict =
  /** It is whole, and no turn is open. */
  | { readonly verdict: "loads" }
  /** It is what a crash left. */
  | {
    readonly verdict: "repairs"
    /** How many bytes are sound. What is behind them is to be cut off before anything is appended. */
    readonly cutAt: number
    /** What is to be appended then, to close the turn that is open; empty where none is. */
    readonly closers: ReadonlyArray<SessionEvent.SessionEvent>
    /** The receipts that are to wait again. */
    readonly unspent: ReadonlyArray<InboxEntry.ReceiptId>
  }
  /** It cannot be written to, nor read past that line. */
  | {
    readonly verdict: "refuses"
    /** From 1. */
    readonly line: number
    readonly code: "SESSION_DAMAGED" | "FORMAT_UNSUPPORTED"
    /** The rule of the log that it breaks; absent where it is no event at all. */
    readonly rule?: LogState.Rule
    /** As a sentence without its full stop. It repeats nothing of the line. */
    readonly message: string
  }

const decodeHeader = LogLine.decoder("session-header")
const decodeEvent = LogLine.decoder("session-event")

type Refusal = Extract<Verdict, { readonly verdict: "refuses" }>

export type Line =
  | { readonly _tag: "Header"; readonly header: Header }
  | { readonly _tag: "Event"; readonly event: SessionEvent.SessionEvent }
  /** Nothing that counts, unless the whole is refused. */
  | { readonly _tag: "Skipped" }

export interface Scanner {
  /** Takes the next line without its line feed. */
  readonly line: (bytes: Uint8Array) => Line
  /** Ends the file with what follows its last line feed. */
  readonly end: (torn: Uint8Array) => Verdict
  /** What the events so far amount to. */
  readonly state: () => LogState.LogState
}

const skipped: Line = { _tag: "Skipped" }

/** What only the end of a turn has. Of one bit that is flipped one of the two is left. */
const marksOfTurnEnd = ["\"type\":\"turn/end\"", "\"verdict\":{"].map(bytesOf)

const holds = (bytes: Uint8Array, part: Uint8Array): boolean => {
  for (let from = bytes.indexOf(part[0]!); from >= 0; from = bytes.indexOf(part[0]!, from + 1)) {
    if (part.every((byte, index) => bytes[from + index] === byte)) return true
  }
  return false
}

/** Whether a damaged line was written to end a turn. Within a text the quotes would be escaped. */
const endsTurn = (bytes: Uint8Array): boolean => marksOfTurnEnd.some((mark) => holds(bytes, mark))

/** What stands in a turn before anything of it leaves: alone it shows no turn that has gone on. */
const opening: ReadonlySet<string> = new Set<SessionEvent.SessionEvent["type"]>([
  "turn/start",
  "inbox/claimed",
  "step/start",
  "user/message",
  "context/message",
  "steering/message",
  "notice"
])

/**
 * Begins to read a log line by line. Give the state of what comes before where the
 * file goes on with events of another one; it has no header then.
 */
export const make = (before?: LogState.LogState): Scanner => {
  let state = before ?? LogState.empty()
  let isBegun = before !== undefined
  /** Lines that were taken. */
  let count = 0
  /** Bytes up to the end of the last line that counts. */
  let sound = 0
  /** The first line that is no event that may stand there. */
  let hole: Refusal | undefined
  let refusal: Refusal | undefined

  const refuse = (fault: LogLine.Fault): Refusal => ({
    verdict: "refuses",
    line: count,
    code: fault.kind === "newer" ? "FORMAT_UNSUPPORTED" : "SESSION_DAMAGED",
    message: fault.message
  })

  const header = (bytes: Uint8Array): Line => {
    const decoded = decodeHeader(bytes)
    if (Result.isFailure(decoded)) {
      refusal = refuse(decoded.failure)
      return skipped
    }
    isBegun = true
    sound += bytes.length + 1
    return { _tag: "Header", header: decoded.success }
  }

  /** Whether the lines that count have not the whole beginning of a turn, so that nothing can have followed it. */
  const isBeginning = (): boolean => state.open === undefined || LogState.isNotStarted(state.open)

  /** A line behind a hole: it only tells whether the hole may be from a crash. */
  const behind = (first: Refusal, bytes: Uint8Array): Line => {
    const decoded = decodeEvent(bytes)
    const isProof = Result.isSuccess(decoded)
      ? decoded.success.type === "turn/end" || (isBeginning() && !opening.has(decoded.success.type))
      : endsTurn(bytes)
    if (isProof) refusal = first
    return skipped
  }

  const event = (bytes: Uint8Array): Line => {
    const decoded = decodeEvent(bytes)
    if (Result.isFailure(decoded)) {
      const found = refuse(decoded.failure)
      const isDamage = decoded.failure.kind === "newer" || endsTurn(bytes) || (isBeginning() && LogLine.wasWhole(bytes))
      if (isDamage) refusal = found
      else hole = found
      return skipped
    }
    const next = LogState.next(state, decoded.success)
    if (Result.isFailure(next)) {
      hole = { ...refuse({ kind: "damaged", message: next.failure.message }), rule: next.failure.rule }
      if (decoded.success.type === "turn/end") refusal = hole
      return skipped
    }
    state = next.success
    sound += bytes.length + 1
    return { _tag: "Event", event: decoded.success }
  }

  /** Where nothing but the last line feed is not what was written: no crash puts another byte in its place. */
  const afterEnd = (torn: Uint8Array): Refusal | undefined => {
    if (torn.length < 2 || torn[torn.length - 1] === 0) return undefined
    const decoded = decodeEvent(torn.subarray(0, -1))
    if (Result.isFailure(decoded)) return undefined
    const { type } = decoded.success
    if (type !== "turn/end" && !isBeginning()) return undefined
    return { verdict: "refuses", line: count + 1, code: "SESSION_DAMAGED", message: `it is ${type}, and does not end with a line feed` }
  }

  return {
    line: (bytes) => {
      count++
      if (refusal !== undefined) return skipped
      if (!isBegun) return header(bytes)
      return hole === undefined ? event(bytes) : behind(hole, bytes)
    },
    end: (torn) => {
      if (refusal !== undefined) return refusal
      if (!isBegun) {
        return {
          verdict: "refuses",
          line: 1,
          code: "SESSION_DAMAGED",
          message: torn.length === 0 ? "the file is empty: it has no header" : "the header was not written whole"
        }
      }
      const damaged = afterEnd(torn)
      if (damaged !== undefined) return hole ?? damaged
      if (hole === undefined && torn.length === 0 && state.open === undefined) return { verdict: "loads" }
      return { verdict: "repairs", cutAt: sound, closers: LogState.closers(state), unspent: LogState.unspent(state) }
    },
    state: () => state
  }
}

/** What was found in a whole file. */
export interface Scan {
  /** Absent where it cannot be read. */
  readonly header: Header | undefined
  /** Those up to the first line that is none; of a log that is refused they show what could be saved. */
  readonly events: ReadonlyArray<SessionEvent.SessionEvent>
  readonly verdict: Verdict
}

const lineFeed = 10

/** Reads a whole file. */
export const scan = (bytes: Uint8Array): Scan => {
  const scanner = make()
  const events: Array<SessionEvent.SessionEvent> = []
  let header: Header | undefined
  let start = 0
  for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, start)) {
    const line = scanner.line(bytes.subarray(start, end))
    if (line._tag === "Header") header = line.header
    if (line._tag === "Event") events.push(line.event)
    start = end + 1
  }
  return { header, events, verdict: scanner.end(bytes.subarray(start)) }
}
