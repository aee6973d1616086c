import type { SessionEvent, Usage } from "@turnpike/contract"
import { assert, describe, it } from "@effect/vitest"
import * as Log from "../../../kernel/test/support/LogEvents.ts"
import * as SessionDigest from "../../src/sessions/SessionDigest.ts"

const digest = (bodies: ReadonlyArray<SessionEvent.Body>, forkedEvents = 0) => {
  const gathering = SessionDigest.make(forkedEvents)
  for (const event of Log.log(bodies)) gathering.add(event)
  return gathering.digest()
}

const bound = (id: string): SessionEvent.Body => ({ type: "session/bound", data: { harness_session_id: id, resumed: false, harness_version: "2", model: "m" } })

const usage = (tokens: Usage.Tokens, cost: Usage.Cost = { source: "unavailable" }): SessionEvent.Body => ({ type: "usage", data: { usage: { tokens, cost }, final: true } })

describe("a session in brief", () => {
  it("has its turns with their first words, endings and usage", () => {
    const used = usage({ source: "reported", input_tokens: 3 })
    const { turns } = digest([
      Log.turnStart(1),
      Log.message("context/message", "told"),
      Log.user("asked"),
      Log.user("asked more"),
      usage({ source: "reported", input_tokens: 1 }),
      used,
      Log.turnEnd(1, { type: "refusal" }),
      Log.turnStart(2, { kind: "injection", source: "user" }),
      Log.message("context/message", "only told"),
      Log.turnEnd(2),
      Log.turnStart(3)
    ])
    const start = 1_790_000_000_000
    assert.deepStrictEqual(turns, [
      {
        turn: 1,
        trigger: { kind: "message", source: "user" },
        prompt: "asked",
        firstSeq: 0,
        lastSeq: 6,
        started: start,
        end: { time: start + 6000, verdict: { type: "refusal" } },
        usage: used.type === "usage" ? used.data.usage : undefined
      },
      {
        turn: 2,
        trigger: { kind: "injection", source: "user" },
        prompt: "only told",
        firstSeq: 7,
        lastSeq: 9,
        started: start + 7000,
        end: { time: start + 9000, verdict: { type: "completed" } },
        usage: undefined
      },
      { turn: 3, trigger: { kind: "message", source: "user" }, prompt: undefined, firstSeq: 10, lastSeq: 10, started: start + 10_000, end: undefined, usage: undefined }
    ])
  })

  it("says under which id the harness has it, and whether that is known to be kept", () => {
    assert.strictEqual(digest(Log.turn(1, "x")).binding, undefined)
    assert.deepStrictEqual(digest([Log.turnStart(1), bound("h")]).binding, { harnessSessionId: "h", isPersisted: false })
    assert.deepStrictEqual(digest([Log.turnStart(1), bound("h"), Log.answer("x")]), {
      turns: digest([Log.turnStart(1), bound("h"), Log.answer("x")]).turns,
      binding: { harnessSessionId: "h", isPersisted: true },
      version: "2",
      model: "m"
    })
    // What a fork's parent had told its harness is the parent's.
    assert.strictEqual(digest(Log.turn(1, "x", bound("h"), Log.answer("y")), 7).binding, undefined)
  })

  it("sums up what is known, and counts the turns of which nothing is", () => {
    const turn = (used: Usage.Usage | undefined, kind: "message" | "injection" = "message") => ({ usage: used, trigger: { kind, source: "user" } })
    assert.deepStrictEqual(
      SessionDigest.total([
        turn({ tokens: { source: "reported", input_tokens: 10, output_tokens: 1, cache_read_tokens: 9 }, cost: { source: "reported", usd: 0.5 } }),
        turn({ tokens: { source: "estimated", input_tokens: 5 }, cost: { source: "unavailable" } }),
        turn(undefined),
        turn(undefined, "injection")
      ]),
      { usage: { tokens: { source: "estimated", input_tokens: 15, output_tokens: 1 }, cost: { source: "reported", usd: 0.5 } }, untold: 1 }
    )
    assert.deepStrictEqual(SessionDigest.total([]), { usage: { tokens: { source: "unavailable" }, cost: { source: "unavailable" } }, untold: 0 })
  })
})
