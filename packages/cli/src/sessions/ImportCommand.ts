/**
 * `turnpike sessions import`: puts in a session that was exported, all or nothing.
 */
import type { Failure } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import { Interchange } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as path from "node:path"
import { type Given, isOn } from "../CommandLine.ts"
import * as Composition from "../Composition.ts"
import * as InputText from "../InputText.ts"
import { fromFailure, refuse, type Refusal } from "../Refusal.ts"
import * as ByteInput from "./ByteInput.ts"
import * as Progress from "./Progress.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"

/** The line that a failure is about, from 1. */
const lineOf = ({ data }: Failure.Failure): unknown => typeof data === "object" && data !== null && "line" in data ? data["line"] : undefined

/** Tells a failure of the file or of the store with the file's name and what became of it. */
const told = (name: string, directory: string, failure: Failure.Failure): Refusal => {
  const file = InputText.shown(name)
  switch (failure.code) {
    case "FILE_UNREADABLE":
    case "DATA_DIR_UNUSABLE":
      return fromFailure(failure)
    case "SESSION_EXISTS":
      return fromFailure({
        ...failure,
        message: `${file} was not imported: ${failure.message}, in ${directory}`,
        remedy: "The session that is there is as it was. Name another directory with --data-dir, or delete that session first."
      })
    case "SESSION_DAMAGED":
      if (lineOf(failure) === 1) {
        return fromFailure({
          ...failure,
          message: `${file} is not what \`turnpike sessions export\` writes: ${failure.message}`,
          remedy: "Nothing was put in. Name a file that it wrote, as it wrote it."
        })
      }
      return fromFailure({
        ...failure,
        message: `${file} was not imported: ${failure.message}`,
        // What the store says of a session is meant for one that is in it.
        ...(lineOf(failure) === undefined ? { remedy: "Nothing was put in. Export the session again." } : {})
      })
    default:
      return fromFailure({ ...failure, message: `${file} was not imported: ${failure.message}` })
  }
}

/** A store that is opened, and made where it is missing, when it turns out that there is something to put in. */
const late = (given: Given): Pick<SessionStore.Service, "restore"> => ({
  restore: (header, events, inbox) =>
    Effect.scoped(Effect.flatMap(
      Effect.mapError(Sessions.make(given), ({ failure }) => new SessionStore.SessionStoreError({ failure })),
      (store) => store.restore(header, events, inbox)
    ))
})

/** How far it is, for people. */
const shown = (name: string, { bytes, events, size }: { readonly bytes: number; readonly events: number; readonly size: number | undefined }): string => {
  if (bytes > 0) return `${InputText.shown(name)}: ${Progress.bytes(bytes)}${Progress.part(bytes, size, Progress.bytes)}, ${Progress.count(events)} events`
  const isTyped = name === InputText.standardInput && process.stdin.isTTY === true
  return `waiting for the lines of a session from ${InputText.shown(name)}${isTyped ? "; Ctrl-D ends them, Ctrl-C ends the waiting" : ""}`
}

const command = (given: Given, [name = ""]: ReadonlyArray<string>): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    if (name === "") {
      return yield* refuse("USAGE", "the name of the file is empty", { remedy: "Name what `turnpike sessions export` wrote, or write `-` for standard input." })
    }
    const directory = yield* Sessions.directoryOf(given)
    let bytes = 0
    const { events, header: { cwd, harness, id }, records } = yield* Effect.scoped(Effect.gen(function*() {
      let events = 0
      let size: number | undefined
      yield* Progress.show(() => shown(name, { bytes, events, size }))
      const input = yield* ByteInput.open(name)
      size = input.size
      const counted = Stream.map(input.chunks, (chunk) => {
        bytes += chunk.length
        return chunk
      })
      return yield* Interchange.restore(late(given), counted, {
        progress: (sofar) => {
          events = sofar.events
        }
      })
    })).pipe(Effect.mapError(({ failure }) => told(name, directory, failure)))
    const said = `session ${id} was put in`
    if (isOn(given, "json")) {
      const report = { id, file: name === InputText.standardInput ? null : path.resolve(name), events, records, bytes }
      yield* SessionsProgram.afterwards(SessionsProgram.writeJson(report), said)
      return 0
    }
    yield* SessionsProgram.afterwards(SessionsProgram.write(`${id}\n`), said)
    Composition.say(`turnpike: session ${id} of ${harness} in ${cwd} was put in: ${Progress.contents({ events, records })}`)
    return 0
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => SessionsProgram.run(command(given, positionals))
