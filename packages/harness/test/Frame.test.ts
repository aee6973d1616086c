import { assert, describe, it } from "@effect/vitest"
import { Frame } from "@turnpike/harness"
import type { Line } from "@turnpike/process"
import { Effect } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"

const text = (value: string): Line.Line => ({ _tag: "Text", text: value, byteLength: Buffer.byteLength(value), terminated: true })
const frame = (value: Frame.Frame): Frame.Received => ({ _tag: "Frame", frame: value })
const unparsed = (value: string): Frame.Received => ({ _tag: "Unparsed", bytes: new TextEncoder().encode(value), text: value, terminated: true })

describe("Frame.fromLine", () => {
  it("reads one object", () => {
    assert.deepStrictEqual(Frame.fromLine(text(" {\"a\":[1,{\"b\":\"}\"}]} ")), [frame({ a: [1, { b: "}" }] })])
  })

  it("finds nothing in white space", () => {
    assert.deepStrictEqual([...Frame.fromLine(text("")), ...Frame.fromLine(text(" \t\r"))], [])
  })

  it("keeps JSON that is no object as bytes", () => {
    for (const line of ["1", "null", "\"hi\"", "[1,2]", "true"]) assert.deepStrictEqual(Frame.fromLine(text(line)), [unparsed(line)])
  })

  it("keeps all objects of a line and what stands between them", () => {
    assert.deepStrictEqual(Frame.fromLine(text("log: {\"a\":1}{\"b\":\"\\\"{\"} and {\"c\":3} {torn")), [
      unparsed("log: "),
      frame({ a: 1 }),
      frame({ b: "\"{" }),
      unparsed(" and "),
      frame({ c: 3 }),
      unparsed(" {torn")
    ])
  })

  it("takes an object out of braces that are none", () => {
    assert.deepStrictEqual(Frame.fromLine(text("{not json {\"a\":1}}")), [unparsed("{not json "), frame({ a: 1 }), unparsed("}")])
  })

  it("splits a long line of objects, and keeps a long line that is something else whole", () => {
    const long = "x".repeat(70_000)
    assert.deepStrictEqual(Frame.fromLine(text(`{"a":"${long}"}{"b":"${long}"}`)), [frame({ a: long }), frame({ b: long })])
    assert.deepStrictEqual(Frame.fromLine(text(`{"a":"${long}"}{torn`)), [frame({ a: long }), unparsed("{torn")])
    assert.deepStrictEqual(Frame.fromLine(text(`${long}{"a":1}`)), [unparsed(`${long}{"a":1}`)])
  })

  it("reads a line of braces in a bounded time", () => {
    const braces = "{".repeat(65_000)
    assert.deepStrictEqual(Frame.fromLine(text(braces)), [unparsed(braces)])
  }, 10_000)

  it("keeps the bytes of a line that is not UTF-8, and the beginning of one that is too long", () => {
    const bytes = new Uint8Array([0xe4, 0xbb])
    assert.deepStrictEqual(Frame.fromLine({ _tag: "InvalidUtf8", bytes, lossyText: "\ufffd", terminated: true }), [
      { _tag: "Unparsed", bytes, text: "\ufffd", terminated: true }
    ])
    assert.deepStrictEqual(Frame.fromLine({ _tag: "Oversize", bytesTotal: 9, head: bytes, terminated: false }), [
      { _tag: "Oversize", bytesTotal: 9, head: bytes, terminated: false }
    ])
  })

  it.effect("finds every object of a line, whatever they hold", () =>
    Effect.gen(function*() {
      const objects = Schema.Array(Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite, Schema.Null])))
      const result = yield* Arbitrary.checkEffect(Arbitrary.schema(objects), (values) => {
        const normal = values.map((value): Frame.Frame => JSON.parse(JSON.stringify(value)))
        const read = Frame.fromLine(text(normal.map((value) => JSON.stringify(value)).join("")))
        return JSON.stringify(read) === JSON.stringify(normal.map(frame))
      })
      assert.strictEqual(result._tag, "Passed")
    }))
})

describe("Frame.beginning", () => {
  const cut = (value: string): Frame.Frame | undefined =>
    Frame.beginning({ _tag: "Oversize", bytesTotal: 1e9, head: new TextEncoder().encode(value), terminated: true })

  it("has the fields that are whole", () => {
    assert.deepStrictEqual(
      [
        cut("{\"type\":\"result\",\"is_error\":false,\"result\":\"AAAA"),
        cut(" {\"method\":\"x\",\"params\":{\"event\":{\"type\":\"idle\",\"list\":[1,{\"a\":\"]}\\\"\"},[2,"),
        cut("{\"a\":{\"b\":1}"),
        cut("remark {\"a\":1,\"b\":tru"),
        cut("{\"a\":1}{\"b\":2}"),
        cut("{\"a\":1,\"list\":[2,3!],\"c\":[{\"d\":4}]}")
      ],
      [
        { type: "result", is_error: false },
        { method: "x", params: { event: { type: "idle", list: [1, { a: "]}\"" }, [2]] } } },
        { a: { b: 1 } },
        { a: 1 },
        { a: 1 },
        { a: 1, list: [2] }
      ]
    )
  })

  it("is undefined where no field is whole, where there is no object, and where the output ended in the middle", () => {
    const item = { _tag: "Unparsed", bytes: new Uint8Array(), text: "{\"a\":1,\"b" } as const
    assert.deepStrictEqual(
      [cut(""), cut("{"), cut("{\"type\":\"res"), cut("[1,2,3]"), cut("}}}"), Frame.beginning({ ...item, terminated: false })],
      [undefined, undefined, undefined, undefined, undefined, undefined]
    )
    assert.deepStrictEqual(Frame.beginning({ ...item, terminated: true }), { a: 1 })
  })

  it.effect("agrees with the whole object, wherever it is cut", () =>
    Effect.gen(function*() {
      const object = Schema.Record(Schema.String, Schema.Array(Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite]))))
      const result = yield* Arbitrary.checkEffect(Arbitrary.schema(object), (value) => {
        const whole = JSON.stringify(value)
        const step = Math.ceil(whole.length / 50)
        return Array.from({ length: 50 }, (_, index) => whole.slice(0, index * step)).every((text) => {
          const part = cut(text)
          return part === undefined || Object.entries(part).every(([key, held]) => {
            const all = JSON.parse(whole)[key]
            return Array.isArray(held) && held.every((item, at) =>
              Object.entries(item).every(([name, inner]) => JSON.stringify(all[at][name]) === JSON.stringify(inner))
            )
          })
        })
      })
      assert.strictEqual(result._tag, "Passed")
    }))
})
