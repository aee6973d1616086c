import { assert, layer, it as plainIt } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import * as http from "node:http"
import * as net from "node:net"
import * as zlib from "node:zlib"
import type * as ModelRequest from "../src/ModelRequest.ts"
import * as ModelScenario from "../src/ModelScenario.ts"
import * as ModelServer from "../src/ModelServer.ts"
import { ask, bodyFor, paths, post, read, understand, wires } from "./support/client.ts"
import type { Question, Understood, Wire } from "./support/client.ts"

type Outcome = Omit<Understood, "stop" | "error"> & { readonly stop: Partial<Record<Wire, string>> | null; readonly error: Record<Wire, string> | null }

const said = (text: string, more: Partial<Outcome> = {}): Outcome => ({
  status: 200,
  text,
  thinking: "",
  calls: [],
  stop: { "anthropic-messages": "end_turn", "openai-responses": "completed", "openai-chat": "stop" },
  complete: true,
  error: null,
  usage: [1001, 200, Math.max(1, text.split(" ").filter((word) => word !== "").length)],
  ...more
})

/** What is left of an answer that breaks off. */
const broken = (text: string, more: Partial<Outcome> = {}): Outcome => said(text, { stop: null, complete: false, usage: null, ...more })

const failed = (status: number, error: Record<Wire, string>): Outcome => broken("", { status, error })

const everywhere = (word: string): Record<Wire, string> => ({ "anthropic-messages": word, "openai-responses": word, "openai-chat": word })

const toolStop = { "anthropic-messages": "tool_use", "openai-responses": "completed", "openai-chat": "tool_calls" }

const recital = "I was sent 1 prompt: [\"hello\"]"

const bash = { type: "object", properties: { command: { type: "string" }, timeout: { type: "number" } }, required: ["command"] }
const files = {
  type: "object",
  properties: { file_path: { type: "string" }, content: { type: "string" }, mode: { enum: ["fast", "careful"] }, depth: { type: "integer", minimum: 3 } },
  required: ["file_path", "mode", "depth"]
}

interface Row {
  readonly scenario: ModelScenario.ModelScenario
  readonly question?: Partial<Question>
  /** Streamed, and asked for whole. */
  readonly expected: readonly [streamed: Outcome, whole: Outcome]
}

const both = (outcome: Outcome): Row["expected"] => [outcome, outcome]
const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index} `).join("")

const rows: ReadonlyArray<Row> = [
  { scenario: { type: "text" }, expected: both(said(recital)) },
  {
    scenario: { type: "text" },
    question: { prompts: ["first", "<system-reminder>noise</system-reminder> second\nline ", "x".repeat(90)] },
    expected: both(
      said(`I was sent 3 prompts: ["first","second line","${"x".repeat(80)}… (90 characters)"]`, { usage: [1005, 200, 9] })
    )
  },
  { scenario: { type: "fixed", text: "héllo 😀\n  done" }, expected: both(said("héllo 😀\n  done", { usage: [1001, 200, 3] })) },
  { scenario: { type: "slow", words: 3, interval_ms: 1 }, expected: both(said(words(3))) },
  { scenario: { type: "big", words: 20_000 }, expected: both(said(words(20_000))) },
  {
    scenario: { type: "think" },
    expected: both(said(recital, { thinking: "The user wants to know what I was sent.", usage: [1001, 200, 15] }))
  },
  {
    scenario: { type: "tool", command: "echo hi" },
    question: { tool: { name: "Bash", schema: bash } },
    expected: both(
      said("I call a tool. ", { calls: [{ name: "Bash", input: { command: "echo hi", timeout: 600_000 } }], stop: toolStop, usage: [1001, 200, 24] })
    )
  },
  {
    scenario: { type: "tool", command: "echo hi" },
    question: {
      tool: { name: "shell", schema: { type: "object", properties: { command: { type: "array", items: { type: "string" } } } } }
    },
    expected: both(
      said("I call a tool. ", { calls: [{ name: "shell", input: { command: ["bash", "-lc", "echo hi"] } }], stop: toolStop, usage: [1001, 200, 24] })
    )
  },
  {
    scenario: { type: "tool", command: "echo hi" },
    question: { tool: { name: "Bash", schema: bash }, results: [{ command: "echo hi", output: "hi" }] },
    expected: both(said("The tool answered: \"hi\"", { usage: [1003, 200, 4] }))
  },
  {
    scenario: { type: "tool", command: "echo hi" },
    question: { tool: { name: "Grep", schema: bash } },
    expected: both(said("I was offered no tool to run; I was offered: Grep"))
  },
  {
    scenario: { type: "tools", command: ["one", "two"] },
    question: { tool: { name: "Bash", schema: bash }, results: [{ command: "one", output: "1" }] },
    expected: both(
      said("I call a tool. ", { calls: [{ name: "Bash", input: { command: "two", timeout: 600_000 } }], stop: toolStop, usage: [1003, 200, 24] })
    )
  },
  {
    scenario: { type: "tools", command: ["one", "two"] },
    question: {
      tool: { name: "Bash", schema: bash },
      results: [{ command: "one", output: "1" }, { command: "two", output: "2" }]
    },
    expected: both(said("The tool answered: \"1\"\nThe tool answered: \"2\"", { usage: [1005, 200, 8] }))
  },
  {
    scenario: { type: "tools", command: ["one", "two"], together: true },
    question: { tool: { name: "Bash", schema: bash } },
    expected: both(
      said("I call a tool. ", {
        calls: [
          { name: "Bash", input: { command: "one", timeout: 600_000 } },
          { name: "Bash", input: { command: "two", timeout: 600_000 } }
        ],
        stop: toolStop,
        usage: [1001, 200, 44]
      })
    )
  },
  {
    scenario: { type: "read", path: "/tmp/a b" },
    question: { tool: { name: "Read", schema: files } },
    expected: both(
      said("I call a tool. ", { calls: [{ name: "Read", input: { file_path: "/tmp/a b", mode: "fast", depth: 3 } }], stop: toolStop, usage: [1001, 200, 24] })
    )
  },
  {
    scenario: { type: "write", path: "/tmp/a", content: "x\n" },
    question: { tool: { name: "Write", schema: files } },
    expected: both(
      said("I call a tool. ", {
        calls: [{ name: "Write", input: { file_path: "/tmp/a", content: "x\n", mode: "fast", depth: 3 } }],
        stop: toolStop,
        usage: [1001, 200, 24]
      })
    )
  },
  {
    scenario: { type: "max_tokens" },
    expected: both(
      said("This answer is longer than", {
        stop: { "anthropic-messages": "max_tokens", "openai-responses": "incomplete:max_output_tokens", "openai-chat": "length" }
      })
    )
  },
  {
    scenario: { type: "refusal" },
    expected: both(
      said("I will not", {
        stop: { "anthropic-messages": "refusal", "openai-responses": "incomplete:content_filter", "openai-chat": "content_filter" }
      })
    )
  },
  { scenario: { type: "empty" }, expected: both(said("")) },
  { scenario: { type: "cut" }, expected: [broken(words(3)), said(words(4))] },
  { scenario: { type: "cut", words: 1, in: "any" }, expected: [broken(words(1)), broken("")] },
  { scenario: { type: "reset" }, expected: both(broken("", { status: 0 })) },
  { scenario: { type: "bad_json" }, expected: [broken(words(1)), said(words(2))] },
  { scenario: { type: "bad_json", in: "any" }, expected: [broken(words(1)), broken("")] },
  {
    scenario: { type: "error_event", words: 2 },
    expected: [
      broken(words(2), {
        stop: { "openai-responses": "failed" },
        error: { "anthropic-messages": "overloaded_error", "openai-responses": "server_error", "openai-chat": "server_error" }
      }),
      failed(529, { "anthropic-messages": "overloaded_error", "openai-responses": "server_error", "openai-chat": "server_error" })
    ]
  },
  ...([
    [400, "invalid_request_error", "invalid_request_error"],
    [401, "authentication_error", "invalid_request_error"],
    [403, "permission_error", "invalid_request_error"],
    [404, "not_found_error", "invalid_request_error"],
    [413, "request_too_large", "invalid_request_error"],
    [429, "rate_limit_error", "requests"],
    [500, "api_error", "server_error"],
    [503, "api_error", "server_error"],
    [529, "overloaded_error", "server_error"],
    [599, "api_error", "server_error"]
  ] as const).map(([status, anthropic, openai]): Row => ({
    scenario: { type: "status", status },
    expected: both(failed(status, { "anthropic-messages": anthropic, "openai-responses": openai, "openai-chat": openai }))
  })),
  {
    scenario: { type: "context_too_long" },
    expected: both(failed(400, everywhere("invalid_request_error")))
  }
]

/** These never end by themselves; their own tests are below. */
const endless: ReadonlyArray<ModelScenario.Type> = ["hang", "silent", "wait", "flaky"]

/** OpenAI has no word for the 30 tokens that were written to a cache: they are input like any other. */
const usageOver = (wire: Wire, usage: Outcome["usage"]): Outcome["usage"] =>
  usage === null || wire === "anthropic-messages" ? usage : [usage[0] + 30, usage[1], usage[2]]

let runs = 0
const newRun = () => `run-${runs++}`

const withoutMessage = ({ error, ...rest }: Understood) => ({ ...rest, error: error === null ? null : error.type })

const server = ModelServer.ModelServer

layer(ModelServer.layer(), { excludeTestServices: true })("ModelServer", (it) => {
  plainIt("has a row or a test of its own for every scenario", () => {
    assert.deepStrictEqual(
      ModelScenario.catalogue.map((entry) => entry.type).filter((type) =>
        !endless.includes(type) && !rows.some((row) => row.scenario.type === type)
      ),
      []
    )
  })

  for (const wire of wires) {
    for (const [index, { scenario, question, expected }] of rows.entries()) {
      for (const stream of [true, false]) {
        const name = ModelScenario.encode(scenario).slice(0, 60)
        it.effect(`plays ${name} over ${wire}, ${stream ? "streamed" : "whole"} (row ${index})`, () =>
          Effect.gen(function*() {
            const model = yield* server
            const run = newRun()
            const raw = yield* ask(wire, model.baseUrl(scenario, run), { prompts: ["hello"], ...question, stream })
            const outcome = expected[stream ? 0 : 1]
            assert.deepStrictEqual(withoutMessage(understand(wire, raw)), {
              ...outcome,
              stop: outcome.stop?.[wire] ?? null,
              usage: usageOver(wire, outcome.usage),
              error: outcome.error?.[wire] ?? null
            })
            const isCut = scenario.type === "reset" || (scenario.type === "cut" && (stream || scenario.in === "any"))
            const recorded = yield* model.waitForRequest(run, (request) => request.ending !== "open")
            assert.deepStrictEqual(
              [recorded.ending, recorded.status, recorded.wire, recorded.operation, recorded.stream, recorded.model],
              [isCut ? "cut" : "complete", outcome.status === 0 ? null : outcome.status, wire, "generate", stream, "m1"]
            )
            assert.lengthOf(yield* model.requests(run), 1)
          }))
      }
    }

    it.effect(`refuses the first requests of flaky over ${wire}, then answers`, () =>
      Effect.gen(function*() {
        const model = yield* server
        const base = model.baseUrl({ type: "flaky", times: 2, status: 429, retry_after_s: 7 }, newRun())
        const statuses: Array<unknown> = []
        for (let count = 0; count < 3; count++) {
          const raw = yield* ask(wire, base, { prompts: ["hello"], stream: true })
          statuses.push([raw.status, raw.headers.get("retry-after")])
        }
        assert.deepStrictEqual(statuses, [[429, "7"], [429, "7"], [200, null]])
      }))

    it.effect(`cuts only as many answers over ${wire} as it is told to`, () =>
      Effect.gen(function*() {
        const model = yield* server
        for (const scenario of [{ type: "cut", times: 1 }, { type: "reset", times: 1 }] as const) {
          const base = model.baseUrl(scenario, newRun())
          const first = yield* ask(wire, base, { prompts: ["hello"], stream: true })
          const second = yield* ask(wire, base, { prompts: ["hello"], stream: true })
          assert.deepStrictEqual([first.broken, understand(wire, second).text], [true, recital])
        }
      }))

    for (const [scenario, text] of [
      [{ type: "hang", words: 2 }, "word0 word1 "],
      [{ type: "silent" }, ""]
    ] as const) {
      it.effect(`keeps ${scenario.type} open over ${wire} until the client leaves`, () =>
        Effect.gen(function*() {
          const model = yield* server
          const run = newRun()
          const abort = new AbortController()
          const response = yield* Effect.promise(() =>
            post(`${model.baseUrl(scenario, run)}${paths[wire]}`, bodyFor(wire, { prompts: ["hello"], stream: true }), {
              signal: abort.signal
            })
          )
          const raw = yield* Effect.promise(() =>
            read(response, (soFar) => {
              const whole = { status: 200, headers: response.headers, body: soFar.slice(0, soFar.lastIndexOf("\n\n") + 2), broken: false }
              if (understand(wire, whole).text === text) abort.abort()
            })
          )
          const recorded = yield* model.waitForRequest(run, (request) => request.ending !== "open")
          assert.deepStrictEqual([recorded.ending, recorded.usage], ["client_left", null])
          assert.deepStrictEqual([understand(wire, { ...raw, body: raw.body.slice(0, raw.body.lastIndexOf("\n\n") + 2) }).text, raw.broken], [text, true])
        }))
    }

    for (const at of ["headers", "start", "middle"] as const) {
      for (const stream of [true, false]) {
        it.effect(`waits over ${wire} at ${at}, ${stream ? "streamed" : "whole"}, until it is released`, () =>
          Effect.gen(function*() {
            const model = yield* server
            const run = newRun()
            const seen = { text: "" }
            const heard = yield* Deferred.make<void>()
            const asking = yield* Effect.promise(() =>
              post(`${model.baseUrl({ type: "wait", at }, run)}${paths[wire]}`, bodyFor(wire, { prompts: ["hello"], stream }))
            ).pipe(
              Effect.flatMap((response) =>
                Effect.promise(() =>
                  read(response, (soFar) => {
                    seen.text = soFar
                    if (soFar.includes("I ")) Deferred.doneUnsafe(heard, Exit.void)
                  })
                )
              ),
              Effect.forkChild({ startImmediately: true })
            )
            const arrived = yield* model.waitForRequest(run)
            assert.deepStrictEqual([arrived.ending, arrived.usage], ["open", null])
            if (stream && at === "middle") yield* Deferred.await(heard)
            if (at !== "headers") yield* model.waitForRequest(run, (request) => request.status === 200)
            const before = stream && at === "middle" ? "I " : ""
            assert.strictEqual(seen.text.includes("sent"), false)
            assert.strictEqual(seen.text.includes("I "), before !== "")
            yield* model.release(run)
            const raw = yield* Fiber.join(asking)
            assert.strictEqual(understand(wire, raw).text, recital)
          }))
      }
    }

    it.effect(`answers malformed requests over ${wire} with 400, in the words of the wire`, () =>
      Effect.gen(function*() {
        const model = yield* server
        const run = newRun()
        const url = model.baseUrl({ type: "text" }, run) + paths[wire]
        const good = bodyFor(wire, { prompts: ["hello"], stream: true })
        const { model: _, ...modelless } = good
        const bad: ReadonlyArray<readonly [unknown, string]> = [
          ["", "the body is not JSON"],
          ["{\"model\":", "the body is not JSON"],
          ["[]", "Expected object"],
          ["null", "Expected object"],
          [modelless, "[\"model\"]"],
          [{ ...good, stream: "yes" }, "[\"stream\"]"],
          [{ ...good, [wire === "openai-responses" ? "input" : "messages"]: 5 }, wire === "openai-responses" ? "[\"input\"]" : "[\"messages\"]"],
          [{ ...good, tools: [{ name: 5 }] }, "[\"tools\"]"]
        ]
        for (const [body, problem] of bad) {
          const raw = yield* Effect.promise(() => post(url, body).then((response) => read(response)))
          const { status, error } = understand(wire, raw)
          assert.deepStrictEqual([status, error?.type], [400, "invalid_request_error"])
          assert.include(error?.message, problem)
          assert.strictEqual(raw.headers.get("x-should-retry"), "false")
        }
        assert.deepStrictEqual((yield* model.requests(run)).map((request) => request.status), bad.map(() => 400))
      }))

    it.effect(`takes a large body over ${wire} in every encoding that a client may choose`, () =>
      Effect.gen(function*() {
        const model = yield* server
        const run = newRun()
        const url = model.baseUrl({ type: "text" }, run) + paths[wire]
        const prompt = `${"ü😀 ".repeat(400_000)}end`
        const bytes = Buffer.from(JSON.stringify(bodyFor(wire, { prompts: [prompt], stream: false })))
        const encoded: ReadonlyArray<readonly [string, Buffer]> = [
          ["identity", bytes],
          ["gzip", zlib.gzipSync(bytes)],
          ["deflate", zlib.deflateSync(bytes)],
          ["br", zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
          ["zstd", zlib.zstdCompressSync(bytes)],
          ["gzip, br", zlib.brotliCompressSync(zlib.gzipSync(bytes), { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })]
        ]
        for (const [encoding, body] of encoded) {
          const raw = yield* Effect.promise(() =>
            post(url, body, { headers: { "content-encoding": encoding } }).then((response) => read(response))
          )
          assert.include(understand(wire, raw).text, "I was sent 1 prompt: [\"ü😀 ü😀", encoding)
        }
        const requests = yield* model.requests(run)
        assert.deepStrictEqual(requests.map((request) => request.prompts[0] === prompt), encoded.map(() => true))
      }))
  }

  it.effect("refuses bodies that are not what their encoding says, and encodings it does not know", () =>
    Effect.gen(function*() {
      const model = yield* server
      const url = `${model.baseUrl({ type: "text" }, newRun())}/v1/messages`
      const send = (encoding: string) =>
        Effect.promise(() =>
          post(url, "{}", { headers: { "content-encoding": encoding } }).then((response) => read(response))
        ).pipe(Effect.map((raw) => [raw.status, understand("anthropic-messages", raw).error?.message]))
      const [gzip, unknown] = [yield* send("gzip"), yield* send("lzma")]
      assert.deepStrictEqual([gzip[0], unknown[0]], [400, 415])
      // What every object inherits is no encoding either.
      assert.deepStrictEqual([(yield* send("constructor"))[0], (yield* send("__proto__"))[0]], [415, 415])
      assert.include(gzip[1], "the body is not gzip")
      assert.include(unknown[1], "content-encoding \"lzma\" is not known; send one of gzip")
    }))

  it.effect("records what a client sent in one form for all wires", () =>
    Effect.gen(function*() {
      const model = yield* server
      for (const wire of wires) {
        const run = newRun()
        yield* ask(wire, model.baseUrl({ type: "text" }, run), {
          prompts: ["first", "second"],
          stream: true,
          tool: { name: "Bash", schema: bash },
          results: [{ command: "ls", output: "a b" }]
        })
        const { headers: _, body, ...request } = yield* model.waitForRequest(run, (one) => one.ending === "complete")
        assert.deepStrictEqual(JSON.parse(body).model, "m1")
        assert.deepStrictEqual(request, {
          seq: 0,
          method: "POST",
          path: paths[wire],
          operation: "generate",
          wire,
          scenario: "text",
          model: "m1",
          stream: true,
          system: "be brief",
          messages: [
            { role: "user", kind: "text", text: "first" },
            { role: "assistant", kind: "text", text: "noted" },
            { role: "user", kind: "text", text: "second" },
            { role: "assistant", kind: "tool_call", text: "{\"command\":\"ls\"}", tool_name: "Bash" },
            { role: "tool", kind: "tool_result", text: "a b" }
          ],
          prompts: ["first", "second"],
          tools: [{ name: "Bash", input_schema: bash }],
          status: 200,
          usage: { input: 1005, cache_read: 200, cache_write: 30, output: 6, reasoning: 0 },
          ending: "complete"
        } satisfies Omit<ModelRequest.ModelRequest, "headers" | "body">)
      }
    }))

  it.effect("keeps the names of credentials and never their values", () =>
    Effect.gen(function*() {
      const model = yield* server
      const run = newRun()
      const secret = "sk-very-secret-0123"
      yield* Effect.promise(() =>
        post(
          `${model.baseUrl({ type: "text" }, run)}/v1/messages?beta=true&key=${secret}`,
          { ...bodyFor("anthropic-messages", { prompts: [`my key is ${secret}`], stream: false }) },
          { headers: { authorization: `Bearer ${secret}`, "x-api-key": secret, cookie: `a=${secret}`, "x-note": `it is ${secret}`, "x-app": "cli" } }
        ).then((response) => read(response))
      )
      const [request] = yield* model.requests(run)
      assert.notInclude(JSON.stringify(request), secret)
      assert.deepStrictEqual(
        ["authorization", "x-api-key", "cookie", "x-note", "x-app"].map((name) => request?.headers[name]),
        ["[redacted]", "[redacted]", "[redacted]", "it is [redacted]", "cli"]
      )
      assert.strictEqual(request?.path, "/v1/messages?beta=true&key=[redacted]")
      assert.deepStrictEqual(request?.prompts, ["my key is [redacted]"])
      const control = yield* Effect.promise(() => fetch(`${model.url}/control/runs/${run}/requests`).then((r) => r.text()))
      assert.notInclude(control, secret)
    }))

  it.effect("takes out whole credentials, and changes nothing else of a request", () =>
    Effect.gen(function*() {
      const model = yield* server
      const run = newRun()
      const send = (headers: Record<string, string>, prompt: string) =>
        Effect.promise(() =>
          post(`${model.baseUrl({ type: "text" }, run)}/v1/messages`, bodyFor("anthropic-messages", { prompts: [prompt], stream: false }), { headers })
            .then((response) => read(response))
        )
      // One credential begins with another.
      yield* send({ "x-api-key": "abcdefgh", authorization: "Bearer abcdefgh-ijklmnop" }, "say abcdefgh-ijklmnop")
      assert.strictEqual(JSON.stringify(yield* model.requests(run)).includes("ijklmnop"), false)
      assert.deepStrictEqual((yield* model.requests(run))[0]?.prompts, ["say [redacted]"])
      // A made-up key that is also a field's name, or a number of the body.
      const raw = yield* send({ "x-api-key": "messages", authorization: "Bearer max_tokens" }, "hello")
      assert.strictEqual(understand("anthropic-messages", raw).text, recital)
      yield* Effect.callback<void>((resume) => {
        http.request({ port: model.port, path: "http://somebody:a-password@example.test/?q=a-password" }, (response) => {
          response.resume()
          response.on("end", () => resume(Effect.void))
        }).end()
      })
      assert.strictEqual((yield* model.strays).at(-1)?.path, "http://[redacted]@example.test/?q=[redacted]")
    }))

  it.effect("answers a body that is nested deeper than it can read", () =>
    Effect.gen(function*() {
      const model = yield* server
      const run = newRun()
      const depth = 200_000
      const content = `[{"type":"tool_use","name":"x","input":${"[".repeat(depth)}${"]".repeat(depth)}}]`
      const raw = yield* Effect.promise(() =>
        post(`${model.baseUrl({ type: "text" }, run)}/v1/messages`, `{"model":"m1","max_tokens":1,"messages":[{"role":"user","content":${content}}]}`)
          .then((response) => read(response))
      )
      assert.deepStrictEqual([raw.status, understand("anthropic-messages", raw).error?.type], [400, "invalid_request_error"])
      assert.deepStrictEqual((yield* model.requests(run)).map((request) => [request.status, request.ending]), [[400, "complete"]])
    }))

  it.effect("bills what was said to its end, and nothing else", () =>
    Effect.gen(function*() {
      const model = yield* server
      for (const scenario of [{ type: "cut", in: "any" }, { type: "bad_json", in: "any" }, { type: "error_event" }] as const) {
        for (const stream of [true, false]) {
          const run = newRun()
          yield* ask("openai-chat", model.baseUrl(scenario, run), { prompts: ["x"], stream })
          const { usage } = yield* model.waitForRequest(run, (request) => request.ending !== "open")
          assert.strictEqual(usage, null, `${scenario.type} ${stream}`)
        }
      }
    }))

  it.effect("tells a predicate's own mistake to whoever waits, and to nobody else", () =>
    Effect.gen(function*() {
      const model = yield* server
      const run = newRun()
      const waiting = yield* model.waitForRequest(run, () => {
        throw new Error("a slip in a test")
      }).pipe(Effect.exit, Effect.forkChild({ startImmediately: true }))
      const raw = yield* ask("openai-chat", model.baseUrl({ type: "text" }, run), { prompts: ["hello"], stream: false })
      assert.strictEqual(understand("openai-chat", raw).text, recital)
      const exit = yield* Fiber.join(waiting)
      assert.include(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", "a slip in a test")
    }))

  it.effect("lets one waiting request pass for each release, the one that came first", () =>
    Effect.gen(function*() {
      const model = yield* server
      const run = newRun()
      const base = model.baseUrl({ type: "wait", at: "headers" }, run)
      const one = yield* ask("openai-chat", base, { prompts: ["one"], stream: false }).pipe(Effect.forkChild({ startImmediately: true }))
      yield* model.waitForRequest(run, (request) => request.prompts[0] === "one")
      const two = yield* ask("openai-chat", base, { prompts: ["two"], stream: false }).pipe(Effect.forkChild({ startImmediately: true }))
      yield* model.waitForRequest(run, (request) => request.prompts[0] === "two")
      yield* model.release(run)
      assert.include((yield* Fiber.join(one)).body, "one")
      assert.deepStrictEqual((yield* model.requests(run)).map((request) => request.ending), ["complete", "open"])
      yield* model.release(run)
      assert.include((yield* Fiber.join(two)).body, "two")
      yield* model.release(run)
      assert.include((yield* ask("openai-chat", base, { prompts: ["three"], stream: false })).body, "three")
    }))

  it.effect("counts tokens, lists models and answers probes, and records them as such", () =>
    Effect.gen(function*() {
      const model = yield* server
      const run = newRun()
      const base = model.baseUrl({ type: "status", status: 500 }, run)
      const get = (path: string, init: RequestInit = {}) =>
        Effect.promise(() => fetch(base + path, init).then(async (r) => [r.status, await r.text()] as const))
      const json = (text: string) => JSON.parse(text)
      const { max_tokens: _, ...counted } = bodyFor("anthropic-messages", { prompts: ["a", "b"], stream: false })
      const count = yield* get("/v1/messages/count_tokens", { method: "POST", body: JSON.stringify(counted) })
      const list = yield* get("/v1/models")
      const entry = yield* get("/models/any-model")
      const head = yield* get("/", { method: "HEAD" })
      const root = yield* get("")
      const unknown = yield* get("/v1/embeddings", { method: "POST", body: "{}" })
      const wrongMethod = yield* get("/v1/messages")
      assert.deepStrictEqual(
        [count[0], json(count[1]), list[0], json(list[1]).data[0].id, entry[0], json(entry[1]).id, head, root, unknown[0], wrongMethod[0]],
        [200, { input_tokens: 1003 }, 200, "scripted-model", 200, "any-model", [200, ""], [200, ""], 404, 404]
      )
      assert.deepStrictEqual((yield* model.requests(run)).map((request) => request.operation), [
        "count_tokens",
        "list_models",
        "list_models",
        "probe",
        "probe",
        "unknown",
        "unknown"
      ])
    }))

  it.effect("answers a scenario that cannot be played with 400 and what is wrong with it", () =>
    Effect.gen(function*() {
      const model = yield* server
      const run = newRun()
      const response = yield* Effect.promise(() =>
        post(`${model.url}/s/slow,words=none/${run}/v1/messages`, { any: "body" })
      )
      const body = yield* Effect.promise(() => response.text())
      assert.deepStrictEqual([response.status, response.headers.get("x-should-retry")], [400, "false"])
      assert.include(JSON.parse(body).error.message, "the scenario \"slow,words=none\" cannot be played")
      assert.deepStrictEqual((yield* model.requests(run)).map((request) => [request.scenario, request.status, request.body]), [
        ["slow,words=none", 400, "{\"any\":\"body\"}"]
      ])
    }))

  it.effect("keeps what belongs to no run as a stray, also when it is used as a proxy", () =>
    Effect.scoped(Effect.gen(function*() {
      const model = yield* ModelServer.make()
      const get = (path: string) => Effect.promise(() => fetch(model.url + path).then((r) => r.status))
      assert.strictEqual(yield* get("/v1/models"), 404)
      assert.strictEqual(yield* get("/s/text/bad%20run/v1/models"), 400)
      assert.strictEqual(yield* get("/"), 200)
      const tunnel = yield* Effect.callback<number | undefined>((resume) => {
        http.request({ port: model.port, method: "CONNECT", path: "example.test:443", headers: { "proxy-authorization": "Basic c2VjcmV0c2VjcmV0" } })
          .on("connect", (response) => resume(Effect.succeed(response.statusCode))).end()
      })
      const forwarded = yield* Effect.callback<number | undefined>((resume) => {
        http.request({ port: model.port, path: "http://example.test/x" }, (response) => {
          response.resume()
          resume(Effect.succeed(response.statusCode))
        }).end()
      })
      assert.deepStrictEqual([tunnel, forwarded], [403, 403])
      assert.deepStrictEqual(
        (yield* model.strays).map((request) => [request.method, request.path, request.headers["proxy-authorization"]]),
        [
          ["GET", "/v1/models", undefined],
          ["GET", "/s/text/bad%20run/v1/models", undefined],
          ["CONNECT", "example.test:443", "[redacted]"],
          ["GET", "http://example.test/x", undefined]
        ]
      )
    })))

  it.effect("can be told to release and to forget over HTTP", () =>
    Effect.gen(function*() {
      const model = yield* server
      const run = newRun()
      const control = (path: string, method = "GET") =>
        Effect.promise(() => fetch(`${model.url}/control${path}`, { method }).then(async (r) => [r.status, await r.json()] as const))
      const asking = yield* ask("openai-chat", model.baseUrl({ type: "wait" }, run), { prompts: ["x"], stream: true }).pipe(
        Effect.forkChild({ startImmediately: true })
      )
      yield* model.waitForRequest(run)
      assert.deepStrictEqual(yield* control(`/runs/${run}/release`, "POST"), [200, { run_id: run, released: true }])
      yield* Fiber.join(asking)
      yield* model.waitForRequest(run, (request) => request.ending === "complete")
      assert.deepStrictEqual(yield* control(`/runs/${run}/requests`), [200, { run_id: run, requests: yield* model.requests(run) }])
      assert.deepStrictEqual(yield* control(`/runs/${run}`, "DELETE"), [200, { run_id: run, forgotten: true }])
      assert.deepStrictEqual(yield* model.requests(run), [])
      assert.strictEqual((yield* control("/nope"))[0], 404)
    }))

  it.effect("bounds a body, compressed or not, and says so", () =>
    Effect.scoped(Effect.gen(function*() {
      const model = yield* ModelServer.make({ maxBodyBytes: 1000 })
      const url = `${model.baseUrl({ type: "text" }, "r")}/v1/messages`
      const long = JSON.stringify(bodyFor("anthropic-messages", { prompts: ["x".repeat(100_000)], stream: false }))
      for (const [body, headers] of [[long, {}], [zlib.gzipSync(long), { "content-encoding": "gzip" }]] as const) {
        const raw = yield* Effect.promise(() => post(url, body, { headers }).then((response) => read(response)))
        assert.deepStrictEqual([raw.status, understand("anthropic-messages", raw).error?.message], [413, "the body is larger than 1000 bytes"])
      }
    })))

  it.effect("survives clients that leave while they send, and talk that is not HTTP", () =>
    Effect.gen(function*() {
      const model = yield* server
      const talk = (bytes: string) =>
        Effect.callback<void>((resume) => {
          const socket = net.connect(model.port, "127.0.0.1", () => {
            socket.write(bytes, () => socket.destroy())
          })
          socket.on("close", () => resume(Effect.void))
        })
      yield* talk("POST /s/text/left/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n{\"mod")
      yield* talk("\u0000\u0001 not http\r\n\r\n")
      const raw = yield* ask("anthropic-messages", model.baseUrl({ type: "text" }, newRun()), { prompts: ["hello"], stream: true })
      assert.strictEqual(understand("anthropic-messages", raw).text, recital)
    }))

  it.effect("ends all its connections at once when its scope closes", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const model = yield* ModelServer.make().pipe(Scope.provide(scope))
      const waiting = model.waitForRequest("r", (request) => request.ending === "server_closed")
      const asking = yield* ask("anthropic-messages", model.baseUrl({ type: "hang" }, "r"), { prompts: ["x"], stream: true }).pipe(
        Effect.forkChild({ startImmediately: true })
      )
      const idle = net.connect(model.port, "127.0.0.1")
      const idleClosed = yield* Effect.callback<void>((resume) => void idle.on("close", () => resume(Effect.void))).pipe(
        Effect.forkChild({ startImmediately: true })
      )
      idle.on("error", () => {})
      yield* model.waitForRequest("r", (request) => request.status === 200)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue((yield* Fiber.join(asking)).broken)
      yield* Fiber.join(idleClosed)
      yield* waiting
      const again = yield* ask("anthropic-messages", model.baseUrl({ type: "text" }, "r"), { prompts: ["x"], stream: true })
      assert.strictEqual(again.status, 0)
    }))

  it.effect("does not wait for a client that keeps its end of a tunnel open", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const model = yield* ModelServer.make().pipe(Scope.provide(scope))
      const socket = net.connect({ port: model.port, host: "127.0.0.1", allowHalfOpen: true })
      socket.on("error", () => {})
      yield* Effect.callback<void>((resume) => {
        socket.once("data", () => resume(Effect.void))
        socket.write("CONNECT example.test:443 HTTP/1.1\r\nhost: example.test\r\n\r\n")
      })
      yield* Scope.close(scope, Exit.void)
      socket.destroy()
    }))

  it.effect("fails with a port that is none", () =>
    Effect.gen(function*() {
      for (const port of [70_000, -1, 1.5, Number.NaN]) {
        const error = yield* Effect.flip(Effect.scoped(ModelServer.make({ port })))
        assert.deepStrictEqual([error._tag, error.port], ["ListenFailed", port])
        assert.match(error.message, new RegExp(`^cannot listen on 127\\.0\\.0\\.1:${port}: .*; choose another port, or 0`))
      }
    }))

  it.effect("fails with the port that it could not have", () =>
    Effect.gen(function*() {
      const model = yield* server
      const error = yield* Effect.flip(Effect.scoped(ModelServer.make({ port: model.port })))
      assert.strictEqual(error._tag, "ListenFailed")
      assert.strictEqual(error.port, model.port)
      assert.match(error.message, new RegExp(`^cannot listen on 127\\.0\\.0\\.1:${model.port}: .*EADDRINUSE.*; choose another port, or 0`))
    }))
})

plainIt.effect("ModelServer paces slow answers by the clock of its scope", () =>
  Effect.scoped(Effect.gen(function*() {
    const model = yield* ModelServer.make()
    const base = model.baseUrl({ type: "slow", words: 2, interval_ms: 60_000 }, "r")
    const asking = yield* ask("openai-chat", base, { prompts: ["x"], stream: true }).pipe(Effect.forkChild({ startImmediately: true }))
    yield* model.waitForRequest("r", (request) => request.status === 200)
    assert.strictEqual((yield* model.requests("r"))[0]?.ending, "open")
    while ((yield* model.requests("r"))[0]?.ending === "open") {
      yield* TestClock.adjust("60 seconds")
      yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
    }
    assert.strictEqual(understand("openai-chat", yield* Fiber.join(asking)).text, words(2))
  })))
