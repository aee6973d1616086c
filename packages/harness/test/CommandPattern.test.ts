import { assert, describe, it } from "@effect/vitest"
import { CommandPattern } from "@turnpike/harness"

const holds = (line: string, ...patterns: ReadonlyArray<string>) => CommandPattern.holds(patterns, line)

describe("CommandPattern", () => {
  it("holds a whole command, or a beginning at a word's end", () => {
    assert.deepStrictEqual(
      [
        holds("git status", "git status"),
        holds("git status -s", "git status"),
        holds("git", "git *"),
        holds("git push", "git:*"),
        holds("gitea", "git *")
      ],
      [true, false, true, true, false]
    )
  })

  it("holds a line only where every command of it is within a pattern", () => {
    assert.deepStrictEqual(
      [holds("git add . && git commit -m 'a; b'", "git *"), holds("git status; rm -rf x", "git *"), holds("git log | head", "git *", "head")],
      [true, false, true]
    )
  })

  it("does not hold what it cannot read for sure", () => {
    for (const line of ["git $(rm x)", "git `rm x`", "git status > x", "git status &", "git 'x", "git status\nrm x", "git \"$X\"", "git (x)"]) {
      assert.isFalse(holds(line, "git *"), line)
    }
  })

  it("holds nothing without a pattern or a line", () => {
    assert.deepStrictEqual([holds("git status"), CommandPattern.holds(["git *"], undefined), holds("", "git *")], [false, false, false])
    assert.deepStrictEqual([CommandPattern.commandOf({ command: "ls" }), CommandPattern.commandOf({ command: 1 }), CommandPattern.commandOf(["ls"])], ["ls", undefined, undefined])
  })
})
