/** A store in memory whose commits fail when a test says so. */
import { Failure } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import { SessionStore, SessionStoreMemory } from "../../src/index.ts"

export const full = new SessionStore.SessionStoreError({ failure: Failure.make("STORE_FULL", "the disk is full") })

/** Commits are counted from 1. `around` runs before each. */
export const make = (fails: (nth: number) => boolean, around: Effect.Effect<void> = Effect.void): Effect.Effect<SessionStore.Service> =>
  Effect.map(SessionStoreMemory.make, (memory) => {
    let commits = 0
    return {
      ...memory,
      open: (id, holder) =>
        Effect.map(memory.open(id, holder), (writer) => ({
          ...writer,
          append: (events, options) =>
            Effect.andThen(around, Effect.suspend(() => fails(++commits) ? Effect.fail(full) : writer.append(events, options)))
        }))
    }
  })

/** Fails the nth commit, and no other. */
export const failingAt = (nth: number): Effect.Effect<SessionStore.Service> => make((commit) => commit === nth)
