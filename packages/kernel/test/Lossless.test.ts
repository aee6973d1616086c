import { assert, describe, it } from "@effect/vitest"
import { Contracts } from "@turnpike/contract"
import * as Result from "effect/Result"
import { Lossless } from "../src/index.ts"

const taken = <A>(value: A): A => Result.getOrThrow(Lossless.snapshot(value, "it")) as A

const refusal = (value: unknown): string => {
  const result = Lossless.snapshot(value, "it")
  return Result.isSuccess(result) ? "nothing" : result.failure
}

const nested = (levels: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

describe("a snapshot", () => {
  it("is equal to the value, and another object", () => {
    const value = { a: [1, -1.5, 1e300, 5e-324, "é\ud83d\u2028", true, null, []], b: { c: {} } }
    const copied = taken(value)
    assert.deepStrictEqual(copied, value)
    assert.notStrictEqual(copied.a, value.a)
    assert.notStrictEqual(copied.b.c, value.b.c)
  })

  it("does not change with the value it was taken of", () => {
    const value = { list: [{ text: "before" }] }
    const copied = taken(value)
    value.list[0]!.text = "after"
    value.list.push({ text: "more" })
    assert.deepStrictEqual(copied, { list: [{ text: "before" }] })
  })

  it("cannot be changed itself, all the way down", () => {
    const copied = taken({ list: [{ text: "before" }], empty: {} })
    for (const change of [
      () => copied.list.push({ text: "x" }),
      () => (copied.list[0]!.text = "x"),
      () => Object.assign(copied.empty, { x: 1 }),
      () => Object.assign(copied, { x: 1 })
    ]) assert.throws(change, TypeError)
  })

  it("takes objects without a prototype, and a field that is named __proto__, as plain ones", () => {
    const bare = Object.assign(Object.create(null) as object, { a: 1 })
    assert.deepStrictEqual(taken<object>(bare), { a: 1 })
    const value = JSON.parse("{\"__proto__\":{\"polluted\":true},\"constructor\":1}") as object
    const copied = taken(value)
    assert.strictEqual(JSON.stringify(copied), "{\"__proto__\":{\"polluted\":true},\"constructor\":1}")
    assert.strictEqual(Object.getPrototypeOf(copied), Object.prototype)
    assert.isFalse("polluted" in copied)
  })

  it("takes one object in two places", () => {
    const shared = { x: 1 }
    assert.deepStrictEqual(taken([shared, shared]), [{ x: 1 }, { x: 1 }])
  })

  it("takes nesting as deep as a decoder does", () => {
    assert.isTrue(Result.isSuccess(Lossless.snapshot(nested(Contracts.maxDepth), "it")))
    assert.isFalse(Contracts.isDeeperThan(nested(Contracts.maxDepth), Contracts.maxDepth))
    assert.match(refusal(nested(Contracts.maxDepth + 1)), / is nested more than 100 levels deep$/u)
    assert.match(refusal(nested(200_000)), / is nested more than 100 levels deep$/u)
  })
})

describe("what JSON does not keep", () => {
  const cycle: Array<unknown> = []
  cycle.push({ again: cycle })
  const computed = { get field() { return assert.fail("computed") } }
  const hidden = Object.defineProperty({}, "field", { value: 1, enumerable: false })

  it.each<[string, unknown, string]>([
    ["undefined", undefined, "is undefined"],
    ["a function", () => 1, "is a function"],
    ["a symbol", Symbol("x"), "is a symbol"],
    ["a bigint", 1n, "is a bigint"],
    ["NaN", NaN, "is no finite number"],
    ["infinity", -Infinity, "is no finite number"],
    ["negative zero", -0, "is minus zero"],
    ["a date", new Date(0), "is no plain object"],
    ["a map", new Map(), "is no plain object"],
    ["an error", new Error("x"), "is no plain object"],
    ["bytes", new Uint8Array(2), "is no plain object"],
    ["a boxed string", Object("x"), "is no plain object"],
    // oxlint-disable-next-line no-sparse-arrays
    ["a hole", [1, , 3], "is an array with holes or with names"],
    ["a hole that hides behind a field", Object.assign([], { length: 1, field: 1 }), "is an array with holes or with names"],
    ["an array with more than items", Object.assign([1], { field: 1 }), "is an array with holes or with names"],
    ["an item that is computed", Object.defineProperty([1], 0, { get: () => assert.fail("computed"), enumerable: true }), "is an array with holes or with names"],
    ["a symbol's field", { [Symbol("x")]: 1 }, "has a symbol for a name"],
    ["a computed field", computed, "has field, which is hidden or computed"],
    ["a hidden field", hidden, "has field, which is hidden or computed"]
  ])("is refused: %s", (_, value, found) => {
    assert.strictEqual(refusal(value), `it ${found}`)
    assert.strictEqual(refusal({ data: { list: [0, value] } }), `it.data.list[1] ${found}`)
  })

  it("is refused where it contains itself", () => {
    assert.strictEqual(refusal(cycle), "it[0].again holds itself")
  })
})
