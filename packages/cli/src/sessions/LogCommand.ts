/**
 * `turnpike sessions log`: the events of a session, those that are there and, with
 * `--follow`, those that are still to come.
 */
import { Style } from "@turnpike/channel-terminal"
import type { SessionEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { type Given, isOn, one } from "../CommandLine.ts"
import { refuse, type Refusal } from "../Refusal.ts"
import * as LogText from "./LogText.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"

/** The format that flags choose, else text on a terminal and events elsewhere. */
const format = (given: Given): Effect.Effect<"events" | "text", Refusal> => {
  const chosen = one(given, "format")
  const json = one(given, "json")
  if (chosen !== undefined && json !== undefined) {
    return Effect.fail(refuse("USAGE", "--format and --json each give the format", { remedy: "Leave out --json." }))
  }
  const isText = chosen === undefined ? (json === undefined ? process.stdout.isTTY === true : json === "false") : chosen === "text"
  return Effect.succeed(isText ? "text" : "events")
}

const line = (event: SessionEvent.SessionEvent): string => `${JSON.stringify(event)}\n`

/**
 * Fails where the log has no such event: nobody can have seen it, so that the number is
 * of another session, or of one that had this id before, and would hide events.
 */
const ifThere = (found: Sessions.Found, seq: number): Effect.Effect<void, SessionsProgram.Problem> =>
  Effect.gen(function*() {
    const { id, store } = found
    if (Option.isSome(yield* Stream.runHead(store.read(id, seq)))) return
    const { events } = yield* Sessions.summaryOf(found)
    if (seq < events) return
    return yield* refuse("USAGE", events === 0 ? `session ${id} has no event yet` : `the log of session ${id} ends at event ${events - 1}, and --after is ${seq}`, {
      remedy: "Leave out --after to read from the beginning."
    })
  })

const command = (given: Given, [asked = ""]: ReadonlyArray<string>): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const isText = (yield* format(given)) === "text"
    const found = yield* Sessions.find({ command: "sessions log", given }, asked)
    const { header, id, store } = found
    const after = one(given, "after") === undefined ? -1 : Number(one(given, "after"))
    if (after >= 0) yield* ifThere(found, after)
    const events = isOn(given, "follow")
      ? Stream.mapError(store.follow(id, after), (error) =>
        error.failure.code === "SESSION_UNKNOWN"
          ? refuse("SESSION_UNKNOWN", `session ${id} was deleted`, { remedy: "Nothing more comes. `turnpike sessions list` lists those that there are." })
          : error)
      : store.read(id, after)
    if (!isText) {
      yield* Stream.runForEachArray(events, (some) => SessionsProgram.write(some.map(line).join("")))
      return 0
    }
    const text = LogText.make(Style.choose(process.stdout.isTTY === true, process.env))
    if (after < 0) yield* SessionsProgram.write(text.header(header))
    yield* Stream.runForEachArray(events, (some) => SessionsProgram.write(some.map(text.add).join("")))
    yield* SessionsProgram.write(text.end())
    return 0
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => SessionsProgram.run(command(given, positionals))
