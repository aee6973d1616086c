/**
 * The small pump: prompts from a channel through a session, outputs back.
 *
 * It fails fast and knows no time: no timer, no limit, no retry. Resilience is
 * a session's decorator, not the loop's business.
 */
import * as Effect from "effect/Effect"
import * as AgentSession from "./AgentSession.ts"
import type { Channel } from "./Channel.ts"
import type * as ChannelError from "./ChannelError.ts"
import type * as TurnError from "./TurnError.ts"

/**
 * The wait before an idle channel without `wake` is asked again: 5 ms, long
 * enough not to spin, short enough not to be felt. It is no deadline.
 */
export const idleBackoffMillis = 5

/**
 * Runs prompts in the order in which the channel gives them. A turn and its
 * publication are over before the next prompt is asked for. Ends when the
 * channel is closed, and fails with the first error, unchanged; after it
 * nothing else happens: a failed turn is not published, and no further prompt
 * is asked for.
 */
export const runSessionLoop = (
  session: AgentSession.AgentSession,
  channel: Channel
): Effect.Effect<void, TurnError.TurnError | ChannelError.ChannelError> =>
  Effect.gen(function*() {
    let idleAnswers = 0
    while (true) {
      const next = yield* channel.nextPrompt
      switch (next._tag) {
        case "Closed":
          return
        case "Idle":
          idleAnswers++
          if (channel.wake !== undefined) yield* channel.wake
          // A wake that completes although there is nothing to do must not make the loop spin.
          if (channel.wake === undefined || idleAnswers > 1) yield* Effect.sleep(idleBackoffMillis)
          break
        case "Ready": {
          idleAnswers = 0
          const output = yield* AgentSession.runToOutput(session, next.prompt, (event) =>
            channel.publishEvent?.(event) ?? Effect.void)
          yield* channel.publishOutput(output)
        }
      }
    }
  }).pipe(Effect.withSpan("runSessionLoop"))
