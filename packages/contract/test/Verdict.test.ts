import { Failure, Verdict } from "@turnpike/contract"
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"

const error = Failure.make("OVERLOADED", "the model's service is overloaded")

const all: ReadonlyArray<Verdict.Verdict> = [
  { type: "completed" },
  { type: "max-tokens" },
  { type: "max-turns" },
  { type: "refusal" },
  { type: "blocked", by: "guard" },
  { type: "error", error },
  { type: "interrupted" },
  ...Verdict.AbortCause.literals.flatMap((cause) =>
    Verdict.CancelMode.literals.map((mode) => ({ type: "aborted" as const, cause, mode }))
  )
]

describe("Verdict.consequences", () => {
  it("is this table", () => {
    const rows = all.map((verdict) => {
      const { exitCode, reason, success } = Verdict.consequences(verdict)
      const name = verdict.type === "aborted" ? `aborted ${verdict.cause} ${verdict.mode}` : verdict.type
      return [name, reason, success, exitCode, Verdict.failureOf(verdict)?.code ?? null]
    })
    assert.deepStrictEqual(rows, [
      ["completed", "success", true, 0, null],
      ["max-tokens", "adapter_error", false, 3, "MAX_TOKENS"],
      ["max-turns", "adapter_error", false, 3, "MAX_TURNS"],
      ["refusal", "adapter_error", false, 3, "REFUSAL"],
      ["blocked", "adapter_error", false, 3, "BLOCKED"],
      ["error", "adapter_error", false, 3, "OVERLOADED"],
      ["interrupted", "adapter_error", false, 3, "INTERRUPTED"],
      ["aborted user graceful", "graceful_cancel", false, 130, "CANCELLED"],
      ["aborted user hard", "hard_cancel", false, 130, "CANCELLED"],
      ["aborted parent graceful", "graceful_cancel", false, 143, "CANCELLED"],
      ["aborted parent hard", "hard_cancel", false, 143, "CANCELLED"],
      ["aborted hook graceful", "graceful_cancel", false, 3, "CANCELLED"],
      ["aborted hook hard", "hard_cancel", false, 3, "CANCELLED"],
      ["aborted disposed graceful", "graceful_cancel", false, 3, "CANCELLED"],
      ["aborted disposed hard", "hard_cancel", false, 3, "CANCELLED"],
      ["aborted timeout graceful", "timeout", false, 3, "TIME_LIMIT"],
      ["aborted timeout hard", "timeout", false, 3, "TIME_LIMIT"],
      ["aborted silence graceful", "timeout", false, 3, "SILENCE"],
      ["aborted silence hard", "timeout", false, 3, "SILENCE"],
      ["aborted budget graceful", "timeout", false, 3, "BUDGET"],
      ["aborted budget hard", "timeout", false, 3, "BUDGET"],
      ["aborted policy_violation graceful", "hard_cancel", false, 3, "POLICY_VIOLATION"],
      ["aborted policy_violation hard", "hard_cancel", false, 3, "POLICY_VIOLATION"],
      ["aborted channel_lost graceful", "adapter_error", false, 3, "CHANNEL_LOST"],
      ["aborted channel_lost hard", "adapter_error", false, 3, "CHANNEL_LOST"]
    ])
  })

  it.effect("says success in all of its ways or in none, whatever the verdict", () =>
    Effect.gen(function*() {
      const checked = yield* Arbitrary.checkEffect(Arbitrary.schema(Verdict.Verdict), (verdict) => {
        const { exitCode, reason, success } = Verdict.consequences(verdict)
        const says = [verdict.type === "completed", reason === "success", exitCode === 0, Verdict.failureOf(verdict) === undefined]
        return says.every((saying) => saying === success)
      }, { runs: 500, seed: "consequences" })
      assert.strictEqual(checked._tag, "Passed", Arbitrary.formatCheckFailure(checked))
    }))

  it("ranks every reason once, the strongest first", () => {
    assert.deepStrictEqual(Verdict.reasonsByRank, ["hard_cancel", "adapter_error", "timeout", "graceful_cancel", "success"])
    assert.deepStrictEqual([...new Set(all.map((verdict) => Verdict.consequences(verdict).reason))].sort(), [...Verdict.reasonsByRank].sort())
  })
})

describe("Verdict.failureOf", () => {
  it("hands on the failure of a failed turn unchanged", () => {
    assert.strictEqual(Verdict.failureOf({ type: "error", error }), error)
  })
})
