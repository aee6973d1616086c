import { assert, describe, it } from "@effect/vitest"
import { Screen, TerminalPrompts } from "@turnpike/channel-terminal"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Collected from "./support/Collected.ts"

const line = (text: string): TerminalPrompts.Reading => ({ _tag: "Line", text })

/** Prompts of these readings, and what was shown beside them. */
const prompts = (...readings: ReadonlyArray<Effect.Effect<TerminalPrompts.Reading>>) => {
  const out = Collected.make(false)
  const err = Collected.make(false)
  const left = [...readings]
  const asked: Array<boolean> = []
  const made = TerminalPrompts.make({
    read: (continued) =>
      Effect.suspend(() => {
        asked.push(continued)
        return left.shift() ?? Effect.succeed({ _tag: "End" })
      }),
    screen: Screen.make(out.outlet, err.outlet)
  })
  return { ...made, asked, shown: () => err.text() }
}

describe("prompts at a terminal", () => {
  it.effect("keep the lines of one that is open when asking is interrupted", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<TerminalPrompts.Reading>()
      const { asked, next } = prompts(Effect.succeed(line("one\\")), Deferred.await(gate), Effect.succeed(line("two")))
      const asking = yield* Effect.forkChild(next, { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(yield* next, { _tag: "Ready", text: "one\ntwo" })
      assert.deepStrictEqual(asked, [false, true, true])
    }))

  it.effect("say who left: the end of input, or Ctrl-C twice", () =>
    Effect.gen(function*() {
      const interrupt = Effect.succeed<TerminalPrompts.Reading>({ _tag: "Interrupt", wasEmpty: true })
      const twice = prompts(interrupt, interrupt)
      assert.deepStrictEqual(yield* twice.next, { _tag: "Closed", wasInterrupted: true })
      assert.strictEqual(twice.shown(), "(Ctrl-C again, Ctrl-D or /exit to leave)\n")
      assert.deepStrictEqual(yield* prompts().next, { _tag: "Closed", wasInterrupted: false })
      assert.deepStrictEqual(yield* prompts(Effect.succeed(line(" /exit "))).next, { _tag: "Closed", wasInterrupted: false })
    }))

  it.effect("pass over empty lines and lines that are no text, and remember that there was one", () =>
    Effect.gen(function*() {
      const bad = Effect.succeed<TerminalPrompts.Reading>({ _tag: "Bad", why: "line 1 is not UTF-8" })
      const all = prompts(bad, Effect.succeed(line("  ")), Effect.succeed(line("hello")))
      assert.isFalse(all.hasFailed())
      assert.deepStrictEqual(yield* all.next, { _tag: "Ready", text: "hello" })
      assert.deepStrictEqual([all.hasFailed(), all.shown()], [true, "line 1 is not UTF-8; nothing was asked\n"])
    }))
})
