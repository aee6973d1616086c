import { assert, describe, it } from "@effect/vitest"
import { Failure, Scalars, type SessionEvent, type SessionHeader } from "@turnpike/contract"
import { LogLine, SessionStore, SessionStoreMemory } from "@turnpike/kernel"
import { Interchange, SqliteSessionStore } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Log from "../../kernel/test/support/LogEvents.ts"
import * as Directory from "./support/directory.ts"

const id = Scalars.SessionId.make("s-1")
const header: SessionHeader.SessionHeader = { type: "session", format: 1, id, created: 5, harness: "fake", cwd: "/project", title: "a — title" }

const exported = (store: SessionStore.Service) => Effect.map(Stream.runCollect(Interchange.lines(store, id)), (pieces) => [...pieces].join(""))

const encoder = new TextEncoder()

/** A file in pieces of so many bytes. */
const chunksOf = (file: string | Uint8Array, size = 7): Stream.Stream<Uint8Array> => {
  const bytes = typeof file === "string" ? encoder.encode(file) : file
  return Stream.fromIterable(Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.slice(index * size, (index + 1) * size)))
}

/** Whether it was put in, or why not; nothing may then be there. */
const restored = (file: string | Uint8Array, size?: number) =>
  Effect.gen(function*() {
    const store = yield* SessionStoreMemory.make
    const result = yield* Effect.result(Interchange.restore(store, chunksOf(file, size)))
    if (Result.isSuccess(result)) return { store, imported: result.success, failure: undefined }
    assert.strictEqual((yield* Effect.flip(store.header(id))).failure.code, "SESSION_UNKNOWN")
    return { store, imported: undefined, failure: result.failure.failure }
  })

const why = (file: string | Uint8Array) => Effect.map(restored(file), ({ failure }) => failure === undefined ? "restored" : `${failure.code}: ${failure.message}`)

/** A session with a log, and an inbox of which something waits, is claimed and was taken back. */
const filled = (events: ReadonlyArray<SessionEvent.SessionEvent> = Log.log([...Log.turn(1, "one", Log.answer("1")), Log.turnStart(2), Log.stepStart()])) =>
  Effect.gen(function*() {
    const store = yield* SessionStoreMemory.make
    yield* store.create(header)
    for (const text of ["first", "second", "third"]) yield* store.receive(id, { kind: "followup", text, source: "user", key: text })
    yield* Effect.scoped(Effect.gen(function*() {
      const writer = yield* store.open(id, "the test")
      const { nextTurn } = yield* store.pending(id)
      yield* writer.discard([nextTurn[2]!.id], "removed", "user")
      if (events.length > 0) yield* writer.append(events, { sync: true })
    }))
    yield* store.requestDiscard(id, ["r-2"], "somebody")
    return store
  })

const small = Effect.flatMap(filled(Log.log(Log.turn(1, "one"))), exported)

describe("a session as lines", () => {
  it.effect("is its header, its events, its inbox and their numbers, each line with its checksum", () =>
    Effect.gen(function*() {
      const file = yield* small
      const lines = file.trimEnd().split("\n")
      assert.strictEqual(lines[0], LogLine.encode(header))
      assert.deepStrictEqual(lines.map((line) => (JSON.parse(line) as { readonly type: string }).type), [
        "session",
        ...["turn/start", "step/start", "user/message", "step/end", "turn/end"],
        ...["received", "received", "received", "discarded", "discard_requested"],
        "end"
      ])
      assert.isTrue(lines.every((line) => /,"sum":"[0-9a-f]{8}"\}$/u.test(line)))
      assert.deepInclude(JSON.parse(lines.at(-1) ?? ""), { type: "end", events: 5, records: 5 })
    }))

  it.effect("is the same from another store that it was put into, in pieces of any size", () =>
    Effect.scoped(Effect.gen(function*() {
      const sqlite = yield* SqliteSessionStore.make({ directory: yield* Directory.temporary })
      for (let seed = 1; seed <= 20; seed++) {
        // What it claims is in no inbox.
        const events = Log.random(seed, seed * 10).map((event): SessionEvent.SessionEvent =>
          event.type === "inbox/claimed" ? { seq: event.seq, time: event.time, type: "x/test/claim", data: event.data } : event)
        const file = yield* Effect.flatMap(filled(events), exported)
        const told: Array<number> = []
        const imported = yield* Interchange.restore(sqlite, chunksOf(file, seed * 13), { progress: ({ events }) => told.push(events) })
        assert.deepStrictEqual(imported, { header, events: events.length, records: 5 }, `seed ${seed}`)
        assert.deepStrictEqual(told, told.toSorted((one, other) => one - other))
        assert.strictEqual(yield* exported(sqlite), file, `seed ${seed}`)
        yield* sqlite.delete(id)
        const { store } = yield* restored(file, 1 + seed * 3)
        assert.strictEqual(yield* exported(store), file, `seed ${seed}`)
      }
    })), 60_000)

  it.effect("has a prompt once, though the turn that took it is closed as one that a crash left while it is read", () =>
    Effect.gen(function*() {
      const store = yield* filled(Log.log([Log.turnStart(1), Log.claimed(1, "r-1"), Log.stepStart()]))
      const before = yield* exported(store)
      const closes = Effect.scoped(Effect.asVoid(store.open(id, "who comes after the crash")))
      const meanwhile: SessionStore.Service = {
        ...store,
        inbox: (session) => Stream.unwrap(Effect.as(Effect.andThen(closes, store.receive(id, { kind: "followup", text: "later", source: "user" })), store.inbox(session)))
      }
      assert.strictEqual(yield* exported(meanwhile), before)
      // Once it is closed, all of it is there.
      const types = (yield* exported(store)).trimEnd().split("\n").map((line) => JSON.parse(line) as { readonly type: string; readonly retry_of?: string })
      assert.deepStrictEqual(types.filter(({ type }) => type === "received").map(({ retry_of }) => retry_of), [undefined, undefined, undefined, "r-1", undefined])
      const other = (yield* restored(before)).store
      const { recovery } = yield* Effect.scoped(other.open(id, "the test"))
      assert.deepStrictEqual(recovery.requeued.map(({ retry_of, text }) => [retry_of, text]), [["r-1", "first"]])
      assert.deepStrictEqual((yield* other.pending(id)).nextTurn.map(({ text }) => text), ["first", "second"])
    }))

  it.effect("has a prompt once, though the turn that took it was begun, cut off and closed while it is read", () =>
    Effect.gen(function*() {
      const store = yield* filled(Log.log(Log.turn(1, "one")))
      const before = yield* exported(store)
      const crashes = Effect.scoped(Effect.gen(function*() {
        const writer = yield* store.open(id, "who is killed")
        yield* writer.append(Log.log([...Log.turn(1, "one"), Log.turnStart(2), Log.claimed(2, "r-1"), Log.stepStart()]).slice(5), { sync: true })
      }))
      const recovers = Effect.scoped(Effect.asVoid(store.open(id, "who comes after the crash")))
      const meanwhile: SessionStore.Service = {
        ...store,
        inbox: (session) => Stream.unwrap(Effect.as(Effect.andThen(crashes, recovers), store.inbox(session)))
      }
      assert.strictEqual(yield* exported(meanwhile), before)
      assert.deepStrictEqual((yield* store.pending(id)).nextTurn.map(({ retry_of, text }) => [retry_of, text]), [["r-1", "first"], [undefined, "second"]])
    }))

  it.effect("of a fork has a prompt once, whatever its parent did with a receipt of the same id", () =>
    Effect.gen(function*() {
      const seed = Log.log([Log.turnStart(1), Log.claimed(1, "r-1"), { type: "turn/end", data: { turn: 1, verdict: { type: "interrupted", not_started: true } } }])
      const store = yield* SessionStoreMemory.make
      yield* store.create({ ...header, parent: { id: Scalars.SessionId.make("s-0"), events: 3 } }, seed)
      yield* store.receive(id, { kind: "followup", text: "first", source: "user" })
      const before = yield* exported(store)
      const crashes = Effect.scoped(Effect.gen(function*() {
        const writer = yield* store.open(id, "who is killed")
        yield* writer.append([{ seq: 3, time: 1, ...Log.turnStart(2) }, { seq: 4, time: 1, ...Log.claimed(2, "r-1") }], { sync: true })
      }))
      const recovers = Effect.scoped(Effect.asVoid(store.open(id, "who comes after the crash")))
      const meanwhile: SessionStore.Service = { ...store, inbox: (session) => Stream.unwrap(Effect.as(Effect.andThen(crashes, recovers), store.inbox(session))) }
      assert.strictEqual(yield* exported(meanwhile), before)
    }))

  it.effect("has what was received after a prompt that waits again, whatever says that it does", () =>
    Effect.gen(function*() {
      // A store whose inbox and log are no one commit, and whose writer died between the two.
      for (const events of [Log.log([Log.turnStart(1), Log.claimed(1, "r-1"), Log.stepStart()]), []]) {
        const store = yield* filled(events)
        yield* store.receive(id, { kind: "followup", text: "first", source: "user", retry_of: "r-1" })
        yield* store.receive(id, { kind: "followup", text: "later", source: "user" })
        const lines = (yield* exported(store)).trimEnd().split("\n").map((line) => JSON.parse(line) as { readonly type: string; readonly text?: string })
        assert.deepStrictEqual(lines.flatMap(({ text, type }) => type === "received" ? [text] : []), ["first", "second", "third", "first", "later"])
      }
    }))

  it.effect("is put in order elsewhere without putting a prompt back that waits again already", () =>
    Effect.scoped(Effect.gen(function*() {
      const from = yield* filled(Log.log([Log.turnStart(1), Log.claimed(1, "r-1"), Log.stepStart()]))
      yield* from.receive(id, { kind: "followup", text: "first", source: "user", retry_of: "r-1" })
      const file = yield* exported(from)
      for (const store of [yield* SessionStoreMemory.make, yield* SqliteSessionStore.make({ directory: yield* Directory.temporary })]) {
        yield* Interchange.restore(store, chunksOf(file))
        const { recovery } = yield* Effect.scoped(store.open(id, "the test"))
        assert.deepStrictEqual([recovery.closed.map(({ type }) => type), recovery.requeued], [["step/end", "turn/end"], []])
        assert.deepStrictEqual((yield* store.pending(id)).nextTurn.map(({ retry_of, text }) => [retry_of, text]), [["r-1", "first"], [undefined, "second"]])
      }
    })))

  it.effect("keeps what a later version may have written, and what plugins have", () =>
    Effect.gen(function*() {
      const later = { type: "later/thing", ignorable: true, data: { n: 1 } } as unknown as SessionEvent.Body
      const file = yield* Effect.flatMap(filled(Log.log(Log.turn(1, "one", later, { type: "x/a/b", data: [1] }))), exported)
      const { store } = yield* restored(file)
      assert.strictEqual(yield* exported(store), file)
      assert.include(file, "later/thing")
    }))

  it.effect("is refused where it was cut off, at whatever byte", () =>
    Effect.gen(function*() {
      const bytes = encoder.encode(yield* small)
      for (let length = 0; length < bytes.length; length++) {
        const { failure } = yield* restored(bytes.subarray(0, length), 64)
        assert.strictEqual(failure?.code, "SESSION_DAMAGED", `${length} bytes`)
      }
    }))

  it.effect("is refused, or the same, where a bit of any byte was flipped", () =>
    Effect.gen(function*() {
      const file = yield* small
      const bytes = encoder.encode(file)
      for (let byte = 0; byte < bytes.length; byte++) {
        const bit = byte * 8 + (byte * 5) % 8
        const flipped = bytes.slice()
        flipped[bit >> 3]! ^= 1 << (bit & 7)
        const { failure, store } = yield* restored(flipped, 512)
        if (failure === undefined) assert.strictEqual(yield* exported(store), file, `bit ${bit}`)
        else assert.include(["SESSION_DAMAGED", "FORMAT_UNSUPPORTED"], failure.code, `bit ${bit}`)
      }
    }), 60_000)

  it.effect("is refused with the line that is wrong, and nothing of it is there", () =>
    Effect.gen(function*() {
      const file = yield* small
      const lines = file.split("\n")
      const replaced = (at: number, ...others: ReadonlyArray<string>) => [...lines.slice(0, at), ...others, ...lines.slice(at + 1)].join("\n")
      const end = (events: number, records: number) => LogLine.encode({ type: "end", events, records } as { readonly type: string })
      assert.strictEqual(yield* why(""), "SESSION_DAMAGED: line 1 is missing: there is nothing to put in")
      assert.strictEqual(yield* why("{\n"), "SESSION_DAMAGED: line 1 is no header of a session: it is not JSON")
      assert.match(yield* why(replaced(0, JSON.stringify({ ...header, format: 2 }))), /^FORMAT_UNSUPPORTED: line 1 is a header of a session of a later version: /u)
      assert.strictEqual(yield* why(replaced(2, lines[2]!.replace("step", "stop"))), "SESSION_DAMAGED: line 3 is no event of a log: its checksum is not that of its bytes")
      assert.match(yield* why(replaced(2)), /^SESSION_DAMAGED: line 3 breaks a rule of the log: /u)
      assert.strictEqual(yield* why(replaced(7, lines[1]!)), "SESSION_DAMAGED: line 8 is an event of the log, behind the records of the inbox")
      assert.strictEqual(yield* why(replaced(8, "")), "SESSION_DAMAGED: line 9 is no record of an inbox: it is not JSON")
      assert.strictEqual(yield* why(`${file}\0`), "SESSION_DAMAGED: line 13 was cut off: it has no line feed at its end")
      assert.strictEqual(yield* why(`${file}${lines[1]}\n`), "SESSION_DAMAGED: line 13 stands behind the last line")
      assert.strictEqual(yield* why(`${file}${file}`), "SESSION_DAMAGED: line 13 begins another session, and a file has one")
      assert.strictEqual(yield* why(replaced(11)), "SESSION_DAMAGED: line 12 is missing: the file ends before its last line, which says how much there is")
      assert.strictEqual(
        yield* why(replaced(11, end(5, 6))),
        "SESSION_DAMAGED: line 12 says that there are 5 events and 6 records of the inbox, and before it are 5 and 5"
      )
      assert.match(yield* why(replaced(6)), /^SESSION_DAMAGED: /u)
    }))

  it.effect("collides with a session that is there, which stays as it is", () =>
    Effect.gen(function*() {
      const store = yield* filled()
      const before = yield* exported(store)
      const { failure } = yield* Effect.flip(Interchange.restore(store, chunksOf(yield* small)))
      assert.deepStrictEqual([failure.code, yield* exported(store)], ["SESSION_EXISTS", before])
    }))

  it.effect("fails as what brings it does", () =>
    Effect.gen(function*() {
      const broken = new SessionStore.SessionStoreError({ failure: Failure.make("FILE_UNREADABLE", "the disk went away") })
      const store = yield* SessionStoreMemory.make
      const failure = yield* Effect.flip(Interchange.restore(store, Stream.concat(chunksOf((yield* small).slice(0, 300)), Stream.fail(broken))))
      assert.strictEqual(failure, broken)
      assert.strictEqual((yield* Effect.flip(store.header(id))).failure.code, "SESSION_UNKNOWN")
    }))
})
