/** What the suite of all stores cannot bring about by itself: done behind the store's back, by statements of our own. */
import type { StoreSuite } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type * as Scope from "effect/Scope"
import * as Batch from "../../src/internal/batch.ts"
import { bytes, integer, oneOf, type Row } from "../../src/internal/columns.ts"
import * as Sessions from "../../src/internal/sessionRows.ts"

type Hooks<R> = Required<StoreSuite.Hooks<R>>

/** `client` answers a connection beside the store's. */
export const hooksOf = <R>(client: Effect.Effect<SqlClient.SqlClient, unknown, R | Scope.Scope>): Hooks<R> => {
  const within = <A, E>(work: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
    Effect.asVoid(Effect.scoped(Effect.flatMap(client, work)))
  return {
    expire: (id) => within((sql) => sql`update owners set expires = 0 where id = (select owner from sessions where id = ${id})`),
    damage: (id, seq) =>
      within((sql) =>
        Effect.gen(function*() {
          const { number } = yield* Sessions.find(sql, id)
          const row: Row = yield* oneOf(sql`select first_seq, bytes from batches where session = ${number} and first_seq <= ${seq} and last_seq >= ${seq}`)
          const damaged = Uint8Array.from(bytes(row, "bytes"))
          damaged[damaged.length >> 1]! ^= 4
          yield* sql`update batches set bytes = ${damaged} where session = ${number} and first_seq = ${integer(row, "first_seq")}`
        })),
    plant: (id, record) =>
      within((sql) =>
        Effect.gen(function*() {
          const { log, number } = yield* Sessions.find(sql, id)
          // Of a later version, which is the point.
          const batches = yield* Batch.packed(number, log.generation, [record as never])
          const after = { ...log, next: log.next + 1 }
          for (const { bytes: packed, codec, first, generation, last, sum } of batches) {
            yield* sql`insert into batches (session, first_seq, last_seq, generation, codec, sum, bytes)
              values (${number}, ${first}, ${last}, ${generation}, ${codec}, ${sum}, ${packed})`
          }
          yield* sql`update sessions set next_seq = ${after.next}, log_sum = ${Sessions.logSum(number, after)} where number = ${number}`
        }))
  }
}

