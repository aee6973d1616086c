/** The boundaries of a turn, as every writer of a log writes them. */
import type { Failure, InboxEntry, SessionEvent, Verdict } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import type { SessionStoreError } from "../SessionStore.ts"

/** A log whose turns are opened and closed. */
export interface Log {
  /** Appends one event. What opens and closes a turn, and a prompt, is on disk when it returns. */
  readonly append: (body: SessionEvent.Body) => Effect.Effect<SessionEvent.SessionEvent, SessionStoreError>
  /** Appends events in one commit: all of them, or none. */
  readonly appendAll: (bodies: ReadonlyArray<SessionEvent.Body>) => Effect.Effect<ReadonlyArray<SessionEvent.SessionEvent>, SessionStoreError>
  /** The number of the last turn that was begun; 0 before the first. */
  readonly lastTurn: () => number
  /** The number of the turn that is open; `undefined` where none is. */
  readonly openTurn: () => number | undefined
  /** What has to be written before the open turn may end, in order, its end left out. */
  readonly dangling: () => ReadonlyArray<SessionEvent.Body>
}

/** A receipt as a part of the conversation. */
const messageOf = (receipt: InboxEntry.Receipt): SessionEvent.Body => {
  const type = receipt.kind === "followup" ? "user/message" : receipt.kind === "steer" ? "steering/message" : "context/message"
  return { type, data: { text: receipt.text, source: receipt.source, receipt: receipt.id }, surface_op: "append" }
}

const startOf = (turn: number, trigger: SessionEvent.Trigger): SessionEvent.Body => ({ type: "turn/start", data: { turn, trigger } })

const claimOf = (turn: number, receipts: ReadonlyArray<InboxEntry.Receipt>): ReadonlyArray<SessionEvent.Body> =>
  receipts.length === 0 ? [] : [{ type: "inbox/claimed", data: { turn, ids: receipts.map((receipt) => receipt.id) } }]

const admissionOf = (receipts: ReadonlyArray<InboxEntry.Receipt>): ReadonlyArray<SessionEvent.Body> => [
  { type: "step/start", data: { step: 1 } },
  ...receipts.map(messageOf)
]

const write = (log: Log, bodies: ReadonlyArray<SessionEvent.Body>): Effect.Effect<void, SessionStoreError> =>
  bodies.length === 0 ? Effect.void : Effect.asVoid(log.appendAll(bodies))

/** Opens a turn and answers its number. */
export const open = (log: Log, trigger: SessionEvent.Trigger): Effect.Effect<number, SessionStoreError> =>
  Effect.suspend(() => {
    const turn = log.lastTurn() + 1
    return Effect.as(write(log, [startOf(turn, trigger)]), turn)
  })

/** Writes that the open turn takes receipts, each of which waits. */
export const claim = (log: Log, turn: number, receipts: ReadonlyArray<InboxEntry.Receipt>): Effect.Effect<void, SessionStoreError> =>
  write(log, claimOf(turn, receipts))

/** Opens the first step with what was claimed, on disk when this is done. */
export const admit = (log: Log, receipts: ReadonlyArray<InboxEntry.Receipt>): Effect.Effect<void, SessionStoreError> =>
  write(log, admissionOf(receipts))

/** Opens a turn that takes receipts, each of which waits, and admits them: all of it, or nothing. */
export const begin = (
  log: Log,
  trigger: SessionEvent.Trigger,
  receipts: ReadonlyArray<InboxEntry.Receipt>
): Effect.Effect<void, SessionStoreError> =>
  Effect.suspend(() => {
    const turn = log.lastTurn() + 1
    return write(log, [startOf(turn, trigger), ...claimOf(turn, receipts), ...admissionOf(receipts)])
  })

/**
 * Writes the end of the open turn, and before it whatever is open in it, and what
 * failed: the verdict's error, else `failure`. Does nothing where none is open.
 */
export const end = (log: Log, verdict: Verdict.Verdict, failure?: Failure.Failure): Effect.Effect<void, SessionStoreError> =>
  Effect.suspend(() => {
    const turn = log.openTurn()
    if (turn === undefined) return Effect.void
    const error = verdict.type === "error" ? verdict.error : failure
    return write(log, [
      ...log.dangling(),
      ...(error === undefined ? [] : [{ type: "error", data: { code: error.code, message: error.message } } as const]),
      { type: "turn/end", data: { turn, verdict } }
    ])
  })
