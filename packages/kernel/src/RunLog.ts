/**
 * A run's part of its session's log, in memory.
 *
 * The order is `turn/start`, `step/start`, `user/message`, what the turn brings,
 * `step/end`, `turn/end`. An event outside the turn is refused. Chunks are not
 * kept: the message after them sums them up. The log is bounded; what it could
 * not keep is counted in a notice.
 */
import { type Failure, type SessionEvent, TurnEvent, type Verdict } from "@turnpike/contract"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

export interface RunLog {
  /** Opens the turn and its first step, and writes the prompt. Once. */
  readonly begin: (turn: number, prompt: { readonly text: string; readonly source: string }) => Effect.Effect<void>
  /** Writes one event of the turn. The caller brings steps and calls in balance. */
  readonly append: (event: TurnEvent.TurnEvent) => Effect.Effect<void>
  /** Closes the turn; `failure` is written before its end. Does nothing where none is open. */
  readonly close: (verdict: Verdict.Verdict, failure?: Failure.Failure) => Effect.Effect<void>
  readonly entries: Effect.Effect<ReadonlyArray<SessionEvent.SessionEvent>>
}

/** An event of a turn as the log has it. */
const ofTurn = (event: Exclude<TurnEvent.TurnEvent, TurnEvent.TurnEnd>): SessionEvent.Body =>
  event.type === "assistant/message" || event.type === "tool/result" ? { ...event, surface_op: "append" } : event

/** The most events that are kept: 100 000. After that only those that end what is kept. */
export const defaultMaxEntries = 100_000

export const make = (options: { readonly maxEntries?: number } = {}): RunLog => {
  const maxEntries = options.maxEntries ?? defaultMaxEntries
  const entries: Array<SessionEvent.SessionEvent> = []
  /** Calls, requests and the step that are open in what is kept. */
  const open = new Set<string>()
  let notKept = 0
  let turn: number | undefined

  const write = (body: SessionEvent.Body): Effect.Effect<void> =>
    Effect.map(Clock.currentTimeMillis, (time) => {
      entries.push({ seq: entries.length, time: Math.max(0, Math.round(time)), ...body })
    })

  /** Whether an event has its place: there is room, or it ends something that is kept. */
  const isKept = (event: Exclude<TurnEvent.TurnEvent, TurnEvent.TurnEnd>): boolean => {
    const room = entries.length < maxEntries
    switch (event.type) {
      case "tool/call":
        if (room) open.add(`call ${event.data.call_id}`)
        return room
      case "tool/result":
        return open.delete(`call ${event.data.call_id}`) || room
      case "permission/request":
        if (room) open.add(`request ${event.data.request_id}`)
        return room
      case "permission/decision":
        return open.delete(`request ${event.data.request_id}`) || room
      case "step/start":
        if (room) open.add("step")
        return room
      case "step/end":
        return open.delete("step")
      case "assistant/chunk":
        return false
      default:
        return room
    }
  }

  return {
    begin: (number, prompt) =>
      Effect.suspend(() => {
        if (turn !== undefined || entries.length > 0) return Effect.die(new Error("the log's turn was begun twice"))
        turn = number
        open.add("step")
        return write({
          type: "turn/start",
          data: { turn: number, trigger: { kind: "message", source: prompt.source } }
        }).pipe(
          Effect.andThen(write({ type: "step/start", data: { step: 1 } })),
          Effect.andThen(
            write({ type: "user/message", data: { text: prompt.text, source: prompt.source }, surface_op: "append" })
          )
        )
      }),
    append: (event) =>
      Effect.suspend(() => {
        if (turn === undefined) return Effect.die(new Error(`the log was given ${event.type} outside a turn`))
        // The verdict of `turn/end` is made of it.
        if (event.type === "harness/end") return Effect.void
        if (isKept(event)) return write(ofTurn(event))
        if (event.type !== "assistant/chunk") notKept++
        return Effect.void
      }),
    close: (verdict, failure) =>
      Effect.gen(function*() {
        const number = turn
        if (number === undefined) return
        turn = undefined
        if (notKept > 0) {
          yield* write(TurnEvent.make("notice", {
            kind: "text_lost",
            message: `${notKept} events were not kept: this log holds ${maxEntries}`
          }))
        }
        if (failure !== undefined) yield* write({ type: "error", data: { code: failure.code, message: failure.message } })
        yield* write({ type: "turn/end", data: { turn: number, verdict } })
      }),
    entries: Effect.sync(() => [...entries])
  }
}
