import { assert, describe, it } from "@effect/vitest"
import { type AgentRunEvent, Failure, Scalars, TurnEvent } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { ChannelError, RunStream } from "../src/index.ts"
import * as FakeHarness from "./support/FakeHarness.ts"
import * as FakeSession from "./support/FakeSession.ts"

const make = (
  sink: (event: AgentRunEvent.AgentRunEvent) => Effect.Effect<void, ChannelError.ChannelError> = () => Effect.void,
  patience?: Effect.Effect<void>
) => {
  const events: Array<AgentRunEvent.AgentRunEvent> = []
  const lost: Array<string> = []
  const stream = RunStream.make({
    runId: Scalars.RunId.make("r"),
    sink: (event) => Effect.andThen(sink(event), Effect.sync(() => void events.push(event))),
    opening: {
      sessionId: FakeSession.sessionId,
      harness: "fake",
      turnpikeVersion: "0.0.0",
      cwd: "/project",
      capabilities: FakeHarness.capabilities,
      turn: 2
    },
    lost: (error) => Effect.sync(() => void lost.push(error.message)),
    ...(patience === undefined ? {} : { patience })
  })
  return { stream, events, lost }
}

const envelope = (seq: number, ts = "1970-01-01T00:00:00.000Z") => ({ run_id: "r", seq, ts })

describe("RunStream", () => {
  it.effect("numbers and stamps its events", () =>
    Effect.gen(function*() {
      const { events, stream } = make()
      yield* stream.phaseStart("launch")
      yield* TestClock.adjust(1500)
      yield* stream.phaseEnd("launch", "no such program")
      assert.deepStrictEqual<unknown>(events, [
        { ...envelope(0), type: "tool_start", kind: "phase", call_id: "phase-launch", tool_name: "launch" },
        {
          ...envelope(1, "1970-01-01T00:00:01.500Z"),
          type: "tool_end",
          kind: "phase",
          call_id: "phase-launch",
          tool_name: "launch",
          success: false,
          output_summary: "no such program"
        }
      ])
    }))

  it.effect("opens the turn once, with what the harness says is in force", () =>
    Effect.gen(function*() {
      const { events, stream } = make()
      yield* stream.open({
        harness_session_id: "h",
        resumed: true,
        harness_version: "1.2",
        model: "m",
        tools: ["A"],
        mcp_servers: [{ name: "s", status: "up" }],
        cwd: "/elsewhere"
      })
      yield* stream.open()
      assert.deepStrictEqual<unknown>(events, [
        {
          ...envelope(0),
          type: "session_start",
          session_id: "s-1",
          harness: "fake",
          harness_session_id: "h",
          harness_version: "1.2",
          turnpike_version: "0.0.0",
          resumed: true,
          cwd: "/elsewhere",
          model: "m",
          tools: ["A"],
          mcp_servers: [{ name: "s", status: "up" }],
          capabilities: FakeHarness.capabilities
        },
        { ...envelope(1), type: "turn_start", turn: 2 }
      ])
    }))

  it.effect("tells each turn event in the run's words", () =>
    Effect.gen(function*() {
      const { events, stream } = make()
      yield* stream.open()
      const error = Failure.make("RATE_LIMIT", "wait")
      const turn: ReadonlyArray<TurnEvent.TurnEvent> = [
        TurnEvent.make("step/start", { step: 1 }),
        FakeSession.chunk("a"),
        TurnEvent.make("assistant/chunk", { kind: "reasoning", text: "b", origin: "subagent" }),
        TurnEvent.make("assistant/message", { text: "a", partial: true, origin: "background" }),
        TurnEvent.make("tool/call", { call_id: "t", name: "Bash", input: { a: 1 } }),
        TurnEvent.make("tool/result", { call_id: "t", is_error: true, output: "x".repeat(3000), denied: true }),
        TurnEvent.make("permission/request", { request_id: "p", call_id: "t", tool_name: "Bash", input: 1, description: "d" }),
        TurnEvent.make("permission/decision", { request_id: "p", decision: "deny", by: "deny", reason: "r" }),
        TurnEvent.make("usage", {
          usage: {
            tokens: { source: "reported", input_tokens: 3, output_tokens: 2, cache_read_tokens: 1, cache_write_tokens: 1 },
            cost: { source: "estimated", usd: 0.5 }
          },
          final: true
        }),
        TurnEvent.make("usage", { usage: { tokens: { source: "unavailable" }, cost: { source: "unavailable" } }, final: true }),
        TurnEvent.make("todo/write", { todos: [{ content: "c", status: "pending" }] }),
        TurnEvent.make("retry/scheduled", { attempt: 2, max_attempts: 3, delay_ms: 10, error }),
        TurnEvent.make("notice", { kind: "late_frame", message: "m", raw: {} }),
        TurnEvent.make("step/end", { step: 1 }),
        FakeSession.end("a")
      ]
      for (const event of turn) yield* stream.turnEvent(event)
      assert.deepStrictEqual<unknown>(events.slice(2).map(({ run_id: _, seq: __, ts: ___, ...event }) => event), [
        { type: "text_delta", text: "a" },
        { type: "reasoning_delta", text: "b", origin: "subagent" },
        { type: "message", text: "a", partial: true, origin: "background" },
        { type: "tool_start", kind: "tool", call_id: "t", tool_name: "Bash", tool_input: { a: 1 } },
        {
          type: "tool_end",
          kind: "tool",
          call_id: "t",
          tool_name: "Bash",
          success: false,
          output_summary: `${"x".repeat(2000)}… (3000 characters)`,
          denied: true
        },
        { type: "permission_request", request_id: "p", call_id: "t", tool_name: "Bash", tool_input: 1, description: "d" },
        { type: "permission_decision", request_id: "p", decision: "deny", by: "deny", reason: "r" },
        { type: "token_usage", input_tokens: 3, output_tokens: 2, cache_read_tokens: 1, cache_write_tokens: 1, cost_usd: 0.5, final: true },
        { type: "notice", kind: "todo", message: "[pending] c", raw: [{ content: "c", status: "pending" }] },
        { type: "notice", kind: "retry", message: "the harness tries again: attempt 2 of 3 in 10 ms", error },
        { type: "notice", kind: "late_frame", message: "m", raw: {} }
      ])
    }))

  it.effect("tells a change of the harness's id, and only a change", () =>
    Effect.gen(function*() {
      const { events, stream } = make()
      for (const id of ["a", "a", "b"]) yield* stream.turnEvent(FakeHarness.bound(id))
      assert.deepStrictEqual(events.map((event) => event.type === "notice" ? [event.kind, event.message] : event.type), [
        "session_start",
        "turn_start",
        ["rebound", "the harness calls the session b now, not a"]
      ])
    }))

  it.effect("ends tools that are open before their turn, and no turn that was not opened", () =>
    Effect.gen(function*() {
      const { events, stream } = make()
      yield* stream.close({ type: "completed" })
      assert.deepStrictEqual(events, [])
      yield* stream.open()
      yield* stream.turnEvent(TurnEvent.make("tool/call", { call_id: "t", name: "Bash" }))
      yield* stream.close({ type: "completed" })
      assert.deepStrictEqual(events.map(({ type }) => type), ["session_start", "turn_start", "tool_start", "tool_end", "turn_end"])
    }))

  it.effect("cuts a summary without splitting a character, and says so", () => {
    const text = `${"x".repeat(1999)}😀`
    assert.strictEqual(RunStream.summarize(text), `${"x".repeat(1999)}… (2001 characters)`)
    assert.strictEqual(RunStream.summarize("short"), "short")
    return Effect.void
  })

  it.effect("sends nothing more once its reader is gone, and says so once", () =>
    Effect.gen(function*() {
      let offered = 0
      const { events, lost, stream } = make((event) => {
        offered++
        return event.seq === 1 ? Effect.fail(ChannelError.io("EPIPE")) : Effect.void
      })
      for (let index = 0; index < 5; index++) yield* stream.notice("harness_note", "x")
      assert.deepStrictEqual([offered, events.length, lost], [2, 1, ["channel I/O error: EPIPE"]])
    }))

  it.effect("takes a sink that breaks for a reader that is gone", () =>
    Effect.gen(function*() {
      for (const sink of [() => Effect.die("bug"), () => Effect.interrupt, () => { throw new Error("bug") }]) {
        const { lost, stream } = make(sink)
        yield* stream.notice("harness_note", "x")
        assert.deepStrictEqual(lost, ["channel I/O error: the sink of the run's events broke"])
      }
    }))

  it.effect("delivers an event that has its number although the teller is interrupted", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { events, stream } = make((event) => event.seq === 0 ? Deferred.await(gate) : Effect.void)
      const fiber = yield* Effect.forkChild(stream.notice("harness_note", "first"), { startImmediately: true })
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      const second = yield* Effect.forkChild(stream.notice("harness_note", "second"), { startImmediately: true })
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(second)
      yield* Fiber.join(interrupting)
      assert.deepStrictEqual(events.map((event) => event.type === "notice" ? [event.seq, event.message] : []), [[0, "first"], [1, "second"]])
    }))

  it.effect("keeps events of concurrent tellers in the order of their numbers", () =>
    Effect.gen(function*() {
      const { events, stream } = make((event) => event.seq % 2 === 0 ? Effect.yieldNow : Effect.void)
      yield* Effect.forEach(Array.from({ length: 50 }, (_, index) => `${index}`), (text) => stream.notice("harness_note", text), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        events.map((event) => event.type === "notice" ? [event.seq, event.message] : []),
        Array.from({ length: 50 }, (_, index) => [index, `${index}`])
      )
    }))

  it.effect("gives a reader up when patience ends, not before", () =>
    Effect.gen(function*() {
      const { lost, stream } = make(() => Effect.never, Effect.sleep(100))
      const fiber = yield* Effect.forkChild(stream.notice("harness_note", "x"), { startImmediately: true })
      yield* TestClock.adjust(99)
      assert.deepStrictEqual(lost, [])
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(lost, ["channel publish error: the reader did not take an event in time"])
    }))
})
