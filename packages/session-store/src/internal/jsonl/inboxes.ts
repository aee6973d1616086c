/** The inboxes of a store: reading on where one was, and adding a line. */
import type { InboxEntry, Scalars } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import { damaged, type StoreError } from "../storeFailure.ts"
import { type File, FileError, using } from "./files.ts"
import * as InboxFile from "./inboxFile.ts"
import { beginsWith } from "./lines.ts"
import { ifThere, type Log } from "./logFiles.ts"
import type { Root } from "./root.ts"

/** What of a file was read. */
interface Known {
  /** Its first line, and perhaps more. */
  readonly beginning: Uint8Array
  readonly fold: InboxFile.Fold
  readonly one: Semaphore.Semaphore
  /** How many bytes. */
  offset: number
  /** How many lines are known to be on disk. */
  synced: number
}

/** Inboxes of so many sessions are kept in memory; others are read again. */
const maxKnown = 256

/** A line of an inbox that is to be written, by what names it. */
export type Line = InboxFile.Draft | { readonly inbox: "opened"; readonly generation: number; readonly claimed: ReadonlyArray<InboxEntry.ReceiptId> }

export interface Inboxes {
  /** The inbox as it is now. */
  readonly read: (id: Scalars.SessionId) => Effect.Effect<InboxFile.Inbox, FileError | StoreError>
  /**
   * Adds the line that is made of what is there, durably; none where it is
   * `undefined`. Answers the inbox with the line in it. Where this fails, the line is
   * not there, or counts not.
   */
  readonly add: (
    id: Scalars.SessionId,
    make: (inbox: InboxFile.Inbox) => Effect.Effect<Line | undefined, FileError | StoreError>
  ) => Effect.Effect<InboxFile.Inbox, FileError | StoreError>
}

const writeOnce = (file: File, bytes: Uint8Array): Effect.Effect<void, FileError> =>
  Effect.flatMap(file.write(bytes), (written) => {
    if (written === bytes.length) return Effect.void
    // A line of its own: what was cut off is no beginning of it. A full disk says so now.
    return Effect.flatMap(file.write(bytes), (again) =>
      again === bytes.length
        ? Effect.void
        : Effect.fail(new FileError({ operation: "write", path: file.path, code: "ENOSPC", text: `no space left on device, write '${file.path}'` })))
  })

/** What names a line, so that it can be withdrawn. */
const markOf = (line: Line): string | undefined => "inbox" in line ? undefined : line.type === "received" ? line.id : line.mark

export const make = ({ files, logOf }: Root): Inboxes => {
  const known = new Map<Scalars.SessionId, Known>()

  const knownOf = (id: Scalars.SessionId, beginning: Uint8Array): Known => {
    const found = known.get(id)
    known.delete(id)
    // A file only grows: another one is that of another session.
    const isIt = found !== undefined && found.beginning.length > 0 && beginsWith(beginning, found.beginning)
    const one = isIt ? found : { beginning, fold: InboxFile.fold(id), one: Semaphore.makeUnsafe(1), offset: 0, synced: 0 }
    known.set(id, one)
    for (const [eldest] of known) {
      if (known.size <= maxKnown) break
      known.delete(eldest)
    }
    return one
  }

  /** Reads what is new. What fails once fails again: it is read from the beginning then. */
  const catchUp = (id: Scalars.SessionId, file: File, one: Known): Effect.Effect<void, FileError | StoreError> =>
    Effect.gen(function*() {
      const { size } = yield* file.stat
      if (size < one.offset) {
        known.delete(id)
        return yield* damaged(id, `its inbox has lost ${one.offset - size} bytes since it was read (inbox.jsonl)`)
      }
      // One that is empty has lost its beginning.
      if (size === one.offset && size > 0) return
      const bytes = yield* file.read(one.offset, size - one.offset)
      const taken = one.fold.take(bytes)
      if (Result.isFailure(taken)) {
        known.delete(id)
        return yield* taken.failure
      }
      one.offset += taken.success
    })

  const within = <A>(log: Log, how: "read" | "append", use: (file: File, one: Known) => Effect.Effect<A, FileError | StoreError>) =>
    using(files, log.place.inbox, how, (file) =>
      Effect.flatMap(file.read(0, InboxFile.maxHeaderBytes), (beginning) => {
        const one = knownOf(log.id, beginning)
        return Semaphore.withPermits(one.one, 1)(use(file, one))
      })).pipe(ifThere(log))

  /** Fails where the file that was written is not the one that others read. */
  const ifKept = ({ absent, ifStored, place }: Log, file: File) =>
    Effect.flatMap(Effect.all([file.stat, files.stat(place.inbox)]), ([own, found]) => found?.identity === own.identity ? ifStored : absent)

  /** Syncs a file. Others go by its lines, and later syncs do not write what one that failed has forgotten. */
  const sync = (file: File) => Effect.tapError(file.sync, () => Effect.ignore(files.rewrite(file.path, 0)))

  /** Takes a line back, unless what was written of it is none. */
  const withdraw = (id: Scalars.SessionId, file: File, one: Known, mark: string) =>
    Effect.gen(function*() {
      const found = yield* Effect.result(catchUp(id, file, one))
      if (Result.isSuccess(found) && !one.fold.has(mark)) return
      yield* writeOnce(file, InboxFile.bytesOf({ inbox: "withdrawn", id: mark }, one.fold.lines()))
      yield* Effect.andThen(sync(file), catchUp(id, file, one))
    }).pipe(
      Effect.catchCause((cause) => Effect.logWarning(`a line of the inbox of session ${id} could not be withdrawn that was told to have failed`, cause))
    )

  return {
    read: (id) => within(logOf(id), "read", (file, one) => Effect.as(catchUp(id, file, one), one.fold)),
    add: (id, make) => {
      const log = logOf(id)
      return Effect.uninterruptible(within(log, "append", (file, one) =>
        Effect.gen(function*() {
          yield* catchUp(id, file, one)
          const line = yield* make(one.fold)
          const lines = one.fold.lines()
          if (one.synced < lines) {
            // Some are of others, who may not have synced them yet: no answer, and no line, goes by what a disk may forget.
            yield* sync(file)
            one.synced = lines
          }
          if (line === undefined) return one.fold
          const mark = markOf(line)
          yield* writeOnce(file, InboxFile.bytesOf(line, one.fold.lines())).pipe(
            Effect.andThen(sync(file)),
            Effect.andThen(ifKept(log, file)),
            Effect.andThen(catchUp(id, file, one)),
            Effect.onError(() => mark === undefined ? Effect.void : withdraw(id, file, one, mark))
          )
          if (one.fold.lines() === lines + 1) one.synced = lines + 1
          return one.fold
        })))
    }
  }
}
