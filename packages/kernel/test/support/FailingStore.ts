/** A store in memory whose commits fail when a test says so. */
import { Failure } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import { SessionStore, SessionStoreMemory } from "../../src/index.ts"

export const full = new SessionStore.SessionStoreError({ failure: Failure.make("STORE_FULL", "the disk is full") })

/** Commits are counted from 1. `around` runs before each. */
export const make = (fails: (nth: number, types: ReadonlyArray<string>) => boolean, around: Effect.Effect<void> = Effect.void): Effect.Effect<SessionStore.Service> =>
  Effect.map(SessionStoreMemory.make, (memory) => {
    let commits = 0
    return {
      ...memory,
      open: (id, holder) =>
        Effect.map(memory.open(id, holder), (writer) => ({
          ...writer,
          append: (events, options) =>
            Effect.andThen(around, Effect.suspend(() => fails(++commits, events.map(({ type }) => type)) ? Effect.fail(full) : writer.append(events, options)))
        }))
    }
  })

/** Fails the first commit that has an event of this type, and no other. */
export const failingOn = (type: string): Effect.Effect<SessionStore.Service> => {
  let hasFailed = false
  return make((_, types) => {
    const fails = !hasFailed && types.includes(type)
    hasFailed ||= fails
    return fails
  })
}
