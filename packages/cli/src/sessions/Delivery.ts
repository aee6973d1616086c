/**
 * Puts a message into a session's inbox, and says who is going to take it.
 */
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import { type Given, isOn } from "../CommandLine.ts"
import * as Composition from "../Composition.ts"
import * as Moment from "./Moment.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"

/** What is to become of a message, for people. */
const fate = (
  { id }: Sessions.Found,
  { kind }: SessionStore.Message,
  { holder, waits }: { readonly holder: SessionStore.Holder | undefined; readonly waits: boolean }
): string => {
  if (!waits) return "it was taken already"
  const goOn = `\`turnpike chat --session ${id}\``
  if (holder === undefined) {
    return kind === "inject"
      ? "nobody holds the session: the next turn takes it before its prompt"
      : `nobody holds the session: it waits until ${goOn} takes it`
  }
  const held = `${holder.name} holds the session since ${Moment.format(holder.since)}`
  switch (kind) {
    case "followup":
      return `${held}; a chat takes it after the turns before it, and what holds it for one run leaves it to the next chat`
    case "steer":
      return `${held}, and takes it at the next step of the turn that runs, or else with the next turn`
    case "inject":
      return `${held}, and takes it with the next step`
  }
}

/** Receives the message durably and prints its receipt: the id alone, or all of it as JSON. */
export const send = (given: Given, found: Sessions.Found, message: SessionStore.Message): Effect.Effect<number, SessionsProgram.Problem> =>
  Effect.gen(function*() {
    const { id, store } = found
    const { isNew, receipt } = yield* store.receive(id, message)
    const holder = yield* Sessions.holderOf(found)
    const pending = yield* store.pending(id)
    const waits = [...pending.nextTurn, ...pending.nextStep].some((each) => each.id === receipt.id)
    if (isOn(given, "json")) {
      yield* SessionsProgram.writeJson({
        session_id: id,
        receipt,
        is_new: isNew,
        waits,
        holder: holder === undefined ? null : { name: holder.name, since: holder.since }
      })
      return 0
    }
    yield* SessionsProgram.write(`${receipt.id}\n`)
    // A message that is taken at once is so fast only because somebody was waiting for it.
    const what = !isNew ? "it was received before under this key, and is the same message" : !waits ? "it was received" : undefined
    Composition.say(`turnpike: receipt ${receipt.id} of session ${id}: ${what === undefined ? "" : `${what}; `}${fate(found, message, { holder, waits })}`)
    return 0
  })
