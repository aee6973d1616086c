import { Contracts } from "@turnpike/contract"
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Arbitraries from "./support/Arbitraries.ts"

const refusal = (name: Contracts.Name, input: unknown): unknown =>
  Result.match(Contracts.check(name)(input), { onFailure: (faults) => faults, onSuccess: () => "taken" })

const spec = { harness: "scripted", task: "Say hello." }
const event = { run_id: "run-1", seq: 0, ts: "2026-01-31T09:00:00.000Z" }
const nested = (levels: number) => {
  let value: unknown = "bottom"
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

describe("Contracts", () => {
  it("names every contract, and nothing else is a name", () => {
    assert.deepStrictEqual(Contracts.names, [
      "agent-run-spec",
      "agent-run-event",
      "agent-run-result",
      "session-event",
      "session-header",
      "inbox-entry",
      "turn-event",
      "capabilities",
      "failure",
      "verdict"
    ])
    assert.deepStrictEqual(["verdict", "Verdict", "toString", "__proto__", ""].map(Contracts.isName), [true, false, false, false, false])
  })

  for (const name of Contracts.names) {
    it.effect(`${name}: a value survives encoding, JSON and decoding unchanged`, () =>
      Effect.gen(function*() {
        const decode = Contracts.check(name)
        const encode = Schema.encodeUnknownSync(Contracts.schema(name))
        const checked = yield* Arbitrary.checkEffect(
          Arbitraries.of(name),
          (value) => {
            const text = JSON.stringify(encode(value))
            const decoded = decode(JSON.parse(text))
            // JSON.parse(text) stands for the value: JSON has no minus zero as JavaScript writes it.
            assert.deepStrictEqual(decoded, Result.succeed(JSON.parse(text)))
            return JSON.stringify(encode(Result.getOrThrow(decoded))) === text
          },
          { runs: 150, seed: `round trip of ${name}`, maxDiscards: 100_000 }
        )
        assert.strictEqual(checked._tag, "Passed", Arbitrary.formatCheckFailure(checked))
      }))

    it.effect(`${name}: an unknown field is refused beside any valid value, and named`, () =>
      Effect.gen(function*() {
        const decode = Contracts.check(name)
        const checked = yield* Arbitrary.checkEffect(
          Arbitraries.of(name),
          (value) => {
            const result = decode({ ...(value as object), surplus_field: 1 })
            if (Result.isSuccess(result)) return false
            return result.failure.some(({ message, path }) => path === "surplus_field" && message.startsWith("Unknown field; "))
          },
          { runs: 100, seed: `surplus in ${name}`, maxDiscards: 100_000 }
        )
        assert.strictEqual(checked._tag, "Passed", Arbitrary.formatCheckFailure(checked))
      }))

    it(`${name}: whatever is no object is refused`, () => {
      for (const input of [null, undefined, true, 0, "x", [], () => 1]) {
        assert.isTrue(Result.isFailure(Contracts.check(name)(input)), String(input))
      }
    })
  }

  describe("a refusal", () => {
    it("names an unknown type and the known ones", () => {
      assert.deepStrictEqual(refusal("verdict", { type: "success" }), [{
        path: "type",
        message:
          "Expected \"completed\", \"max-tokens\", \"max-turns\", \"refusal\", \"blocked\", \"aborted\", \"error\" or \"interrupted\", got \"success\""
      }])
      assert.deepStrictEqual(refusal("agent-run-event", { ...event, type: `x${"y".repeat(1000)}` }), [{
        path: "type",
        message: `Expected "session_start", "turn_start", "turn_end", "text_delta", "reasoning_delta", "message", "tool_start", "tool_end", "token_usage", "permission_request", "permission_decision", "notice", "session_end" or "result", got "x${"y".repeat(59)}…"`
      }])
    })

    it("says of a type that is missing or no string what is there", () => {
      assert.deepStrictEqual(
        [{}, { type: 1 }, { type: null }].map((input) => Contracts.format(Result.getOrThrow(Result.flip(Contracts.check("verdict")(input))))),
        ["nothing", "a number", "null"].map((got) =>
          `type: Expected "completed", "max-tokens", "max-turns", "refusal", "blocked", "aborted", "error" or "interrupted", got ${got}`
        )
      )
    })

    it("names the place, what was expected, and what kind of thing was there", () => {
      assert.deepStrictEqual(
        refusal("agent-run-spec", {
          harness: "scripted",
          task: "",
          prompt: "x",
          limits: { timeout_s: "300", token_budget: -1 },
          session: { id: "a b", resume: "always" },
          workspace: { kind: "docker" },
          tools: { allow: ["read", ""] },
          env: { "1ST": "x", N: 1, Z: "\u0000" }
        }),
        [
          {
            path: "prompt",
            message:
              "Unknown field; the fields are harness, recipe, task, input_artifacts, credentials, observability, limits, session, model, system, tools, workspace, permission, background, env"
          },
          { path: "task", message: "Expected a string that is not empty" },
          { path: "limits.timeout_s", message: "Expected a number or null, got a string" },
          { path: "limits.token_budget", message: "Expected a whole number from 0" },
          { path: "session.id", message: "Expected 1 to 128 characters of A-Z a-z 0-9 _ . -, beginning with a letter or digit" },
          { path: "session.resume", message: "Expected \"fail\", \"fresh\" or \"replay\", got another string" },
          { path: "tools.allow[1]", message: "Expected a string that is not empty" },
          { path: "workspace.kind", message: "Expected \"local\", got another string" },
          { path: "env[\"1ST\"]", message: "Expected a variable name: letters, digits and _, not beginning with a digit" },
          { path: "env.N", message: "Expected a string, got a number" },
          { path: "env.Z", message: "Expected a string without the character NUL" }
        ]
      )
    })

    it("repeats no value, because it may be a secret", () => {
      const secret = "sk-this-is-a-secret"
      const inputs = [
        { ...spec, credentials: { claude: secret } },
        { ...spec, credentials: { claude: { oauth_token: [secret] } } },
        { ...spec, credentials: secret },
        { ...spec, permission: secret },
        { ...spec, session: { id: `${secret} ` } },
        secret
      ]
      for (const input of inputs) assert.notInclude(JSON.stringify(refusal("agent-run-spec", input)), secret)
    })

    it("says which fields go together", () => {
      assert.deepStrictEqual(refusal("agent-run-spec", { task: "x" }), [{ path: "", message: "Expected exactly one of harness and recipe" }])
      assert.deepStrictEqual(refusal("agent-run-spec", { ...spec, tools: { allow: [], dangerous_all: true } }), [
        { path: "tools", message: "Expected { allow } or { dangerous_all }" }
      ])
      assert.deepStrictEqual(
        refusal("agent-run-event", { ...event, type: "session_end", outcome: { success: true, summary: "" }, reason: "timeout" }),
        [{ path: "reason", message: "Expected success exactly where outcome.success is true" }]
      )
    })

    it("cuts a long list of words", () => {
      assert.deepStrictEqual(refusal("failure", { code: "X", message: "x", retryable: true, remedy: "x" }), [{
        path: "code",
        message: "Expected \"USAGE\", \"INVALID_SPEC\", \"EMPTY_TASK\" or another of the 58 that the schema lists, got another string"
      }])
    })

    it("comes before a stack overflow", () => {
      const failure = { code: "INTERNAL", message: "x", retryable: false, remedy: "x" }
      const tooDeep = [{ path: "", message: "Expected JSON nested at most 100 levels deep" }]
      assert.deepStrictEqual(
        [99, 100, 1_000_000].map((levels) => refusal("failure", { ...failure, data: nested(levels) })),
        ["taken", tooDeep, tooDeep]
      )
    })

    it("ends on values that refer to themselves", () => {
      const cycle: Record<string, unknown> = { type: "completed" }
      cycle["left"] = cycle["right"] = { back: cycle }
      assert.deepStrictEqual(refusal("verdict", cycle), [{ path: "", message: "Expected JSON nested at most 100 levels deep" }])
    })

    it("does not let a name of Object.prototype pass for a field", () => {
      assert.deepStrictEqual(refusal("verdict", JSON.parse("{\"type\":\"interrupted\",\"__proto__\":{}}")), [
        { path: "__proto__", message: "Unknown field; the fields are type, not_started" }
      ])
      assert.deepStrictEqual(refusal("agent-run-spec", JSON.parse("{\"harness\":\"x\",\"task\":\"x\",\"toString\":1}")), [{
        path: "toString",
        message:
          "Unknown field; the fields are harness, recipe, task, input_artifacts, credentials, observability, limits, session, model, system, tools, workspace, permission, background, env"
      }])
    })
  })

  describe("validateText", () => {
    const completed = "{\"type\":\"completed\"}"

    it("takes one JSON value, over several lines too", () => {
      assert.deepStrictEqual(Contracts.validateText("verdict", "{\n  \"type\":\r\n  \"completed\" }\n", { lines: false }), { values: 1, faults: [] })
    })

    it("gives the line of every fault in JSONL, and goes on after it", () => {
      const text = [completed, "", "{\"type\":", "null", `${completed} x`, "{\"type\":\"blocked\"}", completed].join("\n")
      assert.deepStrictEqual(Contracts.validateText("verdict", `${text}\n`, { lines: true }), {
        values: 7,
        faults: [
          { line: 2, path: "", message: "Expected JSON: the text is blank" },
          { line: 3, path: "", message: "Expected JSON: the text ends too early" },
          { line: 4, path: "", message: "Expected an object, got null" },
          { line: 5, path: "", message: "Expected JSON: the character at column 22 cannot stand there" },
          { line: 6, path: "by", message: "Missing field" }
        ]
      })
    })

    it("finds no values in an empty JSONL text, and a fault in an empty JSON text", () => {
      assert.deepStrictEqual(Contracts.validateText("verdict", "", { lines: true }), { values: 0, faults: [] })
      assert.deepStrictEqual(Contracts.validateText("verdict", " \n", { lines: false }), {
        values: 1,
        faults: [{ line: 1, path: "", message: "Expected JSON: the text is blank" }]
      })
    })

    it("splits lines at line feeds alone", () => {
      const line = "{\"type\":\"blocked\",\"by\":\"a\u2028b\u0085c\"}"
      assert.deepStrictEqual(Contracts.validateText("verdict", `${line}\r\n${line}`, { lines: true }), { values: 2, faults: [] })
    })

    it("names a byte order mark", () => {
      assert.deepStrictEqual(Contracts.validateText("verdict", `\uFEFF${completed}`, { lines: false }).faults, [
        { line: 1, path: "", message: "Expected JSON: the text begins with a byte order mark; remove it" }
      ])
    })

    it("says where JSON goes wrong and repeats nothing of it", () => {
      const wrong: ReadonlyArray<readonly [string, number, string]> = [
        ["{\"a\":1,}", 1, "8"],
        ["{\"a\" 1}", 1, "6"],
        ["{'a':1}", 1, "2"],
        ["{a:1}", 1, "2"],
        ["[1 2]", 1, "4"],
        ["[1,]", 1, "4"],
        ["[,1]", 1, "2"],
        ["{,}", 1, "2"],
        ["[1}", 1, "3"],
        ["{\"a\":]", 1, "6"],
        ["{\"a\"}", 1, "5"],
        ["]", 1, "1"],
        ["01", 1, "2"],
        ["+1", 1, "1"],
        ["1.", 1, "2"],
        [".5", 1, "1"],
        ["NaN", 1, "1"],
        ["-Infinity", 1, "1"],
        ["nul", 1, "1"],
        ["\"a\\x\"", 1, "3"],
        ["\"a\\u12g4\"", 1, "3"],
        ["\"a\tb\"", 1, "3"],
        ["{\n \"a\": tru\n}", 2, "7"],
        ["[\n\n\n  1,\n  x]", 5, "3"],
        ["\u00a01", 1, "1"]
      ]
      assert.deepStrictEqual(
        wrong.map(([text]) => Contracts.validateText("verdict", text, { lines: false }).faults),
        wrong.map(([, line, column]) => [
          { line, path: "", message: `Expected JSON: the character at column ${column} cannot stand there` }
        ])
      )
      const early = ["{", "[", "[1", "[1,", "{\"a\"", "{\"a\":", "{\"a\":1", "\"a", "{\"a\":1,"]
      assert.deepStrictEqual(
        early.map((text) => Contracts.validateText("verdict", text, { lines: false }).faults),
        early.map(() => [{ line: 1, path: "", message: "Expected JSON: the text ends too early" }])
      )
    })

    it.effect("finds a fault in every text that JSON.parse refuses, at a place within it", () =>
      Effect.gen(function*() {
        const checked = yield* Arbitrary.checkEffect(
          Arbitrary.all([Arbitrary.schema(Schema.Json), Arbitrary.schema(Schema.Natural), Arbitrary.schema(Schema.String)] as const),
          ([value, place, damage]) => {
            const json = JSON.stringify(value)
            const at = place % (json.length + 1)
            const text = `${json.slice(0, at)}${damage.slice(0, 1)}${json.slice(at + 1)}`
            const parses = Result.isSuccess(Result.try({ try: () => JSON.parse(text) as unknown, catch: String }))
            const { faults } = Contracts.validateText("verdict", text, { lines: false })
            const aboutJson = faults.filter(({ message }) => message.startsWith("Expected JSON: "))
            if (parses) return aboutJson.length === 0
            const [fault, ...others] = aboutJson
            return fault !== undefined && others.length === 0 && fault.line >= 1 && fault.line <= text.split("\n").length
          },
          { runs: 500, seed: "damaged JSON" }
        )
        assert.strictEqual(checked._tag, "Passed", Arbitrary.formatCheckFailure(checked))
      }))
  })

  describe("jsonSchema", () => {
    for (const name of Contracts.names) {
      it(`${name}: refers only to what it holds, defines nothing twice, and closes every object`, () => {
        const schema = Contracts.jsonSchema(name)
        const definitions = Object.keys((schema["$defs"] ?? {}) as object)
        const references = [...JSON.stringify(schema).matchAll(/"\$ref":"#\/\$defs\/([^"]+)"/gu)].map((match) => match[1])
        assert.deepStrictEqual([...new Set(references)].sort(), definitions.toSorted())
        assert.deepStrictEqual(definitions.filter((definition) => /_\d+$/u.test(definition)), [])
        const open: Array<unknown> = []
        const visit = (node: unknown) => {
          if (typeof node !== "object" || node === null) return
          const object = node as { readonly [key: string]: unknown }
          const isCondition = "properties" in object && !("required" in object) && !("additionalProperties" in object)
          if (object["type"] === "object" && !isCondition && object["additionalProperties"] !== false) open.push(object)
          Object.values(object).forEach(visit)
        }
        visit(schema)
        assert.deepStrictEqual(open, [])
      })

      it(`${name}: describes itself, and every definition does`, () => {
        const schema = Contracts.jsonSchema(name)
        const definitions = Object.entries((schema["$defs"] ?? {}) as Record<string, { readonly description?: string }>)
        assert.isString(schema["description"])
        assert.deepStrictEqual(definitions.filter(([, definition]) => definition.description === undefined).map(([key]) => key), [])
      })
    }
  })

  it("enumerates its words once each", () => {
    const meta = Contracts.meta()
    for (const key of ["run_event_types", "session_event_types", "turn_event_types", "verdict_types", "notice_kinds"]) {
      const words = meta[key] as ReadonlyArray<string>
      assert.deepStrictEqual([...new Set(words)], words, key)
      assert.isAbove(words.length, 0)
    }
  })
})
