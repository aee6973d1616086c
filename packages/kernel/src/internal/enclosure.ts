/** The boundaries of a turn, as every writer of a log writes them. */
import type { Failure, InboxEntry, SessionEvent, Verdict } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import type { SessionStoreError } from "../SessionStore.ts"

/** A log whose turns are opened and closed. */
export interface Log {
  /** Appends one event. What opens and closes a turn, and a prompt, is on disk when it returns. */
  readonly append: (body: SessionEvent.Body) => Effect.Effect<SessionEvent.SessionEvent, SessionStoreError>
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

/** Opens a turn and answers its number. */
export const open = (log: Log, trigger: SessionEvent.Trigger): Effect.Effect<number, SessionStoreError> =>
  Effect.suspend(() => {
    const turn = log.lastTurn() + 1
    return Effect.as(log.append({ type: "turn/start", data: { turn, trigger } }), turn)
  })

/** Writes that the open turn takes receipts, each of which waits. */
export const claim = (log: Log, turn: number, receipts: ReadonlyArray<InboxEntry.Receipt>): Effect.Effect<void, SessionStoreError> =>
  receipts.length === 0
    ? Effect.void
    : Effect.asVoid(log.append({ type: "inbox/claimed", data: { turn, ids: receipts.map((receipt) => receipt.id) } }))

/** Opens the first step with what was claimed, on disk when this is done. */
export const admit = (log: Log, receipts: ReadonlyArray<InboxEntry.Receipt>): Effect.Effect<void, SessionStoreError> =>
  Effect.andThen(
    log.append({ type: "step/start", data: { step: 1 } }),
    Effect.forEach(receipts, (receipt) => log.append(messageOf(receipt)), { discard: true })
  )

/**
 * Writes the end of the open turn, and before it whatever is open in it, and what
 * failed: the verdict's error, else `failure`. Does nothing where none is open.
 */
export const end = (log: Log, verdict: Verdict.Verdict, failure?: Failure.Failure): Effect.Effect<void, SessionStoreError> =>
  Effect.gen(function*() {
    const turn = log.openTurn()
    if (turn === undefined) return
    for (const body of log.dangling()) yield* log.append(body)
    const error = verdict.type === "error" ? verdict.error : failure
    if (error !== undefined) yield* log.append({ type: "error", data: { code: error.code, message: error.message } })
    yield* log.append({ type: "turn/end", data: { turn, verdict } })
  })
