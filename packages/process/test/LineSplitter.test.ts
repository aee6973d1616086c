import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Line } from "../src/Line.ts"
import * as LineSplitter from "../src/LineSplitter.ts"

const bytesOf = (text: string) => new TextEncoder().encode(text)

/** Pieces of which lines are made, also broken ones: halves of characters, other line ends, a byte that is never UTF-8. */
const pieces: ReadonlyArray<Uint8Array> = [
  bytesOf("\n"),
  bytesOf("\n"),
  bytesOf("\r\n"),
  bytesOf("\r"),
  bytesOf("\0"),
  bytesOf("\u2028"),
  bytesOf("\u0085"),
  bytesOf("\ufeff"),
  bytesOf("é"),
  bytesOf("😀"),
  bytesOf("{\"type\":\"text\"}"),
  bytesOf("x".repeat(40)),
  Uint8Array.of(0xe4),
  Uint8Array.of(0xbb, 0xb6),
  Uint8Array.of(0xff)
]

const Content = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: pieces.length - 1 })))
const Cuts = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })))
const Bound = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60 }))

const concatenate = (parts: ReadonlyArray<Uint8Array>): Uint8Array => new Uint8Array(Buffer.concat(parts))

/** Cuts into chunks of the given sizes, over and over; one chunk where there are none. */
const chunksOf = (bytes: Uint8Array, sizes: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  if (sizes.length === 0) return [bytes]
  const chunks: Array<Uint8Array> = []
  for (let start = 0, index = 0; start < bytes.length; index++) {
    const size = sizes[index % sizes.length]!
    chunks.push(bytes.subarray(start, start + size))
    start += size
  }
  return chunks
}

const split = (chunks: ReadonlyArray<Uint8Array>, options?: LineSplitter.Options): ReadonlyArray<Line> => {
  let state = LineSplitter.initial(options)
  const lines: Array<Line> = []
  for (const chunk of chunks) {
    const [next, ended] = LineSplitter.push(state, chunk)
    lines.push(...ended)
    state = next
  }
  return [...lines, ...LineSplitter.end(state)]
}

const contentOf = (line: Line): Uint8Array => line._tag === "Text" ? bytesOf(line.text) : line._tag === "InvalidUtf8" ? line.bytes : line.head

/** The lines by another way: the whole content is looked at at once. */
const reference = (bytes: Uint8Array, { headBytes, maxLineBytes }: LineSplitter.Options): ReadonlyArray<Line> => {
  const parts: Array<{ readonly bytes: Buffer; readonly terminated: boolean }> = []
  let rest = Buffer.from(bytes)
  for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
    parts.push({ bytes: rest.subarray(0, end), terminated: true })
    rest = rest.subarray(end + 1)
  }
  if (rest.length > 0) parts.push({ bytes: rest, terminated: false })
  return parts.map(({ bytes, terminated }): Line => {
    if (bytes.length > maxLineBytes) {
      return { _tag: "Oversize", bytesTotal: bytes.length, head: new Uint8Array(bytes.subarray(0, headBytes)), terminated }
    }
    const text = bytes.toString("utf8")
    return Buffer.from(text).equals(bytes)
      ? { _tag: "Text", text, byteLength: bytes.length, terminated }
      : { _tag: "InvalidUtf8", bytes: new Uint8Array(bytes), lossyText: text, terminated }
  })
}

describe("LineSplitter", () => {
  it.effect.prop("gives the same lines however the bytes are cut", [Content, Cuts, Bound], ([content, sizes, maxLineBytes]) =>
    Effect.sync(() => {
      const bytes = concatenate(content.map((index) => pieces[index]!))
      const options = { maxLineBytes, headBytes: Math.min(7, maxLineBytes) }
      assert.deepStrictEqual(split(chunksOf(bytes, sizes), options), reference(bytes, options))
      assert.deepStrictEqual(split(chunksOf(bytes, [1]), options), reference(bytes, options))
    }))

  it.effect.prop("loses no byte of lines within the bound", [Content, Cuts], ([content, sizes]) =>
    Effect.sync(() => {
      const bytes = concatenate(content.map((index) => pieces[index]!))
      const lines = split(chunksOf(bytes, sizes))
      const joined = concatenate(lines.flatMap((line) => line.terminated ? [contentOf(line), Uint8Array.of(10)] : [contentOf(line)]))
      assert.deepStrictEqual(joined, bytes)
    }))

  it("does not change a state that was used", () => {
    const [state] = LineSplitter.push(LineSplitter.initial(), bytesOf("begun "))
    const one = LineSplitter.push(state, bytesOf("one\n"))[1]
    const two = LineSplitter.push(state, bytesOf("two\n"))[1]
    assert.deepStrictEqual([...one, ...two].map(contentOf), [bytesOf("begun one"), bytesOf("begun two")])
  })

  it("does not depend on a chunk after it was taken", () => {
    const chunk = bytesOf("kept")
    const [state] = LineSplitter.push(LineSplitter.initial(), chunk)
    chunk.fill(0)
    assert.deepStrictEqual(LineSplitter.end(state), [{ _tag: "Text", text: "kept", byteLength: 4, terminated: false }])
  })

  it("keeps a line of the bound's length and not one of a byte more", () => {
    const options = { maxLineBytes: 4, headBytes: 2 }
    assert.deepStrictEqual(split([bytesOf("abcd\nabcde\n")], options), [
      { _tag: "Text", text: "abcd", byteLength: 4, terminated: true },
      { _tag: "Oversize", bytesTotal: 5, head: bytesOf("ab"), terminated: true }
    ])
  })

  it("tells of a line over the bound that the output's end cut off", () => {
    const options = { maxLineBytes: 4, headBytes: 4 }
    assert.deepStrictEqual(split(chunksOf(bytesOf("abcdefghij"), [3]), options), [
      { _tag: "Oversize", bytesTotal: 10, head: bytesOf("abcd"), terminated: false }
    ])
  })

  it("holds a megabyte that came byte by byte in few parts", () => {
    let state = LineSplitter.initial()
    for (let index = 0; index < 1024 * 1024; index++) state = LineSplitter.push(state, Uint8Array.of(120))[0]
    let parts = 0
    for (let part = state.parts; part !== undefined; part = part.earlier) parts++
    assert.isBelow(parts, 64)
    assert.deepStrictEqual(LineSplitter.end(state).map((line) => [line._tag, contentOf(line).length]), [["Text", 1024 * 1024]])
  })
})
