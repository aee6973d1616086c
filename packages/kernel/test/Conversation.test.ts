import { assert, describe, it } from "@effect/vitest"
import { type AgentRunEvent, Failure, Scalars, StreamRules, TurnEvent } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Conversation, SessionStore, SessionStoreMemory, TurnError } from "../src/index.ts"
import * as FailingStore from "./support/FailingStore.ts"
import * as FakeHarness from "./support/FakeHarness.ts"
import * as FakeSession from "./support/FakeSession.ts"
import * as Scene from "./support/Scene.ts"

const { end, message } = FakeSession

const scene = (parts: FakeHarness.Parts = {}, more: Partial<Conversation.Options> = {}) =>
  Effect.gen(function*() {
    const fake = FakeHarness.make(parts)
    const prepared = yield* Scene.prepare({ fake })
    const session = yield* fake.harness.open(prepared.options)
    const events: Array<AgentRunEvent.AgentRunEvent> = []
    let runs = 0
    const conversation = yield* Conversation.make({
      prepared,
      session,
      newRunId: () => Scalars.RunId.make(`run-${++runs}`),
      turnpikeVersion: "0.0.0",
      sink: (event) => Effect.sync(() => void events.push(event)),
      deliver: "stream",
      grace: "5 seconds",
      ...more
    })
    const logged = Effect.map(Stream.runCollect(Stream.orDie(prepared.store.read(Scene.sessionId, -1))), (all) => [...all])
    return { conversation, prepared, events, fake, logged }
  })

const test = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope | SessionStore.SessionStore>) =>
  it.effect(name, () => body.pipe(Effect.scoped, Effect.provide(SessionStoreMemory.layer)))

/** The runs of a stream, each with its prompt's answer. */
const runsOf = (events: ReadonlyArray<AgentRunEvent.AgentRunEvent>) =>
  events.flatMap((event) => event.type === "result" ? [`${event.run_id} ${event.result.session.turn} ${event.result.result.summary}`] : [])

const echo = (text: string) => Stream.make(FakeHarness.bound(), message(`echo: ${text}`), end(`echo: ${text}`))

describe("a conversation", () => {
  test("makes a run of each prompt, with one result that the log bears out", Effect.gen(function*() {
    const { conversation, events, fake, logged } = yield* scene({ turn: echo })
    const first = yield* conversation.ask("one")
    const second = yield* conversation.ask("two")
    assert.deepStrictEqual([first?.session.turn, second?.session.turn, second?.session.resumed], [1, 2, "native"])
    assert.deepStrictEqual(runsOf(events), ["run-1 1 echo: one", "run-2 2 echo: two"])
    for (const run of ["run-1", "run-2"]) {
      const text = events.filter(({ run_id }) => run_id === run).map((event) => `${JSON.stringify(event)}\n`).join("")
      assert.deepStrictEqual(StreamRules.validate(text, { result: "stream" }), [])
    }
    assert.deepStrictEqual((yield* logged).map(({ type }) => type), [
      ...["turn/start", "inbox/claimed", "step/start", "user/message", "session/bound", "assistant/message", "step/end", "turn/end"],
      ...["turn/start", "inbox/claimed", "step/start", "user/message", "session/bound", "assistant/message", "step/end", "turn/end"]
    ])
    assert.deepStrictEqual(second?.session_log.map(({ seq }) => seq), [8, 9, 10, 11, 12, 13, 14, 15])
    assert.deepStrictEqual([fake.prompts, fake.counts.opened, fake.counts.closed], [["one", "two"], 1, 0])
  }))

  test("runs what others send, and what waited, before what is asked now", Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    const gate = yield* Deferred.make<void>()
    const { conversation, events, fake } = yield* scene({
      turn: (text) => text === "one" ? Stream.unwrap(Effect.as(Deferred.await(gate), echo(text))) : echo(text)
    })
    const asking = yield* Effect.forkChild(conversation.ask("one"), { startImmediately: true })
    yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
    yield* store.receive(Scene.sessionId, { kind: "followup", text: "from elsewhere", source: "bot" })
    const later = yield* Effect.forkChild(conversation.ask("two"), { startImmediately: true })
    yield* Deferred.succeed(gate, undefined)
    assert.strictEqual((yield* Fiber.join(asking))?.result.summary, "echo: one")
    assert.strictEqual((yield* Fiber.join(later))?.result.summary, "echo: two")
    assert.deepStrictEqual(fake.prompts, ["one", "from elsewhere", "two"])
    assert.deepStrictEqual(runsOf(events), ["run-1 1 echo: one", "run-2 2 echo: from elsewhere", "run-3 3 echo: two"])
  }))

  test("goes on after a turn that failed, also with prompts that were parked by it", Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    const { conversation, events, fake } = yield* scene({
      turn: (text) => text === "break" ? Stream.fail(TurnError.io("the pipe broke")) : echo(text)
    })
    yield* store.receive(Scene.sessionId, { kind: "followup", text: "break", source: "bot" })
    const result = yield* conversation.ask("after")
    assert.strictEqual(result?.result.summary, "echo: after")
    assert.deepStrictEqual(fake.prompts, ["break", "after"])
    assert.deepStrictEqual(events.flatMap((event) => event.type === "result" ? [event.result.reason] : []), ["adapter_error", "success"])
  }))

  test("passes an interrupt to the turn that runs: the first asks it to end, the second cuts it off", Effect.gen(function*() {
    const asked = yield* Deferred.make<void>()
    const { conversation, fake } = yield* scene({
      turn: (text) =>
        text === "obeys"
          ? Stream.unwrap(Effect.as(Deferred.await(asked), Stream.make(end("", { stop_reason: "aborted" }))))
          : text === "hangs"
          ? Stream.concat(Stream.make(TurnEvent.make("tool/call", { call_id: "t", name: "sleep" })), Stream.never)
          : echo(text),
      interrupt: Effect.asVoid(Deferred.succeed(asked, undefined))
    })
    assert.isUndefined(yield* conversation.interrupt("interrupt"))
    const first = yield* Effect.forkChild(conversation.ask("obeys"), { startImmediately: true })
    yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
    assert.deepStrictEqual(yield* conversation.interrupt("interrupt"), { cause: "user", mode: "graceful" })
    assert.strictEqual((yield* Fiber.join(first))?.reason, "graceful_cancel")
    const second = yield* Effect.forkChild(conversation.ask("hangs"), { startImmediately: true })
    yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
    assert.deepStrictEqual(yield* conversation.interrupt("interrupt"), { cause: "user", mode: "graceful" })
    assert.deepStrictEqual(yield* conversation.interrupt("interrupt"), { cause: "user", mode: "hard" })
    const cut = yield* Fiber.join(second)
    assert.deepStrictEqual([cut?.reason, cut?.session_log.at(-3)?.type], ["hard_cancel", "tool/result"])
    assert.strictEqual((yield* conversation.ask("again"))?.result.summary, "echo: again")
    assert.strictEqual(fake.counts.interrupts, 2)
  }))

  test("passes an interrupt that comes before the turn of a prompt to that turn", Effect.gen(function*() {
    const received = yield* Deferred.make<void>()
    const memory = yield* SessionStoreMemory.make
    const slow: SessionStore.Service = { ...memory, receive: (id, given) => Effect.andThen(Deferred.await(received), memory.receive(id, given)) }
    yield* Effect.gen(function*() {
      const { conversation, fake } = yield* scene({ turn: echo })
      const asking = yield* Effect.forkChild(conversation.ask("one"), { startImmediately: true })
      assert.deepStrictEqual(yield* conversation.interrupt("interrupt"), { cause: "user", mode: "graceful" })
      yield* Deferred.succeed(received, undefined)
      const result = yield* Fiber.join(asking)
      assert.deepStrictEqual([result?.reason, fake.prompts], ["graceful_cancel", []])
      assert.strictEqual((yield* conversation.ask("two"))?.result.summary, "echo: two")
    }).pipe(Effect.provideService(SessionStore.SessionStore, slow))
  }))

  test("makes a run of what the harness begins by itself, and prompts wait for it", Effect.gen(function*() {
    let begin: (events: Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>) => Effect.Effect<void> = () => Effect.void
    const gate = yield* Deferred.make<void>()
    const { conversation, events, fake, logged } = yield* scene({
      turn: echo,
      onOwnTurn: (listener) =>
        Effect.sync(() => {
          begin = listener
        })
    })
    yield* conversation.ask("one")
    yield* begin(Stream.concat(Stream.make(message("the task is done")), Stream.unwrap(Effect.as(Deferred.await(gate), Stream.make(end("the task is done"))))))
    yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
    const asking = yield* Effect.forkChild(conversation.ask("two"), { startImmediately: true })
    yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
    assert.deepStrictEqual(fake.prompts, ["one"])
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(asking)
    assert.deepStrictEqual(runsOf(events), ["run-1 1 echo: one", "run-2 2 the task is done", "run-3 3 echo: two"])
    assert.deepStrictEqual(events.flatMap((event) => event.type === "turn_start" ? [event.trigger] : []), [
      { kind: "message", source: "user" },
      { kind: "background" },
      { kind: "message", source: "user" }
    ])
    const own = (yield* logged).filter(({ seq }) => seq >= 8)
    assert.deepStrictEqual(own.slice(0, 5).map(({ type }) => type), ["turn/start", "step/start", "assistant/message", "step/end", "turn/end"])
  }))

  test("answers nothing for a prompt that was taken back before its turn", Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    const gate = yield* Deferred.make<void>()
    const { conversation, fake } = yield* scene({ turn: (text) => Stream.unwrap(Effect.as(Deferred.await(gate), echo(text))) })
    const first = yield* Effect.forkChild(conversation.ask("one"), { startImmediately: true })
    const second = yield* Effect.forkChild(conversation.ask("two"), { startImmediately: true })
    yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
    const { nextTurn } = yield* store.pending(Scene.sessionId)
    assert.deepStrictEqual(nextTurn.map(({ text }) => text), ["two"])
    yield* store.requestDiscard(Scene.sessionId, nextTurn.map((receipt) => receipt.id), "somebody")
    yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
    yield* Deferred.succeed(gate, undefined)
    assert.strictEqual((yield* Fiber.join(first))?.result.summary, "echo: one")
    assert.isUndefined(yield* Fiber.join(second))
    assert.deepStrictEqual(fake.prompts, ["one"])
  }))

  for (const type of ["turn/start", "inbox/claimed", "user/message", "session/bound", "turn/end"] as const) {
    it.effect(`fails a prompt whose ${type} the store does not take, and goes on when it does`, () =>
      Effect.gen(function*() {
        const store = yield* FailingStore.failingOn(type)
        yield* Effect.gen(function*() {
          const { conversation, events, fake, logged } = yield* scene({ turn: echo })
          const asked = yield* Effect.result(conversation.ask("one"))
          const how = asked._tag === "Failure" ? asked.failure.failure.code : asked.success?.error?.code ?? asked.success?.result.summary
          // One that was not claimed waits on, and the next turn takes it.
          assert.strictEqual(how, type === "inbox/claimed" ? "echo: one" : "STORE_FULL")
          assert.strictEqual(runsOf(events).length, type === "turn/start" || type === "user/message" ? 0 : 1)
          const again = yield* conversation.ask("two")
          assert.strictEqual(again?.result.summary, "echo: two")
          // Whoever is told that a prompt failed gives it again: it is not to run twice.
          assert.deepStrictEqual(fake.prompts, type === "turn/start" || type === "user/message" ? ["two"] : ["one", "two"])
          const log = yield* logged
          const [first] = log.flatMap((event) => event.type === "turn/end" ? [event.data.verdict] : [])
          // What is told of a turn is what its log says.
          if (asked._tag === "Success" && asked.success !== undefined) assert.deepStrictEqual(first?.type, type === "inbox/claimed" ? "error" : asked.success.verdict.type)
          const types = log.map(({ type }) => type)
          assert.strictEqual(types.filter((type) => type === "turn/start").length, types.filter((type) => type === "turn/end").length)
        }).pipe(Effect.scoped, Effect.provideService(SessionStore.SessionStore, store))
      }))
  }

  for (const kind of ["inject", "followup"] as const) {
    test(`answers a prompt that comes after a hundred that wait, each of them ${kind}`, Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      const { conversation, fake, prepared } = yield* scene({ turn: echo })
      const sent = Array.from({ length: 100 }, (_, n) => ({ kind, text: `text ${n}`, source: "somebody" }))
      yield* Effect.forEach(sent, (message) => store.receive(prepared.options.sessionId, message))
      const answer = yield* conversation.ask("one")
      assert.strictEqual(answer?.result.summary, `echo: ${fake.prompts.at(-1)}`)
      assert.strictEqual(fake.prompts.at(-1)?.endsWith("one"), true)
    }))
  }

  it.effect("leaves a prompt that failed to nobody, also where another has taken the session over", () =>
    Effect.gen(function*() {
      const memory = yield* SessionStoreMemory.make
      const busy = new SessionStore.SessionStoreError({ failure: Failure.make("SESSION_BUSY", "another writer has it") })
      let isTaken = false
      const ifHeld = <A>(work: Effect.Effect<A, SessionStore.SessionStoreError>) => Effect.suspend(() => isTaken ? Effect.fail(busy) : work)
      const store: SessionStore.Service = {
        ...memory,
        open: (id, holder) =>
          Effect.map(memory.open(id, holder), (writer) => ({
            ...writer,
            append: (...given) => ifHeld(writer.append(...given)),
            discard: (...given) => ifHeld(writer.discard(...given))
          }))
      }
      yield* Effect.gen(function*() {
        const { conversation, fake, prepared } = yield* scene({ turn: echo })
        isTaken = true
        const asked = yield* Effect.flip(conversation.ask("one"))
        assert.deepStrictEqual([asked.failure.code, asked.failure.message], ["SESSION_BUSY", "another writer has it"])
        const { discardRequests, nextTurn } = yield* store.pending(prepared.options.sessionId)
        assert.deepStrictEqual([discardRequests.map(({ id }) => id), fake.prompts], [nextTurn.map(({ id }) => id), []])
      }).pipe(Effect.scoped, Effect.provideService(SessionStore.SessionStore, store))
    }))

  test("that is left cuts its turn off, which is told to its end", Effect.gen(function*() {
    const events: Array<AgentRunEvent.AgentRunEvent> = []
    const fake = FakeHarness.make({ turn: () => Stream.never })
    const prepared = yield* Scene.prepare({ fake })
    const session = yield* fake.harness.open(prepared.options)
    yield* Effect.scoped(Effect.gen(function*() {
      const conversation = yield* Conversation.make({
        prepared,
        session,
        newRunId: () => Scalars.RunId.make("run-1"),
        turnpikeVersion: "0.0.0",
        sink: (event) => Effect.sync(() => void events.push(event)),
        deliver: "stream",
        grace: "5 seconds"
      })
      yield* Effect.forkScoped(conversation.ask("hang"), { startImmediately: true })
      yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
    }))
    const last = events.at(-1)
    assert.strictEqual(last?.type === "result" ? Scene.show(last.result) : last?.type, "hard_cancel CANCELLED")
    const log = [...yield* Stream.runCollect(Stream.orDie(prepared.store.read(Scene.sessionId, -1)))]
    assert.deepStrictEqual([log.at(-1)?.type, fake.counts.running], ["turn/end", 0])
  }))
})
