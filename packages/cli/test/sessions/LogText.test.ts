import { Style } from "@turnpike/channel-terminal"
import { Failure, Scalars, type SessionEvent } from "@turnpike/contract"
import { assert, describe, it } from "@effect/vitest"
import * as Log from "../../../kernel/test/support/LogEvents.ts"
import * as LogText from "../../src/sessions/LogText.ts"
import * as Moment from "../../src/sessions/Moment.ts"

const tell = (events: ReadonlyArray<SessionEvent.SessionEvent>): string => {
  const text = LogText.make(Style.plain)
  return [...events.map(text.add), text.end()].join("")
}

const at = (seq: number): string => Moment.format(1_790_000_000_000 + seq * 1000)

describe("a log as text", () => {
  it("is told turn by turn", () => {
    const told = tell(Log.log([
      Log.turnStart(1),
      Log.stepStart(),
      Log.message("context/message", "the build\nis red"),
      Log.user("fix it\nplease"),
      { type: "session/bound", data: { harness_session_id: "h-1", resumed: true, model: "m" } },
      { type: "assistant/chunk", data: { kind: "reasoning", text: "hm" } },
      Log.chunk("I will "),
      Log.chunk("look"),
      Log.answer("I will look."),
      Log.call("a"),
      Log.result("a"),
      Log.ask("q", "a"),
      Log.decide("q", "allow"),
      { type: "tool/call", data: { call_id: "b", name: "edit", input: { file: "a", text: "b" } } },
      { type: "tool/result", data: { call_id: "b", is_error: true, denied: true, output: "not in\nthe list" }, surface_op: "append" },
      Log.chunk("half an ans"),
      Log.message("steering/message", "stop"),
      { type: "todo/write", data: { todos: [{ content: "look", status: "completed" }] } },
      { type: "retry/scheduled", data: { attempt: 1, error: Failure.make("OVERLOADED", "529") } },
      { type: "notice", data: { kind: "harness_note", message: "a remark" } },
      { type: "x/plugin/thing", data: null },
      { type: "error", data: { code: "SERVER", message: "it broke" } },
      { type: "usage", data: { usage: { tokens: { source: "reported", input_tokens: 1200, output_tokens: 3 }, cost: { source: "unavailable" } }, final: true } },
      Log.stepEnd(),
      Log.turnEnd(1, { type: "error", error: Failure.make("SERVER", "it broke") }),
      ...Log.turn(2, "again", Log.answer("yes"))
    ]))
    assert.strictEqual(told, [
      `── turn 1 · ${at(0)} · message from user · event 0`,
      "> (told by user) the build",
      "> (told by user) is red",
      "> fix it",
      "> please",
      "the harness's session h-1 (continued) · m",
      "I will look.",
      "→ shell ls",
      "✓ shell",
      "? shell",
      "  allow (user)",
      "→ edit {\"file\":\"a\",\"text\":\"b\"}",
      "✗ edit was not allowed: not in the list",
      "half an ans",
      "> (while it ran) stop",
      "  [completed] look",
      "! a model request is sent again, attempt 1: OVERLOADED",
      "! harness_note: a remark",
      "  x/plugin/thing",
      "✗ SERVER: it broke",
      "✗ it broke",
      "  code: SERVER",
      "✗ error SERVER · 24.0 s · 1,200 tokens in, 3 out",
      "",
      `── turn 2 · ${at(25)} · message from user · event 25`,
      "> again",
      "yes",
      "✓ completed · 5.0 s · usage unknown",
      ""
    ].join("\n"))
  })

  it("is told from the middle of a turn, and of a line", () => {
    assert.strictEqual(tell(Log.log([Log.result("a"), Log.chunk("and then")], 7)), "✓ a tool\nand then\n")
  })

  it("shows what would move a cursor", () => {
    const told = tell(Log.log([Log.turnStart(1), Log.user("\u001b]0;x\u0007"), Log.chunk("\u001b[2J"), Log.answer("\u001b[2Jdone\r"), Log.turnEnd(1)]))
    assert.notMatch(told.replaceAll("\n", ""), /[\u0000-\u001f]/)
    assert.include(told, "␛[2Jdone␍")
  })

  it("keeps whole lines on any log that keeps the rules", () => {
    for (let seed = 1; seed <= 30; seed++) {
      const told = tell(Log.random(seed, 60))
      assert.isTrue(told.endsWith("\n"))
      assert.notMatch(told.replaceAll("\n", ""), /[\u0000-\u001f]/)
    }
  })

  it("begins with what the session is", () => {
    const text = LogText.make(Style.plain)
    const header = text.header({
      type: "session",
      format: 1,
      id: Scalars.SessionId.make("demo"),
      created: 0,
      harness: "scripted",
      cwd: "/project",
      title: "A\ntitle",
      parent: { id: Scalars.SessionId.make("old"), events: 6 }
    })
    assert.strictEqual(header, "session demo · A title · scripted · /project · forked from old after 6 events\n")
    assert.match(text.add(Log.log([Log.turnStart(1)])[0]!), /^\n── turn 1/)
  })
})
