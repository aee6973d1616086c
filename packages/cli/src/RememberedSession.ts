/**
 * A session whose turns are remembered, so that a later process can continue it.
 *
 * It saves before a turn begins, and whenever the turn tells something that is
 * to be remembered. A turn that cannot be remembered fails.
 */
import { type AgentSession, type RunPreparation, SessionMemory, TurnError } from "@turnpike/kernel"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

export const make = (session: AgentSession.AgentSession, prepared: RunPreparation.Prepared): AgentSession.AgentSession => {
  const { harness, lease, options } = prepared
  const memory = SessionMemory.make({
    known: Option.getOrUndefined(lease.binding),
    sessionId: options.sessionId,
    harness: harness.name,
    cwd: options.cwd
  })
  const save: Effect.Effect<void, TurnError.TurnError> = Effect.flatMap(Clock.currentTimeMillis, (now) => lease.save(memory.binding(now))).pipe(
    Effect.mapError((error) => TurnError.reported(error.failure))
  )
  return {
    sessionId: session.sessionId,
    interrupt: Effect.suspend(() => session.interrupt),
    runTurn: (prompt) =>
      Stream.unwrap(
        Effect.suspend(() => {
          memory.begin()
          return save.pipe(
            Effect.tapError(() => Effect.sync(memory.unbegin)),
            Effect.as(Stream.tap(session.runTurn(prompt), (event) => memory.see(event) ? save : Effect.void))
          )
        })
      )
  }
}
