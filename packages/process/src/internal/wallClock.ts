/**
 * Waiting in the machine's own time.
 *
 * The bounds of this package are promises about operating system processes,
 * which run in real time also where a program (a test) has replaced Effect's
 * clock; so they do not go through it.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/** The longest wait that a timer takes, some 25 days; it takes a longer one for none at all. */
const longestMs = 2 ** 31 - 1

export const sleep = (ms: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), Math.min(ms, longestMs))
    return Effect.sync(() => clearTimeout(timer))
  })

/** Waits for `effect`, at most `ms`; what is not done by then is interrupted. */
export const within = <A, E>(effect: Effect.Effect<A, E>, ms: number): Effect.Effect<Option.Option<A>, E> =>
  Effect.raceFirst(Effect.asSome(effect), Effect.as(sleep(ms), Option.none<A>()))

/** Milliseconds from a fixed point; never goes back. */
export const now = (): number => performance.now()
