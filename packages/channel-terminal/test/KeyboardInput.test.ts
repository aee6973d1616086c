import { assert, describe, it } from "@effect/vitest"
import { KeyboardInput } from "@turnpike/channel-terminal"
import { Effect, Fiber } from "effect"
import { PassThrough } from "node:stream"

const make = () => {
  const input = new PassThrough()
  const output = new PassThrough()
  output.resume()
  return { input, keyboard: KeyboardInput.make(input, output) }
}

/** Asks, then types. */
const typed = ({ input, keyboard }: ReturnType<typeof make>, keys: string) =>
  Effect.gen(function*() {
    const asking = yield* Effect.forkChild(keyboard.ask("> "), { startImmediately: true })
    input.write(keys)
    return yield* Fiber.join(asking)
  })

const line = (text: string): KeyboardInput.Typed => ({ _tag: "Line", text })

describe("KeyboardInput", () => {
  it.live("edits a line: backspace, Ctrl-A, Ctrl-U", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* typed(make(), "helo\u007flo\r"), line("hello"))
      assert.deepStrictEqual(yield* typed(make(), "world\u0001hello \r"), line("hello world"))
      assert.deepStrictEqual(yield* typed(make(), "wrong\u0015right\r"), line("right"))
    }))

  it.live("remembers lines for the arrow keys, and answers to questions not", () =>
    Effect.gen(function*() {
      const both = make()
      yield* typed(both, "first\r")
      const question = yield* Effect.forkChild(both.keyboard.question("? "), { startImmediately: true })
      both.input.write("secret\r")
      assert.deepStrictEqual(yield* Fiber.join(question), line("secret"))
      assert.deepStrictEqual(yield* typed(both, "\u001b[A\r"), line("first"))
    }))

  it.live("keeps what was pasted beyond the line, also the beginning of one", () =>
    Effect.gen(function*() {
      const both = make()
      assert.deepStrictEqual(yield* typed(both, "one\rtwo\rthr"), line("one"))
      assert.deepStrictEqual(yield* both.keyboard.ask("> "), line("two"))
      assert.deepStrictEqual(yield* typed(both, "ee\r"), line("three"))
    }))

  it.live("tells Ctrl-C from Ctrl-D", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* typed(make(), "\u0003"), { _tag: "Interrupt", wasEmpty: true })
      assert.deepStrictEqual(yield* typed(make(), "typed\u0003"), { _tag: "Interrupt", wasEmpty: false })
      const both = make()
      assert.deepStrictEqual(yield* typed(both, "\u0004"), { _tag: "End" })
      assert.deepStrictEqual(yield* both.keyboard.ask("> "), { _tag: "End" })
    }))

  it.live("ends where the terminal went away, also between two questions", () =>
    Effect.gen(function*() {
      const both = make()
      const asking = yield* Effect.forkChild(both.keyboard.ask("> "), { startImmediately: true })
      both.input.end()
      assert.deepStrictEqual(yield* Fiber.join(asking), { _tag: "End" })
      assert.deepStrictEqual(yield* both.keyboard.question("? "), { _tag: "End" })
    }))

  it.live("gives the keyboard back when asking is interrupted", () =>
    Effect.gen(function*() {
      const both = make()
      const asking = yield* Effect.forkChild(both.keyboard.question("? "), { startImmediately: true })
      yield* Fiber.interrupt(asking)
      assert.isTrue(both.input.isPaused())
      assert.deepStrictEqual(yield* typed(both, "next\r"), line("next"))
    }))
})
