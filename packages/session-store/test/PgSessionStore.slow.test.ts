import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Scalars, type SessionEvent } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import { PgSessionStore } from "@turnpike/session-store"
import { StoreSuite } from "@turnpike/testkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { bundle, type Bundle } from "./support/bundle.ts"
import { hooksOf } from "./support/hooks.ts"
import * as KillLoop from "./support/killLoop.ts"
import * as Postgres from "./support/postgres.ts"
import * as Programs from "./support/programs.ts"
import type { StoreName } from "./support/programs/stores.ts"
import { sumOf } from "./support/programs/writer.ts"

const scope = Effect.runSync(Scope.make())
let server: Postgres.Server
let programs: Bundle

beforeAll(async () => {
  server = await Effect.runPromise(Scope.provide(Postgres.server, scope))
  programs = await bundle()
}, 120_000)

afterAll(async () => {
  programs.remove()
  await Effect.runPromise(Scope.close(scope, Exit.void))
}, 60_000)

/** The name of a schema of a test's own. */
class Schema extends Context.Service<Schema, string>()("test/Schema") {
  static count = 0
  static readonly layer = Layer.sync(Schema, () => `sessions ${++Schema.count}`)
}

const optionsOf = (schema: string): PgSessionStore.Options => {
  const { database, host, port, username } = server
  return { host, port, username, database, schema }
}

const layer = Layer.unwrap(Effect.map(Schema, (schema) => PgSessionStore.layer(optionsOf(schema)))).pipe(Layer.provideMerge(Schema.layer))

const clientOf = (schema: string): Effect.Effect<SqlClient, SqlError, Scope.Scope> => {
  const { database, host, port, username } = server
  return PgClient.make({ host, port, username, database, startupParameters: { search_path: `"${schema}"` } }).pipe(Effect.provide(Reactivity.layer))
}

const client = Effect.flatMap(Schema, clientOf)

StoreSuite.storeSuite("PgSessionStore", { describe, it: it.live }, layer, hooksOf(client))

const newSchema = () => `sessions ${++Schema.count}`

const id = Scalars.SessionId.make("one")
const header = { type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/project" } as const
const turn = (number: number, seq: number): ReadonlyArray<SessionEvent.SessionEvent> => [
  { seq, time: 1, type: "turn/start", data: { turn: number, trigger: { kind: "message", source: "user" } } },
  { seq: seq + 1, time: 2, type: "turn/end", data: { turn: number, verdict: { type: "completed" } } }
]
const promise = <A>(work: () => Promise<A>) => Effect.promise(work)

const failureOf = <A, R>(effect: Effect.Effect<A, SessionStore.SessionStoreError, R>) => Effect.map(Effect.flip(effect), ({ failure }) => failure)

describe("a schema", () => {
  it.live("of another program is left alone", () =>
    Effect.gen(function*() {
      const schema = newSchema()
      const sql = yield* clientOf("public")
      yield* sql`create schema ${sql(schema)}`.unprepared
      yield* sql`create table ${sql(`${schema}.mine`)} (a integer)`.unprepared
      const { code, message, retryable } = yield* failureOf(PgSessionStore.make(optionsOf(schema)))
      assert.deepStrictEqual([code, message, retryable], [
        "STORE_FAILED",
        `the schema ${schema} of PostgreSQL at 127.0.0.1:${server.port}/postgres is no store of sessions: it has tables of another program`,
        false
      ])
      assert.deepStrictEqual(yield* sql`select tablename from pg_tables where schemaname = ${schema}`, [{ tablename: "mine" }])
    }))

  it.live("of a later version is refused, and nothing of it is changed", () =>
    Effect.gen(function*() {
      const schema = newSchema()
      yield* Effect.scoped(PgSessionStore.make(optionsOf(schema)))
      const sql = yield* clientOf(schema)
      yield* sql`update turnpike_store set version = 7`
      const { code, message } = yield* failureOf(PgSessionStore.make(optionsOf(schema)))
      assert.deepStrictEqual([code, message], [
        "FORMAT_UNSUPPORTED",
        `the sessions in PostgreSQL at 127.0.0.1:${server.port}/postgres were written by a later version: their tables have version 7, this one knows 1`
      ])
    }))

  it.live("is made once, whoever opens it first at the same time", () =>
    Effect.gen(function*() {
      const schema = newSchema()
      const stores = yield* Effect.all([1, 2, 3, 4].map(() => PgSessionStore.make(optionsOf(schema))), { concurrency: "unbounded" })
      yield* stores[0]!.create(header)
      for (const store of stores) assert.deepStrictEqual(yield* store.header(id), header)
    }))
})

describe("a server", () => {
  it.live("that is not there is told by its address, and never by its password", () =>
    Effect.gen(function*() {
      const url = Redacted.make("postgres://somebody:a-secret@127.0.0.1:1/sessions")
      const { code, message, retryable } = yield* failureOf(PgSessionStore.make({ url }))
      assert.deepStrictEqual([code, retryable], ["STORE_FAILED", true])
      assert.match(message, /^the sessions in PostgreSQL at 127\.0\.0\.1:1\/sessions cannot be reached: .+/u)
      assert.notInclude(message, "a-secret")
    }))

  it.live("that refuses the user, or has no such database, says so", () =>
    Effect.gen(function*() {
      const refused = yield* failureOf(PgSessionStore.make({ ...optionsOf(newSchema()), username: "nobody" }))
      assert.deepStrictEqual([refused.code, refused.retryable], ["STORE_FAILED", false])
      assert.include(refused.message, "cannot be opened: role \"nobody\" does not exist")
      const missing = yield* failureOf(PgSessionStore.make({ ...optionsOf(newSchema()), database: "nothing" }))
      assert.deepStrictEqual([missing.code, missing.retryable], ["STORE_FAILED", false])
      assert.include(missing.message, "database \"nothing\" does not exist")
    }))

  it.live("that crashes has what was acknowledged, five times, and the same store goes on", () =>
    Effect.gen(function*() {
      const store = yield* PgSessionStore.make(optionsOf(newSchema()))
      yield* store.create(header)
      const kept: Array<SessionEvent.SessionEvent> = []
      for (let crash = 0; crash < 5; crash++) {
        yield* Effect.scoped(Effect.gen(function*() {
          const writer = yield* store.open(id, "the test")
          kept.push(...writer.recovery.closed)
          const writing = yield* Effect.forkChild(Effect.flip(Effect.forever(Effect.suspend(() => {
            const events = turn(kept.filter(({ type }) => type === "turn/start").length + 1, kept.length)
            return Effect.tap(writer.append(events, { sync: false }), () => Effect.sync(() => kept.push(...events)))
          }))))
          const from = kept.length
          while (kept.length < from + 20) yield* Effect.sleep("5 millis")
          yield* promise(server.crash)
          const { failure } = yield* Fiber.join(writing)
          assert.strictEqual(failure.code, "STORE_FAILED", failure.message)
        }))
        const events = yield* Stream.runCollect(store.read(id, -1))
        // What was refused because no answer came may be there; what was acknowledged is.
        assert.strictEqual(sumOf(events.slice(0, kept.length)), sumOf(kept))
        kept.push(...events.slice(kept.length))
      }
    }), 120_000)
})

describe("writers", () => {
  const storeOf = (schema: string, leaseMillis?: number): StoreName => ({
    kind: "postgres",
    server: optionsOf(schema),
    ...(leaseMillis === undefined ? {} : { leaseMillis })
  })

  it.live("that are killed have lost nothing that they acknowledged, 100 times, and leave one open turn at most", () =>
    Effect.gen(function*() {
      const seen = KillLoop.tally()
      const seeds = Array.from({ length: 4 }, () => Math.floor(Math.random() * 1_000_000_000))
      const store = storeOf(newSchema())
      console.log(`PostgreSQL kill loops: 4 × 25 rounds, seeds ${seeds.join(" ")}`)
      const faults = yield* promise(() =>
        Promise.all(seeds.map((seed, index) => KillLoop.run({ bundle: programs.file, store, session: `s${index}`, rounds: 25, seed }, seen))))
      console.log(`PostgreSQL kill loops: ${JSON.stringify(seen)}`)
      assert.deepStrictEqual(faults.flat(), [])
      assert.strictEqual(seen.rounds, 100)
      assert.isAbove(seen.open, 10)
    }), 180_000)

  it.live("that are frozen and were taken over write nothing once they thaw", () =>
    Effect.gen(function*() {
      const store = storeOf(newSchema(), 1_000)
      const holder = (name: string) => Programs.converse({ bundle: programs.file, name: "holder", args: { store, session: id, name } })
      yield* Effect.scoped(Effect.flatMap(PgSessionStore.make(optionsOf(`sessions ${Schema.count}`)), (one) => one.create(header)))
      const frozen = holder("frozen")
      assert.strictEqual(yield* promise(frozen.answer), "open")
      assert.strictEqual(yield* promise(() => frozen.ask("append")), "ok")
      const refused = holder("refused")
      assert.match(yield* promise(refused.answer), /^SESSION_BUSY: session one is used by frozen since/u)
      yield* promise(() => refused.end())
      process.kill(frozen.pid, "SIGSTOP")
      const next = yield* promise(async () => {
        for (let tries = 0; tries < 200; tries++) {
          const one = holder("next")
          if (await one.answer() === "open") return one
          await one.end()
        }
        throw new Error("the lease of a frozen process does not run out")
      })
      assert.strictEqual(yield* promise(() => next.ask("append")), "ok")
      process.kill(frozen.pid, "SIGCONT")
      assert.match(yield* promise(() => frozen.ask("append")), /^SESSION_BUSY: session one is used by next since/u)
      yield* promise(() => frozen.end())
      assert.strictEqual(yield* promise(() => next.ask("append")), "ok")
      yield* promise(() => next.end())
    }), 60_000)
})
