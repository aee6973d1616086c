/** A turn that a harness began by itself, as a part of the turn that is open. */
import { TurnEvent, Usage } from "@turnpike/contract"

/** An event of it, with its origin; `undefined` for its ending. `before` is what the open turn had consumed when it began. */
export const asPart = (event: TurnEvent.TurnEvent, before: Usage.Usage): TurnEvent.TurnEvent | undefined => {
  switch (event.type) {
    case "usage":
      return { ...event, data: { ...event.data, usage: Usage.sum(before, event.data.usage) } }
    case "harness/end":
      return undefined
    default:
      return TurnEvent.from(event, "background")
  }
}
