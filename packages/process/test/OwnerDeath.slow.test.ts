import { assert, describe, it } from "@effect/vitest"
import { killOwner, random, type Round } from "./support/ownerDeath.ts"
import { isRoot, required, stages, type User } from "./support/stages.ts"

/** Set TURNPIKE_TEST_SEED to repeat a run. */
const seed = Number(process.env["TURNPIKE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 32))

const users: ReadonlyArray<User> = isRoot ? ["root", "an ordinary user"] : ["an ordinary user"]

/** For each user a hundred rounds over the four stages, and some under Deno. */
const plan = users.flatMap((user) => [
  ...stages(user).map((stage) => ({ stage, rounds: 25 })),
  ...stages(user, "Deno").map((stage) => ({ stage, rounds: 5 }))
])

describe(`an owner killed with SIGKILL at random moments (TURNPIKE_TEST_SEED=${seed})`, () => {
  plan.forEach(({ rounds, stage }, index) => {
    it.skipIf(stage.missing !== undefined && !required)(`leaves nothing in ${rounds} rounds: ${stage.title}${stage.missing === undefined ? "" : ` (left out: ${stage.missing})`}`, async () => {
      assert.strictEqual(stage.missing, undefined)
      const next = random(seed + index)
      const done: Array<Round> = []
      // Most within the 150 ms in which the containment and the program begin.
      for (let round = 0; round < rounds; round++) done.push(await killOwner(stage, Math.floor(next() * (next() < 0.8 ? 150 : 600))))
      const leaks = done.filter((round) => round.survivors.length > 0)
      console.log(`${stage.title}: seed ${seed + index}, ${done.length} rounds, ${leaks.length} with survivors, ${done.filter((round) => round.running > 0).length} killed while something ran`)
      assert.deepStrictEqual(leaks, [])
    })
  })
})
