/**
 * What a person watches: the answer on standard output, everything else on
 * standard error, and, while a turn is silent, one line that shows the time.
 *
 * The line stands only where nothing else stands on it, and is gone before
 * anything is written. An answer that nobody takes is a failure; an aside that
 * nobody takes is not.
 */
import type { ChannelError } from "@turnpike/kernel"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Outlet } from "./Outlet.ts"
import { oneLine, printable } from "./Printable.ts"
import * as TurnText from "./TurnText.ts"

export interface Screen {
  readonly show: (pieces: ReadonlyArray<TurnText.Piece>) => Effect.Effect<void, ChannelError.ChannelError>
  /** Shows the time and what goes on, from now until the scope closes. Does nothing where standard error is no terminal. */
  readonly watch: (activity: () => string) => Effect.Effect<void, never, Scope.Scope>
}

const eraseLine = "\r\u001b[2K"
const everyMillis = 1000

export const make = (answers: Outlet, asides: Outlet): Screen => {
  const order = Semaphore.makeUnsafe(1)
  /** Whether the cursor stands at the beginning of a line of the terminal. */
  let isAtLineStart = true
  let isTimeShown = false

  const erase = Effect.suspend(() => {
    if (!isTimeShown) return Effect.void
    isTimeShown = false
    return Effect.ignore(asides.write(eraseLine))
  })

  const write = ({ text, to }: TurnText.Piece) =>
    Effect.suspend(() => {
      const outlet = to === "answer" ? answers : asides
      if (outlet.isTerminal && text !== "") isAtLineStart = text.endsWith("\n")
      // Elsewhere the answer stays what it is, to the byte.
      const written = outlet.write(to === "answer" && outlet.isTerminal ? printable(text) : text)
      return to === "answer" ? written : Effect.ignore(written)
    })

  return {
    show: (pieces) =>
      pieces.length === 0
        ? Effect.void
        : Semaphore.withPermits(order, 1)(Effect.andThen(erase, Effect.forEach(pieces, write, { discard: true }))),
    watch: (activity) =>
      Effect.gen(function*() {
        if (!asides.isTerminal) return
        const began = yield* Clock.currentTimeMillis
        const tick = Effect.gen(function*() {
          const now = yield* Clock.currentTimeMillis
          if (!isAtLineStart) return
          const line = oneLine(`${Math.round((now - began) / 1000)} s · ${activity()}`, Math.max(10, asides.columns() - 1))
          isTimeShown = true
          yield* asides.write(`${eraseLine}${line}`)
        }).pipe(Semaphore.withPermits(order, 1))
        yield* Effect.addFinalizer(() => Semaphore.withPermits(order, 1)(erase))
        yield* Effect.sleep(everyMillis).pipe(Effect.andThen(tick), Effect.forever, Effect.ignore, Effect.forkScoped)
      })
  }
}
