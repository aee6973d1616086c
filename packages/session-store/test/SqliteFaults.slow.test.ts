/** What only other processes, a disk or the system can bring about: SQLite's files, and writers that die, freeze or are refused. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Scalars } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import { SqliteSessionStore } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { bundle, type Bundle } from "./support/bundle.ts"
import { temporary } from "./support/directory.ts"
import { flips } from "./support/flips.ts"
import * as KillLoop from "./support/killLoop.ts"
import * as Namespace from "./support/namespace.ts"
import * as Programs from "./support/programs.ts"
import type { Stage } from "./support/programs/fullDisk.ts"
import { layerOf, type StoreName, type Where } from "./support/programs/stores.ts"
import { type Acknowledged, random } from "./support/programs/writer.ts"
import * as Refusals from "./support/refusals.ts"
import { callsOf } from "./support/trace.ts"

let programs: Bundle

beforeAll(async () => {
  programs = await bundle()
}, 60_000)

afterAll(() => programs.remove())

const promise = <A>(work: () => Promise<A>) => Effect.promise(work)
/** Installed before the slow suite. */
const deno = fileURLToPath(new URL("../../../test/deno/runtime/node_modules/.bin/deno", import.meta.url))
const jsonOf = <A>(lines: ReadonlyArray<string>) => lines.map((line) => JSON.parse(line) as A)
const countOf = (all: ReadonlyArray<string>) => Object.fromEntries([...new Set(all)].map((one) => [one, all.filter((other) => other === one).length]))
/** SQLite is written in the store's thread, in one of its own, and moves from one to the other: each has to keep the same promises. */
const places: ReadonlyArray<Where> = ["here", "thread", "moving"]
const seedOf = () => Math.floor(Math.random() * 1_000_000_000)

describe("a writer that is killed", () => {
  it.live("has lost nothing that it acknowledged, 100 times, and leaves one open turn at most", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const seen = KillLoop.tally()
      const chains = [...places, undefined].map((where) => ({ seed: seedOf(), where }))
      console.log(`SQLite kill loops: 25 rounds each, ${chains.map(({ seed, where }) => `seed ${seed} ${where ?? "as it comes"}`).join(", ")}`)
      const faults = yield* promise(() =>
        Promise.all(chains.map(({ seed, where }, index) =>
          KillLoop.run({ bundle: programs.file, store: { kind: "sqlite", directory, ...(where === undefined ? {} : { where }) }, session: `s${index}`, rounds: 25, seed }, seen)
        )))
      console.log(`SQLite kill loops: ${JSON.stringify(seen)}`)
      assert.deepStrictEqual(faults.flat(), [])
      assert.strictEqual(seen.rounds, 100)
      // Otherwise the writers were not in the middle of anything.
      assert.isAbove(seen.open, 10)
    }), 180_000)
})

describe("Deno", () => {
  it.live("keeps the same promises, and both runtimes read what either wrote", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const seen = KillLoop.tally()
      const seed = seedOf()
      console.log(`Deno kill loop: 10 rounds, seed ${seed}`)
      const faults = yield* promise(() =>
        KillLoop.run({ bundle: programs.file, store: { kind: "sqlite", directory }, session: "s", rounds: 10, seed, runtime: [deno, "run", "-A"] }, seen))
      console.log(`Deno kill loop: ${JSON.stringify(seen)}`)
      assert.deepStrictEqual([faults, seen.rounds], [[], 10])
    }), 120_000)
})

const withStore = <A>(store: StoreName, work: (store: SessionStore.Service) => Effect.Effect<A, SessionStore.SessionStoreError>) =>
  Effect.flatMap(SessionStore.SessionStore, work).pipe(Effect.provide(layerOf(store), { local: true }))

const id = Scalars.SessionId.make("held")

const made = (store: StoreName) =>
  withStore(store, (one) => one.create({ type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/project" }))

const holder = (store: StoreName, name: string) => Programs.converse({ bundle: programs.file, name: "holder", args: { store, session: id, name } })

const turnsBy = (store: StoreName) =>
  withStore(store, (one) =>
    Effect.map(Stream.runCollect(one.read(id, -1)), (events) =>
      events.flatMap((event) => event.type === "turn/start" && event.data.trigger.kind === "message" ? [event.data.trigger.source] : [])))

describe("two writers", () => {
  it.live("do not both have a session; who comes second learns who and since when, until the first is dead", () =>
    Effect.gen(function*() {
      const store: StoreName = { kind: "sqlite", directory: yield* temporary }
      yield* made(store)
      const first = holder(store, "first")
      assert.strictEqual(yield* promise(first.answer), "open")
      const second = holder(store, "second")
      assert.match(yield* promise(second.answer), /^SESSION_BUSY: session held is used by first since \d{4}-/u)
      assert.strictEqual(yield* promise(() => first.ask("append")), "ok")
      yield* promise(() => first.end("SIGKILL"))
      // Its lease would run on for half a minute.
      const third = holder(store, "third")
      assert.strictEqual(yield* promise(third.answer), "open")
      assert.strictEqual(yield* promise(() => third.ask("append")), "ok")
      yield* promise(() => third.end())
      assert.deepStrictEqual(yield* turnsBy(store), ["first", "third"])
    }), 60_000)

  it.live("that is frozen and was taken over writes nothing once it thaws", () =>
    Effect.gen(function*() {
      const store: StoreName = { kind: "sqlite", directory: yield* temporary, leaseMillis: 1_000 }
      yield* made(store)
      const frozen = holder(store, "frozen")
      assert.strictEqual(yield* promise(frozen.answer), "open")
      assert.strictEqual(yield* promise(() => frozen.ask("append")), "ok")
      process.kill(frozen.pid, "SIGSTOP")
      const next = yield* promise(async () => {
        for (let tries = 0; tries < 200; tries++) {
          const one = holder(store, "next")
          const answer = await one.answer()
          if (answer === "open") return one
          assert.match(answer, /^SESSION_BUSY/u)
          await one.end()
        }
        throw new Error("the lease of a frozen process does not run out")
      })
      assert.strictEqual(yield* promise(() => next.ask("append")), "ok")
      process.kill(frozen.pid, "SIGCONT")
      assert.match(yield* promise(() => frozen.ask("append")), /^SESSION_BUSY: session held is used by next since/u)
      assert.match(yield* promise(() => frozen.ask("discard r-1")), /^SESSION_BUSY/u)
      assert.strictEqual(yield* promise(() => next.ask("append")), "ok")
      yield* promise(() => frozen.end())
      assert.strictEqual(yield* promise(() => next.ask("append")), "ok")
      yield* promise(() => next.end())
      assert.deepStrictEqual(yield* turnsBy(store), ["frozen", "next", "next", "next"])
    }), 60_000)
})

describe("a disk", () => {
  for (const [where, stages] of [["here", 101], ["thread", 51]] as const) it.live(`that is full at any stage is told as that, and what was acknowledged is there; with space the same store goes on (${where})`, () =>
    Effect.gen(function*() {
      assert.isUndefined(Namespace.missing())
      const directory = yield* temporary
      const ended = yield* promise(() =>
        Programs.run({
          bundle: programs.file,
          name: "full-disk",
          args: { directory, maxFreeKiB: 400, stepKiB: 400 / (stages - 1), where },
          before: Namespace.mounted("mount -t tmpfs -o size=2m tmpfs \"$1\"", directory)
        }))
      const seen = jsonOf<Stage>(ended.lines)
      assert.deepStrictEqual([ended.code, seen.length], [0, stages], ended.errors)
      assert.deepStrictEqual(seen.filter(({ fault }) => fault !== undefined), [])
      assert.deepStrictEqual(seen.filter(({ refused }) => refused !== undefined && refused.code !== "STORE_FULL"), [])
      const steps = new Set(seen.map(({ refused }) => refused?.step ?? "nothing"))
      assert.deepStrictEqual([...steps].sort(), [
        "append assistant/chunk",
        "append step/end",
        "append step/start",
        "append turn/start",
        "create",
        "layer",
        "nothing",
        "open",
        "receive"
      ])
    }), 60_000)

  it.live("that is mounted to be read only is told as that, with the file", () =>
    Effect.gen(function*() {
      assert.isUndefined(Namespace.missing())
      const directory = yield* temporary
      const store: StoreName = { kind: "sqlite", directory }
      yield* made(store)
      const file = path.join(directory, SqliteSessionStore.fileName)
      const before = fs.readFileSync(file)
      const ended = yield* promise(() =>
        Programs.run({
          bundle: programs.file,
          name: "holder",
          args: { store, session: id, name: "reader" },
          before: Namespace.mounted("mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\"", directory)
        }))
      assert.deepStrictEqual(ended.lines, [`STORE_FAILED: the sessions in ${file} cannot be opened: EROFS: read-only file system, open '${file}'`], ended.errors)
      assert.deepStrictEqual(fs.readFileSync(file), before)
    }), 60_000)

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
      yield* made(store)
      const file = path.join(store.directory, SqliteSessionStore.fileName)
      const writer = Programs.converse({
        bundle: programs.file,
        name: "holder",
        args: { store, session: id, name: "the writer" },
        before: ["strace", "-f", "-y", "--seccomp-bpf", "-o", trace, "-e", "trace=clone,clone3,pwrite64,fsync,ftruncate", "-e", "inject=fsync:error=EIO:when=6"]
      })
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
      assert.deepStrictEqual(yield* turnsBy(store), Array.from({ length: acknowledged + 1 }, () => "the writer"))
    }), 60_000)

  it.live("has what is to be on it before that is acknowledged", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const file = path.join(directory, "trace")
      const sessions = path.join(directory, "sessions")
      const ended = yield* promise(() =>
        Programs.run({
          bundle: programs.file,
          name: "writer",
          args: { store: { kind: "sqlite", directory: sessions }, session: "s", seed: 5, turns: 30 },
          before: ["strace", "-f", "-y", "--seccomp-bpf", "-s", "200", "-o", file, "-e", "trace=pwrite64,fsync,fdatasync,write"]
        }))
      assert.strictEqual(ended.code, 0, ended.errors)
      const log = `${path.join(sessions, SqliteSessionStore.fileName)}-wal`
      let isSynced = true
      const seen = { receipts: 0, synced: 0, unsynced: 0 }
      for (const { name, rest, result, target } of callsOf(fs.readFileSync(file, "utf8"))) {
        if (target === log && name === "pwrite64") isSynced = false
        if (target === log && name !== "pwrite64") isSynced = result === "0"
        if (name !== "write" || !rest.includes("{\\\"")) continue
        const line = JSON.parse(rest.slice(rest.indexOf("{"), rest.lastIndexOf("}") + 1).replaceAll("\\\"", "\"")) as Acknowledged
        if ("receipt" in line) {
          assert.isTrue(isSynced, `receipt ${line.receipt}`)
          seen.receipts++
        } else if ("sum" in line) seen[isSynced ? "synced" : "unsynced"]++
      }
      // A turn's pieces are not synced, or the file would say nothing about what is.
      assert.isAbove(seen.receipts, 20)
      assert.isAbove(seen.synced, 20)
      assert.isAbove(seen.unsynced, 5)
    }), 60_000)
})
