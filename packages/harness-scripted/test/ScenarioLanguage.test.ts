import { assert, describe, it } from "@effect/vitest"
import { Scenario, ScenarioLanguage } from "@turnpike/harness-scripted"
import { Situation } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import { painful } from "./support/painful.ts"

const decode = Schema.decodeUnknownResult(Scenario.Scenario, { onExcessProperty: "error", errors: "all" })
const problems = (value: unknown) => ScenarioLanguage.problemsOf(value).map(({ message, path }) => `${path} ${message}`)
const scenarios = fileURLToPath(new URL("../scenarios/", import.meta.url))

const end = { type: "end", reason: "completed" } as const
const turn = (...actions: ReadonlyArray<unknown>) => ({ turns: [{ do: actions }] })

describe("the scenario language", () => {
  it("takes the scenarios that come with the package", () => {
    for (const name of Scenario.builtIn()) {
      const value: unknown = JSON.parse(fs.readFileSync(`${scenarios}${name}.json`, "utf8"))
      assert.deepStrictEqual([name, problems(value), Result.isSuccess(decode(value))], [name, [], true])
    }
  })

  it("takes every situation of the conformance suite", () => {
    for (const situation of Situation.names) {
      const value = Situation.scenario(situation, { execute: "execute", all: ["read", "execute"] })
      assert.deepStrictEqual([situation, problems(value), Result.isSuccess(decode(value))], [situation, [], true])
    }
  })

  it("can say what is reported to go wrong in the field", () => {
    for (const [report, value] of Object.entries(painful)) {
      assert.deepStrictEqual([report, problems(value), Result.isSuccess(decode(value))], [report, [], true])
    }
  })

  const mistakes: ReadonlyArray<readonly [unknown, ReadonlyArray<string>]> = [
    [[], [" the scenario is not a JSON object"]],
    [{}, ["turns is missing"]],
    [{ turns: [], colour: 1 }, [`colour is not known here; known are ${Object.keys(ScenarioLanguage.scenarioFields).join(", ")}`]],
    [{ turns: 1 }, ["turns is 1, expected a list of objects"]],
    [{ turns: [1] }, ["turns[0] is not an object"]],
    [{ turns: [], handshake: "maybe" }, ["handshake is \"maybe\", expected one of answer, never, other_protocol"]],
    [turn(1), ["turns[0].do[0] is 1, expected an action"]],
    [turn({ type: "delay", ms: -1 }), ["turns[0].do[0].ms is -1, expected a whole number of at least 0"]],
    [turn({ type: "delay", ms: 1.5 }), ["turns[0].do[0].ms is 1.5, expected a whole number of at least 0"]],
    [turn({ type: "text", text: 1, loud: true }), [
      "turns[0].do[0].loud is not known here; known are type, text, pieces, delay_ms, unfinished",
      "turns[0].do[0].text is 1, expected a string"
    ]],
    [turn({ type: "write" }), ["turns[0].do[0] needs exactly one of text and base64"]],
    [turn({ type: "write", text: "a", base64: "YQ==" }), ["turns[0].do[0] needs exactly one of text and base64"]],
    [turn({ type: "wait_for", what: "signal" }), ["turns[0].do[0].signal is missing"]],
    [turn({ type: "wait_for", what: "file" }), ["turns[0].do[0].path is missing"]],
    [turn({ type: "spawn", argv: [], as: "child" }), ["turns[0].do[0].argv names no program"]],
    [turn({ type: "spawn", argv: ["a", 1], as: "child" }), ["turns[0].do[0].argv is [\"a\",1], expected a list of strings"]],
    [turn({ type: "usage", input_tokens: 1, output_tokens: 1, cost_usd: -0.5 }), ["turns[0].do[0].cost_usd is -0.5, expected a number of at least 0"]],
    [turn({ type: "repeat", times: 2, do: [end, { type: "ask", id: "a", name: "b", denied: [{ type: "exit" }] }] }), [
      "turns[0].do[0].do[1].denied[0].code is missing"
    ]],
    [{ turns: [{ when: { matches: "(" }, do: [] }] }, ["turns[0].when.matches is \"(\", which is no regular expression"]]
  ]
  it("refuses what is wrong, and names every place", () => {
    for (const [value, expected] of mistakes) {
      assert.deepStrictEqual(problems(value), expected)
      assert.strictEqual(Result.isFailure(decode(value)), true, JSON.stringify(value))
    }
  })

  it("refuses an unknown action and lists the known ones", () => {
    assert.deepStrictEqual(problems(turn({ type: "dance" })), [
      `turns[0].do[0].type is "dance", expected one of ${Object.keys(ScenarioLanguage.actionTable).join(", ")}`
    ])
  })

  it("describes every field, action and hole", () => {
    const text = ScenarioLanguage.describe()
    const words = [
      ...Object.keys(ScenarioLanguage.scenarioFields),
      ...Object.entries(ScenarioLanguage.actionTable).flatMap(([type, { takes }]) => [type, ...Object.keys(takes)]),
      ...Object.keys(ScenarioLanguage.holes)
    ]
    assert.deepStrictEqual(words.filter((word) => !text.includes(word)), [])
  })

  it("has one sentence for each field in the JSON schema, too", () => {
    const text = JSON.stringify(Schema.toJsonSchemaDocument(Scenario.Scenario, { onExcessProperty: "error" }))
    const descriptions = Object.values(ScenarioLanguage.scenarioFields).map(({ description }) => JSON.stringify(description))
    assert.deepStrictEqual(descriptions.filter((each) => !text.includes(each)), [])
  })
})

describe("Scenario.read", () => {
  it.effect("names the file that is not there", () =>
    Effect.gen(function*() {
      const failure = yield* Effect.flip(Scenario.read("/nowhere/scenario.json"))
      assert.deepStrictEqual([failure.code, failure.message.includes("/nowhere/scenario.json")], ["FILE_UNREADABLE", true])
    }))

  it.effect("knows the names of the scenarios of the package, and lists them where it is given another", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* Scenario.file("demo", "/anywhere"), `${scenarios}demo.json`)
      assert.strictEqual(yield* Scenario.file("./mine.json", "/anywhere"), "/anywhere/mine.json")
      const failure = yield* Effect.flip(Scenario.file("demos", "/anywhere"))
      assert.deepStrictEqual([failure.code, failure.message.includes(Scenario.builtIn().join(", "))], ["INVALID_SPEC", true])
    }))
})
