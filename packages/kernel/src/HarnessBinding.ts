/**
 * Under which id a harness has a session, as a fold over the session's log.
 *
 * A harness names its session before it has written it. Only once it has answered
 * is the session known to be kept, and can it be lost: until then a resumption
 * that finds nothing has lost nothing. What it was at when it was cut off it may
 * have written, in part, or not at all.
 */
import type { Failure, SessionEvent, Verdict } from "@turnpike/contract"

export interface HarnessBinding {
  /** The harness's own id, as it named it last. */
  readonly harnessSessionId: string
  /** Whether the harness is known to have written the session under this id. */
  readonly isPersisted: boolean
  /** The turn in which the harness was cut off last, as long as no later one has gone by: it may not have all of it. */
  readonly cutOffTurn?: number
}

/** Failures in which a turn ended without the harness, or of which nobody knows whether it did. */
const cutOffCodes: ReadonlySet<Failure.FailureCode> = new Set([
  "HARNESS_FAILED",
  "HARNESS_IO",
  "HARNESS_PROTOCOL",
  "INTERNAL",
  "LOG_RULE",
  "NO_TERMINAL",
  "PREEMPTED",
  "STORE_FAILED",
  "STORE_FULL"
])

/** How a harness left a turn: ended by itself; failing, as it says itself; cut off; or without having heard of it. */
const leaving = (verdict: Verdict.Verdict): "ended" | "failed" | "cut off" | "unheard" => {
  switch (verdict.type) {
    case "completed":
    case "max-tokens":
    case "max-turns":
    case "refusal":
      return "ended"
    case "aborted":
      return verdict.mode === "graceful" ? "ended" : "cut off"
    case "blocked":
      return "unheard"
    case "error":
      return cutOffCodes.has(verdict.error.code) ? "cut off" : "failed"
    case "interrupted":
      return verdict.not_started === true ? "unheard" : "cut off"
  }
}

/**
 * What shows that a harness keeps what it was told: a whole answer, a tool's own
 * result. Pieces of an answer may reach their reader before anything is written.
 */
const showsPersistence = (event: SessionEvent.SessionEvent): boolean =>
  (event.type === "assistant/message" && event.data.partial !== true) ||
  (event.type === "tool/result" && event.data.error_code === undefined)

/** The binding after one more event; `undefined` before the harness first named its session. */
export const add = (
  binding: HarnessBinding | undefined,
  event: SessionEvent.SessionEvent
): HarnessBinding | undefined => {
  if (event.type === "session/bound") {
    // Under another id nothing is known to be written.
    return binding?.harnessSessionId === event.data.harness_session_id
      ? binding
      : { harnessSessionId: event.data.harness_session_id, isPersisted: false }
  }
  if (binding === undefined) return undefined
  if (event.type !== "turn/end") {
    return binding.isPersisted || !showsPersistence(event) ? binding : { ...binding, isPersisted: true }
  }
  const { harnessSessionId, isPersisted } = binding
  switch (leaving(event.data.verdict)) {
    case "ended":
      return { harnessSessionId, isPersisted: true }
    case "failed":
      return { harnessSessionId, isPersisted }
    case "cut off":
      return { harnessSessionId, isPersisted, cutOffTurn: event.data.turn }
    case "unheard":
      return binding
  }
}
