/** Outlets that keep what they are given. */
import { Outlet } from "@turnpike/channel-terminal"
import { Effect } from "effect"

export const make = (isTerminal: boolean) => {
  const texts: Array<string> = []
  const outlet: Outlet.Outlet = {
    isTerminal,
    columns: () => 40,
    write: (text) =>
      Effect.sync(() => {
        texts.push(text)
      }),
    flush: Effect.void
  }
  return { outlet, text: () => texts.join("") }
}
