/**
 * One HTTP answer being given: the few things that a scenario does to a response
 * and its connection, as effects that wait for the network.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Effect from "effect/Effect"
import type * as ModelRequest from "../ModelRequest.ts"

export type Ending = Exclude<ModelRequest.Ending, "open">

export interface Exchange {
  /** Sends status line and headers at once, so that a client knows it was heard. */
  readonly open: (status: number, headers: Readonly<Record<string, string>>) => Effect.Effect<void>
  /** Completes when the client has room for more. */
  readonly write: (text: string) => Effect.Effect<void>
  readonly end: (text?: string) => Effect.Effect<Ending>
  /** Ends the connection behind the bytes written so far, without ending the answer. */
  readonly cut: Effect.Effect<Ending>
  /** Resets the connection. */
  readonly reset: Effect.Effect<Ending>
  readonly json: (status: number, headers: Readonly<Record<string, string>>, body: unknown) => Effect.Effect<Ending>
  readonly text: (status: number, body: string) => Effect.Effect<Ending>
  /** Runs an answer until it has ended, or its client has left. */
  readonly during: (answer: Effect.Effect<Ending>) => Effect.Effect<Ending>
}

export const make = (
  request: IncomingMessage,
  response: ServerResponse,
  onStatus: (status: number) => void
): Exchange => {
  let broken = false
  // A client that leaves makes these fail; `during` learns it from "close".
  request.on("error", () => {})
  response.on("error", () => {})

  const open: Exchange["open"] = (status, headers) =>
    Effect.sync(() => {
      response.writeHead(status, headers)
      response.flushHeaders()
      onStatus(status)
    })
  const end: Exchange["end"] = (text) =>
    Effect.callback((resume) => {
      response.end(text ?? "", () => resume(Effect.succeed("complete")))
    })
  const breakOff = (act: () => void): Effect.Effect<Ending> =>
    Effect.sync(() => {
      broken = true
      act()
      return "cut"
    })
  const whole = (status: number, headers: Readonly<Record<string, string>>, body: string) =>
    Effect.andThen(
      Effect.sync(() => {
        response.writeHead(status, { ...headers, "content-length": String(Buffer.byteLength(body)) })
        onStatus(status)
      }),
      end(request.method === "HEAD" ? undefined : body)
    )
  return {
    open,
    write: (text) =>
      Effect.callback((resume) => {
        if (response.write(text)) return resume(Effect.void)
        const drained = () => resume(Effect.void)
        response.once("drain", drained)
        return Effect.sync(() => {
          response.off("drain", drained)
        })
      }),
    end,
    // The callback of an empty write comes when the bytes before it are with the kernel.
    cut: Effect.andThen(
      Effect.callback<void>((resume) => {
        const { socket } = response
        if (socket === null) return resume(Effect.void)
        socket.write("", () => resume(Effect.void))
      }),
      breakOff(() => response.socket?.destroy())
    ),
    reset: breakOff(() => request.socket.resetAndDestroy()),
    json: (status, headers, body) => whole(status, { ...headers, "content-type": "application/json" }, JSON.stringify(body)),
    text: (status, body) => whole(status, { "content-type": "text/plain; charset=utf-8" }, body),
    during: (answer) =>
      Effect.raceFirst(
        answer,
        Effect.callback<Ending>((resume) => {
          const left = () => {
            if (!response.writableFinished) resume(Effect.succeed(broken ? "cut" : "client_left"))
          }
          if (response.destroyed || request.socket.destroyed) return left()
          response.once("close", left)
          return Effect.sync(() => {
            response.off("close", left)
          })
        })
      )
  }
}
