/**
 * What runs one turn, given its arguments: the seam between the text mode and a
 * process. Any number of fibers may share one.
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The turn was stopped by whoever wanted another one. Its process is gone. */
export class Interrupted extends Schema.TaggedError<Interrupted>()("Interrupted", {}) {
  override get message() {
    return "the turn was interrupted"
  }
}

/** The process could not be run, or ended with a failure. The session can be continued with another turn. */
export class Failed extends Schema.TaggedError<Failed>()("Failed", {
  detail: Schema.String,
  /** Undefined where it was not started. */
  exitCode: Schema.UndefinedOr(Schema.NullOr(Schema.Int)),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message() {
    return this.detail
  }
}

/** Why a turn has no output. Recover from one kind with `Effect.catchReason`. */
export class TurnIoError extends Schema.TaggedError<TurnIoError>()("TurnIoError", { reason: Schema.Union([Interrupted, Failed]) }) {
  override get message() {
    return this.reason.message
  }
}

export const interrupted = (): TurnIoError => new TurnIoError({ reason: new Interrupted() })
export const failed = (detail: string, exitCode: number | null | undefined, cause?: unknown): TurnIoError =>
  new TurnIoError({ reason: new Failed(cause === undefined ? { detail, exitCode } : { detail, exitCode, cause }) })

export interface TurnRunner {
  /** Runs a turn to its end and answers its standard output as text. When it is interrupted, nothing is left running. */
  readonly runArgv: (argv: ReadonlyArray<string>) => Effect.Effect<string, TurnIoError>
}
