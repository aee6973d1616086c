/**
 * Makes the verdict of a turn, from evidence alone.
 *
 * It is the only place that does, for every harness. What follows our own first
 * request to stop is never a cause: a clean exit after it is no success, a
 * failure after it no failure. A terminal record read before it stands. Among
 * causes that stand, the order of terminal reasons decides.
 */
import { Failure, TurnEvent, Verdict } from "@turnpike/contract"
import * as Cancel from "./Cancel.ts"

export interface Evidence {
  /** The harness's own ending, and whether it was read before the first request to stop. */
  readonly ending?: { readonly end: TurnEvent.TurnEnd["data"]; readonly beforeStop: boolean } | undefined
  /** The turn's failure, and whether it came before the first request to stop. */
  readonly failure?: { readonly failure: Failure.Failure; readonly beforeStop: boolean } | undefined
  /** Requests to stop, in order. */
  readonly stops: ReadonlyArray<Cancel.Request>
  /** Whether the turn was cut off rather than left to end itself. */
  readonly cutOff: boolean
  /** Tasks that were killed although the caller wanted to wait for them. */
  readonly lostTasks: ReadonlyArray<TurnEvent.BackgroundTask>
}

const error = (failure: Failure.Failure): Verdict.Verdict => ({ type: "error", error: failure })

const ofEnding = (end: TurnEvent.TurnEnd["data"], lostTasks: Evidence["lostTasks"]): Verdict.Verdict => {
  switch (end.stop_reason) {
    case "max-tokens":
    case "max-turns":
    case "refusal":
      return { type: end.stop_reason }
    case "aborted":
      return { type: "aborted", cause: "hook", mode: "graceful" }
    case "completed":
      if (end.exit_code !== undefined && end.exit_code !== 0) {
        return error(
          Failure.make("HARNESS_FAILED", `the harness reported success and then exited with code ${end.exit_code}`)
        )
      }
      if (end.text.trim() === "" && !end.worked) {
        return error(Failure.make("EMPTY_RESPONSE", "the harness ended its turn without an answer and without work"))
      }
      if (lostTasks.length > 0) {
        const names = lostTasks.map((task) => task.description ?? task.id).join(", ")
        return error(
          Failure.make("BACKGROUND_KILLED", `${lostTasks.length} background task(s) ended with the harness: ${names}`)
        )
      }
      return { type: "completed" }
  }
}

/** Judges a turn. */
export const judge = (evidence: Evidence): Verdict.Verdict => {
  const stop = Cancel.strongest(evidence.stops)
  // Stopped while the run only waited for tasks: they were killed because of the stop, not by the harness.
  const waiting = stop !== undefined && evidence.lostTasks.length > 0
  if (evidence.ending?.beforeStop === true && !waiting) return ofEnding(evidence.ending.end, evidence.lostTasks)
  if (stop !== undefined) {
    const aborted: Verdict.Verdict = {
      type: "aborted",
      cause: stop.cause,
      mode: evidence.cutOff || stop.mode === "hard" ? "hard" : "graceful"
    }
    if (evidence.failure?.beforeStop !== true) return aborted
    const rank = Verdict.reasonsByRank
    return rank.indexOf(Verdict.consequences(aborted).reason) < rank.indexOf("adapter_error")
      ? aborted
      : error(evidence.failure.failure)
  }
  if (evidence.failure !== undefined) return error(evidence.failure.failure)
  if (evidence.ending !== undefined) return ofEnding(evidence.ending.end, evidence.lostTasks)
  return error(Failure.make("NO_TERMINAL", "the harness stopped without saying how its turn ended"))
}
