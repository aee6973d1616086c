/** Cases about turns that a harness begins by itself. */
import type { TurnEvent } from "@turnpike/contract"
import { type Harness, TurnOutput } from "@turnpike/kernel"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Situation from "../../Situation.ts"
import * as Bench from "./bench.ts"
import type { Case } from "./case.ts"

type OnOwnTurn = NonNullable<Harness.HarnessSession["onOwnTurn"]>
type Told = ReadonlyArray<TurnEvent.TurnEvent>

const prompted = Situation.promptOf("own_turn")
const release = (bench: Bench.Bench) => fs.writeFileSync(path.join(bench.work, "release"), "")
const isOver = (bench: Bench.Bench) => () => fs.existsSync(path.join(bench.work, "over"))

const textOf = (events: Told): string => events.reduce(TurnOutput.add, TurnOutput.empty).text

/** Opens a session in the situation, with its way to hear of turns that nobody prompted. */
const opened = (bench: Bench.Bench): Effect.Effect<{ readonly session: Harness.HarnessSession; readonly onOwnTurn: OnOwnTurn }, unknown, Scope.Scope> =>
  Effect.map(bench.open("own_turn"), (session) => ({
    session,
    onOwnTurn: session.onOwnTurn ?? assert.fail("a harness that begins turns by itself tells of them: the session has no onOwnTurn")
  }))

/** Reads every turn to its end. `begun` has a word as soon as one speaks, `turns` has each as it was told. */
const listening = (onOwnTurn: OnOwnTurn) =>
  Effect.gen(function*() {
    const begun = yield* Deferred.make<void>()
    const turns = yield* Queue.unbounded<Told>()
    yield* onOwnTurn((events) => {
      const told: Array<TurnEvent.TurnEvent> = []
      return Stream.runForEach(events, (event) =>
        Effect.suspend(() => {
          told.push(event)
          return Bench.isText(event) ? Deferred.succeed(begun, undefined) : Effect.void
        })).pipe(Effect.catch((error) => Effect.die(error)), Effect.andThen(Effect.suspend(() => Queue.offer(turns, told))), Effect.asVoid)
    })
    return { begun: Deferred.await(begun), next: Queue.take(turns) }
  })

export const cases: ReadonlyArray<Case> = [
  {
    name: "a turn that the harness begins by itself is told to whoever listens, keeps every rule of a turn, and a prompt waits for its end",
    needs: ["own_turn"],
    run: (bench) =>
      Effect.gen(function*() {
        const { onOwnTurn, session } = yield* opened(bench)
        const { begun, next } = yield* listening(onOwnTurn)
        const { output } = yield* Bench.turn(session, prompted)
        assert.equal(output.text, "I go on later")
        yield* begun
        const { events, fiber } = yield* Bench.start(session, "after")
        assert.equal((yield* Effect.timeoutOption(Fiber.await(fiber), "300 millis"))._tag, "None", "the prompt waits")
        assert.deepEqual(events, [])
        release(bench)
        const own = yield* next
        Bench.checkRules(own)
        const last = own.at(-1)
        assert.deepEqual([last?.type === "harness/end" ? last.data.stop_reason : last?.type, textOf(own)], ["completed", "by myself"])
        assert.equal((yield* Bench.ended({ events, fiber })).stop_reason, "completed")
        assert.deepEqual(Bench.prompts(textOf(events)), [prompted, "after"])
      })
  },
  {
    name: "a turn that the harness begins by itself and nobody listens to is told in the next one, and is no part of its answer",
    needs: ["own_turn"],
    run: (bench) =>
      Effect.gen(function*() {
        const { session } = yield* opened(bench)
        yield* Bench.turn(session, prompted)
        release(bench)
        yield* Bench.eventually("the turn of its own is over", isOver(bench), (over) => over)
        const { events, output } = yield* Bench.turn(session, "after")
        assert.ok(Bench.notices(events).includes("late_frame"), JSON.stringify(Bench.notices(events)))
        assert.deepEqual(Bench.prompts(output.text), [prompted, "after"])
      })
  },
  {
    name: "a reader that leaves a turn that the harness began by itself cuts it off, and the session goes on",
    needs: ["own_turn"],
    run: (bench) =>
      Effect.gen(function*() {
        const { onOwnTurn, session } = yield* opened(bench)
        const left = yield* Deferred.make<void>()
        yield* onOwnTurn((events) =>
          Effect.andThen(Effect.orDie(Stream.runDrain(Stream.takeUntil(events, Bench.isText))), Effect.asVoid(Deferred.succeed(left, undefined))))
        yield* Bench.turn(session, prompted)
        yield* Deferred.await(left)
        const { output } = yield* Bench.turn(session, "after")
        assert.equal(Bench.prompts(output.text).at(-1), "after")
        assert.equal(isOver(bench)(), false)
      })
  }
]
