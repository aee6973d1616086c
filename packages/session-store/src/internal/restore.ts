/**
 * Puts a whole session in, however long it is, all or nothing.
 *
 * It comes in pieces, so that others write meanwhile, under a row that has no id
 * yet and that nobody finds. The last transaction gives it its id.
 */
import type { InboxEntry, SessionEvent, SessionHeader } from "@turnpike/contract"
import { LogState } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { SqlDatabase } from "../SqlDatabase.ts"
import * as Batch from "./batch.ts"
import { integer, oneOf } from "./columns.ts"
import * as Inbox from "./inboxRows.ts"
import type { Leases } from "./leases.ts"
import * as Log from "./logRows.ts"
import * as Sessions from "./sessionRows.ts"
import { exists, failed, type StoreError } from "./storeFailure.ts"

/** How many events or records one transaction takes. */
const pieceLength = 512

/** The generation of what no writer wrote. */
const noGeneration = 0

/** Makes a row that nobody finds, and answers its number. */
const insertRow = ({ sql }: SqlDatabase, header: SessionHeader.SessionHeader, owner: string | null): Effect.Effect<number, SqlError> =>
  Effect.gen(function*() {
    const text = JSON.stringify(header)
    const number = integer(
      yield* oneOf(sql`insert into sessions (header, header_sum, generation, next_seq, turns, updated, log_sum, inbox_seq, pending, inbox_sum, owner)
        values (${text}, 0, 0, 0, 0, 0, 0, 0, 0, 0, ${owner}) returning number`),
      "number"
    )
    yield* sql`update sessions set header_sum = ${Sessions.headerSum(number, text)} where number = ${number}`
    return number
  })

/** Takes the row away again. What a process that dies leaves is taken away by the next. */
const abandon = ({ place, sql, transaction }: SqlDatabase, number: number): Effect.Effect<void> =>
  transaction(
    Effect.gen(function*() {
      yield* sql`delete from batches where session = ${number}`
      yield* sql`delete from inbox where session = ${number}`
      yield* sql`delete from sessions where number = ${number}`
    }),
    { sync: false }
  ).pipe(Effect.catchCause((cause) => Effect.logDebug(`a session that was not put in whole is left in ${place} for now`, cause)))

/** Makes the row findable. Fails where the id was taken meanwhile. */
const publish = (
  { sql }: SqlDatabase,
  number: number,
  { id }: SessionHeader.SessionHeader,
  log: Sessions.LogFigures,
  inbox: Sessions.InboxFigures
): Effect.Effect<void, SqlError | StoreError> =>
  Effect.gen(function*() {
    const rows = yield* sql`update sessions set id = ${id}, owner = null, next_seq = ${log.next}, turns = ${log.turns}, updated = ${log.updated},
      log_sum = ${Sessions.logSum(number, log)}, inbox_seq = ${inbox.records}, pending = ${inbox.pending}, inbox_sum = ${Sessions.inboxSum(number, inbox)}
      where number = ${number} and not exists (select 1 from sessions where id = ${id}) returning number`
    if (rows.length > 0) return
    const others = yield* sql`select number from sessions where id = ${id}`
    return yield* others.length > 0
      ? exists(id)
      // A process that was frozen for longer than its lease finds its row taken away.
      : failed("STORE_FAILED", `session ${id} was not put in: this process gave no sign of life for too long`, { remedy: "Try again." })
  }).pipe(
    // Of two that publish at the same time, the later one finds no row of the other before, and the index refuses it.
    Effect.catchIf((error) => error._tag === "SqlError" && error.reason._tag === "UniqueViolation", () => Effect.fail(exists(id)))
  )

const noLog = (header: SessionHeader.SessionHeader): Sessions.LogFigures => ({ generation: noGeneration, next: 0, turns: 0, updated: header.created })

/** Makes a session without events. */
export const putEmpty = (database: SqlDatabase, header: SessionHeader.SessionHeader): Effect.Effect<void, SqlError | StoreError> =>
  database.transaction(
    Effect.flatMap(insertRow(database, header, null), (number) => publish(database, number, header, noLog(header), { records: 0, pending: 0 })),
    { sync: true }
  )

/** Puts a session in. Nothing of it is there where this fails or is interrupted. */
export const put = <E>(
  database: SqlDatabase,
  leases: Leases,
  header: SessionHeader.SessionHeader,
  events: Stream.Stream<SessionEvent.SessionEvent, E>,
  entries: Stream.Stream<InboxEntry.InboxEntry, E>
): Effect.Effect<void, E | SqlError | StoreError> => {
  const { sql, transaction } = database
  const { id, parent } = header

  const fill = (number: number) =>
    Effect.gen(function*() {
      let state = LogState.empty()
      let log = noLog(header)
      const claimed = new Set<InboxEntry.ReceiptId>()
      yield* Stream.runForEachArray(Stream.rechunk(events, pieceLength), (piece) =>
        Effect.gen(function*() {
          const next = LogState.all(state, piece)
          if (Result.isFailure(next)) {
            return yield* failed("SESSION_DAMAGED", `event ${next.failure.seq} of session ${id} breaks a rule of its log: ${next.failure.message}`)
          }
          state = next.success
          log = Log.grown(log, piece)
          // A fork's first events claim what its parent had received.
          for (const receipt of Log.claimedBy(piece.filter(({ seq }) => seq >= (parent?.events ?? 0)))) claimed.add(receipt)
          const batches = yield* Batch.packed(number, noGeneration, piece)
          yield* transaction(Log.insert(sql, number, batches), { sync: false })
        }))
      const inbox = Inbox.restoring(sql, { id, number }, claimed)
      yield* Stream.runForEachArray(Stream.rechunk(entries, pieceLength), (piece) =>
        transaction(Effect.forEach(piece, inbox.add, { discard: true }), { sync: false }))
      yield* transaction(publish(database, number, header, log, inbox.figures()), { sync: true })
    })

  return Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const number = yield* transaction(Effect.andThen(leases.begin, insertRow(database, header, leases.owner)), { sync: false })
      yield* Effect.onExit(restore(fill(number)), (exit) => Exit.isSuccess(exit) ? Effect.void : abandon(database, number))
    })
  )
}
