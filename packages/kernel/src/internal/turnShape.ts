/**
 * What is told of a turn, whatever its harness says: calls have unique ids and
 * an end, requests an answer, text a message that sums it up, and every model
 * call is a step.
 *
 * A turn begins with its first step open. It is one step where the harness
 * reveals none.
 */
import { TurnEvent } from "@turnpike/contract"

export interface TurnShape {
  /** What is to be told for an event, in order. `harness/end` stays the last. */
  readonly tell: (event: TurnEvent.TurnEvent) => ReadonlyArray<TurnEvent.TurnEvent>
  /** Ends all that is open. Nothing may be told afterwards. */
  readonly close: () => ReadonlyArray<TurnEvent.TurnEvent>
}

/** The most characters of a message that never came: 4 Mi. The rest of its pieces is counted. */
export const maxPendingCharacters = 4 * 1024 * 1024

/** What a tool's outcome is where nobody heard of it. */
export const outcomeUnknown = "TOOL_OUTCOME_UNKNOWN: the turn ended before the tool did"

type Origin = "turn" | "background" | "subagent" | undefined

const isOwn = (origin: Origin): boolean => origin === undefined || origin === "turn"

const withOrigin = (origin: Origin) => origin === undefined ? {} : { origin }

const note = (message: string): TurnEvent.TurnEvent => TurnEvent.make("notice", { kind: "harness_note", message })

/** `taken` holds call ids that are in use otherwise. */
export const make = (taken: ReadonlyArray<string>): TurnShape => {
  const used = new Set<string>(taken)
  /** Open calls by the id that is told. */
  const calls = new Map<string, Origin>()
  /** The id that is told by the harness's own, where they differ. */
  const renamed = new Map<string, string>()
  const requests = new Set<string>()
  let pending = ""
  let lost = 0
  let answered = false
  let step = 1
  let stepOpen = true
  let stepsRevealed = false

  const toldId = (id: string): string => renamed.get(id) ?? id

  const unique = (id: string): string => {
    let candidate = id
    for (let n = 2; used.has(candidate); n++) candidate = `${id}#${n}`
    used.add(candidate)
    if (candidate === id) renamed.delete(id)
    else renamed.set(id, candidate)
    return candidate
  }

  /** The message of the text that no message has summed up. */
  const flush = (partial: boolean): ReadonlyArray<TurnEvent.TurnEvent> => {
    const text = pending
    const missing = lost
    pending = ""
    lost = 0
    if (text === "") return []
    const message = TurnEvent.make("assistant/message", partial || missing > 0 ? { text, partial: true } : { text })
    return missing === 0 ? [message] : [
      message,
      TurnEvent.make("notice", {
        kind: "text_lost",
        message: `${missing} more characters of the message before were not kept`
      })
    ]
  }

  const endStep = (): ReadonlyArray<TurnEvent.TurnEvent> => {
    if (!stepOpen) return []
    stepOpen = false
    return [...flush(true), TurnEvent.make("step/end", { step })]
  }

  return {
    tell: (event) => {
      switch (event.type) {
        case "step/start": {
          if (!stepsRevealed && stepOpen) {
            stepsRevealed = true
            return []
          }
          stepsRevealed = true
          const before = endStep()
          step++
          stepOpen = true
          return [...before, TurnEvent.make("step/start", { step })]
        }
        case "step/end":
          stepsRevealed = true
          return endStep()
        case "assistant/chunk": {
          if (event.data.kind !== "text" || !isOwn(event.data.origin)) return [event]
          const room = maxPendingCharacters - pending.length
          pending += event.data.text.slice(0, room)
          lost += Math.max(0, event.data.text.length - room)
          return [event]
        }
        case "assistant/message":
          if (isOwn(event.data.origin)) {
            pending = ""
            lost = 0
            answered ||= event.data.text !== ""
          }
          return [event]
        case "tool/call": {
          const call_id = unique(event.data.call_id)
          calls.set(call_id, event.data.origin)
          return [{ ...event, data: { ...event.data, call_id } }]
        }
        case "tool/result": {
          const call_id = toldId(event.data.call_id)
          if (!calls.has(call_id)) return [note(`a tool ended that had not begun: ${event.data.call_id}`)]
          calls.delete(call_id)
          return [{ ...event, data: { ...event.data, call_id } }]
        }
        case "permission/request": {
          requests.add(event.data.request_id)
          const { call_id } = event.data
          return [call_id === undefined ? event : { ...event, data: { ...event.data, call_id: toldId(call_id) } }]
        }
        case "permission/decision":
          return requests.delete(event.data.request_id)
            ? [event]
            : [note(`a permission was decided that was not asked for: ${event.data.request_id}`)]
        case "harness/end": {
          const { denials, stop_reason, text } = event.data
          const end: TurnEvent.TurnEnd = {
            ...event,
            data: {
              ...event.data,
              denials: denials.map((denial) =>
                denial.call_id === undefined ? denial : { ...denial, call_id: toldId(denial.call_id) }
              )
            }
          }
          if (pending !== "") return [...flush(stop_reason !== "completed"), end]
          // A harness that answers in its ending alone has said a message all the same.
          return answered || text === "" ? [end] : [
            TurnEvent.make("assistant/message", stop_reason === "completed" ? { text } : { text, partial: true }),
            end
          ]
        }
        default:
          return [event]
      }
    },
    close: () => {
      const told: Array<TurnEvent.TurnEvent> = [...flush(true)]
      for (const request_id of requests) {
        told.push(TurnEvent.make("permission/decision", {
          request_id,
          decision: "cancelled",
          by: "turnpike",
          reason: "the turn ended before anyone answered"
        }))
      }
      for (const [call_id, origin] of calls) {
        told.push(TurnEvent.make("tool/result", {
          call_id,
          is_error: true,
          error_code: "TOOL_OUTCOME_UNKNOWN",
          output: outcomeUnknown,
          ...withOrigin(origin)
        }))
      }
      requests.clear()
      calls.clear()
      return [...told, ...endStep()]
    }
  }
}
