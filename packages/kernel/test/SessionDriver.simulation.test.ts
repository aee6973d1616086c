import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Simulation from "./support/driverSimulation.ts"

/** One seed to repeat, or some of those that the slow suite lives all of. */
const seeds = process.env["TURNPIKE_SEED"] === undefined ? Array.from({ length: 400 }, (_, seed) => seed) : [Number(process.env["TURNPIKE_SEED"])]

describe("a session driver under random interleavings", () => {
  it("keeps every turn enclosed, runs one at a time, and gives every receipt one fate", async () => {
    assert.deepStrictEqual(await Effect.runPromise(Simulation.simulateAll(seeds)), [])
  }, 60_000)

  it("lives the same life again for the same seed", async () => {
    for (const seed of seeds.slice(0, 20)) {
      const [first, second] = [await Effect.runPromise(Simulation.simulate(seed)), await Effect.runPromise(Simulation.simulate(seed))]
      assert.strictEqual(first.history, second.history)
    }
  })
})
