/**
 * Who may write a session, and until when.
 *
 * A lease is the session's with its generation; how long it runs stands with the
 * process that has it, which renews all its leases in one row. Whoever takes over
 * makes the generation greater, and what a stale one appends is refused there, so
 * that the lease decides when one may take over and never what is written.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import { randomUUID } from "node:crypto"
import type { SqlDatabase } from "../SqlDatabase.ts"
import * as OwnProcess from "./ownProcess.ts"
import type { Lease } from "./sessionRows.ts"

export interface Leases {
  /** The name of this store among the owners. */
  readonly owner: string
  /** Runs a lease from now on, and renews it until the scope closes. Within a transaction. */
  readonly begin: Effect.Effect<void, SqlError>
  /** Whether a lease that was found runs: not where its time is over, or its process certainly dead. */
  readonly runs: (lease: Lease | undefined, now: number) => lease is Lease
}

/** Leases that a dead process left are no use to anybody after this: a day, in milliseconds. */
const forgottenAfter = 86_400_000

export const make = (database: SqlDatabase, duration: Duration.Duration): Effect.Effect<Leases, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { now, sql, transaction } = database
    const scope = yield* Effect.scope
    const owner = randomUUID()
    const me = OwnProcess.self()
    const millis = Duration.toMillis(duration)
    let isBegun = false

    const renew = Effect.gen(function*() {
      const expires = (yield* now) + millis
      yield* sql`insert into owners (id, process, expires) values (${owner}, ${OwnProcess.format(me)}, ${expires})
        on conflict (id) do update set expires = excluded.expires`
    })

    const renewing = Effect.sleep(millis / 3).pipe(
      Effect.andThen(transaction(renew, { sync: false })),
      // The next round tries again. Should it be too late by then, whoever took over has a greater generation.
      Effect.catchCause((cause) => Effect.logDebug(`the leases on ${database.place} could not be renewed`, cause)),
      Effect.forever
    )

    /** What dead processes left: their rows, and sessions that were only half put in. */
    const tidy = Effect.gen(function*() {
      yield* sql`delete from owners where expires < ${(yield* now) - forgottenAfter} and id not in (select owner from sessions where owner is not null)`
      const left = sql`(select s.number from sessions s left join owners o on o.id = s.owner where s.id is null and (o.id is null or o.expires < ${yield* now}))`
      yield* sql`delete from batches where session in ${left}`
      yield* sql`delete from inbox where session in ${left}`
      yield* sql`delete from sessions where number in ${left}`
    })

    const end = Effect.suspend(() =>
      isBegun
        ? Effect.catchCause(
          transaction(sql`delete from owners where id = ${owner}`, { sync: false }),
          (cause) => Effect.logDebug(`the leases on ${database.place} run out by themselves`, cause)
        )
        : Effect.void
    )
    yield* Effect.addFinalizer(() => end)

    return {
      owner,
      begin: Effect.suspend(() => {
        if (isBegun) return renew
        isBegun = true
        return renew.pipe(
          Effect.andThen(tidy),
          Effect.andThen(Effect.forkIn(renewing, scope)),
          Effect.onError(() =>
            Effect.sync(() => {
              isBegun = false
            }))
        )
      }),
      runs: (lease, time): lease is Lease =>
        lease?.process !== undefined && lease.process.expires > time && !OwnProcess.isDead(lease.process.name, me)
    }
  })
