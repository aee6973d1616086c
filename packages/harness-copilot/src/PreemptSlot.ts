/**
 * Where whoever wants to stop the turn that runs now finds its trigger.
 *
 * The slot holds the trigger of one child at a time and none between turns, so
 * firing it late does nothing. A trigger fires once.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface PreemptSlot {
  /** Stops the turn that runs now; answers whether there was one. */
  readonly fire: Effect.Effect<boolean>
  /** Puts a fresh trigger in for the scope's life, and answers what completes when it fires. The newest one counts. */
  readonly arm: Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
}

export const make: Effect.Effect<PreemptSlot> = Effect.sync(() => {
  let armed: Deferred.Deferred<void> | undefined
  return {
    fire: Effect.suspend(() => {
      const trigger = armed
      armed = undefined
      return trigger === undefined ? Effect.succeed(false) : Deferred.succeed(trigger, undefined)
    }),
    arm: Effect.map(
      Effect.acquireRelease(
        Effect.tap(Deferred.make<void>(), (trigger) => Effect.sync(() => void (armed = trigger))),
        (trigger) =>
          Effect.sync(() => {
            if (armed === trigger) armed = undefined
          })
      ),
      (trigger) => Deferred.await(trigger)
    )
  }
})
