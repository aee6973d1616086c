/**
 * Where a session can be forked: at the end of a turn. A fold over its log.
 */
import type { SessionEvent } from "@turnpike/contract"
import * as Result from "effect/Result"

interface End {
  readonly seq: number
  readonly turn: number
}

/** Why a fork cannot end there, and where it can. */
export interface Fault {
  readonly message: string
  readonly remedy: string
}

export interface Search {
  readonly add: (event: SessionEvent.SessionEvent) => void
  /** Whether what follows changes nothing any more. */
  readonly isOver: () => boolean
  /** The events that the fork has. */
  readonly seed: () => Result.Result<ReadonlyArray<SessionEvent.SessionEvent>, Fault>
}

/** Looks for the end of a turn at `at`, or for the last one. */
export const make = (sessionId: string, at: number | undefined): Search => {
  const events: Array<SessionEvent.SessionEvent> = []
  let last: End | undefined
  let following: End | undefined
  let isOver = false
  let next = 0

  const place = ({ seq, turn }: End): string => `${seq} (the end of turn ${turn})`

  const seed: Search["seed"] = () => {
    if (last !== undefined && (at === undefined || last.seq === at)) return Result.succeed(events.slice(0, last.seq + 1))
    const near = [last, following].filter((end) => end !== undefined)
    if (near.length === 0) {
      return Result.fail({
        message: `no turn of session ${sessionId} has ended, so that there is nothing to fork`,
        remedy: "Begin a session of its own: a fork has at least one turn."
      })
    }
    return Result.fail({
      message: at !== undefined && at >= next ? `the log of session ${sessionId} ends at event ${next - 1}` : `event ${at} of session ${sessionId} is not the end of a turn`,
      remedy: `A fork ends with a turn, near there at ${near.map(place).join(" or at ")}: write --at ${near[0]?.seq}${near[1] === undefined ? "" : ` or --at ${near[1].seq}`}.`
    })
  }

  return {
    add: (event) => {
      next = event.seq + 1
      if (isOver) return
      if (at === undefined || event.seq <= at) events.push(event)
      if (event.type !== "turn/end") return
      const end: End = { seq: event.seq, turn: event.data.turn }
      if (at !== undefined && event.seq > at) following = end
      else last = end
      isOver = at !== undefined && event.seq >= at
    },
    isOver: () => isOver,
    seed
  }
}
