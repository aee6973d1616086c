import { assert, describe, it } from "@effect/vitest"
import { Contracts } from "@turnpike/contract"
import * as Result from "effect/Result"
import { faultOf, isPlainPiece } from "../../src/internal/eventDecoder.ts"

const decode = Contracts.decode("session-event")
const piece = { seq: 3, time: 1790000000000, type: "assistant/chunk", data: { kind: "text", text: "a" } }

describe("the way around the decoder", () => {
  it("takes pieces, and says of every other value what the decoder says", () => {
    const values = [null, undefined, true, 0, -1, 1.5, 2 ** 53, Number.NaN, "", "x", "text", "reasoning", "assistant/chunk", "append", [], {}, { kind: "text", text: "x" }]
    const fields = ["seq", "time", "type", "data", "surface_op", "ignorable", "sum", "more"]
    let taken = 0
    for (const value of values) {
      const changed = [
        value,
        ...fields.map((field) => ({ ...piece, [field]: value })),
        ...["kind", "text", "origin", "more"].map((field) => ({ ...piece, data: { ...piece.data, [field]: value } }))
      ]
      for (const each of changed) {
        const decoded = decode(each)
        assert.strictEqual(faultOf(each), Result.isFailure(decoded) ? decoded.failure : undefined, JSON.stringify(each))
        if (isPlainPiece(each)) taken++
      }
    }
    assert.isTrue(isPlainPiece(piece))
    assert.isAbove(taken, 5)
    for (const field of ["seq", "time", "type", "data"] as const) {
      const { [field]: _, ...less } = piece
      assert.isFalse(isPlainPiece(less))
      assert.isString(faultOf(less))
    }
  })
})
