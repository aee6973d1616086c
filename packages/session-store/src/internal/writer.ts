/** The one that writes a session: how it gets it, what it appends, and how it lets go. */
import type { InboxEntry, SessionHeader } from "@turnpike/contract"
import { LogState, type SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { SqlDatabase } from "../SqlDatabase.ts"
import * as Batch from "./batch.ts"
import type { Changes } from "./changes.ts"
import { integer, type Row } from "./columns.ts"
import * as Inbox from "./inboxRows.ts"
import * as Log from "./logRows.ts"
import * as Sessions from "./sessionRows.ts"
import { busy, damaged, failed, released, type StoreError } from "./storeFailure.ts"

export interface Taken {
  /** As it is in the database. */
  readonly session: Sessions.Session
  readonly owner: string
  readonly header: SessionHeader.SessionHeader
  readonly recovery: SessionStore.Recovery
  /** Closed with the scope of the writer. */
  isReleased: boolean
}

interface Taking {
  /** Its row is locked. */
  readonly session: Sessions.Session
  /** What the whole log amounts to. */
  readonly state: LogState.LogState
  readonly header: SessionHeader.SessionHeader
  readonly holder: string
  readonly owner: string
  readonly since: number
  /** That of the receipts that wait again. */
  readonly time: number
}

const writeLog = (database: SqlDatabase, number: number, before: Sessions.LogFigures, after: Sessions.LogFigures, owner: string) =>
  database.sql<Row>`update sessions
    set next_seq = ${after.next}, turns = ${after.turns}, updated = ${after.updated}, log_sum = ${Sessions.logSum(number, after)}
    where number = ${number} and generation = ${before.generation} and owner = ${owner} and next_seq = ${before.next}
    returning inbox_seq, pending, inbox_sum`

/** Takes a session that nobody holds, and puts in order what a crash left. Within a transaction. */
export const take = (
  database: SqlDatabase,
  { header, holder, owner, session, since, state, time }: Taking
): Effect.Effect<Taken, SqlError | StoreError> =>
  Effect.gen(function*() {
    const { sql } = database
    const { id, number } = session
    if (state.lastTurn !== session.log.turns) return yield* damaged(id, `its log has ${state.lastTurn} turns, and ${session.log.turns} were kept`)
    const closed = LogState.closers(state)
    const requeued: Array<InboxEntry.Receipt> = []
    let current = session
    for (const receipt of LogState.unspent(state)) {
      const lost = yield* Inbox.receiptWithId(sql, current, receipt)
      // What a restored log claimed may be of an inbox that was not restored with it, or of one in which it waits again already.
      if (lost === undefined || (yield* Inbox.isRepeated(sql, current, receipt))) continue
      const { kind, source, text } = lost
      const again = yield* Inbox.receive(sql, current, { kind, source, text, retry_of: receipt }, time)
      requeued.push(again.received.receipt)
      current = again.session
    }
    const generation = session.log.generation + 1
    const log = { ...Log.grown(session.log, closed), generation }
    yield* Log.insert(sql, number, yield* Batch.packed(number, generation, closed))
    yield* sql`update sessions set generation = ${generation}, next_seq = ${log.next}, updated = ${log.updated}, log_sum = ${Sessions.logSum(number, log)},
      owner = ${owner}, holder = ${Sessions.quoted(holder)}, since = ${since} where number = ${number}`
    return { session: { ...current, log }, owner, header, recovery: { closed, cutBytes: 0, requeued }, isReleased: false }
  })

interface Surroundings {
  readonly told: <A, R>(work: Effect.Effect<A, SqlError | StoreError, R>) => Effect.Effect<A, StoreError, R>
  readonly tell: Changes["tell"]
  readonly time: Effect.Effect<number>
}

export const make = (database: SqlDatabase, taken: Taken, { tell, time, told }: Surroundings): SessionStore.Writer => {
  const { sql, transaction } = database
  const { header, owner, recovery, session: { id, log: { generation }, number } } = taken
  /** The log as it is after the last append that was acknowledged. */
  let log: Sessions.LogFigures = taken.session.log
  /** What an append would have made of the log whose commit was not heard of. */
  let doubt: Sessions.LogFigures | undefined

  /** Why a session is not this writer's any more. */
  const lost: Effect.Effect<never, SqlError | StoreError> = Effect.flatMap(Sessions.find(sql, id), ({ lease, number: found }) =>
    Effect.fail(lease === undefined || found !== number || lease.owner === owner ? released(id) : busy(id, lease.holder)))

  const refused = (first: number): Effect.Effect<never, SqlError | StoreError> =>
    Effect.gen(function*() {
      const [row] = yield* sql<Row>`select next_seq from sessions where number = ${number} and generation = ${generation} and owner = ${owner}`
      return yield* row === undefined ? lost : failed("LOG_RULE", `event ${first} of session ${id} is not the next one; ${integer(row, "next_seq")} was due`)
    })

  const ifHeld = <A>(work: Effect.Effect<A, StoreError>): Effect.Effect<A, StoreError> =>
    Effect.suspend(() => taken.isReleased ? Effect.fail(released(id)) : work)

  /**
   * Finds out whether the append was committed whose answer did not come. Where it
   * was, this writer has refused what is in the log, and can write nothing any more.
   */
  const settle = (after: Sessions.LogFigures): Effect.Effect<"there" | "not there", SqlError | StoreError> =>
    transaction(
      Effect.gen(function*() {
        // Waits for a commit that is still under way.
        const { log: found } = yield* Sessions.find(sql, id, { lock: true })
        if (found.generation !== generation) return yield* lost
        return found.next === after.next ? "there" : "not there"
      }),
      { sync: false }
    )

  const stranded = failed(
    "STORE_FAILED",
    `session ${id} was appended to although the append had failed: the connection to ${database.place} broke before the answer came`,
    { remedy: "Open the session again; its log has what was committed." }
  )

  const settled: Effect.Effect<void, SqlError | StoreError> = Effect.suspend(() => {
    if (doubt === undefined) return Effect.void
    return Effect.flatMap(settle(doubt), (found) => {
      if (found === "there") return Effect.fail(stranded)
      doubt = undefined
      return Effect.void
    })
  })

  const committing = (
    after: Sessions.LogFigures,
    batches: ReadonlyArray<Batch.Batch>,
    claimed: ReadonlyArray<InboxEntry.ReceiptId>,
    sync: boolean
  ): Effect.Effect<void, SqlError | StoreError> => {
    const figures = writeLog(database, number, log, after, owner)
    if (claimed.length === 0) {
      return Effect.flatMap(database.write([figures, ...Log.inserting(sql, number, batches)], { sync }), ([row]) =>
        row === undefined ? refused(log.next) : Effect.void)
    }
    return transaction(
      Effect.gen(function*() {
        const [row] = yield* figures
        if (row === undefined) return yield* refused(log.next)
        yield* Log.insert(sql, number, batches)
        const inbox = yield* Effect.fromResult(Sessions.inboxFiguresOf(id, number, row))
        yield* Inbox.claim(sql, { ...taken.session, log: after, inbox }, claimed)
      }),
      { sync }
    )
  }

  const commit = (...[after, batches, claimed, sync]: Parameters<typeof committing>): Effect.Effect<void, SqlError | StoreError> =>
    committing(after, batches, claimed, sync).pipe(
      Effect.catchTag("SqlError", (error) =>
        database.isInDoubt(error)
          ? Effect.flatMap(
            Effect.catchTag(settle(after), "SqlError", () =>
              Effect.sync(() => {
                doubt = after
                return "unknown" as const
              })),
            (found) => found === "there" ? Effect.void : Effect.fail(error)
          )
          : Effect.fail(error))
    )

  const append: SessionStore.Writer["append"] = (events, { sync }) =>
    ifHeld(told(Effect.uninterruptible(Effect.gen(function*() {
      const [first] = events
      if (first === undefined) return
      yield* settled
      const gap = events.findIndex(({ seq }, index) => seq !== log.next + index)
      if (gap >= 0) return yield* gap === 0 ? refused(first.seq) : failed("LOG_RULE", `event ${events[gap]?.seq} of session ${id} is not the next one; ${log.next + gap} was due`)
      const after = Log.grown(log, events)
      const batches = yield* Batch.packed(number, generation, events)
      yield* commit(after, batches, Log.claimedBy(events), sync)
      log = after
      tell(number, { log: after.next })
      // Many sessions that are written to at once leave the event loop free in between.
      yield* Effect.yieldNow
    }))))

  const discard: SessionStore.Writer["discard"] = (ids, cause, by) =>
    ifHeld(told(Effect.gen(function*() {
      const now = yield* time
      const { discarded, session } = yield* Effect.uninterruptible(transaction(
        Effect.gen(function*() {
          const found = yield* Sessions.find(sql, id, { lock: true })
          if (found.number !== number || found.log.generation !== generation || found.lease?.owner !== owner) return yield* lost
          return yield* Inbox.discard(sql, found, ids, { by, cause, time: now })
        }),
        { sync: true }
      ))
      tell(number, { inbox: session.inbox.records })
      return discarded
    })))

  return { header, generation, recovery, append, discard }
}
