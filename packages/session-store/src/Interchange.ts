/**
 * A whole session as lines of JSON, to be moved from one store to another.
 *
 * The first line is the header, then come the events of the log, then the records
 * of the inbox, each as `LogLine` writes it, with its checksum. The last line,
 * `{"type":"end","events":…,"records":…,"sum":"…"}`, says how many of each there
 * are, so that a file that was cut off is told from a short one. A line ends at a
 * line feed and at nothing else.
 */
import { Failure, type InboxEntry, type Scalars, SessionEvent, type SessionHeader } from "@turnpike/contract"
import { LogLine, LogState, SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

type StoreError = SessionStore.SessionStoreError
type Bytes = Uint8Array<ArrayBufferLike>

/** The most bytes of one line: 256 MiB. */
export const maxLineBytes = 256 * 1024 * 1024

const End = Schema.Struct({
  type: Schema.Literal("end"),
  events: Schema.Natural,
  records: Schema.Natural
})
const decodeEnd = Schema.decodeUnknownResult(End, { onExcessProperty: "error" })

const lineOf = (record: Parameters<typeof LogLine.encode>[0]): string => `${LogLine.encode(record)}\n`

const textOf = (records: ReadonlyArray<Parameters<typeof LogLine.encode>[0]>): string => records.map(lineOf).join("")

/** What was claimed by turns that recovery has closed, and may have been put back by it. */
interface Recovered {
  readonly take: (events: ReadonlyArray<SessionEvent.SessionEvent>) => void
  readonly has: (id: InboxEntry.ReceiptId) => boolean
}

/** `forkedEvents` are those that a session has of its parent, whose claims are of another inbox. */
const recovered = (forkedEvents: number): Recovered => {
  let open: Array<InboxEntry.ReceiptId> = []
  const ids = new Set<InboxEntry.ReceiptId>()
  return {
    take: (events) => {
      for (const event of events) {
        if (event.seq < forkedEvents) continue
        if (event.type === "turn/start") open = []
        else if (event.type === "inbox/claimed") open.push(...event.data.ids)
        else if (event.type === "turn/end" && event.data.verdict.type === "interrupted") for (const id of open) ids.add(id)
      }
    },
    has: (id) => ids.has(id)
  }
}

/**
 * A session in pieces of one or more whole lines. What is committed while it is
 * read may be in it, or not; a prompt is in it once, even if the turn that took it
 * begins meanwhile, or is closed as one that a crash left. Fails with `SESSION_UNKNOWN`, and as
 * the store's streams do.
 */
export const lines = (store: SessionStore.Service, id: Scalars.SessionId): Stream.Stream<string, StoreError> =>
  Stream.unwrap(Effect.map(store.header(id), (header) => {
    let events = 0
    let records = 0
    let seen = -1
    /** By what was told of the log, and by all that was read of it. */
    const [told, now] = [recovered(header.parent?.events ?? 0), recovered(header.parent?.events ?? 0)]
    const see = (all: ReadonlyArray<SessionEvent.SessionEvent>) => {
      now.take(all)
      seen = all.at(-1)?.seq ?? seen
    }
    /**
     * Whether a record is of after what was read of the log, and so are all behind it:
     * it puts back what a turn had taken which recovery has closed since then.
     */
    const isLater = (entry: InboxEntry.InboxEntry): Effect.Effect<boolean, StoreError> => {
      const lost = entry.type === "received" ? entry.retry_of : undefined
      if (lost === undefined || told.has(lost)) return Effect.succeed(false)
      return Effect.map(
        Stream.runForEachArray(store.read(id, seen), (all) => Effect.sync(() => see(all))),
        () => now.has(lost)
      )
    }
    return Stream.succeed(lineOf(header)).pipe(
      Stream.concat(Stream.mapArray(store.read(id, -1), (all) => {
        events += all.length
        told.take(all)
        see(all)
        return [textOf(all)]
      })),
      Stream.concat(Stream.mapArray(Stream.takeUntilEffect(store.inbox(id), isLater, { excludeLast: true }), (all) => {
        records += all.length
        return [textOf(all)]
      })),
      Stream.concat(Stream.suspend(() => {
        const end: typeof End.Type = { type: "end", events, records }
        return Stream.succeed(lineOf(end))
      }))
    )
  }))

/** What was put in, or how far it is. */
export interface Imported {
  readonly header: SessionHeader.SessionHeader
  readonly events: number
  readonly records: number
}

export interface RestoreOptions {
  /** Called as it goes on, with what was read so far. */
  readonly progress?: (sofar: Imported) => void
}

const failed = (code: "SESSION_DAMAGED" | "FORMAT_UNSUPPORTED", line: number, message: string, remedy: string): StoreError =>
  new SessionStore.SessionStoreError({ failure: Failure.make(code, `line ${line} ${message}`, { remedy, data: { line } }) })

const damaged = (line: number, message: string): StoreError =>
  failed("SESSION_DAMAGED", line, message, "Nothing was put in. Export the session again, or use a copy of the file that is whole.")

const faultAt = (line: number, { kind, message }: LogLine.Fault, article: "a" | "an", what: string): StoreError =>
  kind === "newer"
    ? failed("FORMAT_UNSUPPORTED", line, `is ${article} ${what} of a later version: ${message}`, "Nothing was put in. Update Turnpike.")
    : damaged(line, `is no ${what}: ${message}`)

const another = (line: number): StoreError =>
  failed("SESSION_DAMAGED", line, "begins another session, and a file has one", `Nothing was put in. Cut the file in two before line ${line}, and import each part.`)

interface Line {
  /** From 1. */
  readonly number: number
  /** Without its line feed. */
  readonly bytes: Bytes
}

const lineFeed = 0x0a

const joined = (pieces: ReadonlyArray<Bytes>): Bytes => {
  const [only] = pieces
  if (pieces.length === 1 && only !== undefined) return only
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

/** The lines of bytes that come in chunks, some at a time; `undefined` at the end. */
const reader = (chunks: Stream.Stream<Bytes, StoreError>): Effect.Effect<Effect.Effect<ReadonlyArray<Line> | undefined, StoreError>, never, Scope.Scope> =>
  Effect.map(Stream.toPull(chunks), (pull) => {
    /** The beginning of a line whose end has not come. */
    let begun: Array<Bytes> = []
    let begunBytes = 0
    let number = 0

    const take = (chunk: Bytes): Result.Result<ReadonlyArray<Line>, StoreError> => {
      const found: Array<Line> = []
      let from = 0
      for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, from)) {
        found.push({ number: ++number, bytes: joined([...begun, chunk.subarray(from, at)]) })
        begun = []
        begunBytes = 0
        from = at + 1
      }
      // Copied, since whoever reads may use its buffer again.
      if (from < chunk.length) begun.push(chunk.slice(from))
      begunBytes += chunk.length - from
      return begunBytes > maxLineBytes ? Result.fail(damaged(number + 1, `is longer than ${maxLineBytes} bytes`)) : Result.succeed(found)
    }

    const atEnd = Effect.suspend(() =>
      begunBytes === 0 ? Effect.undefined : Effect.fail(damaged(number + 1, "was cut off: it has no line feed at its end"))
    )
    return pull.pipe(
      Effect.flatMap((all) => {
        const found: Array<Line> = []
        for (const chunk of all) {
          const taken = take(chunk)
          if (Result.isFailure(taken)) return Effect.fail(taken.failure)
          found.push(...taken.success)
        }
        return Effect.succeed<ReadonlyArray<Line> | undefined>(found)
      }),
      Pull.catchDone(() => atEnd)
    )
  })

/** Lines that follow each other and are of one kind. */
type Group =
  | { readonly _tag: "Events"; readonly events: ReadonlyArray<SessionEvent.SessionEvent> }
  | { readonly _tag: "Records"; readonly records: ReadonlyArray<InboxEntry.InboxEntry> }

const decodeHeader = LogLine.decoder("session-header")
const decodeEvent = LogLine.decoder("session-event")
const decodeRecord = LogLine.decoder("inbox-entry")

const endOf = (bytes: Bytes): typeof End.Type | undefined =>
  Result.getOrUndefined(Result.flatMap(LogLine.fields(bytes), (fields) => Result.mapError(decodeEnd(fields), () => undefined)))

/**
 * Puts a session in from the bytes of what {@link lines} wrote, all or nothing, in
 * constant memory. Fails with `SESSION_DAMAGED` or `FORMAT_UNSUPPORTED` and the
 * number of the line, with `SESSION_EXISTS`, as the store does, and as the chunks do.
 */
export const restore = (
  store: Pick<SessionStore.Service, "restore">,
  chunks: Stream.Stream<Bytes, StoreError>,
  options: RestoreOptions = {}
): Effect.Effect<Imported, StoreError> =>
  Effect.scoped(Effect.gen(function*() {
    const more = yield* reader(chunks)
    /** Lines that were read and not taken. */
    let lines: ReadonlyArray<Line> = []
    let at = 0
    let last = 0
    const next: Effect.Effect<Line | undefined, StoreError> = Effect.suspend(() => {
      const line = lines[at]
      if (line !== undefined) {
        at++
        last = line.number
        return Effect.succeed(line)
      }
      return Effect.flatMap(more, (found) => {
        if (found === undefined) return Effect.undefined
        lines = found
        at = 0
        return next
      })
    })

    const first = yield* next
    if (first === undefined) return yield* damaged(1, "is missing: there is nothing to put in")
    const header = decodeHeader(first.bytes)
    if (Result.isFailure(header)) return yield* faultAt(first.number, header.failure, "a", "header of a session")
    let sofar: Imported = { header: header.success, events: 0, records: 0 }
    let state = LogState.empty()
    let isInbox = false
    let isOver = false

    /** What a line is; `undefined` for the last one. */
    const itemOf = ({ bytes, number }: Line): Result.Result<SessionEvent.SessionEvent | InboxEntry.InboxEntry | undefined, StoreError> => {
      const event = decodeEvent(bytes)
      if (Result.isSuccess(event)) {
        if (isInbox) return Result.fail(damaged(number, "is an event of the log, behind the records of the inbox"))
        const after = LogState.next(state, event.success)
        if (Result.isFailure(after)) return Result.fail(damaged(number, `breaks a rule of the log: ${after.failure.message}`))
        state = after.success
        sofar = { ...sofar, events: sofar.events + 1 }
        return Result.succeed(event.success)
      }
      const record = decodeRecord(bytes)
      if (Result.isSuccess(record)) {
        isInbox = true
        sofar = { ...sofar, records: sofar.records + 1 }
        return Result.succeed(record.success)
      }
      const end = endOf(bytes)
      if (end === undefined) return Result.fail(isInbox ? faultAt(number, record.failure, "a", "record of an inbox") : faultAt(number, event.failure, "an", "event of a log"))
      return end.events === sofar.events && end.records === sofar.records
        ? Result.succeed(undefined)
        : Result.fail(damaged(
          number,
          `says that there are ${end.events} events and ${end.records} records of the inbox, and before it are ${sofar.events} and ${sofar.records}`
        ))
    }

    /** A record that came behind events, and waits to be handed on. */
    let waiting: InboxEntry.InboxEntry | undefined

    /** Nothing, where nothing stands behind the last line. */
    let isChecked = false
    const afterEnd: Effect.Effect<undefined, StoreError> = Effect.suspend(() => {
      if (isChecked) return Effect.undefined
      isChecked = true
      return Effect.flatMap(next, (line) => {
        if (line === undefined) return Effect.undefined
        return Effect.fail(Result.isSuccess(decodeHeader(line.bytes)) ? another(line.number) : damaged(line.number, "stands behind the last line"))
      })
    })

    const group: Effect.Effect<Group | undefined, StoreError> = Effect.suspend(() => {
      if (isOver) return afterEnd
      const events: Array<SessionEvent.SessionEvent> = []
      const records: Array<InboxEntry.InboxEntry> = waiting === undefined ? [] : [waiting]
      waiting = undefined
      for (let line = lines[at]; line !== undefined; line = lines[at]) {
        const item = itemOf(line)
        if (Result.isFailure(item)) return Effect.fail(item.failure)
        at++
        last = line.number
        if (item.success === undefined) {
          isOver = true
          break
        }
        if (!isInbox) events.push(item.success as SessionEvent.SessionEvent)
        else if (events.length > 0) {
          waiting = item.success as InboxEntry.InboxEntry
          break
        } else records.push(item.success as InboxEntry.InboxEntry)
      }
      options.progress?.(sofar)
      if (events.length > 0) return Effect.succeed<Group>({ _tag: "Events", events })
      if (records.length > 0) return Effect.succeed<Group>({ _tag: "Records", records })
      if (isOver) return afterEnd
      return Effect.flatMap(more, (found) => {
        if (found === undefined) return Effect.fail(damaged(last + 1, "is missing: the file ends before its last line, which says how much there is"))
        lines = found
        at = 0
        return group
      })
    })

    /** Records that came where events were asked for. */
    let stashed: ReadonlyArray<InboxEntry.InboxEntry> = []
    const events = Stream.paginate(undefined, () =>
      Effect.map(group, (found) => {
        if (found?._tag === "Events") return [found.events, Option.some(undefined)] as const
        stashed = found?.records ?? []
        return [[], Option.none()] as const
      }))
    const records = Stream.paginate(undefined, () => {
      const before = stashed
      stashed = []
      return before.length > 0
        ? Effect.succeed([before, Option.some(undefined)] as const)
        : Effect.map(group, (found) => found?._tag === "Records" ? [found.records, Option.some(undefined)] as const : [[], Option.none()] as const)
    })
    yield* store.restore(header.success, events, records)
    return sofar
  }))
