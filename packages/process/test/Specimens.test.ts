import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as ProcessTable from "../src/internal/processTable.ts"
import { eventually } from "./support/scenarios.ts"
import * as Specimens from "./support/specimens.ts"

/** Puts a program into `<directory>/programs` that becomes the real one when the directory has a file `gate`. */
const holdBack = (program: string, directory: string) => {
  const real = spawnSync("sh", ["-c", "command -v \"$0\"", program], { encoding: "utf8" }).stdout.trim()
  const script = `#!/bin/sh\nwhile [ ! -e "${directory}/gate" ]; do sleep 0.02; done\nexec ${real} "$@"\n`
  fs.writeFileSync(path.join(directory, "programs", program), script, { mode: 0o755 })
}

/** An agent whose tools get away only when the directory has a file `gate`. */
const slowAgent = Effect.acquireRelease(
  Effect.sync(() => {
    const directory = Specimens.makeDirectory("slow")
    Specimens.touch(directory, Specimens.escaped)
    fs.mkdirSync(path.join(directory, "programs"))
    for (const program of ["setsid", "env"]) holdBack(program, directory)
    const agent = spawn("sh", ["-c", `${Specimens.escapes} while :; do sleep 0.05; done`], {
      env: { ...process.env, PATH: `${path.join(directory, "programs")}${path.delimiter}${process.env["PATH"]}`, [Specimens.variable]: directory },
      stdio: "ignore",
      detached: true
    })
    return { directory, pid: agent.pid! }
  }),
  ({ directory, pid }) =>
    Effect.sync(() => {
      process.kill(-pid, "SIGKILL")
      Specimens.end(Specimens.alive(directory))
      fs.rmSync(directory, { recursive: true, force: true })
    })
)

describe.skipIf(process.platform !== "linux")("a specimen that gets away", () => {
  it.live("has its name when it has left the group, and not while it is about to", () =>
    Effect.scoped(Effect.gen(function*() {
      const { directory, pid } = yield* slowAgent
      const alive = () => Specimens.alive(directory)
      const named = () => Specimens.names(directory, alive())
      const table = ProcessTable.ofThisMachine()

      // All of them are on their way: their command lines end as they will when they have arrived.
      yield* eventually(() => Specimens.escaped.every((name) => alive().some(({ command }) => command.endsWith(`tail -f ${directory}/${name}`))))
      yield* eventually(() => named().length > 0)
      assert.deepStrictEqual(named(), ["plain"])

      fs.writeFileSync(path.join(directory, "gate"), "")
      yield* eventually(() => named().length === Specimens.escaped.length)
      assert.deepStrictEqual(named(), Specimens.escaped)
      const inGroup = alive().filter((one) => table.row(one.pid)?.group === pid)
      assert.deepStrictEqual(Specimens.names(directory, inGroup), ["plain"])
    })), 30_000)
})
