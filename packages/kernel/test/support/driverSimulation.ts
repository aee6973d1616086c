/**
 * A random life of a session driver, decided by one seed: who sends, cancels,
 * injects, closes, and when; what the turns do; which commits fail; and in which
 * order ready fibers run.
 */
import { Failure, type InboxEntry, type Verdict } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import * as Scheduler from "effect/Scheduler"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { SessionDriver, SessionStore } from "../../src/index.ts"
import * as Scene from "./DriverScene.ts"
import * as Random from "./Random.ts"
import * as SeededScheduler from "./SeededScheduler.ts"

const broken = new SessionStore.SessionStoreError({ failure: Failure.make("SERVER", "away") })

/** A turn that takes a while, may be deaf to graceful requests, may fail or break, and may take what waits for its next step. */
const randomTurn = (random: Random.Random, running: { count: number; most: number }): SessionDriver.Execute => ({ append, cancel, claimNextStep }) =>
  Effect.gen(function*() {
    const length = random.below(60)
    const asked: Effect.Effect<Verdict.Verdict> = Effect.map(random.chance(0.7) ? cancel.graceful : cancel.hard, (request) => ({ type: "aborted", ...request }))
    if (random.chance(0.3)) yield* append({ type: "assistant/message", data: { text: "a" }, surface_op: "append" })
    if (random.chance(0.2)) yield* claimNextStep
    const ended = yield* Effect.raceFirst(asked, Effect.as(Effect.sleep(length), { type: "completed" } as const))
    // Work that was started settles before the turn is over.
    if (random.chance(0.3)) yield* Effect.sleep(random.below(20))
    if (random.chance(0.1)) return yield* Effect.die(new Error("broke"))
    if (random.chance(0.1)) return yield* broken
    return ended
  }).pipe(
    (turn) => Effect.suspend(() => {
      running.count++
      running.most = Math.max(running.most, running.count)
      return Effect.ensuring(turn, Effect.sync(() => void running.count--))
    })
  )

/** Lets most batches in, some in other words, and not always as it should. */
const randomPolicy = (random: Random.Random): NonNullable<SessionDriver.Options["gate"]> => (messages) => {
  const enter = (entering: typeof messages): Effect.Effect<SessionDriver.Decision> => Effect.succeed({ _tag: "Enter", messages: entering })
  switch (random.below(20)) {
    case 0:
    case 1:
      return Effect.succeed({ _tag: "Reject", by: "policy" })
    case 2:
      return Effect.fail(broken)
    case 3:
      return enter([])
    case 4:
      return enter(messages.map((message) => ({ ...message, text: "said otherwise" })).reverse())
    case 5:
      return enter(messages.slice(1))
    case 6:
      return enter([...messages, ...messages])
    case 7:
      return Effect.andThen(Effect.sleep(random.below(20)), enter(messages))
    default:
      return enter(messages)
  }
}

const kinds = ["followup", "followup", "steer", "inject"] as const

export interface Outcome {
  readonly faults: ReadonlyArray<string>
  /** The log and the fate of every receipt, to compare two lives of one seed. */
  readonly history: string
}

/** Lives one life and says what is wrong with it. */
export const simulate = (seed: number): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const random = Random.make(seed ^ 0x9e3779b9)
    const scene = Scene.make()
    const running = { count: 0, most: 0 }
    const faultRate = random.chance(0.3) ? random.next() * 0.1 : 0
    scene.fault = () => random.chance(faultRate)
    const scope = yield* Scope.make()
    const driver = yield* Scope.provide(
      SessionDriver.make({
        ...scene.options,
        wakeAtStart: true,
        execute: scene.watched(randomTurn(random, running)),
        gate: randomPolicy(random)
      }),
      scope
    ).pipe(Effect.orDie)

    /** Of few keys, so that some are said again. What a key says is the key's. */
    const message = (): SessionStore.Message => {
      if (random.chance(0.7)) return { kind: random.pick(kinds), text: "t", source: "user" }
      const key = random.below(4)
      return { kind: kinds[key] ?? "steer", text: `${key}`, source: "user", key: `k${key}` }
    }
    /** One receipt for each key, whoever sends it when. */
    const byKey = new Map<string, string>()
    const faults: Array<string> = []
    const sent = ({ id, key }: InboxEntry.Receipt) =>
      Effect.sync(() => {
        if (key === undefined) return
        if ((byKey.get(key) ?? id) !== id) faults.push(`${key} is ${byKey.get(key)} and ${id}`)
        byKey.set(key, id)
      })
    const operation = (): Effect.Effect<unknown, SessionStore.SessionStoreError> => {
      switch (random.below(12)) {
        case 0:
        case 1:
        case 2:
        case 3:
          return Effect.flatMap(driver.send(message()), ({ receipt }) => sent(receipt))
        case 4:
          return Effect.flatMap(scene.receiveElsewhere(message()), sent)
        case 5:
          return scene.requestDiscard(`r${1 + random.below(8)}`)
        case 6:
        case 7:
          return driver.cancel({ cause: "user", mode: random.chance(0.7) ? "graceful" : "hard" }, { keepInbox: random.chance(0.5) })
        case 8:
          return driver.injectAsTurn("i", "plugin:x")
        case 9:
          return driver.maintain(Effect.sleep(random.below(20)))
        case 10:
          return driver.background(scene.watched(randomTurn(random, running)))
        default:
          return driver.wake
      }
    }
    const fibers: Array<Fiber.Fiber<unknown, SessionStore.SessionStoreError>> = []
    const count = 4 + random.below(12)
    for (let n = 0; n < count; n++) {
      fibers.push(yield* Effect.forkChild(operation()))
      if (random.chance(0.5)) yield* TestClock.adjust(random.below(40))
      if (random.chance(0.1)) yield* Effect.forkChild(Fiber.interrupt(fibers[random.below(fibers.length)]!))
    }
    const closesEarly = random.chance(0.3)
    if (!closesEarly) {
      scene.fault = () => false
      const settled = yield* Effect.forkChild(Effect.andThen(Effect.forEach(fibers, (fiber) => Fiber.await(fiber)), driver.whenIdle))
      for (let n = 0; n < 60 && settled.pollUnsafe() === undefined; n++) yield* TestClock.adjust(50)
      if (settled.pollUnsafe() === undefined) faults.push("it does not become idle")
      // A message to an idle driver is run, whatever was before.
      const before = scene.events.length
      const sent = yield* Effect.exit(driver.send({ kind: "followup", text: "last", source: "user" }))
      const done = yield* Effect.forkChild(driver.whenIdle)
      for (let n = 0; n < 60 && done.pollUnsafe() === undefined; n++) yield* TestClock.adjust(50)
      if (Exit.isSuccess(sent)) {
        const claimed = scene.events.slice(before).some((event) => event.type === "inbox/claimed")
        if (!claimed) faults.push("a prompt to an idle driver woke nobody")
      }
    }
    const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void))
    for (let n = 0; n < 60 && closing.pollUnsafe() === undefined; n++) yield* TestClock.adjust(50)
    if (closing.pollUnsafe() === undefined) faults.push("it does not close")
    if (running.most > 1) faults.push(`${running.most} turns ran at the same time`)
    const owes = faultRate > 0 && closesEarly
    return {
      faults: [...faults, ...Scene.faults(scene, !owes)],
      history: JSON.stringify([scene.events, scene.discarded])
    }
  }).pipe(
    Effect.provide(TestClock.layer()),
    Effect.provideService(Scheduler.Scheduler, SeededScheduler.make(seed)),
    Effect.provideService(References.MinimumLogLevel, "None")
  )

/** Lives the given seeds, and lists what is wrong with a command that repeats the first one that fails. */
export const simulateAll = (seeds: ReadonlyArray<number>): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function*() {
    const wrong: Array<string> = []
    for (const seed of seeds) {
      const { faults } = yield* simulate(seed)
      if (faults.length > 0) wrong.push(`seed ${seed}: ${faults.join("; ")} (TURNPIKE_SEED=${seed} npx vitest run packages/kernel/test/SessionDriver.simulation.test.ts)`)
      if (wrong.length === 5) break
    }
    return wrong
  })
