/**
 * Sessions made of sessions: one turn at a time, pre-emption, resilience.
 *
 * Each takes a session and gives one with the same id, so they compose in any
 * order that makes sense to the caller.
 */
import { TurnEvent } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { AgentSession } from "./AgentSession.ts"
import type { Prompt } from "./Prompt.ts"
import * as TurnError from "./TurnError.ts"

/**
 * Runs one turn at a time, whoever calls: a turn asked for while another runs
 * waits until that one is over, however it ends. Waiting turns run in the order
 * in which they came; an interrupted wait leaves the queue.
 */
export const serial = (session: AgentSession): Effect.Effect<AgentSession> =>
  Effect.map(Semaphore.make(1), (lock) => ({
    ...session,
    runTurn: (prompt: Prompt) =>
      Stream.unwrap(
        Effect.acquireRelease(Semaphore.take(lock, 1), () => Semaphore.release(lock, 1), { interruptible: true }).pipe(
          Effect.as(session.runTurn(prompt))
        )
      )
  }))

export interface Preemptible {
  readonly session: AgentSession
  /**
   * Cuts off the turn that runs now: it fails with `Preempted`, after everything
   * that it started is gone. Returns whether there was one; a later turn is
   * never hit by an earlier call.
   */
  readonly preempt: Effect.Effect<boolean>
}

/** Lets somebody else cut off the running turn, and only that. */
export const preemptible = (session: AgentSession): Effect.Effect<Preemptible> =>
  Effect.sync(() => {
    let running: Deferred.Deferred<never, TurnError.TurnError> | undefined
    return {
      session: {
        ...session,
        runTurn: (prompt: Prompt) =>
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
          )
      },
      preempt: Effect.suspend(() => {
        const trigger = running
        running = undefined
        return trigger === undefined ? Effect.succeed(false) : Deferred.fail(trigger, TurnError.preempted())
      })
    }
  })

const ending = (text: string): TurnEvent.TurnEvent =>
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
 * empty text. Events before the failure pass; interruption is not caught.
 */
export const resilient = (session: AgentSession): AgentSession => ({
  ...session,
  runTurn: (prompt) =>
    session.runTurn(prompt).pipe(
      Stream.catch((error) =>
        Stream.make(ending(error.reason._tag === "Preempted" ? "" : `turn failed: ${error.failure.message}`))
      )
    )
})
