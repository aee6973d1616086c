/**
 * Who waits for a session to change, and who tells them.
 *
 * Commits of this store are told at once. Those of others are looked for while
 * anybody waits: one question a round for all.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import type { SqlDatabase } from "../SqlDatabase.ts"
import { integer, type Row } from "./columns.ts"

/** What of a session grows. */
export type Kind = "log" | "inbox"

/** How far a session has grown. */
export type Lengths = Readonly<Record<Kind, number>>

interface Waiter {
  readonly kind: Kind
  /** What the waiter has seen. */
  readonly seen: number
  readonly changed: Deferred.Deferred<void>
}

export interface Changes {
  /** Tells those who wait what a session has grown to; `undefined` where it is deleted. */
  readonly tell: (session: number, lengths: Partial<Lengths> | undefined) => void
  /**
   * Completes once the session is longer than `seen` or gone, by whichever process;
   * `look` asks how long it is now.
   */
  readonly wait: <E>(
    session: number,
    kind: Kind,
    seen: number,
    look: Effect.Effect<Lengths | undefined, E>
  ) => Effect.Effect<void, E>
}

/**
 * How long looking may fail, as while a server begins again: 30 seconds. Then those
 * who wait are woken, look for themselves and hear what is wrong.
 */
const patienceMillis = 30_000

/** How many sessions are asked for at once: the event loop is left free in between. */
const askedAtOnce = 500

export const make = ({ mayHaveChanged, pollMillis, sql }: SqlDatabase): Effect.Effect<Changes, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const waiters = new Map<number, Set<Waiter>>()
    let isLooking = false

    const tell: Changes["tell"] = (session, lengths) => {
      for (const { changed, kind, seen } of waiters.get(session) ?? []) {
        if (lengths === undefined || (lengths[kind] ?? seen) > seen) Deferred.doneUnsafe(changed, Effect.void)
      }
    }

    const among = (numbers: ReadonlyArray<number>) =>
      sql.onDialectOrElse({
        pg: () => sql`= any(string_to_array(${numbers.join(",")}, ',')::bigint[])`,
        orElse: () => sql`in (select value from json_each(${JSON.stringify(numbers)}))`
      })

    /** Looks at all sessions that somebody waits for. */
    const lookAtAll: Effect.Effect<void, SqlError> = Effect.gen(function*() {
      const numbers = [...waiters.keys()]
      for (let at = 0; at < numbers.length; at += askedAtOnce) {
        const asked = numbers.slice(at, at + askedAtOnce)
        const rows = yield* sql<Row>`select number, next_seq, inbox_seq from sessions where id is not null and number ${among(asked)}`
        const found = new Map(rows.map((row) => [integer(row, "number"), { log: integer(row, "next_seq"), inbox: integer(row, "inbox_seq") }]))
        for (const number of asked) tell(number, found.get(number))
        yield* Effect.yieldNow
      }
    })

    /** When looking began to fail, as long as it does. */
    let failingSince: number | undefined

    const failing = (cause: Cause.Cause<SqlError>) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        failingSince ??= now
        if (now - failingSince >= patienceMillis) {
          failingSince = undefined
          for (const number of waiters.keys()) tell(number, undefined)
        }
        return Effect.logDebug("the sessions could not be looked at for changes", cause)
      })

    const round = Effect.flatMap(mayHaveChanged, (changed) => changed ? lookAtAll : Effect.void).pipe(
      Effect.andThen(Effect.sync(() => {
        failingSince = undefined
      })),
      Effect.catchCause((cause) => Cause.hasInterruptsOnly(cause) ? Effect.interrupt : failing(cause)),
      Effect.andThen(Effect.sleep(pollMillis))
    )

    /** Ends by itself when nobody waits any more. */
    const looking: Effect.Effect<void> = Effect.suspend(() => {
      if (waiters.size === 0) {
        isLooking = false
        return Effect.void
      }
      return Effect.andThen(round, looking)
    })

    const enter = (session: number, waiter: Waiter) =>
      Effect.suspend(() => {
        const others = waiters.get(session)
        if (others === undefined) waiters.set(session, new Set([waiter]))
        else others.add(waiter)
        if (isLooking) return Effect.void
        isLooking = true
        return Effect.asVoid(Effect.forkIn(looking, scope))
      })

    const leave = (session: number, waiter: Waiter) =>
      Effect.sync(() => {
        const all = waiters.get(session)
        all?.delete(waiter)
        if (all?.size === 0) waiters.delete(session)
      })

    return {
      tell,
      wait: (session, kind, seen, look) =>
        Effect.suspend(() => {
          const waiter: Waiter = { kind, seen, changed: Deferred.makeUnsafe() }
          return Effect.acquireUseRelease(
            enter(session, waiter),
            // Looked at after it has entered, so that nothing comes between.
            () => Effect.flatMap(look, (lengths) => lengths === undefined || lengths[kind] > seen ? Effect.void : Deferred.await(waiter.changed)),
            () => leave(session, waiter)
          )
        })
    }
  })
