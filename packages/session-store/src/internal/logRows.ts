/** The rows of a log: appending, and reading in pages. */
import type { InboxEntry, SessionEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Statement } from "effect/sql/Statement"
import * as Stream from "effect/Stream"
import { type Batch, unpacked } from "./batch.ts"
import { bytes, integer, type Row } from "./columns.ts"
import type { LogFigures, Session } from "./sessionRows.ts"
import { damaged, type StoreError } from "./storeFailure.ts"

type Events = ReadonlyArray<SessionEvent.SessionEvent>

/** The receipts that these events claim, in order. */
export const claimedBy = (events: Events): ReadonlyArray<InboxEntry.ReceiptId> =>
  events.flatMap((event) => event.type === "inbox/claimed" ? event.data.ids : [])

/** What a log amounts to with these events at its end. */
export const grown = (log: LogFigures, events: Events): LogFigures => ({
  generation: log.generation,
  next: log.next + events.length,
  turns: log.turns + events.filter(({ type }) => type === "turn/start").length,
  updated: events.at(-1)?.time ?? log.updated
})

/** For a transaction that has made sure that the rows go on from the log's end. */
export const inserting = (sql: SqlClient, session: number, batches: ReadonlyArray<Batch>): ReadonlyArray<Statement<Row>> =>
  batches.map(({ bytes, codec, first, generation, last, sum }) =>
    sql<Row>`insert into batches (session, first_seq, last_seq, generation, codec, sum, bytes)
      values (${session}, ${first}, ${last}, ${generation}, ${codec}, ${sum}, ${bytes})`)

/** Within a transaction as {@link inserting} is for. */
export const insert = (sql: SqlClient, session: number, batches: ReadonlyArray<Batch>): Effect.Effect<void, SqlError> =>
  Effect.forEach(inserting(sql, session, batches), (statement) => statement, { discard: true })

const batchOf = (row: Row): Batch => ({
  first: integer(row, "first_seq"),
  last: integer(row, "last_seq"),
  generation: integer(row, "generation"),
  codec: integer(row, "codec"),
  sum: integer(row, "sum"),
  bytes: bytes(row, "bytes")
})

/** Where a reader is. */
interface Cursor {
  /** The last event that it has; -1 before the first. */
  readonly after: number
  /** How many rows it asks for next: few where they are large, many where they are small. */
  readonly rows: number
}

const firstRows = 16
const maxRows = 512

/** The packed bytes that a page should have: 32 KiB, which are unpacked in a few milliseconds. */
const pageBytes = 32 * 1024

interface Page {
  readonly events: Events
  readonly cursor: Cursor
}

const missing = (id: string, first: number, last: number): StoreError =>
  damaged(id, first === last ? `event ${first} is missing` : `events ${first} to ${last} are missing`)

/** What a row adds to the events up to `last`, or why it cannot be the next one. */
const rowOf = (
  { id, number }: Pick<Session, "id" | "number">,
  batch: Batch,
  { after, isFirst, last }: { readonly after: number; readonly isFirst: boolean; readonly last: number }
): Result.Result<Events, StoreError> => {
  if (batch.first > last + 1) return Result.fail(missing(id, last + 1, batch.first - 1))
  if (!isFirst && batch.first <= last) return Result.fail(damaged(id, `events ${batch.first} to ${last} are there twice`))
  return unpacked(id, number, batch, after)
}

/** The next events behind the cursor; none where there are no rows. Those before one that cannot be read are answered first. */
const page = (sql: SqlClient, session: Pick<Session, "id" | "number">, { after, rows }: Cursor): Effect.Effect<Page, SqlError | StoreError> =>
  Effect.gen(function*() {
    const found = yield* sql<Row>`select first_seq, last_seq, generation, codec, sum, bytes from batches
      where session = ${session.number}
        and first_seq >= coalesce((select max(first_seq) from batches where session = ${session.number} and first_seq <= ${after + 1}), 0)
      order by first_seq limit ${rows}`
    const events: Array<SessionEvent.SessionEvent> = []
    let last = after
    let size = 0
    for (const [index, row] of found.entries()) {
      const batch = batchOf(row)
      const added = rowOf(session, batch, { after, isFirst: index === 0, last })
      if (Result.isFailure(added)) {
        if (events.length > 0) break
        return yield* added.failure
      }
      size += batch.bytes.length
      for (const event of added.success) events.push(event)
      last = Math.max(last, batch.last)
    }
    return { events, cursor: { after: last, rows: size < pageBytes ? Math.min(maxRows, rows * 2) : Math.max(1, rows >> 1) } }
  })

/**
 * The events from `after` on up to those before `until`, in order. Fails where one
 * of them is missing or cannot be read, behind those before it; `gone` says why rows can be missing that
 * are no damage.
 */
export const read = (
  sql: SqlClient,
  session: Pick<Session, "id" | "number">,
  after: number,
  until: number,
  gone: Effect.Effect<void, SqlError | StoreError>
): Stream.Stream<SessionEvent.SessionEvent, SqlError | StoreError> => {
  const from = Math.max(-1, after)
  return Stream.unfold({ after: from, rows: firstRows }, (cursor: Cursor) =>
    Effect.gen(function*() {
      if (cursor.after + 1 >= until) return undefined
      // Long logs leave the event loop free in between.
      if (cursor.after !== from) yield* Effect.yieldNow
      const { cursor: next, events } = yield* page(sql, session, cursor)
      if (next.after === cursor.after) {
        yield* gone
        return yield* missing(session.id, cursor.after + 1, until - 1)
      }
      return [next.after < until ? events : events.filter(({ seq }) => seq < until), next] as const
    })).pipe(Stream.flattenIterable)
}
