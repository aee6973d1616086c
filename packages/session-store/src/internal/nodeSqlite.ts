/**
 * A client of `effect/sql` over `node:sqlite`: one connection, whose statements are
 * prepared once. The same in Node.js and in Deno.
 *
 * Its calls are synchronous: a statement takes microseconds, a commit that is synced
 * as long as the disk takes.
 */
import * as Effect from "effect/Effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import { ConnectionError, LockTimeoutError, SqlError, UniqueViolation, UnknownError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import * as Stream from "effect/Stream"
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite"
import { asFailure } from "./brokenRollback.ts"

/** What SQLite answers, without the details of the second byte: https://sqlite.org/rescode.html. */
export const codes = { busy: 5, locked: 6, readOnly: 8, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const

const uniqueViolations: ReadonlyArray<number> = [1555, 2067]

/** The extended code that SQLite gave; `undefined` where the failure is none of SQLite's. */
export const codeOf = (cause: unknown): number | undefined => {
  const code = (cause as { readonly errcode?: unknown } | null)?.errcode
  return typeof code === "number" ? code : undefined
}

const messageOf = (cause: unknown): string => cause instanceof Error ? cause.message : String(cause)

const sqlErrorOf = (cause: unknown, operation: string): SqlError => {
  const facts = { cause, message: messageOf(cause), operation }
  const code = codeOf(cause)
  if (code === undefined) return new SqlError({ reason: new UnknownError(facts) })
  if (uniqueViolations.includes(code)) return new SqlError({ reason: new UniqueViolation({ ...facts, constraint: facts.message }) })
  switch (code & 0xff) {
    case codes.busy:
    case codes.locked:
      return new SqlError({ reason: new LockTimeoutError(facts) })
    case codes.cannotOpen:
      return new SqlError({ reason: new ConnectionError(facts) })
    default:
      return new SqlError({ reason: new UnknownError(facts) })
  }
}

export const attempt = <A>(operation: string, work: () => A): Effect.Effect<A, SqlError> =>
  Effect.try({ try: work, catch: (cause) => sqlErrorOf(cause, operation) })

const isBusy = (error: SqlError): boolean => error.reason._tag === "LockTimeoutError"

/** Tries again while another connection has the database, with the event loop free in between, for this long. */
export const whileBusy = (millis: number) => <A, E, R>(work: Effect.Effect<A, E | SqlError, R>): Effect.Effect<A, E | SqlError, R> =>
  Effect.retry(work, {
    while: (error) => error instanceof SqlError && isBusy(error),
    schedule: Schedule.jittered(Schedule.spaced("10 millis")),
    times: Math.ceil(millis / 10)
  })

const noTransaction = /no transaction is active/iu

export interface NodeSqlite {
  readonly client: SqlClient.SqlClient
  /** Runs work as one transaction with the write lock from its beginning. */
  readonly transaction: <A, E, R>(work: Effect.Effect<A, E, R>, options: { readonly sync: boolean }) => Effect.Effect<A, E | SqlError, R>
}

/** How a commit reaches the disk: FULL waits for it, NORMAL leaves it with the operating system until the next that waits. */
type Level = "FULL" | "NORMAL"

const beginOf = (level: Level): string => `BEGIN IMMEDIATE -- ${level}`

/** Makes a client of a database that is open; the scope's end closes it. */
export const make = (db: DatabaseSync, busyMillis: number): Effect.Effect<NodeSqlite, never, Scope.Scope> =>
  Effect.gen(function*() {
    const prepared = new Map<string, StatementSync>()
    let level: Level | undefined
    let isSuspect = false
    yield* Effect.addFinalizer(() => Effect.catch(attempt("close", () => db.close()), (error) => Effect.logWarning("the database was not closed", error)))

    const prepare = (sql: string): StatementSync => {
      const known = prepared.get(sql)
      if (known !== undefined) return known
      const statement = db.prepare(sql)
      prepared.set(sql, statement)
      return statement
    }

    // What SQLite takes is checked by it: the statements are the store's own.
    const rows = (sql: string, params: ReadonlyArray<unknown>) =>
      attempt("execute", () => prepare(sql).all(...params as ReadonlyArray<SQLInputValue>) as Array<SqlConnection.Row>)

    const begin = (wanted: Level) =>
      attempt("begin", () => {
        // Not prepared: a pragma takes effect when it is prepared, and never again.
        if (level !== wanted) db.exec(`PRAGMA synchronous=${wanted}`)
        level = wanted
        if (isSuspect) checkpoint()
        prepare("BEGIN IMMEDIATE").run()
      })

    /**
     * A commit whose sync failed is undone, but the system takes what it could not write for written, and
     * says so no second time: https://wiki.postgresql.org/wiki/Fsync_Errors. So nothing is acknowledged
     * any more until all that stands in the log was written anew, into the file itself.
     */
    const commit = attempt("commit", () => {
      try {
        prepare("COMMIT").run()
      } catch (cause) {
        if (((codeOf(cause) ?? 0) & 0xff) === codes.ioError) isSuspect = true
        throw cause
      }
    })

    const checkpoint = () => {
      const [row] = db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all()
      if (row?.["busy"] !== 0) throw Object.assign(new Error("others read what has to be written anew"), { errcode: codes.busy })
      isSuspect = false
    }

    /** SQLite ends a transaction by itself where the disk is full or fails, which is all that a rollback is for. */
    const rollback = Effect.catch(attempt("rollback", () => {
      prepare("ROLLBACK").run()
    }), (error) => noTransaction.test(error.message) ? Effect.void : Effect.fail(error))

    const control = (sql: string): Effect.Effect<ReadonlyArray<SqlConnection.Row>, SqlError> =>
      sql === beginOf("FULL") || sql === beginOf("NORMAL")
        ? Effect.as(begin(sql === beginOf("FULL") ? "FULL" : "NORMAL"), [])
        : sql === "COMMIT"
        ? Effect.as(commit, [])
        : sql === "ROLLBACK"
        ? Effect.as(rollback, [])
        : rows(sql, [])

    const connection: SqlConnection.Connection = {
      execute: (sql, params, transform) => transform === undefined ? rows(sql, params) : Effect.map(rows(sql, params), transform),
      executeRaw: rows,
      executeStream: (sql, params) => Stream.fromIterableEffect(rows(sql, params)),
      executeValues: (sql, params) => Effect.map(rows(sql, params), (found) => found.map((row) => Object.values(row))),
      executeValuesUnprepared: (sql, params) => Effect.map(rows(sql, params), (found) => found.map((row) => Object.values(row))),
      executeUnprepared: (sql, params) => params.length === 0 ? control(sql) : rows(sql, params)
    }

    const client = yield* SqlClient.make({
      ...SqlClient.makeSqliteAcquirers({ connection: Effect.succeed(connection), semaphore: yield* Semaphore.make(1) }),
      compiler: Statement.makeCompilerSqlite(),
      driver: "node:sqlite",
      spanAttributes: [["db.system.name", "sqlite"]]
    }).pipe(Effect.provide(Reactivity.layer))

    return {
      client,
      transaction: (work, { sync }) =>
        client.withTransaction(work).pipe(
          asFailure,
          Effect.provideService(SqlClient.BeginTransaction, beginOf(sync ? "FULL" : "NORMAL")),
          whileBusy(busyMillis)
        )
    }
  })

