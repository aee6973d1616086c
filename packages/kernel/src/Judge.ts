/**
 * Makes the verdict of a turn, from evidence alone.
 *
 * It is the only place that does, for every harness. What follows our own first
 * request to stop is never a cause: a clean exit after it is no success, a
 * failure after it no failure. A terminal record read before it stands. Among
 * causes that stand, the order of terminal reasons decides.
 */
import { Failure, type TurnEvent, Verdict } from "@turnpike/contract"
import * as Cancel from "./Cancel.ts"
import * as Redaction from "./Redaction.ts"

export interface Evidence {
  /** The harness's own ending, and whether it was read before the first request to stop. */
  readonly ending?: { readonly end: TurnEvent.TurnEnd["data"]; readonly beforeStop: boolean } | undefined
  /** The run's first failure, and whether it came before the first request to stop. */
  readonly failure?: { readonly failure: Failure.Failure; readonly beforeStop: boolean } | undefined
  /** Requests to stop, in order. */
  readonly stops: ReadonlyArray<Cancel.Request>
  /** Whether the turn was cut off rather than left to end itself. */
  readonly cutOff: boolean
  /** Tasks that were killed although the caller wanted to wait for them. */
  readonly lostTasks: ReadonlyArray<TurnEvent.BackgroundTask>
}

const error = (failure: Failure.Failure): Verdict.Verdict => ({ type: "error", error: failure })

/** A broken limit is not just a failure: the adapter stopped the harness for it, on the caller's behalf. */
const ofFailure = (failure: Failure.Failure): Verdict.Verdict =>
  failure.code === "POLICY_VIOLATION" ? { type: "aborted", cause: "policy_violation", mode: "hard" } : error(failure)

const isNoAnswer = (end: TurnEvent.TurnEnd["data"]): boolean => end.text.trim() === "" && !end.worked

/** What the harness's own record says, apart from everything around it. */
const ofEnding = (end: TurnEvent.TurnEnd["data"]): Verdict.Verdict => {
  switch (end.stop_reason) {
    case "max-tokens":
    case "max-turns":
    case "refusal":
      return { type: end.stop_reason }
    case "aborted":
      // Nobody of ours asked: something within the harness did.
      return { type: "aborted", cause: "hook", mode: "graceful" }
    case "completed":
      if (end.exit_code !== undefined && end.exit_code !== 0) {
        return error(
          Failure.make("HARNESS_FAILED", `the harness reported success and then exited with code ${end.exit_code}`)
        )
      }
      return isNoAnswer(end)
        ? error(Failure.make("EMPTY_RESPONSE", "the harness ended its turn without an answer and without work"))
        : { type: "completed" }
  }
}

const maxNamed = 5

const backgroundKilled = (tasks: Evidence["lostTasks"]): Verdict.Verdict => {
  const names = tasks.slice(0, maxNamed).map((task) => Redaction.head(task.description ?? task.id, 100)).join(", ")
  const more = tasks.length > maxNamed ? ` and ${tasks.length - maxNamed} more` : ""
  return error(
    Failure.make("BACKGROUND_KILLED", `${tasks.length} background task(s) ended with the harness: ${names}${more}`)
  )
}

const outranks = (one: Verdict.Verdict, other: Verdict.Verdict): boolean => {
  const rank = (verdict: Verdict.Verdict) => Verdict.reasonsByRank.indexOf(Verdict.consequences(verdict).reason)
  return rank(one) < rank(other)
}

/** Judges a turn. */
export const judge = (evidence: Evidence): Verdict.Verdict => {
  const stop = Cancel.strongest(evidence.stops)
  const aborted: Verdict.Verdict | undefined = stop === undefined ? undefined : {
    type: "aborted",
    cause: stop.cause,
    mode: evidence.cutOff || stop.mode === "hard" ? "hard" : "graceful"
  }
  const failed = evidence.failure !== undefined && (aborted === undefined || evidence.failure.beforeStop)
    ? ofFailure(evidence.failure.failure)
    : undefined
  if (evidence.ending !== undefined && (aborted === undefined || evidence.ending.beforeStop)) {
    const ended = ofEnding(evidence.ending.end)
    if (ended.type !== "completed") return ended
    if (failed !== undefined) return failed
    if (evidence.lostTasks.length === 0) return ended
    // Stopped while the run only waited for tasks: they were killed because of the stop, not by the harness.
    return aborted ?? backgroundKilled(evidence.lostTasks)
  }
  if (aborted !== undefined) return failed !== undefined && !outranks(aborted, failed) ? failed : aborted
  return failed ?? error(Failure.make("NO_TERMINAL", "the harness stopped without saying how its turn ended"))
}
