import { assert, describe, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { spawnSync } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import type * as Command from "../src/Command.ts"
import * as Containment from "../src/Containment.ts"
import * as Supervisor from "../src/Supervisor.ts"
import * as Specimens from "./support/specimens.ts"
import { isRoot, stages } from "./support/stages.ts"

// Several start programs and wait for them on a machine that may be busy.
vi.setConfig({ testTimeout: 30_000 })

const linux = process.platform === "linux"
const namespaces = stages(isRoot ? "root" : "an ordinary user")[0]!.missing === undefined

/** A directory with some of this machine's programs, to be the whole PATH. */
const withPrograms = <A, E, R>(programs: ReadonlyArray<string>, use: (directory: string) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const directory = Specimens.makeDirectory("path")
      for (const program of programs) {
        const found = (process.env["PATH"] ?? "").split(path.delimiter).map((one) => path.join(one, program)).find((file) => fs.existsSync(file))
        if (found !== undefined) fs.symlinkSync(found, path.join(directory, program))
      }
      return directory
    }),
    use,
    (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true }))
  )

const writeProgram = (directory: string, name: string, script: string) =>
  fs.writeFileSync(path.join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })

const reasons = (probed: ReadonlyArray<Containment.Probed>) =>
  probed.map(({ availability }) => availability.available ? [availability.strategy] : [availability.strategy, availability.why, availability.remedy])

describe.skipIf(!linux)("Containment", () => {
  it.live("says of each strategy which program is missing and what to install", () =>
    withPrograms(["sh", "setpriv"], (directory) =>
      Effect.gen(function*() {
        assert.deepStrictEqual(reasons(yield* Containment.probe({ searchPath: directory })), [
          ["pid-namespace", "unshare and setsid not found in PATH", "install util-linux"],
          ["bwrap", "bwrap and setsid not found in PATH", "install bubblewrap and util-linux"],
          ["group", "grep not found in PATH, which the watchdog needs", "install them"]
        ])
      })))

  it.live("says in the program's words why a namespace cannot be made", () =>
    withPrograms(["sh", "setpriv", "setsid", "grep"], (directory) =>
      Effect.gen(function*() {
        writeProgram(directory, "unshare", "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1")
        writeProgram(directory, "bwrap", "exit 0")
        const probed = yield* Containment.probe({ searchPath: directory })
        assert.deepStrictEqual(reasons(probed).map((reason) => reason.slice(0, 2)), [
          ["pid-namespace", "unshare: unshare failed: Operation not permitted"],
          ["bwrap", "its programs ended with 0 instead of 42"],
          ["group"]
        ])
        assert.strictEqual(Containment.defaultOf(probed)?.strategy, "group")
      })))

  it.live.skipIf(!namespaces)("takes a pid namespace for root, and for others what takes nothing away", () =>
    Effect.gen(function*() {
      const probed = yield* Containment.probe({ searchPath: process.env["PATH"] ?? "" })
      assert.strictEqual(Containment.defaultOf(probed)?.strategy, isRoot ? "pid-namespace" : "group")
    }))
})

describe.skipIf(!linux)("Supervisor", () => {
  it.live.skipIf(!namespaces)("refuses a containment that does not work instead of taking another", () =>
    Effect.scoped(Effect.gen(function*() {
      const supervisor = yield* Supervisor.make({ tini: "/no/such/tini", reapOrphans: false })
      const error = yield* Effect.flip(supervisor.spawn({ program: "true", cwd: "/", containment: "pid-namespace" }))
      assert.strictEqual(error.reason._tag, "ContainmentUnavailable")
      assert.match(error.message, /^containment pid-namespace is not available here: .*\/no\/such\/tini.*, or use group$/s)
      const child = yield* supervisor.spawn({ program: "true", cwd: "/", containment: "group" })
      assert.deepStrictEqual([child.strategy, yield* child.exit], ["group", { code: 0, signal: null }])
    })))

  it.live.skipIf(!namespaces)("refuses a namespace in a worker thread, whose end would kill the program, and takes a group there", () =>
    Effect.gen(function*() {
      const worker = new Worker(new URL("support/workerThread.ts", import.meta.url), { execArgv: ["--conditions=turnpike-source"] })
      const [answer] = yield* Effect.promise(() => once(worker, "message"))
      yield* Effect.promise(() => worker.terminate())
      assert.deepStrictEqual(answer, {
        asked: "containment pid-namespace is not available here: this is a worker thread, whose end would kill the program; spawn from the main thread, or use group",
        byDefault: "group"
      })
    }))

  it.live("says what broke when a containment cannot be set up for one command", () =>
    withPrograms(["sh", "setpriv", "setsid", "grep"], (directory) =>
      Effect.scoped(Effect.gen(function*() {
        // Works when it is tried out, and no more afterwards.
        writeProgram(directory, "unshare", `[ -e ${directory}/tried ] && { echo 'unshare: No space left on device' >&2; exit 1; }; : >${directory}/tried; exit 42`)
        const supervisor = yield* Supervisor.make({ environment: { PATH: directory }, containment: "pid-namespace", reapOrphans: false })
        const error = yield* Effect.flip(supervisor.spawn({ program: "/bin/true", cwd: "/" }))
        assert.strictEqual(
          error.message,
          "containment pid-namespace could not be set up, so /bin/true was not started: unshare: No space left on device"
        )
      }))))

  it.live("tries a containment out again where the machine was too busy for the trial", () =>
    withPrograms(["sh", "setpriv", "setsid", "grep"], (directory) =>
      Effect.scoped(Effect.gen(function*() {
        writeProgram(directory, "unshare", `[ -e ${directory}/tried ] && exit 42; : >${directory}/tried; kill -s KILL $$`)
        const supervisor = yield* Supervisor.make({ environment: { PATH: directory }, tini: false, reapOrphans: false })
        const available = Effect.map(supervisor.probe, (all) => all.find((one) => one.strategy === "pid-namespace")!.available)
        assert.deepStrictEqual([yield* available, yield* available, yield* available], [false, true, true])
      }))))

  for (const { missing, strategy, tini } of stages(isRoot ? "root" : "an ordinary user")) {
    if (tini === false) continue
    it.live.skipIf(missing !== undefined)(`ends everything though no more files can be opened: ${strategy}`, () =>
      Effect.sync(() => {
        const program = fileURLToPath(new URL("support/descriptors.ts", import.meta.url))
        const run = spawnSync("sh", ["-c", "ulimit -n 120 && exec \"$@\"", "sh", process.execPath, "--conditions=turnpike-source", program, strategy], {
          encoding: "utf8",
          timeout: 25_000
        })
        assert.strictEqual(run.stderr, "")
        const facts = JSON.parse(run.stdout) as Record<string, unknown>
        assert.deepStrictEqual(facts, { killed: 2, survivors: 0, left: 0, refused: "SpawnRefused" })
      }))
  }

  it.live("gives an argument as it is, or refuses it", () =>
    Effect.scoped(Effect.gen(function*() {
      const supervisor = yield* Supervisor.make({ reapOrphans: false })
      const refuse = (command: Partial<Command.Command>) =>
        Effect.map(Effect.flip(supervisor.spawn({ program: "true", cwd: "/", ...command })), (error) => error.message)
      const half = "holds half a surrogate pair, which is no text that a program can be given"
      assert.deepStrictEqual(
        [yield* refuse({ args: ["\ud83d"] }), yield* refuse({ env: { A: "x\udc00" } }), yield* refuse({ env: { "\udc00": "x" } })],
        [
          `the command "true" is not valid: args[0] ${half}`,
          `the command "true" is not valid: env.A ${half}`,
          "the command \"true\" is not valid: env[\"\\udc00\"] is not the name of a variable"
        ]
      )
      const child = yield* supervisor.spawn({ program: "sh", args: ["-c", "echo \"$1 $__proto__\"", "sh", "😀"], cwd: "/", env: { ["__proto__"]: "kept" } })
      assert.deepStrictEqual((yield* Stream.runCollect(child.lines)).map((line) => line._tag === "Text" ? line.text : line), ["😀 kept"])
    })))

  it.live("starts nothing once its own scope has ended", () =>
    Effect.scoped(Effect.gen(function*() {
      const supervisor = yield* Effect.scoped(Supervisor.make({ reapOrphans: false }))
      const error = yield* Effect.flip(supervisor.spawn({ program: "true", cwd: "/" }))
      assert.strictEqual(error.message, "true was not started: the supervisor's scope has ended")
    })))

  it.live("closes what is still running when its own scope ends before the commands'", () =>
    Effect.scoped(Effect.gen(function*() {
      const directory = Specimens.makeDirectory("layer")
      const outer = yield* Effect.scope
      const child = yield* Effect.scoped(Effect.gen(function*() {
        const supervisor = yield* Supervisor.make({ reapOrphans: false })
        return yield* supervisor.spawn({ program: "sleep", args: ["1000"], cwd: directory, env: { [Specimens.variable]: directory } }).pipe(
          Effect.provideService(Scope.Scope, outer)
        )
      }))
      assert.deepStrictEqual(Specimens.alive(directory), [])
      assert.strictEqual((yield* child.close).exit?.signal, "SIGTERM")
      fs.rmSync(directory, { recursive: true })
    })))
})
