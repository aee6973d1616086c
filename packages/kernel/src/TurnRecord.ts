/**
 * The events of the turn that was begun last, as its session's log has them.
 *
 * For those who tell a turn as a whole. Chunks are left out: the message after
 * them sums them up. What is kept is bounded and in balance; the log has it all.
 */
import type { SessionEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SessionLog } from "./SessionLog.ts"

export interface TurnRecord {
  /** The events of a turn, in order; none where it is not the one that was begun last. */
  readonly entries: (turn: number) => ReadonlyArray<SessionEvent.SessionEvent>
  /** How many events of that turn were not kept, chunks not counted. */
  readonly notKept: () => number
}

/** The most events that are kept of a turn: 100 000. After that only those that end what is kept. */
export const defaultMaxEntries = 100_000

/** Takes down each turn of a log from now on, until the scope closes. */
export const make = (
  log: Pick<SessionLog, "observe">,
  options: { readonly maxEntries?: number } = {}
): Effect.Effect<TurnRecord, never, Scope.Scope> => {
  const maxEntries = options.maxEntries ?? defaultMaxEntries
  let entries: Array<SessionEvent.SessionEvent> = []
  /** Calls, requests and the step that are open in what is kept. */
  const open = new Set<string>()
  let number: number | undefined
  let notKept = 0

  /** Whether an event has its place: there is room, or it ends something that is kept. */
  const isKept = (event: SessionEvent.SessionEvent): boolean => {
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
      case "turn/end":
        return true
      default:
        return room
    }
  }

  return Effect.as(
    log.observe((event) =>
      Effect.sync(() => {
        if (event.type === "assistant/chunk") return
        if (event.type === "turn/start") {
          entries = []
          open.clear()
          notKept = 0
          number = event.data.turn
        }
        if (isKept(event)) entries.push(event)
        else notKept++
      })
    ),
    {
      entries: (turn) => turn === number ? [...entries] : [],
      notKept: () => notKept
    }
  )
}
