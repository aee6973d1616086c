/**
 * Makes whole sessions, all or nothing: in a directory that nobody looks into, which
 * gets its name once all of it is on disk.
 */
import type { InboxEntry, SessionEvent, SessionHeader } from "@turnpike/contract"
import { LogLine, LogState } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { randomUUID } from "node:crypto"
import * as path from "node:path"
import { exists, failed, type StoreError } from "../storeFailure.ts"
import { type FileError, hasCode, makeSmall, using, writeAll } from "./files.ts"
import * as InboxFile from "./inboxFile.ts"
import { placeIn, placeOf } from "./layout.ts"
import type { Leases } from "./leases.ts"
import type { Root } from "./root.ts"
import * as Segment from "./segment.ts"

/** How many events or records are written at once. */
const pieceLength = 512

/** The generation of what no writer wrote. */
const noGeneration = 0

const encoder = new TextEncoder()

/** What keeps records from being an inbox, as each comes. */
const inboxRules = () => {
  let records = 0
  const ids = new Set<InboxEntry.ReceiptId>()
  const keys = new Set<string>()
  return (entry: InboxEntry.InboxEntry): string | undefined => {
    if (entry.seq !== records) return `its seq is ${entry.seq}; ${records} was due`
    records++
    if (entry.type !== "received") return undefined
    if (ids.has(entry.id)) return "its receipt is there already"
    if (entry.key !== undefined && keys.has(entry.key)) return "its idempotency key is there already"
    ids.add(entry.id)
    if (entry.key !== undefined) keys.add(entry.key)
    return undefined
  }
}

/** Puts a session in. Nothing of it is there where this fails or is interrupted. */
export const put = <E>(
  { files, ifThere, layout }: Root,
  leases: Leases,
  header: SessionHeader.SessionHeader,
  events: Stream.Stream<SessionEvent.SessionEvent, E>,
  entries: Stream.Stream<InboxEntry.InboxEntry, E>
): Effect.Effect<void, E | FileError | StoreError> => {
  const { id } = header
  const made = randomUUID()
  const draft = placeIn(path.join(layout.making, `${leases.owner}.${made}`))

  const writeLog = using(files, draft.segment(noGeneration), "create", (file) =>
    Effect.gen(function*() {
      let state = LogState.empty()
      let offset = 0
      const write = (bytes: Uint8Array) =>
        Effect.map(writeAll(file, bytes), () => {
          offset += bytes.length
        })
      yield* write(Segment.headBytes({ session: id, made, generation: noGeneration }))
      yield* write(Segment.followsBytes({ events: 0, turns: 0, updated: header.created }))
      yield* Stream.runForEachArray(Stream.rechunk(events, pieceLength), (piece): Effect.Effect<void, FileError | StoreError> => {
        const next = LogState.all(state, piece)
        if (Result.isFailure(next)) {
          return Effect.fail(failed("SESSION_DAMAGED", `event ${next.failure.seq} of session ${id} breaks a rule of its log: ${next.failure.message}`))
        }
        state = next.success
        return write(Segment.batchBytes(piece, { after: offset, synced: 0 }))
      })
      yield* file.sync
      yield* write(Segment.markBytes({ log: "committed", bytes: offset, synced: offset }))
      yield* file.sync
    }))

  const writeInbox = using(files, draft.inbox, "create", (file) =>
    Effect.gen(function*() {
      const faultOf = inboxRules()
      yield* writeAll(file, InboxFile.headerBytes(id, made))
      yield* Stream.runForEachArray(Stream.rechunk(entries, pieceLength), (piece): Effect.Effect<void, FileError | StoreError> => {
        const lines: Array<Uint8Array> = []
        for (const entry of piece) {
          const fault = faultOf(entry)
          if (fault !== undefined) return Effect.fail(failed("SESSION_DAMAGED", `record ${entry.seq} of the inbox of session ${id}: ${fault}`))
          const { seq, sum: _, ...record } = entry
          lines.push(InboxFile.bytesOf(record, seq))
        }
        return writeAll(file, Buffer.concat(lines))
      })
      yield* file.sync
    }))

  const publish = Effect.gen(function*() {
    yield* files.syncDirectory(draft.directory)
    yield* files.syncDirectory(layout.making)
    yield* ifThere
    const own = yield* files.stat(draft.header)
    const place = placeOf(layout, id)
    // It has its name then, and is whole. Where the disk says that it failed, it is not kept.
    yield* files.rename(draft.directory, place.directory).pipe(
      Effect.andThen(files.syncDirectory(layout.sessions)),
      Effect.onError(() =>
        Effect.ignore(Effect.flatMap(files.stat(place.header), (found) =>
          found?.identity === own?.identity ? files.rename(place.directory, draft.directory) : Effect.void))),
      Effect.catchIf(hasCode("ENOTEMPTY", "EEXIST", "ENOTDIR"), () => Effect.fail(exists(id)))
    )
  })

  return Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      yield* leases.begin
      yield* Effect.onExit(
        restore(Effect.gen(function*() {
          yield* files.makeDirectory(draft.directory)
          yield* makeSmall(files, draft.header, encoder.encode(`${LogLine.encode(header)}\n`))
          yield* writeLog
          yield* writeInbox
        })).pipe(Effect.andThen(publish)),
        (exit) =>
          Exit.isSuccess(exit)
            ? Effect.void
            : Effect.catch(files.remove(draft.directory), (error) => Effect.logDebug(`a session that was not put in whole is left in ${draft.directory} for now: ${error.message}`))
      )
    }))
}
