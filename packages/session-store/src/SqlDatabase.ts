/**
 * What the store needs of a SQL database, and where two of them differ.
 *
 * The statements of the store are the same for all; a database says how it is
 * spoken to, how a commit reaches the disk, and what its failures mean.
 */
import type { Failure } from "@turnpike/contract"
import type * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Statement } from "effect/sql/Statement"

export interface TransactionOptions {
  /** Whether the commit is to be on disk before the transaction is over, and not only with the operating system. */
  readonly sync: boolean
}

export interface SqlDatabase {
  readonly sql: SqlClient.SqlClient
  /** Where it is, for people: a file, or a server and a database. Holds no credential. */
  readonly place: string
  /**
   * Runs statements as one transaction that no other writer comes between. Waits
   * a bounded time for other writers.
   */
  readonly transaction: <A, E, R>(
    work: Effect.Effect<A, E, R>,
    options: TransactionOptions
  ) => Effect.Effect<A, E | SqlError, R>
  /**
   * Runs statements as one transaction, as `transaction` does, and asks nobody in
   * between: the quick way for what is written all the time. Where the first one answers
   * no row, none of them does anything. Answers the rows of the first.
   */
  readonly write: <A extends object>(
    statements: readonly [first: Statement<A>, ...others: ReadonlyArray<Statement<object>>],
    options: TransactionOptions
  ) => Effect.Effect<ReadonlyArray<A>, SqlError>
  /** The time that all users of the database go by, in milliseconds since 1970. */
  readonly now: Effect.Effect<number, SqlError>
  /** Whether somebody else may have committed since this was asked last. */
  readonly mayHaveChanged: Effect.Effect<boolean, SqlError>
  /** How often `mayHaveChanged` is asked while somebody waits for others. */
  readonly pollMillis: number
  /** What a failure of it means. */
  readonly failureOf: (error: SqlError) => Failure.Failure
  /**
   * Whether a failed transaction may have been committed all the same, as where a
   * connection breaks before the answer comes.
   */
  readonly isInDoubt: (error: SqlError) => boolean
}
