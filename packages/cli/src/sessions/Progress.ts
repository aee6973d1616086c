/**
 * How far a long work is, on one line of standard error that is gone at its end.
 *
 * Said only to a person, and only where the work takes longer than a second.
 */
import { Printable } from "@turnpike/channel-terminal"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Where the line is written. */
export interface Target {
  readonly isTTY?: boolean
  /** 0 where the terminal does not say how wide it is. */
  readonly columns?: number
  readonly write: (text: string) => unknown
}

const eraseLine = "\r\u001b[2K"
const silentMillis = 1000
const everyMillis = 200

/** Shows what `told` says from a second on until the scope closes. */
export const show = (told: () => string, target: Target = process.stderr): Effect.Effect<void, never, Scope.Scope> =>
  Effect.suspend(() => {
    if (target.isTTY !== true) return Effect.void
    let isShown = false
    const tick = Effect.sync(() => {
      isShown = true
      target.write(`${eraseLine}${Printable.oneLine(told(), Math.max(10, (target.columns || 80) - 1))}`)
    })
    return Effect.andThen(
      Effect.addFinalizer(() =>
        Effect.sync(() => {
          if (isShown) target.write(eraseLine)
        })
      ),
      Effect.forkScoped(Effect.andThen(Effect.sleep(silentMillis), Effect.forever(Effect.andThen(tick, Effect.sleep(everyMillis)))))
    ).pipe(Effect.asVoid)
  })

/** How much of a whole it is, such as ` of 12.0 MB (45 %)`; empty where the whole is not known. */
export const part = (done: number, whole: number | undefined, shown: (amount: number) => string): string =>
  whole === undefined || whole <= 0 ? "" : ` of ${shown(whole)} (${Math.min(100, Math.floor((done / whole) * 100))} %)`

/** An amount of bytes for people. */
export const bytes = (amount: number): string => amount < 1_000_000 ? `${Math.ceil(amount / 1000)} kB` : `${(amount / 1_000_000).toFixed(1)} MB`

/** A count for people, the same in every locale. */
export const count = (amount: number): string => String(amount).replace(/\B(?=(\d{3})+$)/g, ",")

/** What a session has, such as `1,204 events and 3 records of its inbox`. */
export const contents = ({ events, records }: { readonly events: number; readonly records: number }): string =>
  `${count(events)} event${events === 1 ? "" : "s"} and ${count(records)} record${records === 1 ? "" : "s"} of its inbox`
