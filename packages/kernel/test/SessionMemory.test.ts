import { assert, describe, it } from "@effect/vitest"
import { SessionMemory } from "../src/index.ts"
import * as FakeHarness from "./support/FakeHarness.ts"
import * as FakeSession from "./support/FakeSession.ts"

const { bound } = FakeHarness
const of = (known?: Parameters<typeof SessionMemory.make>[0]["known"]) =>
  SessionMemory.make({ known, sessionId: FakeSession.sessionId, harness: "fake", cwd: "/project" })

const fresh = { session_id: FakeSession.sessionId, harness: "fake", persisted: false, cwd: "/project", turns: 0, created_at: 5, updated_at: 5 }

describe("SessionMemory", () => {
  it("begins with nothing, and goes on from what is known", () => {
    assert.deepStrictEqual(of().binding(5), fresh)
    const known = { ...fresh, harness_session_id: "h", persisted: true, turns: 3 }
    assert.deepStrictEqual(of(known).binding(9), { ...known, updated_at: 9 })
  })

  it("counts turns that begin, and takes one back that did not", () => {
    const memory = of({ ...fresh, turns: 3 })
    memory.begin()
    assert.deepStrictEqual([memory.turn(), memory.binding(6).turns], [4, 4])
    memory.unbegin()
    assert.strictEqual(memory.turn(), 3)
  })

  it("has something new when the harness names its session, renames it, or has answered, and only then", () => {
    const memory = of()
    const seen = [
      FakeSession.message("before it is named"),
      bound("a"),
      bound("a"),
      FakeSession.chunk("x"),
      FakeSession.message("x"),
      FakeSession.end("x"),
      bound("a", true),
      bound("b", true),
      FakeSession.end("x")
    ].map((event) => {
      const isNew = memory.see(event)
      const { harness_session_id, persisted } = memory.binding(0)
      return [isNew, harness_session_id, persisted]
    })
    assert.deepStrictEqual(seen, [
      [false, undefined, false],
      [true, "a", false],
      [false, "a", false],
      [false, "a", false],
      [true, "a", true],
      [false, "a", true],
      [false, "a", true],
      [true, "b", false],
      [true, "b", true]
    ])
  })
})
