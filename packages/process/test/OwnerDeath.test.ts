import { assert, describe, it } from "@effect/vitest"
import { killOwner } from "./support/ownerDeath.ts"
import { isRoot, required, stages } from "./support/stages.ts"

describe("an owner killed with SIGKILL", () => {
  for (const stage of stages(isRoot ? "root" : "an ordinary user")) {
    // The slow suite does it a hundred times, at random moments.
    it.skipIf(stage.missing !== undefined && !required)(`leaves nothing: ${stage.title}${stage.missing === undefined ? "" : ` (left out: ${stage.missing})`}`, async () => {
      assert.strictEqual(stage.missing, undefined)
      const rounds = [await killOwner(stage, 0), await killOwner(stage, 300)]
      assert.deepStrictEqual(rounds.map((round) => round.survivors), [[], []])
    }, 60_000)
  }
})
