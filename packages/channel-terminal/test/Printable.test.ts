import { assert, describe, it } from "@effect/vitest"
import { Printable } from "@turnpike/channel-terminal"

describe("printable", () => {
  it("shows what a terminal would obey, and keeps line feeds, tabs and every other character", () => {
    assert.strictEqual(
      Printable.printable("a\u001b[2Jb\u0007\r\n\tc\u007f\u009bd \u{1f600} é"),
      "a␛[2Jb␇␍\n\tc␡\ufffdd \u{1f600} é"
    )
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
