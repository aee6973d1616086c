/**
 * Why a channel could not give a prompt or take an output.
 */
import { Failure } from "@turnpike/contract"
import * as Schema from "effect/Schema"

/** No prompt could be received. */
export class Recv extends Schema.TaggedError<Recv>()("Recv", { detail: Schema.String }) {
  override get message() {
    return `channel receive error: ${this.detail}`
  }
}

/** An output could not be published. It is not known to have arrived. */
export class Publish extends Schema.TaggedError<Publish>()("Publish", { detail: Schema.String }) {
  override get message() {
    return `channel publish error: ${this.detail}`
  }
}

/** The channel's transport broke. */
export class Io extends Schema.TaggedError<Io>()("Io", {
  detail: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message() {
    return `channel I/O error: ${this.detail}`
  }
}

export class ChannelError extends Schema.TaggedError<ChannelError>()("ChannelError", {
  reason: Schema.Union([Recv, Publish, Io])
}) {
  override get message() {
    return this.reason.message
  }
  /** The failure as the contract tells it. */
  get failure(): Failure.Failure {
    return Failure.make("CHANNEL_LOST", this.reason.message)
  }
}

export const recv = (detail: string): ChannelError => new ChannelError({ reason: new Recv({ detail }) })
export const publish = (detail: string): ChannelError => new ChannelError({ reason: new Publish({ detail }) })
export const io = (detail: string, cause?: unknown): ChannelError =>
  new ChannelError({ reason: new Io(cause === undefined ? { detail } : { detail, cause }) })
