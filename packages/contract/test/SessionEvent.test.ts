import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { Contracts, SessionEvent } from "../src/index.ts"

const types = SessionEvent.bodies.map((body) => body.fields.type.literal)
const decode = Contracts.decode("session-event")

const event = (type: string, more: object = {}): SessionEvent.SessionEvent => ({ seq: 0, time: 0, type, data: {}, ...more }) as SessionEvent.SessionEvent

describe("the types of events", () => {
  it("are each there once", () => {
    assert.deepStrictEqual([...new Set(types)], types)
  })

  it("are known, but for those of plugins and of later versions", () => {
    assert.isTrue(types.every(SessionEvent.isKnown))
    for (const type of ["x/shell/done", "later/thing", "harness/end", "Turn/Start", "toString", ""]) assert.isFalse(SessionEvent.isKnown(type))
  })

  it("are foreign where neither this format nor a plugin has them", () => {
    assert.isTrue(SessionEvent.isForeign(event("later/thing", { ignorable: true })))
    for (const type of [...types, "x/shell/done"]) assert.isFalse(SessionEvent.isForeign(event(type)))
  })

  it("carry surface_op exactly where they are on the surface", () => {
    for (const type of types) {
      const fault = (more: object) => Result.match(decode(event(type, more)), { onFailure: (message) => message, onSuccess: () => "" })
      const isMissed = fault({}).includes("surface_op")
      const isExcess = fault({ surface_op: "append" }).includes("surface_op: Unknown field")
      assert.deepStrictEqual([isMissed, isExcess], SessionEvent.isSurface(type) ? [true, false] : [false, true], type)
    }
    assert.isFalse(SessionEvent.isSurface("x/shell/done"))
  })
})
