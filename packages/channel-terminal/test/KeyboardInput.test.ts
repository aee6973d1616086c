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

  it.live("takes a Ctrl-D that came before the line was asked for, after what was typed before it", () =>
    Effect.gen(function*() {
      const ahead = make()
      ahead.input.write("\0")
      assert.deepStrictEqual(yield* ahead.keyboard.ask("> "), { _tag: "End" })
      assert.deepStrictEqual(yield* ahead.keyboard.ask("> "), { _tag: "End" })
      const more = make()
      more.input.write("one\ntwo\n\0")
      const readings = [yield* more.keyboard.ask("> "), yield* more.keyboard.ask("> "), yield* more.keyboard.ask("> ")]
      assert.deepStrictEqual(readings, [line("one"), line("two"), { _tag: "End" }])
      const question = make()
      question.input.write("\0")
      const asking = yield* Effect.forkChild(question.keyboard.question("? "), { startImmediately: true })
      question.input.write("y\r")
      assert.deepStrictEqual([yield* Fiber.join(asking), yield* question.keyboard.ask("> ")], [line("y"), { _tag: "End" }])
    }))

  it.live("does not take Ctrl-Space within a line for an end", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* typed(make(), "a\0b\r"), line("ab"))
    }))

  it.live("ends where the terminal went away, also between two questions", () =>
    Effect.gen(function*() {
      const both = make()
      const asking = yield* Effect.forkChild(both.keyboard.ask("> "), { startImmediately: true })
      both.input.end()
      assert.deepStrictEqual(yield* Fiber.join(asking), { _tag: "End" })
      assert.deepStrictEqual(yield* both.keyboard.question("? "), { _tag: "End" })
    }))

  it.live("keeps what was typed when asking is interrupted, for the next time", () =>
    Effect.gen(function*() {
      const both = make()
      const asking = yield* Effect.forkChild(both.keyboard.ask("> "), { startImmediately: true })
      both.input.write("half ")
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(yield* typed(both, "and half\r"), line("half and half"))
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
