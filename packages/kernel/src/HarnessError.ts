/**
 * Why a harness could not open a session. Nothing is left running.
 */
import { Failure } from "@turnpike/contract"
import * as Schema from "effect/Schema"
import { spoken } from "./TurnError.ts"

/** An option that the harness cannot honour. Nothing was started. */
export class Unsupported extends Schema.TaggedError<Unsupported>()("Unsupported", {
  harness: Schema.String,
  option: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.harness} cannot honour ${this.option}: ${this.detail}`
  }
  get failure(): Failure.Failure {
    return Failure.make("UNSUPPORTED", this.message, { data: { harness: this.harness, option: this.option } })
  }
}

/** The harness's program is missing, is something else, or did not start. */
export class NotStarted extends Schema.TaggedError<NotStarted>()("NotStarted", { failure: Failure.Failure }) {
  override get message() {
    return this.failure.message
  }
}

/** The harness does not have the session that was to be continued, or cannot read what it has of it. */
export class SessionLost extends Schema.TaggedError<SessionLost>()("SessionLost", {
  harness: Schema.String,
  harnessSessionId: Schema.String,
  /** Why it cannot read it, in its own words, without credentials. */
  unreadable: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    return this.unreadable === undefined
      ? `${this.harness} has no session ${this.harnessSessionId} any more`
      : `${this.harness} cannot read its session ${this.harnessSessionId}: ${this.unreadable}`
  }
  get failure(): Failure.Failure {
    return Failure.make("SESSION_LOST", this.message)
  }
}

export class HarnessError extends Schema.TaggedError<HarnessError>()("HarnessError", {
  reason: Schema.Union([Unsupported, NotStarted, SessionLost])
}) {
  override get message() {
    return this.reason.message
  }
  /** The failure as the contract tells it. */
  get failure(): Failure.Failure {
    return this.reason.failure
  }
}

export const unsupported = (harness: string, option: string, detail: string): HarnessError =>
  new HarnessError({ reason: new Unsupported({ harness, option, detail }) })
export const notStarted = (failure: Failure.Failure): HarnessError =>
  new HarnessError({ reason: new NotStarted({ failure: spoken(failure) }) })
export const sessionLost = (harness: string, harnessSessionId: string, unreadable?: string): HarnessError =>
  new HarnessError({ reason: new SessionLost({ harness, harnessSessionId, ...(unreadable === undefined ? {} : { unreadable }) }) })
