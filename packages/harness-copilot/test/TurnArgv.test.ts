import { assert, describe, it } from "@effect/vitest"
import { TurnArgv } from "@turnpike/harness-copilot"
import { ToolAllowlist } from "@turnpike/kernel"

const id = "5a0d4bb0-7ea0-4a5a-9d3c-3d1f0c7f5d11"

describe("TurnArgv", () => {
  it("has the session, no colours, the answer alone, the prompt, the tools, in this order", () => {
    assert.deepStrictEqual(TurnArgv.buildTurnArgv(id, "fix it", ToolAllowlist.readOnlyDefault), [
      "--session-id",
      id,
      "--no-color",
      "-s",
      "-p",
      "fix it",
      "--allow-tool",
      "view",
      "--allow-tool",
      "grep",
      "--allow-tool",
      "glob"
    ])
  })

  it("carries the prompt as one argument, unchanged", () => {
    for (const prompt of ["a; b", "a && b", "$(touch x) `y` ${Z}", "\"it's\"", "one\ntwo", "-v is a prompt", "😀 e\u0301 \u2028", "  "]) {
      const argv = TurnArgv.buildTurnArgv(id, prompt, ToolAllowlist.dangerousAll)
      assert.deepStrictEqual(argv, ["--session-id", id, "--no-color", "-s", "-p", prompt, "--allow-all-tools"])
    }
  })

  it("spells an allow-list tool by tool in order, and everything as one option that opens no paths", () => {
    const list = ToolAllowlist.fromFlags(["shell(git:*)", "write", "view"], false)
    assert.deepStrictEqual(TurnArgv.toCopilotArgs(list), ["--allow-tool", "shell(git:*)", "--allow-tool", "write", "--allow-tool", "view"])
    assert.deepStrictEqual(TurnArgv.toCopilotArgs(ToolAllowlist.fromFlags(["view"], true)), ["--allow-all-tools"])
    assert.deepStrictEqual(TurnArgv.toCopilotArgs({ _tag: "Only", tools: [] }), [])
  })

  it("refuses what an argument cannot carry, and says why", () => {
    const why = (prompt: string) => TurnArgv.refusal(prompt)?.why
    assert.deepStrictEqual(
      ["", "-v", "--help", "a\0b", "\ud83d", "\ude00", "x".repeat(131_072), "é".repeat(65_536)].map(why),
      ["empty", "leading-dash", "leading-dash", "nul", "lone-surrogate", "lone-surrogate", "too-long", "too-long"]
    )
    assert.deepStrictEqual(["a", " -v", "😀", "x".repeat(131_071), "\n"].map(why), [undefined, undefined, undefined, undefined, undefined])
    assert.strictEqual(
      TurnArgv.refusal("-v")?.message,
      "the prompt cannot be given to Copilot in its text mode: it begins with a dash, which Copilot takes for an option; change it, or use the copilot harness, which takes every prompt"
    )
  })
})
