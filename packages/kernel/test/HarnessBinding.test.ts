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
    return binding === undefined ? "none" : `${binding.harnessSessionId} ${binding.isPersisted ? "kept" : "named"}`
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

  it("holds where the harness itself has ended a turn, and not where it was cut off or broke", () => {
    for (const type of ["completed", "max-tokens", "max-turns", "refusal"] as const) {
      assert.deepStrictEqual(known(bound("a"), ended({ type })), ["a named", "a kept"], type)
    }
    for (
      const verdict of [
        { type: "aborted", cause: "user", mode: "hard" },
        { type: "error", error: Failure.make("HARNESS_IO", "x") },
        { type: "interrupted" }
      ] as const
    ) {
      assert.deepStrictEqual(known(bound("a"), ended(verdict)), ["a named", "a named"], verdict.type)
    }
  })
})
