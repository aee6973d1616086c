import { assert, describe, it } from "@effect/vitest"
import { CopilotTools } from "@turnpike/harness-copilot"
import { ToolAllowlist } from "@turnpike/kernel"

const plan = (...tools: ReadonlyArray<string>) => CopilotTools.plan({ _tag: "Only", tools })

describe("CopilotTools", () => {
  it("offers the tools of the classes, under all the names that a model may know them by", () => {
    assert.deepStrictEqual(CopilotTools.plan(ToolAllowlist.readOnlyDefault).offered, ["view", "grep", "rg", "glob"])
    assert.deepStrictEqual(plan("edit", "execute", "fetch").offered, [
      "create",
      "edit",
      "apply_patch",
      "bash",
      "write_bash",
      "read_bash",
      "stop_bash",
      "list_bash",
      "web_fetch"
    ])
    assert.deepStrictEqual(plan().offered, [])
  })

  it("takes names of Copilot's own, its kinds of permissions, and patterns for bash", () => {
    assert.deepStrictEqual(plan("task", "github-list_issues", "bash(git *)", "shell(npm:*)").offered, ["task", "github-list_issues", "bash"])
    assert.deepStrictEqual(plan("shell").offered, plan("execute").offered)
    assert.deepStrictEqual(plan("write").offered, plan("edit").offered)
  })

  it("refuses what it could not hold", () => {
    assert.deepStrictEqual(
      ["write(.env)", "view(/etc/*)", "a b", "", "github(list_issues)"].map((entry) => plan("view", entry).refused?.entry),
      ["write(.env)", "view(/etc/*)", "a b", "", "github(list_issues)"]
    )
    assert.strictEqual(plan("view(x)").refused?.why, "has a pattern, which can be held for bash alone")
  })

  it("holds a call by its name, and a command by its pattern", () => {
    const list = plan("view", "bash(git *)", "shell(npm:*)")
    const command = (line: string) => CopilotTools.holds(list, "bash", { command: line })
    assert.deepStrictEqual(
      [command("git status"), command("npm test && git log"), command("git log; rm x"), command("rm x"), CopilotTools.holds(list, "bash", {})],
      [true, true, false, false, false]
    )
    assert.deepStrictEqual([CopilotTools.holds(list, "view", undefined), CopilotTools.holds(list, "edit", {})], [true, false])
    assert.isTrue(CopilotTools.holds(plan("execute"), "bash", { command: "rm -rf x $(y)" }))
    assert.isTrue(CopilotTools.holds(CopilotTools.plan(ToolAllowlist.dangerousAll), "anything", undefined))
    assert.isFalse(CopilotTools.holds(plan(), "view", undefined))
  })
})
