/** What holds of a log in every store: appends, one writer, readers, and what a crash left. */
import type { SessionEvent } from "@turnpike/contract"
import { LogState } from "@turnpike/kernel"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import {
  all,
  begun,
  type Body,
  called,
  chunk,
  claimed,
  codeOf,
  end,
  type Fact,
  failureOf,
  headerOf,
  id,
  numbered,
  opened,
  received,
  start,
  step,
  turn,
  user
} from "./scene.ts"

/** What closes these events where they end with a turn that is open. */
const closersOf = (events: ReadonlyArray<SessionEvent.SessionEvent>) =>
  LogState.closers(Result.getOrThrow(LogState.all(LogState.empty(), events)))

export const facts: ReadonlyArray<Fact> = [
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
    name: "a reader that follows sees what is committed later, once each and without a gap, wherever it begins again",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const events = numbered([...turn(1), ...turn(2), ...turn(3)])
        yield* writer.append(events.slice(0, 4), { sync: true })
        const seen: Array<number> = []
        const follow = (after: number, until: number) =>
          Effect.gen(function*() {
            const begun = yield* Deferred.make<void>()
            const done = yield* Deferred.make<void>()
            const fiber = yield* Effect.forkChild(Stream.runForEach(store.follow(id, after), (event) => {
              if (event.seq > until) return Effect.void
              seen.push(event.seq)
              return Effect.andThen(Deferred.succeed(begun, undefined), event.seq === until ? Deferred.succeed(done, undefined) : Effect.void)
            }))
            const ended = Effect.andThen(Fiber.await(fiber), Effect.die(new Error("the reader ended")))
            return {
              begun: Effect.raceFirst(Deferred.await(begun), ended),
              done: Effect.raceFirst(Deferred.await(done), ended),
              stop: Fiber.interrupt(fiber)
            }
          })
        const first = yield* follow(-1, 8)
        yield* first.begun
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
    name: "an append with a gap, or with an event twice, is refused as a whole",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const [first, second, third] = numbered([start(1), step, user("p")])
        assert.ok(first !== undefined && second !== undefined && third !== undefined)
        for (const events of [[first, third], [first, first], [first, third, second], [second]]) {
          assert.equal(yield* codeOf(writer.append(events, { sync: true })), "LOG_RULE")
        }
        assert.deepEqual(yield* all(store.read(id, -1)), [])
        yield* writer.append([first, second, third], { sync: true })
      })
  },
  {
    name: "a batch of thousands and an event of megabytes are kept whole",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const large: Body = { type: "x/suite/large", data: { text: "é".repeat(1_500_000), list: [null, true, 1.5, "", {}, []] } }
        const events = numbered([start(1), ...Array.from({ length: 3_000 }, (_, index) => chunk(`${index} `)), large, end(1)])
        yield* writer.append(events, { sync: false })
        const kept = yield* all(store.read(id, -1))
        // First, since what tells two long lists apart takes its time.
        assert.equal(kept.length, events.length)
        assert.deepEqual(kept, events)
        assert.deepEqual(yield* all(store.read(id, 2_990)), events.slice(2_991))
      })
  },
  {
    name: "an event of a later version that may be passed over is kept as it is",
    run: (store) =>
      Effect.gen(function*() {
        const { close, writer } = yield* begun(store)
        const later = { type: "later/thing", ignorable: true, data: { any: ["thing"] } } as unknown as Body
        const plugin: Body = { type: "x/suite/thing", ignorable: true, data: null }
        const events = numbered([start(1), later, plugin, end(1)])
        yield* writer.append(events, { sync: true })
        yield* close
        yield* opened(store)
        assert.deepEqual(yield* all(store.read(id, -1)), events)
      })
  },
  {
    name: "of many who open a session at once one gets it",
    run: (store) =>
      Effect.gen(function*() {
        yield* store.create(headerOf(id))
        const tries = yield* Effect.forEach([1, 2, 3, 4, 5], (n) => Effect.result(opened(store, id, `holder ${n}`)), { concurrency: "unbounded" })
        assert.deepEqual(tries.map((one) => Result.isSuccess(one) ? "has it" : one.failure.failure.code).sort(), ["SESSION_BUSY", "SESSION_BUSY", "SESSION_BUSY", "SESSION_BUSY", "has it"])
      })
  },
  {
    name: "a writer whose scope has closed writes nothing any more, though nobody has followed",
    run: (store) =>
      Effect.gen(function*() {
        const { close, writer } = yield* begun(store)
        yield* close
        assert.equal(yield* codeOf(writer.append(numbered([start(1)]), { sync: true })), "SESSION_BUSY")
        assert.deepEqual(yield* all(store.read(id, -1)), [])
      })
  },
  {
    name: "a writer that was taken for dead writes nothing once it lives again",
    needs: "expire",
    run: (store, hooks) =>
      Effect.gen(function*() {
        const frozen = yield* begun(store)
        const receipt = yield* received(store, "followup", "a")
        yield* frozen.writer.append(numbered([start(1)]), { sync: true })
        yield* hooks.expire(id)
        const next = yield* opened(store, id, "another")
        assert.ok(next.writer.generation > frozen.writer.generation)
        const before = yield* all(store.read(id, -1))
        assert.deepEqual(before.map(({ type }) => type), ["turn/start", "turn/end"])
        assert.equal(yield* codeOf(frozen.writer.append(numbered([start(2)], 2), { sync: true })), "SESSION_BUSY")
        assert.equal(yield* codeOf(frozen.writer.append(numbered([step], 1), { sync: false })), "SESSION_BUSY")
        assert.equal(yield* codeOf(frozen.writer.discard([receipt.id], "removed", "x")), "SESSION_BUSY")
        // Its end takes nothing from the one that has the session now.
        yield* frozen.close
        yield* next.writer.append(numbered([start(2), claimed(2, receipt.id), end(2)], 2), { sync: true })
        assert.equal((yield* all(store.read(id, -1))).length, 5)
      })
  },
  {
    name: "a writer that was taken for dead writes nothing where the next one has written nothing yet either",
    needs: "expire",
    run: (store, hooks) =>
      Effect.gen(function*() {
        const frozen = yield* begun(store)
        yield* frozen.writer.append(numbered(turn(1)), { sync: true })
        yield* hooks.expire(id)
        const next = yield* opened(store, id, "another")
        // It goes on from the log's end: nothing but who has the session now is in its way.
        for (const sync of [true, false]) {
          assert.equal(yield* codeOf(frozen.writer.append(numbered(turn(2), 7), { sync })), "SESSION_BUSY")
        }
        assert.deepEqual(yield* all(store.read(id, -1)), numbered(turn(1)))
        yield* next.writer.append(numbered(turn(2), 7), { sync: true })
        assert.deepEqual(yield* all(store.read(id, -1)), numbered([...turn(1), ...turn(2)]))
      })
  },
  {
    name: "readers that come and go see each event once, whatever is committed meanwhile",
    run: (store) =>
      Effect.gen(function*() {
        const { writer } = yield* begun(store)
        const events = numbered([1, 2, 3, 4, 5, 6, 7, 8].flatMap(turn))
        // Lengths of batches, and how many events each reader takes before it goes.
        const cuts = [[1, 5, 2, 9, 3], [3, 1, 1, 20], [7], [2, 2, 11, 1]]
        const readers = yield* Effect.forEach(cuts, (lengths) =>
          Effect.forkChild(Effect.gen(function*() {
            const seen: Array<SessionEvent.SessionEvent> = []
            for (let round = 0; seen.length < events.length; round++) {
              const length = Math.min(lengths[round % lengths.length] ?? 1, events.length - seen.length)
              seen.push(...yield* all(Stream.take(store.follow(id, seen.at(-1)?.seq ?? -1), length)))
            }
            return seen
          })))
        for (let at = 0, length = 1; at < events.length; at += length, length = length % 5 + 1) {
          yield* writer.append(events.slice(at, at + length), { sync: length === 1 })
          yield* Effect.yieldNow
        }
        for (const reader of readers) assert.deepEqual(yield* Fiber.join(reader), events)
      })
  },
  {
    name: "a crash is recovered from with the records that every store writes",
    run: (store) =>
      Effect.gen(function*() {
        const asked: Body = { type: "permission/request", data: { request_id: "q", call_id: "c", tool_name: "shell" } }
        const before = numbered([...turn(1), start(2), step, user("p"), called, asked, chunk("half")])
        const first = yield* begun(store)
        yield* first.writer.append(before, { sync: true })
        yield* first.close
        const second = yield* opened(store)
        assert.deepEqual(second.writer.recovery, { closed: closersOf(before), cutBytes: 0, requeued: [] })
        assert.deepEqual(yield* all(store.read(id, -1)), [...before, ...closersOf(before)])
        yield* second.writer.append(numbered([start(3), end(3)], before.length + closersOf(before).length), { sync: true })
      })
  },
  {
    name: "what a crash kept from being begun comes back once, in its place, however often the session is opened",
    run: (store) =>
      Effect.gen(function*() {
        const first = yield* begun(store)
        const a = yield* received(store, "followup", "a")
        const steer = yield* received(store, "steer", "s")
        yield* received(store, "followup", "b")
        yield* first.writer.append(numbered([start(1), claimed(1, steer.id, a.id), step]), { sync: true })
        yield* first.close
        for (let round = 0; round < 3; round++) {
          const { close, writer } = yield* opened(store)
          assert.equal(writer.recovery.requeued.length, round === 0 ? 2 : 0)
          const { nextStep, nextTurn } = yield* store.pending(id)
          assert.deepEqual(nextTurn.map(({ retry_of, text }) => [text, retry_of]), [["a", a.id], ["b", undefined]])
          assert.deepEqual(nextStep.map(({ retry_of, text }) => [text, retry_of]), [["s", steer.id]])
          yield* close
        }
        // And again, when the repetition itself is claimed and not begun.
        const [again] = (yield* store.pending(id)).nextTurn
        assert.ok(again !== undefined)
        const second = yield* opened(store)
        const { length } = yield* all(store.read(id, -1))
        yield* second.writer.append(numbered([start(2), claimed(2, again.id)], length), { sync: true })
        yield* second.close
        yield* opened(store)
        assert.deepEqual((yield* store.pending(id)).nextTurn.map(({ retry_of, text }) => [text, retry_of]), [["a", again.id], ["b", undefined]])
      })
  },
  {
    name: "steering that was claimed in the middle of a turn and is no message of it waits again",
    run: (store) =>
      Effect.gen(function*() {
        const first = yield* begun(store)
        const prompt = yield* received(store, "followup", "p")
        const steer = yield* received(store, "steer", "s")
        yield* first.writer.append(numbered([start(1), claimed(1, prompt.id), step, user("p", prompt.id), claimed(1, steer.id)]), { sync: true })
        yield* first.close
        yield* opened(store)
        const { nextStep, nextTurn } = yield* store.pending(id)
        assert.deepEqual([nextTurn, nextStep.map(({ retry_of }) => retry_of)], [[], [steer.id]])
        assert.deepEqual((yield* all(store.read(id, -1))).at(-1)?.data, { turn: 1, verdict: { type: "interrupted" } })
      })
  },
  {
    name: "a committed event that cannot be read is refused with its place, and nothing is changed",
    needs: "damage",
    run: (store, hooks) =>
      Effect.gen(function*() {
        const { close, writer } = yield* begun(store)
        yield* writer.append(numbered([...turn(1), ...turn(2)]), { sync: true })
        yield* close
        yield* hooks.damage(id, 3)
        for (let round = 0; round < 2; round++) {
          assert.equal(yield* codeOf(store.open(id, "x")), "SESSION_DAMAGED")
          assert.equal(yield* codeOf(all(store.read(id, -1))), "SESSION_DAMAGED")
        }
        assert.deepEqual(yield* store.header(id), headerOf(id))
      })
  },
  {
    name: "what stands before an event that cannot be read can be read, from wherever the reader begins",
    needs: "damage",
    run: (store, hooks) =>
      Effect.gen(function*() {
        const { close, writer } = yield* begun(store)
        const events = numbered([...turn(1), ...turn(2), ...turn(3)])
        const appended = [events.slice(0, 6), events.slice(6, 12), events.slice(12)]
        for (const some of appended) yield* writer.append(some, { sync: true })
        yield* close
        yield* hooks.damage(id, 8)
        for (const after of [-1, 2]) {
          const found: Array<SessionEvent.SessionEvent> = []
          const read = Stream.runForEach(store.read(id, after), (event) => Effect.sync(() => found.push(event)))
          assert.equal(yield* codeOf(read), "SESSION_DAMAGED")
          assert.deepEqual(found.filter(({ seq }) => seq < 6), events.slice(after + 1, 6))
        }
      })
  },
  {
    name: "an event of a later version that may not be passed over is refused, and nothing is changed",
    needs: "plant",
    run: (store, hooks) =>
      Effect.gen(function*() {
        const { close, writer } = yield* begun(store)
        yield* writer.append(numbered([...turn(1), start(2)]), { sync: true })
        yield* close
        yield* hooks.plant(id, { seq: 8, time: 3_000, type: "later/thing", data: {} })
        for (let round = 0; round < 2; round++) {
          const { code, message } = yield* failureOf(store.open(id, "x"))
          assert.equal(code, "FORMAT_UNSUPPORTED")
          assert.match(message, /8|later/u)
        }
      })
  }
]
