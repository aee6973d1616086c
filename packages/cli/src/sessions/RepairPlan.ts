/**
 * What putting a session in order comes to, in sentences: what a crash had left, and
 * what is written for it. A fold over its log.
 */
import type { InboxEntry, SessionEvent } from "@turnpike/contract"
import { LogState } from "@turnpike/kernel"
import * as Result from "effect/Result"
import { brief } from "./TurnFacts.ts"

/** What opening a session writes, or has written. */
export interface Repair {
  readonly closed: ReadonlyArray<SessionEvent.SessionEvent>
  /** Bytes behind the last whole record. */
  readonly cutBytes: number
  /** The messages that wait again. */
  readonly requeued: ReadonlyArray<InboxEntry.Receipt>
}

export const isNothing = ({ closed, cutBytes, requeued }: Repair): boolean => closed.length === 0 && cutBytes === 0 && requeued.length === 0

export interface Scan {
  /** Takes the next event; answers the rule that it breaks. */
  readonly add: (event: SessionEvent.SessionEvent) => LogState.Violation | undefined
  readonly state: () => LogState.LogState
  /** The last event at which a turn ended; `undefined` where none has. */
  readonly lastTurnEnd: () => number | undefined
  /** Tools of the last turn, by call. */
  readonly tools: () => ReadonlyMap<string, string>
}

export const scan = (): Scan => {
  let state = LogState.empty()
  let lastTurnEnd: number | undefined
  const tools = new Map<string, string>()
  return {
    add: (event) => {
      const next = LogState.next(state, event)
      if (Result.isFailure(next)) return next.failure
      state = next.success
      if (event.type === "turn/start") tools.clear()
      else if (event.type === "tool/call") tools.set(event.data.call_id, brief(event.data.name))
      else if (event.type === "turn/end") lastTurnEnd = event.seq
      return undefined
    },
    state: () => state,
    lastTurnEnd: () => lastTurnEnd,
    tools: () => new Map(tools)
  }
}

/** What opening the session would write, from its log and from what its inbox has received. */
export const plan = (state: LogState.LogState, receipts: ReadonlyMap<InboxEntry.ReceiptId, InboxEntry.Receipt>): Repair => {
  const repeated = new Set([...receipts.values()].map(({ retry_of }) => retry_of))
  return {
    closed: LogState.closers(state),
    cutBytes: 0,
    // What a log claimed that was imported without its inbox is not there to be put back.
    requeued: LogState.unspent(state).flatMap((id) => repeated.has(id) ? [] : receipts.get(id) ?? [])
  }
}

const outcome = (code: SessionEvent.Of<"tool/result">["data"]["error_code"]): string =>
  code === "TOOL_NOT_STARTED" ? "it had certainly not begun" : "nobody knows what it did"

/** One sentence for each thing that is put in order, without its full stop; `isDone` says whether it was. */
export const sentences = (repair: Repair, tools: ReadonlyMap<string, string>, isDone: boolean): ReadonlyArray<string> => {
  const be = isDone ? "was" : "would be"
  const closing = repair.closed.flatMap((event): ReadonlyArray<string> => {
    switch (event.type) {
      case "turn/end": {
        const isNotStarted = event.data.verdict.type === "interrupted" && event.data.verdict.not_started === true
        return [`turn ${event.data.turn} ${be} closed as interrupted${isNotStarted ? ", of which nothing had left for the harness" : ""}`]
      }
      case "tool/result": {
        const { call_id, error_code } = event.data
        return [`${tools.get(call_id) ?? "a tool"} (call ${brief(call_id)}) ${isDone ? "was" : "would be"} given the result ${error_code}: ${outcome(error_code)}`]
      }
      case "permission/decision":
        return [`the question ${brief(event.data.request_id)} ${be} answered as cancelled`]
      default:
        return []
    }
  })
  return [
    ...(repair.cutBytes === 0 ? [] : [`${repair.cutBytes} bytes behind the last whole record ${isDone ? "were" : be} cut off`]),
    ...closing,
    ...repair.requeued.map(({ id, retry_of, text }) =>
      retry_of === undefined || !isDone
        ? `message ${id} ${be} put back into the inbox: “${brief(text)}”`
        : `message ${retry_of} was put back into the inbox as ${id}: “${brief(text)}”`
    )
  ]
}
