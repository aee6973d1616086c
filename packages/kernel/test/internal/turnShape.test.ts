import { assert, describe, it } from "@effect/vitest"
import { TurnEvent } from "@turnpike/contract"
import * as TurnShape from "../../src/internal/turnShape.ts"
import * as FakeSession from "../support/FakeSession.ts"

const { chunk, end, message } = FakeSession

const call = (call_id: string) => TurnEvent.make("tool/call", { call_id, name: "Bash" })
const result = (call_id: string) => TurnEvent.make("tool/result", { call_id, is_error: false })
const start = (step: number) => TurnEvent.make("step/start", { step })
const stop = (step: number) => TurnEvent.make("step/end", { step })
const request = (request_id: string, call_id?: string) =>
  TurnEvent.make("permission/request", { request_id, tool_name: "Bash", ...(call_id === undefined ? {} : { call_id }) })
const decision = (request_id: string) => TurnEvent.make("permission/decision", { request_id, decision: "allow", by: "x" })
const note = (text: string) => TurnEvent.make("notice", { kind: "harness_note", message: text })
const unknown = (call_id: string) =>
  TurnEvent.make("tool/result", { call_id, is_error: true, error_code: "TOOL_OUTCOME_UNKNOWN", output: TurnShape.outcomeUnknown })

const told = (...events: ReadonlyArray<TurnEvent.TurnEvent>) => {
  const shape = TurnShape.make(["phase-await"])
  return [...events.flatMap(shape.tell), ...shape.close()]
}

describe("steps", () => {
  it("are one for a turn whose harness reveals none", () => {
    assert.deepStrictEqual(told(message("a"), end("a")), [message("a"), end("a"), stop(1)])
  })

  it("are those that the harness reveals, counted from 1; the first is open from the beginning", () => {
    assert.deepStrictEqual(told(start(7), message("a"), stop(7), start(8), message("b"), stop(8), end("b")), [
      message("a"),
      stop(1),
      start(2),
      message("b"),
      stop(2),
      end("b")
    ])
  })

  it("end where the next begins, and at the end of the turn", () => {
    assert.deepStrictEqual(told(start(1), start(2), end("a", { text: "" })), [stop(1), start(2), end(""), stop(2)])
  })

  it("that end without a beginning end nothing", () => {
    assert.deepStrictEqual(told(stop(1), stop(2)), [stop(1)])
  })
})

describe("messages", () => {
  it("that never came are made of their pieces: whole at a good ending, partial otherwise", () => {
    assert.deepStrictEqual(told(chunk("a"), chunk("b"), end("ab")), [chunk("a"), chunk("b"), message("ab"), end("ab"), stop(1)])
    const limited = end("ab", { stop_reason: "max-tokens" })
    const partial = TurnEvent.make("assistant/message", { text: "ab", partial: true })
    assert.deepStrictEqual(told(chunk("ab"), limited), [chunk("ab"), partial, limited, stop(1)])
    assert.deepStrictEqual(told(chunk("ab")), [chunk("ab"), partial, stop(1)])
  })

  it("sum up the pieces before them", () => {
    assert.deepStrictEqual(told(chunk("a"), message("a"), chunk("b"), message("b"), end("b")).filter(({ type }) => type === "assistant/message"), [
      message("a"),
      message("b")
    ])
  })

  it("are told for an answer that stands in the ending alone", () => {
    assert.deepStrictEqual(told(end("a")), [message("a"), end("a"), stop(1)])
    assert.deepStrictEqual(told(message(""), call("t"), result("t"), end("a"))[3], message("a"))
    assert.deepStrictEqual(told(end("")), [end(""), stop(1)])
  })

  it("of others are no part of the turn's own", () => {
    const other = TurnEvent.make("assistant/chunk", { kind: "text", text: "sub", origin: "subagent" })
    const thought = TurnEvent.make("assistant/chunk", { kind: "reasoning", text: "hm" })
    assert.deepStrictEqual(told(other, thought), [other, thought, stop(1)])
    const own = TurnEvent.make("assistant/chunk", { kind: "text", text: "own", origin: "turn" })
    assert.deepStrictEqual(told(own)[1], TurnEvent.make("assistant/message", { text: "own", partial: true }))
  })

  it("that never came are bounded, and what was not kept is counted", () => {
    const shape = TurnShape.make([])
    const piece = "x".repeat(1024 * 1024)
    for (let index = 0; index < 6; index++) shape.tell(chunk(piece))
    const [text, lost] = shape.close()
    assert.strictEqual(text?.type === "assistant/message" ? text.data.text.length : 0, TurnShape.maxPendingCharacters)
    assert.deepStrictEqual(lost, TurnEvent.make("notice", {
      kind: "text_lost",
      message: `${2 * 1024 * 1024} more characters of the message before were not kept`
    }))
  })
})

describe("calls", () => {
  it("pass where they are in order", () => {
    assert.deepStrictEqual(told(call("a"), call("b"), result("b"), result("a")), [call("a"), call("b"), result("b"), result("a"), stop(1)])
  })

  it("of the same id get ids of their own, in results, requests and denials too", () => {
    assert.deepStrictEqual(
      told(call("a"), result("a"), call("a"), request("p", "a"), decision("p"), result("a"), end("", { denials: [{ tool_name: "Bash", call_id: "a" }] })),
      [
        call("a"),
        result("a"),
        call("a#2"),
        request("p", "a#2"),
        decision("p"),
        result("a#2"),
        end("", { denials: [{ tool_name: "Bash", call_id: "a#2" }] }),
        stop(1)
      ]
    )
  })

  it("do not take ids that are in use otherwise", () => {
    assert.deepStrictEqual(told(call("phase-await"), result("phase-await")), [call("phase-await#2"), result("phase-await#2"), stop(1)])
    assert.deepStrictEqual(told(call("a#2"), call("a"), call("a"), result("a")), [
      call("a#2"),
      call("a"),
      call("a#3"),
      result("a#3"),
      unknown("a#2"),
      unknown("a"),
      stop(1)
    ])
  })

  it("that are open at the end have an unknown outcome", () => {
    assert.deepStrictEqual(told(call("a"), call("b"), result("a")), [call("a"), call("b"), result("a"), unknown("b"), stop(1)])
  })

  it("that end without a beginning, or twice, are notes", () => {
    assert.deepStrictEqual(told(result("a"), call("b"), result("b"), result("b")), [
      note("a tool ended that had not begun: a"),
      call("b"),
      result("b"),
      note("a tool ended that had not begun: b"),
      stop(1)
    ])
  })
})

describe("permission requests", () => {
  it("that nobody answered are cancelled, before the calls that wait for them end", () => {
    assert.deepStrictEqual(told(call("a"), request("p", "a")), [
      call("a"),
      request("p", "a"),
      TurnEvent.make("permission/decision", {
        request_id: "p",
        decision: "cancelled",
        by: "turnpike",
        reason: "the turn ended before anyone answered"
      }),
      unknown("a"),
      stop(1)
    ])
  })

  it("that were not made have no answer", () => {
    assert.deepStrictEqual(told(decision("p")), [note("a permission was decided that was not asked for: p"), stop(1)])
  })
})
