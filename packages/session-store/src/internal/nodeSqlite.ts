/**
 * A client of `effect/sql` over `node:sqlite`: reads in this thread, transactions
 * on a connection of their own, which may be in another one. The same in Node.js and
 * in Deno.
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
import { DatabaseSync, type SQLInputValue } from "node:sqlite"
import { asFailure } from "./brokenRollback.ts"
import * as Engine from "./sqliteEngine.ts"
import * as Thread from "./sqliteThread.ts"

/** What SQLite answers, without the details of the second byte: https://sqlite.org/rescode.html. */
export const codes = { busy: 5, locked: 6, readOnly: 8, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const

const uniqueViolations: ReadonlyArray<number> = [1555, 2067]

/** The extended code that SQLite gave; `undefined` where the failure is none of SQLite's. */
export const codeOf = (cause: unknown): number | undefined => {
  const code = (cause as { readonly errcode?: unknown } | null)?.errcode
  return typeof code === "number" ? code : undefined
}

const sqlErrorOf = (cause: unknown, operation: string): SqlError => {
  const message = (cause as { readonly message?: unknown } | null)?.message
  const facts = { cause, message: typeof message === "string" ? message : String(cause), operation }
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

/** How one waits while another connection has the database: so often, with the event loop free in between. */
export const whileBusy = (attempts: number) => <A, E, R>(work: Effect.Effect<A, E | SqlError, R>): Effect.Effect<A, E | SqlError, R> =>
  Effect.retry(work, {
    while: (error) => error instanceof SqlError && error.reason._tag === "LockTimeoutError",
    schedule: Schedule.jittered(Schedule.spaced("10 millis")),
    times: attempts
  })

/** Does something on a connection. */
export type Run = (operation: Engine.Operation) => Effect.Effect<Engine.Rows, SqlError>

/** A connection in this thread, for as long as the scope is open. */
export const inThisThread = (target: Engine.Target): Effect.Effect<Run, SqlError, Scope.Scope> =>
  Effect.map(attempt("open", () => Engine.open(DatabaseSync, target)), (engine): Run => (operation) => attempt(operation.kind, () => engine(operation))).pipe(
    Effect.tap((run) => Effect.addFinalizer(() => closed(run)))
  )

/** A connection in a thread of its own, which begins with what it is asked first and ends with the scope. */
export const inOwnThread = (target: Engine.Target): Effect.Effect<Run, never, Scope.Scope> =>
  Effect.gen(function*() {
    let thread: Thread.Thread | undefined
    const run: Run = (operation) =>
      Effect.callback<Engine.Rows, SqlError>((resume) => {
        thread ??= Thread.begin(target)
        thread.ask(operation, (rows) => resume(Effect.succeed(rows)), (failure) => resume(Effect.fail(sqlErrorOf(failure, operation.kind))))
      })
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        const begun = thread
        return begun === undefined ? Effect.void : Effect.andThen(closed(run), Effect.promise(begun.end))
      })
    )
    return run
  })

const closed = (run: Run): Effect.Effect<void> =>
  Effect.catch(Effect.asVoid(run({ kind: "close" })), (error) => Effect.logWarning(`the file of sessions was not closed: ${error.message}`))

export interface NodeSqlite {
  readonly client: SqlClient.SqlClient
  /** Runs work as one transaction with the write lock from its beginning. */
  readonly transaction: <A, E, R>(work: Effect.Effect<A, E, R>, options: { readonly sync: boolean }) => Effect.Effect<A, E | SqlError, R>
}

const beginOf = (level: Engine.Level): string => `BEGIN ${level}`

const operationOf = (sql: string, params: ReadonlyArray<unknown>): Engine.Operation => {
  switch (sql) {
    case beginOf("FULL"):
      return { kind: "begin", level: "FULL" }
    case beginOf("NORMAL"):
      return { kind: "begin", level: "NORMAL" }
    case "COMMIT":
      return { kind: "commit" }
    case "ROLLBACK":
      return { kind: "rollback" }
    default:
      // What SQLite takes is checked by it: the statements are the store's own.
      return { kind: "rows", sql, params: params as ReadonlyArray<SQLInputValue> }
  }
}

const connectionOf = (run: Run): SqlConnection.Connection => {
  const rows = (sql: string, params: ReadonlyArray<unknown>) => Effect.map(run(operationOf(sql, params)), (found) => found as Array<SqlConnection.Row>)
  const execute: SqlConnection.Connection["execute"] = (sql, params, transform) =>
    transform === undefined ? rows(sql, params) : Effect.map(rows(sql, params), transform)
  const values = (sql: string, params: ReadonlyArray<unknown>) => Effect.map(rows(sql, params), (found) => found.map((row) => Object.values(row)))
  return {
    execute,
    executeUnprepared: execute,
    executeRaw: rows,
    executeStream: (sql, params) => Stream.fromIterableEffect(rows(sql, params)),
    executeValues: values,
    executeValuesUnprepared: values
  }
}

/** How often it is tried while another connection has the database. */
export interface Attempts {
  readonly reading: number
  readonly writing: number
}

export const make = (reader: Run, writer: Run, attempts: Attempts): Effect.Effect<NodeSqlite, never, Scope.Scope> =>
  Effect.gen(function*() {
    const reading = connectionOf((operation) => whileBusy(attempts.reading)(reader(operation)))
    const writing = SqlClient.makeSqliteAcquirers({ connection: Effect.succeed(connectionOf(writer)), semaphore: yield* Semaphore.make(1) })
    const client = yield* SqlClient.make({
      acquirer: Effect.succeed(reading),
      borrower: (work) => work(reading),
      transactionAcquirer: writing.transactionAcquirer,
      onCommitFailure: writing.onCommitFailure,
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
          whileBusy(attempts.writing)
        )
    }
  })
