import { assert, describe, it } from "@effect/vitest"
import type { SessionEvent } from "@turnpike/contract"
import { Contracts } from "@turnpike/contract"
import * as Result from "effect/Result"
import { LogState } from "../src/index.ts"
import * as Log from "./support/LogEvents.ts"

type Body = SessionEvent.Body

const { answer, ask, call, chunk, claimed, decide, message, result, stepEnd, stepStart, summary, turnEnd, turnStart, user } = Log

const fold = (bodies: ReadonlyArray<Body>) => LogState.all(LogState.empty(), Log.log(bodies))

const stateOf = (bodies: ReadonlyArray<Body>): LogState.LogState => Result.getOrThrow(fold(bodies))

/** The rule that the last of the bodies breaks, and no earlier one. */
const broken = (...bodies: ReadonlyArray<Body>): string => {
  const folded = fold(bodies)
  if (Result.isSuccess(folded)) return "none"
  assert.strictEqual(folded.failure.seq, bodies.length - 1, folded.failure.message)
  return folded.failure.rule
}

const closersOf = (...bodies: ReadonlyArray<Body>) => LogState.closers(stateOf(bodies)).map(({ data, type }) => [type, data])

const decoder = Contracts.decode("session-event")

describe("the fold", () => {
  it("begins with nothing", () => {
    const { surface: _, ...rest } = LogState.empty()
    assert.deepStrictEqual(rest, { next: 0, lastTurn: 0, lastTime: 0, open: undefined })
  })

  it("says what is open in the middle of a turn", () => {
    const { lastTime, lastTurn, next, open } = stateOf([
      ...Log.turn(1, "first"),
      turnStart(2),
      claimed(2, "a", "b"),
      stepStart(),
      message("context/message", "a", "a"),
      user("b", "b"),
      call("c-1"),
      call("c-2"),
      result("c-1"),
      ask("q-1", "c-2"),
      ask("q-2")
    ])
    assert.deepStrictEqual({ lastTime, lastTurn, next, open }, {
      next: 15,
      lastTurn: 2,
      lastTime: 1_790_000_014_000,
      open: {
        number: 2,
        trigger: { kind: "message", source: "user" },
        startedSeq: 5,
        step: 1,
        stepOpen: true,
        calls: new Map([["c-2", { seq: 11, origin: undefined, permission: "missing" } as const]]),
        requests: new Map<string, string | undefined>([["q-1", "c-2"], ["q-2", undefined]]),
        claimed: ["a", "b"],
        unwritten: new Set<string>(),
        hasUserMessage: true,
        hasWork: true
      }
    })
  })

  it("has nothing open after a turn", () => {
    const { open } = stateOf(Log.turn(1, "x", call("left"), ask("left")))
    assert.strictEqual(open, undefined)
  })

  it("leaves an earlier state as it was", () => {
    const before = stateOf([turnStart(1), stepStart(), user("x"), call("c"), ask("q", "c")])
    const kept = structuredClone({ open: before.open, length: before.surface.length })
    for (const body of [result("c"), decide("q", "allow"), answer("one"), answer("two"), claimed(1, "r")]) {
      assert.isTrue(Result.isSuccess(LogState.next(before, { seq: before.next, time: 0, ...body })))
    }
    assert.deepStrictEqual({ open: before.open, length: before.surface.length }, kept)
  })

  it("takes every log that was made by the rules, and closes it by the rules", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const state = Result.getOrThrow(LogState.all(LogState.empty(), Log.random(seed, 10 + seed)))
      const closed = Result.getOrThrow(LogState.all(state, LogState.closers(state)))
      assert.strictEqual(closed.open, undefined)
      assert.deepStrictEqual(LogState.closers(closed), [])
      for (const event of LogState.closers(state)) {
        assert.deepStrictEqual(decoder(event), Result.succeed(event))
        assert.strictEqual(event.time, state.lastTime)
      }
    }
  })

  it("refuses a log of which an event is missing, doubled, or stands after the next one", () => {
    for (let seed = 1; seed <= 30; seed++) {
      const events = Log.random(seed, 40)
      for (const [index, event] of events.slice(0, -1).entries()) {
        const next = events[index + 1]!
        for (const other of [
          events.toSpliced(index, 1),
          events.toSpliced(index, 0, event),
          events.toSpliced(index, 2, next, event)
        ]) assert.isTrue(Result.isFailure(LogState.all(LogState.empty(), other)))
      }
    }
  })
})

describe("a seq", () => {
  it("is the next one, and nothing else", () => {
    const state = stateOf(Log.turn(1, "x"))
    for (const seq of [0, state.next - 1, state.next + 1]) {
      assert.deepStrictEqual(LogState.next(state, { seq, time: 0, ...turnStart(2) }), Result.fail({
        rule: "seq-contiguous",
        message: `seq is ${seq}; 5 was due`
      }))
    }
  })
})

describe("a turn", () => {
  it("encloses every event, whatever its type", () => {
    const types: ReadonlyArray<Body> = [
      stepStart(),
      stepEnd(),
      claimed(1, "r"),
      user("x"),
      message("context/message", "x"),
      message("steering/message", "x"),
      chunk("x"),
      answer("x"),
      call("c"),
      result("c"),
      ask("q"),
      decide("q", "deny"),
      { type: "error", data: { code: "INTERNAL", message: "x" } },
      { type: "notice", data: { kind: "harness_note", message: "x" } },
      { type: "todo/write", data: { todos: [] } },
      { type: "x/plugin/thing", data: null },
      { type: "x/plugin/thing", ignorable: true, data: null }
    ]
    for (const body of types) {
      assert.strictEqual(broken(body), "enclosed-in-turn", body.type)
      assert.strictEqual(broken(...Log.turn(1, "x"), body), "enclosed-in-turn", body.type)
    }
    assert.strictEqual(broken(turnEnd(1)), "balanced-turns")
    // An event that a later format has and that may be passed over.
    const foreign = { type: "later/thing", ignorable: true, data: {} } as unknown as Body
    assert.strictEqual(broken(foreign), "enclosed-in-turn")
    assert.strictEqual(broken(turnStart(1), foreign), "none")
  })

  it("is not within another, and ends once", () => {
    assert.strictEqual(broken(turnStart(1), turnStart(2)), "balanced-turns")
    assert.strictEqual(broken(turnStart(1), turnEnd(1), turnEnd(1)), "balanced-turns")
  })

  it("is numbered from one without a gap, and ends under its number", () => {
    assert.strictEqual(broken(turnStart(2)), "balanced-turns")
    assert.strictEqual(broken(...Log.turn(1, "x"), turnStart(1)), "balanced-turns")
    assert.strictEqual(broken(...Log.turn(1, "x"), turnStart(3)), "balanced-turns")
    assert.strictEqual(broken(turnStart(1), turnEnd(2)), "balanced-turns")
  })

  it("does not end with its step open", () => {
    assert.strictEqual(broken(turnStart(1), stepStart(), turnEnd(1)), "balanced-turns")
  })
})

describe("a step", () => {
  it("is not within another, and ends once, under its number", () => {
    assert.strictEqual(broken(turnStart(1), stepStart(1), stepStart(2)), "balanced-steps")
    assert.strictEqual(broken(turnStart(1), stepEnd(1)), "balanced-steps")
    assert.strictEqual(broken(turnStart(1), stepStart(1), stepEnd(1), stepEnd(1)), "balanced-steps")
    assert.strictEqual(broken(turnStart(1), stepStart(1), stepEnd(2)), "balanced-steps")
  })

  it("is numbered from one in each turn, without a gap", () => {
    assert.strictEqual(broken(turnStart(1), stepStart(2)), "balanced-steps")
    assert.strictEqual(broken(turnStart(1), stepStart(1), stepEnd(1), stepStart(1)), "balanced-steps")
    assert.strictEqual(broken(turnStart(1), stepStart(1), stepEnd(1), stepStart(2)), "none")
    assert.strictEqual(broken(...Log.turn(1, "x"), turnStart(2), stepStart(1)), "none")
  })
})

describe("a call", () => {
  it("has one result, in its own turn", () => {
    assert.strictEqual(broken(turnStart(1), result("c")), "answered-calls")
    assert.strictEqual(broken(turnStart(1), call("c"), result("c"), result("c")), "answered-calls")
    assert.strictEqual(broken(...Log.turn(1, "x", call("c")), turnStart(2), result("c")), "answered-calls")
    assert.strictEqual(broken(turnStart(1), call("c"), call("c")), "answered-calls")
    assert.strictEqual(broken(turnStart(1), call("c"), result("c"), call("c")), "none")
  })

  it("is asked for before it is permitted", () => {
    assert.strictEqual(broken(turnStart(1), decide("q", "allow")), "answered-requests")
    assert.strictEqual(broken(turnStart(1), ask("q"), decide("q", "deny"), decide("q", "allow")), "answered-requests")
  })
})

describe("a claim", () => {
  it("is of its own turn, and of each receipt once", () => {
    assert.strictEqual(broken(turnStart(1), claimed(2, "a")), "claimed-once")
    assert.strictEqual(broken(turnStart(1), claimed(1, "a"), claimed(1, "b", "a")), "claimed-once")
    assert.strictEqual(broken(turnStart(1), claimed(1, "a", "a")), "claimed-once")
    assert.strictEqual(broken(turnStart(1), claimed(1, "a"), claimed(1, "b")), "none")
  })
})

describe("a surface event", () => {
  const opened = [turnStart(1), user("a"), answer("b")]

  it("replaces what stands, all of which it names", () => {
    assert.strictEqual(broken(...opened, summary("s", 0, 2, [1, 2])), "none")
    assert.strictEqual(broken(...opened, summary("s", 0, 2, [0, 1, 2])), "none")
    for (const [start, end, sources] of [
      [0, 3, [1, 2]],
      [1, 1, [1]],
      [2, 1, [1, 2]],
      [2, 3, [1]],
      [0, 2, [1]],
      [0, 2, [2]]
    ] as const) assert.strictEqual(broken(...opened, summary("s", start, end, sources)), "surface-range", `${start} ${end}`)
  })

  it("counts what stands after earlier replacements", () => {
    const once = [...opened, summary("s", 0, 2, [1, 2])]
    assert.strictEqual(broken(...once, summary("t", 0, 2, [3, 1])), "surface-range")
    assert.strictEqual(broken(...once, answer("c"), summary("t", 0, 2, [3, 4])), "none")
    assert.strictEqual(broken(...once, answer("c"), summary("t", 0, 2, [1, 2, 4])), "surface-range")
  })

  it("names earlier events only", () => {
    for (const seq of [3, 4, 99]) {
      assert.strictEqual(broken(...opened, { ...answer("c"), source_event_seqs: [1, seq] } as Body), "earlier-sources")
    }
    assert.strictEqual(broken(...opened, { ...answer("c"), source_event_seqs: [0, 2] } as Body), "none")
  })

  it("that is a result replaces the result of its own call alone", () => {
    const called = [...opened, call("c"), result("c"), call("d"), result("d")]
    const again = (id: string, start: number, end: number, sources: ReadonlyArray<number>): Body =>
      ({ ...result(id, "shorter"), surface_op: { replace: { start, end } }, source_event_seqs: sources }) as Body
    assert.strictEqual(broken(...called, again("c", 2, 3, [4])), "none")
    assert.strictEqual(broken(...called, again("c", 2, 3, [4]), again("c", 2, 3, [7])), "none")
    assert.strictEqual(broken(...called, again("d", 2, 3, [4])), "surface-range")
    assert.strictEqual(broken(...called, again("c", 2, 4, [4, 6])), "surface-range")
    assert.strictEqual(broken(...called, again("c", 0, 1, [1])), "surface-range")
  })
})

describe("the closers", () => {
  it("are none for a log that is closed, or empty", () => {
    assert.deepStrictEqual(LogState.closers(LogState.empty()), [])
    assert.deepStrictEqual(closersOf(...Log.turn(1, "x")), [])
    // A text that was put in while nothing ran is closed by itself.
    assert.deepStrictEqual(
      closersOf(turnStart(1, { kind: "injection", source: "plugin:x" }), message("context/message", "x"), turnEnd(1)),
      []
    )
  })

  it("go on where the log ends, at the time of its last event", () => {
    const state = stateOf([turnStart(1), stepStart(), user("x")])
    assert.deepStrictEqual(LogState.closers(state), [
      { seq: 3, time: 1_790_000_002_000, type: "step/end", data: { step: 1 } },
      { seq: 4, time: 1_790_000_002_000, type: "turn/end", data: { turn: 1, verdict: { type: "interrupted" } } }
    ])
  })

  it("answer requests, then calls, then end the step and the turn", () => {
    const state = stateOf([
      turnStart(1),
      stepStart(),
      user("x"),
      call("ran"),
      call("asked"),
      ask("q", "asked"),
      call("allowed"),
      ask("q2", "allowed"),
      decide("q2", "allow"),
      call("denied"),
      ask("q3", "denied"),
      decide("q3", "deny")
    ])
    const unknown = "TOOL_OUTCOME_UNKNOWN: the turn ended before the tool did. It may have had effects; look at them before you run it again."
    const notStarted = "TOOL_NOT_STARTED: the turn ended before the tool began. It can be run again."
    const resultOf = (call_id: string, source: number, error_code: "TOOL_NOT_STARTED" | "TOOL_OUTCOME_UNKNOWN", output: string): Body => ({
      type: "tool/result",
      data: { call_id, is_error: true, error_code, output },
      surface_op: "append",
      source_event_seqs: [source]
    })
    assert.deepStrictEqual(LogState.dangling(state), [
      {
        type: "permission/decision",
        data: { request_id: "q", decision: "cancelled", by: "turnpike", reason: "the turn ended before anyone answered" }
      },
      resultOf("ran", 3, "TOOL_OUTCOME_UNKNOWN", unknown),
      resultOf("asked", 4, "TOOL_NOT_STARTED", notStarted),
      resultOf("allowed", 6, "TOOL_OUTCOME_UNKNOWN", unknown),
      resultOf("denied", 9, "TOOL_NOT_STARTED", notStarted),
      stepEnd(1)
    ])
    assert.deepStrictEqual(LogState.closers(state).slice(0, -1).map(({ seq: _, time: __, ...body }) => body), LogState.dangling(state))
  })

  it("do not say that a tool did not begin that was allowed and then asked again", () => {
    const [, again] = closersOf(turnStart(1), call("c"), ask("q1", "c"), decide("q1", "allow"), ask("q2", "c"))
    assert.deepInclude(again?.[1], { call_id: "c", error_code: "TOOL_OUTCOME_UNKNOWN" })
  })

  it("know a request that came before its call", () => {
    const [, asked] = closersOf(turnStart(1), ask("q", "c"), call("c"))
    assert.deepInclude(asked?.[1], { call_id: "c", error_code: "TOOL_NOT_STARTED" })
    const [allowed] = closersOf(turnStart(1), ask("q", "c"), decide("q", "allow"), call("c"))
    assert.deepInclude(allowed?.[1], { call_id: "c", error_code: "TOOL_OUTCOME_UNKNOWN" })
  })

  it("keep whose call it was", () => {
    const sub: Body = { type: "tool/call", data: { call_id: "c", name: "shell", origin: "subagent" } }
    assert.deepInclude(closersOf(turnStart(1), sub)[0]?.[1], { call_id: "c", origin: "subagent" })
  })
})

describe("what a crash left before the prompt", () => {
  const verdictOf = (...bodies: ReadonlyArray<Body>) => {
    const last = LogState.closers(stateOf(bodies)).at(-1)
    return last?.type === "turn/end" ? last.data.verdict : undefined
  }
  const notStarted = { type: "interrupted", not_started: true } as const
  const unspent = (...bodies: ReadonlyArray<Body>) => LogState.unspent(stateOf(bodies))

  it("was not started, and all that it claimed is put back", () => {
    assert.deepStrictEqual(verdictOf(turnStart(1)), notStarted)
    const claim = [turnStart(1), claimed(1, "s", "f")]
    assert.deepStrictEqual(verdictOf(...claim), notStarted)
    assert.deepStrictEqual(unspent(...claim), ["s", "f"])
    const half = [...claim, stepStart(), message("steering/message", "s", "s")]
    assert.deepStrictEqual(verdictOf(...half), notStarted)
    assert.deepStrictEqual(unspent(...half), ["s", "f"])
    const noted: Body = { type: "notice", data: { kind: "late_frame", message: "of the turn before" } }
    assert.deepStrictEqual(verdictOf(turnStart(1), noted, claimed(1, "f")), notStarted)
  })

  it("may have been started once the prompt stands, and nothing is put back", () => {
    const prompted = [turnStart(1), claimed(1, "s", "f"), stepStart(), message("steering/message", "s", "s"), user("f", "f")]
    assert.deepStrictEqual(verdictOf(...prompted), { type: "interrupted" })
    assert.deepStrictEqual(unspent(...prompted), [])
    // Nothing but steering was waiting, and all of it stands.
    const steered = [turnStart(1), claimed(1, "s"), stepStart(), message("steering/message", "s", "s")]
    assert.deepStrictEqual(verdictOf(...steered), { type: "interrupted" })
    assert.deepStrictEqual(unspent(...steered), [])
  })

  it("is put back where it was claimed in the middle of a turn and no message is it", () => {
    const midway = [turnStart(1), claimed(1, "f"), stepStart(), user("f", "f"), chunk("x"), claimed(1, "s1", "s2"), message("steering/message", "s1", "s1")]
    assert.deepStrictEqual(verdictOf(...midway), { type: "interrupted" })
    assert.deepStrictEqual(unspent(...midway), ["s2"])
  })

  it("puts nothing of a turn of steering back that had begun when more was claimed", () => {
    const begun = [turnStart(1), claimed(1, "s1"), stepStart(), message("steering/message", "s1", "s1"), claimed(1, "s2")]
    assert.deepStrictEqual(verdictOf(...begun), { type: "interrupted" })
    assert.deepStrictEqual(unspent(...begun), ["s2"])
  })

  it("says nothing of a turn that has no prompt", () => {
    assert.deepStrictEqual(verdictOf(turnStart(1, { kind: "background" })), { type: "interrupted" })
    assert.deepStrictEqual(verdictOf(turnStart(1, { kind: "injection", source: "x" })), { type: "interrupted" })
    assert.deepStrictEqual(unspent(...Log.turn(1, "x")), [])
  })
})
