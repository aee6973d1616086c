/**
 * Reads the columns of rows.
 *
 * A damaged file gives values of any type. What is not as the tables have it is a
 * defect that `SqlSessionStore` turns into the failure of a damaged store.
 */
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"

export type Row = { readonly [column: string]: unknown }

/** A column that does not hold what every version writes into it. */
export class DamagedColumn extends Error {
  override readonly name = "DamagedColumn"
}

const wrong = (column: string, expected: string): never => {
  throw new DamagedColumn(`the column ${column} holds no ${expected}`)
}

/** PostgreSQL has whole numbers of 64 bits as `bigint`; ours all fit into a number. */
export const integer = (row: Row, column: string): number => {
  const value = row[column]
  const number = typeof value === "bigint" ? Number(value) : value
  return typeof number === "number" && Number.isSafeInteger(number) ? number : wrong(column, "whole number")
}

export const text = (row: Row, column: string): string => {
  const value = row[column]
  return typeof value === "string" ? value : wrong(column, "text")
}

export const bytes = (row: Row, column: string): Uint8Array => {
  const value = row[column]
  return value instanceof Uint8Array ? value : wrong(column, "bytes")
}

export const optional = <A>(row: Row, column: string, read: (row: Row, column: string) => A): A | undefined =>
  row[column] === null ? undefined : read(row, column)

/** The one row of a statement that has one. */
export const oneOf = (statement: Effect.Effect<ReadonlyArray<Row>, SqlError>): Effect.Effect<Row, SqlError> =>
  Effect.map(statement, ([row]) => {
    if (row === undefined) throw new DamagedColumn("a row is missing")
    return row
  })
