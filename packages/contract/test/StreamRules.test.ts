import { AgentRunEvent, Contracts, Failure, StreamRules, Verdict } from "@turnpike/contract"
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Arbitraries from "./support/Arbitraries.ts"

type Event = AgentRunEvent.AgentRunEvent
type Payload = AgentRunEvent.Payload

const numbered = (payloads: ReadonlyArray<Payload>): ReadonlyArray<Event> =>
  payloads.map((payload, seq) => ({ run_id: "run-1", seq, ts: "2026-01-31T09:00:00.000Z", ...payload }) as Event)

const textOf = (events: ReadonlyArray<unknown>): string => events.map((event) => `${JSON.stringify(event)}\n`).join("")

const check = (payloads: ReadonlyArray<Payload>, result: StreamRules.Options["result"] = "file") =>
  StreamRules.validate(textOf(numbered(payloads)), { result })

const turnStart = (turn: number): Payload => ({ type: "turn_start", turn })
const turnEnd = (turn: number): Payload => ({ type: "turn_end", turn, verdict: { type: "completed" } })
const toolStart = (call_id: string, kind: "tool" | "phase"): Payload => ({ type: "tool_start", kind, call_id, tool_name: "x" })
const toolEnd = (call_id: string, kind: "tool" | "phase"): Payload => ({ type: "tool_end", kind, call_id, tool_name: "x", success: true })
const text: Payload = { type: "text_delta", text: "x" }
const note: Payload = { type: "notice", kind: "harness_note", message: "x" }
const end: Payload = { type: "session_end", outcome: { success: true, summary: "Hello." }, reason: "success" }
const resultOf = (verdict: Verdict.Verdict, summary: string): Payload => {
  const { reason, success } = Verdict.consequences(verdict)
  return {
    type: "result",
    result: {
      result: { success, summary },
      reason,
      verdict,
      session: { id: "s-1", harness: "scripted", turn: 1 },
      usage: { tokens: { source: "unavailable" }, cost: { source: "unavailable" } },
      denials: [],
      background_killed: [],
      killed: [],
      survivors: [],
      error: Verdict.failureOf(verdict) ?? null,
      session_log: [],
      output_artifacts: [],
      observability: null,
      duration_ms: 0
    }
  }
}
const result = resultOf({ type: "completed" }, "Hello.")

describe("StreamRules", () => {
  it("find nothing in a whole run", () => {
    assert.deepStrictEqual(check([turnStart(1), text, toolStart("c", "tool"), toolEnd("c", "tool"), turnEnd(1), end, result], "stream"), [])
  })

  describe("each breach is found once, where it is", () => {
    const breaches: ReadonlyArray<readonly [string, ReadonlyArray<StreamRules.Violation>, ReadonlyArray<StreamRules.Violation>]> = [
      ["a gap", StreamRules.validate(textOf(numbered([note, note, end]).map((event) => event.seq === 0 ? event : { ...event, seq: event.seq + 5 })), { result: "file" }), [
        { line: 2, rule: "seq-contiguous", message: "seq is 6; 1 was due" }
      ]],
      ["another run", StreamRules.validate(textOf(numbered([note, end]).map((event) => event.seq === 0 ? event : { ...event, run_id: "run\n2" })), { result: "file" }), [
        { line: 2, rule: "one-run-id", message: "run_id is \"run\\n2\"; the stream began with \"run-1\"" }
      ]],
      ["no end", check([note]), [{ line: 0, rule: "one-session-end", message: "there is no session_end" }]],
      ["two ends", check([end, end]), [{ line: 2, rule: "one-session-end", message: "session_end follows session_end" }]],
      ["an event after the end", check([end, note]), [{ line: 2, rule: "result-last", message: "notice follows session_end" }]],
      ["an event after the result", check([end, result, note], "stream"), [{ line: 3, rule: "result-last", message: "notice follows the result" }]],
      ["a result before the end", check([result, end], "either"), [
        { line: 1, rule: "result-last", message: "the result comes before session_end" },
        { line: 2, rule: "result-last", message: "session_end follows the result" }
      ]],
      ["no result where it goes to the stream", check([end], "stream"), [{ line: 0, rule: "result-mode", message: "there is no result event" }]],
      ["a result where it goes to a file", check([end, result], "file"), [
        { line: 2, rule: "result-mode", message: "there is a result event although the result goes to a file" }
      ]],
      ["an end of a call without a start", check([toolEnd("p", "phase"), end]), [
        { line: 1, rule: "balanced-calls", message: "call_id \"p\" ends but is not open" }
      ]],
      ["a call id used twice", check([toolStart("p", "phase"), toolEnd("p", "phase"), toolStart("p", "phase"), toolEnd("p", "phase"), end]), [
        { line: 3, rule: "balanced-calls", message: "call_id \"p\" starts twice" }
      ]],
      ["a call that changes its kind", check([turnStart(1), toolStart("c", "tool"), toolEnd("c", "phase"), turnEnd(1), end]), [
        { line: 3, rule: "balanced-calls", message: "call_id \"c\" began as a tool and ends as a phase" }
      ]],
      ["a phase without an end", check([toolStart("p", "phase"), end]), [
        { line: 2, rule: "balanced-calls", message: "phase \"p\" has not ended" }
      ]],
      ["a decision without a request", check([turnStart(1), { type: "permission_decision", request_id: "r", decision: "deny", by: "x" }, turnEnd(1), end]), [
        { line: 2, rule: "answered-requests", message: "request_id \"r\" is decided but was not requested" }
      ]],
      ["overlapping turns", check([turnStart(1), turnStart(2), turnEnd(2), end]), [
        { line: 2, rule: "balanced-turns", message: "turn 2 starts while turn 1 is open" }
      ]],
      ["an end of a turn that is not open", check([turnStart(1), turnEnd(2), end]), [
        { line: 2, rule: "balanced-turns", message: "turn 2 ends but is not open" }
      ]],
      ["a turn without an end", check([turnStart(1), end]), [{ line: 2, rule: "balanced-turns", message: "turn 1 has not ended" }]],
      ["an answer outside a turn", check([text, end]), [{ line: 1, rule: "enclosed-in-turn", message: "text_delta stands outside a turn" }]],
      ["a tool outside a turn", check([turnStart(1), turnEnd(1), toolStart("c", "tool"), end]), [
        { line: 3, rule: "enclosed-in-turn", message: "tool_start stands outside a turn" }
      ]],
      ["another reason in the result", check([end, resultOf({ type: "error", error: Failure.make("SERVER", "x") }, "x")], "stream"), [
        { line: 2, rule: "outcome-agrees", message: "the result's reason is adapter_error; that of session_end was success" }
      ]],
      ["another summary in the result", check([end, resultOf({ type: "completed" }, "Goodbye.")], "stream"), [
        { line: 2, rule: "outcome-agrees", message: "the result's summary is not that of session_end" }
      ]],
      ["a blank line", StreamRules.validate(`${JSON.stringify(numbered([note])[0])}\n \t\r\n${JSON.stringify(numbered([note, end])[1])}\n`, { result: "file" }), [
        { line: 2, rule: "no-blank-lines", message: "the line is blank" }
      ]],
      ["two blank lines at the end", StreamRules.validate(`${textOf(numbered([end]))}\n\n`, { result: "file" }), [
        { line: 2, rule: "no-blank-lines", message: "the line is blank" },
        { line: 3, rule: "no-blank-lines", message: "the line is blank" }
      ]],
      ["a line that is no JSON", StreamRules.validate(`hello\n${JSON.stringify({ ...numbered([end])[0], seq: 1 })}\n`, { result: "file" }), [
        { line: 1, rule: "json-lines", message: "not JSON: Expected JSON: the character at column 1 cannot stand there" }
      ]],
      ["a line that is no event", StreamRules.validate(textOf([{ ...numbered([text])[0], seq: 7, text: 1 }, { ...numbered([end])[0], seq: 8 }]), { result: "file" }), [
        { line: 1, rule: "json-lines", message: "not an agent-run-event: text: Expected a string, got a number" }
      ]]
    ]
    for (const [title, found, expected] of breaches) it(title, () => assert.deepStrictEqual(found, expected))

    it("and every rule is among them", () => {
      const violated = new Set(breaches.flatMap(([, , expected]) => expected.map(({ rule }) => rule)))
      assert.deepStrictEqual([...violated].sort(), (Object.keys(StreamRules.rules) as Array<StreamRules.Rule>).sort())
    })
  })

  it("go on, line by line, after any number of breaches", () => {
    const checker = StreamRules.make({ result: "either" })
    const lines = ["", "x", "{}", JSON.stringify(numbered([end])[0])]
    assert.deepStrictEqual(lines.map((line) => checker.line(line).map(({ line, rule }) => [line, rule])), [
      [[1, "no-blank-lines"]],
      [[2, "json-lines"]],
      [[3, "json-lines"]],
      [[4, "seq-contiguous"]]
    ])
    assert.deepStrictEqual(checker.end(), [])
  })

  it("bound what they repeat of a stream", () => {
    const [first] = numbered([note])
    const found = StreamRules.validate(textOf([first, { ...numbered([note, end])[1], run_id: "r".repeat(100_000) }]), { result: "file" })
    assert.deepStrictEqual(found, [
      { line: 2, rule: "one-run-id", message: `run_id is "${"r".repeat(80)}…"; the stream began with "run-1"` }
    ])
  })

  /** What may stand in a turn, but for tools and permissions, which come in pairs. */
  const within = Arbitrary.schema(Schema.Union([
    AgentRunEvent.TextDelta,
    AgentRunEvent.ReasoningDelta,
    AgentRunEvent.Message,
    AgentRunEvent.TokenUsage,
    AgentRunEvent.Notice
  ]))

  const payloadOf = <E extends Event>({ run_id: _run, seq: _seq, ts: _ts, ...payload }: E) => payload as unknown as Payload

  /** Whole runs: phases around any number of turns, in which tools may stay without an end, and a result or none. */
  const runs = Arbitrary.map(
    Arbitrary.all([
      Arbitrary.array(Arbitrary.array(within)),
      Arbitrary.schema(Schema.Natural),
      Arbitraries.result
    ] as const),
    ([turns, choice, result]) => {
      const phase = (name: string, inner: ReadonlyArray<Payload>) => [toolStart(name, "phase"), ...inner, toolEnd(name, "phase")]
      const body = turns.flatMap((events, index): ReadonlyArray<Payload> => [
        turnStart(index + 1),
        toolStart(`cut-${index}`, "tool"),
        ...events.map(payloadOf),
        toolStart(`whole-${index}`, "tool"),
        { type: "permission_request", request_id: `r-${index}`, tool_name: "x" },
        { type: "permission_decision", request_id: `r-${index}`, decision: "allow", by: "x" },
        toolEnd(`whole-${index}`, "tool"),
        turnEnd(index + 1)
      ])
      const inStream = choice % 2 === 0
      return {
        options: { result: inStream ? "stream" : "file" } as const,
        payloads: [
          ...phase("provision", []),
          ...phase("await", body),
          { type: "session_end", outcome: result.result, reason: result.reason } as const,
          ...(inStream ? [{ type: "result", result } as const] : [])
        ] satisfies ReadonlyArray<Payload>
      }
    }
  )

  it.effect("find nothing in any whole run", () =>
    Effect.gen(function*() {
      const checked = yield* Arbitrary.checkEffect(runs, ({ options, payloads }) => {
        assert.deepStrictEqual(check(payloads, options.result), [])
        return true
      }, { runs: 150, seed: "whole runs", maxDiscards: 100_000 })
      assert.strictEqual(checked._tag, "Passed", Arbitrary.formatCheckFailure(checked))
    }))

  it.effect("find something in any whole run that loses a line, unless it was the last of a run that ends there", () =>
    Effect.gen(function*() {
      const checked = yield* Arbitrary.checkEffect(
        Arbitrary.all([runs, Arbitrary.schema(Schema.Natural)] as const),
        ([{ options, payloads }, place]) => {
          const events = numbered(payloads)
          const lost = place % events.length
          return StreamRules.validate(textOf(events.filter(({ seq }) => seq !== lost)), options).length > 0
        },
        { runs: 150, seed: "a lost line", maxDiscards: 100_000 }
      )
      assert.strictEqual(checked._tag, "Passed", Arbitrary.formatCheckFailure(checked))
    }))

  it("are the rules that meta.json lists", () => {
    assert.strictEqual(Contracts.meta()["stream_rules"], StreamRules.rules)
  })
})
