/**
 * Permission requests that nobody has answered yet. Each ends once: by its
 * decider, by the harness that takes it back, or as cancelled with its turn.
 */
import { TurnEvent } from "@turnpike/contract"
import type { Permission } from "@turnpike/kernel"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type * as Dialect from "../Dialect.ts"
import type * as Frame from "../Frame.ts"

/** Open permission requests by their ids; each value ends its request as cancelled. */
export type Asks = Map<string, (answerHarness: boolean) => Effect.Effect<void>>

/**
 * Puts a request to the decider, in a fiber of its own, and answers the harness.
 * A decider that breaks has not allowed anything: that counts as a denial.
 */
export const ask = (options: {
  readonly output: Extract<Dialect.Output, { _tag: "Ask" }>
  readonly open: Asks
  readonly decider: Permission.Decider
  readonly deliver: (event: Dialect.Event) => Effect.Effect<void>
  readonly send: (frame: Frame.Frame) => Effect.Effect<void>
  readonly scope: Scope.Scope
}): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { decider, deliver, open, output: { callId, preset, request, respond } } = options
    yield* deliver(TurnEvent.make("permission/request", {
      request_id: request.requestId,
      tool_name: request.toolName,
      ...(callId === undefined ? {} : { call_id: callId }),
      ...(request.input === undefined ? {} : { input: request.input }),
      ...(request.description === undefined ? {} : { description: request.description })
    }))
    let deciding: Fiber.Fiber<void> | undefined
    const settle = (outcome: Dialect.Outcome, by: string, answerHarness: boolean) =>
      Effect.suspend(() => {
        if (!open.delete(request.requestId)) return Effect.void
        return deliver(TurnEvent.make("permission/decision", {
          request_id: request.requestId,
          decision: outcome.decision,
          by,
          reason: outcome.reason
        })).pipe(Effect.andThen(
          answerHarness ? Effect.forEach(respond(outcome), options.send, { discard: true }) : Effect.void
        ))
      })
    open.set(request.requestId, (answerHarness) =>
      settle({ decision: "cancelled", reason: "the turn ended before anyone answered" }, decider.name, answerHarness).pipe(
        Effect.andThen(Effect.suspend(() => deciding === undefined ? Effect.void : Fiber.interrupt(deciding)))
      ))
    if (preset !== undefined) return yield* settle(preset, preset.by, true)
    deciding = yield* Effect.exit(decider.decide(request)).pipe(
      Effect.flatMap((exit) =>
        Exit.isSuccess(exit)
          ? settle(exit.value, decider.name, true)
          : Cause.hasInterrupts(exit.cause)
          ? Effect.void
          : settle({ decision: "deny", reason: `nobody could answer: ${Cause.pretty(exit.cause)}` }, decider.name, true)
      ),
      Effect.forkIn(options.scope)
    )
  })

/** Ends one request that the harness has taken back. */
export const withdraw = (asks: Asks, requestId: string): Effect.Effect<void> =>
  Effect.suspend(() => asks.get(requestId)?.(false) ?? Effect.void)

/** Ends all open requests as cancelled, and says so to the harness. */
export const cancelAll = (asks: Asks): Effect.Effect<void> =>
  Effect.suspend(() => Effect.forEach([...asks.values()], (cancel) => cancel(true), { discard: true }))
