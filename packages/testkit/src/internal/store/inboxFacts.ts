/** What holds of an inbox in every store: receipts, claims, discards, and who hears of them. */
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import { all, begun, claimed, codeOf, end, type Fact, headerOf, id, numbered, received, start } from "./scene.ts"

export const facts: ReadonlyArray<Fact> = [
  {
    name: "a message is received once for its key, whoever sends it how often",
    run: (store) =>
      Effect.gen(function*() {
        yield* store.create(headerOf(id))
        const message: SessionStore.Message = { kind: "followup", text: "hello", source: "user", key: "k" }
        const received = yield* Effect.forEach([1, 2, 3, 4], () => store.receive(id, message), { concurrency: "unbounded" })
        assert.equal(new Set(received.map(({ receipt }) => receipt.id)).size, 1)
        assert.equal(received.filter(({ isNew }) => isNew).length, 1)
        assert.equal(yield* codeOf(store.receive(id, { ...message, text: "another" })), "KEY_CONFLICT")
        assert.equal(yield* codeOf(store.receive(id, { ...message, kind: "steer" })), "KEY_CONFLICT")
        yield* store.receive(id, { ...message, key: "k2" })
        assert.deepEqual((yield* store.pending(id)).nextTurn.map(({ key, text }) => [key, text]), [["k", "hello"], ["k2", "hello"]])
      })
  },
  {
    name: "a message or a discard that no record of an inbox can hold is refused, and nothing of it received",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const message: SessionStore.Message = { kind: "followup", text: "hello", source: "user" }
        assert.equal(yield* codeOf(store.receive(id, { ...message, key: "" })), "INVALID_SPEC")
        assert.equal(yield* codeOf(store.receive(id, { ...message, retry_of: "" })), "INVALID_SPEC")
        // What a caller without types may say.
        assert.equal(yield* codeOf(store.receive(id, { ...message, kind: "shout" as "steer" })), "INVALID_SPEC")
        assert.equal(yield* codeOf(store.receive(id, { ...message, id: "mine" } as SessionStore.Message)), "INVALID_SPEC")
        assert.deepEqual([...yield* Stream.runCollect(store.inbox(id))], [])
        const receipt = yield* received(store, "followup", "a")
        assert.equal(yield* codeOf(store.requestDiscard(id, [receipt.id], "")), "INVALID_SPEC")
        assert.equal(yield* codeOf(writer.discard([receipt.id], "removed", "")), "INVALID_SPEC")
        const { discardRequests, nextTurn } = yield* store.pending(id)
        assert.deepEqual([nextTurn, discardRequests], [[receipt], []])
      })
  },
  {
    name: "what waits is in the order in which it was received, by where it goes",
    run: (store) =>
      Effect.gen(function*() {
        yield* store.create(headerOf(id))
        for (const [kind, text] of [["followup", "a"], ["inject", "b"], ["steer", "c"], ["followup", "d"]] as const) {
          yield* store.receive(id, { kind, text, source: "suite" })
        }
        const { discardRequests, nextStep, nextTurn } = yield* store.pending(id)
        assert.deepEqual([nextTurn.map(({ text }) => text), nextStep.map(({ text }) => text), discardRequests], [["a", "d"], ["b", "c"], []])
        assert.equal(new Set([...nextTurn, ...nextStep].map((receipt) => receipt.id)).size, 4)
      })
  },
  {
    name: "a claim takes its receipts with the event that says so, or nothing of both happens",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const a = (yield* store.receive(id, { kind: "followup", text: "a", source: "suite" })).receipt
        const b = (yield* store.receive(id, { kind: "followup", text: "b", source: "suite" })).receipt
        yield* writer.append(numbered([start(1)]), { sync: true })
        assert.equal(yield* codeOf(writer.append(numbered([claimed(1, a.id, "nothing")], 1), { sync: true })), "LOG_RULE")
        assert.equal((yield* store.pending(id)).nextTurn.length, 2)
        yield* writer.append(numbered([claimed(1, a.id)], 1), { sync: true })
        assert.deepEqual((yield* store.pending(id)).nextTurn.map((receipt) => receipt.id), [b.id])
        assert.equal(yield* codeOf(writer.append(numbered([claimed(1, a.id)], 2), { sync: true })), "LOG_RULE")
        assert.equal((yield* all(store.read(id, -1))).length, 2)
      })
  },
  {
    name: "a discard takes back what waits, and nothing that was claimed",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const a = (yield* store.receive(id, { kind: "followup", text: "a", source: "suite" })).receipt
        const b = (yield* store.receive(id, { kind: "steer", text: "b", source: "suite" })).receipt
        yield* writer.append(numbered([start(1), claimed(1, a.id)]), { sync: true })
        assert.deepEqual((yield* writer.discard([a.id, b.id, "nothing"], "removed", "me")).map((receipt) => receipt.id), [b.id])
        assert.deepEqual(yield* writer.discard([b.id], "removed", "me"), [])
        const { nextStep, nextTurn } = yield* store.pending(id)
        assert.deepEqual([nextTurn, nextStep], [[], []])
        assert.equal(yield* codeOf(writer.append(numbered([claimed(1, b.id)], 2), { sync: true })), "LOG_RULE")
      })
  },
  {
    name: "whoever does not hold the session can ask for a discard, and the holder sees who",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const { receipt } = yield* store.receive(id, { kind: "followup", text: "a", source: "suite" })
        yield* store.requestDiscard(id, [receipt.id], "somebody")
        const before = yield* store.pending(id)
        assert.deepEqual([before.discardRequests, before.nextTurn.length], [[{ id: receipt.id, by: "somebody" }], 1])
        yield* writer.discard([receipt.id], "removed", "somebody")
        assert.deepEqual((yield* store.pending(id)).discardRequests, [])
      })
  },
  {
    name: "a key is the session's for its whole life",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const message: SessionStore.Message = { kind: "followup", text: "hello", source: "user", key: "k" }
        const { receipt } = yield* store.receive(id, message)
        yield* writer.append(numbered([start(1), claimed(1, receipt.id), end(1)]), { sync: true })
        assert.deepEqual(yield* store.receive(id, message), { receipt, isNew: false })
        assert.equal(yield* codeOf(store.receive(id, { ...message, source: "another" })), "KEY_CONFLICT")
        assert.deepEqual((yield* store.pending(id)).nextTurn, [])
      })
  },
  {
    name: "a receipt says what was received, and nothing more",
    run: (store) =>
      Effect.gen(function*() {
        yield* store.create(headerOf(id))
        const text = "é \u2028 👋 \u0000 \"quoted\"\n"
        const { isNew, receipt } = yield* store.receive(id, { kind: "inject", text, source: "plugin:x", key: "k", retry_of: "r" })
        const { id: name, time, ...rest } = receipt
        assert.ok(isNew && name !== "" && Number.isSafeInteger(time) && time >= 0)
        assert.deepEqual(rest, { kind: "inject", text, source: "plugin:x", key: "k", retry_of: "r" })
        assert.deepEqual((yield* store.pending(id)).nextStep, [receipt])
        assert.deepEqual([...yield* Stream.runCollect(store.inbox(id))], [{ seq: 0, type: "received", ...receipt }])
      })
  },
  {
    name: "a receipt is claimed once, whoever tries, and with it all or none of its append",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const a = yield* received(store, "followup", "a")
        assert.equal(yield* codeOf(writer.append(numbered([start(1), claimed(1, a.id), claimed(1, "nothing")]), { sync: true })), "LOG_RULE")
        assert.deepEqual(yield* all(store.read(id, -1)), [])
        assert.deepEqual((yield* store.pending(id)).nextTurn, [a])
        yield* writer.append(numbered([start(1), claimed(1, a.id), end(1)]), { sync: true })
        assert.equal(yield* codeOf(writer.append(numbered([start(2), claimed(2, a.id)], 3), { sync: true })), "LOG_RULE")
        assert.equal((yield* all(store.read(id, -1))).length, 3)
      })
  },
  {
    name: "a discard is recorded with its cause and who decided, in the order of the inbox, and nothing where there is none",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const a = yield* received(store, "followup", "a")
        const b = yield* received(store, "steer", "b")
        assert.deepEqual(yield* writer.discard(["nothing"], "removed", "me"), [])
        assert.deepEqual(yield* writer.discard([b.id, a.id, b.id], "cancelled", "user"), [a, b])
        assert.deepEqual(yield* writer.discard([a.id], "removed", "me"), [])
        yield* store.requestDiscard(id, [a.id, "nothing"], "me")
        const records = [...yield* Stream.runCollect(store.inbox(id))]
        assert.deepEqual(records.map(({ seq, type }) => [seq, type]), [[0, "received"], [1, "received"], [2, "discarded"]])
        const { time: _, ...discarded } = records[2] ?? { time: 0 }
        assert.deepEqual(discarded, { seq: 2, type: "discarded", ids: [a.id, b.id], cause: "cancelled", by: "user" })
      })
  },
  {
    name: "a request for a discard is over once its receipt is claimed",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const a = yield* received(store, "followup", "a")
        yield* store.requestDiscard(id, [a.id, a.id], "somebody")
        yield* store.requestDiscard(id, [a.id], "another")
        assert.deepEqual((yield* store.pending(id)).discardRequests, [{ id: a.id, by: "somebody" }])
        yield* writer.append(numbered([start(1), claimed(1, a.id)]), { sync: true })
        assert.deepEqual((yield* store.pending(id)).discardRequests, [])
      })
  },
  {
    name: "whoever waits for the inbox hears of each record, also of one that came before he began to wait",
    run: (store) =>
      Effect.gen(function*() {
        yield* store.create(headerOf(id))
        const { version } = yield* store.pending(id)
        const waiting = yield* Effect.forkChild(store.inboxChanged(id, version), { startImmediately: true })
        const receipt = yield* received(store, "followup", "a")
        yield* Fiber.join(waiting)
        // Between the look and the wait.
        yield* store.inboxChanged(id, version)
        const after = (yield* store.pending(id)).version
        assert.ok(after > version)
        const next = yield* Effect.forkChild(store.inboxChanged(id, after), { startImmediately: true })
        yield* store.requestDiscard(id, [receipt.id], "x")
        yield* Fiber.join(next)
      })
  },
  {
    name: "messages of many senders at once are all received, each once",
    run: (store) =>
      Effect.gen(function*() {
        yield* store.create(headerOf(id))
        const texts = Array.from({ length: 20 }, (_, index) => `${index}`)
        const receipts = yield* Effect.forEach(texts, (text) => received(store, "followup", text), { concurrency: "unbounded" })
        const { nextTurn } = yield* store.pending(id)
        assert.deepEqual(nextTurn.map(({ text }) => text).sort(), [...texts].sort())
        assert.equal(new Set(receipts.map((receipt) => receipt.id)).size, 20)
        assert.deepEqual([...yield* Stream.runCollect(store.inbox(id))].map(({ seq }) => seq), texts.map((_, index) => index))
      })
  }
]
