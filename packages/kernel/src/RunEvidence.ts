/**
 * What is seen of a run while it runs: all that its verdict and result are made
 * of.
 *
 * The first request to stop divides time in two: what is seen after it is
 * remembered, but it is never a cause.
 */
import type { Failure, TurnEvent } from "@turnpike/contract"
import type * as Cancel from "./Cancel.ts"
import * as JsonDepth from "./internal/jsonDepth.ts"
import type * as Judge from "./Judge.ts"
import * as Redaction from "./Redaction.ts"
import * as TurnError from "./TurnError.ts"
import * as TurnOutput from "./TurnOutput.ts"

export interface RunEvidence {
  /** Marks the moment of the first request to stop. */
  readonly stopAsked: () => void
  readonly isStopAsked: () => boolean
  /** Marks that the turn was cut off rather than left to end itself. */
  readonly cutOff: () => void
  readonly isCutOff: () => boolean
  /** Remembers a failure, redacted and bounded; the first one counts. */
  readonly fail: (failure: Failure.Failure) => void
  readonly failure: () => Failure.Failure | undefined
  /** Whether the harness ended its turn before anybody asked for it. */
  readonly endedByItself: () => boolean
  readonly see: (event: TurnEvent.TurnEvent) => void
  readonly output: () => TurnOutput.TurnOutput
  /** Tools that did not run because they were not allowed: the harness's own list, and what was seen beside it. */
  readonly denials: () => ReadonlyArray<TurnEvent.Denial>
  readonly forJudge: (
    stops: ReadonlyArray<Cancel.Request>,
    lostTasks: ReadonlyArray<TurnEvent.BackgroundTask>
  ) => Judge.Evidence
}

/** The most characters of a failure's message: 8192. */
export const maxMessageCharacters = 8192

/** Redacts first and cuts second. A failure always says something. */
const told = (failure: Failure.Failure, redact: Redaction.Redactor): Failure.Failure => {
  const whole = redact(failure.message)
  const message = whole.length <= maxMessageCharacters ? whole : `${Redaction.head(whole, maxMessageCharacters)}…`
  return {
    ...TurnError.spoken({ ...failure, message }),
    ...(failure.data === undefined ? {} : { data: Redaction.json(JsonDepth.bound(failure.data), redact) })
  }
}

/** Joins two lists of denials without listing a call twice. */
const joined = (
  listed: ReadonlyArray<TurnEvent.Denial>,
  seen: ReadonlyArray<TurnEvent.Denial>
): ReadonlyArray<TurnEvent.Denial> => {
  const ids = new Set(listed.flatMap((denial) => denial.call_id ?? []))
  const unnamed = listed.filter((denial) => denial.call_id === undefined).map((denial) => denial.tool_name)
  const others = seen.filter((denial) => {
    if (denial.call_id !== undefined && ids.has(denial.call_id)) return false
    const same = unnamed.indexOf(denial.tool_name)
    if (same < 0) return true
    unnamed.splice(same, 1)
    return false
  })
  return [...listed, ...others]
}

export const make = (redact: Redaction.Redactor): RunEvidence => {
  let stopAsked = false
  let cutOff = false
  let ending: Judge.Evidence["ending"]
  let failure: Judge.Evidence["failure"]
  let output = TurnOutput.empty
  const denials: Array<TurnEvent.Denial> = []
  /** Calls whose result has not come. */
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
      failure ??= { failure: told(what, redact), beforeStop: !stopAsked }
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
          const call = calls.get(event.data.call_id)
          calls.delete(event.data.call_id)
          if (event.data.denied !== true) break
          denials.push({
            tool_name: call?.name ?? "unknown",
            call_id: event.data.call_id,
            ...(call?.input === undefined ? {} : { input: call.input })
          })
          break
        }
        case "harness/end":
          ending ??= { end: event.data, beforeStop: !stopAsked }
          break
        default:
          break
      }
    },
    output: () => output,
    denials: () => joined(output.end?.denials ?? [], denials),
    forJudge: (stops, lostTasks) => ({ ending, failure, stops, cutOff, lostTasks })
  }
}
