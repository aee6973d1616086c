/**
 * Asks the person at the terminal whether a tool may run.
 *
 * One question at a time. Anything but yes is no; a turn that ends takes its
 * question back.
 */
import type { Permission, Redaction } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { KeyboardInput } from "./KeyboardInput.ts"
import { oneLine } from "./Printable.ts"

export const name = "terminal"

export interface Options {
  readonly keyboard: KeyboardInput
  /** Takes credentials out of what is asked about, before it is cut to a line. */
  readonly redact: Redaction.Redactor
  /** Completes when everything before the request has been shown. It is waited for a second at most. */
  readonly shown: (requestId: string) => Effect.Effect<void>
  /** Told when Ctrl-C was the answer: the keyboard had it, so no signal came. */
  readonly interrupted: Effect.Effect<void>
}

const patienceMillis = 1000

export const make = ({ interrupted, keyboard, redact, shown }: Options): Permission.Decider => {
  const order = Semaphore.makeUnsafe(1)
  return {
    name,
    decide: (request) =>
      Semaphore.withPermits(order, 1)(
        Effect.gen(function*() {
          const what = request.description ?? (request.input === undefined ? "" : JSON.stringify(request.input))
          yield* Effect.timeoutOption(shown(request.requestId), patienceMillis)
          const typed = yield* keyboard.question(`Allow ${oneLine(request.toolName, 80)} ${oneLine(redact(what), 200)}? [y/N] `)
          // A turn that is asked to end takes its question back, and this fiber with it.
          if (typed._tag === "Interrupt") yield* Effect.forkDetach(interrupted, { startImmediately: true })
          const isYes = typed._tag === "Line" && /^\s*y(es)?\s*$/i.test(typed.text)
          return isYes
            ? { decision: "allow" as const, reason: "the person at the terminal said yes" }
            : { decision: "deny" as const, reason: "the person at the terminal did not say yes" }
        })
      )
  }
}
