import { assert, describe, it } from "@effect/vitest"
import { Failure, TurnEvent } from "@turnpike/contract"
import { Redaction, RunEvidence } from "../src/index.ts"
import * as FakeSession from "./support/FakeSession.ts"

const make = () => RunEvidence.make(Redaction.shapes)

describe("RunEvidence", () => {
  it("is nothing at first", () => {
    const evidence = make()
    assert.deepStrictEqual(evidence.forJudge([], []), { ending: undefined, failure: undefined, stops: [], cutOff: false, lostTasks: [] })
    assert.isFalse(evidence.endedByItself())
  })

  it("tells what came before the first request to stop from what came after", () => {
    const before = make()
    before.see(FakeSession.end("a"))
    before.fail(Failure.make("INTERNAL", "x"))
    before.stopAsked()
    const { ending, failure } = before.forJudge([], [])
    assert.deepStrictEqual([ending?.beforeStop, failure?.beforeStop, before.endedByItself()], [true, true, true])

    const after = make()
    after.stopAsked()
    after.see(FakeSession.end("a"))
    after.fail(Failure.make("INTERNAL", "x"))
    const late = after.forJudge([], [])
    assert.deepStrictEqual([late.ending?.beforeStop, late.failure?.beforeStop, after.endedByItself()], [false, false, false])
  })

  it("keeps the first failure and the first ending", () => {
    const evidence = make()
    evidence.fail(Failure.make("RATE_LIMIT", "first"))
    evidence.fail(Failure.make("INTERNAL", "second"))
    evidence.see(FakeSession.end("first"))
    evidence.see(FakeSession.end("second"))
    const { ending, failure } = evidence.forJudge([], [])
    assert.deepStrictEqual([failure?.failure.message, ending?.end.text], ["first", "first"])
  })

  it("keeps no credential of a failure, in its message or its facts", () => {
    const evidence = make()
    evidence.fail(Failure.make("INTERNAL", "token=abc", { data: { stderr: ["password=def"] } }))
    assert.deepStrictEqual(evidence.failure(), Failure.make("INTERNAL", "token=[REDACTED]", { data: { stderr: ["password=[REDACTED]"] } }))
  })

  it("lists a denial once, the harness's own word first", () => {
    const evidence = make()
    const denied = (call_id: string, name: string) => {
      evidence.see(TurnEvent.make("tool/call", { call_id, name, input: { n: 1 } }))
      evidence.see(TurnEvent.make("tool/result", { call_id, is_error: true, denied: true }))
    }
    denied("a", "Bash")
    denied("b", "Write")
    denied("c", "Write")
    evidence.see(TurnEvent.make("tool/result", { call_id: "d", is_error: true, denied: true }))
    evidence.see(TurnEvent.make("tool/result", { call_id: "e", is_error: true }))
    assert.deepStrictEqual(evidence.denials().map(({ tool_name }) => tool_name), ["Bash", "Write", "Write", "unknown"])
    evidence.see(FakeSession.end("", { denials: [{ tool_name: "Bash", call_id: "a" }, { tool_name: "Write" }] }))
    assert.deepStrictEqual(evidence.denials(), [
      { tool_name: "Bash", call_id: "a" },
      { tool_name: "Write" },
      { tool_name: "Write", call_id: "c", input: { n: 1 } },
      { tool_name: "unknown", call_id: "d" }
    ])
  })
})
