import { assert, describe, it } from "@effect/vitest"
import { LineInput } from "@turnpike/channel-terminal"
import { Effect, Fiber } from "effect"
import { PassThrough, Readable } from "node:stream"

const all = (stream: Readable, maxBytes?: number) =>
  Effect.gen(function*() {
    const input = LineInput.make(stream, maxBytes)
    const lines: Array<LineInput.Line> = []
    while (true) {
      const line: LineInput.Line = yield* input.next
      if (line._tag === "End") return lines
      lines.push(line)
    }
  })

const text = (number: number, content: string): LineInput.Line => ({ _tag: "Text", number, text: content })

describe("LineInput", () => {
  it.live("ends a line at a line feed and nowhere else, and takes a last line without one", () =>
    Effect.gen(function*() {
      const lines = yield* all(Readable.from([Buffer.from("a\u2028b\u0085c\rd\r\n\n"), Buffer.from("last")]))
      assert.deepStrictEqual(lines, [text(1, "a\u2028b\u0085c\rd"), text(2, ""), text(3, "last")])
    }))

  it.live("puts characters together that arrive byte by byte", () =>
    Effect.gen(function*() {
      const bytes = [...Buffer.from("é\u{1f600}\nü\n")].map((byte) => Buffer.from([byte]))
      assert.deepStrictEqual(yield* all(Readable.from(bytes)), [text(1, "é\u{1f600}"), text(2, "ü")])
    }))

  it.live("refuses a line that is too long or no text, and goes on with the next", () =>
    Effect.gen(function*() {
      const lines = yield* all(Readable.from([Buffer.from("123456789\n12345678\n"), Buffer.from([0xff, 0x0a]), Buffer.from("ok\n")]), 8)
      assert.deepStrictEqual(lines, [
        { _tag: "Bad", number: 1, why: "is longer than 8 bytes" },
        text(2, "12345678"),
        { _tag: "Bad", number: 3, why: "is not UTF-8 text" },
        text(4, "ok")
      ])
    }))

  it.live("loses nothing when asking is interrupted", () =>
    Effect.gen(function*() {
      const stream = new PassThrough()
      const input = LineInput.make(stream)
      const waiting = yield* Effect.forkChild(input.next, { startImmediately: true })
      yield* Fiber.interrupt(waiting)
      stream.end("one\ntwo\n")
      assert.deepStrictEqual([yield* input.next, yield* input.next, yield* input.next], [text(1, "one"), text(2, "two"), { _tag: "End" }])
    }))

  it.live("ends with a stream that is destroyed while it is asked, or was before", () =>
    Effect.gen(function*() {
      const stream = new PassThrough()
      const waiting = yield* Effect.forkChild(LineInput.make(stream).next, { startImmediately: true })
      stream.destroy()
      assert.deepStrictEqual([yield* Fiber.join(waiting), yield* LineInput.make(stream).next], [{ _tag: "End" }, { _tag: "End" }])
    }))

  it.live("fails where the stream breaks", () =>
    Effect.gen(function*() {
      const stream = new PassThrough()
      const input = LineInput.make(stream)
      const waiting = yield* Effect.forkChild(Effect.flip(input.next), { startImmediately: true })
      stream.destroy(new Error("gone"))
      assert.strictEqual((yield* Fiber.join(waiting)).message, "channel I/O error: the input broke: gone")
    }))
})
