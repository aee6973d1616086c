/**
 * `turnpike sessions inject`: tells a session something, in its inbox or as a turn
 * of its own without a model call.
 */
import { InjectedTurn, SessionLog } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Given, isOn, one } from "../CommandLine.ts"
import * as Composition from "../Composition.ts"
import { refuse } from "../Refusal.ts"
import * as Store from "../Store.ts"
import * as Delivery from "./Delivery.ts"
import * as MessageText from "./MessageText.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"

const source = "user"

const asTurn = (given: Given, { id, store }: Sessions.Found, text: string): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const log = yield* SessionLog.open(store, id, Store.holder("sessions inject")).pipe(
      Sessions.withRemedy("SESSION_BUSY", "Leave out `--as turn`: the text then waits, and the next step of whoever holds the session takes it.")
    )
    const { closed } = log.writer.recovery
    if (closed.length > 0) Composition.say("turnpike: a turn that a crash had left open was closed first")
    const turn = yield* InjectedTurn.write(log, text, source)
    const said = `the text is turn ${turn} of session ${id}`
    yield* SessionsProgram.afterwards(isOn(given, "json") ? SessionsProgram.writeJson({ session_id: id, turn }) : SessionsProgram.write(`${turn}\n`), said)
    if (!isOn(given, "json")) Composition.say(`turnpike: ${said}`)
    return 0
  })

const command = (given: Given, [asked = "", argument = ""]: ReadonlyArray<string>): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const isTurn = one(given, "as") === "turn"
    const key = one(given, "key")
    if (isTurn && key !== undefined) {
      return yield* refuse("USAGE", "--key is for what goes into the inbox, and --as turn writes into the log", { remedy: "Leave out --key, or leave out --as turn." })
    }
    const found = yield* Sessions.find({ command: "sessions inject", given }, asked)
    const text = yield* MessageText.read(argument)
    return yield* isTurn
      ? asTurn(given, found, text)
      : Delivery.send(given, found, { kind: "inject", text, source, ...(key === undefined ? {} : { key }) })
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => SessionsProgram.run(command(given, positionals))
