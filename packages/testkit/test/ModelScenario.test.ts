import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as ModelScenario from "../src/ModelScenario.ts"

const roundTrips: ReadonlyArray<readonly [string, ModelScenario.ModelScenario]> = [
  ["text", { type: "text" }],
  ["fixed,text=a%2Cb%3Dc%20%2F%25~%C3%BC%F0%9F%98%80", { type: "fixed", text: "a,b=c /%~ü😀" }],
  ["slow,words=3,interval_ms=0", { type: "slow", words: 3, interval_ms: 0 }],
  ["tools,command=a,command=b,together=true", { type: "tools", command: ["a", "b"], together: true }],
  ["tools,command=a", { type: "tools", command: ["a"] }],
  ["write,path=%2Ftmp%2Fx,content=", { type: "write", path: "/tmp/x", content: "" }],
  ["wait,at=headers", { type: "wait", at: "headers" }],
  ["cut,words=1,times=2,in=any", { type: "cut", words: 1, times: 2, in: "any" }],
  ["status,status=429,retry_after_s=0", { type: "status", status: 429, retry_after_s: 0 }]
]

const refused: ReadonlyArray<readonly [segment: string, problem: string]> = [
  ["nope", "there is no scenario of that type"],
  ["", "there is no scenario of that type"],
  ["text,words=1", "it has no parameter \"words\"; \"text\" takes no parameters"],
  ["slow,words=0", "between 1 and 1000000"],
  ["slow,words=1e3", "a whole number"],
  ["slow,words=", "a whole number"],
  ["slow,words", "\"words\" is not name=value"],
  ["slow,words=1,words=2", "\"words\" is given 2 times"],
  ["tool", "Missing key"],
  ["tools", "Missing key"],
  ["tools,command=a,together=yes", "\"together\""],
  ["fixed,text=%zz", "not percent-encoded UTF-8"],
  ["fixed,text=", "length of at least 1"],
  ["status,status=200", "between 400 and 599"],
  ["wait,at=end", "\"at\""],
  ["slow,type=text", "it has no parameter \"type\""],
  ["slow,__proto__=1", "it has no parameter \"__proto__\""]
]

describe("ModelScenario", () => {
  it.each(roundTrips)("spells and reads %s", (segment, scenario) => {
    assert.strictEqual(ModelScenario.encode(scenario), segment)
    assert.deepStrictEqual(ModelScenario.decode(segment), Result.succeed(scenario))
  })

  it("survives the URL parser of the platform, whatever its values hold", () => {
    const scenario = { type: "fixed", text: "../..?#%2F\\ \n\u2028;&+,=:@" } as const
    const url = new URL(`http://127.0.0.1/s/${ModelScenario.encode(scenario)}/run`)
    assert.deepStrictEqual(ModelScenario.decode(url.pathname.split("/")[2] ?? ""), Result.succeed(scenario))
  })

  it.each(refused)("refuses %s and says why", (segment, problem) => {
    const result = ModelScenario.decode(segment)
    assert.isTrue(Result.isFailure(result))
    if (Result.isFailure(result)) {
      assert.strictEqual(result.failure.segment, segment)
      assert.include(result.failure.message, problem)
    }
  })

  it.each([
    [{ type: "nope" }, "the scenario \"nope\" cannot be played: there is no scenario of that type; there are text, "],
    [{ type: "status", status: 200 }, "the scenario \"status\" cannot be played: Expected a value between 400 and 599 at [\"status\"]; \"status\" takes status, "],
    [{ type: "slow", colour: "red" }, "at [\"colour\"]"],
    [{ type: "fixed", text: "\ud800" }, "\"text\" has half of a surrogate pair"]
  ])("does not spell %j, which no type checker lets through", (scenario, problem) => {
    let thrown: unknown
    try {
      ModelScenario.encode(scenario as ModelScenario.ModelScenario)
    } catch (error) {
      thrown = error
    }
    assert.instanceOf(thrown, ModelScenario.BadScenario)
    assert.include((thrown as Error).message, problem)
  })

  it("describes every scenario and parameter in its catalogue", () => {
    for (const entry of ModelScenario.catalogue) {
      assert.match(entry.description, /\.$/, entry.type)
      for (const { name } of entry.parameters) assert.include(entry.description, `\`${name}`, entry.type)
    }
  })
})
