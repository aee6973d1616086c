import { assert, describe, it } from "@effect/vitest"
import { ToolAllowlist } from "../src/index.ts"

describe("ToolAllowlist", () => {
  it("is read-only by default: view, grep, glob", () => {
    assert.deepStrictEqual(ToolAllowlist.readOnlyDefault, { _tag: "Only", tools: ["view", "grep", "glob"] })
    assert.deepStrictEqual(ToolAllowlist.fromFlags([], false), ToolAllowlist.readOnlyDefault)
    assert.deepStrictEqual(ToolAllowlist.fromSpec(undefined), ToolAllowlist.readOnlyDefault)
    assert.isFalse(ToolAllowlist.isDangerous(ToolAllowlist.readOnlyDefault))
  })

  it("takes exactly the listed tools, in order", () => {
    assert.deepStrictEqual(ToolAllowlist.fromFlags(["z", "a", "z"], false), { _tag: "Only", tools: ["z", "a", "z"] })
    assert.deepStrictEqual(ToolAllowlist.fromSpec({ allow: ["z", "a"] }), { _tag: "Only", tools: ["z", "a"] })
  })

  it("does not change when the caller's list does", () => {
    const flags = ["a"]
    const list = ToolAllowlist.fromFlags(flags, false)
    flags.push("b")
    assert.deepStrictEqual(list, { _tag: "Only", tools: ["a"] })
  })

  it("opens everything only by the explicit choice, which wins over any list", () => {
    assert.deepStrictEqual(ToolAllowlist.fromFlags(["a"], true), ToolAllowlist.dangerousAll)
    assert.deepStrictEqual(ToolAllowlist.fromFlags([], true), ToolAllowlist.dangerousAll)
    assert.deepStrictEqual(ToolAllowlist.fromSpec({ dangerous_all: true }), ToolAllowlist.dangerousAll)
    assert.isTrue(ToolAllowlist.isDangerous(ToolAllowlist.dangerousAll))
  })

  it("allows no tool where a specification lists none", () => {
    assert.deepStrictEqual(ToolAllowlist.fromSpec({ allow: [] }), { _tag: "Only", tools: [] })
  })

  it("describes itself in one line", () => {
    assert.strictEqual(ToolAllowlist.describe(ToolAllowlist.readOnlyDefault), "tools: view, grep, glob")
    assert.strictEqual(ToolAllowlist.describe(ToolAllowlist.dangerousAll), "ALL TOOLS (dangerous)")
    assert.strictEqual(ToolAllowlist.describe({ _tag: "Only", tools: [] }), "no tools")
    assert.strictEqual(ToolAllowlist.describe({ _tag: "Only", tools: ["a\nb", "c\u001b[0m"] }), "tools: a b, c [0m")
  })

  it("knows the neutral classes and their other names, and nothing else", () => {
    const classes = Object.fromEntries(
      ["view", "read", "grep", "glob", "search", "edit", "execute", "fetch", "Bash", "constructor", "VIEW", ""].map((name) => [
        name,
        ToolAllowlist.classOf(name)
      ])
    )
    assert.deepStrictEqual(classes, {
      view: "read",
      read: "read",
      grep: "search",
      glob: "search",
      search: "search",
      edit: "edit",
      execute: "execute",
      fetch: "fetch",
      Bash: undefined,
      constructor: undefined,
      VIEW: undefined,
      "": undefined
    })
  })
})
