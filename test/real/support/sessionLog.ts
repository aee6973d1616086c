/** What Turnpike has of a session: read from its store, as any program may. */
import { Scalars, type SessionEvent } from "@turnpike/contract"
import { SqliteSessionStore } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Bench } from "./turnpikeRun.ts"

export interface Held {
  readonly events: ReadonlyArray<SessionEvent.SessionEvent>
  /** The prompts of its turns, in order. */
  readonly prompts: ReadonlyArray<string>
  /** How its turns ended, in order; an error by its code. */
  readonly endings: ReadonlyArray<string>
  /** The ids that the CLI has had for it, in order. */
  readonly ids: ReadonlyArray<string>
  /** How many prompts wait. */
  readonly waiting: number
}

export const heldOf = (bench: Bench, sessionId: string): Promise<Held> =>
  Effect.gen(function*() {
    const id = Scalars.SessionId.make(sessionId)
    const store = yield* SqliteSessionStore.make({ directory: bench.dataDirectory })
    const events = [...yield* Stream.runCollect(store.read(id, -1))]
    const { nextStep, nextTurn } = yield* store.pending(id)
    return {
      events,
      prompts: events.flatMap((event) => event.type === "user/message" ? [event.data.text] : []),
      endings: events.flatMap((event) => {
        if (event.type !== "turn/end") return []
        const { verdict } = event.data
        return [verdict.type === "error" ? verdict.error.code : verdict.type]
      }),
      ids: events.flatMap((event) => event.type === "session/bound" ? [event.data.harness_session_id] : []),
      waiting: nextStep.length + nextTurn.length
    }
  }).pipe(Effect.scoped, Effect.runPromise)
