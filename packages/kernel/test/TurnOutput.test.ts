import { assert, describe, it } from "@effect/vitest"
import { TurnEvent, Usage } from "@turnpike/contract"
import { TurnOutput } from "../src/index.ts"
import * as FakeSession from "./support/FakeSession.ts"

describe("TurnOutput", () => {
  it("gives its text back unchanged, byte for byte", () => {
    for (const text of ["", " a\r\n\t ", "é😀\ud800", "\u0000", "x".repeat(1_000_000)]) {
      assert.strictEqual(TurnOutput.text(TurnOutput.fromText(text)), text)
    }
  })

  it("made from text has no exit code and no usage", () => {
    assert.deepStrictEqual(TurnOutput.fromText("a"), { text: "a", usage: Usage.unavailable })
  })

  it("keeps the exit code that was set last, and the text", () => {
    const output = TurnOutput.withExitCode(TurnOutput.withExitCode(TurnOutput.fromText("a"), 1), -2147483648)
    assert.deepStrictEqual(output, { text: "a", usage: Usage.unavailable, exitCode: -2147483648 })
  })

  it("is the fold of a turn's events: the last usage, and the ending with its text and exit code", () => {
    const usage = (input: number): Usage.Usage => ({
      tokens: { source: "reported", input_tokens: input, output_tokens: 1 },
      cost: { source: "unavailable" }
    })
    const ending = FakeSession.end("done", { exit_code: 3 })
    const output = [
      FakeSession.chunk("do"),
      TurnEvent.make("usage", { usage: usage(1), final: false }),
      FakeSession.message("done"),
      TurnEvent.make("usage", { usage: usage(2), final: true }),
      ending
    ].reduce(TurnOutput.add, TurnOutput.empty)
    assert.deepStrictEqual(output, { text: "done", usage: usage(2), exitCode: 3, end: ending.data })
  })
})
