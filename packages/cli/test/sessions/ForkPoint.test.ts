import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as Log from "../../../kernel/test/support/LogEvents.ts"
import * as ForkPoint from "../../src/sessions/ForkPoint.ts"

/** Three turns, which end at 4, 9 and 14, and one that is open. */
const events = Log.log([...Log.turn(1, "a"), ...Log.turn(2, "b"), ...Log.turn(3, "c"), Log.turnStart(4), Log.user("d")])

const search = (log: typeof events, at: number | undefined) => {
  const search = ForkPoint.make("demo", at)
  let read = 0
  for (const event of log) {
    if (search.isOver()) break
    search.add(event)
    read++
  }
  return { seed: search.seed(), read }
}

const refused = (log: typeof events, at: number | undefined) => {
  const { seed } = search(log, at)
  return Result.isFailure(seed) ? [seed.failure.message, seed.failure.remedy] : `${seed.success.length} events`
}

describe("a fork", () => {
  it("has the events up to the end of its last turn, and reads no further", () => {
    assert.deepStrictEqual(search(events, 4), { seed: Result.succeed(events.slice(0, 5)), read: 5 })
    assert.deepStrictEqual(search(events, 9), { seed: Result.succeed(events.slice(0, 10)), read: 10 })
  })

  it("ends with the last turn that has ended, where nothing else is said", () => {
    assert.deepStrictEqual(search(events, undefined), { seed: Result.succeed(events.slice(0, 15)), read: events.length })
  })

  it.each<readonly [number, string, string]>([
    [0, "event 0 of session demo is not the end of a turn", "A fork ends with a turn, near there at 4 (the end of turn 1): write --at 4."],
    [7, "event 7 of session demo is not the end of a turn", "A fork ends with a turn, near there at 4 (the end of turn 1) or at 9 (the end of turn 2): write --at 4 or --at 9."],
    [16, "event 16 of session demo is not the end of a turn", "A fork ends with a turn, near there at 14 (the end of turn 3): write --at 14."],
    [17, "the log of session demo ends at event 16", "A fork ends with a turn, near there at 14 (the end of turn 3): write --at 14."]
  ])("is refused at %d, naming the ends near there", (at, message, remedy) => {
    assert.deepStrictEqual(refused(events, at), [message, remedy])
  })

  it("of a log without an end is refused", () => {
    const nothing = ["no turn of session demo has ended, so that there is nothing to fork", "Begin a session of its own: a fork has at least one turn."]
    assert.deepStrictEqual([refused([], undefined), refused([], 3), refused(events.slice(0, 3), 2)], [nothing, nothing, nothing])
  })

  it("is where any turn of a log ends, and nowhere else", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const log = Log.random(seed, 60)
      for (const event of log) assert.strictEqual(Result.isSuccess(search(log, event.seq).seed), event.type === "turn/end")
    }
  })
})
