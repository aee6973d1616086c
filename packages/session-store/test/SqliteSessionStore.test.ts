import { assert, describe, it, vi } from "@effect/vitest"
import { Scalars, type SessionEvent } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import { SqliteSessionStore } from "@turnpike/session-store"
import { StoreSuite } from "@turnpike/testkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { temporary } from "./support/directory.ts"
import { hooksOf } from "./support/hooks.ts"
import * as Sqlite from "./support/sqlite.ts"

// Disks that others use as well take their time.
vi.setConfig({ testTimeout: 60_000 })

StoreSuite.storeSuite("SqliteSessionStore", { describe, it: it.live }, Sqlite.layer, hooksOf(Sqlite.client))
StoreSuite.storeSuite("SqliteSessionStore that writes in a thread", { describe, it: it.live }, Sqlite.threadedLayer, hooksOf(Sqlite.client))

type StoreError = SessionStore.SessionStoreError

const id = Scalars.SessionId.make("one")
const header = { type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/project" } as const

const turn = (number: number, seq: number): ReadonlyArray<SessionEvent.SessionEvent> => [
  { seq, time: 1, type: "turn/start", data: { turn: number, trigger: { kind: "message", source: "user" } } },
  { seq: seq + 1, time: 2, type: "turn/end", data: { turn: number, verdict: { type: "completed" } } }
]

const open = (directory: string) => SqliteSessionStore.make({ directory })

/** Runs something on a store that is closed afterwards. */
const once = <A>(directory: string, work: (store: SessionStore.Service) => Effect.Effect<A, StoreError>) =>
  Effect.scoped(Effect.flatMap(open(directory), work))

/** The failure without what only people read. */
const failureOf = <A, R>(effect: Effect.Effect<A, StoreError, R>) =>
  Effect.map(Effect.flip(effect), ({ failure: { code, data, message, remedy, retryable } }) => ({ code, data, message, remedy, retryable }))

describe("a file of sessions", () => {
  it.live("is made where it is missing, for its owner's eyes alone", () =>
    Effect.gen(function*() {
      const directory = path.join(yield* temporary, "a", "b")
      yield* once(directory, (store) => store.create(header))
      assert.deepStrictEqual(fs.readdirSync(directory), [SqliteSessionStore.fileName])
      assert.strictEqual(fs.statSync(directory).mode & 0o777, 0o700)
      assert.strictEqual(fs.statSync(Sqlite.fileIn(directory)).mode & 0o777, 0o600)
      assert.deepStrictEqual(yield* once(directory, (store) => store.header(id)), header)
    }))

  it.live("is made once, whoever opens it first at the same time", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const stores = yield* Effect.all([1, 2, 3, 4].map(() => open(directory)), { concurrency: "unbounded" })
      yield* stores[0]!.create(header)
      for (const store of stores) assert.deepStrictEqual(yield* store.header(id), header)
    }))

  it.live.skipIf(!fs.existsSync("/proc/locks"))("stays locked for a store of this process while others are opened and closed in it", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const first = yield* open(directory)
      yield* first.create(header)
      const { ino } = fs.statSync(Sqlite.fileIn(directory))
      const locks = () => fs.readFileSync("/proc/locks", "utf8").split("\n").filter((line) => line.includes(`:${ino} `)).map((line) => line.replace(/^\d+: */u, ""))
      const held = locks()
      assert.isAbove(held.length, 0)
      yield* once(directory, (second) => second.header(id))
      assert.deepStrictEqual(locks(), held)
      assert.strictEqual((yield* failureOf(Effect.scoped(SqliteSessionStore.make({ file: directory })))).code, "STORE_FAILED")
      assert.deepStrictEqual(locks(), held)
    }))

  it.live("is left alone where it is something else, to the byte", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const file = Sqlite.fileIn(directory)
      const other = new DatabaseSync(path.join(directory, "other"))
      other.exec("create table mine (a); insert into mine values (1)")
      other.close()
      const database = fs.readFileSync(path.join(directory, "other"))
      const cases: ReadonlyArray<readonly [Uint8Array, string]> = [
        [Buffer.from("not a database, whatever its name is\n".repeat(10)), "it is not a SQLite database"],
        [Buffer.from("SQLite format 3\0"), "it is not a SQLite database"],
        [database, "it is a SQLite database of another program"],
        [database.subarray(0, 60), "it is not a SQLite database"]
      ]
      for (const [bytes, what] of cases) {
        fs.writeFileSync(file, bytes)
        assert.deepStrictEqual(yield* failureOf(open(directory)), {
          code: "STORE_FAILED",
          message: `${file} is no store of sessions: ${what}`,
          data: { place: file },
          remedy: "Name another file or directory for the sessions, or move this one away. It was not touched.",
          retryable: false
        })
        assert.deepStrictEqual(fs.readFileSync(file), Buffer.from(bytes))
        assert.deepStrictEqual(fs.readdirSync(directory).sort(), ["other", SqliteSessionStore.fileName])
      }
    }))

  /** Copies a file that is open, with its WAL, as a crash leaves it at the beginning of a checkpoint: its first page is the new one, and says that there are more. */
  const crashed = (file: string, copy: string) => {
    for (const suffix of ["", "-wal"]) fs.copyFileSync(`${file}${suffix}`, `${copy}${suffix}`)
    const whole = `${copy}-whole`
    for (const suffix of ["", "-wal"]) fs.copyFileSync(`${file}${suffix}`, `${whole}${suffix}`)
    const database = new DatabaseSync(whole)
    database.exec("pragma wal_checkpoint(truncate)")
    database.close()
    const bytes = fs.readFileSync(copy)
    assert.isBelow(bytes.length, fs.statSync(whole).size)
    fs.writeFileSync(copy, Buffer.concat([fs.readFileSync(whole).subarray(0, 4096), bytes.subarray(4096)]))
    fs.rmSync(whole)
  }

  it.live("is whole with its WAL though a crash left it half written", () =>
    Effect.gen(function*() {
      const [directory, other] = [yield* temporary, yield* temporary]
      const store = yield* open(directory)
      yield* store.create(header)
      for (let key = 0; key < 20; key++) yield* store.receive(id, { kind: "followup", text: `${key}`.repeat(5_000), source: "test" })
      crashed(Sqlite.fileIn(directory), Sqlite.fileIn(other))
      assert.deepStrictEqual((yield* once(other, (copy) => copy.pending(id))).nextTurn, (yield* store.pending(id)).nextTurn)
    }))

  it.live("is not made of another program's that a crash left half written", () =>
    Effect.gen(function*() {
      const [directory, other] = [yield* temporary, yield* temporary]
      const file = Sqlite.fileIn(directory)
      const database = new DatabaseSync(file)
      database.exec("pragma journal_mode=wal; create table mine (a); insert into mine values (1); pragma wal_checkpoint; insert into mine values (zeroblob(50000))")
      crashed(file, Sqlite.fileIn(other))
      database.close()
      assert.deepStrictEqual((yield* failureOf(open(other))).message, `${Sqlite.fileIn(other)} is no store of sessions: it is a SQLite database of another program`)
      const left = new DatabaseSync(Sqlite.fileIn(other))
      assert.deepStrictEqual(left.prepare("select name from sqlite_schema union all select length(a) from mine").all().map(({ name }) => name), ["mine", 1, 50_000])
      assert.strictEqual(left.prepare("pragma application_id").get()?.["application_id"], 0)
      left.close()
    }))

  it.live("is made anew where it is empty, as a crash before the first commit leaves it", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      fs.writeFileSync(Sqlite.fileIn(directory), "")
      yield* once(directory, (store) => store.create(header))
    }))

  it.live("of a later version is refused, and nothing of it is changed", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const file = Sqlite.fileIn(directory)
      yield* once(directory, (store) => store.create(header))
      const later = new DatabaseSync(file)
      later.exec("update turnpike_store set version = 2; create table later (a)")
      later.close()
      const before = fs.readFileSync(file)
      assert.deepStrictEqual(yield* failureOf(open(directory)), {
        code: "FORMAT_UNSUPPORTED",
        message: `the sessions in ${file} were written by a later version: their tables have version 2, this one knows 1`,
        data: { place: file, version: 2 },
        remedy: "Update Turnpike, or name another place for its sessions. Nothing was changed.",
        retryable: false
      })
      assert.deepStrictEqual(fs.readFileSync(file), before)
    }))

  it.live("that is damaged says so with its name", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const file = Sqlite.fileIn(directory)
      yield* once(directory, (store) => store.create(header))
      const bytes = fs.readFileSync(file)
      bytes.fill(0xff, 100, 4096)
      fs.writeFileSync(file, bytes)
      const { code, message, retryable } = yield* failureOf(once(directory, (store) => store.header(id)))
      assert.deepStrictEqual([code, retryable], ["STORE_FAILED", false])
      assert.include(message, file)
    }))

  it.live("cannot be where a directory, or nothing that can be written, is", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      fs.mkdirSync(Sqlite.fileIn(directory))
      const first = yield* failureOf(open(directory))
      assert.deepStrictEqual([first.code, first.data], ["STORE_FAILED", { place: Sqlite.fileIn(directory) }])
      const plain = path.join(directory, "plain")
      fs.writeFileSync(plain, "")
      const second = yield* failureOf(open(plain))
      assert.deepStrictEqual([second.code, second.data], ["STORE_FAILED", { place: Sqlite.fileIn(plain) }])
    }))
})

describe("a file that goes while it is used", () => {
  const gone: ReadonlyArray<readonly [string, (directory: string) => void]> = [
    ["with its directory", (directory) => fs.rmSync(directory, { recursive: true })],
    ["because its directory is moved", (directory) => fs.renameSync(directory, `${directory}.moved`)],
    ["because another one takes its place", (directory) => {
      const file = Sqlite.fileIn(directory)
      fs.copyFileSync(file, `${file}.copy`)
      fs.renameSync(`${file}.copy`, file)
    }],
    ["because its WAL is deleted", (directory) => fs.rmSync(`${Sqlite.fileIn(directory)}-wal`)]
  ]
  for (const [name, go] of gone) {
    it.live(`${name}: what would be lost is not acknowledged`, () =>
      Effect.gen(function*() {
        const directory = path.join(yield* temporary, "sessions")
        const file = Sqlite.fileIn(directory)
        const store = yield* open(directory)
        yield* store.create(header)
        const writer = yield* store.open(id, "the test")
        yield* writer.append(turn(1, 0), { sync: true })
        go(directory)
        for (const attempt of [writer.append(turn(2, 2), { sync: true }), writer.append(turn(2, 2), { sync: false }), store.receive(id, { kind: "steer", text: "a", source: "b" })]) {
          assert.deepStrictEqual(yield* failureOf<unknown, never>(attempt), {
            code: "STORE_FAILED",
            message: `the sessions cannot be written: ${file} was deleted, moved or replaced while it was in use`,
            data: { place: file },
            remedy: "Put the file back or begin a new one, and start Turnpike again.",
            retryable: false
          })
        }
      }))
  }
})

describe("two stores on one file", () => {
  const two = Effect.gen(function*() {
    const directory = yield* temporary
    const one = yield* open(directory)
    const other = yield* open(directory)
    yield* one.create(header)
    return { directory, one, other }
  })

  it.live("know of each other's leases, and who has one", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two
      yield* one.open(id, "the first")
      const { code, message } = yield* failureOf(Effect.scoped(other.open(id, "the second")))
      assert.strictEqual(code, "SESSION_BUSY")
      assert.match(message, /^session one is used by the first since \d{4}-\d\d-\d\dT/u)
      assert.strictEqual((yield* failureOf(other.delete(id))).code, "SESSION_BUSY")
      const [summary] = yield* Stream.runCollect(other.list)
      assert.strictEqual(summary?.holder?.name, "the first")
    }))

  it.live("take turns, however fast both write", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two
      const second = Scalars.SessionId.make("two")
      yield* other.create({ ...header, id: second })
      const write = (store: SessionStore.Service, session: Scalars.SessionId) =>
        Effect.gen(function*() {
          const writer = yield* store.open(session, "a writer")
          for (let number = 1; number <= 100; number++) {
            yield* writer.append(turn(number, 2 * (number - 1)), { sync: number % 2 === 0 })
            yield* store.receive(id, { kind: "followup", text: `${session} ${number}`, source: "user" })
            yield* Effect.yieldNow
          }
        })
      yield* Effect.all([write(one, id), write(other, second)], { concurrency: 2 })
      const summaries = yield* Stream.runCollect(one.list)
      assert.deepStrictEqual(
        summaries.map(({ events, header: { id: session }, pending, turns }) => ({ session, events, turns, pending })).sort((a, b) => a.session.localeCompare(b.session)),
        [{ session: id, events: 200, turns: 100, pending: 200 }, { session: second, events: 200, turns: 100, pending: 0 }]
      )
    }))

  it.live("see what the other commits, as it comes", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two
      const isThere = yield* Deferred.make<void>()
      const reader = yield* Effect.forkChild(
        Stream.runCollect(other.follow(id, -1).pipe(Stream.tap(() => Deferred.succeed(isThere, undefined)), Stream.take(6)))
      )
      const watcher = yield* Effect.forkChild(other.inboxChanged(id, 0))
      const writer = yield* one.open(id, "the test")
      yield* writer.append(turn(1, 0), { sync: false })
      yield* Deferred.await(isThere)
      yield* writer.append(turn(2, 2), { sync: false })
      yield* one.receive(id, { kind: "steer", text: "a", source: "b" })
      yield* writer.append(turn(3, 4), { sync: true })
      assert.deepStrictEqual(yield* Fiber.join(reader), [...turn(1, 0), ...turn(2, 2), ...turn(3, 4)])
      yield* Fiber.join(watcher)
    }))

  it.live("hear that the other deletes a session", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two
      const reader = yield* Effect.forkChild(failureOf(Stream.runDrain(other.follow(id, -1))), { startImmediately: true })
      const watcher = yield* Effect.forkChild(failureOf(other.inboxChanged(id, 0)), { startImmediately: true })
      yield* one.delete(id)
      assert.deepStrictEqual([(yield* Fiber.join(reader)).code, (yield* Fiber.join(watcher)).code], ["SESSION_UNKNOWN", "SESSION_UNKNOWN"])
    }))

  it.live("keep a session that is put in to themselves until it is whole", () =>
    Effect.gen(function*() {
      const { directory, one, other } = yield* two
      const second = Scalars.SessionId.make("two")
      const isBegun = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const events = Stream.fromIterable(Array.from({ length: 600 }, (_, index) => turn(index + 1, 2 * index)).flat()).pipe(
        Stream.tap(({ seq }) => seq === 1_100 ? Effect.andThen(Deferred.succeed(isBegun, undefined), Deferred.await(go)) : Effect.void)
      )
      const restoring = yield* Effect.forkChild(one.restore({ ...header, id: second }, events, Stream.empty))
      yield* Deferred.await(isBegun)
      assert.strictEqual((yield* Stream.runCollect(other.list)).length, 1)
      // Others write meanwhile, also the same session: who is first has it.
      const writer = yield* other.open(id, "the test")
      yield* writer.append(turn(1, 0), { sync: true })
      yield* other.create({ ...header, id: second })
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual((yield* failureOf(Fiber.join(restoring))).code, "SESSION_EXISTS")
      const db = new DatabaseSync(Sqlite.fileIn(directory), { readOnly: true })
      const left = db.prepare("select (select count(*) from sessions) as sessions, (select count(*) from batches) as batches").get()
      db.close()
      assert.deepStrictEqual({ ...left }, { sessions: 2, batches: 1 })
    }))
})

describe("a list", () => {
  it.live("has all sessions that can be read, and then says which cannot", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const ids = ["a", "b", "c", "d", "e"].map((name) => Scalars.SessionId.make(name))
      yield* once(directory, (store) => Effect.forEach(ids, (session, index) => store.create({ ...header, id: session, created: 5 - index })))
      const db = new DatabaseSync(Sqlite.fileIn(directory))
      db.exec("update sessions set header_sum = header_sum + 1 where id = 'b'; update sessions set log_sum = log_sum + 1 where id = 'c'")
      db.exec("update sessions set inbox_sum = inbox_sum + 1 where id = 'd'")
      db.close()
      const store = yield* open(directory)
      for (let round = 0; round < 2; round++) {
        const told: Array<string> = []
        const failure = yield* failureOf(Stream.runForEach(store.list, (session) => Effect.sync(() => told.push(session.header.id))))
        assert.deepStrictEqual([told, failure.code, failure.data], [["a", "e"], "SESSION_DAMAGED", { session_id: "b" }])
      }
    }))
})

describe("a lease", () => {
  it.live("is renewed while its process lives", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const store = yield* SqliteSessionStore.make({ directory, lease: "90 millis" })
      yield* store.create(header)
      yield* store.open(id, "the test")
      const db = new DatabaseSync(Sqlite.fileIn(directory), { readOnly: true })
      yield* Effect.addFinalizer(() => Effect.sync(() => db.close()))
      const expires = () => Number(db.prepare("select expires from owners").get()?.["expires"])
      const first = expires()
      // The renewals are the system's time: looked for, with a bound.
      for (let look = 0; look < 500 && expires() <= first + 200; look++) yield* Effect.sleep("10 millis")
      assert.isAbove(expires(), first + 200)
    }))

  it.live("that nobody could renew is refused", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      for (const lease of ["1 millis", "2 days", "Infinity"] as const) {
        const { code, message } = yield* failureOf(SqliteSessionStore.make({ directory, lease }))
        assert.deepStrictEqual([code, message.startsWith("a lease of ")], ["STORE_FAILED", true])
      }
    }))

  it.live("of a process that is certainly dead keeps nobody waiting", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      const store = yield* open(directory)
      yield* store.create(header)
      yield* Effect.scoped(store.open(id, "the test"))
      const db = new DatabaseSync(Sqlite.fileIn(directory))
      const dead = JSON.parse(String(db.prepare("select process from owners").get()?.["process"])) as Record<string, unknown>
      const hold = (process: unknown) => {
        db.prepare("insert into owners (id, process, expires) values ('o', ?, ?) on conflict (id) do update set process = excluded.process").run(
          typeof process === "string" ? process : JSON.stringify(process),
          Date.now() + 1_000_000
        )
        db.exec(`update sessions set owner = 'o', holder = '"somebody"', since = 5`)
      }
      // Of another machine or container, or in words of a later version, nothing is certain.
      for (const process of [{ ...dead, boot: "another" }, { ...dead, namespace: "another" }, "in other words", dead]) {
        hold(process)
        assert.strictEqual((yield* failureOf(Effect.scoped(store.open(id, "the test")))).code, "SESSION_BUSY")
      }
      for (const process of [{ ...dead, started: "1" }, { ...dead, pid: 2 ** 22 + 1 }]) {
        hold(process)
        yield* Effect.scoped(store.open(id, "the test"))
      }
      db.close()
    }))
})
