/** What a database says, in the words of a store. */
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { SqlDatabase } from "../SqlDatabase.ts"
import { DamagedColumn } from "./columns.ts"
import { failed, type StoreError } from "./storeFailure.ts"

export type Told = <A, R>(work: Effect.Effect<A, SqlError | StoreError, R>) => Effect.Effect<A, StoreError, R>

/** A column that holds what nobody wrote is a damaged store, and no bug. */
export const toldBy = ({ failureOf, place }: Pick<SqlDatabase, "failureOf" | "place">): Told => (work) =>
  work.pipe(
    Effect.catchDefect((defect) =>
      defect instanceof DamagedColumn
        ? Effect.fail(failed("STORE_FAILED", `the sessions in ${place} are damaged: ${defect.message}`, {
          retryable: false,
          remedy: "Nothing was changed. Restore them from a copy.",
          data: { place }
        }))
        : Effect.die(defect)
    ),
    Effect.catchTag("SqlError", (error) => Effect.fail(new SessionStore.SessionStoreError({ failure: failureOf(error) })))
  )
