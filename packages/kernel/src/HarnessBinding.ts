/**
 * Under which id a harness has a session, as a fold over the session's log.
 *
 * A harness names its session before it has written it. Only once it has answered
 * is the session known to be kept, and can it be lost: until then a resumption
 * that finds nothing has lost nothing.
 */
import type { SessionEvent } from "@turnpike/contract"

export interface HarnessBinding {
  /** The harness's own id, as it named it last. */
  readonly harnessSessionId: string
  /** Whether the harness is known to have written the session under this id. */
  readonly isPersisted: boolean
}

/** What shows that a harness keeps what it was told. */
const showsPersistence = (event: SessionEvent.SessionEvent): boolean => {
  switch (event.type) {
    case "assistant/message":
    case "tool/result":
      return true
    case "turn/end":
      return event.data.verdict.type === "completed" || event.data.verdict.type === "max-tokens" ||
        event.data.verdict.type === "max-turns" || event.data.verdict.type === "refusal"
    default:
      return false
  }
}

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
  return binding === undefined || binding.isPersisted || !showsPersistence(event) ? binding : { ...binding, isPersisted: true }
}
