import { assert, describe, it } from "@effect/vitest"
import { Failure, type InboxEntry, Scalars, type SessionEvent, type SessionHeader } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { LogState, SessionDriver, SessionLog, SessionStore, SessionStoreMemory, Surface } from "../src/index.ts"
import * as Log from "./support/LogEvents.ts"
import * as Random from "./support/Random.ts"

const { answer: assistant, call, chunk, claimed, stepEnd, stepStart: step, turnEnd: end, turnStart: start, user } = Log
const context = (text: string) => Log.message("context/message", text)

const id = Scalars.SessionId.make("s-1")
const header: SessionHeader.SessionHeader = { type: "session", format: 1, id, created: 0, harness: "fake", cwd: "/project" }

interface Scene {
  readonly store: SessionStore.Service
  /** Every commit that the store was asked for: the types of its events, and whether it is to be on disk. */
  readonly commits: Array<string>
  /** Fails the commits for which it answers true. */
  fails: (events: ReadonlyArray<SessionEvent.SessionEvent>) => boolean
  /** How many milliseconds a commit takes. */
  takes: number
}

/** A store whose commits are seen, and can fail. */
const scene = Effect.gen(function*() {
  const memory = yield* SessionStoreMemory.make
  yield* memory.create(header)
  const made: Scene = {
    commits: [],
    fails: () => false,
    takes: 0,
    store: {
      ...memory,
      open: (session, holder) =>
        Effect.map(memory.open(session, holder), (writer) => ({
          ...writer,
          append: (events, options) =>
            Effect.suspend(() => {
              if (made.fails(events)) return Effect.fail(new SessionStore.SessionStoreError({ failure: Failure.make("STORE_FULL", "full") }))
              made.commits.push(`${events.map(({ type }) => type).join(" ")}${options.sync ? " (on disk)" : ""}`)
              return Effect.andThen(made.takes === 0 ? Effect.void : Effect.sleep(made.takes), writer.append(events, options))
            })
        }))
    }
  }
  return made
})

const test = (name: string, body: (scene: Scene, log: SessionLog.SessionLog) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
  it.effect(name, () =>
    Effect.scoped(Effect.gen(function*() {
      const made = yield* scene
      yield* body(made, yield* SessionLog.open(made.store, id, "the test"))
    })).pipe(Effect.provideService(References.MinimumLogLevel, "None")))

/** A test with a store of its own. */
const alone = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>) => it.effect(name, () => Effect.scoped(body))

const stored = ({ store }: Scene) => Effect.map(Stream.runCollect(store.read(id, -1)), (events) => [...events])
const code = (effect: Effect.Effect<unknown, SessionStore.SessionStoreError>) => Effect.map(Effect.flip(effect), ({ failure }) => failure.code)

describe("a session's log", () => {
  test("commits each event as it stands, on disk where somebody acts on it, and answers it", (scene, log) =>
    Effect.gen(function*() {
      yield* TestClock.adjust(5)
      const first = yield* log.append(start(1))
      for (const body of [claimed(1, "nothing")]) assert.strictEqual(yield* code(log.append(body)), "LOG_RULE")
      for (const body of [step(1), user("p"), assistant("a"), stepEnd(1), end(1)]) yield* log.append(body)
      assert.deepStrictEqual(first, { seq: 0, time: 5, ...start(1) })
      assert.deepStrictEqual(scene.commits.filter((commit) => !commit.startsWith("inbox")), [
        "turn/start (on disk)",
        "step/start",
        "user/message (on disk)",
        "assistant/message",
        "step/end",
        "turn/end (on disk)"
      ])
      assert.deepStrictEqual((yield* stored(scene)).map(({ seq, type }) => `${seq} ${type}`), [
        "0 turn/start",
        "1 step/start",
        "2 user/message",
        "3 assistant/message",
        "4 step/end",
        "5 turn/end"
      ])
    }))

  test("refuses what may not stand there, or is not as JSON holds it, and stays as it was", (scene, log) =>
    Effect.gen(function*() {
      const refused = (body: SessionEvent.Body) => Effect.map(Effect.flip(log.append(body)), ({ failure }) => `${failure.code}: ${failure.message}`)
      assert.strictEqual(yield* refused(user("p")), "LOG_RULE: user/message may not stand at 0: \"user/message\" stands outside a turn")
      yield* log.append(start(1))
      assert.strictEqual(yield* refused(start(2)), "LOG_RULE: turn/start may not stand at 1: turn 2 starts while turn 1 is open")
      assert.strictEqual(
        yield* refused({ type: "x/a/b", data: { at: Number.NaN } }),
        "LOG_RULE: x/a/b.data.at is no finite number; a log holds what JSON gives back as it was"
      )
      yield* log.append({ type: "x/a/b", data: { at: 1 } })
      assert.deepStrictEqual((yield* stored(scene)).map(({ seq }) => seq), [0, 1])
    }))

  test("keeps what was appended, whatever becomes of the caller's value", (scene, log) =>
    Effect.gen(function*() {
      yield* log.append(start(1))
      const data = { list: [1] }
      yield* log.append({ type: "x/a/b", data })
      data.list.push(2)
      assert.deepStrictEqual((yield* stored(scene))[1], { seq: 1, time: 0, type: "x/a/b", data: { list: [1] } })
    }))

  test("lets pieces of an answer that follow a commit closely wait for others, or for what comes next", (scene, log) =>
    Effect.gen(function*() {
      yield* log.append(start(1))
      yield* log.append(step(1))
      scene.commits.length = 0
      yield* log.append(chunk("a"))
      yield* TestClock.adjust(3)
      yield* log.append(chunk("b"))
      assert.deepStrictEqual(scene.commits, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(scene.commits, ["assistant/chunk assistant/chunk"])
      yield* log.append(chunk("c"))
      yield* log.append(assistant("abc"))
      yield* TestClock.adjust(100)
      yield* log.append(chunk("d"))
      assert.deepStrictEqual(scene.commits.slice(1), ["assistant/chunk assistant/message", "assistant/chunk"])
      yield* log.append(chunk("e"))
      yield* log.flush
      assert.deepStrictEqual(scene.commits.slice(3), ["assistant/chunk"])
    }))

  for (const [takes, waits] of [[0, 4], [1, 8], [2, 16], [50, 20]] as const) {
    test(`lets them wait ${waits} ms where a commit takes ${takes} ms`, (scene, log) =>
      Effect.gen(function*() {
        scene.takes = takes
        const starting = yield* Effect.forkChild(log.append(start(1)), { startImmediately: true })
        yield* TestClock.adjust(takes)
        yield* Fiber.join(starting)
        scene.takes = 0
        scene.commits.length = 0
        yield* Effect.forkChild(Effect.forEach([chunk("a"), chunk("b")], log.append), { startImmediately: true })
        // Where the pause is over already the first piece does not wait, and the second one waits for the next.
        const left = Math.max(0, waits - takes)
        if (left > 0) yield* TestClock.adjust(left - 1)
        assert.deepStrictEqual(scene.commits, left > 0 ? [] : ["assistant/chunk"])
        yield* TestClock.adjust(waits)
        assert.strictEqual(scene.commits.join(" "), "assistant/chunk assistant/chunk")
      }))
  }

  alone("commits what waits when it is closed", Effect.gen(function*() {
      const own = yield* SessionStoreMemory.make
      yield* own.create(header)
      const scope = yield* Scope.make()
      const log = yield* Scope.provide(SessionLog.open(own, id, "the test"), scope)
      yield* log.append(start(1))
      yield* log.append(chunk("last"))
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual([...yield* Stream.runCollect(own.read(id, -1))].length, 2)
      // Afterwards nothing is taken, and not left waiting either.
      for (const body of [chunk("too late"), end(1)]) assert.strictEqual(yield* code(log.append(body)), "SESSION_BUSY")
    }))

  test("tells of an event once it is committed, in order, to all observers, whatever one of them does", (scene, log) =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      yield* log.observe((event) => Effect.fail(event.type))
      yield* log.observe(() => Effect.die(new Error("broken")))
      yield* log.observe((event) => Effect.map(stored(scene), (events) => void seen.push(`${event.seq} of ${events.length}`)))
      yield* log.append(start(1))
      yield* log.append(chunk("a"))
      assert.deepStrictEqual(seen, ["0 of 1"])
      yield* log.append(end(1))
      assert.deepStrictEqual(seen, ["0 of 1", "1 of 3", "2 of 3"])
    }))

  test("refuses what an observer appends to it", (_, log) =>
    Effect.gen(function*() {
      const codes: Array<string> = []
      yield* log.observe(() => Effect.map(code(log.append({ type: "x/a/b", data: 1 })), (refused) => void codes.push(refused)))
      yield* log.append(start(1))
      assert.deepStrictEqual(codes, ["LOG_RULE"])
      yield* log.append({ type: "x/a/b", data: 1 })
    }))

  test("is as it was when a commit fails, and goes on when the next one does not", (scene, log) =>
    Effect.gen(function*() {
      const seen: Array<number> = []
      yield* log.observe((event) => Effect.sync(() => void seen.push(event.seq)))
      yield* log.append(start(1))
      yield* log.append(step(1))
      scene.fails = () => true
      yield* log.append(chunk("lost"))
      assert.deepStrictEqual([yield* code(log.append(user("p"))), yield* code(log.append(end(1)))], ["STORE_FULL", "LOG_RULE"])
      scene.fails = () => false
      yield* log.append(user("p"))
      for (const body of [stepEnd(1), end(1)]) yield* log.append(body)
      assert.deepStrictEqual((yield* stored(scene)).map(({ type }) => type), ["turn/start", "step/start", "user/message", "step/end", "turn/end"])
      assert.deepStrictEqual(seen, [0, 1, 2, 3, 4])
    }))

  test("keeps pieces that could not be committed for what comes next", (scene, log) =>
    Effect.gen(function*() {
      yield* log.append(start(1))
      scene.fails = () => true
      yield* log.append(chunk("a"))
      yield* TestClock.adjust(20)
      // Whoever brings the next one hears of it.
      assert.strictEqual(yield* code(log.append(chunk("b"))), "STORE_FULL")
      scene.fails = () => false
      yield* log.append(chunk("c"))
      yield* log.append(assistant("c"))
      scene.fails = () => true
      yield* log.append(chunk("d"))
      yield* TestClock.adjust(20)
      scene.fails = () => false
      yield* log.append(assistant("d"))
      assert.deepStrictEqual((yield* stored(scene)).map(({ data, seq, type }) => [seq, type, Reflect.get(data as object, "text")]), [
        [0, "turn/start", undefined],
        [1, "assistant/chunk", "c"],
        [2, "assistant/message", "c"],
        [3, "assistant/chunk", "d"],
        [4, "assistant/message", "d"]
      ])
    }))

  test("takes several events in one commit, with the pieces that wait before them, or none of them", (scene, log) =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      yield* log.observe((event) => Effect.sync(() => void seen.push(event.type)))
      assert.deepStrictEqual(yield* log.appendAll([]), [])
      yield* log.appendAll([start(1), step(1), user("p")])
      yield* log.append(chunk("a"))
      assert.strictEqual(yield* code(log.appendAll([assistant("a"), stepEnd(1), end(2)])), "LOG_RULE")
      assert.deepStrictEqual(scene.commits, ["turn/start step/start user/message (on disk)"])
      const events = yield* log.appendAll([assistant("a"), stepEnd(1), end(1)])
      assert.deepStrictEqual(events.map(({ seq, type }) => `${seq} ${type}`), ["4 assistant/message", "5 step/end", "6 turn/end"])
      assert.deepStrictEqual(scene.commits.slice(1), ["assistant/chunk assistant/message step/end turn/end (on disk)"])
      assert.deepStrictEqual(seen, ["turn/start", "step/start", "user/message", "assistant/chunk", "assistant/message", "step/end", "turn/end"])
    }))

  test("commits a full batch at once", (scene, log) =>
    Effect.gen(function*() {
      yield* log.append(start(1))
      for (let n = 0; n < SessionLog.maxBatch + 1; n++) yield* log.append(chunk(`${n}`))
      assert.deepStrictEqual(scene.commits.map((commit) => commit.split(" ").length), [3, SessionLog.maxBatch])
      yield* TestClock.adjust(20)
      assert.strictEqual((yield* stored(scene)).length, SessionLog.maxBatch + 2)
    }))

  test("refuses what no reader would take", (scene, log) =>
    Effect.gen(function*() {
      yield* log.append(start(1))
      const refused = (body: object) => Effect.map(Effect.flip(log.append(body as SessionEvent.Body)), ({ failure }) => `${failure.code}: ${failure.message}`)
      assert.match(yield* refused({ type: "later/thing", data: {} }), /^LOG_RULE: later\/thing is no event of a log: /u)
      assert.match(yield* refused({ type: "x/nameless", data: {} }), /^LOG_RULE: x\/nameless is no event of a log: /u)
      assert.match(yield* refused({ ...user("p"), surface_op: undefined }), /^LOG_RULE: user\/message\.surface_op is undefined/u)
      assert.match(yield* refused({ ...user("p"), surface_op: "prepend" }), /^LOG_RULE: user\/message is no event of a log: surface_op/u)
      assert.match(yield* refused({ ...chunk("p"), surface_op: "append" }), /^LOG_RULE: assistant\/chunk is no event of a log: surface_op/u)
      assert.match(yield* refused({ ...chunk("p"), data: { kind: "text", text: 7 } }), /^LOG_RULE: assistant\/chunk is no event of a log: data\.text/u)
      for (const own of ["seq", "time", "sum"]) {
        assert.strictEqual(yield* refused({ ...chunk("p"), [own]: 1 }), `LOG_RULE: assistant/chunk has a ${own} of its own; the log gives it`)
      }
      assert.strictEqual(
        yield* refused({ type: "turn/end", data: { turn: 1, verdict: { type: "interrupted" } } }),
        "LOG_RULE: turn/end may say interrupted only where a crash is recovered from"
      )
      assert.strictEqual((yield* stored(scene)).length, 1)
    }))

  test("answers what nobody can change any more", (_, log) =>
    Effect.gen(function*() {
      const event = yield* log.append(start(1))
      assert.throws(() => Object.assign(event, { seq: 7 }), TypeError)
      assert.throws(() => Object.assign(event.data as object, { turn: 7 }), TypeError)
    }))

  test("takes what an observer began, once it has been told", (scene, log) =>
    Effect.gen(function*() {
      const observed = yield* Deferred.make<void>()
      const done = yield* Deferred.make<void>()
      const fibers = yield* Effect.scope
      yield* log.observe((event) =>
        event.type !== "turn/start" ? Effect.void : Effect.asVoid(Effect.forkIn(
          Deferred.await(observed).pipe(Effect.andThen(log.append(chunk("later"))), Effect.andThen(Deferred.succeed(done, undefined))),
          fibers
        )))
      yield* log.append(start(1))
      yield* Deferred.succeed(observed, undefined)
      yield* Deferred.await(done)
      yield* log.append(end(1))
      assert.strictEqual((yield* stored(scene)).length, 3)
    }))

  test("tells an observer nothing once its scope has closed, and one that observes twice twice", (_, log) =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const observer = (event: SessionEvent.SessionEvent) => Effect.sync(() => void seen.push(event.type))
      yield* Effect.scoped(Effect.gen(function*() {
        yield* log.observe(observer)
        yield* Effect.scoped(Effect.andThen(log.observe(observer), log.append(start(1))))
        yield* log.append(step(1))
      }))
      yield* log.append(stepEnd(1))
      assert.deepStrictEqual(seen, ["turn/start", "turn/start", "step/start"])
    }))

  alone("goes on where an earlier writer stopped, with the messages that there are", Effect.gen(function*() {
      const own = yield* SessionStoreMemory.make
      yield* own.create(header)
      const first = yield* Scope.make()
      const log = yield* Scope.provide(SessionLog.open(own, id, "first"), first)
      for (const body of [start(1), step(1), user("p"), call("c")]) yield* log.append(body)
      yield* Scope.close(first, Exit.void)
      const again = yield* SessionLog.open(own, id, "second")
      assert.deepStrictEqual(again.writer.recovery.closed.map(({ type }) => type), ["tool/result", "step/end", "turn/end"])
      assert.deepStrictEqual([again.lastTurn(), again.openTurn(), again.messages().map(({ role }) => role)], [1, undefined, ["user", "tool"]])
      yield* again.append(start(2))
      yield* again.append(context("c"))
      assert.strictEqual(again.messages().length, 3)
    }))
})

describe("a session driver on a log", () => {
  alone("runs what was received, and after a crash puts back what was claimed and not begun", Effect.gen(function*() {
      const own = yield* SessionStoreMemory.make
      yield* own.create(header)
      const drive = (execute: SessionDriver.Execute) =>
        Effect.gen(function*() {
          const log = yield* SessionLog.open(own, id, "the driver")
          return yield* SessionDriver.make({ store: own, writer: log.writer, log, execute, wakeAtStart: true })
        })
      // A writer that died between the claim and the prompt.
      const dead = yield* Scope.make()
      const log = yield* Scope.provide(SessionLog.open(own, id, "the dead"), dead)
      const { receipt } = yield* own.receive(id, { kind: "followup", text: "hello", source: "user" })
      yield* log.append(start(1))
      yield* log.append(claimed(1, receipt.id))
      yield* Scope.close(dead, Exit.void)

      const prompts: Array<ReadonlyArray<InboxEntry.Receipt>> = []
      const driver = yield* drive(({ messages }) => Effect.sync(() => {
        prompts.push(messages)
        return { type: "completed" } as const
      }))
      yield* driver.whenIdle
      assert.deepStrictEqual(prompts.map((messages) => messages.map(({ retry_of, text }) => [text, retry_of])), [[["hello", receipt.id]]])
      const events = [...yield* Stream.runCollect(own.read(id, -1))]
      assert.deepStrictEqual(
        events.flatMap((event) => event.type === "turn/end" ? [event.data.verdict] : []),
        [{ type: "interrupted", not_started: true }, { type: "completed" }]
      )
    }))
})

/** Each move of a writer that a model of the log, and a store that fails now and then, agree about. */
describe("a log over a store that fails at any commit", () => {
  it.effect.each(Array.from({ length: 150 }, (_, index) => index + 1))("holds what it acknowledged and nothing else (seed %i)", (seed) =>
    Effect.scoped(Effect.gen(function*() {
      const random = Random.make(seed)
      const made = yield* scene
      const rate = random.pick([0, 0.05, 0.3, 0.7])
      made.fails = () => random.chance(rate)
      const log = yield* SessionLog.open(made.store, id, "the test")
      const published: Array<SessionEvent.SessionEvent> = []
      yield* log.observe((event) => Effect.andThen(
        Effect.map(stored(made), (events) => {
          // What anybody is told of is in the store, as it is.
          assert.deepStrictEqual(events[event.seq], event)
          published.push(event)
        }),
        random.chance(0.1) ? Effect.fail("an observer fails") : Effect.void
      ))
      /** What was acknowledged and waits for nothing. */
      const kept: Array<SessionEvent.SessionEvent> = []
      let pieces: Array<SessionEvent.SessionEvent> = []
      for (const { seq: _, time: __, ...body } of Log.random(seed, 80)) {
        if (body.type === "inbox/claimed") continue
        if (random.chance(0.2)) yield* TestClock.adjust(random.below(40))
        const before = { last: log.lastTurn(), open: log.openTurn(), dangling: log.dangling(), messages: log.messages() }
        const appended = yield* Effect.result(log.append(body as SessionEvent.Body))
        if (Result.isFailure(appended)) {
          assert.include(["STORE_FULL", "LOG_RULE"], appended.failure.failure.code)
          assert.deepStrictEqual({ last: log.lastTurn(), open: log.openTurn(), dangling: log.dangling(), messages: log.messages() }, before)
          // Pieces that were told of are there; those that waited have gone with the event.
          if (appended.failure.failure.code === "STORE_FULL") {
            kept.push(...pieces.filter((piece) => published.includes(piece)))
            pieces = []
          }
          continue
        }
        if (body.type === "assistant/chunk") pieces.push(appended.success)
        else {
          kept.push(...pieces, appended.success)
          pieces = []
        }
      }
      made.fails = () => false
      yield* log.flush
      const events = yield* stored(made)
      assert.deepStrictEqual(events, [...kept, ...pieces])
      assert.deepStrictEqual(published, events)
      assert.isTrue(Result.isSuccess(LogState.all(LogState.empty(), events)))
      assert.deepStrictEqual(log.messages(), Surface.deriveMessages(events))
    })).pipe(Effect.provideService(References.MinimumLogLevel, "None")))
})
