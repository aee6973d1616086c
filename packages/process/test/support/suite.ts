/** Runs scenarios on a stage, one test for each fact. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import type { Facts } from "./scenarios.ts"
import { perform, required, type Stage } from "./stages.ts"

export const suite = (
  stage: Stage,
  expected: { readonly [name: string]: { readonly fact: string; readonly facts: Facts } },
  concurrency: number
): void => {
  if (stage.missing !== undefined && !required) {
    describe(stage.title, () => {
      it.skip(`is left out: ${stage.missing}`, () => {})
    })
    return
  }
  describe(stage.title, () => {
    let performed: Awaited<ReturnType<typeof perform>>
    beforeAll(async () => {
      assert.strictEqual(stage.missing, undefined, `TURNPIKE_REQUIRE_CONTAINMENT=1, and ${stage.missing}`)
      performed = await perform(stage, Object.keys(expected), concurrency)
    }, 240_000)

    for (const [name, { fact, facts }] of Object.entries(expected)) {
      it(fact, () => {
        assert.deepStrictEqual(performed.outcomes.get(name) ?? { failure: `no answer; exit ${performed.code}; ${performed.errors}` }, { facts })
      })
    }

    it("has left nothing alive", () => {
      assert.deepStrictEqual([performed.code, performed.errors, performed.left], [0, "", []])
    })
  })
}
