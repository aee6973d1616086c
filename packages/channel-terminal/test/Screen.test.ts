import { assert, describe, it } from "@effect/vitest"
import { Screen } from "@turnpike/channel-terminal"
import { ChannelError } from "@turnpike/kernel"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Collected from "./support/Collected.ts"

const answer = (text: string) => ({ to: "answer", text }) as const
const aside = (text: string) => ({ to: "aside", text }) as const

describe("Screen", () => {
  it.effect("shows the time of a silent turn, wipes it before anything is written, and leaves nothing of it", () =>
    Effect.gen(function*() {
      const err = Collected.make(true)
      const screen = Screen.make(Collected.make(false).outlet, err.outlet)
      yield* Effect.scoped(Effect.gen(function*() {
        yield* screen.watch(() => "running a very long tool that does not fit")
        yield* TestClock.adjust("2 seconds")
        yield* screen.show([aside("line\n")])
        yield* TestClock.adjust("1 second")
      }))
      yield* TestClock.adjust("5 seconds")
      const wipe = "\r\u001b[2K"
      assert.strictEqual(
        err.text(),
        `${wipe}1 s · running a very long tool that do…${wipe}2 s · running a very long tool that do…${wipe}line\n${wipe}3 s · running a very long tool that do…${wipe}`
      )
    }))

  it.effect("shows no time where the answer stands on the line", () =>
    Effect.gen(function*() {
      const out = Collected.make(true)
      const err = Collected.make(true)
      const screen = Screen.make(out.outlet, err.outlet)
      yield* Effect.scoped(Effect.gen(function*() {
        yield* screen.watch(() => "answering")
        yield* screen.show([answer("half a line")])
        yield* TestClock.adjust("3 seconds")
      }))
      assert.strictEqual(err.text(), "")
    }))

  it.effect("shows no time where standard error is no terminal", () =>
    Effect.gen(function*() {
      const err = Collected.make(false)
      yield* Effect.scoped(Effect.gen(function*() {
        yield* Screen.make(Collected.make(true).outlet, err.outlet).watch(() => "answering")
        yield* TestClock.adjust("3 seconds")
      }))
      assert.strictEqual(err.text(), "")
    }))

  it.effect("fails where nobody takes the answer, and goes on where nobody takes an aside", () =>
    Effect.gen(function*() {
      const gone = { ...Collected.make(false).outlet, write: () => Effect.fail(ChannelError.publish("gone")) }
      const out = Collected.make(false)
      yield* Screen.make(out.outlet, gone).show([aside("line\n"), answer("text\n")])
      assert.strictEqual(out.text(), "text\n")
      assert.strictEqual((yield* Effect.flip(Screen.make(gone, gone).show([answer("text\n")]))).message, "channel publish error: gone")
    }))

  it.effect("keeps the answer's bytes where nobody watches, and takes its controls away where somebody does", () =>
    Effect.gen(function*() {
      const shown = (isTerminal: boolean) =>
        Effect.gen(function*() {
          const out = Collected.make(isTerminal)
          yield* Screen.make(out.outlet, Collected.make(isTerminal).outlet).show([answer("a\u001b[2Jb\n")])
          return out.text()
        })
      assert.deepStrictEqual([yield* shown(false), yield* shown(true)], ["a\u001b[2Jb\n", "a␛[2Jb\n"])
    }))
})
