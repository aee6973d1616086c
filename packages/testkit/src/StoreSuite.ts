/**
 * What holds of every store of sessions: ours, and a stranger's.
 *
 * Each fact runs on a store of its own, made by the layer. What needs a crash, a
 * second process or a broken medium is not here: that differs from store to store.
 */
import { Scalars, type SessionEvent, type SessionHeader } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"

/** What declares the tests, such as `describe` and `it.live` of a test runner. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => void
  readonly it: (name: string, run: () => Effect.Effect<void, unknown>, timeoutMs?: number) => void
}

type Store = SessionStore.Service
type Body = SessionEvent.Body

interface Fact {
  readonly name: string
  readonly run: (store: Store) => Effect.Effect<void, unknown, Scope.Scope>
}

const timeoutMs = 60_000
const id = Scalars.SessionId.make("suite-1")
const other = Scalars.SessionId.make("suite-2")

/** The header of a session of the suite. */
const headerOf = (session: Scalars.SessionId, created = 1_000): SessionHeader.SessionHeader => ({
  type: "session",
  format: 1,
  id: session,
  created,
  harness: "scripted",
  cwd: "/project"
})

const start = (turn: number): Body => ({ type: "turn/start", data: { turn, trigger: { kind: "message", source: "suite" } } })
const end = (turn: number): Body => ({ type: "turn/end", data: { turn, verdict: { type: "completed" } } })
const step: Body = { type: "step/start", data: { step: 1 } }
const stepEnd: Body = { type: "step/end", data: { step: 1 } }
const claimed = (turn: number, ...ids: ReadonlyArray<string>): Body => ({ type: "inbox/claimed", data: { turn, ids } })
const user = (text: string, receipt?: string): Body => ({
  type: "user/message",
  data: { text, source: "suite", ...(receipt === undefined ? {} : { receipt }) },
  surface_op: "append"
})
const chunk = (text: string): Body => ({ type: "assistant/chunk", data: { kind: "text", text } })

const numbered = (bodies: ReadonlyArray<Body>, from = 0): ReadonlyArray<SessionEvent.SessionEvent> =>
  bodies.map((body, index) => ({ seq: from + index, time: 2_000 + from + index, ...body }))

/** A turn, with texts that no encoding may change. */
const turn = (number: number): ReadonlyArray<Body> => [start(number), step, user("é \u2028 👋 \u0000 \"quoted\"\n"), chunk("a"), chunk("b"), stepEnd, end(number)]

const all = (stream: Stream.Stream<SessionEvent.SessionEvent, SessionStore.SessionStoreError>) =>
  Effect.map(Stream.runCollect(stream), (events) => [...events])

const failureOf = <A>(effect: Effect.Effect<A, SessionStore.SessionStoreError, Scope.Scope>) =>
  Effect.map(Effect.flip(effect), ({ failure }) => failure)
const codeOf = <A>(effect: Effect.Effect<A, SessionStore.SessionStoreError, Scope.Scope>) =>
  Effect.map(failureOf(effect), ({ code }) => code)

/** A session with a writer, in a scope that can be closed. */
const opened = (store: Store, session = id, holder = "the suite") =>
  Effect.gen(function*() {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const writer = yield* Scope.provide(store.open(session, holder), scope)
    return { writer, close: Scope.close(scope, Exit.void) }
  })

const begun = (store: Store, session = id) =>
  Effect.andThen(store.create(headerOf(session)), opened(store, session))

const facts: ReadonlyArray<Fact> = [
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
    name: "what was appended is read as it was, in order, from wherever one begins",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const events = numbered([...turn(1), ...turn(2)])
        yield* writer.append(events.slice(0, 3), { sync: true })
        yield* writer.append(events.slice(3, 5), { sync: false })
        yield* writer.append([], { sync: true })
        yield* writer.append(events.slice(5), { sync: true })
        assert.deepEqual(yield* all(store.read(id, -1)), events)
        for (const after of [0, 2, 3, 4, 12, 13, 20]) assert.deepEqual(yield* all(store.read(id, after)), events.slice(after + 1))
      })
  },
  {
    name: "an append that does not follow the log's end is refused as a whole",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        yield* writer.append(numbered([start(1)]), { sync: true })
        assert.equal(yield* codeOf(writer.append(numbered([step, user("p")], 2), { sync: true })), "LOG_RULE")
        assert.equal(yield* codeOf(writer.append(numbered([step], 0), { sync: true })), "LOG_RULE")
        assert.equal((yield* all(store.read(id, -1))).length, 1)
      })
  },
  {
    name: "a session has one writer, and who is refused learns who and since when",
    run: (store) =>
      Effect.gen(function*() {
        const first = yield* begun(store)
        const { code, message } = yield* failureOf(store.open(id, "another"))
        assert.equal(code, "SESSION_BUSY")
        assert.match(message, /the suite since \d{4}-\d\d-\d\dT/u)
        yield* first.close
        const second = yield* opened(store, id, "another")
        assert.ok(second.writer.generation > first.writer.generation)
      })
  },
  {
    name: "a writer that another has followed writes nothing any more",
    run: (store) =>
      Effect.gen(function*() {
        const first = yield* begun(store)
        yield* first.close
        const second = yield* opened(store)
        assert.equal(yield* codeOf(first.writer.append(numbered([start(1)]), { sync: true })), "SESSION_BUSY")
        assert.equal(yield* codeOf(first.writer.discard(["r"], "removed", "x")), "SESSION_BUSY")
        yield* second.writer.append(numbered([start(1), end(1)]), { sync: true })
        assert.equal(yield* codeOf(first.writer.append(numbered([start(2)], 2), { sync: true })), "SESSION_BUSY")
        assert.equal((yield* all(store.read(id, -1))).length, 2)
      })
  },
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
    name: "a reader that follows sees what is committed later, once each and without a gap, wherever it begins again",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const events = numbered([...turn(1), ...turn(2), ...turn(3)])
        yield* writer.append(events.slice(0, 4), { sync: true })
        const seen: Array<number> = []
        const follow = (after: number, until: number) =>
          Effect.gen(function*() {
            const done = yield* Deferred.make<void>()
            const fiber = yield* Effect.forkChild(Stream.runForEach(store.follow(id, after), (event) => {
              if (event.seq > until) return Effect.void
              seen.push(event.seq)
              return event.seq === until ? Effect.asVoid(Deferred.succeed(done, undefined)) : Effect.void
            }))
            return { done: Deferred.await(done), stop: Fiber.interrupt(fiber) }
          })
        const first = yield* follow(-1, 8)
        for (let at = 4; at < 9; at++) yield* writer.append(events.slice(at, at + 1), { sync: false })
        yield* first.done
        yield* first.stop
        yield* writer.append(events.slice(9, 12), { sync: true })
        const second = yield* follow(8, events.length - 1)
        yield* writer.append(events.slice(12), { sync: true })
        yield* second.done
        yield* second.stop
        assert.deepEqual(seen, events.map(({ seq }) => seq))
      })
  },
  {
    name: "whoever waits for the inbox hears of a message",
    run: (store) =>
      Effect.gen(function*() {
        yield* store.create(headerOf(id))
        const waiting = yield* Effect.forkChild(store.inboxChanged(id), { startImmediately: true })
        yield* Effect.sleep(20)
        yield* store.receive(id, { kind: "followup", text: "a", source: "suite" })
        yield* Fiber.join(waiting)
      })
  },
  {
    name: "a turn that was left open is closed when the session is opened again, with all that it had",
    run: (store) =>
      Effect.gen(function*() {
        const first = yield* begun(store)
        const before = numbered([...turn(1), start(2), step, user("p"), { type: "tool/call", data: { call_id: "c", name: "bash" } }])
        yield* first.writer.append(before, { sync: true })
        yield* first.close
        const second = yield* opened(store)
        const closed = second.writer.recovery.closed
        assert.deepEqual(closed.map(({ type }) => type), ["tool/result", "step/end", "turn/end"])
        const events = yield* all(store.read(id, -1))
        assert.deepEqual(events, [...before, ...closed])
        assert.deepEqual(events.at(-1), { seq: events.length - 1, time: before.at(-1)?.time, type: "turn/end", data: { turn: 2, verdict: { type: "interrupted" } } })
        yield* second.close
        const third = yield* opened(store)
        assert.deepEqual([third.writer.recovery.closed, (yield* all(store.read(id, -1))).length], [[], events.length])
      })
  },
  {
    name: "a prompt that was claimed and never begun waits again, as a receipt that says so",
    run: (store) =>
      Effect.gen(function*() {
        const first = yield* begun(store)
        const { receipt } = yield* store.receive(id, { kind: "followup", text: "hello", source: "user" })
        yield* first.writer.append(numbered([start(1), claimed(1, receipt.id)]), { sync: true })
        yield* first.close
        const second = yield* opened(store)
        const { nextTurn } = yield* store.pending(id)
        assert.deepEqual(second.writer.recovery.requeued, nextTurn)
        assert.deepEqual(nextTurn.map(({ retry_of, source, text }) => [text, source, retry_of]), [["hello", "user", receipt.id]])
        assert.deepEqual((yield* all(store.read(id, -1))).at(-1)?.data, { turn: 1, verdict: { type: "interrupted", not_started: true } })
      })
  },
  {
    name: "a fork begins with its seed, and a seed that breaks a rule is refused",
    run: (store) =>
      Effect.gen(function*() {
        const seed = numbered(turn(1))
        yield* store.create({ ...headerOf(other), parent: { id, events: seed.length } }, seed)
        assert.deepEqual(yield* all(store.read(other, -1)), seed)
        assert.equal(yield* codeOf(store.create(headerOf(id), numbered([user("outside")]))), "SESSION_DAMAGED")
        assert.equal(yield* codeOf(store.header(id)), "SESSION_UNKNOWN")
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
  }
]

/** Declares the suite's tests: `it` runs an effect to its end. The layer is built anew for each. */
export const storeSuite = <E>(name: string, { describe, it }: Runner, layer: Layer.Layer<SessionStore.SessionStore, E>): void =>
  describe(name, () => {
    for (const { name: fact, run } of facts) {
      it(fact, () => Effect.flatMap(SessionStore.SessionStore, run).pipe(Effect.scoped, Effect.provide(layer)), timeoutMs)
    }
  })
