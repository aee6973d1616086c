import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Permission } from "../src/index.ts"

const request = (listed: boolean): Permission.Request => ({
  requestId: "r",
  toolName: "Write",
  input: undefined,
  description: undefined,
  listed
})

describe("Permission", () => {
  it.effect("deny refuses everything at once, and names the tool", () =>
    Effect.gen(function*() {
      for (const listed of [true, false]) {
        assert.deepStrictEqual(yield* Permission.deny.decide(request(listed)), {
          decision: "deny",
          reason: "Write was not allowed and nobody is there to ask"
        })
      }
    }))

  it.effect("allow-listed allows what the allow-list holds and refuses the rest", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Permission.allowListed.decide(request(true))).decision, "allow")
      assert.deepStrictEqual(yield* Permission.allowListed.decide(request(false)), {
        decision: "deny",
        reason: "the allow-list does not hold Write"
      })
    }))

  it("each policy that needs no person has its decider, with the policy's name", () => {
    assert.deepStrictEqual(
      (["deny", "allow-listed"] as const).map((policy) => Permission.fromPolicy(policy).name),
      ["deny", "allow-listed"]
    )
  })
})
