/** What holds of sessions in every store: how they come, are listed, copied and go. */
import type { InboxEntry, SessionHeader } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import {
  all,
  begun,
  type Body,
  claimed,
  codeOf,
  end,
  type Fact,
  failureOf,
  headerOf,
  id,
  numbered,
  opened,
  other,
  received,
  start,
  step,
  stepEnd,
  turn,
  user
} from "./scene.ts"

export const facts: ReadonlyArray<Fact> = [
  {
    name: "a session is what it was made as, and its id is taken",
    run: (store) =>
      Effect.gen(function*() {
        const header: SessionHeader.SessionHeader = { ...headerOf(id), title: "a title" }
        yield* store.create(header)
        assert.deepEqual(yield* store.header(id), header)
        assert.deepEqual(yield* all(store.read(id, -1)), [])
        assert.equal(yield* codeOf(store.create(headerOf(id))), "SESSION_EXISTS")
        assert.deepEqual(yield* store.header(id), header)
      })
  },
  {
    name: "a session that is not there is told by its name, whatever is asked",
    run: (store) =>
      Effect.gen(function*() {
        const asked: ReadonlyArray<Effect.Effect<unknown, SessionStore.SessionStoreError, Scope.Scope>> = [
          store.header(id),
          store.open(id, "x"),
          all(store.read(id, -1)),
          store.receive(id, { kind: "followup", text: "a", source: "b" }),
          store.pending(id),
          store.requestDiscard(id, ["r"], "x"),
          store.inboxChanged(id, 0),
          all(store.follow(id, -1)),
          Stream.runDrain(store.inbox(id)),
          store.delete(id)
        ]
        for (const each of asked) {
          const { code, message } = yield* failureOf(each)
          assert.equal(code, "SESSION_UNKNOWN")
          assert.ok(message.includes(id), message)
        }
      })
  },
  {
    name: "a fork begins with its seed, and a seed that breaks a rule is refused",
    run: (store) =>
      Effect.gen(function*() {
        const seed = numbered(turn(1))
        yield* store.create({ ...headerOf(other), parent: { id, events: seed.length } }, seed)
        assert.deepEqual(yield* all(store.read(other, -1)), seed)
        const refused = (events: number, bodies: ReadonlyArray<Body>) =>
          codeOf(store.create({ ...headerOf(id), parent: { id: other, events } }, numbered(bodies)))
        assert.equal(yield* refused(1, [user("outside")]), "LOG_RULE")
        assert.equal(yield* refused(2, [start(1), step]), "LOG_RULE")
        assert.equal(yield* refused(6, turn(1)), "LOG_RULE")
        assert.equal(yield* refused(7, []), "LOG_RULE")
        assert.equal(yield* codeOf(store.create(headerOf(id), numbered(turn(1)))), "LOG_RULE")
        assert.equal(yield* codeOf(store.header(id)), "SESSION_UNKNOWN")
      })
  },
  {
    name: "the seed of a fork is copied, and refused where it is not as JSON holds it or is no log",
    run: (store) =>
      Effect.gen(function*() {
        const seed = numbered(turn(1))
        const given = structuredClone(seed) as unknown as Array<{ seq: number; data: { text?: string } }>
        const create = (events: ReadonlyArray<unknown>) =>
          store.create({ ...headerOf(other), parent: { id, events: events.length } }, events as typeof seed)
        const place = given.findIndex(({ data }) => data.text !== undefined)
        const wrong: ReadonlyArray<readonly [field: string, value: unknown]> = [
          ["seq", place + 1],
          ["time", -0],
          ["surface_op", undefined],
          ["data", { ...given[place]?.data, text: 1n }],
          ["data", { ...given[place]?.data, later: new Date(0) }],
          ["type", "nobody/knows"]
        ]
        for (const [field, value] of wrong) {
          const { code, message } = yield* failureOf(create(given.with(place, { ...given[place], [field]: value } as never)))
          assert.deepEqual([field, code], [field, "LOG_RULE"])
          assert.ok(message.includes(`event ${place} `) || message.includes(`event ${place + 1} `), message)
        }
        assert.equal(yield* codeOf(store.header(other)), "SESSION_UNKNOWN")
        yield* create(given)
        for (const event of given) event.data.text = "changed"
        assert.deepEqual(yield* all(store.read(other, -1)), seed)
      })
  },
  {
    name: "a list has every session with its figures, the last changed first",
    run: (store) =>
      Effect.gen(function*() {
        const first = yield* begun(store)
        yield* first.writer.append(numbered([...turn(1), ...turn(2)]), { sync: true })
        yield* store.create(headerOf(other, 9_000_000))
        yield* store.receive(id, { kind: "followup", text: "a", source: "suite" })
        const list = [...yield* Stream.runCollect(store.list)]
        assert.deepEqual(
          list.map(({ events, header, holder, pending, turns, updated }) => [header.id, events, turns, updated, pending, holder?.name]),
          [[other, 0, 0, 9_000_000, 0, undefined], [id, 14, 2, 2_013, 1, "the suite"]]
        )
      })
  },
  {
    name: "a session that was exported is restored whole or not at all",
    run: (store) =>
      Effect.gen(function*() {
        const { close, writer } = yield* begun(store)
        const { receipt } = yield* store.receive(id, { kind: "followup", text: "a", source: "suite", key: "k" })
        yield* store.receive(id, { kind: "followup", text: "b", source: "suite" })
        const events = numbered([start(1), claimed(1, receipt.id), step, user("a", receipt.id), stepEnd, end(1)])
        yield* writer.append(events, { sync: true })
        yield* close
        const inbox = [...yield* Stream.runCollect(store.inbox(id))]
        const broken = Stream.concat(Stream.fromIterable(events.slice(0, 3)), Stream.fail(new SessionStore.SessionStoreError({ failure: { code: "STORE_FAILED", message: "x", retryable: true, remedy: "y" } })))
        assert.equal(yield* codeOf(store.restore(headerOf(other), broken, Stream.fromIterable(inbox))), "STORE_FAILED")
        assert.equal(yield* codeOf(store.header(other)), "SESSION_UNKNOWN")
        assert.equal(yield* codeOf(store.restore(headerOf(id), Stream.fromIterable(events), Stream.fromIterable(inbox))), "SESSION_EXISTS")
        yield* store.restore(headerOf(other), Stream.fromIterable(events), Stream.fromIterable(inbox))
        assert.deepEqual(yield* all(store.read(other, -1)), events)
        assert.deepEqual([...yield* Stream.runCollect(store.inbox(other))], inbox)
        assert.deepEqual((yield* store.pending(other)).nextTurn.map(({ text }) => text), ["b"])
        assert.equal((yield* store.receive(other, { kind: "followup", text: "a", source: "suite", key: "k" })).isNew, false)
      })
  },
  {
    name: "a session that is held is not deleted, and one that is deleted is gone",
    run: (store) =>
      Effect.gen(function*() {
        const { close } = yield* begun(store)
        assert.equal(yield* codeOf(store.delete(id)), "SESSION_BUSY")
        yield* close
        yield* store.delete(id)
        assert.equal(yield* codeOf(store.header(id)), "SESSION_UNKNOWN")
        yield* store.create(headerOf(id))
        assert.deepEqual([yield* all(store.read(id, -1)), (yield* store.pending(id)).nextTurn], [[], []])
      })
  },
  {
    name: "sessions do not touch each other",
    run: (store) =>
      Effect.gen(function*() {
        const one = yield* begun(store)
        const two = yield* begun(store, other)
        yield* Effect.all([one.writer.append(numbered(turn(1)), { sync: true }), two.writer.append(numbered([start(1), end(1)]), { sync: true })], { concurrency: 2 })
        const { receipt } = yield* store.receive(id, { kind: "followup", text: "a", source: "suite", key: "k" })
        assert.equal((yield* store.receive(other, { kind: "followup", text: "b", source: "suite", key: "k" })).isNew, true)
        assert.equal(yield* codeOf(two.writer.append(numbered([start(2), claimed(2, `${receipt.id}-x`)], 2), { sync: true })), "LOG_RULE")
        assert.deepEqual([(yield* all(store.read(id, -1))).length, (yield* all(store.read(other, -1))).length], [7, 2])
      })
  },
  {
    name: "of many who make a session at once one does",
    run: (store) =>
      Effect.gen(function*() {
        const titles = ["a", "b", "c", "d"]
        const tries = yield* Effect.forEach(titles, (title) => Effect.result(store.create({ ...headerOf(id), title })), { concurrency: "unbounded" })
        assert.deepEqual(tries.map((one) => Result.isSuccess(one) ? "made" : one.failure.failure.code).sort(), ["SESSION_EXISTS", "SESSION_EXISTS", "SESSION_EXISTS", "made"])
        assert.equal((yield* store.header(id)).title, titles[tries.findIndex(Result.isSuccess)])
      })
  },
  {
    name: "a fork goes on from its seed, whose claims are its parent's",
    run: (store) =>
      Effect.gen(function*() {
        const seed = numbered([start(1), claimed(1, "of the parent"), end(1)])
        yield* store.create({ ...headerOf(other), parent: { id, events: 3 } }, seed)
        const { close, writer } = yield* opened(store, other)
        const own = yield* received(store, "followup", "a", other)
        yield* writer.append(numbered([start(2), claimed(2, own.id), end(2)], 3), { sync: true })
        assert.deepEqual([(yield* store.pending(other)).nextTurn, (yield* all(store.read(other, -1))).length], [[], 6])
        yield* close
        const [summary] = yield* Stream.runCollect(store.list)
        assert.deepEqual([summary?.events, summary?.turns, summary?.pending, summary?.holder], [6, 2, 0, undefined])
      })
  },
  {
    name: "a fork that was exported is restored with what waits, though its parent claimed a receipt of the same id",
    run: (store) =>
      Effect.gen(function*() {
        const seed = numbered([start(1), claimed(1, "r-1"), end(1)])
        const own: ReadonlyArray<InboxEntry.InboxEntry> = [
          { seq: 0, time: 1, type: "received", id: "r-1", kind: "followup", text: "a", source: "x" },
          { seq: 1, time: 1, type: "received", id: "r-2", kind: "followup", text: "b", source: "x" }
        ]
        const log = [...seed, ...numbered([start(2), claimed(2, "r-2"), end(2)], 3)]
        yield* store.restore({ ...headerOf(other), parent: { id, events: 3 } }, Stream.fromIterable(log), Stream.fromIterable(own))
        assert.deepEqual((yield* store.pending(other)).nextTurn.map(({ id: receipt }) => receipt), ["r-1"])
        const { writer } = yield* opened(store, other)
        yield* writer.append(numbered([start(3), claimed(3, "r-1"), end(3)], 6), { sync: true })
        assert.deepEqual((yield* store.pending(other)).nextTurn, [])
      })
  },
  {
    name: "an export that breaks a rule is refused, and nothing of it is there",
    run: (store) =>
      Effect.gen(function*() {
        const restore = (bodies: ReadonlyArray<Body>, inbox: ReadonlyArray<InboxEntry.InboxEntry>, from = 0) =>
          store.restore(headerOf(id), Stream.fromIterable(numbered(bodies, from)), Stream.fromIterable(inbox))
        const receipt: InboxEntry.InboxEntry = { seq: 0, time: 1, type: "received", id: "r-1", kind: "followup", text: "a", source: "x", key: "k" }
        for (const attempt of [
          restore([start(1), start(2)], []),
          restore([user("outside")], []),
          restore(turn(1), [], 1),
          restore(turn(1), [{ ...receipt, seq: 1 }]),
          restore(turn(1), [receipt, { ...receipt, seq: 1 }]),
          restore(turn(1), [receipt, { ...receipt, seq: 1, id: "r-2" }])
        ]) {
          const { code, message } = yield* failureOf(attempt)
          assert.equal(code, "SESSION_DAMAGED")
          assert.ok(message.includes(id), message)
          assert.equal(yield* codeOf(store.header(id)), "SESSION_UNKNOWN")
        }
        yield* restore(turn(1), [receipt])
      })
  },
  {
    name: "a session that was exported in the middle of a turn goes on where it is restored",
    run: (store) =>
      Effect.gen(function*() {
        const events = numbered([start(1), claimed(1, "r-1")])
        const inbox: ReadonlyArray<InboxEntry.InboxEntry> = [{ seq: 0, time: 1, type: "received", id: "r-1", kind: "followup", text: "a", source: "x" }]
        yield* store.restore(headerOf(id), Stream.fromIterable(events), Stream.fromIterable(inbox))
        assert.deepEqual((yield* store.pending(id)).nextTurn, [])
        const { writer } = yield* opened(store)
        assert.deepEqual(writer.recovery.closed.map(({ type }) => type), ["turn/end"])
        assert.deepEqual((yield* store.pending(id)).nextTurn.map(({ retry_of, text }) => [text, retry_of]), [["a", "r-1"]])
        // What is received afterwards has an id of its own.
        const next = yield* received(store, "followup", "b")
        assert.equal(new Set(["r-1", next.id, ...(yield* store.pending(id)).nextTurn.map((receipt) => receipt.id)]).size, 3)
      })
  },
  {
    name: "a discard of a receipt that the log claims is void",
    run: (store) =>
      Effect.gen(function*() {
        const inbox: ReadonlyArray<InboxEntry.InboxEntry> = [
          { seq: 0, time: 1, type: "received", id: "r-1", kind: "followup", text: "a", source: "x" },
          { seq: 1, time: 1, type: "discarded", ids: ["r-1"], cause: "removed", by: "x" }
        ]
        yield* store.restore(headerOf(id), Stream.fromIterable(numbered([start(1), claimed(1, "r-1")])), Stream.fromIterable(inbox))
        const { writer } = yield* opened(store)
        // It was claimed and not begun, so that it waits again.
        assert.deepEqual(writer.recovery.requeued.map(({ retry_of }) => retry_of), ["r-1"])
        assert.deepEqual((yield* store.pending(id)).nextTurn, writer.recovery.requeued)
      })
  },
  {
    name: "whoever follows a session hears when it is deleted",
    run: (store) =>
      Effect.gen(function*() {
        yield* store.create(headerOf(id))
        const reader = yield* Effect.forkChild(Effect.flip(all(store.follow(id, -1))), { startImmediately: true })
        const watcher = yield* Effect.forkChild(Effect.flip(store.inboxChanged(id, 0)), { startImmediately: true })
        yield* store.delete(id)
        for (const { failure } of [yield* Fiber.join(reader), yield* Fiber.join(watcher)]) assert.equal(failure.code, "SESSION_UNKNOWN")
      })
  }
]
