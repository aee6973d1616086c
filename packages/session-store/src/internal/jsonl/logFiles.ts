/** The segments of a log: which of them count, and reading what they hold. */
import type { Scalars } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { damaged, type StoreError, unsupported } from "../storeFailure.ts"
import { type FileError, type Files, hasCode, using } from "./files.ts"
import { generationOf, type Place } from "./layout.ts"
import { lineFeed } from "./lines.ts"
import * as Segment from "./segment.ts"

/** A segment whose writer had begun: what stands before its first batch. */
export interface Begun {
  readonly generation: number
  readonly head: Segment.Head
  readonly follows: Segment.Follows
  /** Where its first batch stands, and the `seq` that is due there. */
  readonly start: Segment.Position
}

interface Beginning {
  readonly head: Segment.Head
  /** Absent where the writer never came to write it. */
  readonly begun: Begun | undefined
}

/** What is asked of a log. */
export interface Log {
  readonly files: Files
  readonly id: Scalars.SessionId
  readonly place: Place
  /** Fails where the store's directory is not the one that was opened. */
  readonly ifStored: Effect.Effect<void, FileError | StoreError>
  /** Fails as is right where the session's files are not there. */
  readonly absent: Effect.Effect<never, FileError | StoreError>
}

const nameOf = (generation: number): string => `log.${generation}.jsonl`

/** Enough for the first two lines, unless a holder has a very long name. */
const beginningBytes = 4 * 1024

const readBeginning = ({ files, id, place }: Log, generation: number): Effect.Effect<Beginning, FileError | StoreError> =>
  using(files, place.segment(generation), "read", (file) =>
    Effect.gen(function*() {
      const name = nameOf(generation)
      let bytes = yield* file.read(0, beginningBytes)
      const second = () => bytes.indexOf(lineFeed, bytes.indexOf(lineFeed) + 1)
      for (let length = beginningBytes; bytes.length === length && (bytes.indexOf(lineFeed) < 0 || second() < 0);) {
        length *= 4
        bytes = yield* file.read(0, length)
      }
      const first = bytes.indexOf(lineFeed)
      if (first < 0) return yield* damaged(id, `${name} has no first line`)
      const head = yield* Effect.fromResult(Segment.headOf(id, name, bytes.subarray(0, first)))
      if (head.session !== id || head.generation !== generation) {
        return yield* damaged(id, `${name} is the log of the ${head.generation}. writer of session ${head.session}`)
      }
      const end = second()
      if (end < 0) return { head, begun: undefined }
      const follows = yield* Effect.fromResult(Segment.followsOf(id, name, bytes.subarray(first + 1, end)))
      if (follows === undefined) return { head, begun: undefined }
      if (follows.before !== undefined && follows.before.generation >= generation) return yield* damaged(id, `${name} follows a later log`)
      return { head, begun: { generation, head, follows, start: { offset: end + 1, seq: follows.events } } }
    }))

/** A segment that is known to have been begun, because another one follows it. */
export const begun = (log: Log, generation: number): Effect.Effect<Begun, FileError | StoreError> =>
  Effect.flatMap(readBeginning(log, generation), (found) =>
    found.begun === undefined ? Effect.fail(damaged(log.id, `${nameOf(generation)} was never begun, and another one follows it`)) : Effect.succeed(found.begun)).pipe(ifThere(log))

/** What there is of a log at one moment. */
export interface View {
  /** Of the segment with the greatest generation: who has the session, or had it last. */
  readonly latest: Segment.Head
  /** The last segment that a writer had begun. */
  readonly last: Begun
}

/**
 * Fails with `SESSION_UNKNOWN` where the session is not there. `opened` is the greatest
 * generation that is known to have begun: what it has written is missing where its
 * beginning is.
 */
export const view = (log: Log, opened = 0): Effect.Effect<View, FileError | StoreError> =>
  Effect.gen(function*() {
    const { files, id, place } = log
    const names = yield* files.list(place.directory)
    const generations = names.flatMap((name) => generationOf(name) ?? []).sort((one, other) => other - one)
    let latest: Segment.Head | undefined
    for (const generation of generations) {
      const { begun, head } = yield* readBeginning(log, generation)
      latest ??= head
      if (begun !== undefined) {
        if (generation >= opened) return { latest, last: begun }
        return yield* damaged(id, `what its ${opened}. writer wrote is missing (${nameOf(opened)})`)
      }
    }
    return yield* damaged(id, "it has no log")
  }).pipe(ifThere(log))

/** A file that goes while it is read has gone with its session. */
export const ifThere = ({ absent, files, id, place }: Log) => <A, R>(work: Effect.Effect<A, FileError | StoreError, R>): Effect.Effect<A, FileError | StoreError, R> =>
  Effect.catchIf(work, hasCode("ENOENT", "ENOTDIR"), (error) =>
    Effect.flatMap(files.stat(place.directory), (found) =>
      found === undefined ? absent : Effect.fail(damaged(id, `a file of it is missing: ${error.message}`))))

/**
 * How far a segment is read: to where a later one, or its writer in this process,
 * says that it counts; or as far as anybody may see while others write or do not.
 */
export type Until = { readonly bytes: number } | { readonly isWritten: boolean }

interface Part {
  readonly segment: Begun
  readonly until: Until
}

/** The segments that have what comes behind `after`, in order, and none before a generation. */
const partsFrom = (log: Log, last: Part, after: number, generation = 0): Effect.Effect<ReadonlyArray<Part>, FileError | StoreError> =>
  Effect.gen(function*() {
    const parts = [last]
    let { segment } = last
    while (segment.follows.events > after + 1 && segment.generation > generation && segment.follows.before !== undefined) {
      const { bytes, generation: before } = segment.follows.before
      segment = yield* begun(log, before)
      parts.unshift({ segment, until: { bytes } })
    }
    if (segment.follows.before === undefined && segment.follows.events > 0) return yield* damaged(log.id, `${nameOf(segment.generation)} follows nothing`)
    return parts
  })

/** Where a reader is: the segment, and the position in it. */
export interface Cursor {
  readonly generation: number
  readonly position: Segment.Position
}

/** So much is read at once: 256 KiB. */
const chunkBytes = 256 * 1024

/** Reads on in a segment. Answers the offset of the line that has not ended. */
const feed = (
  { files, place }: Log,
  generation: number,
  scanner: Segment.Scanner,
  from: { readonly offset: number; readonly begun: Uint8Array },
  until: number
): Effect.Effect<{ readonly offset: number; readonly begun: Uint8Array } | undefined, FileError> =>
  Effect.map(
    using(files, place.segment(generation), "read", (file) => file.read(from.offset, Math.min(chunkBytes, until - from.offset))),
    (read) => {
      if (read.length === 0) return undefined
      const bytes = from.begun.length === 0 ? read : Buffer.concat([from.begun, read])
      const first = from.offset - from.begun.length
      let start = 0
      for (let end = bytes.indexOf(lineFeed, from.begun.length); end >= 0; end = bytes.indexOf(lineFeed, start)) {
        scanner.line(bytes.subarray(start, end), first + start)
        start = end + 1
      }
      return { offset: from.offset + read.length, begun: bytes.subarray(start) }
    }
  )

/** What a segment has, some batches at a time. `onEnd` hears where the bytes end that were read. */
const batchesIn = (
  log: Log,
  { segment: { generation }, until }: Part,
  from: Segment.Position,
  onEnd: (end: Segment.Position) => void
): Stream.Stream<Segment.Batch, FileError | StoreError> => {
  const { id } = log
  const name = nameOf(generation)
  const scanner = Segment.scanner(from)
  const limit = "bytes" in until ? until.bytes : Number.MAX_SAFE_INTEGER
  let rest: { readonly offset: number; readonly begun: Uint8Array } = { offset: from.offset, begun: new Uint8Array(0) }

  const place = () => `event ${scanner.counted().seq} cannot be read (${name}, byte ${scanner.fault()?.offset ?? rest.offset - rest.begun.length})`

  const sealed = (bytes: number): Result.Result<ReadonlyArray<Segment.Batch>, StoreError> => {
    const whole = scanner.whole()
    const end = whole?.position.offset === bytes ? whole.position : scanner.counted()
    if (end.offset !== bytes) {
      return Result.fail(damaged(id, `${place()}: ${scanner.fault()?.message ?? `${bytes} bytes were kept, and they are not there`}`))
    }
    onEnd(end)
    return Result.succeed(whole?.position.offset === bytes ? [whole.batch] : [])
  }

  const open = (isWritten: boolean): Effect.Effect<ReadonlyArray<Segment.Batch>, FileError | StoreError> => {
    const fault = scanner.fault()
    const whole = scanner.whole()
    if (fault !== undefined && (scanner.isDamaged() || (whole?.position ?? scanner.counted()).offset < scanner.synced())) {
      return Effect.flatMap(changedSince(log, generation, scanner), (isOther) =>
        // A writer that takes back what a full disk cut off writes other bytes where these were.
        isOther ? Effect.sync(() => {
          onEnd(scanner.counted())
          return []
        }) : Effect.fail(damaged(id, `${place()}: ${fault.message}`)))
    }
    if (isWritten || whole === undefined) {
      onEnd(scanner.counted())
      return Effect.succeed([])
    }
    onEnd(whole.position)
    return Effect.succeed([whole.batch])
  }

  const atEnd = Effect.suspend((): Effect.Effect<ReadonlyArray<Segment.Batch>, FileError | StoreError> => {
    const newer = scanner.newer()
    if (newer !== undefined) return Effect.fail(unsupported(id, `${place()}: ${newer}`))
    return "bytes" in until ? Effect.fromResult(sealed(until.bytes)) : open(until.isWritten)
  })

  let isOver = false
  return Stream.unfold(undefined, () =>
    Effect.gen(function*() {
      if (isOver) return undefined
      const next = rest.offset < limit ? yield* feed(log, generation, scanner, rest, limit) : undefined
      if (next === undefined) isOver = true
      else rest = next
      const batches = scanner.batches()
      return [next === undefined ? [...batches, ...yield* atEnd] : batches, undefined] as const
    }).pipe(ifThere(log))
  ).pipe(Stream.flattenIterable)
}

/** Whether a damaged place is another one when it is looked at again. */
const changedSince = (log: Log, generation: number, before: Segment.Scanner): Effect.Effect<boolean, FileError> =>
  Effect.gen(function*() {
    const again = Segment.scanner(before.counted())
    let rest: { readonly offset: number; readonly begun: Uint8Array } | undefined = { offset: before.counted().offset, begun: new Uint8Array(0) }
    while (rest !== undefined) rest = yield* feed(log, generation, again, rest, Number.MAX_SAFE_INTEGER)
    return again.fault()?.offset !== before.fault()?.offset
  })

export interface Reading {
  readonly last: Begun
  readonly until: Until
  /** Only what comes behind this `seq`. */
  readonly after: number
  /** Where the reader is already. */
  readonly from?: Cursor
  /** Nothing that is known to be of an earlier generation than this one's predecessor. */
  readonly generation?: number
  readonly onEnd?: (cursor: Cursor) => void
}

/** The batches of a log, in order; the first may begin before what was asked for. */
export const batches = (log: Log, { after, from, generation, last, onEnd = () => {}, until }: Reading): Stream.Stream<Segment.Batch, FileError | StoreError> =>
  Stream.unwrap(Effect.map(
    partsFrom(log, { segment: last, until }, from === undefined ? after : from.position.seq - 1, generation).pipe(ifThere(log)),
    (parts) =>
      Stream.fromIterable(parts).pipe(
        Stream.flatMap((part) => {
          const { generation: own, start } = part.segment
          const position = from?.generation === own ? from.position : start
          return batchesIn(log, part, position, (end) => onEnd({ generation: own, position: end }))
        }),
        Stream.filter(({ first, lines }) => first + lines.length > after + 1)
      )
  ))
