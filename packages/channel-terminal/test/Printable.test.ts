import { assert, describe, it } from "@effect/vitest"
import { Printable } from "@turnpike/channel-terminal"

describe("printable", () => {
  it("shows what a terminal would obey, and keeps line feeds, tabs and every other character", () => {
    assert.strictEqual(
      Printable.printable("a\u001b[2Jb\u0007\r\n\tc\u007f\u009bd \u{1f600} é"),
      "a␛[2Jb␇␍\n\tc␡\ufffdd \u{1f600} é"
    )
  })

  it("shows what would turn the direction of writing, and keeps text that is written from the right", () => {
    assert.strictEqual(Printable.printable("rm \u202etxt.oof\u202c \u2066x\u2069 \u05e9\u05dc\u05d5\u05dd"), "rm \ufffdtxt.oof\ufffd \ufffdx\ufffd \u05e9\u05dc\u05d5\u05dd")
  })
})

describe("oneLine", () => {
  it("collapses white space and cuts where it is too long, never through a character", () => {
    assert.strictEqual(Printable.oneLine("  a\n\n b\tc ", 80), "a b c")
    assert.strictEqual(Printable.oneLine("abcdef", 4), "abc…")
    assert.strictEqual(Printable.oneLine("ab\u{1f600}cd", 4), "ab…")
    assert.strictEqual(Printable.oneLine("ab\u{1f600}cd", 5), "ab\u{1f600}…")
  })
})
