/** What every store that keeps files promises, whatever becomes of its writers, and of the disk under it. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { SqliteSessionStore } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { bundle, type Bundle } from "./support/bundle.ts"
import { temporary } from "./support/directory.ts"
import * as Held from "./support/held.ts"
import * as KillLoop from "./support/killLoop.ts"
import * as Namespace from "./support/namespace.ts"
import * as Programs from "./support/programs.ts"
import type { Arguments, Stage } from "./support/programs/fullDisk.ts"
import type { FileStoreName } from "./support/programs/stores.ts"
import type { Acknowledged } from "./support/programs/writer.ts"
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
const seedOf = () => Math.floor(Math.random() * 1_000_000_000)

/** What a store is, and in how many ways: the chains of killed writers go through them. */
interface Kind {
  readonly name: string
  readonly store: (directory: string) => FileStoreName
  readonly ways: ReadonlyArray<readonly [how: string, store: (directory: string) => FileStoreName]>
}

/** SQLite is written in the store's thread, in one of its own, and moves from one to the other: each has to keep the same promises. */
const sqlite: Kind = {
  name: "SQLite",
  store: (directory) => ({ kind: "sqlite", directory }),
  ways: [
    ["here", (directory) => ({ kind: "sqlite", directory, where: "here" })],
    ["thread", (directory) => ({ kind: "sqlite", directory, where: "thread" })],
    ["moving", (directory) => ({ kind: "sqlite", directory, where: "moving" })],
    ["as it comes", (directory) => ({ kind: "sqlite", directory })]
  ]
}

const jsonl: Kind = {
  name: "JSON lines",
  store: (directory) => ({ kind: "jsonl", directory }),
  ways: ["first", "second", "third", "fourth"].map((session) => [session, (directory) => ({ kind: "jsonl", directory })])
}

for (const { name, store: storeIn, ways } of [sqlite, jsonl]) {
  describe(`${name}: a writer that is killed`, () => {
    it.live("has lost nothing that it acknowledged, 100 times, and leaves one open turn at most", () =>
      Effect.gen(function*() {
        const directory = yield* temporary
        const seen = KillLoop.tally()
        const chains = ways.map(([how, store]) => ({ how, store: store(directory), seed: seedOf() }))
        console.log(`${name} kill loops: 25 rounds each, ${chains.map(({ how, seed }) => `seed ${seed} ${how}`).join(", ")}`)
        const faults = yield* promise(() =>
          Promise.all(chains.map(({ seed, store }, index) => KillLoop.run({ bundle: programs.file, store, session: `s${index}`, rounds: 25, seed }, seen))))
        console.log(`${name} kill loops: ${JSON.stringify(seen)}`)
        assert.deepStrictEqual(faults.flat(), [])
        assert.strictEqual(seen.rounds, 100)
        // Otherwise the writers were not in the middle of anything.
        assert.isAbove(seen.open, 10)
      }), 180_000)

    it.live("under Deno has kept the same promises, and both runtimes read what either wrote", () =>
      Effect.gen(function*() {
        const directory = yield* temporary
        const seen = KillLoop.tally()
        const seed = seedOf()
        console.log(`${name} under Deno, kill loop: 10 rounds, seed ${seed}`)
        const faults = yield* promise(() =>
          KillLoop.run({ bundle: programs.file, store: storeIn(directory), session: "s", rounds: 10, seed, runtime: [deno, "run", "-A"] }, seen))
        console.log(`${name} under Deno, kill loop: ${JSON.stringify(seen)}`)
        assert.deepStrictEqual([faults, seen.rounds], [[], 10])
      }), 120_000)
  })

  describe(`${name}: two writers`, () => {
    it.live("do not both have a session; who comes second learns who and since when, until the first is dead", () =>
      Effect.gen(function*() {
        const store = storeIn(yield* temporary)
        const holder = (who: string) => Held.holder(programs.file, store, who)
        yield* Held.make(store)
        const first = holder("first")
        assert.strictEqual(yield* promise(first.answer), "open")
        const second = holder("second")
        assert.match(yield* promise(second.answer), /^SESSION_BUSY: session held is used by first since \d{4}-/u)
        assert.strictEqual(yield* promise(() => first.ask("append")), "ok")
        yield* promise(() => first.end("SIGKILL"))
        // Its lease would run on for half a minute.
        const third = holder("third")
        assert.strictEqual(yield* promise(third.answer), "open")
        assert.strictEqual(yield* promise(() => third.ask("append")), "ok")
        yield* promise(() => third.end())
        assert.deepStrictEqual(yield* Held.turnsBy(store), ["first", "third"])
      }), 60_000)

    it.live("of which one is frozen and was taken over: it writes nothing once it thaws", () =>
      Effect.gen(function*() {
        const store = { ...storeIn(yield* temporary), leaseMillis: 1_000 }
        const holder = (who: string) => Held.holder(programs.file, store, who)
        yield* Held.make(store)
        const frozen = holder("frozen")
        assert.strictEqual(yield* promise(frozen.answer), "open")
        assert.strictEqual(yield* promise(() => frozen.ask("append")), "ok")
        process.kill(frozen.pid, "SIGSTOP")
        const next = yield* promise(async () => {
          for (let tries = 0; tries < 200; tries++) {
            const one = holder("next")
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
        assert.deepStrictEqual(yield* Held.turnsBy(store), ["frozen", "next", "next", "next"])
      }), 60_000)
  })
}

describe("a disk that is full", () => {
  /** So much is free, from nothing to `maxFreeKiB`. */
  const upTo = (maxFreeKiB: number, stepKiB: number) => Array.from({ length: maxFreeKiB / stepKiB + 1 }, (_, index) => ({ freeKiB: index * stepKiB, size: 700 }))
  const cases: ReadonlyArray<readonly [string, stages: Arguments["stages"], store: (directory: string) => FileStoreName]> = [
    ["SQLite, in the store's thread", upTo(400, 4), (directory) => ({ kind: "sqlite", directory, where: "here" })],
    ["SQLite, in a thread of its own", upTo(400, 8), (directory) => ({ kind: "sqlite", directory, where: "thread" })],
    // Its files grow by pages of the disk: it is full where one ends, which long texts move.
    ["JSON lines", [...upTo(48, 4), ...Array.from({ length: 15 }, (_, index) => ({ freeKiB: 24, size: 10 + 20 * index })), ...[36, 40, 44].map((freeKiB) => ({ freeKiB, size: 2_000 }))], jsonl.store]
  ]
  for (const [name, stages, storeIn] of cases) {
    it.live(`at any stage is told as that, and what was acknowledged is there; with space the same store goes on (${name})`, () =>
      Effect.gen(function*() {
        assert.isUndefined(Namespace.missing())
        const directory = yield* temporary
        const ended = yield* promise(() =>
          Programs.run({
            bundle: programs.file,
            name: "full-disk",
            args: { store: storeIn(directory), stages },
            before: Namespace.mounted("mount -t tmpfs -o size=2m tmpfs \"$1\"", directory)
          }))
        const seen = jsonOf<Stage>(ended.lines)
        assert.deepStrictEqual([ended.code, seen.length], [0, stages.length], ended.errors)
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
  }
})

/** All that is in a directory, by its path. */
const contentsOf = (directory: string) =>
  Object.fromEntries(fs.readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    const file = path.join(entry.parentPath, entry.name)
    return entry.isFile() ? [[path.relative(directory, file), fs.readFileSync(file, "latin1")]] : []
  }))

describe("a disk that is mounted to be read only", () => {
  const cases: ReadonlyArray<readonly [Kind, answer: (directory: string) => RegExp]> = [
    [sqlite, (directory) => {
      const file = path.join(directory, SqliteSessionStore.fileName)
      return new RegExp(`^STORE_FAILED: the sessions in ${file} cannot be opened: EROFS: read-only file system, access '${file}'$`, "u")
    }],
    [jsonl, (directory) => new RegExp(`^STORE_FAILED: the sessions cannot be kept in ${directory}/owners/\\S+ \\(unlink\\): EROFS: read-only file system, unlink '.*'$`, "u")]
  ]
  for (const [{ name, store: storeIn }, answer] of cases) {
    it.live(`is told as that, with the file, and is left as it is (${name})`, () =>
      Effect.gen(function*() {
        assert.isUndefined(Namespace.missing())
        const directory = yield* temporary
        const store = storeIn(directory)
        yield* Held.make(store)
        const before = contentsOf(directory)
        const reader = Held.holder(programs.file, store, "reader", Namespace.mounted("mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\"", directory))
        assert.match(yield* promise(reader.answer), answer(directory))
        yield* promise(() => reader.end())
        assert.deepStrictEqual(contentsOf(directory), before)
      }), 60_000)
  }
})

describe("a disk", () => {
  /** Of each, the files that have to be on disk, for an event and for a receipt, and what of a write need not be. */
  const cases: ReadonlyArray<readonly [Kind, log: (directory: string) => RegExp, inbox: (directory: string) => RegExp, unneeded: string]> = [
    [sqlite, (directory) => new RegExp(`^${directory}/sessions\\.sqlite-wal$`, "u"), (directory) => new RegExp(`^${directory}/sessions\\.sqlite-wal$`, "u"), "nothing"],
    // That an append counts is said behind it, and is not what is promised.
    [jsonl, (directory) => new RegExp(`^${directory}/sessions/s/log\\.1\\.jsonl$`, "u"), (directory) => new RegExp(`^${directory}/sessions/s/inbox\\.jsonl$`, "u"), `, "{\\"log\\":\\"committed\\"`]
  ]
  for (const [{ name, store: storeIn }, logIn, inboxIn, unneeded] of cases) {
    it.live(`has what is to be on it before that is acknowledged (${name})`, () =>
      Effect.gen(function*() {
        const directory = yield* temporary
        const trace = path.join(directory, "trace")
        const sessions = path.join(directory, "sessions")
        const [log, inbox] = [logIn(sessions), inboxIn(sessions)]
        const ended = yield* promise(() =>
          Programs.run({
            bundle: programs.file,
            name: "writer",
            args: { store: storeIn(sessions), session: "s", seed: 5, turns: 30 },
            before: ["strace", "-f", "-y", "--seccomp-bpf", "-s", "200", "-o", trace, "-e", "trace=pwrite64,fsync,fdatasync,write"]
          }))
        assert.strictEqual(ended.code, 0, ended.errors)
        /** Files of which something is not on disk. */
        const unsynced = new Set<string>()
        const isSynced = (file: RegExp) => [...unsynced].every((one) => !file.test(one))
        const seen = { receipts: 0, synced: 0, unsynced: 0 }
        for (const { name: call, rest, result, target } of callsOf(fs.readFileSync(trace, "utf8"))) {
          if (log.test(target) || inbox.test(target)) {
            const isWritten = call === "pwrite64" || call === "write"
            if (isWritten && !rest.startsWith(unneeded)) unsynced.add(target)
            if (!isWritten && result === "0") unsynced.delete(target)
          } else if (call === "write" && !target.startsWith("/") && rest.includes("{\\\"")) {
            const line = JSON.parse(rest.slice(rest.indexOf("{"), rest.lastIndexOf("}") + 1).replaceAll("\\\"", "\"")) as Acknowledged
            if ("receipt" in line) {
              assert.isTrue(isSynced(inbox), `receipt ${line.receipt}`)
              seen.receipts++
            } else if ("sum" in line) {
              if (line.sync) assert.isTrue(isSynced(log), `events ${line.events.join(" to ")}`)
              seen[isSynced(log) ? "synced" : "unsynced"]++
            }
          }
        }
        // A turn's pieces are not synced, or the trace would say nothing about what is.
        assert.isAbove(seen.receipts, 20)
        assert.isAbove(seen.synced, 20)
        assert.isAbove(seen.unsynced, 5)
      }), 60_000)
  }
  it.live("of which nobody knows what it has, after a sync that failed, gets all of it anew (JSON lines)", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const trace = path.join(directory, "trace")
      const store = jsonl.store(path.join(directory, "sessions"))
      yield* Held.make(store)
      // One thread makes all calls, since strace counts each one's own; the seventh sync is that of the second append.
      const tracing = ["env", "UV_THREADPOOL_SIZE=1", "strace", "-f", "-y", "--seccomp-bpf", "-o", trace, "-e", "trace=pwrite64,write,fdatasync", "-e", "inject=fdatasync:error=EIO:when=7"]
      const writer = Held.holder(programs.file, store, "the writer", tracing)
      assert.strictEqual(yield* promise(writer.answer), "open")
      const answers = yield* promise(async () => [await writer.ask("append"), await writer.ask("append"), await writer.ask("append")])
      assert.deepStrictEqual(answers.map((answer) => answer.split(":")[0]), ["ok", "STORE_FAILED", "ok"])
      yield* promise(() => writer.end())
      const log = path.join(store.directory, "sessions", Held.id, "log.1.jsonl")
      const calls = callsOf(fs.readFileSync(trace, "utf8")).filter(({ target }) => target === log)
      const failed = calls.findIndex(({ result }) => result.includes("INJECTED"))
      assert.deepStrictEqual(calls.slice(failed, failed + 4).map(({ name, result }) => [name, /^\d+$/u.test(result)]), [["fdatasync", false], ["pwrite64", true], ["write", true], ["fdatasync", true]])
      // From where the last sync that succeeded had ended to the end: what it was, and where.
      const written = /, (\d+), (\d+)$/u.exec(calls[failed + 1]?.rest ?? "")
      const text = fs.readFileSync(log, "utf8")
      const [end, from] = [Number(written?.[1]) + Number(written?.[2]), Number(written?.[2])]
      assert.include(text.slice(from, end), `{"seq":2,`)
      assert.isTrue(text.slice(end).startsWith(`{"log":"void"`))
      assert.deepStrictEqual(yield* Held.turnsBy(store), ["the writer", "the writer"])
    }), 60_000)
})
