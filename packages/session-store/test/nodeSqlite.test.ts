/** The connection for writing: where it begins, when it moves into its thread, and what it takes along. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { Worker } from "node:worker_threads"
import * as NodeSqlite from "../src/internal/nodeSqlite.ts"
import * as Engine from "../src/internal/sqliteEngine.ts"
import { temporary } from "./support/directory.ts"

/** The threads that were begun since, and how many of them have ended. */
const threads = Effect.gen(function*() {
  const seen = { begun: 0, ended: 0 }
  const note = (worker: Worker) => {
    seen.begun++
    worker.once("exit", () => seen.ended++)
  }
  yield* Effect.acquireRelease(Effect.sync(() => process.on("worker", note)), () => Effect.sync(() => process.off("worker", note)))
  return seen
})

/** A file in WAL mode with a table, and somebody who has it open besides, as the reader of a store has. */
const table = Effect.gen(function*() {
  const file = path.join(yield* temporary, "file")
  const other = yield* Effect.acquireRelease(Effect.sync(() => new DatabaseSync(file)), (db) => Effect.sync(() => db.close()))
  other.exec("pragma journal_mode=wal; create table noted (what text primary key)")
  return { file, other, noted: () => other.prepare("select what from noted order by rowid").all().map(({ what }) => what) }
})

const pragmas = { pragmas: "PRAGMA busy_timeout=1000", pragmasHere: "PRAGMA busy_timeout=0" }

/** A connection that keeps this thread for so long. */
const writing = (file: string, keptMillis: number) =>
  NodeSqlite.forWriting({ file, ...pragmas }).pipe(Effect.provideService(NodeSqlite.KeptMillis, keptMillis))

const begin: Engine.Operation = { kind: "begin", level: "FULL" }
const commit: Engine.Operation = { kind: "commit" }
const insertion = (what: string): Engine.Statement => ({ sql: "insert into noted (what) values (?) returning what", params: [what] })
const insert = (what: string): Engine.Operation => ({ kind: "rows", ...insertion(what) })
const whole = (...all: ReadonlyArray<string>): Engine.Operation => ({ kind: "transaction", level: "FULL", statements: all.map(insertion) })

/** So small that it is over with the first thing that is done. */
const nearlyNothing = Number.MIN_VALUE

describe("a connection for writing", () => {
  it.live("stays in this thread, with no thread begun, while it keeps it for less than it may", () =>
    Effect.gen(function*() {
      const seen = yield* threads
      const { file, noted } = yield* table
      const scope = yield* Scope.make()
      const run = yield* Scope.provide(writing(file, Number.POSITIVE_INFINITY), scope)
      for (const operation of [begin, insert("a"), commit, whole("b", "c")]) yield* run(operation)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual([noted(), seen], [["a", "b", "c"], { begun: 0, ended: 0 }])
    }).pipe(Effect.scoped))

  it.live("moves between two transactions, and not within one", () =>
    Effect.gen(function*() {
      const seen = yield* threads
      const { file, noted } = yield* table
      const scope = yield* Scope.make()
      const run = yield* Scope.provide(writing(file, nearlyNothing), scope)
      for (const operation of [begin, insert("a"), insert("b"), commit]) {
        yield* run(operation)
        assert.strictEqual(seen.begun, 0)
      }
      assert.deepStrictEqual(noted(), ["a", "b"])
      for (const operation of [begin, insert("c"), commit, whole("d"), begin, insert("not kept"), { kind: "rollback" } as const]) yield* run(operation)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual([noted(), seen], [["a", "b", "c", "d"], { begun: 1, ended: 1 }])
    }).pipe(Effect.scoped))

  it.live("is in a thread from the beginning where it may keep this one for no time", () =>
    Effect.gen(function*() {
      const seen = yield* threads
      const { file, noted } = yield* table
      const run = yield* writing(file, 0)
      assert.deepStrictEqual(yield* run(whole("a")), [{ what: "a" }])
      assert.deepStrictEqual([noted(), seen.begun], [["a"], 1])
    }).pipe(Effect.scoped))

  for (const [name, operations] of [["a transaction", [begin, insert("a"), commit]], ["a transaction in one", [whole("a")]]] as const) {
    it.live(`moves where somebody else has the file, and does ${name} there once`, () =>
      Effect.gen(function*() {
        const seen = yield* threads
        const { file, noted, other } = yield* table
        const run = yield* writing(file, Number.POSITIVE_INFINITY)
        yield* run(whole("before"))
        other.exec("begin immediate")
        const writer = yield* Effect.forkChild(
          Effect.gen(function*() {
            for (const operation of operations) yield* NodeSqlite.whileBusy(10)(run(operation))
          }),
          { startImmediately: true }
        )
        for (let look = 0; look < 1_000 && seen.begun === 0; look++) yield* Effect.sleep("5 millis")
        assert.strictEqual(seen.begun, 1)
        other.exec("insert into noted (what) values ('other'); commit")
        yield* Fiber.join(writer)
        assert.deepStrictEqual(noted(), ["before", "other", "a"])
      }).pipe(Effect.scoped))
  }

  it.live("fails as one in this thread does, also in its own", () =>
    Effect.gen(function*() {
      const { file, noted } = yield* table
      const failures: Array<unknown> = []
      for (const kept of [Number.POSITIVE_INFINITY, nearlyNothing, 0]) {
        const run = yield* writing(file, kept)
        yield* run(whole(`${kept}`))
        const { message, reason } = yield* Effect.flip(run(whole(`${kept} again`, `${kept}`)))
        failures.push([reason._tag, message])
      }
      assert.deepStrictEqual(failures, Array.from({ length: 3 }, () => ["UniqueViolation", "UNIQUE constraint failed: noted.what"]))
      assert.deepStrictEqual(noted(), ["Infinity", `${nearlyNothing}`, "0"])
    }).pipe(Effect.scoped))

  it.live("that is closed while it moves ends its thread, and what was asked for before is done", () =>
    Effect.gen(function*() {
      const seen = yield* threads
      const { file, noted } = yield* table
      const scope = yield* Scope.make()
      const run = yield* Scope.provide(writing(file, nearlyNothing), scope)
      yield* run(whole("here"))
      const asked = yield* Effect.forkChild(Effect.exit(run(whole("there"))), { startImmediately: true })
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual([(yield* Fiber.join(asked))._tag, noted(), seen], ["Success", ["here", "there"], { begun: 1, ended: 1 }])
    }).pipe(Effect.scoped))

  it.live("that is closed in the middle of a transaction keeps nothing of it, wherever it is", () =>
    Effect.gen(function*() {
      const { file, noted, other } = yield* table
      for (const kept of [Number.POSITIVE_INFINITY, 0]) {
        const scope = yield* Scope.make()
        const run = yield* Scope.provide(writing(file, kept), scope)
        for (const operation of [begin, insert("not kept")]) yield* run(operation)
        yield* Scope.close(scope, Exit.void)
        // Nobody is in the way of whoever comes next.
        other.exec("begin immediate; commit")
        assert.deepStrictEqual(noted(), [])
      }
    }).pipe(Effect.scoped))

  it.live("that cannot open its file fails what asks for it, and tries anew", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const file = path.join(directory, "missing", "file")
      for (const kept of [Number.POSITIVE_INFINITY, 0]) {
        const scope = yield* Scope.make()
        const run = yield* Scope.provide(writing(file, kept), scope)
        assert.strictEqual((yield* Effect.flip(run(begin))).reason._tag, "ConnectionError")
        fs.mkdirSync(path.dirname(file))
        yield* run(begin)
        yield* run({ kind: "rollback" })
        yield* Scope.close(scope, Exit.void)
        fs.rmSync(path.dirname(file), { recursive: true })
      }
    }).pipe(Effect.scoped))
})

describe("an engine after one whose sync failed", () => {
  it.live("begins nothing before all that stands in the WAL is in the file, and waits for readers of it", () =>
    Effect.gen(function*() {
      const { file, noted, other } = yield* table
      other.exec("insert into noted (what) values ('in doubt')")
      const size = () => fs.statSync(`${file}-wal`).size
      assert.isAbove(size(), 0)
      const engine = Engine.open(DatabaseSync, { file, pragmas: pragmas.pragmasHere, isSuspect: true })
      const reader = new DatabaseSync(file)
      reader.exec("begin; select * from noted")
      other.exec("insert into noted (what) values ('later')")
      assert.throws(() => engine.run(begin), "others read what has to be written anew")
      assert.isTrue(engine.isSuspect())
      reader.close()
      engine.run(begin)
      assert.deepStrictEqual([size(), engine.isSuspect()], [0, false])
      engine.run({ kind: "close" })
      assert.deepStrictEqual(noted(), ["in doubt", "later"])
    }).pipe(Effect.scoped))
})
