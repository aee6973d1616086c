/**
 * The file of an inbox: its lines, and what they amount to.
 *
 * Any process adds a line, without a lock: one write behind the file's end. A line
 * feed stands at the beginning of what is written and none at its end, so that what
 * a full disk cut off is never the beginning of somebody else's line. The order of
 * the file decides, and all readers see it alike: of two receipts with one key the
 * first counts, and the records are numbered as they stand there.
 *
 * `seen` says how many lines its writer had found before it, on disk: should there be
 * fewer, one is missing. Lines whose first field is `inbox` are no records:
 *
 * - `header`, the first.
 * - `opened`: a writer of this generation has taken the session. What earlier ones
 *   discard or put back behind it is void. Names the receipts that the log had claimed
 *   till then.
 * - `withdrawn`: a line whose writer was told that it had failed. Void for a receipt
 *   that the log claims.
 */
import { Contracts, type InboxEntry } from "@turnpike/contract"
import { LogLine, type SessionStore } from "@turnpike/kernel"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { damaged, type StoreError, unsupported } from "../storeFailure.ts"
import { hasHole, isSound, lineFeed, wasWhole } from "./lines.ts"

/** The version of the file's format that this one writes. */
const format = 1

const Header = Schema.Struct({ inbox: Schema.Literal("header"), format: Schema.Literal(format), session: Schema.String, made: Schema.String })
const Ids = Schema.Array(Schema.String)
const Note = Schema.Union([
  Schema.Struct({ inbox: Schema.Literal("opened"), generation: Schema.Natural, claimed: Ids, seen: Schema.Natural }),
  Schema.Struct({ inbox: Schema.Literal("withdrawn"), id: Schema.String, seen: Schema.Natural })
])
export type Note = typeof Note.Type

const decodeHeader = Schema.decodeUnknownResult(Header, { onExcessProperty: "error" })
const decodeNote = Schema.decodeUnknownResult(Note, { onExcessProperty: "error" })
const decodeEntry = Contracts.decode("inbox-entry")

type Entry = InboxEntry.InboxEntry
type Unnumbered<E> = E extends Entry ? Omit<E, "seq" | "sum"> : never

/**
 * A record before the file gives it its place. `generation` is that of the writer
 * who discards, or puts a receipt back; `mark` names a line that has no id, so that it
 * can be withdrawn.
 */
export type Draft = Unnumbered<Entry> & { readonly generation?: number; readonly mark?: string }

type NewNote<N = Note> = N extends Note ? Omit<N, "seen"> : never

const encoder = new TextEncoder()

/** Longer than the header's line. */
export const maxHeaderBytes = 512

/** `made` tells the session from another one that had its id before. */
export const headerBytes = (session: string, made: string): Uint8Array =>
  encoder.encode(LogLine.encode({ inbox: "header", format, session, made } satisfies typeof Header.Type))

/** What is written of a record or a note, in one write. */
export const bytesOf = (record: Draft | NewNote, seen: number): Uint8Array =>
  encoder.encode(`\n${LogLine.encode({ ...record, seen })}`)

type Received = Unnumbered<Extract<Entry, { readonly type: "received" }>>

const receiptOf = ({ generation: _, type: __, ...receipt }: Received & Pick<Draft, "generation">): InboxEntry.Receipt => receipt

/** What an inbox amounts to, without what the log claims of it. */
export interface Inbox {
  /** What the session was made as, see `headerBytes`. */
  readonly made: () => string
  /** Whether there is a record of this id or mark, withdrawn or not. */
  readonly has: (mark: string) => boolean
  /** How many lines it has, the header aside. Never shrinks. */
  readonly lines: () => number
  /** Everything that was ever received, but for what was withdrawn. */
  readonly receipts: ReadonlyMap<InboxEntry.ReceiptId, InboxEntry.Receipt>
  readonly withKey: (key: string) => InboxEntry.Receipt | undefined
  readonly isWithdrawn: (id: InboxEntry.ReceiptId) => boolean
  /** The receipt as which a writer has put this one back. */
  readonly repeating: (id: InboxEntry.ReceiptId) => InboxEntry.Receipt | undefined
  readonly isDiscarded: (id: InboxEntry.ReceiptId) => boolean
  /** The generation that opened the session last; what it claimed and later ones is in the log alone. */
  readonly generation: () => number
  /** What earlier generations claimed. */
  readonly claimed: ReadonlySet<InboxEntry.ReceiptId>
  /** Its records, where the log claims these. */
  readonly entries: (claimed: (id: InboxEntry.ReceiptId) => boolean) => ReadonlyArray<Entry>
  /** Whether a receipt waits, where the log claims these. */
  readonly waits: (id: InboxEntry.ReceiptId, claimed: (id: InboxEntry.ReceiptId) => boolean) => boolean
  /** What waits, in its order. */
  readonly waiting: (claimed: (id: InboxEntry.ReceiptId) => boolean) => ReadonlyArray<InboxEntry.Receipt>
  readonly pending: (claimed: (id: InboxEntry.ReceiptId) => boolean) => SessionStore.Pending
}

export interface Fold extends Inbox {
  /**
   * Takes the bytes behind those that were taken. Answers how many of them are
   * done with: a line at the end that is no line yet is to be given again.
   */
  readonly take: (bytes: Uint8Array) => Result.Result<number, StoreError>
}

/** Begins to read a file. */
export const fold = (session: string): Fold => {
  let hasHeader = false
  let made = ""
  /** Whether the last line was taken without the line feed behind it. */
  let isAtEnd = false
  let lines = 0
  let generation = 0
  const drafts: Array<Draft> = []
  const receipts = new Map<InboxEntry.ReceiptId, InboxEntry.Receipt>()
  const keys = new Map<string, InboxEntry.ReceiptId>()
  const places = new Map<InboxEntry.ReceiptId, number>()
  const repeating = new Map<InboxEntry.ReceiptId, InboxEntry.ReceiptId>()
  const withdrawn = new Set<InboxEntry.ReceiptId>()
  /** What was discarded, and asked to be, by the marks of the lines that say so. */
  const discarded = new Map<InboxEntry.ReceiptId, string | undefined>()
  const requests = new Map<InboxEntry.ReceiptId, { readonly by: string; readonly mark: string | undefined }>()
  const claimed = new Set<InboxEntry.ReceiptId>()

  const where = () => hasHeader ? `record ${drafts.length} of its inbox` : "its inbox"
  const wrong = (what: string) => Result.fail(damaged(session, `${where()} cannot be read: ${what} (inbox.jsonl, line ${hasHeader ? lines + 2 : 1})`))

  const keyOf = (key: string): InboxEntry.Receipt | undefined => {
    const id = keys.get(key)
    return id === undefined ? undefined : receipts.get(id)
  }

  const received = (draft: Received & Pick<Draft, "generation">) => {
    const { generation: by, id, key, retry_of } = draft
    const isPutBack = by !== undefined && retry_of !== undefined
    if (isPutBack && (by < generation || repeating.has(retry_of))) return
    // The first in the file counts.
    if (receipts.has(id) || (key !== undefined && keyOf(key) !== undefined && !withdrawn.has(keys.get(key)!))) return
    receipts.set(id, receiptOf(draft))
    if (key !== undefined) keys.set(key, id)
    places.set(id, (retry_of === undefined ? undefined : places.get(retry_of)) ?? drafts.length)
    if (isPutBack) repeating.set(retry_of, id)
    drafts.push(draft)
  }

  const record = (draft: Draft) => {
    switch (draft.type) {
      case "received":
        return received(draft)
      case "discarded":
        // Of a writer that somebody has followed.
        if ((draft.generation ?? 0) < generation) return
        for (const id of draft.ids) if (!discarded.has(id)) discarded.set(id, draft.mark)
        drafts.push(draft)
        return
      case "discard_requested":
        for (const id of draft.ids) if (receipts.has(id) && !discarded.has(id) && !requests.has(id)) requests.set(id, { by: draft.by, mark: draft.mark })
        drafts.push(draft)
    }
  }

  const note = (one: Note) => {
    if (one.inbox === "withdrawn") {
      withdrawn.add(one.id)
      for (const [lost, id] of repeating) if (id === one.id) repeating.delete(lost)
      for (const [id, mark] of discarded) if (mark === one.id) discarded.delete(id)
      for (const [id, { mark }] of requests) if (mark === one.id) requests.delete(id)
      return
    }
    generation = Math.max(generation, one.generation)
    for (const id of one.claimed) claimed.add(id)
  }

  const line = (bytes: Uint8Array): Result.Result<void, StoreError> => {
    const parsed = LogLine.fields(bytes)
    if (Result.isFailure(parsed)) return wrong(parsed.failure.message)
    const fields = parsed.success
    if (!hasHeader) {
      const header = decodeHeader(fields)
      if (Result.isFailure(header)) return Result.fail(unsupported(session, "its inbox was written by a later version"))
      if (header.success.session !== session) return Result.fail(damaged(session, `its inbox is that of session ${header.success.session}`))
      hasHeader = true
      made = header.success.made
      return Result.void
    }
    const { seen } = fields
    if (typeof seen !== "number") return Result.fail(unsupported(session, `${where()} is of a later version: it does not say what its writer had seen`))
    if (seen > lines) return Result.fail(damaged(session, `${seen - lines} lines of its inbox are missing before line ${lines + 2}`))
    if ("inbox" in fields) {
      const found = decodeNote(fields)
      if (Result.isFailure(found)) return Result.fail(unsupported(session, `${where()} is of a later version`))
      note(found.success)
    } else {
      const { generation: by, mark, seen: _, ...rest } = fields
      const entry = decodeEntry({ seq: drafts.length, ...rest })
      if (Result.isFailure(entry)) return Result.fail(unsupported(session, `${where()} is of a later version: ${entry.failure}`))
      // What was parsed is kept, not what was decoded: a copy may lose a field named __proto__.
      record({ ...rest, ...(typeof by === "number" ? { generation: by } : {}), ...(typeof mark === "string" ? { mark } : {}) } as Draft)
    }
    lines++
    return Result.void
  }

  /** A line that is none: what a write left that was cut off, what a disk had not kept of it, or damage. */
  const torn = (bytes: Uint8Array): Result.Result<void, StoreError> =>
    hasHeader && (hasHole(bytes) || !wasWhole(bytes)) ? Result.void : wrong("it is not what was written")

  /** A line that is whole, and behind it what a disk has not kept: there the next one began. */
  const wholeBefore = (bytes: Uint8Array): Uint8Array | undefined => {
    const before = bytes.subarray(0, Math.max(0, bytes.indexOf(0)))
    return isSound(before) ? before : undefined
  }

  /** A line with its end, as it stands in the file. */
  const ended = (bytes: Uint8Array): Result.Result<void, StoreError> => {
    if (isAtEnd) return bytes.length === 0 ? Result.void : wrong("bytes stand behind it that nobody wrote")
    if (bytes.length === 0) return hasHeader ? Result.void : wrong("it has no first line")
    if (isSound(bytes)) return line(bytes)
    const before = wholeBefore(bytes)
    return before === undefined ? torn(bytes) : line(before)
  }

  const waits: Inbox["waits"] = (id, isClaimed) =>
    receipts.has(id) && !discarded.has(id) && !withdrawn.has(id) && !claimed.has(id) && !isClaimed(id)

  const waiting: Inbox["waiting"] = (isClaimed) => {
    const place = ({ id }: InboxEntry.Receipt) => places.get(id) ?? 0
    return [...receipts.values()].filter(({ id }) => waits(id, isClaimed)).sort((one, other) => place(one) - place(other))
  }

  return {
    take: (bytes) => {
      let start = 0
      for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, start)) {
        const found = ended(bytes.subarray(start, end))
        if (Result.isFailure(found)) return Result.fail(found.failure)
        isAtEnd = false
        start = end + 1
      }
      const rest = bytes.subarray(start)
      if (rest.length === 0) return hasHeader ? Result.succeed(start) : wrong("it has no first line")
      if (isAtEnd) return wrong("bytes stand behind it that nobody wrote")
      const before = wholeBefore(rest)
      const whole = before ?? (isSound(rest) ? rest : undefined)
      if (whole !== undefined) {
        isAtEnd = before === undefined
        return Result.map(line(whole), () => start + whole.length)
      }
      // Being written, or never written to its end.
      return Result.map(torn(rest), () => start)
    },
    made: () => made,
    has: (mark) => receipts.has(mark) || drafts.some((draft) => draft.type !== "received" && draft.mark === mark),
    lines: () => lines,
    receipts,
    withKey: keyOf,
    isWithdrawn: (id) => withdrawn.has(id),
    repeating: (lost) => {
      const id = repeating.get(lost)
      return id === undefined ? undefined : receipts.get(id)
    },
    isDiscarded: (id) => discarded.has(id),
    generation: () => generation,
    claimed,
    entries: (isClaimed) =>
      // What the log claims was received, whatever its sender was told.
      drafts.filter((draft) => {
        if (draft.type !== "received") return draft.mark === undefined || !withdrawn.has(draft.mark)
        return !withdrawn.has(draft.id) || claimed.has(draft.id) || isClaimed(draft.id)
      }).map(({ generation: _, mark: __, ...entry }, seq) => ({ seq, ...entry }) as Entry),
    waits,
    waiting,
    pending: (isClaimed) => {
      const receiptsInOrder = waiting(isClaimed)
      return {
        version: lines,
        nextTurn: receiptsInOrder.filter(({ kind }) => kind === "followup"),
        nextStep: receiptsInOrder.filter(({ kind }) => kind !== "followup"),
        discardRequests: [...requests].flatMap(([id, { by }]) => waits(id, isClaimed) ? [{ id, by }] : [])
      }
    }
  }
}
