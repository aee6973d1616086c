import { assert, describe, it } from "@effect/vitest"
import { distance, nearest } from "../src/Suggestion.ts"

describe("Suggestion", () => {
  it("counts insertions, deletions, replacements and swaps", () => {
    assert.deepStrictEqual(
      [["", ""], ["", "abc"], ["abc", ""], ["abc", "abc"], ["abc", "abd"], ["abc", "acb"], ["abcd", "acd"], ["kitten", "sitting"]]
        .map(([a = "", b = ""]) => distance(a, b)),
      [0, 3, 3, 0, 1, 1, 1, 3]
    )
  })

  it("finds what was probably meant, and nothing where nothing is near", () => {
    const words = ["run", "chat", "doctor", "schema", "validate"]
    assert.deepStrictEqual(["rum", "DOCTOR", "docotr", "sch", "valid", "x", "", "frobnicate"].map((word) => nearest(word, words)), [
      "run", "doctor", "doctor", "schema", "validate", undefined, undefined, undefined
    ])
  })
})
