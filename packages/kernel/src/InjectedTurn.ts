/** A text that is written into a log as a turn of its own, without a model call, by whoever holds the session and runs nothing. */
import { Failure, type Verdict } from "@turnpike/contract"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Enclosure from "./internal/enclosure.ts"
import { SessionStoreError } from "./SessionStore.ts"

const verdictOf = (told: Exit.Exit<unknown, SessionStoreError>): Verdict.Verdict => {
  if (Exit.isSuccess(told)) return { type: "completed" }
  const squashed = Cause.squash(told.cause)
  return {
    type: "error",
    error: squashed instanceof SessionStoreError
      ? squashed.failure
      : Failure.make("INTERNAL", `the text could not be written: ${squashed instanceof Error ? squashed.message : String(squashed)}`)
  }
}

/**
 * Writes the turn, no other being open, and answers its number; on disk when it is
 * done. Fails as the log does where the text is not in it. A turn that was begun is
 * ended then, with what failed as its verdict; where even that fails, whoever opens the
 * session next closes it.
 */
export const write = (log: Enclosure.Log, text: string, source: string): Effect.Effect<number, SessionStoreError> =>
  Effect.gen(function*() {
    const turn = yield* Enclosure.open(log, { kind: "injection", source })
    const told = yield* Effect.exit(log.append({ type: "context/message", data: { text, source }, surface_op: "append" }))
    yield* Enclosure.end(log, verdictOf(told))
    yield* told
    return turn
  }).pipe(Effect.uninterruptible)
