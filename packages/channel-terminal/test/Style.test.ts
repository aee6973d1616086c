import { assert, describe, it } from "@effect/vitest"
import { Style } from "@turnpike/channel-terminal"

describe("Style", () => {
  it("paints on a terminal alone, and not where NO_COLOR or a dumb terminal says so", () => {
    const painted = (isTerminal: boolean, environment: Record<string, string>) =>
      Style.choose(isTerminal, environment).paint("bad", "x")
    assert.strictEqual(painted(true, {}), "\u001b[31mx\u001b[39m")
    assert.strictEqual(painted(true, { NO_COLOR: "" }), "\u001b[31mx\u001b[39m")
    assert.strictEqual(painted(true, { NO_COLOR: "1" }), "x")
    assert.strictEqual(painted(true, { TERM: "dumb" }), "x")
    assert.strictEqual(painted(false, {}), "x")
  })
})
