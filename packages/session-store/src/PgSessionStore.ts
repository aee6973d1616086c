/**
 * Sessions in a PostgreSQL database: for more than one machine. The same store as
 * on SQLite, with the server's clock and the server's word for what is on disk.
 *
 * Through `@effect/sql-pg`, a peer dependency that is loaded when the store is
 * opened.
 */
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import { SqlError } from "effect/sql/SqlError"
import { asFailure } from "./internal/brokenRollback.ts"
import { integer, oneOf } from "./internal/columns.ts"
import { isInDoubt, pgFailure } from "./internal/pgFailure.ts"
import * as Schema from "./internal/schema.ts"
import { failed, type StoreError } from "./internal/storeFailure.ts"
import { toldBy } from "./internal/told.ts"
import type { SqlDatabase } from "./SqlDatabase.ts"
import * as SqlSessionStore from "./SqlSessionStore.ts"

export interface Options extends SqlSessionStore.Options {
  /** A `postgres:` URL. The fields beside it win over what it says. */
  readonly url?: Redacted.Redacted
  /** A host, or the directory of a Unix socket. */
  readonly host?: string
  readonly port?: number
  readonly database?: string
  readonly username?: string
  readonly password?: Redacted.Redacted
  /** The schema that holds the tables: `turnpike`. It is made where it is missing. */
  readonly schema?: string
  /** How many connections are open at most: 10. */
  readonly maxConnections?: number
}

const defaultSchema = "turnpike"

/** How often one looks for what others wrote: every 100 ms, one question for all that wait. */
const pollMillis = 100

/** How often a transaction is tried that others stood in the way of. */
const attempts = 5

/** As large as PostgreSQL lets a value be, which is one event here: 1 GiB. */
const maxMessageBytes = 1024 * 1024 * 1024

/** As a name stands in a statement. */
const quotedName = (name: string): string => `"${name.replaceAll("\"", "\"\"")}"`

/** Where the database is, without what a URL may hold besides. */
const placeOf = ({ database, host, port, url }: Options): string => {
  const parsed = url === undefined ? null : URL.parse(Redacted.value(url))
  const server = host ?? (parsed === null || parsed.hostname === "" ? "localhost" : decodeURIComponent(parsed.hostname))
  const name = database ?? (parsed === null ? "" : decodeURIComponent(parsed.pathname.slice(1)))
  return `PostgreSQL at ${server}:${port ?? (parsed === null || parsed.port === "" ? 5432 : parsed.port)}/${name}`
}

/** What every connection is told, whatever the server's own settings are. */
const settings = (schema: string): Readonly<Record<string, string>> => ({
  search_path: quotedName(schema),
  // What is acknowledged is on disk.
  synchronous_commit: "on",
  // Each statement sees what was committed before it: what was decided by others while a row was waited for.
  default_transaction_isolation: "read committed",
  // A process that is frozen in the middle of a transaction holds up the others no longer than this.
  lock_timeout: "10000",
  idle_in_transaction_session_timeout: "10000"
})

const isMissing = (cause: unknown): boolean => (cause as { readonly code?: unknown } | null)?.code === "ERR_MODULE_NOT_FOUND"

const loaded = Effect.tryPromise({
  try: () => import("@effect/sql-pg/PgClient"),
  catch: (cause) =>
    failed("STORE_FAILED", `PostgreSQL cannot be spoken to: @effect/sql-pg ${isMissing(cause) ? "is not installed" : `cannot be loaded: ${String(cause)}`}`, {
      retryable: false,
      remedy: "Install @effect/sql-pg beside @turnpike/session-store."
    })
})

const clientOf = ({ schema = defaultSchema, lease: _, maxConnections, ...options }: Options): Effect.Effect<SqlClient.SqlClient, SqlError | StoreError, Scope.Scope> =>
  Effect.flatMap(loaded, (PgClient) =>
    PgClient.make({
      ...options,
      applicationName: "turnpike",
      maxConnections: maxConnections ?? 10,
      maxMessageSize: maxMessageBytes,
      startupParameters: settings(schema)
    })).pipe(Effect.provide(Reactivity.layer))

const isOvertaken = (error: unknown): boolean =>
  error instanceof SqlError && (error.reason._tag === "DeadlockError" || error.reason._tag === "SerializationError")

/** Any number that others of this database do not use for their locks. */
const migrationLock = 7_309_465_013_221

const databaseOf = (options: Options): Effect.Effect<SqlDatabase, SqlError | StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const sql = yield* clientOf(options)
    const schema = options.schema ?? defaultSchema
    const place = placeOf(options)

    // Every commit is synced: the server does it for many at once.
    const transaction: SqlDatabase["transaction"] = (work) =>
      Effect.retry(asFailure(sql.withTransaction(work)), { while: isOvertaken, times: attempts })

    const database: SqlDatabase = {
      sql,
      place,
      transaction,
      write: ([first, ...others], options) =>
        transaction(
          Effect.tap(first, (rows) => rows.length === 0 ? Effect.void : Effect.forEach(others, (statement) => statement, { discard: true })),
          options
        ),
      now: Effect.map(oneOf(sql`select (extract(epoch from clock_timestamp()) * 1000)::bigint as now`), (row) => integer(row, "now")),
      mayHaveChanged: Effect.succeed(true),
      pollMillis,
      failureOf: (error) => pgFailure(place, error),
      isInDoubt
    }

    const isNew = Effect.gen(function*() {
      yield* sql`select pg_advisory_xact_lock(${migrationLock})`
      yield* (yield* sql`select 1 from pg_namespace where nspname = ${schema}`).length === 0
        ? sql.unsafe(`create schema ${quotedName(schema)}`).unprepared
        : Effect.void
      const tables = yield* sql<{ readonly tablename: string }>`select tablename from pg_tables where schemaname = ${schema}`
      if (tables.some(({ tablename }) => tablename === "turnpike_store")) return false
      if (tables.length === 0) return true
      return yield* failed("STORE_FAILED", `the schema ${schema} of ${place} is no store of sessions: it has tables of another program`, {
        retryable: false,
        remedy: "Name another schema for the sessions. This one was not touched.",
        data: { place, schema }
      })
    })

    yield* Schema.migrate(database, isNew)
    return database
  })

/** Opens the store in a database, whose tables are made where they are missing. */
export const make = (options: Options): Effect.Effect<SessionStore.Service, StoreError, Scope.Scope> =>
  Effect.suspend(() => {
    const place = placeOf(options)
    return databaseOf(options).pipe(
      toldBy({ place, failureOf: (error) => pgFailure(place, error) }),
      Effect.flatMap((database) => SqlSessionStore.make(database, options))
    )
  })

/**
 * The store as a layer. Fails with `STORE_FAILED` where the server cannot be reached or
 * refuses, or the schema is another program's, and with `FORMAT_UNSUPPORTED` where a later
 * version made the tables; nothing is changed then.
 */
export const layer = (options: Options): Layer.Layer<SessionStore.SessionStore, StoreError> =>
  Layer.effect(SessionStore.SessionStore, make(options))
