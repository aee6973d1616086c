import { assert, describe, it, vi } from "@effect/vitest"
import { Failure, Scalars, type SessionEvent } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import { type SqlDatabase, SqliteSessionStore, SqlSessionStore } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import * as NodeSqlite from "../src/internal/nodeSqlite.ts"
import { temporary } from "./support/directory.ts"
import * as Sqlite from "./support/sqlite.ts"

// Disks that others use as well take their time.
vi.setConfig({ testTimeout: 60_000 })

const id = Scalars.SessionId.make("one")
const header = { type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/project" } as const
const turn = (number: number, seq: number): ReadonlyArray<SessionEvent.SessionEvent> => [
  { seq, time: 1, type: "turn/start", data: { turn: number, trigger: { kind: "message", source: "user" } } },
  { seq: seq + 1, time: 2, type: "turn/end", data: { turn: number, verdict: { type: "completed" } } }
]

/** What becomes of a transaction and of its answer. */
type Fate = "well" | "no answer" | "not done, no answer"

/** A database over a connection that breaks: each transaction has the next fate. */
const breaking = Effect.gen(function*() {
  const directory = yield* temporary
  yield* Effect.scoped(SqliteSessionStore.make({ directory }))
  const run = yield* NodeSqlite.inThisThread({ file: Sqlite.fileIn(directory), pragmas: "" })
  const { client, transaction, write } = yield* NodeSqlite.make(run, run, { reading: 100, writing: 100 })
  const fates: Array<Fate> = []
  const broken = Effect.fail(new SqlError({ reason: new ConnectionError({ cause: new Error("it broke"), message: "it broke" }) }))
  const fated = <A, E, R>(commit: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
    Effect.suspend((): Effect.Effect<A, E | SqlError, R> => {
      const fate = fates.shift() ?? "well"
      return fate === "not done, no answer" ? broken : Effect.flatMap(commit, (done) => fate === "well" ? Effect.succeed(done) : broken)
    })
  const database: SqlDatabase.SqlDatabase = {
    sql: client,
    place: "here",
    transaction: (work, options) => fated(transaction(work, options)),
    write: (statements, options) => fated(write(statements, options)),
    now: Effect.succeed(1_000),
    mayHaveChanged: Effect.succeed(true),
    pollMillis: 10,
    failureOf: (error) => Failure.make("STORE_FAILED", error.message),
    isInDoubt: () => true
  }
  const store = yield* SqlSessionStore.make(database)
  yield* store.create(header)
  const writer = yield* store.open(id, "the test")
  yield* writer.append(turn(1, 0), { sync: true })
  return { fates, store, writer, other: yield* SqliteSessionStore.make({ directory }) }
})

const failureOf = <A, R>(effect: Effect.Effect<A, SessionStore.SessionStoreError, R>) =>
  Effect.map(Effect.flip(effect), ({ failure: { code, message } }) => [code, message])
const logOf = (store: SessionStore.Service) => Stream.runCollect(store.read(id, -1))

describe("an append whose answer does not come", () => {
  it.live("succeeds where it turns out to be committed", () =>
    Effect.gen(function*() {
      const { fates, store, writer } = yield* breaking
      fates.push("no answer")
      yield* writer.append(turn(2, 2), { sync: true })
      yield* writer.append(turn(3, 4), { sync: true })
      assert.deepStrictEqual(yield* logOf(store), [...turn(1, 0), ...turn(2, 2), ...turn(3, 4)])
    }))

  it.live("fails where it turns out not to be, and the next one follows what is there", () =>
    Effect.gen(function*() {
      const { fates, store, writer } = yield* breaking
      fates.push("not done, no answer")
      assert.deepStrictEqual(yield* failureOf(writer.append(turn(2, 2), { sync: true })), ["STORE_FAILED", "it broke"])
      assert.deepStrictEqual(yield* logOf(store), turn(1, 0))
      yield* writer.append(turn(2, 2), { sync: true })
      assert.deepStrictEqual(yield* logOf(store), [...turn(1, 0), ...turn(2, 2)])
    }))

  it.live("is looked for again before the next, where nobody could be asked", () =>
    Effect.gen(function*() {
      const { fates, store, writer } = yield* breaking
      fates.push("not done, no answer", "no answer")
      assert.deepStrictEqual(yield* failureOf(writer.append(turn(2, 2), { sync: true })), ["STORE_FAILED", "it broke"])
      fates.push("no answer")
      assert.deepStrictEqual(yield* failureOf(writer.append(turn(2, 2), { sync: true })), ["STORE_FAILED", "it broke"])
      yield* writer.append(turn(2, 2), { sync: true })
      assert.deepStrictEqual(yield* logOf(store), [...turn(1, 0), ...turn(2, 2)])
    }))

  it.live("ends the writer where it was refused and turns out to be committed: the log is not its any more", () =>
    Effect.gen(function*() {
      const { fates, store, writer } = yield* breaking
      fates.push("no answer", "no answer")
      assert.deepStrictEqual(yield* failureOf(writer.append(turn(2, 2), { sync: true })), ["STORE_FAILED", "it broke"])
      for (let round = 0; round < 2; round++) {
        assert.deepStrictEqual(yield* failureOf(writer.append(turn(2, 2), { sync: true })), [
          "STORE_FAILED",
          "session one was appended to although the append had failed: the connection to here broke before the answer came"
        ])
      }
      assert.deepStrictEqual(yield* logOf(store), [...turn(1, 0), ...turn(2, 2)])
    }))

  it.live("is refused where another writer has taken over meanwhile", () =>
    Effect.gen(function*() {
      const { fates, other, writer } = yield* breaking
      // This store's clock stands still, so that to the other its lease is long over.
      const next = yield* other.open(id, "the next")
      fates.push("not done, no answer")
      const [code, message] = yield* failureOf(writer.append(turn(2, 2), { sync: true }))
      assert.strictEqual(code, "SESSION_BUSY")
      assert.match(String(message), /^session one is used by the next since /u)
      yield* next.append(turn(2, 2), { sync: true })
    }))
})

describe("a session that could not be let go", () => {
  it.live("is free in the process that had it, and others wait for its lease", () =>
    Effect.gen(function*() {
      const { fates, store } = yield* breaking
      const two = Scalars.SessionId.make("two")
      yield* store.create({ ...header, id: two })
      yield* Effect.scoped(Effect.andThen(store.open(two, "the first"), Effect.sync(() => fates.push("not done, no answer"))))
      const [summary] = (yield* Stream.runCollect(store.list)).filter(({ header: { id: session } }) => session === two)
      assert.isUndefined(summary?.holder)
      const writer = yield* store.open(two, "the second")
      yield* writer.append(turn(1, 0), { sync: true })
    }))
})
