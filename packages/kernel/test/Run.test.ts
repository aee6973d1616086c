import { assert, describe, it } from "@effect/vitest"
import { type AgentRunSpec, Failure, Scalars, TurnEvent } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { Cancel, ChannelError, Harness, HarnessError, Run, SessionBindings, TurnError } from "../src/index.ts"
import * as FakeHarness from "./support/FakeHarness.ts"
import * as FakeSession from "./support/FakeSession.ts"
import * as Scene from "./support/Scene.ts"

const { bound } = FakeHarness
const { chunk, end, message } = FakeSession

const call = (id: string, name = "Bash") => TurnEvent.make("tool/call", { call_id: id, name, input: { command: "ls" } })
const result = (id: string, data: Partial<TurnEvent.Of<"tool/result">["data"]> = {}) =>
  TurnEvent.make("tool/result", { call_id: id, is_error: false, ...data })

const startFailed = HarnessError.notStarted(Failure.make("SPAWN_FAILED", "no such program"))

/** A turn that has said something and goes on until it is asked to end, or for ever. */
const longTurn = (asked: Effect.Effect<void>, after: Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>) => () =>
  Stream.concat(
    Stream.make(bound(), chunk("par"), call("t1"), chunk("tial")),
    Stream.unwrap(Effect.as(asked, after))
  )

interface Setup {
  readonly parts: FakeHarness.Parts
  readonly spec?: Partial<AgentRunSpec.AgentRunSpec>
  readonly sink?: Scene.Options["sink"]
  readonly before?: (cancel: Cancel.CancelToken) => Effect.Effect<unknown>
  /** Runs while the run runs. */
  readonly during?: (cancel: Cancel.CancelToken) => Effect.Effect<unknown>
  readonly bindings?: SessionBindings.SessionBindings["Service"]
}

interface Expected {
  readonly result: string
  readonly story: ReadonlyArray<string>
  readonly turn?: 0 | 1
}

interface Scenario {
  readonly setup: () => Effect.Effect<Setup>
  readonly expected: Expected
}

const provision = ["provision {", "} provision"]
const launch = ["launch {", "} launch"]
const begun = [...provision, ...launch, "submit {", "} submit", "session_start", "turn_start", "await {"]
const capture = ["capture {", "} capture"]
const over = ["session_end", "result"]
const cutOffTurn = ["text_delta", "Bash {", "text_delta", "message", "} Bash (TOOL_OUTCOME_UNKNOWN: the turn ended before the tool did)"]

/** A store of bindings whose nth save fails. */
const failingAt = (nth: number) => {
  let saves = 0
  return Effect.map(Effect.provide(Effect.service(SessionBindings.SessionBindings), SessionBindings.SessionBindings.layerMemory), (inner) =>
    SessionBindings.SessionBindings.of({
      acquire: (id) =>
        Effect.map(inner.acquire(id), (lease) => ({
          binding: lease.binding,
          save: (binding: SessionBindings.Binding) =>
            Effect.suspend(() =>
              ++saves === nth
                ? Effect.fail(new SessionBindings.SessionBindingsError({ failure: Failure.make("DATA_DIR_UNUSABLE", "the disk is full") }))
                : lease.save(binding)
            )
        }))
    }))
}

const scenario = (setup: Setup | (() => Effect.Effect<Setup>), expected: Expected): Scenario => ({
  setup: typeof setup === "function" ? setup : () => Effect.succeed(setup),
  expected
})

/** A turn that ends itself with this ending once it is asked. */
const obedient = (after: Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>) =>
  Effect.map(Deferred.make<void>(), (asked): FakeHarness.Parts => ({
    turn: longTurn(Deferred.await(asked), after),
    interrupt: Effect.asVoid(Deferred.succeed(asked, undefined))
  }))

const deaf: FakeHarness.Parts = { turn: longTurn(Effect.never, Stream.empty) }
const atOnce = (request: Cancel.Request) => (cancel: Cancel.CancelToken) => cancel.request(request)
const lost = (cancel: Cancel.CancelToken) => cancel.request({ cause: "user", mode: "hard" })

const scenarios: Record<string, Scenario> = {
  "happy": scenario({ parts: {} }, {
    result: "success",
    story: [...begun, "text_delta", "text_delta", "message", "} await", ...capture, "turn_end", ...over],
    turn: 1
  }),
  "the launch fails": scenario({ parts: { opening: Effect.fail(startFailed) } }, {
    result: "adapter_error SPAWN_FAILED",
    story: [...provision, "launch {", "} launch (no such program)", ...over],
    turn: 0
  }),
  "the launch has a bug": scenario({ parts: { opening: Effect.die(new Error("oops")) } }, {
    result: "adapter_error INTERNAL",
    story: [...provision, "launch {", "} launch (failed)", ...over]
  }),
  "the launch interrupts itself": scenario({ parts: { opening: Effect.interrupt } }, {
    result: "adapter_error INTERNAL",
    story: [...provision, "launch {", "} launch (a part of the run ended itself)", ...over]
  }),
  "the session cannot be saved at first": scenario(
    () => Effect.map(failingAt(1), (bindings) => ({ parts: {}, bindings })),
    { result: "adapter_error DATA_DIR_UNUSABLE", story: ["provision {", "} provision (the disk is full)", ...over], turn: 0 }
  ),
  "the session cannot be saved before its turn": scenario(
    () => Effect.map(failingAt(2), (bindings) => ({ parts: {}, bindings })),
    { result: "adapter_error DATA_DIR_UNUSABLE", story: [...provision, ...launch, ...capture, ...over], turn: 0 }
  ),
  "the session cannot be saved in its turn": scenario(
    () => Effect.map(failingAt(3), (bindings) => ({ parts: {}, bindings })),
    {
      result: "adapter_error DATA_DIR_UNUSABLE",
      story: [...begun, "text_delta", "text_delta", "message", "} await (the disk is full)", ...capture, "turn_end", ...over],
      turn: 1
    }
  ),
  "the session cannot be saved at the end": scenario(
    () => Effect.map(failingAt(5), (bindings) => ({ parts: {}, bindings })),
    {
      result: "adapter_error DATA_DIR_UNUSABLE",
      story: [...begun, "text_delta", "text_delta", "message", "} await", ...capture, "turn_end", ...over]
    }
  ),
  "asked to end while it awaits; what came last is kept": scenario(
    () =>
      Effect.map(obedient(Stream.make(result("t1"), message("partial, and the end"), end("partial, and the end", { stop_reason: "aborted" }))), (parts) => ({
        parts,
        during: atOnce({ cause: "user", mode: "graceful" })
      })),
    {
      result: "graceful_cancel CANCELLED",
      story: [...begun, "text_delta", "Bash {", "text_delta", "} Bash", "message", "} await", ...capture, "turn_end", ...over],
      turn: 1
    }
  ),
  "asked to end, and the harness says success": scenario(
    () => Effect.map(obedient(Stream.make(end("partial", { exit_code: 0 }))), (parts) => ({ parts, during: atOnce({ cause: "user", mode: "graceful" }) })),
    { result: "graceful_cancel CANCELLED", story: [...begun, ...cutOffTurn, "} await", ...capture, "turn_end", ...over] }
  ),
  "the time limit": scenario(
    () =>
      Effect.map(obedient(Stream.make(end("partial", { exit_code: 0 }))), (parts) => ({
        parts,
        spec: { limits: { timeout_s: 60 } },
        during: () => TestClock.adjust("60 seconds")
      })),
    { result: "timeout TIME_LIMIT", story: [...begun, ...cutOffTurn, "} await", ...capture, "turn_end", ...over] }
  ),
  "the time limit is not reached a moment before": scenario(
    () =>
      Effect.map(Deferred.make<void>(), (done) => ({
        parts: { turn: longTurn(Deferred.await(done), Stream.make(result("t1"), end("partial"))) },
        spec: { limits: { timeout_s: 60 } },
        during: () => Effect.andThen(TestClock.adjust(59_999), Deferred.succeed(done, undefined))
      })),
    { result: "success", story: [...begun, "text_delta", "Bash {", "text_delta", "} Bash", "message", "} await", ...capture, "turn_end", ...over] }
  ),
  "asked to end, and the time limit on top": scenario(
    {
      parts: deaf,
      spec: { limits: { timeout_s: 2 } },
      during: (cancel) => Effect.andThen(cancel.request({ cause: "user", mode: "graceful" }), Effect.andThen(TestClock.adjust("2 seconds"), lost(cancel)))
    },
    { result: "hard_cancel CANCELLED", story: [...begun, ...cutOffTurn, "} await (cut off)", ...capture, "turn_end", ...over] }
  ),
  "the time limit wins over a graceful request": scenario(
    () =>
      Effect.map(Deferred.make<void>(), (late) => ({
        parts: { turn: longTurn(Deferred.await(late), Stream.make(end("partial", { stop_reason: "aborted" }))) },
        spec: { limits: { timeout_s: 2 } },
        during: (cancel) =>
          Effect.andThen(
            cancel.request({ cause: "user", mode: "graceful" }),
            Effect.andThen(TestClock.adjust("2 seconds"), Deferred.succeed(late, undefined))
          )
      })),
    { result: "timeout TIME_LIMIT", story: [...begun, ...cutOffTurn, "} await", ...capture, "turn_end", ...over] }
  ),
  "cut off while it launches": scenario({ parts: { opening: Effect.never }, during: lost }, {
    result: "hard_cancel CANCELLED",
    story: [...provision, "launch {", "} launch (stopped)", ...over],
    turn: 0
  }),
  "asked to end while it launches": scenario({ parts: { opening: Effect.never }, during: atOnce({ cause: "user", mode: "graceful" }) }, {
    result: "graceful_cancel CANCELLED",
    story: [...provision, "launch {", "} launch (stopped)", ...over],
    turn: 0
  }),
  "the time limit while it launches": scenario(
    { parts: { opening: Effect.never }, spec: { limits: { timeout_s: 0.5 } }, during: () => TestClock.adjust(500) },
    { result: "timeout TIME_LIMIT", story: [...provision, "launch {", "} launch (stopped)", ...over] }
  ),
  "a failure, and then a hard request while it closes": scenario(
    () =>
      Effect.map(Deferred.make<void>(), (closing) => ({
        parts: {
          turn: () => Stream.concat(Stream.make(bound()), Stream.fail(TurnError.io("the pipe broke"))),
          close: Effect.as(Deferred.await(closing), Harness.nothingFound)
        },
        during: (cancel) => Effect.andThen(lost(cancel), Deferred.succeed(closing, undefined))
      })),
    { result: "hard_cancel CANCELLED", story: [...begun, "} await (the pipe broke)", ...capture, "turn_end", ...over] }
  ),
  "one interrupt, and then another": scenario(
    {
      parts: deaf,
      during: (cancel) => {
        const signal = Cancel.escalator(cancel)
        return Effect.andThen(signal("interrupt"), Effect.andThen(TestClock.adjust("1 second"), signal("interrupt")))
      }
    },
    { result: "hard_cancel CANCELLED", story: [...begun, ...cutOffTurn, "} await (cut off)", ...capture, "turn_end", ...over] }
  ),
  "a termination": scenario({ parts: deaf, during: (cancel) => Cancel.escalator(cancel)("terminate") }, {
    result: "hard_cancel CANCELLED",
    story: [...begun, ...cutOffTurn, "} await (cut off)", ...capture, "turn_end", ...over]
  }),
  "the harness does not hear the request: cut off after the grace": scenario(
    {
      parts: deaf,
      during: (cancel) => Effect.andThen(cancel.request({ cause: "user", mode: "graceful" }), TestClock.adjust("5 seconds"))
    },
    { result: "hard_cancel CANCELLED", story: [...begun, ...cutOffTurn, "} await (cut off)", ...capture, "turn_end", ...over] }
  ),
  "the request itself hangs: cut off after the grace": scenario(
    {
      parts: { ...deaf, interrupt: Effect.never },
      during: (cancel) => Effect.andThen(cancel.request({ cause: "user", mode: "graceful" }), TestClock.adjust("5 seconds"))
    },
    { result: "hard_cancel CANCELLED", story: [...begun, ...cutOffTurn, "} await (cut off)", ...capture, "turn_end", ...over] }
  ),
  "the request has a bug": scenario(
    {
      parts: { ...deaf, interrupt: Effect.die("no pipe") },
      during: (cancel) => Effect.andThen(cancel.request({ cause: "user", mode: "graceful" }), TestClock.adjust("5 seconds"))
    },
    {
      result: "hard_cancel CANCELLED",
      story: [...begun, ...cutOffTurn, "} await (cut off)", "capture {", "} capture (failed)", "notice teardown_failed", "turn_end", ...over]
    }
  ),
  "the session does not close well": scenario(
    { parts: { close: Effect.succeed({ ...Harness.nothingFound, problems: ["a pipe was stuck; token=abc"] }) } },
    {
      result: "success",
      story: [
        ...begun,
        "text_delta",
        "text_delta",
        "message",
        "} await",
        "capture {",
        "} capture (a pipe was stuck; token=[REDACTED])",
        "notice teardown_failed",
        "turn_end",
        ...over
      ]
    }
  ),
  "closing has a bug": scenario({ parts: { close: Effect.die("bad pid"), released: Effect.die("bad scope") } }, {
    result: "success",
    story: [
      ...begun,
      "text_delta",
      "text_delta",
      "message",
      "} await",
      "capture {",
      "} capture (failed)",
      "notice teardown_failed",
      "notice teardown_failed",
      "turn_end",
      ...over
    ]
  }),
  "cut off before it begins": scenario({ parts: {}, before: lost }, { result: "hard_cancel CANCELLED", story: over, turn: 0 }),
  "asked to end before it begins": scenario({ parts: {}, before: atOnce({ cause: "user", mode: "graceful" }) }, {
    result: "graceful_cancel CANCELLED",
    story: over,
    turn: 0
  }),
  "cut off before the first event": scenario({ parts: { turn: () => Stream.never }, during: lost }, {
    result: "hard_cancel CANCELLED",
    story: [...provision, ...launch, "submit {", "} submit (cut off)", "session_start", "turn_start", ...capture, "turn_end", ...over],
    turn: 1
  }),
  "the turn fails before its first event": scenario({ parts: { turn: () => Stream.fail(TurnError.io("gone")) } }, {
    result: "adapter_error HARNESS_IO",
    story: [...provision, ...launch, "submit {", "} submit (gone)", "session_start", "turn_start", ...capture, "turn_end", ...over],
    turn: 1
  }),
  "the turn fails in the middle": scenario(
    { parts: { turn: () => Stream.concat(Stream.make(bound(), chunk("par")), Stream.fail(TurnError.reported(Failure.make("RATE_LIMIT", "slow down")))) } },
    { result: "adapter_error RATE_LIMIT", story: [...begun, "text_delta", "message", "} await (slow down)", ...capture, "turn_end", ...over] }
  ),
  "the turn has a bug": scenario({ parts: { turn: () => Stream.concat(Stream.make(bound()), Stream.die(new Error("undefined is not"))) } }, {
    result: "adapter_error INTERNAL",
    story: [...begun, "} await (failed)", ...capture, "turn_end", ...over]
  }),
  "the turn's function throws": scenario({ parts: { turn: () => { throw new Error("thrown") } } }, {
    result: "adapter_error INTERNAL",
    story: [...provision, ...launch, "submit {", "} submit (failed)", "session_start", "turn_start", ...capture, "turn_end", ...over]
  }),
  "the turn interrupts itself": scenario({ parts: { turn: () => Stream.concat(Stream.make(bound()), Stream.fromEffect(Effect.interrupt)) } }, {
    result: "adapter_error NO_TERMINAL",
    story: [...begun, "} await (cut off)", ...capture, "turn_end", ...over]
  }),
  "the turn ends without an ending": scenario({ parts: { turn: () => Stream.make(bound(), message("a")) } }, {
    result: "adapter_error NO_TERMINAL",
    story: [...begun, "message", "} await (the harness stopped without ending its turn)", ...capture, "turn_end", ...over]
  }),
  "the turn ends twice": scenario({ parts: { turn: () => Stream.make(bound(), message("a"), end("a"), end("b")) } }, {
    result: "adapter_error HARNESS_PROTOCOL",
    story: [...begun, "message", "} await (the harness sent harness/end after the end of its turn)", ...capture, "turn_end", ...over]
  }),
  "the turn says nothing and did nothing": scenario({ parts: { turn: () => Stream.make(bound(), end("")) } }, {
    result: "adapter_error EMPTY_RESPONSE",
    story: [...begun, "} await", ...capture, "turn_end", ...over]
  }),
  "the run waits for tasks": scenario(
    () =>
      Effect.map(Deferred.make<void>(), (done) => ({
        parts: { turn: () => Stream.make(bound(), message("a"), end("a", { background: [{ id: "b1" }] })), backgroundDone: Deferred.await(done) },
        during: () => Effect.andThen(TestClock.adjust("1 day"), Deferred.succeed(done, undefined))
      })),
    { result: "success", story: [...begun, "message", "} await", ...capture, "turn_end", ...over] }
  ),
  "the run does not wait for tasks that may be killed": scenario(
    {
      parts: {
        turn: () => Stream.make(bound(), message("a"), end("a", { background: [{ id: "b1" }] })),
        backgroundDone: Effect.never,
        close: Effect.succeed({ ...Harness.nothingFound, backgroundKilled: [{ id: "b1" }] })
      },
      spec: { background: "kill" }
    },
    { result: "success", story: [...begun, "message", "} await", ...capture, "turn_end", ...over] }
  ),
  "asked to end while it waits for tasks": scenario(
    {
      parts: {
        turn: () => Stream.make(bound(), message("a"), end("a", { background: [{ id: "b1" }] })),
        backgroundDone: Effect.never,
        close: Effect.succeed({ ...Harness.nothingFound, backgroundKilled: [{ id: "b1" }] })
      },
      during: atOnce({ cause: "user", mode: "graceful" })
    },
    { result: "graceful_cancel CANCELLED", story: [...begun, "message", "} await", ...capture, "turn_end", ...over] }
  ),
  "tasks end with the harness": scenario(
    {
      parts: {
        turn: () => Stream.make(bound(), message("a"), end("a", { background: [{ id: "b1" }] })),
        close: Effect.succeed({ ...Harness.nothingFound, backgroundKilled: [{ id: "b1" }] })
      }
    },
    { result: "adapter_error BACKGROUND_KILLED", story: [...begun, "message", "} await", ...capture, "turn_end", ...over] }
  ),
  "waiting for tasks has a bug": scenario({ parts: { backgroundDone: Effect.die("x") } }, {
    result: "success",
    story: [
      ...begun,
      "text_delta",
      "text_delta",
      "message",
      "} await",
      "capture {",
      "} capture (failed)",
      "notice teardown_failed",
      "turn_end",
      ...over
    ]
  }),
  "a hard request once the ending was read": scenario(
    () =>
      Effect.map(Deferred.make<void>(), (closing) => ({
        parts: { close: Effect.as(Deferred.await(closing), Harness.nothingFound) },
        during: (cancel) => Effect.andThen(lost(cancel), Deferred.succeed(closing, undefined))
      })),
    { result: "success", story: [...begun, "text_delta", "text_delta", "message", "} await", ...capture, "turn_end", ...over] }
  )
}

/** What a long message of a bug stands for in the tables. */
const shortened = (word: string) => word.replace(/ \((?:a bug ended the run|closing the session failed|waiting for background tasks failed|the harness could not be asked).*\)$/su, " (failed)")

describe("execute", () => {
  for (const [name, { expected, setup }] of Object.entries(scenarios)) {
    it.effect(`${name}: ${expected.result}`, () =>
      Effect.gen(function*() {
        const { before, bindings, during, parts, sink, spec } = yield* setup()
        const fake = FakeHarness.make(parts)
        const cancel = yield* Cancel.make
        if (before !== undefined) yield* before(cancel)
        const told: Scene.Told = { events: [], result: undefined }
        const options: Scene.Options = { fake, cancel, ...(spec === undefined ? {} : { spec }), ...(sink === undefined ? {} : { sink }) }
        const running = Effect.gen(function*() {
          const prepared = yield* Scene.prepare(options)
          yield* Scene.execute(prepared, options, told)
        }).pipe(Effect.scoped)
        const fiber = yield* Effect.forkChild(
          bindings === undefined
            ? Effect.provide(running, SessionBindings.SessionBindings.layerMemory)
            : Effect.provideService(running, SessionBindings.SessionBindings, bindings),
          { startImmediately: true }
        )
        if (during !== undefined) {
          yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
          assert.isUndefined(fiber.pollUnsafe(), "the run was over before its scenario began")
          yield* during(cancel)
        }
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(Scene.words(told.events).map(shortened), expected.story)
        assert.strictEqual(Scene.show(told.result), expected.result)
        assert.deepStrictEqual(Scene.faults(told, fake), [])
        if (expected.turn !== undefined) assert.strictEqual(told.result?.session.turn, expected.turn)
      }))
  }
})

describe("a reader that goes away", () => {
  it.effect("at any event ends the run with channel_lost, and nothing more is sent to it", () =>
    Effect.gen(function*() {
      const whole = yield* Scene.run({ fake: FakeHarness.make() })
      const total = whole.events.length
      assert.strictEqual(total, 18)
      for (let nth = 0; nth < total; nth++) {
        const fake = FakeHarness.make()
        let offered = 0
        const told = yield* Scene.run({
          fake,
          sink: () => Effect.suspend(() => offered++ === nth ? Effect.fail(ChannelError.io("EPIPE")) : Effect.void)
        })
        assert.strictEqual(offered, nth + 1, `event ${nth}`)
        assert.deepStrictEqual(told.events, whole.events.slice(0, nth), `event ${nth}`)
        assert.deepStrictEqual(Scene.faults(told, fake, { cut: true }), [], `event ${nth}`)
        const ended = whole.events.findIndex(({ type }) => type === "message")
        // Once the ending has been read the turn stands, whoever is there to hear of it.
        assert.strictEqual(
          Scene.show(told.result),
          nth <= ended ? "adapter_error CHANNEL_LOST" : "success",
          `event ${nth}: ${whole.events[nth]?.type}`
        )
      }
    }))

  it.effect("is told in the result with what the channel said, without credentials", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const told = yield* Scene.run({ fake, sink: () => Effect.fail(ChannelError.io("EPIPE token=abcdef")) })
      assert.deepStrictEqual(told.result?.error?.message, "the channel that the turn needed went away: channel I/O error: EPIPE token=[REDACTED]")
    }))

  it.effect("by a bug is a lost channel too", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const told = yield* Scene.run({
        fake,
        sink: (event) => {
          if (event.type === "turn_start") throw new Error("bug in the sink")
          return Effect.void
        }
      })
      assert.strictEqual(Scene.show(told.result), "adapter_error CHANNEL_LOST")
      assert.strictEqual(told.events.at(-1)?.type, "session_start")
    }))

  it.effect("by taking nothing any more holds the turn back, and is given up a grace after a hard request", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const cancel = yield* Cancel.make
      const told: Scene.Told = { events: [], result: undefined }
      const fiber = yield* Effect.forkChild(
        Scene.run({ fake, cancel, sink: (event) => event.type === "text_delta" ? Effect.never : Effect.void }, told),
        { startImmediately: true }
      )
      yield* TestClock.adjust("1 day")
      assert.isUndefined(fiber.pollUnsafe())
      yield* cancel.request({ cause: "user", mode: "hard" })
      yield* TestClock.adjust(4999)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
      assert.strictEqual(Scene.show(told.result), "hard_cancel CANCELLED")
      assert.strictEqual(told.events.at(-1)?.type, "tool_start")
      assert.deepStrictEqual(Scene.faults(told, fake, { cut: true }), [])
    }))

  it.effect("is never interrupted in the middle of an event: the numbers have no gap", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make(deaf)
      const cancel = yield* Cancel.make
      const told: Scene.Told = { events: [], result: undefined }
      const gate = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        Scene.run({ fake, cancel, sink: (event) => event.type === "text_delta" ? Deferred.await(gate) : Effect.void }, told),
        { startImmediately: true }
      )
      yield* Effect.yieldNow
      yield* cancel.request({ cause: "user", mode: "hard" })
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(Scene.faults(told, fake), [])
      assert.strictEqual(told.events.at(-1)?.type, "result")
    }))
})

describe("an interrupted caller", () => {
  it.effect("at any event and in every phase leaves a run that is told to its end, and is interrupted then", () =>
    Effect.gen(function*() {
      const total = (yield* Scene.run({ fake: FakeHarness.make() })).events.length
      for (let nth = 0; nth < total; nth++) {
        const fake = FakeHarness.make()
        const told: Scene.Told = { events: [], result: undefined }
        const reached = yield* Deferred.make<void>()
        const goOn = yield* Deferred.make<void>()
        let offered = 0
        const fiber = yield* Effect.forkChild(
          Scene.run({
            fake,
            sink: () =>
              Effect.suspend(() =>
                offered++ === nth ? Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(goOn)) : Effect.void
              )
          }, told),
          { startImmediately: true }
        )
        yield* Deferred.await(reached)
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
        yield* Deferred.succeed(goOn, undefined)
        yield* Fiber.join(interrupting)
        assert.strictEqual(Scene.exitOf(yield* Fiber.await(fiber)), "interrupted", `event ${nth}`)
        assert.deepStrictEqual(Scene.faults(told, fake), [], `event ${nth}`)
        assert.strictEqual(told.events.at(-1)?.type, "result", `event ${nth}`)
      }
    }))

  for (
    const [phase, parts] of Object.entries<FakeHarness.Parts>({
      launch: { opening: Effect.never },
      await: deaf,
      capture: { backgroundDone: Effect.never }
    })
  ) {
    it.effect(`while ${phase} hangs cuts the run off`, () =>
      Effect.gen(function*() {
        const fake = FakeHarness.make(parts)
        const told: Scene.Told = { events: [], result: undefined }
        const fiber = yield* Effect.forkChild(Scene.run({ fake }, told), { startImmediately: true })
        yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(Scene.exitOf(yield* Fiber.await(fiber)), "interrupted")
        assert.deepStrictEqual(Scene.faults(told, fake), [])
        const last = told.events.at(-1)
        assert.strictEqual(
          last?.type === "result" ? Scene.show(last.result) : "none",
          phase === "capture" ? "success" : "hard_cancel CANCELLED"
        )
      }))
  }

  it.effect("that cannot be interrupted still sees its cancel requests heard", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make(deaf)
      const cancel = yield* Cancel.make
      const fiber = yield* Effect.forkChild(Effect.uninterruptible(Scene.run({ fake, cancel })), { startImmediately: true })
      yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
      yield* cancel.request({ cause: "user", mode: "hard" })
      assert.strictEqual(Scene.show((yield* Fiber.join(fiber)).result), "hard_cancel CANCELLED")
    }))
})

describe("the result", () => {
  it.effect("is the whole answer, the turn, and the log in its order", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const { events, result } = yield* Scene.run({ fake })
      assert.deepStrictEqual<unknown>(events.at(-1), { type: "result", run_id: "run-1", seq: 17, ts: "1970-01-01T00:00:00.000Z", result })
      assert.deepStrictEqual(result, {
        result: { success: true, summary: "echo: hello" },
        reason: "success",
        verdict: { type: "completed" },
        session: { id: "session-1", harness: "fake", harness_session_id: "h-1", resumed: false, turn: 1 },
        usage: { tokens: { source: "unavailable" }, cost: { source: "unavailable" } },
        denials: [],
        background_killed: [],
        killed: [],
        survivors: [],
        error: null,
        session_log: [
          { seq: 0, time: 0, type: "turn/start", data: { turn: 1, trigger: { kind: "message", source: "user" } } },
          { seq: 1, time: 0, type: "step/start", data: { step: 1 } },
          { seq: 2, time: 0, type: "user/message", data: { text: "hello", source: "user" } },
          { seq: 3, time: 0, type: "session/bound", data: { harness_session_id: "h-1", resumed: false } },
          { seq: 4, time: 0, type: "assistant/message", data: { text: "echo: hello" } },
          { seq: 5, time: 0, type: "step/end", data: { step: 1 } },
          { seq: 6, time: 0, type: "turn/end", data: { turn: 1, verdict: { type: "completed" } } }
        ],
        output_artifacts: [],
        observability: null,
        duration_ms: 0
      })
      assert.deepStrictEqual(fake.prompts, ["hello"])
    }))

  it.effect("goes to the caller alone where it is not delivered on the stream", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const told = yield* Scene.run({ fake, deliver: "caller" })
      assert.deepStrictEqual(told.events.map(({ type }) => type).slice(-2), ["turn_end", "session_end"])
      assert.strictEqual(told.result?.reason, "success")
      assert.deepStrictEqual(Scene.faults(told, fake), [])
    }))

  it.effect("lists what the session's closing found, and denials that were seen or listed, each once", () =>
    Effect.gen(function*() {
      const killed = [{ pid: 7, command: "sleep 300" }]
      const survivors = [{ pid: 8, command: "daemon" }]
      const fake = FakeHarness.make({
        turn: () =>
          Stream.make(
            bound(),
            call("a"),
            result("a", { is_error: true, denied: true }),
            call("b", "Write"),
            result("b", { is_error: true, denied: true }),
            end("no", { denials: [{ tool_name: "Write", call_id: "b" }, { tool_name: "Fetch" }] })
          ),
        close: Effect.succeed({ ...Harness.nothingFound, killed, survivors })
      })
      const told = yield* Scene.run({ fake })
      assert.deepStrictEqual(told.result?.denials, [
        { tool_name: "Write", call_id: "b" },
        { tool_name: "Fetch" },
        { tool_name: "Bash", call_id: "a", input: { command: "ls" } }
      ])
      assert.deepStrictEqual([told.result?.killed, told.result?.survivors], [killed, survivors])
      assert.deepStrictEqual(Scene.faults(told, fake), [])
    }))

  it.effect("keeps in its log the failure that a stronger cause outranked", () =>
    Effect.gen(function*() {
      const closing = yield* Deferred.make<void>()
      const cancel = yield* Cancel.make
      const fake = FakeHarness.make({
        turn: () => Stream.fail(TurnError.io("the pipe broke")),
        close: Effect.as(Deferred.await(closing), Harness.nothingFound)
      })
      const fiber = yield* Effect.forkChild(Scene.run({ fake, cancel }), { startImmediately: true })
      yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
      yield* cancel.request({ cause: "user", mode: "hard" })
      yield* Deferred.succeed(closing, undefined)
      const told = yield* Fiber.join(fiber)
      assert.strictEqual(Scene.show(told.result), "hard_cancel CANCELLED")
      assert.deepStrictEqual(told.result?.session_log.map(({ data, type }) => type === "error" ? [type, data] : type), [
        "turn/start",
        "step/start",
        "user/message",
        "step/end",
        ["error", { code: "HARNESS_IO", message: "the pipe broke" }],
        "turn/end"
      ])
    }))

  it.effect("says something of a failure that says nothing, and bounds one that says too much", () =>
    Effect.gen(function*() {
      const failing = (text: string) =>
        Effect.map(
          Scene.run({ fake: FakeHarness.make({ turn: () => Stream.fail(TurnError.reported(Failure.make("SERVER", text))) }) }),
          ({ result }) => result?.error?.message ?? ""
        )
      assert.strictEqual(yield* failing(""), "SERVER, without a message")
      assert.strictEqual((yield* failing(`😀${"x".repeat(1_000_000)}`)).length, 8193)
      assert.strictEqual(yield* failing("password=hunter2"), "password=[REDACTED]")
      // Redacted before it is cut: of a key across the bound nothing is left.
      assert.notInclude(yield* failing(`${"x ".repeat(4090)}sk-ant-${"s".repeat(100)}`), "sss")
    }))
})

describe("events", () => {
  it.effect("carry no credential that the run was given, and bounded outputs", () =>
    Effect.gen(function*() {
      const key = "sekret-value-1234"
      const login = JSON.stringify({ tokens: { id: "id-token-0123456789", refresh: "refresh-0123456789" } })
      const fake = FakeHarness.make({
        turn: () =>
          Stream.make(
            TurnEvent.make("notice", { kind: "harness_note", message: `key ${key}`, raw: { a: [key] } }),
            bound(),
            TurnEvent.make("permission/request", { request_id: "p", tool_name: "Bash", input: { command: key }, description: `run ${key}` }),
            TurnEvent.make("permission/decision", { request_id: "p", decision: "deny", by: "deny" }),
            TurnEvent.make("tool/call", { call_id: "a", name: "Bash", input: { command: `echo ${key}` } }),
            result("a", { output: `${key} id-token-0123456789 refresh-0123456789 ${"x".repeat(200_000)}`, denied: true }),
            end("done", { denials: [{ tool_name: "Bash", call_id: "a", input: { command: key } }] })
          )
      })
      const told = yield* Scene.run({
        fake,
        session: { env: { SOME_API_KEY: key }, credentials: { codex: { auth_json: login } } }
      })
      const text = JSON.stringify(told)
      assert.notInclude(text, key)
      assert.notInclude(text, "0123456789")
      assert.isBelow(text.length, 150_000)
      assert.deepStrictEqual(Scene.faults(told, fake), [])
    }))

  it.effect("by the hundred thousand pass one after the other; the result stays bounded", () =>
    Effect.gen(function*() {
      const count = 101_000
      const note = TurnEvent.make("notice", { kind: "harness_note", message: "hm" })
      const fake = FakeHarness.make({
        turn: () => Stream.concat(Stream.map(Stream.range(1, count), () => note), Stream.make(end("done")))
      })
      let told = 0
      const prepared = yield* Scene.prepare({ fake })
      const result = yield* Run.execute(prepared, {
        runId: Scalars.RunId.make("run-1"),
        turnpikeVersion: "0.0.0",
        sink: () => Effect.sync(() => void told++),
        cancel: yield* Cancel.make,
        deliver: "caller",
        grace: "5 seconds"
      })
      assert.isAbove(told, count)
      assert.strictEqual(result.session_log.length, 100_003)
      assert.deepStrictEqual(Scene.faultsOfLog(result.session_log), [])
    }).pipe(Effect.scoped, Effect.provide(SessionBindings.SessionBindings.layerMemory)), 60_000)

  it.effect("before the session is named are told before it: a notice opens no turn", () =>
    Effect.gen(function*() {
      const note = TurnEvent.make("notice", { kind: "restarted", message: "again" })
      const fake = FakeHarness.make({ turn: () => Stream.make(note, bound("h-9"), end("a")) })
      const told = yield* Scene.run({ fake })
      assert.deepStrictEqual(Scene.words(told.events).slice(4, 10), [
        "submit {",
        "notice restarted",
        "} submit",
        "session_start",
        "turn_start",
        "await {"
      ])
      const start = told.events.find((event) => event.type === "session_start")
      assert.strictEqual(start?.type === "session_start" ? start.harness_session_id : undefined, "h-9")
      assert.deepStrictEqual(Scene.faults(told, fake), [])
    }))
})

describe("a session that is kept open", () => {
  it.effect("runs one turn after the other with the same session, counts them, and stays open", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make({ turn: (text) => Stream.make(end(`echo: ${text}`)) })
      const options: Scene.Options = { fake }
      const prepared = yield* Scene.prepare(options)
      const keep = yield* fake.harness.open(prepared.options)
      const turns: Array<unknown> = []
      for (const task of ["one", "two", "three"]) {
        const told: Scene.Told = { events: [], result: undefined }
        yield* Scene.execute({ ...prepared, spec: { ...prepared.spec, task } }, { ...options, keep }, told)
        turns.push([told.result?.session.turn, told.result?.result.summary])
        assert.deepStrictEqual(Scene.faults(told, fake, { kept: true }), [])
      }
      assert.deepStrictEqual(turns, [[1, "echo: one"], [2, "echo: two"], [3, "echo: three"]])
      assert.deepStrictEqual([fake.counts.opened, fake.counts.closed, fake.counts.released], [1, 0, 0])
    }).pipe(Effect.scoped, Effect.provide(SessionBindings.SessionBindings.layerMemory)))

  it.effect("is not prompted where the run was asked to end before, and is usable after a turn was cut off", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make({ turn: (text) => text === "hang" ? Stream.never : Stream.make(bound(), end(text)) })
      const prepared = yield* Scene.prepare({ fake })
      const keep = yield* fake.harness.open(prepared.options)
      const turn = (task: string, cancel: Cancel.CancelToken) => {
        const told: Scene.Told = { events: [], result: undefined }
        return Effect.as(Scene.execute({ ...prepared, spec: { ...prepared.spec, task } }, { fake, keep, cancel }, told), told)
      }
      const early = yield* Cancel.make
      yield* early.request({ cause: "user", mode: "graceful" })
      assert.strictEqual(Scene.show((yield* turn("never", early)).result), "graceful_cancel CANCELLED")
      const cancel = yield* Cancel.make
      const hanging = yield* Effect.forkChild(turn("hang", cancel), { startImmediately: true })
      yield* cancel.request({ cause: "user", mode: "hard" })
      assert.strictEqual(Scene.show((yield* Fiber.join(hanging)).result), "hard_cancel CANCELLED")
      const last = yield* turn("again", yield* Cancel.make)
      assert.deepStrictEqual([Scene.show(last.result), last.result?.session.turn], ["success", 2])
      assert.deepStrictEqual(fake.prompts, ["hang", "again"])
    }).pipe(Effect.scoped, Effect.provide(SessionBindings.SessionBindings.layerMemory)))
})

describe("what is remembered of the session", () => {
  /** Runs one turn after the other on the same session and says what was remembered after each. */
  const remembered = (...turns: ReadonlyArray<FakeHarness.Parts>) =>
    Effect.gen(function*() {
      const bindings = yield* SessionBindings.SessionBindings
      const found: Array<unknown> = []
      for (const parts of turns) {
        const fake = FakeHarness.make(parts)
        yield* Effect.scoped(Effect.gen(function*() {
          const prepared = yield* Scene.prepare({ fake })
          yield* Scene.execute(prepared, { fake }, { events: [], result: undefined })
        }))
        const lease = yield* Effect.scoped(bindings.acquire(Scene.sessionId))
        const binding = lease.binding._tag === "Some" ? lease.binding.value : undefined
        found.push([binding?.harness_session_id, binding?.persisted, binding?.turns, fake.options[0]?.resume])
      }
      return found
    }).pipe(Effect.provide(SessionBindings.SessionBindings.layerMemory))

  it.effect("is written once it has answered, and then lost only with its history", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* remembered(
          { opening: Effect.fail(startFailed) },
          { turn: () => Stream.concat(Stream.make(bound("a")), Stream.fail(TurnError.io("x"))) },
          { turn: () => Stream.make(bound("a", true), message("hi"), end("hi")) },
          { turn: () => Stream.make(bound("b", true), end("hi")) },
          { turn: () => Stream.concat(Stream.make(bound("c")), Stream.fail(TurnError.io("x"))) }
        ),
        [
          [undefined, false, 0, undefined],
          ["a", false, 1, undefined],
          ["a", true, 2, { harnessSessionId: "a", onLost: "fresh" }],
          ["b", true, 3, { harnessSessionId: "a", onLost: "fail" }],
          ["c", false, 4, { harnessSessionId: "b", onLost: "fail" }]
        ]
      )
    }))

  it.effect("counts a turn before anything of it leaves", () =>
    Effect.gen(function*() {
      const bindings = yield* SessionBindings.SessionBindings
      let atPrompt: number | undefined
      const prepared = yield* Scene.prepare({ fake: FakeHarness.make() })
      const fake = FakeHarness.make({
        turn: () => {
          atPrompt = prepared.lease.binding._tag === "Some" ? prepared.lease.binding.value.turns : undefined
          return Stream.make(end("a"))
        }
      })
      yield* Scene.execute({ ...prepared, harness: fake.harness }, { fake }, { events: [], result: undefined })
      assert.strictEqual(atPrompt, 1)
      assert.isDefined(bindings)
    }).pipe(Effect.scoped, Effect.provide(SessionBindings.SessionBindings.layerMemory)))
})
