/**
 * Asks the person at the terminal whether a tool may run.
 *
 * One question at a time. Anything but yes is no; a turn that ends takes its
 * question back.
 */
import type { Permission } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { KeyboardInput } from "./KeyboardInput.ts"
import { oneLine } from "./Printable.ts"

export const name = "terminal"

/** `interrupted` is told when Ctrl-C was the answer: the keyboard had it, so no signal came. */
export const make = (keyboard: KeyboardInput, interrupted: Effect.Effect<void>): Permission.Decider => {
  const order = Semaphore.makeUnsafe(1)
  return {
    name,
    decide: (request) =>
      Semaphore.withPermits(order, 1)(
        Effect.gen(function*() {
          const what = request.description ?? (request.input === undefined ? "" : JSON.stringify(request.input))
          const typed = yield* keyboard.question(`Allow ${oneLine(request.toolName, 80)} ${oneLine(what, 200)}? [y/N] `)
          if (typed._tag === "Interrupt") yield* interrupted
          const isYes = typed._tag === "Line" && /^\s*y(es)?\s*$/i.test(typed.text)
          return isYes
            ? { decision: "allow" as const, reason: "the person at the terminal said yes" }
            : { decision: "deny" as const, reason: "the person at the terminal did not say yes" }
        })
      )
  }
}
