import { assert, describe, it } from "@effect/vitest"
import { CopilotTurnRunner, PreemptSlot, TurnRunner } from "@turnpike/harness-copilot"
import { Redaction } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { Effect, Fiber } from "effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

/** A program that does what its script says; the arguments are the script's. */
const withRunner = <A, E>(
  script: string,
  use: (runner: TurnRunner.TurnRunner, slot: PreemptSlot.PreemptSlot, directory: string) => Effect.Effect<A, E>,
  options: Partial<Pick<CopilotTurnRunner.Options, "redact" | "tailBytes">> = {}
) =>
  Effect.gen(function*() {
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-turn-runner-")))),
      (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
    )
    const program = path.join(directory, "copilot")
    fs.writeFileSync(program, `#!/bin/bash\n${script}\n`, { mode: 0o755 })
    const { spawn } = yield* Supervisor.Supervisor
    const slot = yield* PreemptSlot.make
    return yield* use(CopilotTurnRunner.make({ program, cwd: directory, slot, spawn, ...options }), slot, directory)
  }).pipe(Effect.scoped, Effect.provide(Supervisor.layer({ containment: "group", reapOrphans: false })))

const until = (fact: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => fact() ? Effect.void : Effect.andThen(Effect.sleep("10 millis"), until(fact)))

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}

describe("CopilotTurnRunner", () => {
  it.live("answers what the program wrote, with every argument as it was", () =>
    withRunner("printf '%s|' \"$@\"; echo remark >&2", (runner) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* runner.runArgv(["-p", "a; $(b) \"c\"\nd", ""]), "-p|a; $(b) \"c\"\nd||")
      })))

  it.live("gives the program the end of its input, and reads bytes that are no UTF-8", () =>
    withRunner("cat; printf '\\xff\\xc3\\xa9'", (runner) =>
      Effect.map(runner.runArgv([]), (text) => assert.strictEqual(text, "\ufffdé"))))

  it.live("is not stopped by a full pipe of either output", () =>
    withRunner("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2", (runner) =>
      Effect.map(runner.runArgv([]), (text) => assert.strictEqual(text.length, 300_000))))

  it.live("tells how a turn failed: its exit, all that it wrote, and the end of that", () =>
    withRunner("printf 'half an answer '; echo 'Error: no model' >&2; exit 3", (runner) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(runner.runArgv([]))
        assert.deepStrictEqual(
          error,
          TurnRunner.failed("copilot turn failed: it exited with code 3 (31 bytes of output): half an answer Error: no model", 3)
        )
      })))

  it.live("cuts at a character, counts what it cut, and redacts before it cuts", () =>
    Effect.gen(function*() {
      const failure = (script: string, options: Partial<Pick<CopilotTurnRunner.Options, "redact" | "tailBytes">>) =>
        withRunner(script, (runner) => Effect.map(Effect.flip(runner.runArgv([])), ({ message }) => message), options)
      assert.strictEqual(yield* failure("printf 'aéé'; exit 1", { tailBytes: 3 }), "copilot turn failed: it exited with code 1 (5 bytes of output): é")
      assert.strictEqual(yield* failure("printf abc; exit 1", { tailBytes: 0 }), "copilot turn failed: it exited with code 1 (3 bytes of output)")
      const secret = "sk-0123456789abcdef"
      const redact = Redaction.values([secret])
      const cut = yield* failure(`printf 'key ${secret}'; exit 1`, { redact, tailBytes: 10 })
      assert.strictEqual(cut, "copilot turn failed: it exited with code 1 (23 bytes of output): [REDACTED]")
      const shown = yield* withRunner(`printf '${secret}'`, (runner) => runner.runArgv([]), { redact })
      assert.strictEqual(shown, secret)
    }))

  it.live("writes the whole output only for those who debug", () =>
    Effect.gen(function*() {
      const logged: Array<string> = []
      const logger = Logger.make(({ fiber, message }) => {
        logged.push(`${JSON.stringify(message)} ${JSON.stringify(fiber.getRef(References.CurrentLogAnnotations))}`)
      })
      const run = (level: "Info" | "Debug") =>
        withRunner("printf 'the whole output'; exit 1", (runner) => Effect.flip(runner.runArgv([])), { tailBytes: 0 }).pipe(
          Effect.provide(Logger.layer([logger])),
          Effect.provideService(References.MinimumLogLevel, level)
        )
      yield* run("Info")
      assert.deepStrictEqual(logged, [])
      yield* run("Debug")
      assert.include(logged.join("\n"), "the whole output")
    }))

  it.live("stops the turn that runs when the slot fires, with all that it started, and no later one", () =>
    withRunner("sleep 300 & echo $! > pids; echo $$ >> pids; trap '' TERM INT; wait", (runner, slot, directory) =>
      Effect.gen(function*() {
        assert.isFalse(yield* slot.fire)
        const turn = yield* Effect.forkChild(Effect.flip(runner.runArgv([])), { startImmediately: true })
        const file = path.join(directory, "pids")
        yield* until(() => fs.existsSync(file) && fs.readFileSync(file, "utf8").trim().split("\n").length === 2)
        assert.isTrue(yield* slot.fire)
        assert.deepStrictEqual(yield* Fiber.join(turn), TurnRunner.interrupted())
        assert.deepStrictEqual(fs.readFileSync(file, "utf8").trim().split("\n").map(Number).filter(isAlive), [])
        assert.isFalse(yield* slot.fire)
      })), 20_000)

  it.live("leaves nothing running when it is interrupted", () =>
    withRunner("sleep 300 & echo $! > pids; echo $$ >> pids; wait", (runner, _, directory) =>
      Effect.gen(function*() {
        const turn = yield* Effect.forkChild(runner.runArgv([]), { startImmediately: true })
        const file = path.join(directory, "pids")
        yield* until(() => fs.existsSync(file) && fs.readFileSync(file, "utf8").trim().split("\n").length === 2)
        yield* Fiber.interrupt(turn)
        assert.deepStrictEqual(fs.readFileSync(file, "utf8").trim().split("\n").map(Number).filter(isAlive), [])
      })), 20_000)

  it.live("says what could not be started", () =>
    Effect.gen(function*() {
      const { spawn } = yield* Supervisor.Supervisor
      const slot = yield* PreemptSlot.make
      const error = yield* Effect.flip(CopilotTurnRunner.make({ program: "/no/such/copilot", cwd: "/", slot, spawn }).runArgv([]))
      assert.include(error.message, "/no/such/copilot")
      assert.strictEqual(error.reason._tag === "Failed" ? error.reason.exitCode : 0, undefined)
      assert.isFalse(yield* slot.fire)
    }).pipe(Effect.provide(Supervisor.layer({ containment: "group", reapOrphans: false }))))
})

describe("PreemptSlot", () => {
  it.effect("holds the newest trigger, for as long as its turn lasts", () =>
    Effect.gen(function*() {
      const slot = yield* PreemptSlot.make
      const fired = yield* Effect.scoped(Effect.gen(function*() {
        const trigger = yield* slot.arm
        const waiting = yield* Effect.forkChild(Effect.as(trigger, "fired"), { startImmediately: true })
        const first = yield* slot.fire
        return [first, yield* Fiber.join(waiting), yield* slot.fire]
      }))
      assert.deepStrictEqual(fired, [true, "fired", false])
      yield* Effect.scoped(Effect.asVoid(slot.arm))
      assert.isFalse(yield* slot.fire)
    }))
})
