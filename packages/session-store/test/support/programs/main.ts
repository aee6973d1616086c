/** The programs of the tests, in one file, so that they are bundled once: `main.js NAME ARGUMENTS`, the latter in JSON. */
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { faults } from "./faults.ts"
import { fullDisk } from "./fullDisk.ts"
import { hold } from "./holder.ts"
import { lag } from "./lag.ts"
import { write } from "./writer.ts"

const [, , name = "", given = "{}"] = process.argv
// Each program is given what its caller knows that it takes.
const args = JSON.parse(given)
const programs: Readonly<Record<string, () => Effect.Effect<unknown, unknown>>> = {
  writer: () => write(args),
  holder: () => hold(args),
  faults: () => faults(args),
  "full-disk": () => fullDisk(args),
  lag: () => lag(args)
}
const program = programs[name]
if (program === undefined) throw new Error(`there is no program ${name}`)
// Standard output is for what the programs answer.
await Effect.runPromise(Effect.provide(program(), Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])))
