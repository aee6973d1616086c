/**
 * Makes a failure again of what `effect/sql` 4.1 lets die: the rollback of a
 * transaction whose connection or disk is gone.
 */
import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"

export const asFailure = <A, E, R>(transaction: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
  Effect.catchDefect(transaction, (defect) => isSqlError(defect) ? Effect.fail(defect) : Effect.die(defect))
