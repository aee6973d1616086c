/**
 * A run's part of its session's log, in memory.
 *
 * Chunks are not kept: the message after them sums them up. Text whose message
 * never came is written as a partial message when the turn is closed.
 */
import { SessionEvent, TurnEvent, Verdict } from "@turnpike/contract"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

export interface RunLog {
  readonly begin: (turn: number, prompt: { readonly text: string; readonly source: string }) => Effect.Effect<void>
  readonly append: (event: TurnEvent.TurnEvent) => Effect.Effect<void>
  readonly close: (verdict: Verdict.Verdict) => Effect.Effect<void>
  readonly entries: Effect.Effect<ReadonlyArray<SessionEvent.SessionEvent>>
}

export const make = (): RunLog => {
  const entries: Array<SessionEvent.SessionEvent> = []
  let pending = ""
  let open: number | undefined

  const write = (body: SessionEvent.Body): Effect.Effect<void> =>
    Effect.map(Clock.currentTimeMillis, (time) => {
      entries.push({ seq: entries.length, time, ...body })
    })

  const flush = Effect.suspend(() => {
    const text = pending
    pending = ""
    return text === "" ? Effect.void : write(TurnEvent.make("assistant/message", { text, partial: true }))
  })

  return {
    begin: (turn, prompt) =>
      Effect.suspend(() => {
        open = turn
        return write({
          type: "turn/start",
          data: { turn, trigger: { kind: "message", source: prompt.source } }
        }).pipe(
          Effect.andThen(write({ type: "user/message", data: { text: prompt.text, source: prompt.source } }))
        )
      }),
    append: (event) => {
      switch (event.type) {
        case "assistant/chunk":
          if (event.data.kind === "text" && event.data.origin === undefined) pending += event.data.text
          return Effect.void
        case "assistant/message":
          if (event.data.origin === undefined) pending = ""
          return write(event)
        case "harness/end":
          pending = ""
          return Effect.void
        default:
          return write(event)
      }
    },
    close: (verdict) =>
      Effect.suspend(() => {
        const turn = open
        open = undefined
        return turn === undefined
          ? Effect.void
          : Effect.andThen(flush, write({ type: "turn/end", data: { turn, verdict } }))
      }),
    entries: Effect.sync(() => [...entries])
  }
}
