/**
 * Sessions made of sessions: one turn at a time, pre-emption, resilience.
 *
 * Each takes a session and gives one with the same id, so they compose. Where
 * several callers share a session, `serial` is the outermost: pre-emption then
 * hits the turn that runs and none that waits.
 */
import { TurnEvent } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as AgentSession from "./AgentSession.ts"
import type { Prompt } from "./Prompt.ts"
import * as TurnError from "./TurnError.ts"

/** The session with other turns. It delegates instead of copying: a session may be an instance with methods. */
const withTurns = (
  session: AgentSession.AgentSession,
  runTurn: AgentSession.AgentSession["runTurn"]
): AgentSession.AgentSession => ({
  sessionId: session.sessionId,
  runTurn,
  interrupt: Effect.suspend(() => session.interrupt)
})

/**
 * Runs one turn at a time, whoever calls: a turn asked for while another runs
 * waits until that one is over, however it ends, its finalizers included.
 * Waiting turns run in the order in which they came; an interrupted wait leaves
 * the queue.
 */
export const serial = (session: AgentSession.AgentSession): Effect.Effect<AgentSession.AgentSession> =>
  Effect.map(Semaphore.make(1), (lock) =>
    withTurns(session, (prompt: Prompt) =>
      Stream.unwrap(Effect.map(Semaphore.takeScoped(lock, 1), () => session.runTurn(prompt)))))

export interface Preemptible {
  readonly session: AgentSession.AgentSession
  /**
   * Cuts off the turn that runs now: it fails with `Preempted`, after everything
   * that it started is gone. Returns whether there was one; a later turn is
   * never hit by an earlier call.
   */
  readonly preempt: Effect.Effect<boolean>
}

/** Lets somebody else cut off the running turn, and only that. It is for a session that runs one turn at a time. */
export const preemptible = (session: AgentSession.AgentSession): Effect.Effect<Preemptible> =>
  Effect.sync(() => {
    let running: Deferred.Deferred<never, TurnError.TurnError> | undefined
    return {
      session: withTurns(session, (prompt: Prompt) =>
        Stream.unwrap(
          Effect.gen(function*() {
            const trigger = yield* Effect.acquireRelease(
              Effect.tap(Deferred.make<never, TurnError.TurnError>(), (mine) =>
                Effect.sync(() => {
                  running = mine
                })),
              (mine) =>
                Effect.sync(() => {
                  if (running === mine) running = undefined
                })
            )
            return Stream.interruptWhen(session.runTurn(prompt), Deferred.await(trigger))
          })
        )),
      preempt: Effect.suspend(() => {
        const trigger = running
        running = undefined
        return trigger === undefined ? Effect.succeed(false) : Deferred.fail(trigger, TurnError.preempted())
      })
    }
  })

const contained = (text: string): TurnEvent.TurnEnd =>
  TurnEvent.make("harness/end", {
    stop_reason: "completed",
    text,
    worked: true,
    denials: [],
    background: [],
    harness_reason: "contained failure"
  })

/**
 * Reports a failed turn as its output, so that a loop goes on with the next
 * prompt: a failure becomes the text `turn failed: …`, a pre-empted turn an
 * empty text. Events before the failure pass; the ending is held back until the
 * turn is known not to fail after it. Interruption and bugs are not caught.
 */
export const resilient = (session: AgentSession.AgentSession): AgentSession.AgentSession =>
  withTurns(session, (prompt) =>
    Stream.suspend(() => {
      let end: TurnEvent.TurnEnd | undefined
      const events = AgentSession.oneEnding(session.runTurn(prompt)).pipe(
        Stream.filter((event) => {
          if (event.type !== "harness/end") return true
          end = event
          return false
        })
      )
      const ending = Stream.suspend(() => end === undefined ? Stream.empty : Stream.make(end))
      return Stream.concat(events, ending).pipe(
        Stream.catch((error: TurnError.TurnError) =>
          Stream.make(contained(error.reason._tag === "Preempted" ? "" : `turn failed: ${error.failure.message}`))
        )
      )
    }))
