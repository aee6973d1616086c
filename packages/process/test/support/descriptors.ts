/**
 * Closes a command when this process has as many files open as it may; prints how
 * many descendants were listed as killed, as survivors, and how many are alive.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import type { Strategy } from "../../src/Containment.ts"
import * as Supervisor from "../../src/Supervisor.ts"
import * as Specimens from "./specimens.ts"

/** Opens files until the system refuses; answers them. */
const exhaust = (): ReadonlyArray<number> => {
  const files: Array<number> = []
  try {
    while (true) files.push(fs.openSync("/dev/null", "r"))
  } catch {
    return files
  }
}

const program = Effect.scoped(Effect.gen(function*() {
  const directory = Specimens.makeDirectory("descriptors")
  const supervisor = yield* Supervisor.make({ containment: process.argv[2] as Strategy, reapOrphans: false })
  const child = yield* supervisor.spawn({
    program: "sh",
    args: ["-c", "trap '' TERM; setsid sleep 1000 & echo started; sleep 1000"],
    cwd: directory,
    env: { [Specimens.variable]: directory },
    closeLadder: []
  })
  while (Specimens.alive(directory).length < 3) yield* Effect.sleep(10)
  const files = exhaust()
  // The supervisor looks at the descendants now and then, by a timer.
  yield* Effect.sleep(200)
  const report = yield* child.close
  const refused = yield* Effect.flip(Effect.scoped(supervisor.spawn({ program: "true", cwd: "/" })))
  files.forEach((file) => fs.closeSync(file))
  const left = Specimens.alive(directory).length
  fs.rmSync(directory, { recursive: true })
  return { killed: report.killed.length, survivors: report.survivors.length, left, refused: refused.reason._tag }
}))

process.stdout.write(JSON.stringify(await Effect.runPromise(program)))
