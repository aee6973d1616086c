import { assert, describe, it } from "@effect/vitest"
import { Failure } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import * as Changes from "../src/internal/changes.ts"
import * as NodeSqlite from "../src/internal/nodeSqlite.ts"

const broken = Effect.fail(new SqlError({ reason: new ConnectionError({ cause: new Error("it broke"), message: "it broke" }) }))

/** Changes of a database of which only the sessions' lengths matter, and which fails as long as `isBroken`. */
const setUp = Effect.gen(function*() {
  const run = yield* NodeSqlite.inThisThread({ file: ":memory:", pragmas: "create table sessions (number integer primary key, id text, next_seq integer, inbox_seq integer)" })
  const { client, transaction, write } = yield* NodeSqlite.make(run, run, { reading: 1, writing: 1 })
  yield* client`insert into sessions values (1, 'one', 5, 2)`
  const isBroken = yield* Ref.make(false)
  const changes = yield* Changes.make({
    sql: client,
    place: "here",
    transaction,
    write,
    now: Effect.succeed(0),
    mayHaveChanged: Effect.flatMap(Ref.get(isBroken), (is) => is ? broken : Effect.succeed(true)),
    pollMillis: 100,
    failureOf: (error) => Failure.make("STORE_FAILED", error.message),
    isInDoubt: () => false
  })
  const waiting = (kind: Changes.Kind, seen: number) =>
    Effect.forkChild(changes.wait(1, kind, seen, Effect.succeed({ log: 5, inbox: 2 })), { startImmediately: true })
  const isWaiting = (fiber: Fiber.Fiber<unknown, unknown>) => fiber.pollUnsafe() === undefined
  return { changes, client, isBroken, isWaiting, waiting }
})

describe("who waits for a session", () => {
  it.effect("is told at once of what this store commits, and by the next look of what others do", () =>
    Effect.gen(function*() {
      const { changes, client, isWaiting, waiting } = yield* setUp
      const [log, inbox] = [yield* waiting("log", 5), yield* waiting("inbox", 2)]
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([isWaiting(log), isWaiting(inbox)], [true, true])
      changes.tell(1, { log: 6 })
      yield* Fiber.join(log)
      assert.isTrue(isWaiting(inbox))
      yield* client`update sessions set inbox_seq = 3`
      yield* TestClock.adjust("100 millis")
      yield* Fiber.join(inbox)
    }))

  it.effect("does not wait for what is there already, and is woken when the session goes", () =>
    Effect.gen(function*() {
      const { client, waiting } = yield* setUp
      yield* Fiber.join(yield* waiting("log", 4))
      const last = yield* waiting("log", 5)
      yield* client`delete from sessions`
      yield* TestClock.adjust("100 millis")
      yield* Fiber.join(last)
    }))

  it.effect("waits on while nobody can be asked for a while, and not for ever", () =>
    Effect.gen(function*() {
      const { client, isBroken, isWaiting, waiting } = yield* setUp
      const first = yield* waiting("log", 5)
      yield* Ref.set(isBroken, true)
      yield* client`update sessions set next_seq = 6`
      yield* TestClock.adjust("20 seconds")
      assert.isTrue(isWaiting(first))
      yield* Ref.set(isBroken, false)
      yield* TestClock.adjust("100 millis")
      yield* Fiber.join(first)
      const second = yield* waiting("log", 6)
      yield* Ref.set(isBroken, true)
      yield* TestClock.adjust("29 seconds")
      assert.isTrue(isWaiting(second))
      yield* TestClock.adjust("2 seconds")
      // It looks for itself then, and hears what is wrong.
      yield* Fiber.join(second)
    }))
})
