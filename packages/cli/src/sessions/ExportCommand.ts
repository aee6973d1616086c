/**
 * `turnpike sessions export`: a whole session as lines, on standard output or in a
 * file.
 */
import { Interchange } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Given, isOn, one } from "../CommandLine.ts"
import * as Composition from "../Composition.ts"
import { refuse, type Refusal } from "../Refusal.ts"
import * as ExportFile from "./ExportFile.ts"
import * as Progress from "./Progress.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"

/** The file that the flags name; `undefined` for standard output. */
const fileOf = (given: Given): Effect.Effect<string | undefined, Refusal> => {
  const output = one(given, "output")
  if (output !== undefined && output !== "-") return Effect.succeed(output)
  for (const [flag, why] of [["json", "tells of the file"], ["force", "replaces the file"]] as const) {
    if (isOn(given, flag)) {
      return Effect.fail(refuse("USAGE", `--${flag} ${why} that --output names, and the session goes to standard output`, {
        remedy: `Name a file with --output, or leave out --${flag}.`
      }))
    }
  }
  return Effect.undefined
}

/** Sends all lines of a session to whoever takes them. */
const send = ({ id, store }: Sessions.Found, take: (text: string) => Effect.Effect<void, SessionsProgram.Problem>, isShown: boolean) =>
  Effect.scoped(Effect.gen(function*() {
    let lines = 0
    let bytes = 0
    let last = ""
    if (isShown) yield* Progress.show(() => `session ${id}: ${Progress.count(lines)} lines, ${Progress.bytes(bytes)}`)
    const pieces = Stream.mapError(Interchange.lines(store, id), (error) => error.failure.code === "SESSION_UNKNOWN" ? Sessions.deleted(id) : error)
    yield* Stream.runForEach(pieces, (piece) =>
      Effect.map(take(piece), () => {
        for (let at = piece.indexOf("\n"); at >= 0; at = piece.indexOf("\n", at + 1)) lines++
        bytes += Buffer.byteLength(piece)
        last = piece
      }))
    const { events, records } = JSON.parse(last) as Pick<Interchange.Imported, "events" | "records">
    return { events, records, bytes }
  }))

const command = (given: Given, [asked = ""]: ReadonlyArray<string>): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const output = yield* fileOf(given)
    const found = yield* Sessions.find({ command: "sessions export", given }, asked)
    const { id } = found
    if (output === undefined) {
      // A line about the lines would stand among them.
      yield* send(found, SessionsProgram.write, process.stdout.isTTY !== true)
      return 0
    }
    const file = yield* ExportFile.open(output, { force: isOn(given, "force"), dataDirectory: yield* Sessions.directoryOf(given) })
    const { bytes, events, records } = yield* send(found, file.write, true)
    yield* file.complete
    if (isOn(given, "json")) {
      yield* SessionsProgram.afterwards(SessionsProgram.writeJson({ id, file: file.path, events, records, bytes }), `session ${id} is in ${output}`)
    }
    else Composition.say(`turnpike: session ${id} is in ${output}: ${Progress.contents({ events, records })}, ${Progress.bytes(bytes)}; \`turnpike sessions import\` puts it in elsewhere`)
    return 0
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => SessionsProgram.run(command(given, positionals))
