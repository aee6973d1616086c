/**
 * A way in and out: it gives prompts and takes outputs.
 *
 * This is the port up. A value known only as `Channel` can be driven.
 */
import type { TurnEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as ChannelError from "./ChannelError.ts"
import type { Prompt } from "./Prompt.ts"
import type * as TurnOutput from "./TurnOutput.ts"

/** Names a channel, in any string. */
export const ChannelId = Schema.String.pipe(Schema.brand("ChannelId"))
export type ChannelId = typeof ChannelId.Type

/** What a channel answers when it is asked for a prompt. */
export type NextPrompt =
  | { readonly _tag: "Ready"; readonly prompt: Prompt }
  /** There is nothing to run now. */
  | { readonly _tag: "Idle" }
  /** There will never be anything again; answered once. */
  | { readonly _tag: "Closed" }

export const ready = (prompt: Prompt): NextPrompt => ({ _tag: "Ready", prompt })
export const idle: NextPrompt = { _tag: "Idle" }
export const closed: NextPrompt = { _tag: "Closed" }

export interface Channel {
  readonly id: ChannelId
  /** Answers at once or when there is something to say; `Idle` instead of spinning. */
  readonly nextPrompt: Effect.Effect<NextPrompt, ChannelError.ChannelError>
  /** Delivers a finished turn's output. A failure ends the loop: output is never dropped silently. */
  readonly publishOutput: (output: TurnOutput.TurnOutput) => Effect.Effect<void, ChannelError.ChannelError>
  /** For channels that show a turn while it runs. */
  readonly publishEvent?: (event: TurnEvent.TurnEvent) => Effect.Effect<void, ChannelError.ChannelError>
  /**
   * Completes when there may be something to do, also where that came about since
   * the last answer. Without it an idle channel is asked again after a short wait.
   */
  readonly wake?: Effect.Effect<void>
}

/** Makes a channel that keeps outputs to itself unless told how to publish them. The given object is read at each use. */
export const make = (
  channel: Omit<Channel, "id" | "publishOutput"> & {
    readonly id: string
    readonly publishOutput?: Channel["publishOutput"]
  }
): Channel => ({
  id: ChannelId.make(channel.id),
  // Delegation instead of a copy: what is given may be an instance whose methods need their `this`.
  nextPrompt: Effect.suspend(() => channel.nextPrompt),
  publishOutput: (output) => channel.publishOutput?.(output) ?? Effect.void,
  ...(channel.publishEvent === undefined
    ? {}
    : { publishEvent: (event: TurnEvent.TurnEvent) => channel.publishEvent?.(event) ?? Effect.void }),
  ...(channel.wake === undefined ? {} : { wake: Effect.suspend(() => channel.wake ?? Effect.void) })
})
