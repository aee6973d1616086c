/** What files of JSON lines are to a disk that refuses, forgets or damages something: on one in memory, a call or a place at a time. */
import { assert, describe, it } from "@effect/vitest"
import { Scalars, type SessionEvent } from "@turnpike/contract"
import { LogLine, type SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as InboxFile from "../src/internal/jsonl/inboxFile.ts"
import { layoutOf, placeOf } from "../src/internal/jsonl/layout.ts"
import { directory, within } from "./support/diskLife.ts"
import * as Memory from "./support/memoryFiles.ts"

type StoreError = SessionStore.SessionStoreError

const id = Scalars.SessionId.make("one")
const header = { type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/project" } as const
const place = placeOf(layoutOf(directory), id)
const message = { kind: "followup", text: "hello", source: "user", key: "k" } as const

const chunk = (seq: number): SessionEvent.SessionEvent => ({ seq, time: 2, type: "assistant/chunk", data: { kind: "text", text: `${seq} `.repeat(100) } })
const start = (receipt: string): ReadonlyArray<SessionEvent.SessionEvent> => [
  { seq: 0, time: 1, type: "turn/start", data: { turn: 1, trigger: { kind: "message", source: "user" } } },
  { seq: 1, time: 1, type: "inbox/claimed", data: { turn: 1, ids: [receipt] } }
]
const step: ReadonlyArray<SessionEvent.SessionEvent> = [
  { seq: 2, time: 1, type: "step/start", data: { step: 1 } },
  { seq: 3, time: 1, type: "user/message", data: { text: "hello", source: "user" }, surface_op: "append" }
]

/** Works with the store of a disk that may refuse calls. */
const on = <A>(disk: Memory.Disk, work: (store: SessionStore.Service) => Effect.Effect<A, StoreError>, meddle: Memory.Meddle = () => undefined) =>
  within(Memory.refusing(disk, meddle), work)

/** A disk with the session, and what `work` does to it. */
const withSession = (work: (store: SessionStore.Service) => Effect.Effect<unknown, StoreError> = () => Effect.void) =>
  Effect.gen(function*() {
    const disk = Memory.empty()
    yield* on(disk, (store) => Effect.andThen(store.create(header), work(store)))
    return disk
  })

const failureOf = <A, R>(effect: Effect.Effect<A, StoreError, R>) => Effect.map(Effect.flip(effect), ({ failure: { code, message } }) => ({ code, message }))

const inboxOf = (disk: Memory.Disk) => Memory.bytesOf(disk, place.inbox).toString().split("\n").slice(1).map((line) => JSON.parse(line) as Record<string, unknown>)

describe("a directory of sessions", () => {
  it.effect("is there after the power has gone, with those above it and the session that was made", () =>
    Effect.gen(function*() {
      // Nothing is left but what was synced.
      const left = Memory.powerLost(yield* withSession(), () => 0, "beginning")
      assert.deepStrictEqual(yield* on(left, (store) => store.header(id)), header)
    }))
})

describe("a store that says for the first time that it lives", () => {
  it.effect("is not taken for a dead one by another that looks for those meanwhile", () =>
    Effect.gen(function*() {
      const disk = Memory.empty()
      const files = Memory.filesOf(disk)
      const another = within(files, (store) => store.create({ ...header, id: Scalars.SessionId.make("another") }))
      const rename = (from: string, to: string) => Effect.andThen(to.startsWith(layoutOf(directory).owners) ? Effect.orDie(another) : Effect.void, files.rename(from, to))
      yield* within({ ...files, rename }, (store) => store.create(header))
      assert.deepStrictEqual(yield* on(disk, (store) => Effect.map(Stream.runCollect(store.list), (list) => list.length)), 2)
      // Both have gone, and what they said with them.
      assert.deepStrictEqual([...disk.names.keys()].filter((name) => name.startsWith(`${layoutOf(directory).owners}/`)), [])
    }))
})

describe("a session whose name the disk says that it has not taken", () => {
  const cases: ReadonlyArray<readonly [string, Memory.Meddle]> = [
    ["though it has", (operation, _, name) => operation === "rename" && name === place.directory ? { code: "EIO", done: "wholly" } : undefined],
    ["because it has not", (operation, _, name) => operation === "rename" && name === place.directory ? { code: "EIO" } : undefined],
    ["because it is not on disk", (operation, _, name) => operation === "syncDirectory" && name === layoutOf(directory).sessions ? { code: "EIO" } : undefined]
  ]
  for (const [name, meddle] of cases) {
    it.effect(`${name} is not there, and its id is free`, () =>
      Effect.gen(function*() {
        const disk = Memory.empty()
        assert.strictEqual((yield* failureOf(on(disk, (store) => store.create(header), meddle))).code, "STORE_FAILED")
        assert.strictEqual((yield* failureOf(on(disk, (store) => store.header(id)))).code, "SESSION_UNKNOWN")
        yield* on(disk, (store) => store.create({ ...header, created: 2 }))
      }))
  }

  it.effect("because another one has it, leaves that one", () =>
    Effect.gen(function*() {
      const disk = yield* withSession()
      // As if it came between the look and the rename.
      const files = Memory.filesOf(disk)
      const blind = { ...files, stat: (name: string) => name === place.directory ? Effect.undefined : files.stat(name) }
      const { code } = yield* failureOf(within(blind, (store) => store.create({ ...header, created: 2 })))
      assert.strictEqual(code, "SESSION_EXISTS")
      assert.deepStrictEqual(yield* on(disk, (store) => store.header(id)), header)
    }))

  it.effect("leaves another one that has taken its place meanwhile", () =>
    Effect.gen(function*() {
      const disk = Memory.empty()
      const { code } = yield* failureOf(on(disk, (store) => store.create(header), (operation, _, name) => {
        if (operation !== "syncDirectory" || name !== layoutOf(directory).sessions) return undefined
        disk.names.set(place.header, { ...Memory.fileOf(disk, place.header), identity: "another" })
        return { code: "EIO" }
      }))
      assert.strictEqual(code, "STORE_FAILED")
      assert.deepStrictEqual(yield* on(disk, (store) => store.header(id)), header)
    }))
})

describe("a message whose sender is told that it failed", () => {
  /** Refuses a call on the inbox, of which so many were made before. */
  const refuse = (wanted: string, refusal: Memory.Refusal, before = 0): Memory.Meddle => {
    let left = before
    return (operation, _, name) => operation === wanted && name === place.inbox && left-- === 0 ? refusal : undefined
  }
  const cases: ReadonlyArray<readonly [string, Memory.Meddle, lines: ReadonlyArray<string>]> = [
    ["because it was not written, leaves no trace", refuse("write", { code: "EIO" }), []],
    ["though it was written, is withdrawn", refuse("write", { code: "EIO", done: "wholly" }), ["received", "withdrawn"]],
    ["because it may not be on disk, is withdrawn", refuse("sync", { code: "EIO" }), ["received", "withdrawn"]],
    ["because nobody knows whether its file is still the inbox, is withdrawn", refuse("stat", { code: "EIO" }, 2), ["received", "withdrawn"]],
    ["because it cannot be read again, is withdrawn", refuse("read", { code: "EIO" }, 2), ["received", "withdrawn"]]
  ]
  for (const [name, meddle, lines] of cases) {
    it.effect(`${name}, and may be sent again`, () =>
      Effect.gen(function*() {
        const disk = yield* withSession()
        assert.strictEqual((yield* failureOf(on(disk, (store) => store.receive(id, message), meddle))).code, "STORE_FAILED")
        assert.deepStrictEqual(inboxOf(disk).map(({ inbox, type }) => inbox ?? type), [...lines])
        yield* on(disk, (store) =>
          Effect.gen(function*() {
            assert.deepStrictEqual((yield* store.pending(id)).nextTurn, [])
            const { isNew, receipt } = yield* store.receive(id, message)
            assert.isTrue(isNew)
            assert.deepStrictEqual((yield* store.pending(id)).nextTurn, [receipt])
          }))
      }))
  }
})

describe("a message that another process has left", () => {
  it.effect("is synced before anybody is told that it is there, and before a line says that it was seen", () =>
    Effect.gen(function*() {
      const disk = yield* withSession((store) => store.receive(id, message))
      for (const [next, due] of [[message, ["sync"]], [{ ...message, key: "other" }, ["sync", "write", "sync"]]] as const) {
        const calls: Array<string> = []
        yield* on(disk, (store) => store.receive(id, next), (operation, _, name) => {
          if (name === place.inbox && (operation === "write" || operation === "sync")) calls.push(operation)
          return undefined
        })
        assert.deepStrictEqual(calls, [...due])
      }
    }))

  it.effect("is not synced again by who knows that it is on disk", () =>
    Effect.gen(function*() {
      const disk = yield* withSession()
      const calls: Array<string> = []
      yield* on(disk, (store) => Effect.forEach(["a", "b", "c"], (key) => store.receive(id, { ...message, key })), (operation, _, name) => {
        if (name === place.inbox && (operation === "write" || operation === "sync")) calls.push(operation)
        return undefined
      })
      assert.deepStrictEqual(calls, ["write", "sync", "write", "sync", "write", "sync"])
    }))
})

describe("a prompt that was claimed and never begun", () => {
  const claimed = withSession((store) =>
    Effect.scoped(Effect.gen(function*() {
      const { receipt } = yield* store.receive(id, message)
      const writer = yield* store.open(id, "the first")
      yield* writer.append(start(receipt.id), { sync: true })
    })))

  it.effect("is told by whoever comes to close its turn, though one before has put it back", () =>
    Effect.gen(function*() {
      const disk = yield* claimed
      const open = (store: SessionStore.Service) => Effect.scoped(Effect.map(store.open(id, "another"), ({ recovery }) => recovery))
      // The closers are what it writes into its log behind its beginning.
      let writes = 0
      const refusal = yield* failureOf(on(disk, open, (operation, _, name) => operation === "write" && name === place.segment(2) && ++writes === 2 ? { code: "EIO" } : undefined))
      assert.strictEqual(refusal.code, "STORE_FAILED")
      const { recovery, waiting } = yield* on(disk, (store) => Effect.all({ recovery: open(store), waiting: Effect.map(store.pending(id), ({ nextTurn }) => nextTurn) }))
      assert.deepStrictEqual(recovery.requeued.map(({ retry_of, text }) => [retry_of, text]), [[inboxOf(disk)[0]?.["id"], "hello"]])
      assert.deepStrictEqual(waiting, recovery.requeued)
      assert.deepStrictEqual(recovery.closed.map(({ type }) => type), ["turn/end"])
    }))
})

/** A session with a turn that is open, whose last three appends were not synced. */
const open = Effect.gen(function*() {
  const places: Array<number> = []
  const disk = Memory.empty()
  yield* on(disk, (store) =>
    Effect.scoped(Effect.gen(function*() {
      yield* store.create(header)
      const { receipt } = yield* store.receive(id, message)
      const writer = yield* store.open(id, "the first")
      yield* writer.append(start(receipt.id), { sync: true })
      yield* writer.append(step, { sync: true })
      for (const seq of [4, 5, 6]) {
        places.push(Memory.bytesOf(disk, place.segment(1)).length)
        yield* writer.append([chunk(seq)], { sync: false })
      }
    })))
  const log = Memory.bytesOf(disk, place.segment(1))
  // Each of the three has a line that says how long it is, its event, and the line that says that it counts.
  const [first = 0, second = 0, third = 0] = places
  return { disk, second, third, committed: log.lastIndexOf("\n", first - 2) + 1, secondEvent: log.indexOf("\n", second) + 1 }
})

const opened = (store: SessionStore.Service) =>
  Effect.gen(function*() {
    const { recovery } = yield* Effect.scoped(store.open(id, "another"))
    const events = yield* Stream.runCollect(store.read(id, -1))
    return { kept: events.length - recovery.closed.length, cutBytes: recovery.cutBytes }
  })

describe("a log that was not synced to its end", () => {
  it.effect("ends where a disk has left something out, when the power has gone", () =>
    Effect.gen(function*() {
      const { disk, second, secondEvent, third } = yield* open
      const before = Memory.bytesOf(disk, place.segment(1))
      // Also of one byte, where that is none that one flipped bit makes zero.
      for (const [from, to] of [[second + 10, third - 10], [second, third], [second, second + 1], [secondEvent - 2, secondEvent - 1]] as const) {
        Memory.rewrite(disk, place.segment(1), () => Buffer.from(before).fill(0, from, to))
        const { kept } = yield* on(Memory.copyOf(disk), opened)
        assert.deepStrictEqual([from, to, kept], [from, to, 5])
      }
    }))

  it.effect("keeps what was synced where only the line is left out that says so", () =>
    Effect.gen(function*() {
      const { committed, disk, second } = yield* open
      const size = Memory.bytesOf(disk, place.segment(1)).length
      Memory.rewrite(disk, place.segment(1), (bytes) => bytes.fill(0, committed, second))
      assert.deepStrictEqual(yield* on(disk, opened), { kept: 4, cutBytes: size - committed })
    }))

  it.effect("is damaged where bytes are others before some that are whole, and says where", () =>
    Effect.gen(function*() {
      const { disk, second, secondEvent } = yield* open
      const letter = secondEvent + 100
      const flipped = (bytes: Buffer, at: number) => {
        bytes[at]! ^= 1
        return bytes
      }
      const damages: ReadonlyArray<readonly [(bytes: Buffer) => Uint8Array, place: number, what: string]> = [
        [(bytes) => flipped(bytes, letter), secondEvent, "it is not what was written"],
        [(bytes) => flipped(bytes, secondEvent - 1), second, "it is not what was written"],
        [(bytes) => bytes.fill(0, letter, letter + 1), secondEvent, "it is not what was written"],
        [(bytes) => Buffer.concat([bytes.subarray(0, second), bytes.subarray(secondEvent)]), second, "it belongs to no batch"]
      ]
      const before = Memory.bytesOf(disk, place.segment(1))
      for (const [damage, at, what] of damages) {
        Memory.rewrite(disk, place.segment(1), () => damage(Buffer.from(before)))
        const names = [...disk.names.keys()].sort()
        assert.deepStrictEqual(yield* failureOf(on(disk, opened)), {
          code: "SESSION_DAMAGED",
          message: `session one: event 5 cannot be read (log.1.jsonl, byte ${at}): ${what}`
        })
        // Nothing was changed.
        assert.deepStrictEqual([...disk.names.keys()].sort(), names)
      }
    }))

  it.effect("may end within a line, which is cut off with the append that it belongs to", () =>
    Effect.gen(function*() {
      const { disk, second, secondEvent } = yield* open
      Memory.rewrite(disk, place.segment(1), (bytes) => bytes.subarray(0, secondEvent + 50))
      assert.deepStrictEqual(yield* on(disk, opened), { kept: 5, cutBytes: secondEvent + 50 - second })
    }))

  it.effect("is damaged where its last event is another, though nothing is behind it", () =>
    Effect.gen(function*() {
      const { disk, second, secondEvent, third } = yield* open
      const committed = Memory.bytesOf(disk, place.segment(1)).lastIndexOf("\n", third - 2) + 1
      Memory.rewrite(disk, place.segment(1), (bytes) => bytes.subarray(0, committed).fill("?", secondEvent + 60, secondEvent + 61))
      assert.deepStrictEqual(yield* failureOf(on(disk, opened)), {
        code: "SESSION_DAMAGED",
        message: `session one: event 5 cannot be read (log.1.jsonl, byte ${secondEvent}): it is not what was written`
      })
      assert.isAbove(secondEvent, second)
    }))

  it.effect("may end with a line that is wrong where it is not an event's: nothing goes by it", () =>
    Effect.gen(function*() {
      const { disk, third } = yield* open
      const before = Memory.bytesOf(disk, place.segment(1)).subarray(0, third)
      const committed = before.lastIndexOf("\n", third - 2) + 1
      Memory.rewrite(disk, place.segment(1), () => Buffer.from(before).fill("?", committed + 20, committed + 21))
      assert.deepStrictEqual(yield* on(disk, opened), { kept: 6, cutBytes: third - committed })
    }))

  it.effect("is damaged where it ends before its writer is known to have begun", () =>
    Effect.gen(function*() {
      const { disk } = yield* open
      Memory.rewrite(disk, place.segment(1), (bytes) => bytes.subarray(0, bytes.indexOf("\n") + 1))
      const missing = { code: "SESSION_DAMAGED", message: "session one: what its 1. writer wrote is missing (log.1.jsonl)" }
      assert.deepStrictEqual(yield* failureOf(on(disk, opened)), missing)
      assert.deepStrictEqual(yield* failureOf(on(disk, (store) => store.pending(id))), missing)
    }))
})

describe("what a sync that failed has forgotten", () => {
  /** Lets the next sync of a file fail, and nothing of what it was asked for ever be written by another. */
  const forgetting = (name: string): Memory.Meddle => {
    let isDone = false
    return (operation, _, called) => {
      if (isDone || operation !== "sync" || called !== name) return undefined
      isDone = true
      return { code: "EIO", done: "never" }
    }
  }
  const afterPowerLoss = (disk: Memory.Disk) => on(Memory.powerLost(disk, () => 0, "beginning"), (store) => Stream.runCollect(store.read(id, -1)))

  it.effect("is written anew before a later one is asked for it", () =>
    Effect.gen(function*() {
      const disk = yield* withSession()
      const log = place.segment(1)
      let meddle: Memory.Meddle = () => undefined
      yield* within(Memory.refusing(disk, (...call) => meddle(...call)), (store) =>
        Effect.scoped(Effect.gen(function*() {
          const { receipt } = yield* store.receive(id, message)
          const writer = yield* store.open(id, "the test")
          yield* writer.append(start(receipt.id), { sync: false })
          meddle = forgetting(log)
          assert.strictEqual((yield* Effect.flip(writer.append(step, { sync: true }))).failure.code, "STORE_FAILED")
          yield* writer.append(step, { sync: true })
          assert.deepStrictEqual(yield* afterPowerLoss(disk), [...start(receipt.id), ...step])
        }).pipe(Effect.orDie)))
    }))

  it.effect("is written anew by who opens the session and hears of it, since nobody is told twice", () =>
    Effect.gen(function*() {
      const { disk } = yield* open
      const again = (store: SessionStore.Service) => Effect.scoped(store.open(id, "another"))
      assert.strictEqual((yield* failureOf(on(disk, again, forgetting(place.segment(1))))).code, "STORE_FAILED")
      yield* on(disk, again)
      const events = yield* afterPowerLoss(disk)
      assert.deepStrictEqual(events.map(({ type }) => type).slice(4), ["assistant/chunk", "assistant/chunk", "assistant/chunk", "step/end", "turn/end"])
    }))

  it.effect("of an inbox is written anew, so that others may go by its lines", () =>
    Effect.gen(function*() {
      const disk = yield* withSession()
      assert.strictEqual((yield* failureOf(on(disk, (store) => store.receive(id, message), forgetting(place.inbox)))).code, "STORE_FAILED")
      const { receipt } = yield* on(disk, (store) => store.receive(id, message))
      const left = Memory.powerLost(disk, () => 0, "beginning")
      assert.deepStrictEqual(yield* on(left, (store) => Effect.map(store.pending(id), ({ nextTurn }) => nextTurn)), [receipt])
    }))
})

describe("an inbox that is shorter than it was", () => {
  const shorten = (length: (bytes: Buffer) => number) =>
    Effect.map(open, ({ disk }) => {
      Memory.rewrite(disk, place.inbox, (bytes) => bytes.subarray(0, length(bytes)))
      return disk
    })
  const refused = (disk: Memory.Disk, message: string, work: (store: SessionStore.Service) => Effect.Effect<unknown, StoreError>) =>
    Effect.gen(function*() {
      const before = Memory.bytesOf(disk, place.inbox)
      assert.deepStrictEqual(yield* failureOf(on(disk, work)), { code: "SESSION_DAMAGED", message })
      assert.deepStrictEqual(Memory.bytesOf(disk, place.inbox), before)
    })

  it.effect("is refused where it has no first line, and nothing is written into it", () =>
    Effect.gen(function*() {
      for (const [length, what] of [[0, "it has no first line"], [50, "it is not what was written"]] as const) {
        const message = `session one: its inbox cannot be read: ${what} (inbox.jsonl, line 1)`
        const disk = yield* shorten(() => length)
        yield* refused(disk, message, (store) => store.receive(id, { kind: "followup", text: "a", source: "user" }))
        yield* refused(disk, message, (store) => store.pending(id))
        yield* refused(disk, message, (store) => Effect.scoped(store.open(id, "another")))
      }
    }))

  it.effect("is refused by who opens the session where it does not say that the last writer did", () =>
    Effect.gen(function*() {
      const disk = yield* shorten((bytes) => bytes.indexOf("\n{\"inbox\":\"opened\""))
      yield* refused(disk, "session one: its inbox ends before its 1. writer opened it (inbox.jsonl)", (store) => Effect.scoped(store.open(id, "another")))
    }))

  it.effect("is refused by who has read more of it", () =>
    Effect.gen(function*() {
      const disk = yield* withSession()
      yield* on(disk, (store) =>
        Effect.gen(function*() {
          yield* store.receive(id, message)
          const { length } = Memory.bytesOf(disk, place.inbox)
          Memory.rewrite(disk, place.inbox, (bytes) => bytes.subarray(0, length - 7))
          const due = { code: "SESSION_DAMAGED", message: "session one: its inbox has lost 7 bytes since it was read (inbox.jsonl)" }
          assert.deepStrictEqual(yield* Effect.orDie(failureOf(store.receive(id, { ...message, key: "other" }))), due)
          assert.strictEqual(Memory.bytesOf(disk, place.inbox).length, length - 7)
        }))
    }))
})

describe("the lines of an inbox", () => {
  const received = (name: string, more: object = {}) => ({ type: "received", id: name, time: 1, kind: "followup", text: "some text", source: "user", ...more }) as const
  const line = (record: object, seen: number) => Buffer.from(`\n${LogLine.encode({ ...record, seen })}`)
  const head = InboxFile.headerBytes("one", "made")
  const folded = (...parts: ReadonlyArray<Uint8Array>) => {
    const fold = InboxFile.fold("one")
    const taken = fold.take(Buffer.concat([head, ...parts]))
    return Result.isSuccess(taken) ? [...fold.receipts.keys()] : taken.failure.failure.message
  }
  const [a, b, c] = [line(received("a"), 0), line(received("b"), 1), line(received("c"), 1)]

  it.effect("are what they are where a disk has left out what stood between them, however little", () =>
    Effect.sync(() => {
      for (const zeros of [1, 2, 3, 8, 600]) {
        const hole = Buffer.alloc(zeros)
        assert.deepStrictEqual(folded(a, hole), ["a"], `${zeros} zeros at the end`)
        assert.deepStrictEqual(folded(a, hole, c), ["a", "c"], `${zeros} zeros before a line`)
        assert.deepStrictEqual(folded(a, hole, b.subarray(1), c), ["a", "c"], `${zeros} zeros for a beginning`)
        if (zeros > 1) assert.deepStrictEqual(folded(a, b.subarray(0, 20), hole, b.subarray(40), c), ["a", "c"], `${zeros} zeros in a line`)
      }
    }))

  it.effect("are damaged where one is another, or is missing before one that has seen it", () =>
    Effect.sync(() => {
      const flipped = Buffer.from(b)
      flipped[30]! ^= 2
      const zero = Buffer.from(b)
      zero[b.indexOf(" ")] = 0
      const wrong = "session one: record 1 of its inbox cannot be read: it is not what was written (inbox.jsonl, line 3)"
      assert.deepStrictEqual([folded(a, flipped), folded(a, zero), folded(a, flipped, c)], [wrong, wrong, wrong])
      assert.strictEqual(folded(a, line(received("c"), 2)), "session one: 1 lines of its inbox are missing before line 3")
      assert.strictEqual(folded(Buffer.from("\n"), Buffer.alloc(a.length - 1), b), "session one: 1 lines of its inbox are missing before line 2")
    }))

  it.effect("put a prompt back once, whoever was overtaken in the middle of it, and leave alone what its sender repeats", () =>
    Effect.sync(() => {
      const opened = (generation: number) => line({ inbox: "opened", generation, claimed: [] }, 0)
      const again = (name: string, generation?: number) => line(received(name, { retry_of: "a", ...(generation === undefined ? {} : { generation }) }), 0)
      assert.deepStrictEqual(folded(a, opened(5), opened(6), again("six", 6), again("five", 5)), ["a", "six"])
      assert.deepStrictEqual(folded(a, opened(5), opened(6), again("five", 5), again("six", 6)), ["a", "six"])
      assert.deepStrictEqual(folded(a, opened(5), again("five", 5), opened(6), again("six", 6)), ["a", "five"])
      assert.deepStrictEqual(folded(a, opened(5), again("own"), again("five", 5), again("other")), ["a", "own", "five", "other"])
    }))
})
