import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import * as Holder from "../src/Holder.ts"
import * as SessionLock from "../src/SessionLock.ts"
import * as Scratch from "./support/Scratch.ts"

const racer = fileURLToPath(new URL("support/lock-racer.ts", import.meta.url))

/** A holder that has certainly ended: of this boot, with a pid that was somebody's. */
const deadHolder = (): Holder.Holder => {
  const { pid } = spawnSync(process.execPath, ["-e", "0"])
  return { ...Holder.self(), pid, started: "1" }
}

const held = (outcome: SessionLock.Outcome): () => void => {
  if (outcome._tag !== "Held") throw new Error(`the lock is ${JSON.stringify(outcome)}`)
  return outcome.release
}

/** A process that is ready to take the lock. */
const startRacer = async (directory: string) => {
  const child = spawn(process.execPath, ["--conditions=turnpike-source", racer, directory], { stdio: ["pipe", "pipe", "inherit"] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async () => String((await lines.next()).value)
  assert.strictEqual(await next(), "ready")
  return {
    pid: child.pid,
    race: () => child.stdin.write("go\n"),
    outcome: next,
    stop: () => {
      const ended = new Promise((resolve) => child.on("close", resolve))
      child.stdin.end()
      return ended
    },
    kill: () => {
      const ended = new Promise((resolve) => child.on("close", resolve))
      child.kill("SIGKILL")
      return ended
    }
  }
}

describe("SessionLock", () => {
  it.effect("is held by one at a time, and given back", () =>
    Effect.gen(function*() {
      const directory = path.join(yield* Scratch.directory, "session")
      const release = held(SessionLock.acquire(directory))
      const second = SessionLock.acquire(directory)
      assert.deepStrictEqual([second._tag, second._tag === "Busy" ? second.holder.pid : 0], ["Busy", process.pid])
      release()
      held(SessionLock.acquire(directory))()
      assert.deepStrictEqual(fs.readdirSync(directory), [])
    }))

  it.effect("passes from a dead holder, and leaves nothing of it", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      fs.writeFileSync(path.join(directory, "lock.7"), Holder.format(deadHolder()))
      held(SessionLock.acquire(directory))
      assert.deepStrictEqual(fs.readdirSync(directory), ["lock.8"])
    }))

  it.effect("does not mistake another process of the same number for the holder", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      fs.writeFileSync(path.join(directory, "lock.1"), Holder.format({ ...Holder.self(), started: "1" }))
      held(SessionLock.acquire(directory))
    }))

  it.effect("is not taken from a holder whose life cannot be known", () =>
    Effect.gen(function*() {
      for (const holder of [
        { ...Holder.self(), pid_namespace: "pid:[1]" },
        { ...Holder.self(), boot_id: "another", host: "elsewhere" }
      ]) {
        const directory = yield* Scratch.directory
        const file = path.join(directory, "lock.1")
        fs.writeFileSync(file, Holder.format(holder))
        assert.deepStrictEqual(SessionLock.acquire(directory), { _tag: "Busy", holder, life: "unknown", file })
        assert.strictEqual(fs.readFileSync(file, "utf8"), Holder.format(holder))
      }
    }))

  it.effect("is dead when the machine was started anew", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      fs.writeFileSync(path.join(directory, "lock.1"), Holder.format({ ...Holder.self(), boot_id: "the boot before" }))
      held(SessionLock.acquire(directory))
    }))

  it.effect("is left alone where nobody can read it", () =>
    Effect.gen(function*() {
      for (const content of ["", "{", "{}", JSON.stringify({ ...Holder.self(), pid: "1" })]) {
        const directory = yield* Scratch.directory
        const file = path.join(directory, "lock.1")
        fs.writeFileSync(file, content)
        assert.deepStrictEqual(SessionLock.acquire(directory), { _tag: "Unreadable", file })
        assert.strictEqual(fs.readFileSync(file, "utf8"), content)
      }
    }))

  it.live("goes to exactly one of several processes that find a dead holder's lock", () =>
    Effect.gen(function*() {
      const rounds = 3
      const racers = 4
      for (let round = 0; round < rounds; round++) {
        const directory = yield* Scratch.directory
        fs.writeFileSync(path.join(directory, "lock.3"), Holder.format(deadHolder()))
        yield* Effect.promise(async () => {
          const all = await Promise.all(Array.from({ length: racers }, () => startRacer(directory)))
          for (const each of all) each.race()
          const outcomes = await Promise.all(all.map((each) => each.outcome()))
          const winner = all[outcomes.indexOf("Held")]
          assert.deepStrictEqual(
            outcomes.toSorted(),
            ["Held", ...Array.from({ length: racers - 1 }, () => `Busy ${winner?.pid}`)].toSorted()
          )
          await Promise.all(all.map((each) => each.stop()))
          assert.deepStrictEqual(fs.readdirSync(directory), [])
        })
      }
    }), 60_000)

  it.live("of a process that was killed is free at once", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      yield* Effect.promise(async () => {
        const first = await startRacer(directory)
        first.race()
        assert.strictEqual(await first.outcome(), "Held")
        const busy = SessionLock.acquire(directory)
        assert.deepStrictEqual([busy._tag, busy._tag === "Busy" ? busy.life : ""], ["Busy", "alive"])
        await first.kill()
        held(SessionLock.acquire(directory))()
      })
    }), 30_000)
})
