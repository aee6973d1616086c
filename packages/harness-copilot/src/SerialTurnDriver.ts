/**
 * One session's turns in text mode, one after the other.
 *
 * A turn holds the session from before its process starts until it has ended, so
 * two prompts at once never interleave: Copilot itself would let them, and spoil
 * the session's history.
 */
import { Failure, type Scalars, TurnEvent } from "@turnpike/contract"
import { AgentSession, type ToolAllowlist, TurnError } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { PreemptSlot } from "./PreemptSlot.ts"
import * as TurnArgv from "./TurnArgv.ts"
import type * as TurnRunner from "./TurnRunner.ts"

export interface SerialTurnDriver {
  /** Copilot's id of the session, a UUID. */
  readonly sessionId: string
  /** Runs one turn and answers its output as it was written. Fails with `PromptRefused`, nothing started, for a prompt that cannot be carried. */
  readonly runTurn: (prompt: string) => Effect.Effect<string, TurnRunner.TurnIoError | TurnArgv.PromptRefused>
}

export const make = (
  runner: TurnRunner.TurnRunner,
  sessionId: string,
  allowlist: ToolAllowlist.ToolAllowlist
): Effect.Effect<SerialTurnDriver> =>
  Effect.map(Semaphore.make(1), (lock) => ({
    sessionId,
    runTurn: (prompt) =>
      Effect.suspend((): Effect.Effect<string, TurnRunner.TurnIoError | TurnArgv.PromptRefused> => {
        const refusal = TurnArgv.refusal(prompt)
        return refusal === undefined
          ? Semaphore.withPermits(lock, 1)(runner.runArgv(TurnArgv.buildTurnArgv(sessionId, prompt, allowlist)))
          : Effect.fail(refusal)
      })
  }))

const toTurnError = (error: TurnRunner.TurnIoError | TurnArgv.PromptRefused): TurnError.TurnError => {
  if (error._tag === "PromptRefused") return TurnError.exec(Failure.make("UNSUPPORTED", error.message))
  switch (error.reason._tag) {
    case "Interrupted":
      return TurnError.preempted()
    case "Failed":
      return TurnError.exec(Failure.make(error.reason.exitCode === undefined ? "SPAWN_FAILED" : "HARNESS_FAILED", error.reason.message))
  }
}

/**
 * Makes an agent session of a driver: the whole output is the turn's text,
 * unchanged. An interrupt fires the slot, so an interrupted turn fails as
 * pre-empted; the text mode cannot ask Copilot to end its turn.
 */
export const toAgentSession = (
  driver: SerialTurnDriver,
  options: { readonly sessionId: Scalars.SessionId; readonly slot: PreemptSlot }
): AgentSession.AgentSession => ({
  sessionId: options.sessionId,
  interrupt: Effect.asVoid(options.slot.fire),
  runTurn: (prompt) =>
    Stream.unwrap(
      Effect.map(Effect.mapError(driver.runTurn(prompt.text), toTurnError), (text): Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError> =>
        Stream.fromIterable<TurnEvent.TurnEvent>([
          TurnEvent.make("step/start", { step: 1 }),
          ...(text === "" ? [] : [TurnEvent.make("assistant/chunk", { kind: "text", text })]),
          TurnEvent.make("assistant/message", { text }),
          // The text mode tells nothing about tokens, tools or reasons.
          TurnEvent.make("step/end", { step: 1 }),
          TurnEvent.make("harness/end", { stop_reason: "completed", text, worked: false, denials: [], background: [], exit_code: 0 })
        ]))
    )
})
