/**
 * A conversation with an agent that can be given one prompt after another.
 *
 * This is the port down: whoever drives turns sees nothing else of a harness.
 */
import { Failure, type Scalars, type TurnEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Prompt } from "./Prompt.ts"
import * as TurnError from "./TurnError.ts"
import * as TurnOutput from "./TurnOutput.ts"

export interface AgentSession {
  /** Ours; constant for the session's life. */
  readonly sessionId: Scalars.SessionId

  /**
   * Runs one turn to its natural completion.
   *
   * The stream ends in exactly one way: with one last `harness/end`, by failing,
   * or by interruption, which is the hard form of cancel and leaves nothing of
   * the turn running. It has no deadline. Running it twice runs two turns; a
   * session runs one at a time.
   */
  readonly runTurn: (prompt: Prompt) => Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>

  /**
   * Asks the running turn to end itself, and returns when the request was made.
   * Does nothing when no turn runs. The stream then ends by itself.
   */
  readonly interrupt: Effect.Effect<void>
}

const afterEnd = (type: string) =>
  TurnError.reported(Failure.make("HARNESS_PROTOCOL", `the harness sent ${type} after the end of its turn`))

/**
 * Holds a turn's stream to the one-ending rule: an event after `harness/end`
 * fails with `HARNESS_PROTOCOL`, an end without one with `NO_TERMINAL`.
 */
export const oneEnding = (
  stream: Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>
): Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError> =>
  Stream.suspend(() => {
    let ended = false
    return stream.pipe(
      Stream.mapEffect((event) => {
        if (ended) return Effect.fail(afterEnd(event.type))
        ended = event.type === "harness/end"
        return Effect.succeed(event)
      }),
      Stream.concat(
        Stream.suspend(() =>
          ended ? Stream.empty : Stream.fail(TurnError.noTerminal("the harness stopped without ending its turn"))
        )
      )
    )
  })

/** Runs one turn and returns its output; the events pass by `observe` in order. */
export const runToOutput = <E = never>(
  session: AgentSession,
  prompt: Prompt,
  observe?: (event: TurnEvent.TurnEvent) => Effect.Effect<void, E>
): Effect.Effect<TurnOutput.TurnOutput, TurnError.TurnError | E> =>
  Effect.suspend(() => {
    let output = TurnOutput.empty
    return Stream.runForEach(oneEnding(session.runTurn(prompt)), (event) => {
      output = TurnOutput.add(output, event)
      return observe === undefined ? Effect.void : observe(event)
    }).pipe(Effect.map(() => output))
  })
