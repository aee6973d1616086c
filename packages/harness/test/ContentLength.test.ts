import { assert, describe, it } from "@effect/vitest"
import { ContentLength, type Frame } from "@turnpike/harness"
import { Effect } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"

const decode = (bytes: Buffer, sizes: ReadonlyArray<number> = [], maxBytes?: number): ReadonlyArray<Frame.Received> => {
  const decoder = ContentLength.decoder(maxBytes)
  const received: Array<Frame.Received> = []
  let at = 0
  for (const size of [...sizes, bytes.length]) {
    received.push(...decoder.push(bytes.subarray(at, Math.min(bytes.length, at + size))))
    at = Math.min(bytes.length, at + size)
  }
  return [...received, ...decoder.end()]
}

const frame = (value: Frame.Frame): Frame.Received => ({ _tag: "Frame", frame: value })
const unparsed = (text: string, terminated = true): Frame.Received => ({ _tag: "Unparsed", bytes: new Uint8Array(Buffer.from(text)), text, terminated })

describe("ContentLength", () => {
  it("writes the length in bytes", () => {
    assert.strictEqual(ContentLength.encode({ a: "é😀" }), "Content-Length: 14\r\n\r\n{\"a\":\"é😀\"}")
  })

  it.effect("reads what was written, wherever the bytes are cut", () =>
    Effect.gen(function*() {
      const bytes = Buffer.from(`${ContentLength.encode({ a: "é😀\r\n\r\n" })}${ContentLength.encode({ b: [1, { c: "Content-Length: 2" }] })}${ContentLength.encode({})}`)
      const sizes = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 30 })))
      const expected = [frame({ a: "é😀\r\n\r\n" }), frame({ b: [1, { c: "Content-Length: 2" }] }), frame({})]
      assert.deepStrictEqual(decode(bytes), expected)
      assert.deepStrictEqual(decode(bytes, Array.from(bytes, () => 1)), expected)
      const result = yield* Arbitrary.checkEffect(Arbitrary.schema(sizes), (chunks) => JSON.stringify(decode(bytes, chunks)) === JSON.stringify(expected))
      assert.strictEqual(result._tag, "Passed")
    }))

  it("understands other headers and other spellings", () => {
    assert.deepStrictEqual(
      decode(Buffer.from("content-length:2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}Content-Type: x\r\nCONTENT-LENGTH: 7\r\n\r\n{\"a\":1}")),
      [frame({}), frame({ a: 1 })]
    )
  })

  it("keeps what is no frame, and goes on behind it", () => {
    assert.deepStrictEqual(decode(Buffer.from("a remark\nContent-Length: 2\r\n\r\n{}")), [unparsed("a remark\n"), frame({})])
    assert.deepStrictEqual(decode(Buffer.from("Content-Length: 3\r\n\r\n[1]Content-Length: 4\r\n\r\n{\"a\"Content-Length: 2\r\n\r\n{}")), [
      unparsed("[1]"),
      unparsed("{\"a\""),
      frame({})
    ])
    assert.deepStrictEqual(decode(Buffer.from("Content-Length: many\r\n\r\nContent-Length: 2\r\n\r\n{}")), [
      unparsed("Content-Length: many"),
      frame({})
    ])
    const notUtf8 = Buffer.concat([Buffer.from("Content-Length: 3\r\n\r\n"), Buffer.from([0x22, 0xff, 0x22])])
    assert.deepStrictEqual(decode(notUtf8), [{ _tag: "Unparsed", bytes: new Uint8Array([0x22, 0xff, 0x22]), text: "\"\ufffd\"", terminated: true }])
  })

  it("keeps what was left without an end", () => {
    assert.deepStrictEqual(decode(Buffer.from("Content-Length: 20\r\n\r\n{\"a\":")), [unparsed("{\"a\":", false)])
    assert.deepStrictEqual(decode(Buffer.from("no header at all")), [unparsed("no header at all", false)])
    assert.deepStrictEqual(decode(Buffer.from("\r\n")), [])
  })

  it("reads a body over the bound to its end, and keeps its beginning", () => {
    const body = `{"a":"${"x".repeat(10_000)}"}`
    const received = decode(Buffer.from(`Content-Length: ${body.length}\r\n\r\n${body}${ContentLength.encode({ b: 1 })}`), [100, 5000], 9000)
    assert.deepStrictEqual(received, [
      { _tag: "Oversize", bytesTotal: body.length, head: new Uint8Array(Buffer.from(body.slice(0, 4096))), terminated: true },
      frame({ b: 1 })
    ])
  })

  it("does not wait for ever for the end of a header", () => {
    const junk = "x".repeat(9000)
    assert.deepStrictEqual(decode(Buffer.from(junk), [9000]), [unparsed(junk)])
  })
})
