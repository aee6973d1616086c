import { assert, describe, it } from "@effect/vitest"
import { type AgentRunSpec, Failure, TurnEvent } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { Cancel, Harness, HarnessError, SessionStore, SessionStoreMemory, TurnError } from "../src/index.ts"
import * as FailingStore from "./support/FailingStore.ts"
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
  readonly store?: SessionStore.Service
  /** Whether the log of the turn is less than a whole one. */
  readonly isCutShort?: boolean
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
  "the prompt cannot be written": scenario(
    () => Effect.map(FailingStore.failingOn("user/message"), (store) => ({ parts: {}, store })),
    { result: "adapter_error STORE_FULL", story: [...provision, ...launch, ...capture, ...over], turn: 0 }
  ),
  "an event of the turn cannot be written": scenario(
    () => Effect.map(FailingStore.failingOn("session/bound"), (store) => ({ parts: {}, store })),
    {
      result: "adapter_error STORE_FULL",
      // Nobody is told an id that the log does not have.
      story: [...provision, ...launch, "submit {", "} submit (the disk is full)", "session_start", "turn_start", ...capture, "turn_end", ...over],
      turn: 1
    }
  ),
  "the turn's end cannot be written": scenario(
    () => Effect.map(FailingStore.failingOn("turn/end"), (store) => ({ parts: {}, store, isCutShort: true })),
    {
      result: "adapter_error STORE_FULL",
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
  "the harness breaks a limit": scenario(
    { parts: { turn: () => Stream.concat(Stream.make(bound()), Stream.fail(TurnError.reported(Failure.make("POLICY_VIOLATION", "it ran Bash unasked")))) } },
    { result: "hard_cancel POLICY_VIOLATION", story: [...begun, "} await (it ran Bash unasked)", ...capture, "turn_end", ...over] }
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

describe("a run", () => {
  for (const [name, { expected, setup }] of Object.entries(scenarios)) {
    it.effect(`${name}: ${expected.result}`, () =>
      Effect.gen(function*() {
        const { before, during, isCutShort = false, parts, sink, spec, store } = yield* setup()
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
          store === undefined
            ? Effect.provide(running, SessionStoreMemory.layer)
            : Effect.provideService(running, SessionStore.SessionStore, store),
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
        assert.deepStrictEqual(Scene.faults(told, fake).filter((fault) => !isCutShort || !fault.startsWith("log: ")), [])
        if (expected.turn !== undefined) assert.strictEqual(told.result?.session.turn, expected.turn)
      }))
  }
})
