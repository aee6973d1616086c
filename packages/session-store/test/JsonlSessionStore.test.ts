import { assert, describe, it, vi } from "@effect/vitest"
import { Scalars, type SessionEvent } from "@turnpike/contract"
import { LogLine, type SessionStore } from "@turnpike/kernel"
import { JsonlSessionStore } from "@turnpike/session-store"
import { StoreSuite } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as path from "node:path"
import { temporary } from "./support/directory.ts"
import * as Jsonl from "./support/jsonl.ts"

// Disks that others use as well take their time.
vi.setConfig({ testTimeout: 60_000 })

StoreSuite.storeSuite("JsonlSessionStore", { describe, it: it.live }, Jsonl.layer, Jsonl.hooks)

type StoreError = SessionStore.SessionStoreError

const id = Scalars.SessionId.make("one")
const header = { type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/project" } as const
const message = { kind: "steer", text: "a", source: "b" } as const

const turn = (number: number, seq: number): ReadonlyArray<SessionEvent.SessionEvent> => [
  { seq, time: 1, type: "turn/start", data: { turn: number, trigger: { kind: "message", source: "user" } } },
  { seq: seq + 1, time: 2, type: "turn/end", data: { turn: number, verdict: { type: "completed" } } }
]

const open = (directory: string) => JsonlSessionStore.make({ directory })

/** Runs something on a store that is closed afterwards. */
const once = <A>(directory: string, work: (store: SessionStore.Service) => Effect.Effect<A, StoreError>) =>
  Effect.scoped(Effect.flatMap(open(directory), work))

/** The failure without what only people read. */
const failureOf = <A, R>(effect: Effect.Effect<A, StoreError, R>) =>
  Effect.map(Effect.flip(effect), ({ failure: { code, data, message, remedy, retryable } }) => ({ code, data, message, remedy, retryable }))

describe("a directory of sessions", () => {
  it.live("is made where it is missing, for its owner's eyes alone", () =>
    Effect.gen(function*() {
      const directory = path.join(yield* temporary, "a", "b")
      yield* once(directory, (store) => store.create(header))
      assert.deepStrictEqual(fs.readdirSync(directory).sort(), ["gone", "new", "owners", "sessions", "store.json"])
      assert.deepStrictEqual(fs.readdirSync(Jsonl.sessionIn(directory, id)).sort(), ["header.json", "inbox.jsonl", "log.0.jsonl"])
      for (const entry of fs.readdirSync(directory, { recursive: true, withFileTypes: true })) {
        const own = path.join(entry.parentPath, entry.name)
        assert.strictEqual(fs.statSync(own).mode & 0o777, entry.isDirectory() ? 0o700 : 0o600, own)
      }
      assert.deepStrictEqual(yield* once(directory, (store) => store.header(id)), header)
    }))

  it.live("is made once, whoever opens it first at the same time", () =>
    Effect.gen(function*() {
      const directory = path.join(yield* temporary, "sessions")
      const stores = yield* Effect.all([1, 2, 3, 4].map(() => open(directory)), { concurrency: "unbounded" })
      yield* stores[0]!.create(header)
      for (const store of stores) assert.deepStrictEqual(yield* store.header(id), header)
    }))

  it.live("is left alone where it is something else, to the byte", () =>
    Effect.gen(function*() {
      const cases: ReadonlyArray<readonly [name: string, text: string, what: string]> = [
        ["notes.txt", "mine", "it holds other things, such as \"notes.txt\""],
        ["store.json", `${LogLine.encode({ type: "shop", items: 3 })}\n`, "its store.json is another program's"]
      ]
      for (const [name, text, what] of cases) {
        const directory = yield* temporary
        fs.writeFileSync(path.join(directory, name), text)
        assert.deepStrictEqual(yield* failureOf(open(directory)), {
          code: "STORE_FAILED",
          message: `${directory} is no store of sessions: ${what}`,
          data: { place: directory },
          remedy: "Name another directory for the sessions, or move this one away. It was not touched.",
          retryable: false
        })
        assert.deepStrictEqual(Jsonl.contentsOf(directory), { [name]: text })
      }
    }))

  it.live("is made anew where it is empty, or holds what a crash left of its beginning", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      fs.writeFileSync(path.join(directory, "store.json.0c0ffee0-1.tmp"), "{\"type\":\"sess")
      yield* once(directory, (store) => store.create(header))
      assert.deepStrictEqual(yield* once(directory, (store) => store.header(id)), header)
    }))

  it.live("of a later version is refused, and nothing of it is changed", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      yield* once(directory, (store) => store.create(header))
      fs.writeFileSync(path.join(directory, "store.json"), `${LogLine.encode({ type: "session-store", format: 2, more: true })}\n`)
      const before = Jsonl.contentsOf(directory)
      assert.deepStrictEqual(yield* failureOf(open(directory)), {
        code: "FORMAT_UNSUPPORTED",
        message: `the sessions in ${directory} were written by a later version: its format is 2, this one knows 1`,
        data: { place: directory, version: 2 },
        remedy: "Update Turnpike, or name another place for its sessions. Nothing was changed.",
        retryable: false
      })
      assert.deepStrictEqual(Jsonl.contentsOf(directory), before)
    }))

  it.live("whose store.json is damaged, or half-written, says so with its name, and nothing of it is changed", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      yield* once(directory, (store) => store.create(header))
      const file = path.join(directory, "store.json")
      const text = fs.readFileSync(file, "utf8")
      const cases: ReadonlyArray<readonly [text: string, what: string]> = [
        ["", "it is not JSON"],
        [text.slice(0, 20), "it is not JSON"],
        [text.replace("store", "stone"), "its checksum is not that of its bytes"],
        ["{\"type\":\"session-store\",\"format\":1}\n", "it has no checksum"]
      ]
      for (const [damaged, what] of cases) {
        fs.writeFileSync(file, damaged)
        const before = Jsonl.contentsOf(directory)
        assert.deepStrictEqual(yield* failureOf(open(directory)), {
          code: "STORE_FAILED",
          message: `the sessions in ${directory} are damaged: ${file} cannot be read: ${what}`,
          data: { place: file },
          remedy: "Nothing was changed. Restore them from a copy; the sessions themselves may be whole.",
          retryable: false
        })
        assert.deepStrictEqual(Jsonl.contentsOf(directory), before)
      }
    }))

  it.live("cannot be where a file is", () =>
    Effect.gen(function*() {
      const file = path.join(yield* temporary, "plain")
      fs.writeFileSync(file, "mine")
      const { code, data } = yield* failureOf(open(file))
      assert.deepStrictEqual([code, data, fs.readFileSync(file, "utf8")], ["STORE_FAILED", { place: file, error: "EEXIST" }, "mine"])
    }))
})

describe("a session of which a file is missing, foreign or of a later version", () => {
  const segment = (directory: string, generation: number) => path.join(Jsonl.sessionIn(directory, id), `log.${generation}.jsonl`)
  const other = Scalars.SessionId.make("two")
  const cases: ReadonlyArray<readonly [what: string, code: string, message: string | RegExp, damage: (directory: string) => void]> = [
    ["its header is missing", "SESSION_DAMAGED", "session one: its header is missing: header.json", (directory) => fs.rmSync(path.join(Jsonl.sessionIn(directory, id), "header.json"))],
    ["its header is another's", "SESSION_DAMAGED", "session one: its header is that of session two", (directory) =>
      fs.copyFileSync(path.join(Jsonl.sessionIn(directory, other), "header.json"), path.join(Jsonl.sessionIn(directory, id), "header.json"))],
    ["its header is of a later version", "FORMAT_UNSUPPORTED", /^session one: its header is of a later version: /u, (directory) =>
      fs.writeFileSync(path.join(Jsonl.sessionIn(directory, id), "header.json"), `${LogLine.encode({ ...header, format: 2 })}\n`)],
    ["its inbox is missing", "SESSION_DAMAGED", /^session one: a file of it is missing: ENOENT: .*inbox\.jsonl'$/u, (directory) =>
      fs.rmSync(path.join(Jsonl.sessionIn(directory, id), "inbox.jsonl"))],
    ["its inbox is another's", "SESSION_DAMAGED", "session one: its inbox is that of session two", (directory) =>
      fs.copyFileSync(path.join(Jsonl.sessionIn(directory, other), "inbox.jsonl"), path.join(Jsonl.sessionIn(directory, id), "inbox.jsonl"))],
    ["its inbox is of a later version", "FORMAT_UNSUPPORTED", "session one: its inbox was written by a later version", (directory) =>
      fs.writeFileSync(path.join(Jsonl.sessionIn(directory, id), "inbox.jsonl"), LogLine.encode({ inbox: "header", format: 2, session: "one", made: "x" }))],
    ["its last log is missing", "SESSION_DAMAGED", "session one: what its 2. writer wrote is missing (log.2.jsonl)", (directory) => fs.rmSync(segment(directory, 2))],
    ["a log before is missing", "SESSION_DAMAGED", /^session one: a file of it is missing: ENOENT: .*log\.1\.jsonl'$/u, (directory) => fs.rmSync(segment(directory, 1))],
    ["all its logs are missing", "SESSION_DAMAGED", "session one: it has no log", (directory) => {
      for (const file of Jsonl.segmentsIn(directory, id)) fs.rmSync(file)
    }],
    ["its log is another's", "SESSION_DAMAGED", "session one: log.2.jsonl is the log of the 1. writer of session two", (directory) => fs.copyFileSync(path.join(Jsonl.sessionIn(directory, other), "log.1.jsonl"), segment(directory, 2))],
    ["its log is of a later version", "FORMAT_UNSUPPORTED", "session one: log.2.jsonl was written by a later version", (directory) =>
      fs.writeFileSync(segment(directory, 2), `${LogLine.encode({ log: "segment", format: 2, session: "one", made: "x", generation: 2 })}\n`)],
    ["its log has a line of a later version", "FORMAT_UNSUPPORTED", /^session one: event 4 cannot be read \(log\.2\.jsonl, byte \d+\): it has a line that this version does not know$/u, (directory) =>
      fs.appendFileSync(segment(directory, 2), `${LogLine.encode({ log: "packed", bytes: "" })}\n`)]
  ]
  for (const [what, code, due, damage] of cases) {
    it.live(`says so, and is left as it is: ${what}`, () =>
      Effect.gen(function*() {
        const directory = yield* temporary
        const write = (store: SessionStore.Service, session: Scalars.SessionId, number: number) =>
          Effect.scoped(Effect.flatMap(store.open(session, "the test"), (writer) => writer.append(turn(number, 2 * (number - 1)), { sync: true })))
        yield* once(directory, (store) =>
          Effect.gen(function*() {
            yield* store.create(header)
            yield* store.create({ ...header, id: other })
            yield* write(store, other, 1)
            yield* write(store, id, 1)
            yield* write(store, id, 2)
          }))
        damage(directory)
        const before = Jsonl.contentsOf(Jsonl.sessionIn(directory, id))
        const refused = yield* failureOf(once(directory, (store) => Effect.scoped(store.open(id, "the test"))))
        assert.deepStrictEqual([refused.code, refused.data, refused.retryable], [code, { session_id: id }, false])
        if (typeof due === "string") assert.strictEqual(refused.message, due)
        else assert.match(refused.message, due)
        assert.isNotEmpty(refused.remedy)
        assert.deepStrictEqual(Jsonl.contentsOf(Jsonl.sessionIn(directory, id)), before)
        // The others are what they were.
        assert.deepStrictEqual(yield* once(directory, (store) => Stream.runCollect(store.read(other, -1))), turn(1, 0))
      }))
  }
})

describe("files that go while they are used", () => {
  const vanished = (directory: string) => ({
    code: "STORE_FAILED" as const,
    message: `the sessions cannot be written: ${directory} was deleted, moved or replaced while it was in use`,
    data: { place: directory },
    remedy: "Put the directory back or begin a new one, and start Turnpike again.",
    retryable: false
  })
  const unknown = { code: "SESSION_UNKNOWN", message: "there is no session one" }
  const gone: ReadonlyArray<readonly [string, (directory: string) => void, all: boolean]> = [
    ["with their directory", (directory) => fs.rmSync(directory, { recursive: true }), true],
    ["because their directory is moved", (directory) => fs.renameSync(directory, `${directory}.moved`), true],
    ["because another directory takes its place", (directory) => {
      fs.cpSync(directory, `${directory}.copy`, { recursive: true })
      fs.renameSync(directory, `${directory}.moved`)
      fs.renameSync(`${directory}.copy`, directory)
    }, true],
    ["with their session's directory", (directory) => fs.rmSync(Jsonl.sessionIn(directory, id), { recursive: true }), false]
  ]
  for (const [name, go, all] of gone) {
    it.live(`${name}, in the middle of a turn: what would be lost is not acknowledged`, () =>
      Effect.gen(function*() {
        const directory = path.join(yield* temporary, "sessions")
        const store = yield* open(directory)
        yield* store.create(header)
        const writer = yield* store.open(id, "the test")
        yield* writer.append(turn(1, 0).slice(0, 1), { sync: true })
        go(directory)
        const end = turn(1, 0).slice(1)
        for (const attempt of [writer.append(end, { sync: true }), writer.append(end, { sync: false }), writer.discard(["r"], "removed", "user"), store.receive(id, message)]) {
          const failure = yield* failureOf<unknown, never>(attempt)
          if (all) assert.deepStrictEqual(failure, vanished(directory))
          else assert.deepStrictEqual({ code: failure.code, message: failure.message.slice(0, unknown.message.length) }, unknown)
        }
      }))
  }
})
