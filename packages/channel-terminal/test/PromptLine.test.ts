import { assert, describe, it } from "@effect/vitest"
import { PromptLine } from "@turnpike/channel-terminal"
import { Result } from "effect"

describe("PromptLine", () => {
  it("takes a prompt, unchanged", () => {
    assert.deepStrictEqual(PromptLine.parse("{\"text\":\" /clear\\n\",\"type\":\"prompt\"}"), Result.succeed(" /clear\n"))
  })

  it.each([
    ["", "is not JSON"],
    ["hello", "is not JSON"],
    ["null", /^is no prompt: /],
    ["\"text\"", /^is no prompt: /],
    ["{}", /^is no prompt: /],
    ["{\"type\":\"prompt\"}", /^is no prompt: .*text/],
    ["{\"type\":\"cancel\",\"text\":\"x\"}", /^is no prompt: .*type/],
    ["{\"type\":\"prompt\",\"text\":1}", /^is no prompt: .*text/],
    ["{\"type\":\"prompt\",\"text\":\"x\",\"secret\":\"sk-12345678\"}", /^is no prompt: (?!.*sk-1).*secret/],
    ["{\"type\":\"prompt\",\"text\":\"a\",\"text\":\"b\"}", "is no prompt: it has the field \"text\" twice"],
    ["{\"type\":\"prompt\",\"text\":\"a\",\"\\u0074ext\":\"b\"}", "is no prompt: it has the field \"text\" twice"],
    ["{\"type\":\"prompt\",\"text\":\" \"}", "is no prompt: its text is empty"]
  ])("refuses %s", (line, why) => {
    const refused = PromptLine.parse(line)
    assert.isTrue(Result.isFailure(refused))
    if (Result.isFailure(refused)) {
      if (typeof why === "string") assert.strictEqual(refused.failure, why)
      else assert.match(refused.failure, why)
    }
  })
})
