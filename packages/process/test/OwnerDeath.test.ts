import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as ProcessTable from "../src/internal/processTable.ts"
import { killOwner } from "./support/ownerDeath.ts"
import * as Specimens from "./support/specimens.ts"
import { isRoot, required, stages } from "./support/stages.ts"

const watchdogsOf = (owner: number): ReadonlyArray<number> => {
  const table = ProcessTable.ofThisMachine()
  return table.rows().filter((row) => row.parentPid === owner && !row.zombie && table.command(row.pid).includes("turnpike-watchdog")).map((row) => row.pid)
}

const isRunning = (directory: string): boolean => Specimens.names(directory, Specimens.alive(directory)).join() === Specimens.escaped.join()

/** Looks every 10 ms, at most 20 s. */
const until = async (condition: () => boolean): Promise<void> => {
  const deadline = performance.now() + 20_000
  while (!condition() && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10))
}

describe("an owner killed with SIGKILL", () => {
  for (const stage of stages(isRoot ? "root" : "an ordinary user")) {
    const leftOut = stage.missing === undefined ? "" : ` (left out: ${stage.missing})`
    // The slow suite does it a hundred times, at random moments.
    it.skipIf(stage.missing !== undefined && !required)(`leaves nothing: ${stage.title}${leftOut}`, async () => {
      assert.strictEqual(stage.missing, undefined)
      const early = await killOwner(stage, 0)
      const late = await killOwner(stage, 0, (_, directory) => until(() => isRunning(directory)))
      assert.deepStrictEqual([early.survivors, late.survivors], [[], []])
      assert.isAbove(late.running, Specimens.escaped.length)
    }, 60_000)
  }

  const group = stages(isRoot ? "root" : "an ordinary user").find((stage) => stage.strategy === "group")!
  it.skipIf(group.missing !== undefined)("leaves nothing though somebody killed its watchdog before", async () => {
    const killed = new Set<number>()
    const round = await killOwner(group, 0, async (owner, directory) => {
      await until(() => isRunning(directory))
      for (const pid of watchdogsOf(owner)) {
        killed.add(pid)
        process.kill(pid, "SIGKILL")
      }
      await until(() => watchdogsOf(owner).some((pid) => !killed.has(pid)))
    })
    assert.strictEqual(killed.size, 1)
    assert.deepStrictEqual(round.survivors, [])
  }, 30_000)

  it.skipIf(process.platform !== "linux")("leaves everything where nothing is supervised: the count can see it", async () => {
    const directory = Specimens.makeDirectory("unsupervised")
    Specimens.touch(directory, Specimens.escaped)
    const child = spawn("sh", ["-c", `${Specimens.escapes} while :; do sleep 0.05; done`], {
      env: { ...process.env, [Specimens.variable]: directory },
      stdio: "ignore",
      detached: true
    })
    const running = () => Specimens.names(directory, Specimens.alive(directory))
    await until(() => isRunning(directory))
    child.kill("SIGKILL")
    await new Promise((resolve) => child.once("exit", resolve))
    assert.deepStrictEqual(running(), Specimens.escaped)
    Specimens.end(Specimens.alive(directory))
    fs.rmSync(directory, { recursive: true, force: true })
  }, 30_000)
})
