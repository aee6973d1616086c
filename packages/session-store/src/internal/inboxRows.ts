/** The rows of an inbox: its records, and what became of each receipt. All but reading is done within a transaction. */
import { Contracts, type InboxEntry, type Scalars } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { createHash } from "node:crypto"
import { sumOf } from "./checksum.ts"
import { integer, optional, type Row, text } from "./columns.ts"
import { inboxFiguresOf, inboxSum, quoted, type Session, unquoted } from "./sessionRows.ts"
import { damagedInbox, failed, type StoreError, unknown, unsupported } from "./storeFailure.ts"

/** What became of a receipt. The numbers stand in the rows: they keep their meaning. */
const states = { none: 0, waiting: 1, claimed: 2, discarded: 3 } as const

type Received = Extract<InboxEntry.InboxEntry, { readonly type: "received" }>

/** Stands for a text in an index: 128 bits of its SHA-256. */
const digest = (value: string): string => createHash("sha256").update(quoted(value)).digest("hex").slice(0, 32)

const sumOfRecord = (session: number, seq: number, place: number, record: string): number => sumOf([session, seq, place, record])

const receiptOf = ({ seq: _, sum: __, type: ___, ...receipt }: Received): InboxEntry.Receipt => receipt

const decode = Contracts.decode("inbox-entry")

/** Reads a row with `seq`, `record`, `place` and `sum`; fails where it is not as it was written. */
const entryOf = ({ id, number }: Pick<Session, "id" | "number">, row: Row): Result.Result<InboxEntry.InboxEntry, StoreError> => {
  const seq = integer(row, "seq")
  const record = text(row, "record")
  if (sumOfRecord(number, seq, integer(row, "place"), record) !== integer(row, "sum")) {
    return Result.fail(damagedInbox(id, `record ${seq} of its inbox cannot be read: the checksum is not that of its text`))
  }
  const value: unknown = JSON.parse(record)
  // What was parsed is answered, not what was decoded: a copy may lose a field named __proto__.
  return Result.mapBoth(decode(value), {
    onFailure: (message) => unsupported(id, `record ${seq} of its inbox is of a later version: ${message}`),
    onSuccess: () => value as InboxEntry.InboxEntry
  })
}

const receivedOf = (session: Pick<Session, "id" | "number">, row: Row): Result.Result<InboxEntry.Receipt, StoreError> =>
  Result.flatMap(entryOf(session, row), (entry) =>
    entry.type === "received"
      ? Result.succeed(receiptOf(entry))
      : Result.fail(damagedInbox(session.id, `record ${entry.seq} of its inbox is no receipt, and its row says that it is one`)))

/** Writes how many records there are and how many wait; answers the session as it is then. */
const writeFigures = (sql: SqlClient, session: Session, inbox: Session["inbox"]): Effect.Effect<Session, SqlError> =>
  Effect.as(
    sql`update sessions set inbox_seq = ${inbox.records}, pending = ${inbox.pending}, inbox_sum = ${inboxSum(session.number, inbox)}
      where number = ${session.number}`,
    { ...session, inbox }
  )

interface Insertion {
  readonly place: number
  readonly state: number
}

const insert = (sql: SqlClient, session: number, entry: InboxEntry.InboxEntry, { place, state }: Insertion): Effect.Effect<void, SqlError> => {
  const record = JSON.stringify(entry)
  const receipt = entry.type === "received" ? digest(entry.id) : null
  const key = entry.type === "received" && entry.key !== undefined ? digest(entry.key) : null
  return Effect.asVoid(sql`insert into inbox (session, seq, record, place, sum, receipt, idempotency_key, state)
    values (${session}, ${entry.seq}, ${record}, ${place}, ${sumOfRecord(session, entry.seq, place, record)}, ${receipt}, ${key}, ${state})`)
}

/** The receipt of an id, with where it stands; `undefined` where there is none. */
const findReceipt = (sql: SqlClient, session: Session, id: InboxEntry.ReceiptId) =>
  Effect.gen(function*() {
    const [row] = yield* sql<Row>`select seq, record, place, sum from inbox where session = ${session.number} and receipt = ${digest(id)}`
    return row === undefined ? undefined : { place: integer(row, "place"), receipt: yield* Effect.fromResult(receivedOf(session, row)) }
  })

export const receiptWithId = (sql: SqlClient, session: Session, id: InboxEntry.ReceiptId): Effect.Effect<InboxEntry.Receipt | undefined, SqlError | StoreError> =>
  Effect.map(findReceipt(sql, session, id), (found) => found?.receipt)

/** Whether another receipt repeats this one, whatever has become of it. */
export const isRepeated = (sql: SqlClient, session: Session, id: InboxEntry.ReceiptId): Effect.Effect<boolean, SqlError | StoreError> =>
  Effect.gen(function*() {
    const found = yield* findReceipt(sql, session, id)
    if (found === undefined) return false
    // One that repeats it stands in its place.
    for (const row of yield* sql<Row>`select seq, record, place, sum from inbox
      where session = ${session.number} and place = ${found.place} and receipt is not null`) {
      if ((yield* Effect.fromResult(receivedOf(session, row))).retry_of === id) return true
    }
    return false
  })

interface Receiving {
  readonly received: SessionStore.Received
  readonly session: Session
}

/** Receives a message for a session whose row is locked. */
export const receive = (
  sql: SqlClient,
  session: Session,
  message: SessionStore.Message,
  time: number
): Effect.Effect<Receiving, SqlError | StoreError> =>
  Effect.gen(function*() {
    const { id: sessionId, inbox, number } = session
    if (message.key !== undefined) {
      const [row] = yield* sql<Row>`select seq, record, place, sum from inbox where session = ${number} and idempotency_key = ${digest(message.key)}`
      if (row !== undefined) {
        const receipt = yield* Effect.fromResult(receivedOf(session, row))
        if (receipt.kind !== message.kind || receipt.text !== message.text || receipt.source !== message.source) {
          return yield* failed("KEY_CONFLICT", `session ${sessionId} has received another message with this idempotency key`, { data: { session_id: sessionId } })
        }
        return { received: { receipt, isNew: false }, session }
      }
    }
    const seq = inbox.records
    // Only a session that was restored with another store's ids can have this one already.
    let id = `r-${seq + 1}`
    for (let again = 1; (yield* findReceipt(sql, session, id)) !== undefined; again++) id = `r-${seq + 1}-${again}`
    const repeated = message.retry_of === undefined ? undefined : yield* findReceipt(sql, session, message.retry_of)
    const entry: Received = { seq, time, type: "received", id, ...message }
    yield* insert(sql, number, entry, { place: repeated?.place ?? seq, state: states.waiting })
    const after = yield* writeFigures(sql, session, { records: seq + 1, pending: inbox.pending + 1 })
    return { received: { receipt: receiptOf(entry), isNew: true }, session: after }
  })

/** Takes receipts that the log claims out of the inbox. Fails at the first one that does not wait. */
export const claim = (sql: SqlClient, session: Session, ids: ReadonlyArray<InboxEntry.ReceiptId>): Effect.Effect<Session, SqlError | StoreError> =>
  Effect.gen(function*() {
    if (ids.length === 0) return session
    for (const id of ids) {
      const rows = yield* sql`update inbox set state = ${states.claimed}
        where session = ${session.number} and receipt = ${digest(id)} and state = ${states.waiting} returning seq`
      if (rows.length !== 1) return yield* failed("LOG_RULE", `receipt ${id} of session ${session.id} does not wait and cannot be claimed`)
    }
    return yield* writeFigures(sql, session, { ...session.inbox, pending: session.inbox.pending - ids.length })
  })

interface Waiting {
  readonly receipt: InboxEntry.Receipt
  /** Who asks for a discard, and the record that says so. */
  readonly request: { readonly seq: number; readonly by: string } | undefined
}

/** Reads the rows of the receipts that wait; fails where one is gone that should be there. */
const waitingOf = (session: Pick<Session, "id" | "number" | "inbox">, rows: ReadonlyArray<Row>): Result.Result<ReadonlyArray<Waiting>, StoreError> => {
  if (rows.length !== session.inbox.pending) {
    return Result.fail(damagedInbox(session.id, `${rows.length} receipts wait in its inbox, and ${session.inbox.pending} were kept`))
  }
  const all: Array<Waiting> = []
  for (const row of rows) {
    const receipt = receivedOf(session, row)
    if (Result.isFailure(receipt)) return Result.fail(receipt.failure)
    const seq = optional(row, "requested", integer)
    all.push({ receipt: receipt.success, request: seq === undefined ? undefined : { seq, by: unquoted(row, "requested_by") } })
  }
  return Result.succeed(all)
}

const waitingColumns = "i.seq, i.record, i.place, i.sum, i.requested, i.requested_by"

/** What waits in a session, in its order. Session and rows come from one statement, which sees one moment. */
export const pending = (sql: SqlClient, id: Scalars.SessionId): Effect.Effect<SessionStore.Pending, SqlError | StoreError> =>
  Effect.gen(function*() {
    const rows = yield* sql<Row>`select s.number, s.inbox_seq, s.pending, s.inbox_sum, ${sql.literal(waitingColumns)}
      from sessions s left join inbox i on i.session = s.number and i.state = ${sql.literal(`${states.waiting}`)} where s.id = ${id} order by i.place, i.seq`
    const [first] = rows
    if (first === undefined) return yield* unknown(id)
    const number = integer(first, "number")
    const inbox = yield* Effect.fromResult(inboxFiguresOf(id, number, first))
    const all = yield* Effect.fromResult(waitingOf({ id, number, inbox }, rows.filter(({ seq }) => seq !== null)))
    const receipts = all.map(({ receipt }) => receipt)
    const requests = all.flatMap(({ receipt, request }) => request === undefined ? [] : [{ id: receipt.id, ...request }])
    return {
      version: inbox.records,
      nextTurn: receipts.filter(({ kind }) => kind === "followup"),
      nextStep: receipts.filter(({ kind }) => kind !== "followup"),
      discardRequests: requests.sort((one, other) => one.seq - other.seq).map(({ by, id: receipt }) => ({ id: receipt, by }))
    }
  })

interface Discarding {
  readonly discarded: ReadonlyArray<InboxEntry.Receipt>
  readonly session: Session
}

/** Discards those that wait, and answers them in their order. Writes nothing where none does. */
export const discard = (
  sql: SqlClient,
  session: Session,
  ids: ReadonlyArray<InboxEntry.ReceiptId>,
  { by, cause, time }: { readonly by: string; readonly cause: InboxEntry.DiscardCause; readonly time: number }
): Effect.Effect<Discarding, SqlError | StoreError> =>
  Effect.gen(function*() {
    const asked = new Set(ids)
    const rows = yield* sql<Row>`select ${sql.literal(waitingColumns)} from inbox i
      where i.session = ${session.number} and i.state = ${sql.literal(`${states.waiting}`)} order by i.place, i.seq`
    const discarded = (yield* Effect.fromResult(waitingOf(session, rows))).map(({ receipt }) => receipt).filter(({ id }) => asked.has(id))
    if (discarded.length === 0) return { discarded, session }
    for (const { id } of discarded) {
      yield* sql`update inbox set state = ${states.discarded} where session = ${session.number} and receipt = ${digest(id)}`
    }
    const seq = session.inbox.records
    yield* insert(sql, session.number, { seq, time, type: "discarded", ids: discarded.map(({ id }) => id), cause, by }, { place: seq, state: states.none })
    return { discarded, session: yield* writeFigures(sql, session, { records: seq + 1, pending: session.inbox.pending - discarded.length }) }
  })

/** Notes who asks for a discard of those that wait. Writes nothing where none does. */
export const requestDiscard = (
  sql: SqlClient,
  session: Session,
  ids: ReadonlyArray<InboxEntry.ReceiptId>,
  { by, time }: { readonly by: string; readonly time: number }
): Effect.Effect<Session, SqlError | StoreError> =>
  Effect.gen(function*() {
    const seq = session.inbox.records
    const found: Array<InboxEntry.ReceiptId> = []
    for (const id of new Set(ids)) {
      const rows = yield* sql`update inbox set requested = coalesce(requested, ${seq}), requested_by = coalesce(requested_by, ${quoted(by)})
        where session = ${session.number} and receipt = ${digest(id)} and state = ${states.waiting} returning seq`
      if (rows.length > 0) found.push(id)
    }
    if (found.length === 0) return session
    yield* insert(sql, session.number, { seq, time, type: "discard_requested", ids: found, by }, { place: seq, state: states.none })
    return yield* writeFigures(sql, session, { ...session.inbox, records: seq + 1 })
  })

/** At most so many records at once. */
const pageLength = 200

/**
 * The records from `seq` on, as many as come at once. Fails where one of those
 * that the session has is missing; `gone` says why rows can be missing that are no
 * damage.
 */
export const page = (
  sql: SqlClient,
  session: Session,
  seq: number,
  gone: Effect.Effect<void, SqlError | StoreError>
): Effect.Effect<ReadonlyArray<InboxEntry.InboxEntry>, SqlError | StoreError> =>
  Effect.gen(function*() {
    const due = Math.min(pageLength, session.inbox.records - seq)
    const rows = yield* sql<Row>`select seq, record, place, sum from inbox
      where session = ${session.number} and seq >= ${seq} order by seq limit ${due}`
    const entries: Array<InboxEntry.InboxEntry> = []
    for (const [index, row] of rows.entries()) {
      if (integer(row, "seq") !== seq + index) break
      entries.push(yield* Effect.fromResult(entryOf(session, row)))
    }
    if (entries.length === due) return entries
    yield* gone
    return yield* damagedInbox(session.id, `record ${seq + entries.length} of its inbox is missing`)
  })

/** Puts the records of an export in, in their order. */
export interface Restoring {
  readonly add: (entry: InboxEntry.InboxEntry) => Effect.Effect<void, SqlError | StoreError>
  readonly figures: () => Session["inbox"]
}

/** `claimed` are the receipts that the log of the session claims: they do not wait. */
export const restoring = (
  sql: SqlClient,
  { id, number }: Pick<Session, "id" | "number">,
  claimed: ReadonlySet<InboxEntry.ReceiptId>
): Restoring => {
  const places = new Map<InboxEntry.ReceiptId, number>()
  const keys = new Set<string>()
  const waits = new Set<InboxEntry.ReceiptId>()
  let records = 0

  const faultOf = (entry: InboxEntry.InboxEntry): string | undefined => {
    if (entry.seq !== records) return `its seq is ${entry.seq}; ${records} was due`
    if (entry.type !== "received") return undefined
    if (places.has(entry.id)) return "its receipt is there already"
    return entry.key !== undefined && keys.has(entry.key) ? "its idempotency key is there already" : undefined
  }

  const add: Restoring["add"] = (entry) =>
    Effect.gen(function*() {
      const fault = faultOf(entry)
      if (fault !== undefined) return yield* failed("SESSION_DAMAGED", `record ${entry.seq} of the inbox of session ${id}: ${fault}`)
      records++
      let insertion: Insertion = { place: entry.seq, state: states.none }
      switch (entry.type) {
        case "received": {
          const place = (entry.retry_of === undefined ? undefined : places.get(entry.retry_of)) ?? entry.seq
          insertion = { place, state: claimed.has(entry.id) ? states.claimed : states.waiting }
          places.set(entry.id, place)
          if (entry.key !== undefined) keys.add(entry.key)
          if (!claimed.has(entry.id)) waits.add(entry.id)
          break
        }
        case "discarded":
          for (const receipt of entry.ids) {
            if (!waits.delete(receipt)) continue
            yield* sql`update inbox set state = ${states.discarded} where session = ${number} and receipt = ${digest(receipt)}`
          }
          break
        case "discard_requested":
          for (const receipt of entry.ids) {
            if (!waits.has(receipt)) continue
            yield* sql`update inbox set requested = coalesce(requested, ${entry.seq}), requested_by = coalesce(requested_by, ${quoted(entry.by)})
              where session = ${number} and receipt = ${digest(receipt)}`
          }
      }
      yield* insert(sql, number, entry, insertion)
    })

  return { add, figures: () => ({ records, pending: waits.size }) }
}
