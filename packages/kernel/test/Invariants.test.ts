import { assert, describe, it } from "@effect/vitest"
import { Scalars, type SessionEvent, type SessionHeader } from "@turnpike/contract"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { Invariants, SessionDriver, SessionLog, SessionStoreMemory } from "../src/index.ts"
import * as Log from "./support/LogEvents.ts"

type Body = SessionEvent.Body

const { answer, call, chunk, claimed, completed, message, result, stepEnd, stepStart, turnEnd, turnStart, user } = Log

const id = Scalars.SessionId.make("s-1")
const header: SessionHeader.SessionHeader = { type: "session", format: 1, id, created: 0, harness: "fake", cwd: "/project" }

/** The rule that the last of the bodies breaks, and no earlier one. */
const broken = (...bodies: ReadonlyArray<Body>): string => {
  let state: Invariants.State | undefined
  for (const [index, body] of bodies.entries()) {
    const after = Invariants.next(state, body)
    if (Result.isFailure(after)) {
      assert.strictEqual(index, bodies.length - 1, after.failure.message)
      return after.failure.rule
    }
    state = after.success
  }
  return "none"
}

const opened = [turnStart(1), claimed(1, "r"), stepStart()]
const prompted = [...opened, user("p", "r")]
const sub = (body: Body): Body => ({ ...body, data: { ...body.data as object, origin: "subagent" } }) as Body

describe("the invariants", () => {
  it("take a turn as a driver writes it", () => {
    assert.strictEqual(broken(...prompted, chunk("a"), answer("a"), call("c"), result("c"), stepEnd(), stepStart(2), chunk("b"), stepEnd(2), turnEnd(1)), "none")
    assert.strictEqual(broken(turnStart(1, { kind: "injection", source: "x" }), message("context/message", "c"), turnEnd(1)), "none")
    assert.strictEqual(broken(turnStart(1, { kind: "background" }), stepStart(), answer("a"), stepEnd(), turnEnd(1)), "none")
    assert.strictEqual(broken(turnStart(1), claimed(1, "r"), turnEnd(1, { type: "blocked", by: "policy" })), "none")
  })

  it("hold the prompt and the model's own words to a step", () => {
    assert.strictEqual(broken(turnStart(1), user("p")), "in-a-step")
    for (const body of [chunk("a"), answer("a"), call("c")]) {
      assert.strictEqual(broken(...prompted, stepEnd(), body), "in-a-step", body.type)
      assert.strictEqual(broken(...prompted, stepEnd(), sub(body)), "none", body.type)
    }
  })

  it("let nothing of the model stand before the message that opened the turn", () => {
    assert.strictEqual(broken(...opened, chunk("a")), "prompt-first")
    assert.strictEqual(broken(...opened, message("steering/message", "s", "r"), chunk("a")), "none")
  })

  it("let a turn have one prompt", () => {
    assert.strictEqual(broken(...prompted, user("q")), "one-prompt")
    assert.strictEqual(broken(...prompted, message("steering/message", "q")), "none")
  })

  it("hold a message that is a receipt to its claim", () => {
    assert.strictEqual(broken(...opened, user("p", "another")), "claimed-first")
    assert.strictEqual(broken(...prompted, message("steering/message", "again", "r")), "claimed-first")
    assert.strictEqual(broken(...prompted, claimed(1, "s"), message("steering/message", "s", "s")), "none")
  })

  it("hold a result to the step of its call, but for one that was made up", () => {
    const madeUp = { ...result("c"), data: { call_id: "c", is_error: true, error_code: "TOOL_OUTCOME_UNKNOWN" } } as Body
    for (const between of [[stepEnd()], [stepEnd(), stepStart(2)]]) {
      assert.strictEqual(broken(...prompted, call("c"), ...between, result("c")), "result-in-its-step")
      assert.strictEqual(broken(...prompted, call("c"), ...between, madeUp), "none")
      assert.strictEqual(broken(...prompted, sub(call("c")), ...between, sub(result("c"))), "none")
    }
  })

  it("keep work out of the turn of an injected text", () => {
    const injected = turnStart(1, { kind: "injection", source: "x" })
    assert.strictEqual(broken(injected, stepStart()), "no-work-for-injected")
    assert.strictEqual(broken(injected, user("p")), "no-work-for-injected")
  })
})

/** What the effect died of. */
const defect = (effect: Effect.Effect<unknown, unknown>) =>
  Effect.map(Effect.exit(effect), (exit) => Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined)

describe("a log that is guarded", () => {
  const scene = Effect.gen(function*() {
    const store = yield* SessionStoreMemory.make
    yield* store.create(header)
    return store
  })

  it.effect("dies of a breach, which enters nothing, and goes on", () =>
    Effect.scoped(Effect.gen(function*() {
      const store = yield* scene
      const log = yield* SessionLog.open(store, id, "the test")
      const guarded = yield* Invariants.guard(log, store.read(id, -1))
      yield* guarded.append(turnStart(1))
      assert.deepStrictEqual(
        yield* defect(guarded.append(user("p"))),
        new Invariants.InvariantError({ session: "s-1", rule: "in-a-step", found: "user/message stands outside a step" })
      )
      for (const body of [stepStart(), user("p"), stepEnd(), turnEnd(1)]) yield* guarded.append(body)
      assert.strictEqual((yield* Stream.runCollect(store.read(id, -1))).length, 5)
      // What the log refuses in production too is no breach but a failure, as ever.
      const { failure } = yield* Effect.flip(guarded.append(user("outside")))
      assert.strictEqual(failure.code, "LOG_RULE")
    })))

  it.effect("knows what was written before it was guarded", () =>
    Effect.scoped(Effect.gen(function*() {
      const store = yield* scene
      const log = yield* SessionLog.open(store, id, "the test")
      for (const body of [turnStart(1), stepStart(), user("p")]) yield* log.append(body)
      const guarded = yield* Invariants.guard(log, store.read(id, -1))
      assert.strictEqual(Reflect.get((yield* defect(guarded.append(user("q")))) as object, "rule"), "one-prompt")
      assert.strictEqual(Reflect.get((yield* defect(guarded.append(user("q")))) as object, "code"), "INVARIANT")
      // The log itself is as it was, and a scope that closes takes the guard away.
      yield* log.append(stepEnd())
    })))

  it.effect("finds nothing in what a driver writes, whatever becomes of its turns", () =>
    Effect.scoped(Effect.gen(function*() {
      const store = yield* scene
      const log = yield* SessionLog.open(store, id, "the test")
      const guarded = yield* Invariants.guard(log, store.read(id, -1))
      const endings: ReadonlyArray<SessionDriver.Execute> = [
        (turn) => Effect.as(turn.append(answer("a")), completed),
        () => Effect.die(new Error("broken")),
        (turn) => Effect.andThen(turn.append(call("c")), Effect.succeed(completed)),
        (turn) => Effect.andThen(turn.append(Log.ask("q")), Effect.die(new Error("broken")))
      ]
      let count = 0
      const driver = yield* SessionDriver.make({
        store,
        writer: log.writer,
        log: guarded,
        execute: (turn) => endings[count++ % endings.length]!(turn),
        gate: (messages) => Effect.succeed(messages.some(({ text }) => text === "no") ? { _tag: "Reject", by: "policy" } : { _tag: "Enter", messages }),
        wakeAtStart: true
      })
      const phases: Array<SessionDriver.Phase> = []
      yield* Effect.forkScoped(Stream.runForEach(driver.phases, (phase) => Effect.sync(() => void phases.push(phase))))
      for (const text of ["1", "2", "no", "3", "4", "5"]) {
        yield* driver.send({ kind: text === "3" ? "steer" : "followup", text, source: "user" })
        yield* driver.whenIdle
      }
      yield* driver.injectAsTurn("context", "plugin:x")
      yield* driver.whenIdle
      assert.deepStrictEqual(phases.slice(1).flatMap((phase, index) => Invariants.phaseViolation(phases[index]!, phase) ?? []), [])
      const events = [...yield* Stream.runCollect(store.read(id, -1))]
      assert.strictEqual(events.filter(({ type }) => type === "turn/end").length, 7)
      assert.deepStrictEqual(events.flatMap((event) => event.type === "error" ? [event.data.message] : []), [
        "the turn broke: broken",
        "the turn broke: broken"
      ])
    })).pipe(Effect.provideService(References.MinimumLogLevel, "None")))
})

describe("the phases of a driver", () => {
  const idle = (lastTurn: number): SessionDriver.Phase => ({ _tag: "Idle", lastTurn })
  const running = (turn: number): SessionDriver.Phase => ({ _tag: "Running", turn })
  const maintenance = (lastTurn: number): SessionDriver.Phase => ({ _tag: "Maintenance", lastTurn })
  const closed: SessionDriver.Phase = { _tag: "Closed" }

  it("go from idle to work and back, and end with closed", () => {
    for (const [before, after] of [
      [idle(0), running(1)],
      [running(1), running(2)],
      [running(2), idle(2)],
      // Its beginning could not be written.
      [running(3), idle(2)],
      [idle(2), maintenance(2)],
      [maintenance(2), idle(2)],
      [idle(2), closed],
      [running(3), closed]
    ] as const) assert.isUndefined(Invariants.phaseViolation(before, after))
  })

  it("go nowhere else", () => {
    for (const [before, after] of [
      [closed, idle(1)],
      [closed, closed],
      [idle(1), idle(1)],
      [idle(1), idle(2)],
      [running(2), running(2)],
      [running(3), idle(1)],
      [idle(2), running(1)],
      [running(1), maintenance(1)],
      [maintenance(1), running(2)]
    ] as const) assert.strictEqual(Invariants.phaseViolation(before, after)?.rule, "phases")
  })
})
