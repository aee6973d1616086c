/**
 * Why a turn failed.
 *
 * A failure of the turn, never an invented success. Interruption is not among
 * the reasons: it is an ending, not a failure. Messages are for people and
 * carry no credential: whoever makes one redacts first and bounds second.
 */
import { Failure } from "@turnpike/contract"
import * as Schema from "effect/Schema"

/** The harness's process could not be started or went away with a failure. */
export class Exec extends Schema.TaggedError<Exec>()("Exec", { failure: Failure.Failure }) {
  override get message() {
    return `agent turn failed: ${this.failure.message}`
  }
}

/** The connection to the harness broke. */
export class Io extends Schema.TaggedError<Io>()("Io", {
  detail: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message() {
    return `turn I/O error: ${this.detail}`
  }
  get failure(): Failure.Failure {
    return spoken(Failure.make("HARNESS_IO", this.detail))
  }
}

/** A more urgent turn took this one's place. Its process is gone. */
export class Preempted extends Schema.TaggedError<Preempted>()("Preempted", {}) {
  override get message() {
    return "turn pre-empted"
  }
  get failure(): Failure.Failure {
    return Failure.make("PREEMPTED", "the turn was pre-empted; nothing of it was published")
  }
}

/** The harness said that its turn failed, and why. Its session stays usable unless the failure says otherwise. */
export class Reported extends Schema.TaggedError<Reported>()("Reported", { failure: Failure.Failure }) {
  override get message() {
    return `agent turn failed: ${this.failure.message}`
  }
}

/** The harness stopped without saying how its turn ended. */
export class NoTerminal extends Schema.TaggedError<NoTerminal>()("NoTerminal", { detail: Schema.String }) {
  override get message() {
    return `agent turn failed: ${this.detail}`
  }
  get failure(): Failure.Failure {
    return spoken(Failure.make("NO_TERMINAL", this.detail))
  }
}

/** Why a turn failed. Recover from one kind with `Effect.catchReason`. */
export class TurnError extends Schema.TaggedError<TurnError>()("TurnError", {
  reason: Schema.Union([Exec, Io, Preempted, Reported, NoTerminal])
}) {
  override get message() {
    return this.reason.message
  }
  /** The failure as the contract tells it. */
  get failure(): Failure.Failure {
    return this.reason.failure
  }
}

/** The failure with a message, also where whoever made it had none: a failure always says something. */
export const spoken = (failure: Failure.Failure): Failure.Failure =>
  failure.message === "" ? { ...failure, message: `${failure.code}, without a message` } : failure

export const exec = (failure: Failure.Failure): TurnError => new TurnError({ reason: new Exec({ failure: spoken(failure) }) })
export const io = (detail: string, cause?: unknown): TurnError =>
  new TurnError({ reason: new Io(cause === undefined ? { detail } : { detail, cause }) })
export const preempted = (): TurnError => new TurnError({ reason: new Preempted() })
export const reported = (failure: Failure.Failure): TurnError => new TurnError({ reason: new Reported({ failure: spoken(failure) }) })
export const noTerminal = (detail: string): TurnError => new TurnError({ reason: new NoTerminal({ detail }) })
