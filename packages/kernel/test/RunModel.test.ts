/**
 * Random runs under random interleavings: whatever the harness says and does,
 * whoever asks for an end and whenever, whichever reader goes away, the same
 * must hold of every run. A failure names its seed, which repeats it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Failure, TurnEvent, Verdict } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { Cancel, ChannelError, Harness, HarnessError, SessionStore, TurnError } from "../src/index.ts"
import * as FailingStore from "./support/FailingStore.ts"
import * as FakeHarness from "./support/FakeHarness.ts"
import * as FakeSession from "./support/FakeSession.ts"
import * as Random from "./support/Random.ts"
import * as Scene from "./support/Scene.ts"
import * as SeededScheduler from "./support/SeededScheduler.ts"

const yields = (count: number) => Effect.forEach(Array.from({ length: count }), () => Effect.yieldNow, { discard: true })

const randomEvent = (random: Random.Random): TurnEvent.TurnEvent => {
  const id = `c${random.below(4)}`
  switch (random.below(13)) {
    case 0:
      return FakeHarness.bound(`h-${random.below(2)}`, random.chance(0.5))
    case 1:
      return TurnEvent.make("step/start", { step: 1 + random.below(3) })
    case 2:
      return TurnEvent.make("step/end", { step: 1 + random.below(3) })
    case 3:
    case 4:
      return FakeSession.chunk("x".repeat(random.below(4)))
    case 5:
      return FakeSession.message(random.pick(["", "text"]))
    case 6:
    case 7:
      return TurnEvent.make("tool/call", { call_id: random.pick([id, "phase-await"]), name: "Bash" })
    case 8:
    case 9:
      return TurnEvent.make("tool/result", { call_id: id, is_error: random.chance(0.5), output: "out", ...(random.chance(0.2) ? { denied: true } : {}) })
    case 10:
      return TurnEvent.make("permission/request", { request_id: `p${random.below(2)}`, tool_name: "Bash" })
    case 11:
      return TurnEvent.make("permission/decision", { request_id: `p${random.below(2)}`, decision: "deny", by: "deny" })
    default:
      return TurnEvent.make("notice", { kind: "harness_note", message: "hm" })
  }
}

/** What the random run is judged against. */
interface Witness {
  moment: number
  firstRequest: number | undefined
  /** When the harness gave its first ending, if that was a success. */
  success: number | undefined
  lostReader: boolean
}

const randomRun = (seed: number) =>
  Effect.gen(function*() {
    const random = Random.make(seed)
    const witness: Witness = { moment: 0, firstRequest: undefined, success: undefined, lostReader: false }
    const inner = yield* Cancel.make
    const cancel: Cancel.CancelToken = {
      ...inner,
      request: (request) =>
        Effect.suspend(() => {
          witness.firstRequest ??= witness.moment++
          return inner.request(request)
        })
    }
    const asked = yield* Deferred.make<void>()
    const pause = Effect.suspend(() => random.chance(0.3) ? Effect.sleep(random.below(40)) : yields(random.below(3)))
    const endings: ReadonlyArray<TurnEvent.TurnEvent> = random.pick([
      [FakeSession.end("answer", { worked: random.chance(0.5) })],
      [FakeSession.end("", { worked: random.chance(0.5) })],
      [FakeSession.end("answer", { exit_code: random.below(2) })],
      [FakeSession.end("answer", { stop_reason: random.pick(TurnEvent.StopReason.literals) })],
      [FakeSession.end("answer"), FakeSession.end("again")],
      [FakeSession.end("answer"), FakeSession.chunk("late")],
      []
    ])
    const tail = random.pick([
      Stream.empty,
      Stream.empty,
      Stream.empty,
      Stream.fail(TurnError.reported(Failure.make("RATE_LIMIT", "slow down"))),
      Stream.die("bug"),
      Stream.never,
      Stream.fromEffect(Effect.interrupt),
      Stream.unwrap(Effect.as(Deferred.await(asked), Stream.make(FakeSession.end("asked", { stop_reason: "aborted" }))))
    ])
    const events = [...Array.from({ length: random.below(10) }, () => randomEvent(random)), ...(random.chance(0.7) ? endings : [])]
    let first = true
    const turn = () =>
      Stream.concat(
        Stream.fromIterable(events).pipe(
          Stream.rechunk(1 + random.below(3)),
          Stream.mapEffect((event) =>
            Effect.as(pause, event).pipe(Effect.tap(() =>
              Effect.sync(() => {
                if (event.type !== "harness/end" || !first) return
                first = false
                if (event.data.stop_reason === "completed") witness.success = witness.moment++
              })
            ))
          )
        ),
        tail
      )
    const fake = FakeHarness.make({
      turn,
      opening: random.pick([
        Effect.void,
        pause,
        pause,
        Effect.never,
        Effect.fail(HarnessError.notStarted(Failure.make("SPAWN_FAILED", "no"))),
        Effect.die("bug")
      ].slice(0, random.chance(0.8) ? 3 : 6) as unknown as readonly [Effect.Effect<void, HarnessError.HarnessError>]),
      interrupt: random.pick([Effect.asVoid(Deferred.succeed(asked, undefined)), Effect.void, Effect.never, Effect.die("bug")]),
      backgroundDone: random.pick([Effect.void, Effect.void, pause, Effect.never, Effect.die("bug")]),
      close: random.pick([
        Effect.succeed(Harness.nothingFound),
        Effect.as(yields(5), { ...Harness.nothingFound, backgroundKilled: [{ id: "b" }] }),
        Effect.succeed({ ...Harness.nothingFound, problems: ["stuck"] }),
        Effect.die("bug")
      ])
    })
    const failsAt = random.chance(0.2) ? random.below(20) : -1
    const hangsAt = random.chance(0.1) ? random.below(20) : -1
    let offered = 0
    const sink: Scene.Options["sink"] = () =>
      Effect.suspend((): Effect.Effect<void, ChannelError.ChannelError> => {
        const nth = offered++
        if (nth === failsAt || nth === hangsAt) {
          witness.lostReader = true
          return nth === hangsAt ? Effect.never : random.chance(0.5) ? Effect.fail(ChannelError.io("EPIPE")) : Effect.die("bug")
        }
        return yields(random.below(3))
      })
    const noSaveAt = random.chance(0.15) ? 1 + random.below(12) : 0
    const store = yield* FailingStore.make((nth) => nth === noSaveAt, Effect.suspend(() => yields(random.below(2))))
    const told: Scene.Told = { events: [], result: undefined }
    const options: Scene.Options = {
      fake,
      cancel,
      sink,
      deliver: random.pick(["stream", "caller"]),
      grace: random.pick([0, 10, 50]),
      readerGrace: 100,
      spec: {
        ...(random.chance(0.3) ? { limits: { timeout_s: (1 + random.below(100)) / 1000 } } : {}),
        background: random.pick(["wait", "kill"])
      }
    }
    const fiber = yield* Effect.forkChild(
      Effect.scoped(Effect.flatMap(Scene.prepare(options), (prepared) => Scene.execute(prepared, options, told))).pipe(
        Effect.provideService(SessionStore.SessionStore, store)
      )
    )
    let interrupted = false
    const actors: Array<Fiber.Fiber<unknown, unknown>> = []
    for (let count = random.below(4); count > 0; count--) {
      const request: Cancel.Request = { cause: random.pick(Verdict.AbortCause.literals), mode: random.pick(Verdict.CancelMode.literals) }
      const act = random.chance(0.2)
        ? Effect.suspend(() => {
          interrupted = true
          witness.firstRequest ??= witness.moment++
          return Fiber.interrupt(fiber)
        })
        : cancel.request(request)
      actors.push(yield* Effect.forkChild(Effect.andThen(random.chance(0.5) ? Effect.sleep(random.below(80)) : yields(random.below(30)), act)))
    }
    for (let round = 0; round < 30 && fiber.pollUnsafe() === undefined; round++) {
      yield* TestClock.adjust(10)
      yield* yields(20)
    }
    // Whoever still hangs by now hears a hard request, and a grace later everybody is gone.
    yield* cancel.request({ cause: "parent", mode: "hard" })
    for (let round = 0; round < 30 && fiber.pollUnsafe() === undefined; round++) {
      yield* TestClock.adjust(50)
      yield* yields(50)
    }
    assert.isDefined(fiber.pollUnsafe(), `seed ${seed}: the run hangs`)
    yield* Effect.forEach(actors, Fiber.interrupt)
    const how = Scene.exitOf(yield* Fiber.await(fiber))
    assert.include(interrupted ? ["success", "interrupted"] : ["success"], how, `seed ${seed}`)
    // A caller that is interrupted before the run begins leaves nothing at all.
    if (how === "interrupted" && told.events.length === 0 && !witness.lostReader) {
      assert.strictEqual(fake.counts.opened, 0, `seed ${seed}`)
      return how
    }
    // A log that could not be written has less than a whole turn.
    const isLess = (fault: string) => noSaveAt > 0 && /^log: (?:begins with|ends with|has more than one turn)/u.test(fault)
    assert.deepStrictEqual(Scene.faults(told, fake, { cut: witness.lostReader }).filter((fault) => !isLess(fault)), [], `seed ${seed}`)
    const { result } = told
    if (result?.result.success === true) {
      assert.isDefined(witness.success, `seed ${seed}: success without an ending`)
      assert.isTrue(
        witness.firstRequest === undefined || (witness.success ?? Infinity) < witness.firstRequest,
        `seed ${seed}: success although the end was asked for before`
      )
    }
    return result === undefined ? how : Scene.show(result)
  }).pipe(Effect.provideService(Scheduler.Scheduler, SeededScheduler.make(seed)))

const seeds = Number(process.env["TURNPIKE_SEEDS"] ?? 1000)

describe("any run", () => {
  it.effect(`ends once, whole, and honestly (${seeds} seeds)`, () =>
    Effect.gen(function*() {
      const outcomes = new Map<string, number>()
      for (let seed = 0; seed < seeds; seed++) {
        const outcome = yield* randomRun(seed)
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      }
      // The runs are worth something only if they end in many ways.
      for (const reason of ["success", "graceful_cancel", "hard_cancel", "timeout", "adapter_error"]) {
        assert.isTrue([...outcomes.keys()].some((outcome) => outcome.startsWith(reason)), `no run ended with ${reason}`)
      }
    }), 120_000)

  it.effect("is repeated by its seed", () =>
    Effect.gen(function*() {
      for (let seed = 0; seed < 20; seed++) assert.strictEqual(yield* randomRun(seed), yield* randomRun(seed), `seed ${seed}`)
    }))
})
