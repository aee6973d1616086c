import { assert, describe, it } from "@effect/vitest"
import { type KeyboardInput, TerminalPermission } from "@turnpike/channel-terminal"
import { Effect } from "effect"

const request = { requestId: "r", toolName: "exec\u001bute", input: { command: "ls\n-la" }, description: undefined, listed: false }

const answered = (typed: KeyboardInput.Typed) =>
  Effect.gen(function*() {
    const asked: Array<string> = []
    let interrupts = 0
    const keyboard: KeyboardInput.KeyboardInput = {
      ask: () => Effect.die("the question is no prompt"),
      question: (prompt) =>
        Effect.sync(() => {
          asked.push(prompt)
          return typed
        })
    }
    const decider = TerminalPermission.make({
      keyboard,
      redact: (text) => text.replace("-la", "[REDACTED]"),
      shown: (requestId) => Effect.sync(() => asked.push(`after ${requestId}`)),
      interrupted: Effect.sync(() => interrupts++)
    })
    const { decision } = yield* decider.decide(request)
    return { asked, decision, interrupts }
  })

describe("TerminalPermission", () => {
  it.effect("takes yes for yes", () =>
    Effect.gen(function*() {
      for (const text of ["y", "Y", "yes", " YES "]) {
        assert.deepStrictEqual(yield* answered({ _tag: "Line", text }), {
          asked: ["after r", "Allow exec␛ute {\"command\":\"ls\\n[REDACTED]\"}? [y/N] "],
          decision: "allow",
          interrupts: 0
        })
      }
    }))

  it.effect("takes anything else for no, and tells of an interrupt", () =>
    Effect.gen(function*() {
      for (const text of ["", "n", "yep", "y n"]) assert.strictEqual((yield* answered({ _tag: "Line", text })).decision, "deny")
      assert.strictEqual((yield* answered({ _tag: "End" })).decision, "deny")
      const interrupted = yield* answered({ _tag: "Interrupt", wasEmpty: true })
      assert.deepStrictEqual([interrupted.decision, interrupted.interrupts], ["deny", 1])
    }))
})
