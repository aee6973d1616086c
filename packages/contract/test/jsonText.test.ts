import { assert, describe, it } from "@effect/vitest"
import { Contracts } from "@turnpike/contract"

describe("repeatedKey", () => {
  it("finds the first key that an object has twice, wherever it is, and its line", () => {
    assert.deepStrictEqual(Contracts.repeatedKey("{\"a\":1,\n\"b\":{\"c\":[{\"d\":1,\"e\":2,\n\"d\":3}]}}"), { key: "d", line: 3 })
    assert.deepStrictEqual(Contracts.repeatedKey("{\"a\":1,\"\\u0061\":2}"), { key: "a", line: 1 })
  })

  it("is undefined where every object has its keys once, whatever its values are", () => {
    for (const text of ["{\"a\":{\"a\":[\"a\",\"a\"]},\"b\":\"a\"}", "[{\"a\":1},{\"a\":2}]", "\"a\"", "{\"a,\":\"{\\\"a,\\\":1\"}", "{}"]) {
      assert.strictEqual(Contracts.repeatedKey(text), undefined, text)
    }
  })
})
