/**
 * A client of `effect/sql` over `node:sqlite`: reads in this thread, transactions
 * on a connection of their own, which may be in another one. The same in Node.js and
 * in Deno.
 */
import * as Context from "effect/Context"
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
import type { SqlDatabase, TransactionOptions } from "../SqlDatabase.ts"
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
  Effect.map(attempt("open", () => Engine.open(DatabaseSync, target)), (engine): Run => (operation) => attempt(operation.kind, () => engine.run(operation))).pipe(
    Effect.tap((run) => Effect.addFinalizer(() => closed(run)))
  )

/**
 * For how long a connection for writing keeps this thread before it moves into one of its
 * own: 40 milliseconds, what a thread costs to begin. With 0 it begins in one.
 */
export const KeptMillis = Context.Reference<number>("@turnpike/session-store/KeptMillis", { defaultValue: () => 40 })

const begins = ({ kind }: Engine.Operation): boolean => kind === "begin" || kind === "transaction"

const isBusy = (cause: unknown): boolean => {
  const code = codeOf(cause)
  return code !== undefined && ((code & 0xff) === codes.busy || (code & 0xff) === codes.locked)
}

/** Where a connection for writing is opened, see {@link forWriting}. */
export interface WritingTarget extends Engine.Target {
  /** The pragmas of the connection in this thread, which is to wait for nobody. */
  readonly pragmasHere: string
}

/**
 * A connection for writing. It is opened when it is first asked for something, and
 * begins in this thread. Once it has kept this thread for as long as another one costs
 * to begin, or another process is in its way, it moves into a thread of its own,
 * between two transactions: a process that ends soon begins none, and in one that goes
 * on the event loop is not held up. The scope's end closes it.
 */
export const forWriting = ({ pragmasHere, ...target }: WritingTarget): Effect.Effect<Run, never, Scope.Scope> =>
  Effect.gen(function*() {
    const threadMillis = yield* KeptMillis
    let here: Engine.Engine | undefined
    let thread: Thread.Thread | undefined
    let keptMillis = 0
    let isLeaving = threadMillis <= 0
    let isSuspect = false

    const doHere = (operation: Engine.Operation): Engine.Rows => {
      const since = performance.now()
      try {
        here ??= Engine.open(DatabaseSync, { ...target, pragmas: pragmasHere })
        return here.run(operation)
      } catch (cause) {
        isLeaving ||= isBusy(cause)
        throw cause
      } finally {
        keptMillis += performance.now() - since
        isLeaving ||= keptMillis >= threadMillis
      }
    }

    const leave = (): Thread.Thread => {
      const left = here
      here = undefined
      // Kept for the next time where one of these fails.
      isSuspect ||= left?.isSuspect() === true
      left?.run({ kind: "close" })
      return Thread.begin({ ...target, isSuspect })
    }

    const run: Run = (operation) =>
      Effect.suspend(() => {
        if (thread === undefined && !(isLeaving && begins(operation))) return attempt(operation.kind, () => doHere(operation))
        return Effect.flatMap(attempt("open", () => thread ??= leave()), (begun) =>
          Effect.callback<Engine.Rows, SqlError>((resume) =>
            begun.ask(operation, (rows) => resume(Effect.succeed(rows)), (failure) => resume(Effect.fail(sqlErrorOf(failure, operation.kind))))))
      })
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        const begun = thread
        if (begun !== undefined) return Effect.andThen(closed(run), Effect.promise(begun.end))
        return here === undefined ? Effect.void : closed(run)
      })
    )
    return run
  })

const closed = (run: Run): Effect.Effect<void> =>
  Effect.catch(Effect.asVoid(run({ kind: "close" })), (error) => Effect.logWarning(`the file of sessions was not closed: ${error.message}`))

export interface NodeSqlite {
  readonly client: SqlClient.SqlClient
  /** Runs work as one transaction with the write lock from its beginning. */
  readonly transaction: SqlDatabase["transaction"]
  /** As a database has it: what is written goes to the connection as one. */
  readonly write: SqlDatabase["write"]
}

const levelOf = ({ sync }: TransactionOptions): Engine.Level => sync ? "FULL" : "NORMAL"

const beginOf = (level: Engine.Level): string => `BEGIN ${level}`

/** What SQLite takes is checked by it: the statements are the store's own. */
const statementOf = (sql: string, params: ReadonlyArray<unknown>): Engine.Statement => ({ sql, params: params as ReadonlyArray<SQLInputValue> })

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
      return { kind: "rows", ...statementOf(sql, params) }
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
    const semaphore = yield* Semaphore.make(1)
    const writing = SqlClient.makeSqliteAcquirers({ connection: Effect.succeed(connectionOf(writer)), semaphore })
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
      transaction: (work, options) =>
        client.withTransaction(work).pipe(
          asFailure,
          Effect.provideService(SqlClient.BeginTransaction, beginOf(levelOf(options))),
          whileBusy(attempts.writing)
        ),
      write: <A extends object>(statements: readonly [Statement.Statement<A>, ...ReadonlyArray<Statement.Statement<object>>], options: TransactionOptions) =>
        Effect.suspend(() => {
          const operation: Engine.Operation = {
            kind: "transaction",
            level: levelOf(options),
            statements: statements.map((statement) => statementOf(...statement.compile()))
          }
          // The rows are as the statement names them.
          return Effect.map(Semaphore.withPermits(semaphore, 1)(Effect.uninterruptible(writer(operation))), (rows) => rows as unknown as ReadonlyArray<A>)
        }).pipe(whileBusy(attempts.writing))
    }
  })
