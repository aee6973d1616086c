/**
 * `turnpike sessions send`: a durable prompt for a session that another process may
 * be running.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Given, isOn, one } from "../CommandLine.ts"
import * as Delivery from "./Delivery.ts"
import * as MessageText from "./MessageText.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"

const command = (given: Given, [asked = "", argument = ""]: ReadonlyArray<string>): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const found = yield* Sessions.find({ command: "sessions send", given }, asked)
    const text = yield* MessageText.read(argument)
    const key = one(given, "key")
    return yield* Delivery.send(given, found, {
      kind: isOn(given, "steer") ? "steer" : "followup",
      text,
      source: "user",
      ...(key === undefined ? {} : { key })
    })
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => SessionsProgram.run(command(given, positionals))
