import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Simulation from "./support/driverSimulation.ts"

describe("a session driver", () => {
  it("keeps its promises in 10 000 random lives", async () => {
    assert.deepStrictEqual(await Effect.runPromise(Simulation.simulateAll(Array.from({ length: 10_000 }, (_, seed) => seed))), [])
  }, 300_000)
})
