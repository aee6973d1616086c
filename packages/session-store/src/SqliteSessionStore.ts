/**
 * Sessions in one SQLite file, through `node:sqlite`: the default. Any number of
 * processes of one machine may use the file at the same time.
 *
 * The file is in WAL mode. What is to be on disk is synced (`synchronous=FULL`) before
 * it is acknowledged; other commits are in the hands of the operating system and
 * survive the process, not the machine.
 */
import { SessionStore } from "@turnpike/kernel"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import * as fs from "node:fs"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { pathToFileURL } from "node:url"
import { integer, oneOf, type Row, text } from "./internal/columns.ts"
import * as NodeSqlite from "./internal/nodeSqlite.ts"
import * as Schema from "./internal/schema.ts"
import { sqliteFailure, VanishedFile } from "./internal/sqliteFailure.ts"
import { failed, type StoreError } from "./internal/storeFailure.ts"
import { toldBy } from "./internal/told.ts"
import type { SqlDatabase, TransactionOptions } from "./SqlDatabase.ts"
import * as SqlSessionStore from "./SqlSessionStore.ts"

/** The name of the file in a directory. */
export const fileName = "sessions.sqlite"

export type Options = SqlSessionStore.Options & ({ readonly file: string } | { readonly directory: string })

/** How long SQLite waits for another process that writes, in a thread of its own: a second, in milliseconds. */
const blockingMillis = 1_000

/** Ten seconds in all. In this thread SQLite waits for nobody; it is tried again with the event loop free in between. */
const attempts: NodeSqlite.Attempts = { reading: 1_000, writing: 10 }

const pragmasOf = (busyMillis: number): string => `PRAGMA busy_timeout=${busyMillis}; PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF`

/** How often one looks for what other processes wrote: every 25 ms, which costs microseconds. */
const pollMillis = 25

/** Says in the header of the file whose it is: `Tpss`, for `sqlite3` and `file`. */
const applicationId = 0x54707373

const foreign = (file: string, what: string): StoreError =>
  failed("STORE_FAILED", `${file} is no store of sessions: ${what}`, {
    retryable: false,
    remedy: "Name another file or directory for the sessions, or move this one away. It was not touched.",
    data: { place: file }
  })

const ofAnother = (file: string): StoreError => foreign(file, "it is a SQLite database of another program")

const unusable = (file: string, cause: unknown): StoreError =>
  failed("STORE_FAILED", `the sessions in ${file} cannot be opened: ${cause instanceof Error ? cause.message : String(cause)}`, {
    remedy: "Check that the directory is there and may be written to, or name another one.",
    data: { place: file }
  })

/** Makes an empty file where there is none, that nobody but its owner can read; answers how many bytes there are. */
const makeFile = (file: string): number => {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  try {
    // It is new, so that nobody has it open yet.
    fs.closeSync(fs.openSync(file, "wx", 0o600))
    return 0
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause
    fs.accessSync(file, fs.constants.R_OK | fs.constants.W_OK)
    return fs.statSync(file).size
  }
}

/** What SQLite begins a file with, in bytes. */
const headerLength = 100

/**
 * Whose file it is, by that file alone: nothing is locked, made beside it or changed.
 * Throws `corrupt` also where a crash left a part of it in its WAL or journal.
 */
const ownerOf = (file: string): unknown => {
  const url = pathToFileURL(file)
  url.search = "?immutable=1"
  const database = new DatabaseSync(url, { readOnly: true })
  try {
    return database.prepare("PRAGMA application_id").get()?.["application_id"]
  } finally {
    database.close()
  }
}

/**
 * Looks at a file before it is opened to be used, which would change one that is not
 * ours. SQLite looks, and nothing else may: whoever closes a descriptor of a file lets
 * go of all locks that the process has on it, and other connections of this process
 * would go on without theirs (https://sqlite.org/howtocorrupt.html, section 2.2).
 */
const prepareFile = (file: string): Effect.Effect<void, StoreError> =>
  Effect.gen(function*() {
    const noDatabase = foreign(file, "it is not a SQLite database")
    const length = yield* Effect.try({ try: () => makeFile(file), catch: (cause) => unusable(file, cause) })
    if (length === 0) return
    if (length < headerLength) return yield* noDatabase
    const owner = yield* Effect.result(Effect.try({ try: () => ownerOf(file), catch: (cause) => ({ cause, code: NodeSqlite.codeOf(cause) }) }))
    if (Result.isSuccess(owner)) return owner.success === applicationId ? undefined : yield* ofAnother(file)
    const { cause, code } = owner.failure
    if (code === NodeSqlite.codes.notADatabase) return yield* noDatabase
    // With what lies beside the file SQLite may make a whole of it. Whose it is then, is looked at before tables are made.
    if (code !== NodeSqlite.codes.corrupt) return yield* unusable(file, cause)
  })

/** A file as it lies on the disk: its name may come to mean another one. */
type Identity = `${bigint}:${bigint}` | undefined

const identityOf = (file: string): Identity => {
  const stats = fs.statSync(file, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`
}

/** Makes the tables where there are none, or not all of this version. */
const prepareTables = (file: string, run: NodeSqlite.Run): Effect.Effect<void, SqlError | StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const { client: sql, transaction } = yield* NodeSqlite.make(run, run, { ...attempts, writing: attempts.reading })
    const tables = sql<Row>`select name from sqlite_schema where name = 'turnpike_store'`
    if ((yield* tables).length > 0 && integer(yield* oneOf(sql`select version from turnpike_store`), "version") === Schema.version) return
    const isNew = Effect.gen(function*() {
      if ((yield* tables).length > 0) return false
      if (integer(yield* oneOf(sql`select count(*) as tables from sqlite_schema`), "tables") > 0) return yield* ofAnother(file)
      // In the same commit as the tables, and before the WAL, so that the file itself always has it.
      yield* sql.unsafe(`PRAGMA application_id=${applicationId}`).unprepared
      return true
    })
    yield* Schema.migrate({ sql, transaction, place: file }, isNew)
  })

/** Opens a database. The scope's end closes it. */
const databaseOf = (file: string): Effect.Effect<SqlDatabase, SqlError | StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    yield* prepareFile(file)
    // Closed last, so that what is left in the WAL is written into the file where it was written.
    const writer = yield* NodeSqlite.forWriting({ file, pragmas: pragmasOf(blockingMillis), pragmasHere: pragmasOf(0) })
    const reader = yield* NodeSqlite.inThisThread({ file, pragmas: pragmasOf(0) })
    yield* prepareTables(file, reader)
    const { client: sql, transaction, write } = yield* NodeSqlite.make(reader, writer, attempts)
    const mode = yield* NodeSqlite.whileBusy(attempts.reading)(oneOf(sql`pragma journal_mode=wal`))
    if (text(mode, "journal_mode") !== "wal") return yield* unusable(file, new Error("its file system cannot share memory between processes, as SQLite's WAL mode needs"))

    const ownFile = identityOf(file)
    let ownLog: Identity

    /** Fails where the file that is written is not the one that others open. */
    const ifThere = NodeSqlite.attempt("write", () => {
      const log = identityOf(`${file}-wal`)
      ownLog ??= log
      if (identityOf(file) !== ownFile || log !== ownLog) throw new VanishedFile(file)
    })

    const kept = <A, E, R>(commit: Effect.Effect<A, E, R>, { sync }: TransactionOptions): Effect.Effect<A, E | SqlError, R> => {
      const committed = Effect.andThen(ifThere, commit)
      // Afterwards as well: what was committed into a file that went meanwhile is not kept.
      return sync ? Effect.tap(committed, ifThere) : committed
    }

    let seenVersion: number | undefined
    return {
      sql,
      place: file,
      transaction: (work, options) => kept(transaction(work, options), options),
      write: (statements, options) => kept(write(statements, options), options),
      now: Effect.map(Clock.currentTimeMillis, Math.round),
      mayHaveChanged: Effect.map(oneOf(sql`pragma data_version`), (row) => {
        const version = integer(row, "data_version")
        const isChanged = version !== seenVersion
        seenVersion = version
        return isChanged
      }),
      pollMillis,
      failureOf: (error) => sqliteFailure(file, error),
      isInDoubt: () => false
    }
  })

/** Opens the store in a file, or in the file {@link fileName} of a directory; both are made where they are missing. */
export const make = (options: Options): Effect.Effect<SessionStore.Service, StoreError, Scope.Scope> =>
  Effect.suspend(() => {
    const file = path.resolve("file" in options ? options.file : path.join(options.directory, fileName))
    return databaseOf(file).pipe(
      toldBy({ place: file, failureOf: (error) => sqliteFailure(file, error) }),
      Effect.flatMap((database) => SqlSessionStore.make(database, options))
    )
  })

/**
 * The store as a layer. Fails with `STORE_FAILED` where the file cannot be used, is
 * damaged or another program's, with `STORE_FULL`, and with `FORMAT_UNSUPPORTED` where
 * a later version wrote it; the file is untouched then.
 */
export const layer = (options: Options): Layer.Layer<SessionStore.SessionStore, StoreError> =>
  Layer.effect(SessionStore.SessionStore, make(options))

