/** What a disk can bring about in SQLite's files, beside what FileStores.slow.test.ts looks at. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { SqliteSessionStore } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { bundle, type Bundle } from "./support/bundle.ts"
import { temporary } from "./support/directory.ts"
import { flips } from "./support/flips.ts"
import * as Held from "./support/held.ts"
import type { StoreName, Where } from "./support/programs/stores.ts"
import { random } from "./support/programs/writer.ts"
import * as Refusals from "./support/refusals.ts"
import { callsOf } from "./support/trace.ts"

let programs: Bundle

beforeAll(async () => {
  programs = await bundle()
}, 60_000)

afterAll(() => programs.remove())

const promise = <A>(work: () => Promise<A>) => Effect.promise(work)
const countOf = (all: ReadonlyArray<string>) => Object.fromEntries([...new Set(all)].map((one) => [one, all.filter((other) => other === one).length]))
const seedOf = () => Math.floor(Math.random() * 1_000_000_000)

describe("a disk", () => {
  it.live("that flips a bit is noticed, or nobody is told anything else", () =>
    Effect.gen(function*() {
      const seed = seedOf()
      const next = random(seed)
      const found = yield* flips(yield* temporary, (size) => Array.from({ length: 1_000 }, () => Math.floor(next() * size)))
      console.log(`flipped bits, seed ${seed}: ${JSON.stringify(found)}`)
      assert.deepStrictEqual(found.unnoticed, [])
      assert.isAbove(found.detected, 20)
    }), 120_000)

  const refusals: ReadonlyArray<readonly [call: string, error: string, where: Where, every: number, codes: ReadonlyArray<string>]> = [
    ["pwrite64", "EIO", "here", 8, ["STORE_FAILED"]],
    ["pwrite64", "EIO", "thread", 8, ["STORE_FAILED"]],
    ["pwrite64", "EIO", "moving", 16, ["STORE_FAILED"]],
    // SQLite does not say of all writes that they failed for want of space, and this disk has some.
    ["pwrite64", "ENOSPC", "here", 32, ["STORE_FULL", "STORE_FAILED"]],
    ["pwrite64", "ENOSPC", "thread", 32, ["STORE_FULL", "STORE_FAILED"]],
    ["fsync", "EIO", "here", 2, ["STORE_FAILED"]],
    ["fsync", "EIO", "thread", 2, ["STORE_FAILED"]],
    ["fsync", "EIO", "moving", 2, ["STORE_FAILED"]],
    ["ftruncate", "EIO", "here", 1, ["STORE_FAILED"]],
    ["ftruncate", "EIO", "thread", 1, ["STORE_FAILED"]]
  ]
  for (const [call, error, where, every, codes] of refusals) {
    it.live(`whose n-th ${call} fails with ${error}, for ${every === 1 ? "every n" : `one n in ${every}`} (${where}), keeps what was acknowledged and nothing of what was refused`, () =>
      Effect.gen(function*() {
        const directory = yield* temporary
        const refused = { bundle: programs.file, directory, call, error, where }
        const calls = yield* promise(() => Refusals.callsOf(refused))
        const first = 1 + Math.floor(Math.random() * every)
        const nths = Array.from({ length: calls }, (_, index) => index + 1).filter((nth) => (nth - first) % every === 0)
        const done = yield* promise(() => Refusals.refuse(refused, nths))
        console.log(`${call} ${error} (${where}): ${calls} calls, ${done.length} refused, beginning with ${first}; told by ${JSON.stringify(countOf(done.flatMap(({ outcome }) => outcome.refused.map(({ step }) => step))))}`)
        assert.deepStrictEqual(done.filter(({ outcome }) => outcome.fault !== undefined), [])
        assert.deepStrictEqual(done.flatMap(({ outcome }) => outcome.refused).filter(({ code }) => !codes.includes(code)), [])
        assert.isAbove(done.filter(({ outcome }) => outcome.refused.length > 0).length, 0)
      }), 150_000)
  }

  it.live("of which nobody knows what it has, after a sync that failed, gets all of it anew, also from a thread that was begun meanwhile", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const trace = path.join(directory, "trace")
      const store: StoreName = { kind: "sqlite", directory: path.join(directory, "sessions"), where: "here" }
      yield* Held.make(store)
      const file = path.join(store.directory, SqliteSessionStore.fileName)
      const tracing = ["strace", "-f", "-y", "--seccomp-bpf", "-o", trace, "-e", "trace=clone,clone3,pwrite64,fsync,ftruncate", "-e", "inject=fsync:error=EIO:when=6"]
      const writer = Held.holder(programs.file, store, "the writer", tracing)
      assert.strictEqual(yield* promise(writer.answer), "open")
      let acknowledged = 0
      let answer = yield* promise(() => writer.ask("append"))
      for (; answer === "ok" && acknowledged < 10; answer = yield* promise(() => writer.ask("append"))) acknowledged++
      assert.match(answer, /^STORE_FAILED/u)
      assert.isAbove(acknowledged, 0)
      const read = () => fs.readFileSync(trace, "utf8")
      const failed = callsOf(read()).find(({ result }) => result.includes("INJECTED"))
      assert.strictEqual(failed?.target, `${file}-wal`)
      // While somebody else has the file the connection goes to a thread.
      const other = new DatabaseSync(file)
      other.exec("begin immediate")
      const asked = writer.ask("append")
      const hasMoved = () => /\bclone3?\(/u.test(read().slice(read().indexOf("INJECTED")))
      for (let look = 0; look < 1_000 && !hasMoved(); look++) yield* Effect.sleep("10 millis")
      other.exec("rollback")
      other.close()
      assert.strictEqual(yield* promise(() => asked), "ok")
      yield* promise(() => writer.end())
      const calls = callsOf(read()).filter(({ target, thread }) => target.startsWith(file) && thread !== failed?.thread)
      const first = calls.findIndex(({ name, target }) => name === "pwrite64" && target === `${file}-wal`)
      assert.isAbove(first, 0)
      assert.deepStrictEqual(calls.slice(0, first).filter(({ name }) => name === "ftruncate").map(({ rest, target }) => [target, rest]), [[`${file}-wal`, ", 0"]])
      assert.deepStrictEqual(yield* Held.turnsBy(store), Array.from({ length: acknowledged + 1 }, () => "the writer"))
    }), 60_000)
})
