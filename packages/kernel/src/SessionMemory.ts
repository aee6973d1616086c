/**
 * What is to be remembered of a session while its turns run.
 *
 * Whoever drives turns saves the binding before a turn begins, and again when
 * `see` says so. The harness's id may be lost with a session that the harness
 * has not written yet; once it has answered it has written it.
 */
import type { Scalars, TurnEvent } from "@turnpike/contract"
import type { Binding } from "./SessionBindings.ts"

export interface SessionMemory {
  /** The number of the turn that runs, or ran last; 0 before the first. */
  readonly turn: () => number
  readonly harnessSessionId: () => string | undefined
  /** Counts a turn that begins. */
  readonly begin: () => void
  /** Takes back the turn that was counted last: it did not begin. */
  readonly unbegin: () => void
  /** Looks at an event of the turn and returns whether there is something new to save. */
  readonly see: (event: TurnEvent.TurnEvent) => boolean
  /** What to save at this moment, in milliseconds since 1970. */
  readonly binding: (now: number) => Binding
}

/** Goes on from what is known of the session. */
export const make = (options: {
  readonly known: Binding | undefined
  readonly sessionId: Scalars.SessionId
  readonly harness: string
  readonly cwd: string
}): SessionMemory => {
  const { known } = options
  let turns = known?.turns ?? 0
  let harnessSessionId = known?.harness_session_id
  let persisted = known?.persisted ?? false

  return {
    turn: () => turns,
    harnessSessionId: () => harnessSessionId,
    begin: () => {
      turns++
    },
    unbegin: () => {
      turns--
    },
    see: (event) => {
      const before = { harnessSessionId, persisted }
      if (event.type === "session/bound") {
        // Under another id nothing is known to be written.
        if (harnessSessionId !== event.data.harness_session_id) persisted = false
        harnessSessionId = event.data.harness_session_id
      }
      // A harness that has answered has written its session; before that a resumption may find nothing.
      if (harnessSessionId !== undefined && (event.type === "assistant/message" || event.type === "harness/end")) {
        persisted = true
      }
      return before.harnessSessionId !== harnessSessionId || before.persisted !== persisted
    },
    binding: (now) => ({
      session_id: options.sessionId,
      harness: options.harness,
      ...(harnessSessionId === undefined ? {} : { harness_session_id: harnessSessionId }),
      persisted,
      cwd: options.cwd,
      turns,
      created_at: known?.created_at ?? now,
      updated_at: now
    })
  }
}
