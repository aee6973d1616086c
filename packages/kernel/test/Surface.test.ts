import { assert, describe, it } from "@effect/vitest"
import type { SessionEvent } from "@turnpike/contract"
import { Surface } from "../src/index.ts"
import * as Log from "./support/LogEvents.ts"

const { answer: assistant, call, chunk, log: numbered, result, stepEnd, stepStart: step, turnEnd: end, turnStart: start, user } = Log
const context = (text: string) => Log.message("context/message", text)
const turn = (number: number, prompt = "p") => Log.turn(number, prompt, assistant(`a ${prompt}`))

const roles = (bodies: ReadonlyArray<SessionEvent.Body>) =>
  Surface.deriveMessages(numbered(bodies)).map((message) => `${message.role} ${message.role === "tool" ? message.output : message.text}`)

describe("the messages of a log", () => {
  it("are its messages and results in their order, without pieces, boundaries, and answers that only have usage", () => {
    assert.deepStrictEqual(
      roles([start(1), step(1), user("p"), chunk("a"), assistant(""), call("c"), result("c"), stepEnd(1), step(2), assistant("done"), stepEnd(2), end(1)]),
      ["user p", "tool ok", "assistant done"]
    )
  })

  it("read the same for a text that was injected as a turn of its own and for one within a turn", () => {
    const injected = [...turn(1), start(2), context("c"), end(2), ...turn(3, "q")]
    const within = [...turn(1), start(2), step(1), context("c"), user("q"), assistant("a q"), stepEnd(1), end(2)]
    assert.deepStrictEqual(roles(injected), roles(within))
  })

  it("hide those that another has replaced", () => {
    const summary: SessionEvent.Body = {
      type: "context/message",
      data: { text: "summary", source: "plugin:compact" },
      surface_op: { replace: { start: 0, end: 2 } },
      source_event_seqs: [2, 3]
    }
    assert.deepStrictEqual(roles([...turn(1, "p"), ...turn(2, "q"), start(3), summary, end(3)]), ["context summary", "user q", "assistant a q"])
  })

  it("are not those of a subagent, which has a conversation of its own, though they have their place", () => {
    const sub = { origin: "subagent" } as const
    const events: ReadonlyArray<SessionEvent.Body> = [
      start(1),
      user("p"),
      { type: "assistant/message", data: { text: "of the subagent", ...sub }, surface_op: "append" },
      { type: "tool/call", data: { call_id: "s", name: "read", ...sub } },
      { type: "tool/result", data: { call_id: "s", is_error: false, output: "x", ...sub }, surface_op: "append" },
      { type: "assistant/message", data: { text: "of a task", origin: "background" }, surface_op: "append" },
      assistant("mine")
    ]
    assert.deepStrictEqual(roles(events), ["user p", "assistant of a task", "assistant mine"])
    const summary: SessionEvent.Body = {
      type: "context/message",
      data: { text: "summary", source: "plugin:compact" },
      surface_op: { replace: { start: 1, end: 4 } },
      source_event_seqs: [2, 4, 5]
    }
    assert.deepStrictEqual(roles([...events, summary]), ["user p", "context summary", "assistant mine"])
  })

  it("hold of a result what was called, also where another replaces it", () => {
    const called = { callId: "c", name: "shell", input: { command: "ls" }, isError: false, role: "tool" } as const
    const shorter: SessionEvent.Body = {
      ...(Log.result("c", "shorter") as Extract<SessionEvent.Body, { readonly type: "tool/result" }>),
      surface_op: { replace: { start: 0, end: 1 } },
      source_event_seqs: [2]
    }
    const bodies = [start(1), Log.call("c"), Log.result("c", "long"), end(1)]
    assert.deepStrictEqual(Surface.deriveMessages(numbered(bodies)), [{ ...called, output: "long", seq: 2 }])
    assert.deepStrictEqual(
      Surface.deriveMessages(numbered([...bodies, start(2), shorter])),
      [{ ...called, output: "shorter", seq: 5 }]
    )
  })

  it("say where an answer was cut off", () => {
    const cut: SessionEvent.Body = { type: "assistant/message", data: { text: "I wi", partial: true }, surface_op: "append" }
    assert.deepStrictEqual(Surface.deriveMessages(numbered([start(1), cut])), [{ role: "assistant", text: "I wi", isPartial: true, seq: 1 }])
  })

  it("are the same event by event as of the whole, and an earlier state stays as it was", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const events = Log.random(seed, 60)
      let surface = Surface.empty()
      const states = events.map((event) => {
        surface = Surface.add(surface, event)
        return surface
      })
      for (const [index, state] of states.entries()) {
        if (index % 7 !== 0 && index !== states.length - 1) continue
        assert.deepStrictEqual(Surface.messages(state), Surface.deriveMessages(events.slice(0, index + 1)))
      }
    }
  })

  it("cost no more to go on with where there are many", () => {
    let surface = Surface.empty()
    const bodies = [start(1), ...Array.from({ length: 5000 }, (_, index) => assistant(`${index}`))]
    const arrays = new Set<unknown>()
    for (const event of numbered(bodies)) {
      surface = Surface.add(surface, event)
      arrays.add(surface.nodes.shared)
    }
    // One list that grows, and no copy of it for each message.
    assert.strictEqual(arrays.size, 1)
    assert.strictEqual(Surface.messages(surface).length, 5000)
  })
})
