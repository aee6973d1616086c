/**
 * Gives a planned answer: what the scripted model says, in the words of a wire
 * and with the mishaps that its scenario asks for.
 */
import * as Effect from "effect/Effect"
import type * as ModelReply from "../ModelReply.ts"
import type * as ModelWire from "../ModelWire.ts"
import type * as Exchange from "./exchange.ts"

/** Where an answer goes, and what it needs besides its content. */
export interface Place {
  readonly exchange: Exchange.Exchange
  readonly wire: ModelWire.ModelWire
  readonly head: ModelWire.Head
  readonly streams: boolean
  /** Completes when the run is released. */
  readonly passGate: Effect.Effect<void>
  /** Notes that the answer is whole, before its end is sent. */
  readonly billed: Effect.Effect<void>
}

type Reply = Extract<ModelReply.Answer, { readonly type: "reply" }>

const idHeaders = (id: string) => ({ "request-id": `req_${id}`, "x-request-id": `req_${id}` })

const refuse = ({ exchange, head, wire }: Place, failure: ModelReply.Failure): Effect.Effect<Exchange.Ending> =>
  exchange.json(
    failure.status,
    { ...idHeaders(head.id), ...(failure.retryAfterSeconds === undefined ? {} : { "retry-after": String(failure.retryAfterSeconds) }) },
    wire.failure(failure, `req_${head.id}`)
  )

const streamed = Effect.fnUntraced(function*(
  { billed, exchange, head, passGate, wire }: Place,
  { halt, paceMillis, reply }: Reply
): Effect.fn.Return<Exchange.Ending> {
  yield* exchange.open(200, { ...idHeaders(head.id), "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" })
  let sent = 0
  let words = 0
  let halted = halt === null
  for (const frame of wire.frames(reply, head)) {
    if (!halted && halt !== null && (frame.mark === "closing" || (frame.mark === "word" && words >= halt.words))) {
      halted = true
      switch (halt.act) {
        case "hang":
          return yield* Effect.never
        case "wait":
          yield* passGate
          break
        case "cut":
          return yield* exchange.cut
        case "bad_json":
          return yield* exchange.end(wire.tornFrame)
        case "error":
          return yield* exchange.end(wire.failureFrame(head, sent))
      }
    }
    yield* exchange.write(frame.text)
    sent++
    if (frame.mark === "word") {
      words++
      if (paceMillis > 0) yield* Effect.sleep(paceMillis)
    }
  }
  yield* billed
  return yield* exchange.end()
})

const whole = Effect.fnUntraced(function*(place: Place, { halt, reply }: Reply): Effect.fn.Return<Exchange.Ending> {
  const { billed, exchange, head, passGate, wire } = place
  const headers = { ...idHeaders(head.id), "content-type": "application/json" }
  const body = JSON.stringify(wire.whole(reply, head))
  const length = { "content-length": String(Buffer.byteLength(body)) }
  const half = body.slice(0, Math.floor(body.length / 2))
  switch (halt?.where === "any" ? halt.act : null) {
    case "hang":
      yield* exchange.open(200, headers)
      return yield* Effect.never
    case "wait":
      yield* exchange.open(200, headers)
      yield* passGate
      yield* billed
      return yield* exchange.end(body)
    case "cut":
      yield* exchange.open(200, { ...headers, ...length })
      yield* exchange.write(half)
      return yield* exchange.cut
    case "bad_json":
      yield* exchange.open(200, headers)
      return yield* exchange.end(half)
    case "error":
      return yield* refuse(place, { status: 529, reason: "status" })
    case null:
      yield* exchange.open(200, { ...headers, ...length })
      yield* billed
      return yield* exchange.end(body)
  }
})

/** Gives the answer to its end, or for ever where it has none. */
export const give = (place: Place, answer: ModelReply.Answer): Effect.Effect<Exchange.Ending> => {
  switch (answer.type) {
    case "reset":
      return place.exchange.reset
    case "failure":
      return refuse(place, answer.failure)
    case "reply":
      return Effect.andThen(answer.gated ? place.passGate : Effect.void, place.streams ? streamed(place, answer) : whole(place, answer))
  }
}
