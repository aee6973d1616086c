/**
 * Who waits for a session to change, and who tells them.
 *
 * What this store does is told at once. What others do is looked for while anybody
 * waits, by the sizes of files: one look a round for all who wait for a session.
 */
import type { Scalars } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FileError } from "./files.ts"

interface Waiter {
  /** Completed when the session may be another one than at the last look. */
  changed: Deferred.Deferred<void>
}

interface Waiting {
  readonly waiters: Set<Waiter>
  /** What was seen at the last look; `undefined` before the first. */
  seen: string | undefined
}

export interface Changes {
  /** Wakes those who wait for a session: something of it may be another. */
  readonly tell: (id: Scalars.SessionId) => void
  /**
   * Completes with what `look` finds once it finds something; it is asked again
   * whenever the session may be another.
   */
  readonly until: <A, E>(id: Scalars.SessionId, look: Effect.Effect<A | undefined, E>) => Effect.Effect<A, E>
}

/** How often one looks for what other processes did: every 25 ms, which costs microseconds a session. */
const pollMillis = 25

/** `stateOf` answers something else whenever the files of a session are others. */
export const make = (stateOf: (id: Scalars.SessionId) => Effect.Effect<string, FileError>): Effect.Effect<Changes, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const sessions = new Map<Scalars.SessionId, Waiting>()
    let isLooking = false

    const wake = ({ waiters }: Waiting) => {
      for (const { changed } of waiters) Deferred.doneUnsafe(changed, Effect.void)
    }

    const lookAt = (id: Scalars.SessionId, waiting: Waiting) =>
      Effect.flatMap(stateOf(id), (state) =>
        Effect.sync(() => {
          if (state === waiting.seen) return
          waiting.seen = state
          wake(waiting)
        })).pipe(
          // Whoever waits looks for himself then, and hears what is wrong.
          Effect.catch(() => Effect.sync(() => wake(waiting)))
        )

    /** Ends by itself when nobody waits any more. */
    const looking: Effect.Effect<void> = Effect.suspend(() => {
      if (sessions.size === 0) {
        isLooking = false
        return Effect.void
      }
      return Effect.forEach([...sessions], ([id, waiting]) => lookAt(id, waiting), { discard: true }).pipe(
        Effect.andThen(Effect.sleep(pollMillis)),
        Effect.andThen(looking)
      )
    })

    const enter = (id: Scalars.SessionId, waiter: Waiter) =>
      Effect.suspend(() => {
        const waiting = sessions.get(id)
        if (waiting === undefined) sessions.set(id, { waiters: new Set([waiter]), seen: undefined })
        else waiting.waiters.add(waiter)
        if (isLooking) return Effect.void
        isLooking = true
        return Effect.asVoid(Effect.forkIn(looking, scope))
      })

    const leave = (id: Scalars.SessionId, waiter: Waiter) =>
      Effect.sync(() => {
        const waiting = sessions.get(id)
        waiting?.waiters.delete(waiter)
        if (waiting?.waiters.size === 0) sessions.delete(id)
      })

    const until = <A, E>(id: Scalars.SessionId, look: Effect.Effect<A | undefined, E>): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        const waiter: Waiter = { changed: Deferred.makeUnsafe() }
        const again: Effect.Effect<A, E> = Effect.suspend(() => {
          // Before the look, so that nothing comes between.
          waiter.changed = Deferred.makeUnsafe()
          return Effect.flatMap(look, (found) => found === undefined ? Effect.andThen(Deferred.await(waiter.changed), again) : Effect.succeed(found))
        })
        return Effect.acquireUseRelease(enter(id, waiter), () => again, () => leave(id, waiter))
      })

    return {
      tell: (id) => {
        const waiting = sessions.get(id)
        if (waiting !== undefined) wake(waiting)
      },
      until
    }
  })
