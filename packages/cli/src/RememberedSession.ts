/**
 * A session whose turns are remembered, so that a later process can continue it.
 *
 * What is saved: before a turn begins, that it begins; when the harness names or
 * renames its session, the name; when it has answered, that there is something
 * to continue. A turn that cannot be remembered fails.
 */
import type { TurnEvent } from "@turnpike/contract"
import { type AgentSession, type RunPreparation, TurnError } from "@turnpike/kernel"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

export const make = (session: AgentSession.AgentSession, prepared: RunPreparation.Prepared): AgentSession.AgentSession => {
  const { harness, lease, options } = prepared
  const before = Option.getOrUndefined(lease.binding)
  let turns = before?.turns ?? 0
  let harnessSessionId = before?.harness_session_id
  let persisted = before?.persisted ?? false

  const save: Effect.Effect<void, TurnError.TurnError> = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    lease.save({
      session_id: options.sessionId,
      harness: harness.name,
      ...(harnessSessionId === undefined ? {} : { harness_session_id: harnessSessionId }),
      persisted,
      cwd: options.cwd,
      turns,
      created_at: before?.created_at ?? now,
      updated_at: now
    })).pipe(Effect.mapError((error) => TurnError.reported(error.failure)))

  const remember = (event: TurnEvent.TurnEvent): Effect.Effect<void, TurnError.TurnError> => {
    const isNamed = event.type === "session/bound" && event.data.harness_session_id !== harnessSessionId
    if (event.type === "session/bound") harnessSessionId = event.data.harness_session_id
    const isWritten = !persisted && harnessSessionId !== undefined &&
      (event.type === "assistant/message" || event.type === "harness/end")
    persisted ||= isWritten
    return isNamed || isWritten ? save : Effect.void
  }

  return {
    sessionId: session.sessionId,
    interrupt: Effect.suspend(() => session.interrupt),
    runTurn: (prompt) =>
      Stream.unwrap(
        Effect.suspend(() => {
          turns++
          return Effect.as(save, Stream.tap(session.runTurn(prompt), remember))
        })
      )
  }
}
