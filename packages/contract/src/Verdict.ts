/**
 * How a turn ended, and what follows from it for a run.
 *
 * A verdict is the only thing that decides `reason`, `success` and the exit
 * code; {@link consequences} is that table. Harnesses never make verdicts: the
 * kernel's `judge` does, from their evidence.
 */
import * as Schema from "effect/Schema"
import * as Failure from "./Failure.ts"

/** Who or what asked for the end of a turn that did not end by itself. */
export const AbortCause = Schema.Literals([
  "user",
  "parent",
  "hook",
  "disposed",
  "timeout",
  "silence",
  "budget",
  "policy_violation",
  "channel_lost"
]).annotate({
  identifier: "AbortCause",
  description:
    "user: an interrupt by the person or a cancel request; parent: a termination signal or the embedding program; hook: a plugin; disposed: the session was closed; timeout: the caller's time limit; silence: the caller's silence limit; budget: the caller's token or cost limit; policy_violation: the harness broke a hard limit; channel_lost: the channel that the turn needed went away."
})
export type AbortCause = typeof AbortCause.Type

export const CancelMode = Schema.Literals(["graceful", "hard"]).annotate({
  identifier: "CancelMode",
  description:
    "graceful: the harness was asked and ended its own turn, so its session is whole; hard: the turn was cut off and its processes killed."
})
export type CancelMode = typeof CancelMode.Type

const Tag = <const T extends string>(type: T) => ({ type: Schema.Literal(type) })

export const Verdict = Schema.Union([
  Schema.Struct({ ...Tag("completed") }).annotate({ description: "The harness ended its turn by itself, without an error." }),
  Schema.Struct({ ...Tag("max-tokens") }).annotate({ description: "The answer was cut at the model's output limit." }),
  Schema.Struct({ ...Tag("max-turns") }).annotate({ description: "The harness reached its limit of model calls." }),
  Schema.Struct({ ...Tag("refusal") }).annotate({ description: "The model refused." }),
  Schema.Struct({ ...Tag("blocked"), by: Schema.String.annotateKey({ description: "The policy that rejected the prompt." }) })
    .annotate({ description: "A policy rejected the prompt before it reached a model." }),
  Schema.Struct({ ...Tag("aborted"), cause: AbortCause, mode: CancelMode }).annotate({
    description: "The turn was stopped from outside."
  }),
  Schema.Struct({ ...Tag("error"), error: Failure.Failure }).annotate({ description: "The turn failed." }),
  Schema.Struct({
    ...Tag("interrupted"),
    not_started: Schema.optionalKey(Schema.Literal(true)).annotateKey({
      description: "Present where nothing of the turn can have left for a harness or a model: its prompt waits again."
    })
  }).annotate({ description: "A crash cut the turn off. Written only by recovery." })
]).annotate({ identifier: "Verdict", description: "How a turn ended." })
export type Verdict = typeof Verdict.Type

/** Terminal reasons, from the strongest to the weakest. */
export const reasonsByRank = ["hard_cancel", "adapter_error", "timeout", "graceful_cancel", "success"] as const

export const TerminalReason = Schema.Literals(reasonsByRank).annotate({
  identifier: "TerminalReason",
  description:
    "Why a run ended. Among causes that stand at the same time the first of this list wins. `success` holds exactly when the outcome's success is true."
})
export type TerminalReason = typeof TerminalReason.Type

/** What follows from a verdict. `exitCode` is that of `turnpike run`. */
export interface Consequences {
  readonly reason: TerminalReason
  readonly success: boolean
  readonly exitCode: 0 | 3 | 130 | 143
}

const failed: Consequences = { reason: "adapter_error", success: false, exitCode: 3 }
const limit: Consequences = { reason: "timeout", success: false, exitCode: 3 }

/** Maps a verdict to the terminal reason, success and exit code of the run that it ends. */
export const consequences = (verdict: Verdict): Consequences => {
  switch (verdict.type) {
    case "completed":
      return { reason: "success", success: true, exitCode: 0 }
    case "max-tokens":
    case "max-turns":
    case "refusal":
    case "blocked":
    case "error":
    case "interrupted":
      return failed
    case "aborted":
      switch (verdict.cause) {
        case "timeout":
        case "silence":
        case "budget":
          return limit
        case "policy_violation":
          return { reason: "hard_cancel", success: false, exitCode: 3 }
        case "channel_lost":
          return failed
        case "user":
          return { reason: `${verdict.mode}_cancel`, success: false, exitCode: 130 }
        case "parent":
          return { reason: `${verdict.mode}_cancel`, success: false, exitCode: 143 }
        case "hook":
        case "disposed":
          return { reason: `${verdict.mode}_cancel`, success: false, exitCode: 3 }
      }
  }
}

const abortFailure = (cause: AbortCause, mode: CancelMode): Failure.Failure => {
  switch (cause) {
    case "timeout":
      return Failure.make("TIME_LIMIT", "the run reached its time limit and was stopped")
    case "silence":
      return Failure.make("SILENCE", "the harness was silent for longer than allowed and was stopped")
    case "budget":
      return Failure.make("BUDGET", "the run used up its budget and was stopped")
    case "policy_violation":
      return Failure.make("POLICY_VIOLATION", "the harness broke a limit that was set for it and was stopped")
    case "channel_lost":
      return Failure.make("CHANNEL_LOST", "the channel that the turn needed went away")
    case "user":
    case "parent":
    case "hook":
    case "disposed":
      return Failure.make("CANCELLED", `the run was cancelled (${cause}, ${mode})`)
  }
}

/** The failure that a verdict stands for; `undefined` for `completed` alone. */
export const failureOf = (verdict: Verdict): Failure.Failure | undefined => {
  switch (verdict.type) {
    case "completed":
      return undefined
    case "max-tokens":
      return Failure.make("MAX_TOKENS", "the answer was cut at the model's output limit")
    case "max-turns":
      return Failure.make("MAX_TURNS", "the harness reached its limit of model calls")
    case "refusal":
      return Failure.make("REFUSAL", "the model refused")
    case "blocked":
      return Failure.make("BLOCKED", `the prompt was rejected by ${verdict.by}`)
    case "aborted":
      return abortFailure(verdict.cause, verdict.mode)
    case "error":
      return verdict.error
    case "interrupted":
      return Failure.make("INTERRUPTED", "a crash cut the turn off")
  }
}
