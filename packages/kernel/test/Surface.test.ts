import { assert, describe, it } from "@effect/vitest"
import type { SessionEvent } from "@turnpike/contract"
import { Surface } from "../src/index.ts"
import * as Logs from "./support/Logs.ts"
import * as Random from "./support/Random.ts"

const { assistant, call, chunk, context, end, numbered, result, start, step, stepEnd, turn, user } = Logs

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

  it("are the same event by event as of the whole, whatever replaces whatever", () => {
    for (let seed = 0; seed < 200; seed++) {
      const random = Random.make(seed)
      const surface = Surface.make()
      const events: Array<SessionEvent.SessionEvent> = []
      let count = 0
      for (let n = 0; n < 30; n++) {
        const replaces = count > 1 && random.chance(0.2)
        const start = replaces ? random.below(count) : 0
        const end = replaces ? start + 1 + random.below(count - start) : 0
        const [event] = numbered([user(`${n}`)], n)
        const body = replaces ? { ...event!, surface_op: { replace: { start, end } } } as SessionEvent.SessionEvent : event!
        count += replaces ? 1 - (end - start) : 1
        events.push(body)
        surface.take(body)
        assert.strictEqual(surface.messages().length, count)
      }
      assert.deepStrictEqual(surface.messages(), Surface.deriveMessages(events))
    }
  })
})
