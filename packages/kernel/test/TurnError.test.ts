import { assert, describe, it } from "@effect/vitest"
import { Failure } from "@turnpike/contract"
import { ChannelError, HarnessError, TurnError } from "../src/index.ts"

const failure = Failure.make("RATE_LIMIT", "too many requests")

describe("TurnError", () => {
  it("says what happened, with a stable code for each reason", () => {
    const errors = [
      TurnError.exec(failure),
      TurnError.io("the pipe broke"),
      TurnError.preempted(),
      TurnError.reported(failure),
      TurnError.noTerminal("it stopped")
    ]
    assert.deepStrictEqual(errors.map((error) => [error.reason._tag, error.message, error.failure.code]), [
      ["Exec", "agent turn failed: too many requests", "RATE_LIMIT"],
      ["Io", "turn I/O error: the pipe broke", "HARNESS_IO"],
      ["Preempted", "turn pre-empted", "PREEMPTED"],
      ["Reported", "agent turn failed: too many requests", "RATE_LIMIT"],
      ["NoTerminal", "agent turn failed: it stopped", "NO_TERMINAL"]
    ])
  })

  it("keeps its cause", () => {
    const cause = new Error("EPIPE")
    const { reason } = TurnError.io("x", cause)
    assert.strictEqual(reason._tag === "Io" ? reason.cause : undefined, cause)
  })
})

describe("ChannelError", () => {
  it("says what happened", () => {
    assert.deepStrictEqual(
      [ChannelError.recv("a"), ChannelError.publish("b"), ChannelError.io("c", new Error("d"))].map((error) => [
        error.message,
        error.failure.code
      ]),
      [
        ["channel receive error: a", "CHANNEL_LOST"],
        ["channel publish error: b", "CHANNEL_LOST"],
        ["channel I/O error: c", "CHANNEL_LOST"]
      ]
    )
  })
})

describe("HarnessError", () => {
  it("says what happened, and names the option that cannot be honoured", () => {
    const errors = [
      HarnessError.unsupported("h", "model", "it has one"),
      HarnessError.notStarted(failure),
      HarnessError.sessionLost("h", "s"),
      HarnessError.sessionLost("h", "s", "line 1 is no JSON")
    ]
    assert.deepStrictEqual(errors.map((error) => [error.message, error.failure.code, error.failure.data]), [
      ["h cannot honour model: it has one", "UNSUPPORTED", { harness: "h", option: "model" }],
      ["too many requests", "RATE_LIMIT", undefined],
      ["h has no session s any more", "SESSION_LOST", undefined],
      ["h cannot read its session s: line 1 is no JSON", "SESSION_LOST", undefined]
    ])
  })
})
