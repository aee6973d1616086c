import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as ProcessTable from "../src/internal/processTable.ts"
import * as Orphans from "../src/Orphans.ts"
import * as Supervisor from "../src/Supervisor.ts"
import { eventually } from "./support/scenarios.ts"
import * as Specimens from "./support/specimens.ts"
import { isRoot, stages, startDriver } from "./support/stages.ts"

const group = stages(isRoot ? "root" : "an ordinary user").find((stage) => stage.strategy === "group")!
// No other supervisor looks for this prefix, so none takes these orphans away.
const tagPrefix = `TESTORPHAN_${process.pid}_`

const untilStarted = (directory: string) =>
  eventually(() => Specimens.names(directory, Specimens.alive(directory)).join() === Specimens.escaped.join())

/** Starts an owner whose program's children get away, and waits until they have. */
const owner = Effect.acquireRelease(
  Effect.gen(function*() {
    const directory = Specimens.makeDirectory("orphans")
    Specimens.touch(directory, Specimens.escaped)
    const process = startDriver(group, { mode: "hold", names: [], concurrency: 1, directory, tagPrefix })
    assert.isTrue(yield* untilStarted(directory))
    return { process, directory }
  }),
  ({ directory, process: owner }) =>
    Effect.sync(() => {
      owner.kill("SIGKILL")
      Specimens.end(Specimens.alive(directory))
      fs.rmSync(directory, { recursive: true, force: true })
    })
)

const childrenOf = (parent: number, word: string) => {
  const table = ProcessTable.ofThisMachine()
  return table.rows().filter((row) => row.parentPid === parent && table.command(row.pid).includes(word)).map((row) => row.pid)
}

describe.skipIf(group.missing !== undefined)("Orphans", () => {
  it.live("are killed and listed when their owner and its watchdog are dead", () =>
    Effect.scoped(Effect.gen(function*() {
      const { directory, process: dying } = yield* owner
      const [watchdog] = childrenOf(dying.pid!, "turnpike-watchdog")
      // A stopped watchdog cannot act, and a killed one would be replaced.
      process.kill(watchdog!, "SIGSTOP")
      dying.kill("SIGKILL")
      process.kill(watchdog!, "SIGKILL")
      yield* eventually(() => ProcessTable.ofThisMachine().row(dying.pid!)?.zombie !== false)
      assert.isTrue(yield* untilStarted(directory))

      const report = yield* Orphans.reap({ tagPrefix, redact: (text) => text.replace("plain", "•") })

      assert.deepStrictEqual(report.survivors, [])
      assert.deepStrictEqual(Specimens.alive(directory), [])
      assert.deepStrictEqual(Specimens.names(directory, report.killed), ["bare", "daemon", "setsid"])
      assert.strictEqual(report.killed.filter(({ command }) => command.endsWith("/•")).length, 1)
      assert.deepStrictEqual(yield* Orphans.reap({ tagPrefix }), { killed: [], survivors: [] })
    })), 30_000)

  it.live("are not what a living owner has", () =>
    Effect.scoped(Effect.gen(function*() {
      const { directory } = yield* owner
      const tails = () => Specimens.alive(directory).filter(({ command }) => command.startsWith("tail "))
      const before = tails()
      assert.deepStrictEqual(yield* Orphans.reap({ tagPrefix }), { killed: [], survivors: [] })
      assert.deepStrictEqual([before.length, tails()], [4, before])
    })), 30_000)

  it.live("are nobody else's suspects, nor is their owner's watchdog, whatever the prefix", () =>
    Effect.scoped(Effect.gen(function*() {
      const supervisor = yield* Supervisor.make({ containment: "group", reapOrphans: false })
      const elder = yield* supervisor.spawn({ program: "sleep", args: ["60"], cwd: "/" })
      const { directory, process: dying } = yield* owner
      const [watchdog] = childrenOf(dying.pid!, "turnpike-watchdog")
      process.kill(watchdog!, "SIGSTOP")
      dying.kill("SIGKILL")
      yield* eventually(() => ProcessTable.ofThisMachine().row(watchdog!)?.parentPid === 1)

      const { suspects } = yield* elder.close
      process.kill(watchdog!, "SIGKILL")

      assert.deepStrictEqual(suspects.filter(({ command, pid }) => pid === watchdog || command.includes(directory)), [])
    })), 30_000)

  it.live("are never this process, whatever its environment says", () =>
    Effect.scoped(Effect.gen(function*() {
      // A program whose environment names an owner that is certainly dead reaps that owner's orphans.
      const child = spawn(process.execPath, [
        "--conditions=turnpike-source",
        "--input-type=module",
        "-e",
        `import * as Effect from "effect/Effect"; import * as Orphans from ${JSON.stringify(new URL("../src/Orphans.ts", import.meta.url).href)};
         console.log(JSON.stringify(await Effect.runPromise(Orphans.reap({ tagPrefix: "TESTSELF_" }))))`
      ], {
        cwd: new URL("..", import.meta.url),
        env: { ...process.env, TESTSELF_1: deadOwner() },
        stdio: ["ignore", "pipe", "inherit"]
      })
      let output = ""
      child.stdout.on("data", (chunk) => output += chunk)
      yield* eventually(() => child.exitCode !== null || child.signalCode !== null)
      assert.deepStrictEqual([child.exitCode, output.trim()], [0, "{\"killed\":[],\"survivors\":[]}"])
    })), 30_000)
})

/** The tag of an owner of this boot and namespace that no process has: pid 1 with another start time. */
const deadOwner = (): string => {
  const bootId = fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
  const namespace = /\d+/.exec(fs.readlinkSync("/proc/self/ns/pid"))![0]
  return `${bootId}.${namespace}.1.987654321987`
}
