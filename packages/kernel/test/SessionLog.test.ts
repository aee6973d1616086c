import { assert, describe, it } from "@effect/vitest"
import { Failure, type InboxEntry, Scalars, type SessionEvent, type SessionHeader } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { SessionDriver, SessionLog, SessionStore, SessionStoreMemory } from "../src/index.ts"
import * as Logs from "./support/Logs.ts"

const { assistant, call, chunk, claimed, context, end, start, step, stepEnd, user } = Logs

const id = Scalars.SessionId.make("s-1")
const header: SessionHeader.SessionHeader = { type: "session", format: 1, id, created: 0, harness: "fake", cwd: "/project" }

interface Scene {
  readonly store: SessionStore.Service
  /** Every commit that the store was asked for: the types of its events, and whether it is to be on disk. */
  readonly commits: Array<string>
  /** Fails the commits for which it answers true. */
  fails: (events: ReadonlyArray<SessionEvent.SessionEvent>) => boolean
}

/** A store whose commits are seen, and can fail. */
const scene = Effect.gen(function*() {
  const memory = yield* SessionStoreMemory.make
  yield* memory.create(header)
  const made: Scene = {
    commits: [],
    fails: () => false,
    store: {
      ...memory,
      open: (session, holder) =>
        Effect.map(memory.open(session, holder), (writer) => ({
          ...writer,
          append: (events, options) =>
            Effect.suspend(() => {
              if (made.fails(events)) return Effect.fail(new SessionStore.SessionStoreError({ failure: Failure.make("STORE_FULL", "full") }))
              made.commits.push(`${events.map(({ type }) => type).join(" ")}${options.sync ? " (on disk)" : ""}`)
              return writer.append(events, options)
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

  test("lets pieces of an answer wait 20 ms for others, or for what comes next", (scene, log) =>
    Effect.gen(function*() {
      yield* log.append(start(1))
      yield* log.append(step(1))
      scene.commits.length = 0
      yield* log.append(chunk("a"))
      yield* TestClock.adjust(10)
      yield* log.append(chunk("b"))
      assert.deepStrictEqual(scene.commits, [])
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(scene.commits, ["assistant/chunk assistant/chunk"])
      yield* log.append(chunk("c"))
      yield* log.append(assistant("abc"))
      yield* TestClock.adjust(100)
      yield* log.append(chunk("d"))
      yield* log.flush
      assert.deepStrictEqual(scene.commits.slice(1), ["assistant/chunk assistant/message", "assistant/chunk"])
    }))

  alone("commits what waits when it is closed", Effect.gen(function*() {
      const own = yield* SessionStoreMemory.make
      yield* own.create(header)
      const scope = yield* Scope.make()
      const log = yield* Scope.provide(SessionLog.open(own, id, "the test"), scope)
      yield* log.append(start(1))
      yield* log.append(chunk("last"))
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual([...yield* Stream.runCollect(own.read(id, -1))].length, 2)
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

  test("says with the next append that pieces were lost", (scene, log) =>
    Effect.gen(function*() {
      yield* log.append(start(1))
      scene.fails = () => true
      yield* log.append(chunk("lost"))
      yield* TestClock.adjust(20)
      scene.fails = () => false
      assert.strictEqual(yield* code(log.append(assistant("a"))), "STORE_FULL")
      yield* log.append(assistant("a"))
      assert.deepStrictEqual((yield* stored(scene)).map(({ seq, type }) => `${seq} ${type}`), ["0 turn/start", "1 assistant/message"])
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
