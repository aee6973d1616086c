/**
 * Sessions in a SQL database: one store, whichever database it is.
 *
 * Everything that decides is decided in the transaction that writes: who holds a
 * session, which `seq` is due, which receipts wait. Events stand in rows of one
 * append each, packed, with a checksum. Readers need no transaction, since a log
 * only grows.
 */
import type { InboxEntry, Scalars, SessionEvent, SessionHeader } from "@turnpike/contract"
import { LogState, SessionStore } from "@turnpike/kernel"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import * as Changes from "./internal/changes.ts"
import { integer, type Row } from "./internal/columns.ts"
import * as Inbox from "./internal/inboxRows.ts"
import * as Leases from "./internal/leases.ts"
import * as Log from "./internal/logRows.ts"
import * as Restore from "./internal/restore.ts"
import * as Sessions from "./internal/sessionRows.ts"
import { busy, exists, failed, type StoreError, unknown } from "./internal/storeFailure.ts"
import { toldBy } from "./internal/told.ts"
import * as Writer from "./internal/writer.ts"
import type { SqlDatabase } from "./SqlDatabase.ts"

export interface Options {
  /**
   * How long a session stays with a process that gives no sign of life, such as
   * one that is frozen or on another machine: 30 seconds. One that is certainly dead,
   * on this machine, keeps nothing.
   */
  readonly lease?: Duration.Input
}

const defaultLease = Duration.seconds(30)
const minLeaseMillis = 50
const maxLeaseMillis = 86_400_000

/** Time as records have it: no test's clock makes it negative. */
const recordTime = Effect.map(Clock.currentTimeMillis, (millis) => Math.max(0, Math.round(millis)))

/** Answers a store over a database whose tables are there, and ends its leases with the scope. */
export const make = (database: SqlDatabase, options: Options = {}): Effect.Effect<SessionStore.Service, StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const { now, sql, transaction } = database
    const lease = Duration.fromInputUnsafe(options.lease ?? defaultLease)
    if (!(Duration.toMillis(lease) >= minLeaseMillis && Duration.toMillis(lease) <= maxLeaseMillis)) {
      return yield* failed("STORE_FAILED", `a lease of ${Duration.format(lease)} is of no use: it is renewed three times in its length`, {
        retryable: false,
        remedy: "Give a lease between 50 milliseconds and a day."
      })
    }
    const leases = yield* Leases.make(database, lease)
    const changes = yield* Changes.make(database)

    const told = toldBy(database)

    const toldStream = <A, R>(stream: Stream.Stream<A, SqlError | StoreError, R>): Stream.Stream<A, StoreError, R> =>
      stream.pipe(
        Stream.catchCause((cause) => Stream.fromEffect(told(Effect.failCause(cause))))
      )

    /** A transaction that is on disk when it is over, in the words of a store. */
    const writing = <A, R>(work: Effect.Effect<A, SqlError | StoreError, R>) => told(transaction(work, { sync: true }))

    const find = (id: Scalars.SessionId) => Sessions.find(sql, id)
    const locked = (id: Scalars.SessionId) => Sessions.find(sql, id, { lock: true })

    const lengthsOf = ({ inbox, log }: Sessions.Session): Changes.Lengths => ({ log: log.next, inbox: inbox.records })

    /** How long a session is now; `undefined` where it is gone, also where another one has its id. */
    const lengths = (number: number): Effect.Effect<Changes.Lengths | undefined, SqlError> =>
      Effect.map(sql<Row>`select next_seq, inbox_seq from sessions where number = ${number} and id is not null`, ([row]) =>
        row === undefined ? undefined : { log: integer(row, "next_seq"), inbox: integer(row, "inbox_seq") })

    const ifThere = ({ id, number }: Sessions.Session): Effect.Effect<Changes.Lengths, SqlError | StoreError> =>
      Effect.flatMap(lengths(number), (found) => found === undefined ? Effect.fail(unknown(id)) : Effect.succeed(found))

    const readTo = (session: Sessions.Session, after: number, until: number) =>
      Log.read(sql, session, after, until, Effect.asVoid(ifThere(session)))

    const read = (id: Scalars.SessionId, after: number) =>
      toldStream(Stream.unwrap(Effect.map(find(id), (session) => readTo(session, after, session.log.next))))

    const follow = (id: Scalars.SessionId, after: number) =>
      toldStream(Stream.unwrap(Effect.map(find(id), (session) =>
        Stream.unfold(Math.max(-1, after), (last) =>
          Effect.gen(function*() {
            yield* changes.wait(session.number, "log", last + 1, lengths(session.number))
            const { log } = yield* ifThere(session)
            return [readTo(session, last, log), Math.max(last, log - 1)] as const
          })).pipe(Stream.flatten()))))

    const inbox = (id: Scalars.SessionId) =>
      toldStream(Stream.unwrap(Effect.map(find(id), (session) =>
        Stream.unfold(0, (seq) =>
          seq >= session.inbox.records
            ? Effect.undefined
            : Effect.map(Inbox.page(sql, session, seq, Effect.asVoid(ifThere(session))), (entries) => [entries, seq + entries.length] as const)
        ).pipe(Stream.flattenIterable))))

    const refuseHeld = (session: Sessions.Session, time: number): Effect.Effect<void, StoreError> =>
      session.lease !== undefined && leases.runs(session, time) ? Effect.fail(busy(session.id, session.lease.holder)) : Effect.void

    /** What the whole log amounts to; `from` is what was read already. */
    const folded = (session: Sessions.Session, from: LogState.LogState): Effect.Effect<LogState.LogState, SqlError | StoreError> =>
      Effect.gen(function*() {
        let state = from
        yield* Stream.runForEachArray(readTo(session, from.next - 1, session.log.next), (events) => {
          const next = LogState.all(state, events)
          if (Result.isFailure(next)) {
            return Effect.fail(failed("SESSION_DAMAGED", `event ${next.failure.seq} of session ${session.id} breaks a rule of its log: ${next.failure.message}`))
          }
          state = next.success
          return Effect.void
        })
        return state
      })

    const open = (id: Scalars.SessionId, holder: string): Effect.Effect<SessionStore.Writer, StoreError, Scope.Scope> =>
      Effect.gen(function*() {
        const seen = yield* find(id)
        yield* refuseHeld(seen, yield* now)
        const header = yield* Effect.fromResult(Sessions.headerOf(seen))
        // A long log takes its time, and others shall write meanwhile: it is read before the transaction.
        const before = yield* folded(seen, LogState.empty())
        let held: number | undefined
        const take = transaction(
          Effect.gen(function*() {
            const session = yield* locked(id)
            const since = yield* now
            yield* refuseHeld(session, since)
            if (session.number !== seen.number) return yield* unknown(id)
            const state = yield* folded(session, before)
            yield* leases.begin
            const one = yield* Writer.take(database, { session, state, header, holder, since, owner: leases.owner, time: yield* recordTime })
            // Before the commit, so that no other fiber finds a lease of this store that it does not seem to hold.
            leases.hold(held = session.number)
            return one
          }),
          { sync: true }
        ).pipe(Effect.onError(() => Effect.sync(() => held === undefined ? undefined : leases.forget(held))))
        const taken = yield* Effect.acquireRelease(take, (one) =>
          Effect.suspend(() => {
            one.isReleased = true
            return leases.release(one.session.number, one.session.log.generation)
          }))
        changes.tell(taken.session.number, lengthsOf(taken.session))
        return Writer.make(database, taken, { told, tell: changes.tell, time: recordTime })
      }).pipe(told)

    const create = (header: SessionHeader.SessionHeader, seed: ReadonlyArray<SessionEvent.SessionEvent>) =>
      Effect.gen(function*() {
        const { id, parent } = header
        if ((yield* sql`select number from sessions where id = ${id}`).length > 0) return yield* exists(id)
        const due = parent?.events ?? 0
        const state = LogState.all(LogState.empty(), seed)
        if (Result.isFailure(state)) {
          return yield* failed("LOG_RULE", `event ${state.failure.seq} of session ${id} breaks a rule of its log: ${state.failure.message}`)
        }
        if (seed.length !== due) {
          return yield* failed("LOG_RULE", `session ${id} is to begin with ${due} events by its header, and with ${seed.length} that were given`)
        }
        const { open: turn } = state.success
        if (turn !== undefined) {
          return yield* failed("LOG_RULE", `session ${id} is to begin with events whose last turn, ${turn.number}, is open`)
        }
        return yield* seed.length === 0
          ? Restore.putEmpty(database, header)
          : Restore.put(database, leases, header, Stream.fromIterable(seed), Stream.empty)
      })

    const restore: SessionStore.Service["restore"] = (header, events, entries) =>
      told(Effect.gen(function*() {
        if ((yield* sql`select number from sessions where id = ${header.id}`).length > 0) return yield* exists(header.id)
        yield* Restore.put(database, leases, header, events, entries)
      }))

    const receive = (id: Scalars.SessionId, message: SessionStore.Message) =>
      Effect.gen(function*() {
        const time = yield* recordTime
        const { received, session } = yield* writing(
          Effect.flatMap(locked(id), (found) => Inbox.receive(sql, found, message, time))
        )
        if (received.isNew) changes.tell(session.number, lengthsOf(session))
        return received
      })

    const requestDiscard = (id: Scalars.SessionId, ids: ReadonlyArray<InboxEntry.ReceiptId>, by: string) =>
      Effect.gen(function*() {
        const time = yield* recordTime
        const session = yield* writing(
          Effect.flatMap(locked(id), (found) => Inbox.requestDiscard(sql, found, ids, { by, time }))
        )
        changes.tell(session.number, lengthsOf(session))
      })

    const remove = (id: Scalars.SessionId) =>
      Effect.gen(function*() {
        const number = yield* writing(
          Effect.gen(function*() {
            // By its number, so that one that is damaged can be deleted, too.
            const [row] = yield* sql<Row>`select number from sessions where id = ${id}`
            if (row === undefined) return yield* unknown(id)
            const found = yield* Effect.result(locked(id))
            if (Result.isSuccess(found)) yield* refuseHeld(found.success, yield* now)
            const session = integer(row, "number")
            yield* sql`delete from batches where session = ${session}`
            yield* sql`delete from inbox where session = ${session}`
            yield* sql`delete from sessions where number = ${session}`
            return session
          })
        )
        changes.tell(number, undefined)
      })

    /** All sessions by number, the last changed first, then their rows, some at a time. */
    const list = toldStream(Stream.unwrap(Effect.map(
      sql<Row>`select number from sessions where id is not null order by updated desc, number desc`,
      (rows) => listed(rows.map((row) => integer(row, "number")))
    )))

    /** What is among these. A text of its own for each number of them would be compiled each time. */
    const among = (numbers: ReadonlyArray<number>) =>
      sql.onDialectOrElse({
        pg: () => sql.in("number", numbers),
        orElse: () => sql`number in (select value from json_each(${JSON.stringify(numbers)}))`
      })

    /** Those that cannot be read are left out until the others are told; then the first of them is the failure. */
    const listed = (numbers: ReadonlyArray<number>) =>
      Stream.suspend(() => {
        let unreadable: StoreError | undefined
        return Stream.unfold(0, (at: number) =>
          Effect.gen(function*() {
            if (at >= numbers.length) return unreadable === undefined ? undefined : yield* unreadable
            const asked = numbers.slice(at, at + listedAtOnce)
            const rows = yield* sql<Row>`select ${sql.literal(Sessions.columns)}
              from sessions s left join owners o on o.id = s.owner where s.id is not null and ${among(asked)}`
            const { summaries, unreadable: first } = summariesOf(asked, rows, yield* now)
            unreadable ??= first
            return [summaries, at + asked.length] as const
          })).pipe(Stream.flattenIterable)
      })

    /** In the order that was asked for, and why the first of those that cannot be read cannot. One that was deleted meanwhile is not listed. */
    const summariesOf = (asked: ReadonlyArray<number>, rows: ReadonlyArray<Row>, time: number) => {
      const found = new Map<number, SessionStore.Summary>()
      let unreadable: StoreError | undefined
      for (const row of rows) {
        const summary = Result.flatMap(Sessions.sessionOf(row), (session) => summaryOf(session, time))
        if (Result.isSuccess(summary)) found.set(integer(row, "number"), summary.success)
        else unreadable ??= summary.failure
      }
      return { summaries: asked.map((number) => found.get(number)).filter((summary) => summary !== undefined), unreadable }
    }

    const summaryOf = (session: Sessions.Session, time: number): Result.Result<SessionStore.Summary, StoreError> =>
      Result.map(Sessions.listedHeaderOf(session), (header) => ({
        header,
        events: session.log.next,
        turns: session.log.turns,
        updated: session.log.updated,
        pending: session.inbox.pending,
        holder: leases.runs(session, time) ? session.lease?.holder : undefined
      }))

    return SessionStore.strict({
      create: (header, seed = []) => told(create(header, seed)),
      header: (id) => told(Effect.flatMap(find(id), (session) => Effect.fromResult(Sessions.headerOf(session)))),
      open,
      read,
      follow,
      receive,
      requestDiscard,
      pending: (id) => told(Inbox.pending(sql, id)),
      inboxChanged: (id, version) =>
        told(Effect.gen(function*() {
          const session = yield* find(id)
          yield* changes.wait(session.number, "inbox", version, lengths(session.number))
          yield* ifThere(session)
        })),
      list,
      inbox,
      restore,
      delete: remove
    })
  })

/** How many sessions a list reads at once. */
const listedAtOnce = 250
