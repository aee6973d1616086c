/**
 * Who may write a session, and until when.
 *
 * A lease is the session's with its generation; how long it runs stands with the
 * process that has it, which renews all its leases in one row. Whoever takes over
 * makes the generation greater, and what a stale one appends is refused there, so
 * that the lease decides when one may take over and never what is written.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import { randomUUID } from "node:crypto"
import type { SqlDatabase } from "../SqlDatabase.ts"
import * as OwnProcess from "./ownProcess.ts"
import type { Session } from "./sessionRows.ts"

export interface Leases {
  /** The name of this store among the owners. */
  readonly owner: string
  /** Lets the leases of this store run from now on, until the scope closes. Within a transaction. */
  readonly begin: Effect.Effect<void, SqlError>
  /** Notes that this store holds a session, from before that is committed. */
  readonly hold: (session: number) => void
  /** Takes {@link Leases.hold} back, where it was not committed. */
  readonly forget: (session: number) => void
  /**
   * Lets go of a session, unless somebody has taken it over. Where the database
   * cannot be written to, it is tried again from time to time; in this process the
   * session is free at once.
   */
  readonly release: (session: number, generation: number) => Effect.Effect<void>
  /** Whether the lease of a session runs: not where its time is over, or its process certainly dead. */
  readonly runs: (session: Pick<Session, "lease" | "number">, now: number) => boolean
}

/** Leases that a dead process left are no use to anybody after this: a day, in milliseconds. */
const forgottenAfter = 86_400_000

export const make = (database: SqlDatabase, duration: Duration.Duration): Effect.Effect<Leases, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { now, sql, transaction } = database
    const owner = randomUUID()
    const me = OwnProcess.self()
    const millis = Math.ceil(Duration.toMillis(duration))
    const begun = Deferred.makeUnsafe<void>()
    let isTidy = false
    const held = new Set<number>()
    /** Sessions that were let go and whose rows do not say so yet, with the generation. */
    const unwritten = new Map<number, number>()

    const writeRelease = (session: number, generation: number) =>
      Effect.asVoid(transaction(
        sql`update sessions set owner = null, holder = null, since = null
          where number = ${session} and generation = ${generation} and owner = ${owner}`,
        { sync: false }
      ))

    const release: Leases["release"] = (session, generation) =>
      Effect.suspend(() => {
        held.delete(session)
        unwritten.set(session, generation)
        return writeReleases
      })

    const writeReleases = Effect.suspend(() =>
      Effect.forEach([...unwritten], ([session, generation]) =>
        Effect.tap(writeRelease(session, generation), () => Effect.sync(() => unwritten.delete(session))), { discard: true })
    ).pipe(Effect.catchCause((cause) => unlessInterrupted(cause, "a session could not be let go; it is tried again")))

    /** Says in a line what the database would not do; what comes of it is dealt with elsewhere. */
    const unlessInterrupted = (cause: Cause.Cause<SqlError>, what: string): Effect.Effect<void> => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
      const error = Option.getOrUndefined(Cause.findErrorOption(cause))
      return Effect.logDebug(error === undefined ? what : `${what}: ${database.failureOf(error).message}`)
    }

    const renew = Effect.gen(function*() {
      const expires = (yield* now) + millis
      yield* sql`insert into owners (id, process, expires) values (${owner}, ${OwnProcess.format(me)}, ${expires})
        on conflict (id) do update set expires = excluded.expires`
    })

    // Not begun where the first lease is: that is within a transaction, which would go on in it.
    yield* Effect.forkScoped(Effect.andThen(
      Deferred.await(begun),
      Effect.sleep(millis / 3).pipe(
        // The next round tries again. Should it be too late by then, whoever took over has a greater generation.
        Effect.andThen(Effect.catchCause(transaction(renew, { sync: false }), (cause) => unlessInterrupted(cause, "the leases could not be renewed"))),
        Effect.andThen(writeReleases),
        Effect.forever
      )
    ))

    /** What dead processes left: their rows, and sessions that were only half put in. */
    const tidy = Effect.gen(function*() {
      yield* sql`delete from owners where expires < ${(yield* now) - forgottenAfter} and id not in (select owner from sessions where owner is not null)`
      const left = sql`(select s.number from sessions s left join owners o on o.id = s.owner where s.id is null and (o.id is null or o.expires < ${yield* now}))`
      yield* sql`delete from batches where session in ${left}`
      yield* sql`delete from inbox where session in ${left}`
      yield* sql`delete from sessions where number in ${left}`
    })

    const end = Effect.suspend(() =>
      Deferred.isDoneUnsafe(begun)
        ? Effect.catchCause(
          Effect.asVoid(transaction(sql`delete from owners where id = ${owner}`, { sync: false })),
          (cause) => unlessInterrupted(cause, "the leases run out by themselves")
        )
        : Effect.void
    )
    yield* Effect.addFinalizer(() => end)

    return {
      owner,
      begin: Effect.suspend(() => {
        Deferred.doneUnsafe(begun, Effect.void)
        const first = isTidy ? Effect.void : tidy
        isTidy = true
        return Effect.andThen(renew, first)
      }),
      hold: (session) => {
        held.add(session)
        unwritten.delete(session)
      },
      forget: (session) => {
        held.delete(session)
      },
      release,
      runs: ({ lease, number }, time) => {
        if (lease?.process === undefined || lease.process.expires <= time) return false
        return lease.owner === owner ? held.has(number) : !OwnProcess.isDead(lease.process.name, me)
      }
    }
  })
