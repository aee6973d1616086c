/**
 * What is seen of a run while it runs: all that its verdict and result are made
 * of.
 *
 * The first request to stop divides time in two: what is seen after it is
 * remembered, but it is never a cause.
 */
import { Failure, TurnEvent } from "@turnpike/contract"
import type * as Cancel from "./Cancel.ts"
import type * as Judge from "./Judge.ts"
import type * as Redaction from "./Redaction.ts"
import * as TurnOutput from "./TurnOutput.ts"

export interface RunEvidence {
  /** Marks the moment of the first request to stop. */
  readonly stopAsked: () => void
  readonly isStopAsked: () => boolean
  /** Marks that the turn was cut off rather than left to end itself. */
  readonly cutOff: () => void
  readonly isCutOff: () => boolean
  /** Remembers a failure; the first one counts. */
  readonly fail: (failure: Failure.Failure) => void
  readonly failure: () => Failure.Failure | undefined
  /** Whether the harness ended its turn before anybody asked for it. */
  readonly endedByItself: () => boolean
  readonly see: (event: TurnEvent.TurnEvent) => void
  readonly output: () => TurnOutput.TurnOutput
  /** Tools that did not run because they were not allowed: the harness's own list, else what was seen. */
  readonly denials: () => ReadonlyArray<TurnEvent.Denial>
  readonly forJudge: (
    stops: ReadonlyArray<Cancel.Request>,
    lostTasks: ReadonlyArray<TurnEvent.BackgroundTask>
  ) => Judge.Evidence
}

export const make = (redact: Redaction.Redactor): RunEvidence => {
  let stopAsked = false
  let cutOff = false
  let ending: Judge.Evidence["ending"]
  let failure: Judge.Evidence["failure"]
  let output = TurnOutput.empty
  const denials: Array<TurnEvent.Denial> = []
  const calls = new Map<string, TurnEvent.Of<"tool/call">["data"]>()

  return {
    stopAsked: () => {
      stopAsked = true
    },
    isStopAsked: () => stopAsked,
    cutOff: () => {
      cutOff = true
    },
    isCutOff: () => cutOff,
    fail: (what) => {
      failure ??= { failure: { ...what, message: redact(what.message) }, beforeStop: !stopAsked }
    },
    failure: () => failure?.failure,
    endedByItself: () => ending?.beforeStop === true,
    see: (event) => {
      output = TurnOutput.add(output, event)
      switch (event.type) {
        case "tool/call":
          calls.set(event.data.call_id, event.data)
          break
        case "tool/result": {
          if (event.data.denied !== true) break
          const call = calls.get(event.data.call_id)
          denials.push({
            tool_name: call?.name ?? "unknown",
            call_id: event.data.call_id,
            ...(call?.input === undefined ? {} : { input: call.input })
          })
          break
        }
        case "harness/end":
          ending = { end: event.data, beforeStop: !stopAsked }
          break
        default:
          break
      }
    },
    output: () => output,
    denials: () => output.end?.denials ?? denials,
    forJudge: (stops, lostTasks) => ({ ending, failure, stops, cutOff, lostTasks })
  }
}
