/** What somebody who does not hold a session wants to be discarded, as its holder does it. */
import * as Effect from "effect/Effect"
import type * as SessionStore from "../SessionStore.ts"

/** Discards what waits and is asked to be, and answers what waits then. */
export const heeded = (
  store: Pick<SessionStore.Service, "pending">,
  writer: Pick<SessionStore.Writer, "header" | "discard">
): Effect.Effect<SessionStore.Pending, SessionStore.SessionStoreError> =>
  Effect.suspend(() => {
    const { id } = writer.header
    return Effect.flatMap(store.pending(id), (pending) =>
      pending.discardRequests.length === 0
        ? Effect.succeed(pending)
        : Effect.andThen(
          Effect.forEach(pending.discardRequests, (request) => writer.discard([request.id], "removed", request.by), { discard: true }),
          store.pending(id)
        ))
  })
