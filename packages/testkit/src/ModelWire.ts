/**
 * What the scripted model server needs to know about a protocol: how to read a
 * request in it, and how to say an answer or a failure in it.
 */
import type * as Result from "effect/Result"
import type * as ModelReply from "./ModelReply.ts"
import type * as ModelRequest from "./ModelRequest.ts"

/** A request body, read. A body that the vendor's service would refuse is a sentence that says why. */
export interface Reading {
  readonly model: string
  readonly stream: boolean
  readonly system: string
  readonly messages: ReadonlyArray<ModelRequest.Message>
  readonly tools: ReadonlyArray<ModelRequest.Tool>
}

/** What an answer needs besides its content. `id` is unique in the life of the server. */
export interface Head {
  readonly id: string
  readonly model: string
  readonly createdSeconds: number
  readonly usage: ModelRequest.Usage
}

/**
 * A piece of a streamed answer: one whole server-sent event. `opening`
 * frames come before the first word of text, `word` frames carry one word each.
 */
export interface Frame {
  readonly mark: "opening" | "word" | "closing"
  readonly text: string
}

export interface ModelWire {
  readonly name: ModelRequest.Wire
  readonly read: (body: unknown) => Result.Result<Reading, string>
  readonly frames: (reply: ModelReply.ModelReply, head: Head) => Iterable<Frame>
  readonly whole: (reply: ModelReply.ModelReply, head: Head) => unknown
  /** The JSON body of a refusal. */
  readonly failure: (failure: ModelReply.Failure, requestId: string) => unknown
  /** The server's own failure, reported within a stream of which `framesBefore` were sent. */
  readonly failureFrame: (head: Head, framesBefore: number) => string
  /** A server-sent event whose data is torn JSON. */
  readonly tornFrame: string
}

/** Spells one server-sent event; without a name its type is the default `message`. */
export const event = (name: string | null, data: unknown): string =>
  `${name === null ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`

/** Cuts a text into pieces, for deltas that a client must put together. */
export const pieces = (text: string, characters: number): ReadonlyArray<string> => {
  const all = Array.from(text)
  const out: Array<string> = []
  for (let at = 0; at < all.length; at += characters) out.push(all.slice(at, at + characters).join(""))
  return out
}
