/**
 * Puts a message into a session's inbox, and says who is going to take it.
 */
import type { InboxEntry } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type Given, isOn } from "../CommandLine.ts"
import * as Composition from "../Composition.ts"
import * as Moment from "./Moment.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"

/** How a run is called that holds a session; see `Store.holder`. */
const runs = "turnpike run "

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
  // A run does its one task, and takes with it what waits for the next step alone.
  if (holder.name.startsWith(runs)) {
    return kind === "followup"
      ? `${held} for one task: the prompt waits until ${goOn} takes it`
      : `${held} for one task, which has begun: the next turn takes it`
  }
  switch (kind) {
    case "followup":
      return `${held}, and takes it after the turns before it`
    case "steer":
      return `${held}, and takes it at the next step of the turn that runs, or else with the next turn`
    case "inject":
      return `${held}, and takes it with the next step`
  }
}

/** Who holds the session, and whether the message waits still. */
const look = (found: Sessions.Found, receiptId: InboxEntry.ReceiptId) =>
  Effect.gen(function*() {
    const holder = yield* Sessions.holderOf(found)
    const pending = yield* found.store.pending(found.id)
    return { holder, waits: [...pending.nextTurn, ...pending.nextStep].some(({ id }) => id === receiptId) }
  })

/** Receives the message durably and prints its receipt: the id alone, or all of it as JSON. */
export const send = (given: Given, found: Sessions.Found, message: SessionStore.Message): Effect.Effect<number, SessionsProgram.Problem> =>
  Effect.gen(function*() {
    const { id, store } = found
    const { isNew, receipt } = yield* store.receive(id, message)
    // It is received by now, and whoever is told that it was not would send it again.
    const looked = yield* Effect.result(look(found, receipt.id))
    const what = isNew ? "it was received" : "it was received before under this key, and is the same message"
    const said = `receipt ${receipt.id} of session ${id}: ${what}`
    if (isOn(given, "json")) {
      const report = SessionsProgram.writeJson({
        session_id: id,
        receipt,
        is_new: isNew,
        ...(Result.isFailure(looked) ? {} : {
          waits: looked.success.waits,
          holder: looked.success.holder === undefined ? null : { name: looked.success.holder.name, since: looked.success.holder.since }
        })
      })
      yield* SessionsProgram.afterwards(report, said)
      return 0
    }
    yield* SessionsProgram.afterwards(SessionsProgram.write(`${receipt.id}\n`), said)
    const next = Result.isFailure(looked) ? `what becomes of it could not be looked up: ${looked.failure.failure.message}` : fate(found, message, looked.success)
    Composition.say(`turnpike: ${said}; ${next}`)
    return 0
  })
