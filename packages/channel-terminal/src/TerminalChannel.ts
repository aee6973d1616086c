/**
 * The terminal as a channel: a line is a prompt, and a turn is shown while it
 * runs.
 *
 * A line that ends in a backslash goes on in the next one. `/exit` and the end
 * of input close the channel.
 */
import type { AgentRunEvent } from "@turnpike/contract"
import { Channel, type ChannelError, Prompt, RunStream, type TurnError, type TurnOutput } from "@turnpike/kernel"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Screen } from "./Screen.ts"
import type { ShownRequests } from "./ShownRequests.ts"
import * as TerminalPrompts from "./TerminalPrompts.ts"
import * as TurnText from "./TurnText.ts"

export interface Options {
  readonly read: TerminalPrompts.Options["read"]
  readonly screen: Screen
  readonly text: TurnText.TurnText
  /** What is told of the session when it is first heard of. `turn` is not used. */
  readonly opening: RunStream.Opening
  readonly requests?: ShownRequests
  /** Told when Ctrl-C closed the channel rather than the end of input. */
  readonly interrupted: Effect.Effect<void>
}

export interface TerminalChannel extends Channel.Channel {
  /** Tells the failure of the turn that runs now, before its output is published. */
  readonly turnFailed: (error: TurnError.TurnError) => Effect.Effect<void>
  /** Whether a turn has ended without success, or a line could not be read. */
  readonly hasFailed: () => boolean
}

const ending = (output: TurnOutput.TurnOutput, error: TurnError.TurnError | undefined, durationMs: number): TurnText.Ending => {
  const common = { answer: "", durationMs, usage: output.usage }
  if (error?.reason._tag === "Preempted") return { ...common, word: "stopped (user, hard)", success: false }
  if (error !== undefined) return { ...common, word: `error ${error.failure.code}`, success: false, failure: error.failure }
  const stop = output.end?.stop_reason ?? "completed"
  return stop === "completed"
    ? { ...common, answer: output.text, word: stop, success: true }
    : { ...common, word: stop === "aborted" ? "stopped (graceful)" : stop, success: false }
}

export const make = (options: Options): TerminalChannel => {
  const { screen, text } = options
  let failure: TurnError.TurnError | undefined
  let hasFailed = false
  let began: number | undefined

  const sink = (event: AgentRunEvent.AgentRunEvent) =>
    Effect.tap(screen.show(text.add(event)), () =>
      event.type === "permission_request" ? options.requests?.add(event.request_id) ?? Effect.void : Effect.void)
  let lost: ChannelError.ChannelError | undefined
  const begin = () =>
    RunStream.make({
      runId: options.opening.sessionId,
      sink,
      opening: options.opening,
      lost: (error) =>
        Effect.sync(() => {
          lost ??= error
        })
    })
  let stream = begin()
  const unlessLost = Effect.suspend(() => lost === undefined ? Effect.void : Effect.fail(lost))

  const prompts = TerminalPrompts.make(options)
  const nextPrompt: Effect.Effect<Channel.NextPrompt, ChannelError.ChannelError> = Effect.gen(function*() {
    const next = yield* prompts.next
    if (next._tag === "Closed") {
      if (next.wasInterrupted) yield* options.interrupted
      return Channel.closed
    }
    began = yield* Clock.currentTimeMillis
    stream = begin()
    return Channel.ready(Prompt.fromText(next.text))
  })

  return {
    ...Channel.make({
      id: "terminal",
      nextPrompt,
      publishEvent: (event) => Effect.andThen(stream.turnEvent(event), unlessLost),
      publishOutput: (output) =>
        Effect.gen(function*() {
          const now = yield* Clock.currentTimeMillis
          const end = ending(output, failure, now - (began ?? now))
          failure = undefined
          hasFailed ||= !end.success
          yield* screen.show(text.end(end))
        })
    }),
    turnFailed: (error) =>
      Effect.sync(() => {
        failure = error
      }),
    hasFailed: () => hasFailed || prompts.hasFailed()
  }
}

