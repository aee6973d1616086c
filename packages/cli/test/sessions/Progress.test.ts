import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Progress from "../../src/sessions/Progress.ts"

const terminal = (isTTY: boolean, columns = 20) => {
  const written: Array<string> = []
  return { written, target: { isTTY, columns, write: (text: string) => written.push(text) } }
}

describe("the progress of a work", () => {
  it.effect("is told from a second on, on one line that is gone at its end", () =>
    Effect.gen(function*() {
      const { target, written } = terminal(true)
      let done = 0
      yield* Effect.scoped(Effect.gen(function*() {
        yield* Progress.show(() => `${++done} of a very long line`, target)
        yield* TestClock.adjust("999 millis")
        assert.deepStrictEqual(written, [])
        yield* TestClock.adjust("201 millis")
      }))
      const erase = "\r\u001b[2K"
      assert.deepStrictEqual(written, [`${erase}1 of a very long l…`, `${erase}2 of a very long l…`, erase])
    }))

  it.effect("is told whole where the terminal does not say how wide it is", () =>
    Effect.gen(function*() {
      const { target, written } = terminal(true, 0)
      yield* Effect.scoped(Effect.andThen(Progress.show(() => "12 of a very long line", target), TestClock.adjust("1 second")))
      assert.deepStrictEqual(written, ["\r\u001b[2K12 of a very long line", "\r\u001b[2K"])
    }))

  it.effect("is not told of a work that is short, and nowhere but on a terminal", () =>
    Effect.gen(function*() {
      const quick = terminal(true)
      yield* Effect.scoped(Progress.show(() => "x", quick.target))
      const file = terminal(false)
      yield* Effect.scoped(Effect.andThen(Progress.show(() => "x", file.target), TestClock.adjust("10 seconds")))
      assert.deepStrictEqual([quick.written, file.written], [[], []])
    }))

  it("is told in words that people read", () => {
    assert.deepStrictEqual([Progress.bytes(0), Progress.bytes(1), Progress.bytes(999_999), Progress.bytes(12_340_000), Progress.count(1234567)], ["0 kB", "1 kB", "1000 kB", "12.3 MB", "1,234,567"])
    assert.deepStrictEqual([Progress.part(1, undefined, String), Progress.part(1, 0, String), Progress.part(1, 3, String), Progress.part(9, 3, String)], ["", "", " of 3 (33 %)", " of 3 (100 %)"])
  })
})
