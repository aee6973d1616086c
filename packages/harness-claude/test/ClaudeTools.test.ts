import { assert, describe, it } from "@effect/vitest"
import { ClaudeTools } from "@turnpike/harness-claude"
import { ToolAllowlist } from "@turnpike/kernel"

const only = (...tools: ReadonlyArray<string>) => ClaudeTools.plan({ _tag: "Only", tools })
const bash = (command: string) => ({ command })

describe("ClaudeTools", () => {
  it("maps the read-only default and the classes to names of Claude Code's", () => {
    assert.deepStrictEqual(ClaudeTools.plan(ToolAllowlist.readOnlyDefault).offered, ["Read", "Glob", "Grep"])
    assert.deepStrictEqual(only("edit", "execute", "fetch").offered, ["Edit", "Write", "NotebookEdit", "Bash", "TaskStop", "WebFetch", "WebSearch"])
  })

  it("offers and allows on the command line what the list holds, in order", () => {
    assert.deepStrictEqual(ClaudeTools.toArguments(only("Bash(git *)", "read", "mcp__github")), [
      "--tools=Bash,Read",
      "--allowedTools=Bash(git *)",
      "--allowedTools=Read",
      "--allowedTools=mcp__github"
    ])
    assert.deepStrictEqual(ClaudeTools.toArguments(only()), ["--tools="])
    assert.deepStrictEqual(ClaudeTools.toArguments(ClaudeTools.plan(ToolAllowlist.dangerousAll)), [])
  })

  it("refuses what it could not hold", () => {
    assert.deepStrictEqual(only("read", "Read(src/**)").refused, {
      entry: "Read(src/**)",
      why: "has a pattern, which can be held for Bash alone"
    })
    assert.deepStrictEqual(only("--help").refused, { entry: "--help", why: "is neither a class nor a tool's name" })
    assert.deepStrictEqual(only("Bash(").refused, { entry: "Bash(", why: "is neither a class nor a tool's name" })
    assert.isUndefined(only("Bash(git log --format='%h (%s)')").refused)
  })

  it("holds tools by name, also by their other name and by their server", () => {
    const plan = only("read", "Agent", "mcp__github", "mcp__files__read")
    const held = ["Read", "Agent", "Task", "mcp__github__issues", "mcp__files__read", "Bash", "mcp__files__write", "mcp__githubber__x", "read"]
    assert.deepStrictEqual(held.filter((name) => ClaudeTools.holds(plan, name, {})), [
      "Read",
      "Agent",
      "Task",
      "mcp__github__issues",
      "mcp__files__read"
    ])
  })

  it("holds a command line only where every command of it is within a pattern", () => {
    const plan = only("Bash(git *)", "Bash(npm test)", "Bash(ls:*)")
    const within = [
      "git status",
      "git",
      "git log --format='a; b | c'",
      "git add \"x && y\" && git commit -m 'it''s'",
      "git diff | git apply",
      "npm test; ls -l",
      "git log --format=\\;x"
    ]
    const beyond = [
      "gitk",
      "npm test --watch",
      "git status; rm -rf /",
      "git status && rm x",
      "git status | sh",
      "git status & rm x",
      "git status &",
      "git log $(rm x)",
      "git log `rm x`",
      "git log > x",
      "git log < x",
      "git log\nrm x",
      "git log \"$(rm x)\"",
      "git log $HOME",
      "(git log)",
      "git log # x",
      "git log 'unfinished",
      "git log;",
      "&& git log",
      "",
      " "
    ]
    assert.deepStrictEqual(within.filter((command) => !ClaudeTools.holds(plan, "Bash", bash(command))), [])
    assert.deepStrictEqual(beyond.filter((command) => ClaudeTools.holds(plan, "Bash", bash(command))), [])
  })

  it("does not hold a call whose command it cannot see", () => {
    const plan = only("Bash(git *)")
    assert.deepStrictEqual([undefined, null, "git status", ["git"], { command: 1 }].map((input) => ClaudeTools.holds(plan, "Bash", input)), [
      false,
      false,
      false,
      false,
      false
    ])
  })

  it("holds everything where all tools were allowed", () => {
    assert.isTrue(ClaudeTools.holds(ClaudeTools.plan(ToolAllowlist.dangerousAll), "Bash", bash("rm -rf /")))
  })

  it("compares what is in force with what was asked", () => {
    assert.deepStrictEqual(ClaudeTools.compare(only("read", "Task", "mcp__github"), ["Read", "Task", "mcp__github__issues"]), { missing: [], beyond: [] })
    assert.deepStrictEqual(ClaudeTools.compare(only("read", "search"), ["Read", "Bash"]), { missing: ["Glob", "Grep"], beyond: ["Bash"] })
    assert.deepStrictEqual(ClaudeTools.compare(ClaudeTools.plan(ToolAllowlist.dangerousAll), []), { missing: [], beyond: [] })
  })
})
