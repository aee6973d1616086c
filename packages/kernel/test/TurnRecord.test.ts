import { assert, describe, it } from "@effect/vitest"
import type { SessionEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { TurnRecord } from "../src/index.ts"
import * as Log from "./support/LogEvents.ts"
import * as Scene from "./support/Scene.ts"

/** A record with what tells it of events. */
const recording = (options: Parameters<typeof TurnRecord.make>[1] = {}) =>
  Effect.gen(function*() {
    let tell: (event: SessionEvent.SessionEvent) => Effect.Effect<void, unknown> = () => Effect.void
    const record = yield* TurnRecord.make({
      observe: (observer) =>
        Effect.sync(() => {
          tell = observer
        })
    }, options)
    let seq = 0
    return { record, tell: (...bodies: ReadonlyArray<SessionEvent.Body>) => Effect.forEach(Log.log(bodies, seq), (event) => Effect.andThen(Effect.sync(() => seq++), tell(event)), { discard: true }) }
  })

const test = (name: string, body: Effect.Effect<void, unknown, Scope.Scope>) => it.effect(name, () => Effect.scoped(body))

describe("the record of a turn", () => {
  test("has the events of the turn that was begun last, without chunks, as the log has them", Effect.gen(function*() {
    const { record, tell } = yield* recording()
    assert.deepStrictEqual(record.entries(1), [])
    yield* tell(...Log.turn(1, "one"))
    yield* tell(Log.turnStart(2), Log.stepStart(), Log.chunk("a"), Log.answer("a"))
    assert.deepStrictEqual(record.entries(1), [])
    assert.deepStrictEqual(record.entries(2).map(({ seq, type }) => `${seq} ${type}`), ["5 turn/start", "6 step/start", "8 assistant/message"])
    assert.strictEqual(record.notKept(), 0)
  }))

  test("is bounded: it counts what it did not keep, and stays in balance", Effect.gen(function*() {
    const { record, tell } = yield* recording({ maxEntries: 8 })
    yield* tell(...Log.turn(1, "earlier", Log.answer("much"), Log.answer("too"), Log.answer("much"), Log.answer("to keep")))
    yield* tell(Log.turnStart(2), Log.claimed(2, "r"), Log.stepStart(), Log.user("hello"))
    yield* tell(Log.call("kept"), Log.ask("p"), Log.answer("kept"), Log.answer("kept"), Log.answer("too many"), Log.call("lost"))
    yield* tell(Log.result("kept"), Log.result("lost"), Log.decide("p", "deny"), Log.stepEnd(), Log.stepStart(2), Log.stepEnd(2), Log.turnEnd(2))
    const entries = record.entries(2)
    assert.deepStrictEqual(entries.map(({ type }) => type), [
      "turn/start",
      "inbox/claimed",
      "step/start",
      "user/message",
      "tool/call",
      "permission/request",
      "assistant/message",
      "assistant/message",
      "tool/result",
      "permission/decision",
      "step/end",
      "turn/end"
    ])
    assert.deepStrictEqual([record.notKept(), Scene.faultsOfLog(entries)], [5, []])
  }))

  test("keeps no more of a million events than its bound", Effect.gen(function*() {
    const { record, tell } = yield* recording()
    yield* tell(Log.turnStart(1))
    const many = Array.from({ length: 1000 }, () => Log.answer("x"))
    for (let round = 0; round < 1000; round++) yield* tell(...many)
    yield* tell(Log.turnEnd(1))
    assert.deepStrictEqual([record.entries(1).length, record.notKept()], [TurnRecord.defaultMaxEntries + 1, 900_001])
  }))
})
