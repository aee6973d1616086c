/**
 * The terminal as a channel: a line is a prompt, and a turn is shown while it
 * runs.
 *
 * A line that ends in a backslash goes on in the next one. `/exit` and the end
 * of input close the channel.
 */
import type { AgentRunEvent } from "@turnpike/contract"
import { Channel, ChannelError, Prompt, RunStream, type TurnError, type TurnOutput } from "@turnpike/kernel"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Screen } from "./Screen.ts"
import type { ShownRequests } from "./ShownRequests.ts"
import * as TurnText from "./TurnText.ts"

/** What was read where a prompt was asked for. */
export type Reading =
  | { readonly _tag: "Line"; readonly text: string }
  | { readonly _tag: "Interrupt"; readonly wasEmpty: boolean }
  /** A line that is no text; `why` is a sentence. */
  | { readonly _tag: "Bad"; readonly why: string }
  | { readonly _tag: "End" }

export interface Options {
  /** Asks for a line; `continued` is true for the rest of a prompt that a backslash left open. */
  readonly read: (continued: boolean) => Effect.Effect<Reading, ChannelError.ChannelError>
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

const exitCommands: ReadonlyArray<string> = ["/exit", "/quit"]

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
  let interrupts = 0

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

  const nextPrompt: Effect.Effect<Channel.NextPrompt, ChannelError.ChannelError> = Effect.gen(function*() {
    let prompt = ""
    let isOpen = false
    while (true) {
      const typed: Reading = yield* options.read(isOpen)
      if (typed._tag === "End") return Channel.closed
      if (typed._tag === "Interrupt") {
        interrupts = typed.wasEmpty && !isOpen ? interrupts + 1 : 0
        if (interrupts === 2) {
          yield* options.interrupted
          return Channel.closed
        }
        if (interrupts === 1) yield* screen.show([{ to: "aside", text: "(Ctrl-C again, Ctrl-D or /exit to leave)\n" }])
        isOpen = false
        prompt = ""
        continue
      }
      interrupts = 0
      if (typed._tag === "Bad") {
        hasFailed = true
        isOpen = false
        prompt = ""
        yield* screen.show([{ to: "aside", text: `${typed.why}; nothing was asked\n` }])
        continue
      }
      isOpen = typed.text.endsWith("\\")
      prompt += isOpen ? `${typed.text.slice(0, -1)}\n` : typed.text
      if (isOpen) continue
      if (exitCommands.includes(prompt.trim())) return Channel.closed
      if (prompt.trim() === "") {
        prompt = ""
        continue
      }
      began = yield* Clock.currentTimeMillis
      stream = begin()
      return Channel.ready(Prompt.fromText(prompt))
    }
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
    hasFailed: () => hasFailed
  }
}

