import { assert, describe, it } from "@effect/vitest"
import { CodexTools } from "@turnpike/harness-codex"
import { ToolAllowlist } from "@turnpike/kernel"

const plan = (...tools: ReadonlyArray<string>) => CodexTools.plan({ _tag: "Only", tools })
const asked = (self: CodexTools.Plan) => [self.sandbox, self.network, CodexTools.approvalPolicy(self), CodexTools.webSearch(self)]

describe("CodexTools", () => {
  it("maps classes to a sandbox, a policy and the network", () => {
    assert.deepStrictEqual([
      asked(CodexTools.plan(ToolAllowlist.readOnlyDefault)),
      asked(plan("read")),
      asked(plan("edit")),
      asked(plan("read", "execute")),
      asked(plan("fetch")),
      asked(plan("execute", "fetch")),
      asked(CodexTools.plan(ToolAllowlist.dangerousAll))
    ], [
      ["read-only", false, "on-request", "disabled"],
      ["read-only", false, "on-request", "disabled"],
      ["workspace-write", false, "on-request", "disabled"],
      ["workspace-write", false, "on-request", "disabled"],
      ["read-only", true, "on-request", "live"],
      ["workspace-write", true, "on-request", "live"],
      ["danger-full-access", true, "never", undefined]
    ])
  })

  it("refuses names of tools, and a list that holds nothing", () => {
    assert.deepStrictEqual([plan("read", "Bash(git *)").refused?.entry, plan().refused?.entry, plan("grep").refused], ["\"Bash(git *)\"", "[]", undefined])
  })

  it("holds what the list names, and everything where all is allowed", () => {
    const held = (self: CodexTools.Plan) => (["read", "edit", "execute", "fetch"] as const).filter((group) => CodexTools.holds(self, group))
    assert.deepStrictEqual([held(plan("edit")), held(CodexTools.plan(ToolAllowlist.dangerousAll))], [["edit"], ["read", "edit", "execute", "fetch"]])
  })
})
