import { assert, describe, it } from "@effect/vitest"
import { Style, TurnText } from "@turnpike/channel-terminal"
import { type AgentRunEvent, Failure, Usage } from "@turnpike/contract"

const capabilities = {
  resume: "enforced",
  chosen_session_id: "enforced",
  steering: "unsupported",
  tool_allow_list: "enforced",
  permission_requests: "enforced",
  system_prompt: "enforced",
  model_choice: "enforced",
  usage: "enforced",
  cost: "enforced",
  structured_output: "unsupported",
  interrupt_keeps_history: "enforced",
  isolation: "enforced",
  background_tasks: "enforced"
} as const

const start: AgentRunEvent.Payload = {
  type: "session_start",
  session_id: "s-1",
  harness: "scripted",
  harness_version: "0.1.0",
  turnpike_version: "0.1.0",
  resumed: false,
  cwd: "/project",
  model: "m-1",
  capabilities
}

const usage: Usage.Usage = {
  tokens: { source: "reported", input_tokens: 1204, output_tokens: 86 },
  cost: { source: "estimated", usd: 0.0042 }
}

const completed: TurnText.Ending = { word: "completed", success: true, answer: "", durationMs: 1234, usage }

/** The two texts of a turn, each as its reader sees it, and both together as on one terminal. */
const told = (events: ReadonlyArray<AgentRunEvent.Payload>, ending: TurnText.Ending, style = Style.plain) => {
  const text = TurnText.make(style)
  const pieces = [...events.flatMap((event) => text.add(event)), ...text.end(ending)]
  const of = (to: TurnText.Piece["to"]) => pieces.filter((piece) => piece.to === to).map((piece) => piece.text).join("")
  return { answer: of("answer"), aside: of("aside"), terminal: pieces.map((piece) => piece.text).join("") }
}

describe("TurnText", () => {
  it("does not repeat an answer that came in several messages", () => {
    const { answer } = told([{ type: "message", text: "one " }, { type: "message", text: "two" }], { ...completed, answer: "one two" })
    assert.strictEqual(answer, "one \ntwo\n")
  })

  it("tells what was said in the end where it is not what streamed", () => {
    const { answer } = told([{ type: "text_delta", text: "draft" }, { type: "message", text: "final" }], { ...completed, answer: "final" })
    assert.strictEqual(answer, "draft\nfinal\n")
    const trimmed = told([{ type: "text_delta", text: "\nfinal\n" }, { type: "message", text: "final" }], { ...completed, answer: "final" })
    assert.strictEqual(trimmed.answer, "\nfinal\n")
  })

  it("tells a whole turn: the answer as it streams, tools as they run, and one last line", () => {
    const { answer, terminal } = told([
      { type: "tool_start", kind: "phase", call_id: "phase-launch", tool_name: "launch" },
      { type: "tool_end", kind: "phase", call_id: "phase-launch", tool_name: "launch", success: true },
      start,
      { type: "turn_start", turn: 1 },
      { type: "reasoning_delta", text: "hm" },
      { type: "text_delta", text: "Let me " },
      { type: "text_delta", text: "look." },
      { type: "message", text: "Let me look." },
      { type: "tool_start", kind: "tool", call_id: "c1", tool_name: "read", tool_input: { path: "README.md" } },
      { type: "tool_end", kind: "tool", call_id: "c1", tool_name: "read", success: true, output_summary: "text" },
      { type: "tool_start", kind: "tool", call_id: "c2", tool_name: "edit", tool_input: { path: "a", text: "b\nc" } },
      { type: "tool_end", kind: "tool", call_id: "c2", tool_name: "edit", success: false, output_summary: "no such\nfile" },
      { type: "text_delta", text: "Done." },
      { type: "message", text: "Done." },
      { type: "token_usage", input_tokens: 1204, output_tokens: 86, final: true },
      { type: "turn_end", turn: 1, verdict: { type: "completed" } },
      { type: "session_end", outcome: { success: true, summary: "Done." }, reason: "success" }
    ], { ...completed, answer: "Done." })
    assert.strictEqual(terminal, [
      "scripted 0.1.0 · m-1 · session s-1 · /project",
      "Let me look.",
      "→ read README.md",
      "✓ read",
      "→ edit {\"path\":\"a\",\"text\":\"b\\nc\"}",
      "✗ edit failed: no such file",
      "Done.",
      "✓ completed · 1.2 s · 1,204 tokens in, 86 out, about $0.0042",
      ""
    ].join("\n"))
    assert.strictEqual(answer, "Let me look.\nDone.\n")
  })

  it("puts an aside that comes in the middle of a line on a line of its own, and leaves the answer's bytes alone", () => {
    const { answer, terminal } = told([
      { type: "text_delta", text: "one " },
      { type: "notice", kind: "retry", message: "the harness tries again" },
      { type: "text_delta", text: "two" },
      { type: "message", text: "one two" }
    ], completed)
    assert.strictEqual(answer, "one two\n")
    assert.strictEqual(terminal, "one \n! retry: the harness tries again\ntwo\n✓ completed · 1.2 s · 1,204 tokens in, 86 out, about $0.0042\n")
  })

  it("tells a message that did not stream, and what a broken stream left out, exactly once", () => {
    assert.strictEqual(told([{ type: "message", text: "whole" }], { ...completed, answer: "whole" }).answer, "whole\n")
    assert.strictEqual(
      told([{ type: "text_delta", text: "wh" }, { type: "message", text: "whole\n" }], { ...completed, answer: "whole\n" }).answer,
      "whole\n"
    )
    assert.strictEqual(told([], { ...completed, answer: "never told" }).answer, "never told\n")
    assert.strictEqual(told([{ type: "text_delta", text: "streamed" }], { ...completed, answer: "streamed" }).answer, "streamed\n")
  })

  it("says that a message was cut off", () => {
    const { terminal } = told([{ type: "text_delta", text: "one tw" }, { type: "message", text: "one tw", partial: true }], {
      ...completed,
      word: "max-tokens",
      success: false,
      usage: Usage.unavailable
    })
    assert.strictEqual(terminal, "one tw\n  (cut off)\n✗ max-tokens · 1.2 s · usage unknown\n")
  })

  it("says what failed and what to do", () => {
    const failure = Failure.make("RATE_LIMIT", "too many requests\nfor this key")
    assert.strictEqual(
      told([], { word: "error RATE_LIMIT", success: false, failure, answer: "", durationMs: 100, usage: Usage.unavailable }).terminal,
      `✗ too many requests\nfor this key\n  code: RATE_LIMIT\n  what to do: ${failure.remedy}\n✗ error RATE_LIMIT · 0.1 s · usage unknown\n`
    )
  })

  it("tells who asked, what was answered, and a denied tool once", () => {
    const { aside } = told([
      { type: "tool_start", kind: "tool", call_id: "c1", tool_name: "execute", tool_input: { command: "rm -rf /" } },
      { type: "permission_request", request_id: "r1", call_id: "c1", tool_name: "execute", tool_input: { command: "rm -rf /" } },
      { type: "permission_decision", request_id: "r1", decision: "deny", by: "deny", reason: "nobody is there to ask" },
      { type: "tool_end", kind: "tool", call_id: "c1", tool_name: "execute", success: false, denied: true },
      { type: "tool_start", kind: "tool", call_id: "c2", tool_name: "fetch" },
      { type: "tool_end", kind: "tool", call_id: "c2", tool_name: "fetch", success: false, denied: true, output_summary: "not listed" }
    ], completed)
    assert.strictEqual(aside, [
      "→ execute rm -rf /",
      "? execute rm -rf /",
      "  deny (deny): nobody is there to ask",
      "→ fetch",
      "✗ fetch was not allowed: not listed",
      "✓ completed · 1.2 s · 1,204 tokens in, 86 out, about $0.0042",
      ""
    ].join("\n"))
  })

  it("keeps what subagents and background tasks say out of the answer", () => {
    const { answer, aside } = told([
      { type: "text_delta", text: "noise", origin: "subagent" },
      { type: "message", text: "a subagent's\nwords", origin: "subagent" },
      { type: "message", text: "the answer" }
    ], completed)
    assert.strictEqual(answer, "the answer\n")
    assert.include(aside, "  [subagent] a subagent's words\n")
  })

  it("never lets a harness's words reach the terminal's controls by an aside", () => {
    const evil = "\u001b]52;c;ZXZpbA==\u0007"
    const { aside } = told([
      { ...start, model: evil, cwd: evil },
      { type: "tool_start", kind: "tool", call_id: "c", tool_name: evil, tool_input: { a: evil } },
      { type: "tool_end", kind: "tool", call_id: "c", tool_name: evil, success: false, output_summary: evil },
      { type: "notice", kind: "harness_note", message: evil },
      { type: "notice", kind: "todo", message: `[pending] ${evil}` },
      { type: "permission_request", request_id: "r", tool_name: evil },
      { type: "permission_decision", request_id: "r", decision: "allow", by: evil, reason: evil }
    ], { ...completed, success: false, failure: { code: "INTERNAL", message: evil, remedy: evil }, remarks: [evil] })
    assert.notMatch(aside, /[\u001b\u0007]/)
  })

  it("tells the session again only when something about it has changed", () => {
    const text = TurnText.make(Style.plain)
    assert.lengthOf(text.add(start), 1)
    assert.lengthOf(text.add(start), 0)
    assert.lengthOf(text.add({ ...start, resumed: true }), 0)
    assert.deepStrictEqual(text.add({ ...start, model: "m-2", resumed: true }), [
      { to: "aside", text: "scripted 0.1.0 · m-2 · session s-1 (continued) · /project\n" }
    ])
  })

  it("says that the agent goes on by itself", () => {
    const text = TurnText.make(Style.plain)
    assert.deepStrictEqual(text.add({ type: "turn_start", turn: 2, trigger: { kind: "background" } }), [
      { to: "aside", text: "· the agent goes on by itself\n" }
    ])
    assert.lengthOf(text.add({ type: "turn_start", turn: 3, trigger: { kind: "message", source: "user" } }), 0)
  })

  it("knows what goes on, for the line that shows the time", () => {
    const text = TurnText.make(Style.plain)
    const after = (event: AgentRunEvent.Payload) => {
      text.add(event)
      return text.activity()
    }
    const begin = (id: string, name: string) => after({ type: "tool_start", kind: "tool", call_id: id, tool_name: name })
    const finish = (id: string, name: string) => after({ type: "tool_end", kind: "tool", call_id: id, tool_name: name, success: true })
    assert.deepStrictEqual(
      [
        text.activity(),
        after({ type: "reasoning_delta", text: "hm" }),
        after({ type: "text_delta", text: "a" }),
        begin("1", "read"),
        begin("2", "grep"),
        finish("2", "grep"),
        finish("1", "read")
      ],
      ["waiting for the agent", "thinking", "answering", "running read", "running grep", "running read", "waiting for the agent"]
    )
  })

  it("says durations as a person would", () => {
    assert.deepStrictEqual([0, 49, 1250, 59_949, 59_950, 61_000, 3_599_400, 3_600_000, 7_384_000].map(TurnText.duration), [
      "0.0 s", "0.0 s", "1.3 s", "59.9 s", "1 min 00 s", "1 min 01 s", "59 min 59 s", "1 h 00 min", "2 h 03 min"
    ])
  })

  it("paints where it is told to", () => {
    assert.strictEqual(told([], completed, Style.coloured).terminal.startsWith("\u001b[32m✓ completed"), true)
  })
})
