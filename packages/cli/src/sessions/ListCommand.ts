/**
 * `turnpike sessions list`: the sessions of the data directory, as they are read.
 */
import { Style } from "@turnpike/channel-terminal"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Given, isOn, one } from "../CommandLine.ts"
import * as Composition from "../Composition.ts"
import * as SessionList from "./SessionList.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"

const command = (given: Given): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const store = yield* Sessions.look(given)
    const limit = one(given, "limit")
    const isTerminal = process.stdout.isTTY === true
    const table = SessionList.make(isTerminal ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY, Style.choose(isTerminal, process.env))
    const now = yield* Clock.currentTimeMillis
    let count = 0
    const all = store === undefined ? Stream.empty : store.list
    yield* Stream.runForEachArray(limit === undefined ? all : Stream.take(all, Number(limit)), (sessions) => {
      count += sessions.length
      return SessionsProgram.write(
        isOn(given, "json")
          ? sessions.map((session) => `${JSON.stringify(SessionList.toJson(session))}\n`).join("")
          : table.rows(sessions, now)
      )
    })
    if (count === 0) Composition.say(`turnpike: there are no sessions in ${yield* Sessions.directoryOf(given)} yet; \`turnpike run\` begins one`)
    return 0
  })

export const main = (given: Given): Promise<number> => SessionsProgram.run(command(given))
