import { assert, describe, it } from "@effect/vitest"
import { Failure, type SessionEvent } from "@turnpike/contract"
import { HarnessBinding } from "../src/index.ts"
import * as Log from "./support/LogEvents.ts"

const bound = (id: string): SessionEvent.Body => ({ type: "session/bound", data: { harness_session_id: id, resumed: false } })
const ended = (verdict: Parameters<typeof Log.turnEnd>[1]) => Log.turnEnd(1, verdict)

/** What is known after each of the events, in words. */
const known = (...bodies: ReadonlyArray<SessionEvent.Body>) => {
  let binding: HarnessBinding.HarnessBinding | undefined
  return Log.log(bodies).map((event) => {
    binding = HarnessBinding.add(binding, event)
    if (binding === undefined) return "none"
    const doubt = binding.cutOffTurn === undefined ? "" : `, turn ${binding.cutOffTurn} in doubt`
    return `${binding.harnessSessionId} ${binding.isPersisted ? "kept" : "named"}${doubt}`
  })
}

describe("the binding of a session to its harness's own", () => {
  it("begins when the harness names it, and holds once it has answered", () => {
    assert.deepStrictEqual(known(Log.turnStart(1), Log.answer("who?"), bound("a"), Log.chunk("h"), Log.user("p"), Log.answer("hi"), bound("a")), [
      "none",
      "none",
      "a named",
      "a named",
      "a named",
      "a kept",
      "a kept"
    ])
  })

  it("is another one under another id, of which nothing is known to be written", () => {
    assert.deepStrictEqual(known(bound("a"), Log.answer("hi"), bound("b"), Log.result("t")), ["a named", "a kept", "b named", "b kept"])
  })

  it("does not hold for a piece of an answer, nor for what was written of a tool when the turn was closed", () => {
    const piece: SessionEvent.Body = { type: "assistant/message", data: { text: "h", partial: true }, surface_op: "append" }
    const closer: SessionEvent.Body = {
      type: "tool/result",
      data: { call_id: "t", is_error: true, error_code: "TOOL_OUTCOME_UNKNOWN", output: "?" },
      surface_op: "append"
    }
    assert.deepStrictEqual(known(bound("a"), piece, Log.call("t"), closer), ["a named", "a named", "a named", "a named"])
  })

  const verdicts: ReadonlyArray<readonly [string, Parameters<typeof Log.turnEnd>[1]]> = [
    ["kept", { type: "completed" }],
    ["kept", { type: "max-tokens" }],
    ["kept", { type: "max-turns" }],
    ["kept", { type: "refusal" }],
    ["kept", { type: "aborted", cause: "user", mode: "graceful" }],
    ["named, turn 1 in doubt", { type: "aborted", cause: "user", mode: "hard" }],
    ["named", { type: "error", error: Failure.make("RATE_LIMIT", "x") }],
    ["named, turn 1 in doubt", { type: "error", error: Failure.make("HARNESS_IO", "x") }],
    ["named, turn 1 in doubt", { type: "error", error: Failure.make("HARNESS_FAILED", "x") }],
    ["named, turn 1 in doubt", { type: "error", error: Failure.make("STORE_FULL", "x") }],
    ["named, turn 1 in doubt", { type: "interrupted" }],
    ["named", { type: "interrupted", not_started: true }],
    ["named", { type: "blocked", by: "x" }]
  ]
  for (const [how, verdict] of verdicts) {
    it(`is ${how} after ${JSON.stringify(verdict)}`, () => {
      assert.deepStrictEqual(known(bound("a"), ended(verdict)), ["a named", `a ${how}`])
    })
  }

  it("stays in doubt until the harness has heard of a later turn", () => {
    assert.deepStrictEqual(
      known(bound("a"), ended({ type: "interrupted" }), ended({ type: "interrupted", not_started: true }), bound("a"), ended({ type: "completed" })),
      ["a named", "a named, turn 1 in doubt", "a named, turn 1 in doubt", "a named, turn 1 in doubt", "a kept"]
    )
  })
})
