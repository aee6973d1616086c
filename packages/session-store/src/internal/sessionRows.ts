/** The rows of sessions: what they say, and that they say what was written. */
import { Contracts, type Scalars, SessionHeader } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { sumOf } from "./checksum.ts"
import { DamagedColumn, integer, optional, type Row, text } from "./columns.ts"
import { damagedWhole, type StoreError, unknown, unsupported } from "./storeFailure.ts"

/** What the log of a session amounts to, as its holder alone writes it. */
export interface LogFigures {
  readonly generation: number
  /** The `seq` that is due. */
  readonly next: number
  readonly turns: number
  readonly updated: number
}

/** What the inbox amounts to. */
export interface InboxFigures {
  /** How many records it has. */
  readonly records: number
  /** How many receipts wait. */
  readonly pending: number
}

/** Who has a session. */
export interface Lease {
  readonly owner: string
  readonly holder: SessionStore.Holder
  /** The process and until when its leases run; absent where it said goodbye. */
  readonly process: { readonly name: string; readonly expires: number } | undefined
}

export interface Session {
  readonly number: number
  readonly id: Scalars.SessionId
  /** As it was given, in JSON. */
  readonly header: string
  readonly log: LogFigures
  readonly inbox: InboxFigures
  readonly lease: Lease | undefined
}

export const logSum = (number: number, { generation, next, turns, updated }: LogFigures): number =>
  sumOf([number, generation, next, turns, updated])

export const inboxSum = (number: number, { pending, records }: InboxFigures): number => sumOf([number, records, pending])

export const headerSum = (number: number, header: string): number => sumOf([number, header])

/** A text that may hold anything, as a column can hold it. */
export const quoted = (text: string): string => JSON.stringify(text)

export const unquoted = (row: Row, column: string): string => {
  try {
    const value: unknown = JSON.parse(text(row, column))
    if (typeof value === "string") return value
  } catch {
    // As below: a column of ours always holds such a text.
  }
  throw new DamagedColumn(`the column ${column} holds no text in JSON`)
}

const leaseOf = (row: Row): Lease | undefined => {
  const owner = optional(row, "owner", text)
  if (owner === undefined) return undefined
  const name = optional(row, "process", text)
  return {
    owner,
    holder: { name: unquoted(row, "holder"), since: integer(row, "since") },
    process: name === undefined ? undefined : { name, expires: integer(row, "expires") }
  }
}

/** Reads `inbox_seq`, `pending` and `inbox_sum`. */
export const inboxFiguresOf = (id: string, number: number, row: Row): Result.Result<InboxFigures, StoreError> => {
  const inbox = { records: integer(row, "inbox_seq"), pending: integer(row, "pending") }
  return inboxSum(number, inbox) === integer(row, "inbox_sum")
    ? Result.succeed(inbox)
    : Result.fail(damagedWhole(id, "the figures of its inbox cannot be read: their checksum is wrong"))
}

/** The columns of a session with those of its owner. */
export const columns = `s.number, s.id, s.header, s.header_sum, s.generation, s.next_seq, s.turns, s.updated, s.log_sum,
  s.inbox_seq, s.pending, s.inbox_sum, s.owner, s.holder, s.since, o.process, o.expires`

/** Reads a row of {@link columns}; fails where it is not as it was written. */
export const sessionOf = (row: Row): Result.Result<Session, StoreError> => {
  const id = text(row, "id") as Scalars.SessionId
  const number = integer(row, "number")
  const header = text(row, "header")
  if (headerSum(number, header) !== integer(row, "header_sum")) return Result.fail(damagedWhole(id, "its header cannot be read: the checksum is not that of its text"))
  const log = { generation: integer(row, "generation"), next: integer(row, "next_seq"), turns: integer(row, "turns"), updated: integer(row, "updated") }
  if (logSum(number, log) !== integer(row, "log_sum")) return Result.fail(damagedWhole(id, "the figures of its log cannot be read: their checksum is wrong"))
  return Result.map(inboxFiguresOf(id, number, row), (inbox) => ({ number, id, header, log, inbox, lease: leaseOf(row) }))
}

/**
 * Finds a session. With `lock` no other transaction changes it until this one is
 * over; it is read after that was waited for, with the lease that it has then.
 */
export const find = (sql: SqlClient, id: Scalars.SessionId, options?: { readonly lock: boolean }): Effect.Effect<Session, SqlError | StoreError> => {
  const lock = sql.onDialectOrElse({
    pg: () => Effect.asVoid(sql`select number from sessions where id = ${id} for update`),
    // A transaction of SQLite is the only one that writes.
    orElse: () => Effect.void
  })
  return Effect.flatMap(
    Effect.andThen(
      options?.lock === true ? lock : Effect.void,
      sql<Row>`select ${sql.literal(columns)} from sessions s left join owners o on o.id = s.owner where s.id = ${id}`
    ),
    ([row]) => row === undefined ? Effect.fail(unknown(id)) : Effect.fromResult(sessionOf(row))
  )
}

const decodeHeader = Contracts.decode("session-header")

/** The header of a session whose row is as it was written. */
export const headerOf = ({ header, id }: Pick<Session, "header" | "id">): Result.Result<SessionHeader.SessionHeader, StoreError> => {
  const value: unknown = JSON.parse(header)
  return Result.mapError(decodeHeader(value), (message) => unsupported(id, `its header is of a later version: ${message}`))
}

/** As {@link headerOf}, for lists: what is of this format is taken as it was written. */
export const listedHeaderOf = (session: Pick<Session, "header" | "id">): Result.Result<SessionHeader.SessionHeader, StoreError> => {
  const value = JSON.parse(session.header) as SessionHeader.SessionHeader
  return value.format === SessionHeader.format ? Result.succeed(value) : headerOf(session)
}

