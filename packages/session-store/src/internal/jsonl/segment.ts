/**
 * The lines of a log's file, and which of its bytes count.
 *
 * Besides events there are lines whose first field is `log`:
 *
 * - `segment`, the first: whose log it is, the generation, and who writes it.
 * - `follows`, the second: the segment before it and how many of its bytes count,
 *   with what the log amounts to there. What is written behind them counts never.
 * - `batch`: so many events follow and are one append. It stands where the bytes
 *   end that count, or says where they do: what lies between was refused.
 * - `committed`: the batch before it was acknowledged, or is about to be.
 * - `void`: the batch before it was refused, although it is there.
 * - `released`: the writer is done.
 *
 * A batch counts where all of it is there, unless what comes behind says that it
 * does not; readers wait for `committed` while somebody writes. `synced` says how many
 * bytes were on disk: damage among those is none that a crash leaves. Neither is it
 * where a whole line is behind it, or it is an event to its end, unless a disk has left
 * some bytes out.
 */
import { LogLine, type SessionStore } from "@turnpike/kernel"
import type { SessionEvent } from "@turnpike/contract"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { damaged, type StoreError, unsupported } from "../storeFailure.ts"
import { beginsWith, bytesOf, hasHole, isSound, wasWhole } from "./lines.ts"

/** The version of the files' format that this one writes. */
export const format = 1

const Owner = Schema.Struct({ store: Schema.String, claim: Schema.String, holder: Schema.String, since: Schema.Number })
export type Owner = typeof Owner.Type

const Head = Schema.Struct({
  log: Schema.Literal("segment"),
  format: Schema.Literal(format),
  session: Schema.String,
  /** Tells a session from another one that had its id before. */
  made: Schema.String,
  generation: Schema.Natural,
  owner: Schema.optionalKey(Owner)
})
export type Head = typeof Head.Type

const Follows = Schema.Struct({
  log: Schema.Literal("follows"),
  /** Absent in the first segment of a session. */
  before: Schema.optionalKey(Schema.Struct({ generation: Schema.Natural, bytes: Schema.Natural })),
  events: Schema.Natural,
  turns: Schema.Natural,
  updated: Schema.Natural
})
export type Follows = typeof Follows.Type

const Mark = Schema.Union([
  Schema.Struct({ log: Schema.Literal("batch"), events: Schema.Natural, after: Schema.Natural, synced: Schema.Natural }),
  Schema.Struct({ log: Schema.Literal("committed"), bytes: Schema.Natural, synced: Schema.Natural }),
  Schema.Struct({ log: Schema.Literal("void"), after: Schema.Natural }),
  Schema.Struct({ log: Schema.Literal("released"), after: Schema.Natural })
])
export type Mark = typeof Mark.Type

const decodeHead = Schema.decodeUnknownResult(Head, { onExcessProperty: "error" })
const decodeFollows = Schema.decodeUnknownResult(Follows, { onExcessProperty: "error" })
const decodeMark = Schema.decodeUnknownResult(Mark, { onExcessProperty: "error" })

export const headBytes = (head: Omit<Head, "log" | "format">): Uint8Array => bytesOf([{ log: "segment", format, ...head } satisfies Head])

export const followsBytes = (follows: Omit<Follows, "log">): Uint8Array => bytesOf([{ log: "follows", ...follows } satisfies Follows])

export const markBytes = (mark: Mark): Uint8Array => bytesOf([mark])

/** The bytes of one append. */
export const batchBytes = (events: ReadonlyArray<SessionEvent.SessionEvent>, facts: { readonly after: number; readonly synced: number }): Uint8Array =>
  bytesOf([{ log: "batch", events: events.length, ...facts } satisfies Mark, ...events])

const markStart = new TextEncoder().encode(`{"log":"`)

const isMark = (line: Uint8Array): boolean => beginsWith(line, markStart)

/** The head of a file, which is written before the file has its name. */
export const headOf = (session: string, name: string, line: Uint8Array): Result.Result<Head, StoreError> =>
  Result.match(LogLine.fields(line), {
    onFailure: ({ message }) => Result.fail(damaged(session, `the first line of ${name} cannot be read: ${message}`)),
    onSuccess: (fields) => Result.mapError(decodeHead(fields), () => unsupported(session, `${name} was written by a later version`))
  })

/** `undefined` where the line is another one, such as that of a writer who let go before he had begun. */
export const followsOf = (session: string, name: string, line: Uint8Array): Result.Result<Follows | undefined, StoreError> =>
  Result.match(LogLine.fields(line), {
    onFailure: ({ message }) => Result.fail(damaged(session, `the second line of ${name} cannot be read: ${message}`)),
    onSuccess: (fields) =>
      fields["log"] === "follows"
        ? Result.mapError(decodeFollows(fields), () => unsupported(session, `${name} was written by a later version`))
        : Result.succeed(undefined)
  })

export const markOf = (line: Uint8Array): Mark | undefined =>
  isMark(line) ? Result.getOrUndefined(Result.flatMap(LogLine.fields(line), decodeMark)) : undefined

/** One append, as lines that are sound and not yet looked into. */
export interface Batch {
  /** The `seq` of its first event. */
  readonly first: number
  readonly lines: ReadonlyArray<Uint8Array>
}

/** Where a log goes on: a position in its file, and the `seq` that is due there. */
export interface Position {
  readonly offset: number
  readonly seq: number
}

interface Tentative {
  readonly due: number
  readonly lines: Array<Uint8Array>
  /** Behind its last line. */
  end: number
}

/** The first line that cannot stand where it stands. */
interface Fault {
  readonly offset: number
  readonly message: string
  /** A hole: a disk has left out a part of it. A change: it stood there whole, as an event that was due. */
  readonly kind: "hole" | "change" | "other"
}

export interface Scanner {
  /** Takes the next line, without its line feed, and where it begins. */
  readonly line: (line: Uint8Array, offset: number) => void
  /** The batches that count, since this was asked last. */
  readonly batches: () => ReadonlyArray<Batch>
  /** Where the bytes end that count for everybody. */
  readonly counted: () => Position
  /** A batch behind those that is whole, and nothing says what became of it. */
  readonly whole: () => { readonly batch: Batch; readonly position: Position } | undefined
  /** How many bytes are known to have been on disk. */
  readonly synced: () => number
  /** What is wrong behind the bytes that count. */
  readonly fault: () => Fault | undefined
  /** Whether that is none of what a crash leaves: bytes are others, or missing before others that are whole. */
  readonly isDamaged: () => boolean
  /** What only a later version writes. */
  readonly newer: () => string | undefined
}

/** Begins to read at a position where the bytes before it count. */
export const scanner = (from: Position): Scanner => {
  let at = from
  let accepted: Array<Batch> = []
  let tentative: Tentative | undefined
  let fault: Fault | undefined
  /** Whether nothing behind the fault can count any more. */
  let isStuck = false
  let newer: string | undefined
  let synced = 0

  const stick = (offset: number, message: string) => {
    fault ??= { offset, message, kind: "other" }
    isStuck = true
  }

  const isWhole = (one: Tentative | undefined): one is Tentative =>
    one !== undefined && one.lines.length === one.due && (fault === undefined || fault.offset >= one.end)

  const accept = (batch: Tentative) => {
    accepted.push({ first: at.seq, lines: batch.lines })
    at = { offset: batch.end, seq: at.seq + batch.due }
    tentative = undefined
    fault = undefined
  }

  /** Lets those bytes count that are before `after`, and none behind. */
  const settle = (after: number, offset: number): boolean => {
    if (isWhole(tentative) && after === tentative.end) accept(tentative)
    if (after !== at.offset) {
      stick(offset, "lines before it are missing")
      return false
    }
    tentative = undefined
    fault = undefined
    return true
  }

  const mark = (line: Uint8Array, offset: number) => {
    const found = markOf(line)
    const next = offset + line.length + 1
    if (found === undefined) {
      newer ??= "it has a line that this version does not know"
      return stick(offset, newer)
    }
    if ("synced" in found) synced = Math.max(synced, found.synced)
    if (isStuck) return
    switch (found.log) {
      case "batch":
        if (!settle(found.after, offset)) return
        if (found.events === 0) return stick(offset, "it is a batch without events")
        tentative = { due: found.events, lines: [], end: next }
        // Its bytes are behind those that count until its last line is there.
        return
      case "committed":
        if (settle(found.bytes, offset)) at = { ...at, offset: next }
        return
      case "void":
      case "released":
        if (settle(found.after, offset)) at = { ...at, offset: next }
    }
  }

  return {
    line: (line, offset) => {
      const sound = isSound(line)
      if (sound && isMark(line)) return mark(line, offset)
      if (isStuck || (fault !== undefined && tentative?.lines.length !== tentative?.due)) return
      const isDue = tentative !== undefined && tentative.lines.length < tentative.due
      if (!sound) fault ??= { offset, message: "it is not what was written", kind: hasHole(line) ? "hole" : isDue && wasWhole(line) ? "change" : "other" }
      else if (tentative === undefined || !isDue) fault ??= { offset, message: "it belongs to no batch", kind: "other" }
      else {
        tentative.lines.push(line)
        tentative.end = offset + line.length + 1
      }
    },
    batches: () => {
      const found = accepted
      accepted = []
      return found
    },
    counted: () => at,
    whole: () =>
      isWhole(tentative)
        ? { batch: { first: at.seq, lines: tentative.lines }, position: { offset: tentative.end, seq: at.seq + tentative.due } }
        : undefined,
    synced: () => synced,
    fault: () => fault,
    isDamaged: () => fault !== undefined && (fault.kind === "change" || (isStuck && fault.kind === "other")),
    newer: () => newer
  }
}

const decode = LogLine.decoder("session-event")

/** The events of a batch whose `seq` is greater than `after`. */
export const eventsOf = (session: string, { first, lines }: Batch, after: number): Result.Result<ReadonlyArray<SessionEvent.SessionEvent>, StoreError> => {
  const events: Array<SessionEvent.SessionEvent> = []
  for (let index = Math.max(0, after + 1 - first); index < lines.length; index++) {
    const seq = first + index
    // In range: the index is less than the length.
    const line = decode(lines[index]!)
    if (Result.isFailure(line)) return Result.fail(unsupported(session, `event ${seq} is of a later version: ${line.failure.message}`))
    if (line.success.seq !== seq) return Result.fail(damaged(session, `event ${seq} has the seq ${line.success.seq}`))
    events.push(line.success)
  }
  return Result.succeed(events)
}

/** What a log amounts to, for lists. */
export type Figures = Pick<SessionStore.Summary, "events" | "turns" | "updated">
