import type { InboxEntry, SessionEvent } from "@turnpike/contract"
import { LogState } from "@turnpike/kernel"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as Log from "../../../kernel/test/support/LogEvents.ts"
import * as RepairPlan from "../../src/sessions/RepairPlan.ts"

const receipt = (id: string, retry_of?: string): InboxEntry.Receipt => ({
  id,
  kind: "followup",
  text: `text of ${id}`,
  source: "user",
  time: 0,
  ...(retry_of === undefined ? {} : { retry_of })
})

const scanned = (bodies: ReadonlyArray<SessionEvent.Body>) => {
  const scan = RepairPlan.scan()
  for (const event of Log.log(bodies)) assert.strictEqual(scan.add(event), undefined)
  return scan
}

const planned = (bodies: ReadonlyArray<SessionEvent.Body>, ...receipts: ReadonlyArray<InboxEntry.Receipt>) => {
  const scan = scanned(bodies)
  const plan = RepairPlan.plan(scan.state(), new Map(receipts.map((each) => [each.id, each])))
  return { plan, told: RepairPlan.sentences(plan, scan.tools(), false) }
}

describe("a repair", () => {
  it("is nothing for a log whose turns have ended", () => {
    assert.deepStrictEqual(planned(Log.turn(1, "x")), { plan: { closed: [], cutBytes: 0, requeued: [] }, told: [] })
    assert.isTrue(RepairPlan.isNothing(planned([]).plan))
  })

  it("tells what would be closed, and the tools that nobody saw end", () => {
    const { plan, told } = planned([...Log.turn(1, "x"), Log.turnStart(2), Log.stepStart(), Log.user("y"), Log.call("a"), Log.call("b"), Log.ask("q", "b")])
    assert.isFalse(RepairPlan.isNothing(plan))
    assert.deepStrictEqual(told, [
      "the question q would be answered as cancelled",
      "shell (call a) would be given the result TOOL_OUTCOME_UNKNOWN: nobody knows what it did",
      "shell (call b) would be given the result TOOL_NOT_STARTED: it had certainly not begun",
      "turn 2 would be closed as interrupted"
    ])
  })

  it("tells which messages would wait again, and which did", () => {
    const cut = [Log.turnStart(1), Log.claimed(1, "r-1", "r-2")]
    assert.deepStrictEqual(planned(cut, receipt("r-1"), receipt("r-2")).told, [
      "turn 1 would be closed as interrupted, of which nothing had left for the harness",
      "message r-1 would be put back into the inbox: “text of r-1”",
      "message r-2 would be put back into the inbox: “text of r-2”"
    ])
    assert.deepStrictEqual(RepairPlan.sentences({ closed: [], cutBytes: 12, requeued: [receipt("r-3", "r-1")] }, new Map(), true), [
      "12 bytes behind the last whole record were cut off",
      "message r-1 was put back into the inbox as r-3: “text of r-3”"
    ])
    // One of them waits again already.
    assert.deepStrictEqual(planned(cut, receipt("r-1"), receipt("r-2"), receipt("r-3", "r-1")).plan.requeued, [receipt("r-2")])
    // Of an inbox that was not imported with its log.
    assert.deepStrictEqual(planned(cut).plan.requeued, [])
  })

  it("says where a rule is broken, and where the last turn ended before that", () => {
    const scan = scanned([...Log.turn(1, "x"), Log.turnStart(2)])
    assert.strictEqual(scan.add({ seq: 6, time: 0, ...Log.turnStart(3) })?.rule, "balanced-turns")
    assert.deepStrictEqual([scan.state().next, scan.lastTurnEnd()], [6, 4])
  })

  it("comes to the events that recovery writes, on any log", () => {
    for (let seed = 1; seed <= 30; seed++) {
      const events = Log.random(seed, 30)
      const scan = RepairPlan.scan()
      for (const event of events) scan.add(event)
      const { closed } = RepairPlan.plan(scan.state(), new Map())
      assert.deepStrictEqual(closed, LogState.closers(Result.getOrThrow(LogState.all(LogState.empty(), events))))
      for (const sentence of RepairPlan.sentences({ closed, cutBytes: 0, requeued: [] }, scan.tools(), true)) assert.match(sentence, /^\S.*\S$/)
    }
  })
})
