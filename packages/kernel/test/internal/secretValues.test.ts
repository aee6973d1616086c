import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import * as SecretValues from "../../src/internal/secretValues.ts"

const mark = "[REDACTED]"

const sift = (secrets: ReadonlyArray<string>, pieces: ReadonlyArray<string>): ReadonlyArray<string> => {
  const sieve = SecretValues.sieve(SecretValues.known(secrets, mark), mark)
  return [...pieces.map(sieve.push), sieve.end()]
}

describe("a sieve", () => {
  it("holds back what may become a secret, and tells what did not", () => {
    assert.deepStrictEqual(sift(["abcdef"], ["xab", "cd", "e", "z", "abcdef", "ab"]), ["x", "", "", "abcdez", mark, "", "ab"])
  })

  it("takes the longest secret, also where a shorter one is whole before it", () => {
    assert.deepStrictEqual(sift(["abcdef", "abcdefghi"], ["abcdef", "gh", "i!"]), ["", "", `${mark}!`, ""])
    assert.deepStrictEqual(sift(["abcdef", "abcdefghi"], ["abcdef", "gh", "!"]), ["", "", `${mark}gh!`, ""])
  })

  it("finds a secret that begins again within itself", () => {
    assert.deepStrictEqual(sift(["ababac"], ["abab", "abac", "abababac"]), ["", `ab${mark}`, `ab${mark}`, ""])
  })

  it("leaves texts without secrets, and all texts where there are none, as they are", () => {
    assert.deepStrictEqual(sift([], ["a", "", "b"]), ["a", "", "b", ""])
    assert.deepStrictEqual(sift(["short"], ["short"]), ["short", ""])
  })

  it.effect("tells the same whatever the pieces are, and never a secret", () =>
    Effect.gen(function*() {
      const letters = Schema.Array(Schema.Literals(["a", "b", "c"]))
      const scene = Schema.Struct({ secrets: Schema.Array(letters), text: letters, cuts: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 }))) })
      const result = yield* Arbitrary.checkEffect(Arbitrary.schema(scene), ({ cuts, secrets, text }) => {
        const known = secrets.map((letters) => letters.join(""))
        const whole = text.join("")
        const places = [0, ...[...cuts].sort((a, b) => a - b), whole.length]
        const pieces = places.slice(1).map((end, index) => whole.slice(places[index], end))
        const told = sift(known, pieces).join("")
        return told === sift(known, [whole]).join("")
          && known.every((secret) => secret.length < 6 || !told.includes(secret))
      })
      assert.strictEqual(result._tag, "Passed")
    }))
})
