import { assert, describe, it } from "@effect/vitest"
import { Failure, type TurnEvent } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import * as Stream from "effect/Stream"
import { AgentSession, Prompt, SessionDecorator, TurnError } from "../src/index.ts"
import * as FakeSession from "./support/FakeSession.ts"
import * as Random from "./support/Random.ts"
import * as SeededScheduler from "./support/SeededScheduler.ts"

const run = (session: AgentSession.AgentSession, text: string) => AgentSession.runToOutput(session, Prompt.fromText(text))

/** A finalizer that takes a while. It needs no clock: TestClock's sleep ends at once in an interrupted fiber. */
const slowly = (story: Array<string>, what: string) =>
  Effect.andThen(
    Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow, { discard: true }),
    Effect.sync(() => void story.push(what))
  )

/** Turns that last until they are let go, and write their beginning and end. */
const gated = (story: Array<string>, gates: Record<string, Deferred.Deferred<void>>) =>
  FakeSession.make((text) =>
    Stream.suspend(() => {
      story.push(`begin ${text}`)
      const gate = gates[text]
      return Stream.unwrap(Effect.as(gate === undefined ? Effect.void : Deferred.await(gate), Stream.make(FakeSession.end(text))))
    }).pipe(Stream.ensuring(Effect.sync(() => void story.push(`end ${text}`)))))

describe("serial", () => {
  it.effect("runs turns of concurrent callers one after the other, in the order in which they came", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const session = yield* SessionDecorator.serial(gated(story, {}))
      yield* Effect.forEach(["a", "b", "c", "d"], (text) => run(session, text), { concurrency: "unbounded" })
      assert.deepStrictEqual(story, ["begin a", "end a", "begin b", "end b", "begin c", "end c", "begin d", "end d"])
    }))

  it.effect("lets the next turn begin only when the finalizers of the one before are done", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const session = yield* SessionDecorator.serial(FakeSession.make((text) =>
        Stream.suspend(() => {
          story.push(`begin ${text}`)
          return Stream.make(FakeSession.end(text))
        }).pipe(Stream.ensuring(slowly(story, `gone ${text}`)))))
      yield* Effect.all([run(session, "a"), run(session, "b")], { concurrency: 2 })
      assert.deepStrictEqual(story, ["begin a", "gone a", "begin b", "gone b"])
    }))

  it.effect("goes on after a turn that failed, was interrupted, or whose reader left early", () =>
    Effect.gen(function*() {
      const session = yield* SessionDecorator.serial(FakeSession.make((text) => {
        switch (text) {
          case "fail":
            return Stream.fail(TurnError.io("x"))
          case "hang":
            return Stream.never
          default:
            return Stream.make(FakeSession.chunk(text), FakeSession.end(text))
        }
      }))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(run(session, "fail"))))
      const hanging = yield* Effect.forkChild(run(session, "hang"), { startImmediately: true })
      yield* Fiber.interrupt(hanging)
      assert.deepStrictEqual(
        yield* Stream.runCollect(Stream.take(session.runTurn(Prompt.fromText("left")), 1)),
        [FakeSession.chunk("left")]
      )
      assert.strictEqual((yield* run(session, "last")).text, "last")
    }))

  it.effect("takes an interrupted wait out of the queue without a turn", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const gate = yield* Deferred.make<void>()
      const session = yield* SessionDecorator.serial(gated(story, { a: gate }))
      const a = yield* Effect.forkChild(run(session, "a"), { startImmediately: true })
      const b = yield* Effect.forkChild(run(session, "b"), { startImmediately: true })
      const c = yield* Effect.forkChild(run(session, "c"), { startImmediately: true })
      yield* Fiber.interrupt(b)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(a)
      yield* Fiber.join(c)
      assert.deepStrictEqual(story, ["begin a", "end a", "begin c", "end c"])
    }))

  it.effect("passes a request to end to the session, and keeps its id", () =>
    Effect.gen(function*() {
      let asked = 0
      const session = yield* SessionDecorator.serial(FakeSession.make(() => Stream.never, Effect.sync(() => void asked++)))
      yield* session.interrupt
      assert.strictEqual(asked, 1)
      assert.strictEqual(session.sessionId, FakeSession.sessionId)
    }))

  it.effect("never runs two turns at once and never loses its lock, under any interleaving and interruption", () =>
    Effect.forEach(Array.from({ length: 150 }, (_, seed) => seed), (seed) =>
      Effect.gen(function*() {
        const random = Random.make(seed)
        let running = 0
        let overlaps = 0
        const session = yield* SessionDecorator.serial(FakeSession.make((text) =>
          Stream.unwrap(
            Effect.acquireRelease(
              Effect.sync(() => {
                running++
                if (running > 1) overlaps++
              }),
              () => Effect.andThen(Effect.yieldNow, Effect.sync(() => running--))
            ).pipe(Effect.andThen(Effect.yieldNow), Effect.as(Stream.make(FakeSession.chunk(text), FakeSession.end(text))))
          )))
        const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
        for (let index = 0; index < 8; index++) {
          fibers.push(yield* Effect.forkChild(run(session, `${index}`)))
          if (random.chance(0.5)) yield* Effect.yieldNow
          const victim = fibers[random.below(fibers.length)]
          if (random.chance(0.5) && victim !== undefined) yield* Effect.forkChild(Fiber.interrupt(victim))
        }
        yield* Effect.forEach(fibers, Fiber.await)
        assert.strictEqual(overlaps, 0, `seed ${seed}: two turns at once`)
        assert.strictEqual((yield* run(session, "after")).text, "after", `seed ${seed}`)
        assert.strictEqual(running, 0, `seed ${seed}`)
      }).pipe(Effect.provideService(Scheduler.Scheduler, SeededScheduler.make(seed))), { discard: true }))
})

describe("preemptible", () => {
  it.effect("fails the running turn with Preempted once all that it started is gone", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const { preempt, session } = yield* SessionDecorator.preemptible(FakeSession.make(() =>
        Stream.concat(Stream.make(FakeSession.chunk("x")), Stream.never).pipe(
          Stream.ensuring(slowly(story, "gone"))
        )))
      const fiber = yield* Effect.forkChild(
        Effect.flip(run(session, "a")).pipe(Effect.tap(() => Effect.sync(() => void story.push("failed")))),
        { startImmediately: true }
      )
      yield* Effect.yieldNow
      assert.isTrue(yield* preempt)
      assert.deepStrictEqual(yield* Fiber.join(fiber), TurnError.preempted())
      assert.deepStrictEqual(story, ["gone", "failed"])
    }))

  it.effect("has finished the turn also where a decorator goes on in the same stream", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const { preempt, session } = yield* SessionDecorator.preemptible(FakeSession.make(() =>
        Stream.ensuring(Stream.never, slowly(story, "gone"))))
      const fiber = yield* Effect.forkChild(
        AgentSession.runToOutput(SessionDecorator.resilient(session), Prompt.fromText("a"), (event) =>
          Effect.sync(() => void story.push(event.type))),
        { startImmediately: true }
      )
      yield* Effect.yieldNow
      assert.isTrue(yield* preempt)
      assert.strictEqual((yield* Fiber.join(fiber)).text, "")
      assert.deepStrictEqual(story, ["gone", "harness/end"])
    }))

  it.effect("does nothing and says so where no turn runs: before, after, and a second time", () =>
    Effect.gen(function*() {
      const { preempt, session } = yield* SessionDecorator.preemptible(FakeSession.make((text) =>
        text === "hang" ? Stream.never : Stream.make(FakeSession.end(text))))
      assert.isFalse(yield* preempt)
      yield* run(session, "a")
      assert.isFalse(yield* preempt)
      const hanging = yield* Effect.forkChild(Effect.flip(run(session, "hang")), { startImmediately: true })
      yield* Effect.yieldNow
      assert.isTrue(yield* preempt)
      assert.isFalse(yield* preempt)
      assert.deepStrictEqual(yield* Fiber.join(hanging), TurnError.preempted())
      assert.strictEqual((yield* run(session, "b")).text, "b")
    }))

  it.effect("forgets a turn whose caller was interrupted", () =>
    Effect.gen(function*() {
      const { preempt, session } = yield* SessionDecorator.preemptible(FakeSession.make(() => Stream.never))
      const fiber = yield* Effect.forkChild(run(session, "a"), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.isFalse(yield* preempt)
    }))

  it.effect("hits the turn that runs and none that waits, under serial", () =>
    Effect.gen(function*() {
      const inner = yield* SessionDecorator.preemptible(FakeSession.make((text) =>
        text === "a" ? Stream.never : Stream.make(FakeSession.end(text))))
      const session = yield* SessionDecorator.serial(inner.session)
      const a = yield* Effect.forkChild(Effect.flip(run(session, "a")), { startImmediately: true })
      const b = yield* Effect.forkChild(run(session, "b"), { startImmediately: true })
      yield* Effect.yieldNow
      assert.isTrue(yield* inner.preempt)
      assert.deepStrictEqual(yield* Fiber.join(a), TurnError.preempted())
      assert.strictEqual((yield* Fiber.join(b)).text, "b")
    }))
})

describe("resilient", () => {
  const outcome = (turn: Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>) =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const session = SessionDecorator.resilient(FakeSession.make(() => turn))
      const output = yield* AgentSession.runToOutput(session, Prompt.fromText("x"), (event) =>
        Effect.sync(() => void seen.push(event.type)))
      return { text: output.text, seen }
    })

  it.effect("leaves a good turn as it is", () =>
    Effect.gen(function*() {
      const session = SessionDecorator.resilient(FakeSession.echo)
      assert.deepStrictEqual(yield* run(session, "x"), yield* run(FakeSession.echo, "x"))
    }))

  it.effect("reports a failed turn as its output, after its events", () =>
    Effect.gen(function*() {
      const failed = TurnError.reported(Failure.make("RATE_LIMIT", "too many requests"))
      assert.deepStrictEqual(yield* outcome(Stream.concat(Stream.make(FakeSession.chunk("a")), Stream.fail(failed))), {
        text: "turn failed: too many requests",
        seen: ["assistant/chunk", "harness/end"]
      })
    }))

  it.effect("reports a pre-empted turn as an empty output", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* outcome(Stream.fail(TurnError.preempted())), { text: "", seen: ["harness/end"] })
    }))

  it.effect("reports a turn without an ending, and one that fails after its ending, with one ending", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* outcome(Stream.empty), {
        text: "turn failed: the harness stopped without ending its turn",
        seen: ["harness/end"]
      })
      assert.deepStrictEqual(
        yield* outcome(Stream.concat(Stream.make(FakeSession.end("fine")), Stream.fail(TurnError.io("pipe")))),
        { text: "turn failed: pipe", seen: ["harness/end"] }
      )
      assert.deepStrictEqual(yield* outcome(Stream.make(FakeSession.end("a"), FakeSession.end("b"))), {
        text: "turn failed: the harness sent harness/end after the end of its turn",
        seen: ["harness/end"]
      })
    }))

  it.effect("lets bugs and interruptions through", () =>
    Effect.gen(function*() {
      const broken = yield* Effect.exit(run(SessionDecorator.resilient(FakeSession.make(() => Stream.die("bug"))), "x"))
      assert.deepStrictEqual(broken, Exit.die("bug"))
      const fiber = yield* Effect.forkChild(
        run(SessionDecorator.resilient(FakeSession.make(() => Stream.never)), "x"),
        { startImmediately: true }
      )
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
    }))
})
