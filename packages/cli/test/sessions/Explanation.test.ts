import { assert, describe, it } from "@effect/vitest"
import { Failure, type SessionEvent, Verdict } from "@turnpike/contract"
import { LogState } from "@turnpike/kernel"
import { Result } from "effect"
import * as Log from "../../../kernel/test/support/LogEvents.ts"
import * as Explanation from "../../src/sessions/Explanation.ts"
import * as TurnFacts from "../../src/sessions/TurnFacts.ts"

type Body = SessionEvent.Body

const alone: Explanation.Surroundings = { sessionId: "demo", harness: "scripted", holder: undefined, repeats: new Map() }
const chat = { name: "turnpike chat (process 1 on anna)", since: 0 }

/** Explains a turn that the rules of a log allow. */
const explain = (bodies: ReadonlyArray<Body>, surroundings: Partial<Explanation.Surroundings> = {}): Explanation.Explanation => {
  const events = Log.log(bodies)
  Result.getOrThrow(LogState.all(LogState.empty(), events))
  const facts = TurnFacts.of(events)
  if (facts === undefined) throw new Error("no turn begins")
  return Explanation.make(facts, { ...alone, ...surroundings })
}

const lines = ({ evidence }: Explanation.Explanation): ReadonlyArray<string> => evidence.map(({ kind, seq, text }) => `${kind} ${seq ?? "-"} ${text}`)

const bound: Body = {
  type: "session/bound",
  data: { harness_session_id: "h-1", resumed: false, harness_version: "2.0", model: "m-1" }
}
const ended = (verdict: Verdict.Verdict, ...inside: ReadonlyArray<Body>): ReadonlyArray<Body> => [
  Log.turnStart(1),
  Log.claimed(1, "r-1"),
  Log.stepStart(),
  Log.user("fix it", "r-1"),
  bound,
  ...inside,
  Log.stepEnd(),
  Log.turnEnd(1, verdict)
]
const failed = (code: Failure.FailureCode, message: string): Verdict.Verdict => ({ type: "error", error: Failure.make(code, message) })

/** What every turn above begins with. */
const begun = [
  "beginning 0 a message that was waiting began it",
  "prompt 3 it was asked: “fix it”",
  "harness 4 scripted (2.0, m-1) began its session h-1"
]

describe("the explanation of a turn", () => {
  it("that completed says what it did", () => {
    const explanation = explain(ended({ type: "completed" }, Log.call("a"), Log.result("a"), Log.call("b"), Log.result("b"), Log.answer("done"), {
      type: "usage",
      data: { usage: { tokens: { source: "reported", input_tokens: 10, output_tokens: 2 }, cost: { source: "unavailable" } }, final: true }
    }))
    assert.deepStrictEqual({ ...explanation, evidence: lines(explanation) }, {
      turn: 1,
      trigger: { kind: "message", source: "user" },
      state: "ended",
      verdict: { type: "completed" },
      started: 1_790_000_000_000,
      ended: 1_790_000_012_000,
      summary: "turn 1 completed: scripted ended it by itself, without an error",
      evidence: [...begun, "work - 2 tool calls: shell × 2", "answer 9 scripted had said: “done”", "usage - it used 10 tokens in, 2 out"],
      next: "Nothing: it succeeded."
    })
  })

  const summaries: ReadonlyArray<readonly [Verdict.Verdict, string, string]> = [
    [{ type: "completed" }, "turn 1 completed: scripted ended it by itself, without an error", "Nothing: it succeeded."],
    [{ type: "max-tokens" }, "turn 1 did not come to its end: the answer was cut at the model's output limit", Failure.codes.MAX_TOKENS.remedy],
    [{ type: "max-turns" }, "turn 1 did not come to its end: scripted reached its limit of model calls", Failure.codes.MAX_TURNS.remedy],
    [{ type: "refusal" }, "turn 1 ended without success: the model refused", Failure.codes.REFUSAL.remedy],
    [{ type: "blocked", by: "plugin:gate" }, "turn 1 ended before it began: its prompt was rejected by plugin:gate, and reached no model", Failure.codes.BLOCKED.remedy],
    [{ type: "blocked", by: "" }, "turn 1 ended before it began: its prompt was rejected by a policy, and reached no model", Failure.codes.BLOCKED.remedy],
    [{ type: "aborted", cause: "user", mode: "graceful" }, "turn 1 was stopped: somebody interrupted it, with Ctrl-C or a request to cancel", Failure.codes.CANCELLED.remedy],
    [{ type: "aborted", cause: "parent", mode: "hard" }, "turn 1 was stopped: a termination signal, or the program that runs Turnpike, ended it", Failure.codes.CANCELLED.remedy],
    [{ type: "aborted", cause: "hook", mode: "graceful" }, "turn 1 was stopped: a plugin, or the harness by itself, broke it off", Failure.codes.CANCELLED.remedy],
    [{ type: "aborted", cause: "disposed", mode: "hard" }, "turn 1 was stopped: its session was closed while it ran", Failure.codes.CANCELLED.remedy],
    [{ type: "aborted", cause: "timeout", mode: "hard" }, "turn 1 was stopped: it reached the caller's time limit", Failure.codes.TIME_LIMIT.remedy],
    [{ type: "aborted", cause: "silence", mode: "hard" }, "turn 1 was stopped: the harness was silent for longer than the caller allows", Failure.codes.SILENCE.remedy],
    [{ type: "aborted", cause: "budget", mode: "graceful" }, "turn 1 was stopped: it used up the caller's budget", Failure.codes.BUDGET.remedy],
    [{ type: "aborted", cause: "policy_violation", mode: "hard" }, "turn 1 was stopped: the harness broke a limit that was set for it", Failure.codes.POLICY_VIOLATION.remedy],
    [{ type: "aborted", cause: "channel_lost", mode: "graceful" }, "turn 1 was stopped: the channel that it needed went away", Failure.codes.CHANNEL_LOST.remedy],
    [failed("RATE_LIMIT", "429"), "turn 1 failed: RATE_LIMIT", Failure.codes.RATE_LIMIT.remedy],
    [{ type: "interrupted" }, "turn 1 was cut off by a crash", "Go on with `turnpike chat --session demo`: what the turn did until then is in its log."],
    [
      { type: "interrupted", not_started: true },
      "turn 1 was cut off by a crash before anything of it left for scripted",
      "Go on with `turnpike chat --session demo`: what the turn did until then is in its log."
    ]
  ]

  it.each(summaries)("of %j says so, and what to do", (verdict, summary, next) => {
    const explanation = explain(ended(verdict))
    assert.deepStrictEqual([explanation.state, explanation.verdict, explanation.summary, explanation.next], ["ended", verdict, summary, next])
  })

  it("has a case for every verdict and every cause", () => {
    const causes = Verdict.AbortCause.literals
    const types = Verdict.Verdict.members.map((member) => member.fields.type.literal)
    assert.deepStrictEqual(types.filter((type) => !summaries.some(([verdict]) => verdict.type === type)), [])
    assert.deepStrictEqual(causes.filter((cause) => !summaries.some(([verdict]) => verdict.type === "aborted" && verdict.cause === cause)), [])
  })

  it("that failed tells the failure, what was tried again, and when the harness was last heard of", () => {
    const explanation = explain(ended(
      failed("OVERLOADED", "the service is\noverloaded"),
      { type: "retry/scheduled", data: { attempt: 1, max_attempts: 3, delay_ms: 500, error: Failure.make("OVERLOADED", "529") } },
      { type: "notice", data: { kind: "harness_note", message: "a remark" } },
      { type: "error", data: { code: "HARNESS_IO", message: "the pipe broke" } },
      { type: "error", data: { code: "OVERLOADED", message: "the service is overloaded" } }
    ))
    assert.deepStrictEqual(lines(explanation), [
      ...begun,
      "retry 5 a model request was sent again: attempt 1 of 3 after 500 ms: OVERLOADED: 529",
      "notice 6 notice harness_note: a remark",
      "answer - scripted had given no answer",
      "error 7 HARNESS_IO: the pipe broke",
      "error 10 OVERLOADED: the service is overloaded",
      "stop 10 it had run for 10.0 s; scripted was last heard of 5.0 s before that"
    ])
  })

  it("that failed before anything was heard says that", () => {
    const explanation = explain([Log.turnStart(1), Log.stepStart(), Log.user("x"), Log.stepEnd(), Log.turnEnd(1, failed("NO_TERMINAL", "no end"))])
    assert.deepStrictEqual(lines(explanation), [
      "beginning 0 a message that was waiting began it",
      "prompt 2 it was asked: “x”",
      "harness - nothing was heard of scripted",
      "error 4 NO_TERMINAL: no end"
    ])
  })

  it("that was stopped tells how, and what had been begun", () => {
    const explanation = explain(ended({ type: "aborted", cause: "user", mode: "hard" }, Log.chunk("half an"), Log.call("a"), {
      type: "tool/result",
      data: { call_id: "a", is_error: true, error_code: "TOOL_OUTCOME_UNKNOWN", output: "TOOL_OUTCOME_UNKNOWN: …" },
      surface_op: "append"
    }))
    assert.deepStrictEqual(lines(explanation), [
      ...begun,
      "work - 1 tool call: shell",
      "tool_unfinished 7 shell (ls) may have done something: the turn ended before anybody saw it end",
      "answer - an answer had begun and was not brought to its end",
      "stop 9 the turn was cut off, and what ran in it was ended; it had run for 9.0 s, and scripted was last heard of 3.0 s before that"
    ])
    assert.strictEqual(explanation.next, `Look at what shell (ls) may have done before it is run again. ${Failure.codes.CANCELLED.remedy}`)
  })

  it("tells once what was not allowed, by whom and why", () => {
    const explanation = explain(ended(
      { type: "completed" },
      Log.call("a"),
      Log.ask("q", "a"),
      { type: "permission/decision", data: { request_id: "q", decision: "deny", by: "allow-list", reason: "it is not in it" } },
      { type: "tool/result", data: { call_id: "a", is_error: true, denied: true }, surface_op: "append" },
      Log.call("b"),
      { type: "tool/result", data: { call_id: "b", is_error: true, denied: true }, surface_op: "append" },
      Log.ask("r"),
      Log.decide("r", "cancelled"),
      Log.call("c"),
      { type: "tool/result", data: { call_id: "c", is_error: true, output: "no such file" }, surface_op: "append" },
      Log.answer("done")
    ))
    assert.deepStrictEqual(lines(explanation).slice(begun.length), [
      "work - 3 tool calls: shell × 3",
      "tool_failed 14 shell (ls) failed: no such file",
      "denial 7 shell was not allowed (allow-list): it is not in it",
      "denial 10 shell (ls) was not allowed",
      "denial 12 nobody had answered whether shell may run when the turn ended",
      "answer 15 scripted had said: “done”"
    ])
    assert.strictEqual(explanation.next, "If it should have had what was not allowed, name the tool with --allow-tool.")
  })

  it("that a crash cut off tells what recovery did", () => {
    const state = Result.getOrThrow(LogState.all(LogState.empty(), Log.log([Log.turnStart(1), Log.claimed(1, "r-1", "r-2")])))
    const events = [...Log.log([Log.turnStart(1), Log.claimed(1, "r-1", "r-2")]), ...LogState.closers(state)]
    const facts = TurnFacts.of(events)
    if (facts === undefined) throw new Error("no turn begins")
    const explanation = Explanation.make(facts, { ...alone, repeats: new Map([["r-1", { id: "r-3", waits: true }], ["r-2", { id: "r-4", waits: false }]]) })
    assert.deepStrictEqual(lines(explanation), [
      "beginning 0 a message that was waiting began it",
      "recovery 2 whoever opened the session next closed the turn",
      "recovery - receipt r-1, which it had taken, was put back as receipt r-3, which waits",
      "recovery - receipt r-2, which it had taken, was put back as receipt r-4"
    ])
    assert.deepStrictEqual([explanation.summary, explanation.next], [
      "turn 1 was cut off by a crash before anything of it left for scripted",
      "Its prompt waits as receipt r-3: `turnpike chat --session demo` takes it."
    ])
  })

  it("without an end tells whether it runs, or was left open", () => {
    const open = [Log.turnStart(1), Log.stepStart(), Log.user("x"), bound, Log.call("a")]
    const running = explain(open, { holder: chat })
    assert.deepStrictEqual([running.state, running.verdict, running.ended, running.summary, running.next], [
      "running",
      undefined,
      undefined,
      "turn 1 is still running, in turnpike chat (process 1 on anna)",
      "Wait for it, or watch it: `turnpike sessions log demo --follow --after 4`."
    ])
    const left = explain(open)
    assert.deepStrictEqual([left.state, left.summary, left.next], [
      "left_open",
      "turn 1 has no end: a crash left it open, and nobody has opened the session since",
      "`turnpike sessions repair demo` says what opening the session would put in order. The next run or chat does it by itself."
    ])
    assert.include(lines(left), "tool_unfinished 4 shell (ls) was called and has no result yet")
  })

  it.each<readonly [string, ReadonlyArray<Body>, string]>([
    ["a text that was put in", [Log.turnStart(1, { kind: "injection", source: "user" }), Log.message("context/message", "the build is red"), Log.turnEnd(1)], "turn 1 put a text into the session; no model was asked"],
    ["nothing that was left", [Log.turnStart(1), Log.turnEnd(1)], "turn 1 ended without asking scripted: nothing of what it was begun for was left in the inbox"],
    ["work of the harness's own", [Log.turnStart(1, { kind: "background" }), Log.stepStart(), Log.answer("x"), Log.stepEnd(), Log.turnEnd(1)], "turn 1 completed: scripted had gone on working by itself, and came to an end"]
  ])("of %s says so", (_what, bodies, summary) => {
    assert.strictEqual(explain(bodies).summary, summary)
  })

  it("counts what is too much to tell", () => {
    const many = Array.from({ length: 12 }, (_, index): ReadonlyArray<Body> => [
      { type: "tool/call", data: { call_id: `c${index}`, name: `tool${index}` } },
      { type: "tool/result", data: { call_id: `c${index}`, is_error: true }, surface_op: "append" }
    ]).flat()
    assert.deepStrictEqual(lines(explain(ended({ type: "completed" }, ...many, Log.answer("x")))).slice(begun.length, begun.length + 7), [
      "work - 12 tool calls: tool0, tool1, tool2, tool3, tool4, tool5, tool6, tool7 and 4 others",
      ...[0, 1, 2, 3, 4].map((index) => `tool_failed ${6 + 2 * index} tool${index} failed`),
      "tool_failed - and 7 more calls failed"
    ])
  })

  it("never breaks, and stays short, on any log that keeps the rules, wherever it is cut", () => {
    const check = (events: ReadonlyArray<SessionEvent.SessionEvent>) => {
      let gathering: TurnFacts.Gathering | undefined
      for (const event of events) {
        if (event.type === "turn/start") gathering = TurnFacts.make(event)
        else gathering?.add(event)
        if (gathering === undefined) continue
        const facts = gathering.facts()
        const explanation = Explanation.make(facts, { ...alone, harness: `a\n\u001b[31m${"name ".repeat(50)}` })
        assert.strictEqual(explanation.turn, facts.turn)
        assert.strictEqual(explanation.state, event.type === "turn/end" ? "ended" : "left_open")
        assert.deepStrictEqual(JSON.parse(JSON.stringify(explanation.evidence)), explanation.evidence)
        assert.isBelow(explanation.evidence.length, 60)
        for (const text of [explanation.summary, explanation.next, ...explanation.evidence.map((each) => each.text)]) {
          assert.match(text, /^[^\n\u0000-\u001f]+$/)
          assert.isBelow(text.length, 1000)
        }
      }
    }
    for (let seed = 1; seed <= 30; seed++) {
      const events = Log.random(seed, 20 + seed)
      check(events)
      check([...events, ...LogState.closers(Result.getOrThrow(LogState.all(LogState.empty(), events)))])
    }
  })
})
