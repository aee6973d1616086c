/**
 * One connection to a SQLite file, as a function of what it is to do. Its statements
 * are prepared once.
 *
 * It is synchronous: reads run in the thread of whoever asks, and take microseconds;
 * what is written waits for the disk, in a thread of its own where there is much of it.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite"

/** How a commit reaches the disk: FULL waits for it, NORMAL leaves it with the operating system until the next that waits. */
export type Level = "FULL" | "NORMAL"

export interface Statement {
  readonly sql: string
  readonly params: ReadonlyArray<SQLInputValue>
}

export type Operation =
  | ({ readonly kind: "rows" } & Statement)
  /** A whole transaction. Where the first statement answers no row, none of them does anything. Answers its rows. */
  | { readonly kind: "transaction"; readonly level: Level; readonly statements: ReadonlyArray<Statement> }
  | { readonly kind: "begin"; readonly level: Level }
  | { readonly kind: "commit" }
  | { readonly kind: "rollback" }
  | { readonly kind: "close" }

export type Rows = ReadonlyArray<{ readonly [column: string]: unknown }>

export interface Engine {
  readonly run: (operation: Operation) => Rows
  /** Whether a commit's sync failed and what it left is not written anew yet, see {@link Target.isSuspect}. */
  readonly isSuspect: () => boolean
}

/** What an engine works on. All of it can be handed to another thread. */
export interface Target {
  readonly file: string
  /** Pragmas that hold for the connection. */
  readonly pragmas: string
  /** Whether an engine before this one left something in the WAL of which nobody knows whether it is on disk: false. */
  readonly isSuspect?: boolean
}

/**
 * Opens the file. Throws what SQLite says, here and in each operation.
 *
 * Its text is also run in a worker thread, so it refers to nothing but its
 * parameters.
 */
export const open = (Database: typeof DatabaseSync, { file, isSuspect: wasSuspect = false, pragmas }: Target): Engine => {
  const db = new Database(file)
  db.exec(pragmas)
  const prepared = new Map<string, StatementSync>()
  let level: Level | undefined
  let isSuspect = wasSuspect

  const prepare = (sql: string): StatementSync => {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    const statement = db.prepare(sql)
    prepared.set(sql, statement)
    return statement
  }

  const begin = (wanted: Level) => {
    // Not prepared: a pragma takes effect when it is prepared, and never again.
    if (level !== wanted) db.exec(`PRAGMA synchronous=${wanted}`)
    level = wanted
    if (isSuspect) {
      const [row] = db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all()
      if (row?.["busy"] !== 0) throw Object.assign(new Error("others read what has to be written anew"), { errcode: 5 })
      isSuspect = false
    }
    prepare("BEGIN IMMEDIATE").run()
  }

  /**
   * A commit whose sync failed is undone, but the system takes what it could not write for written, and
   * says so no second time: https://wiki.postgresql.org/wiki/Fsync_Errors. So nothing is begun any more
   * until all that stands in the WAL was written anew, into the file itself.
   */
  const commit = () => {
    try {
      prepare("COMMIT").run()
    } catch (cause) {
      const code = (cause as { readonly errcode?: unknown }).errcode
      if (typeof code === "number" && (code & 0xff) === 10) isSuspect = true
      throw cause
    }
  }

  /** SQLite ends a transaction by itself where the disk is full or fails, which is all that a rollback is for. */
  const rollback = () => {
    try {
      prepare("ROLLBACK").run()
    } catch (cause) {
      if (!String(cause).includes("no transaction is active")) throw cause
    }
  }

  const rowsOf = ({ params, sql }: Statement): Rows => prepare(sql).all(...params)

  const transaction = (wanted: Level, [first, ...others]: ReadonlyArray<Statement>): Rows => {
    if (first === undefined) return []
    begin(wanted)
    try {
      const rows = rowsOf(first)
      if (rows.length === 0) {
        rollback()
        return rows
      }
      others.forEach(rowsOf)
      commit()
      return rows
    } catch (cause) {
      rollback()
      throw cause
    }
  }

  const run = (operation: Operation): Rows => {
    switch (operation.kind) {
      case "rows":
        return rowsOf(operation)
      case "transaction":
        return transaction(operation.level, operation.statements)
      case "begin":
        begin(operation.level)
        return []
      case "commit":
        commit()
        return []
      case "rollback":
        rollback()
        return []
      case "close":
        db.close()
        return []
    }
  }

  return { run, isSuspect: () => isSuspect }
}
