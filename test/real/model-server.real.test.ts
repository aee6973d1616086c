import { assert, layer } from "@effect/vitest"
import { ModelServer } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import { claudeEnv, makePrivatePlace, programOf, run, versionOf } from "./support/realCli.ts"

const apiKey = "sk-scripted-key-of-the-real-test"

const place = Effect.acquireRelease(Effect.sync(makePrivatePlace), (place) => Effect.sync(place.remove))

/** The `result` event is the last line of the stream; the lines before it tell how it came about. */
const eventsOf = (stdout: string): ReadonlyArray<Record<string, unknown>> =>
  stdout.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line))

layer(ModelServer.layer(), { excludeTestServices: true })("ModelServer, for the real Claude Code", (it) => {
  it.effect("is the only thing that a plain turn talks to, once, with the prompt that was given", () =>
    Effect.gen(function*() {
      assert.strictEqual(versionOf("claude"), "2.1.332")
      const server = yield* ModelServer.ModelServer
      const here = yield* place
      const prompt = "Say what I asked: \"$(x)\" 😀"
      const ended = yield* Effect.promise((signal) =>
        run(programOf("claude"), ["-p", "--output-format", "stream-json", "--verbose"], {
          cwd: here.work,
          env: claudeEnv(here, { baseUrl: server.baseUrl({ type: "text" }, "plain"), proxyUrl: server.url, apiKey }),
          stdin: prompt,
          signal
        })
      )
      assert.deepStrictEqual([ended.code, ended.signal, ended.stderr], [0, null, ""])
      const events = eventsOf(ended.stdout)
      const result = events.at(-1)
      const answer = "I was sent 1 prompt: [\"Say what I asked: \\\"$(x)\\\" 😀\"]"
      assert.deepStrictEqual(
        [result?.["type"], result?.["subtype"], result?.["is_error"], result?.["result"], result?.["num_turns"]],
        ["result", "success", false, answer, 1]
      )
      assert.deepStrictEqual(events.filter((event) => event["type"] === "result"), [result])

      const requests = yield* server.requests("plain")
      assert.deepStrictEqual(
        requests.map(({ method, path, wire, stream, status, ending, prompts }) => ({ method, path, wire, stream, status, ending, prompts })),
        [{
          method: "POST",
          path: "/v1/messages?beta=true",
          wire: "anthropic-messages",
          stream: true,
          status: 200,
          ending: "complete",
          prompts: [prompt]
        }]
      )
      const [request] = requests
      const usage = result?.["usage"] as Record<string, unknown>
      assert.deepStrictEqual(
        [usage["input_tokens"], usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"], usage["output_tokens"]],
        [request?.usage?.input, request?.usage?.cache_read, request?.usage?.cache_write, request?.usage?.output]
      )
      assert.deepStrictEqual(request?.headers["x-api-key"], "[redacted]")
      assert.notInclude(JSON.stringify(requests), apiKey)
      assert.deepStrictEqual(yield* server.strays, [])
    }))

  it.effect("has it run a command and say what came back", () =>
    Effect.gen(function*() {
      const server = yield* ModelServer.ModelServer
      const here = yield* place
      const ended = yield* Effect.promise((signal) =>
        run(programOf("claude"), ["-p", "--output-format", "stream-json", "--verbose", "--allowedTools=Bash"], {
          cwd: here.work,
          env: claudeEnv(here, {
            baseUrl: server.baseUrl({ type: "tool", command: "printf 'a, b/%s' done" }, "tool"),
            proxyUrl: server.url,
            apiKey
          }),
          stdin: "run it",
          signal
        })
      )
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""])
      assert.strictEqual(eventsOf(ended.stdout).at(-1)?.["result"], "The tool answered: \"a, b/done\"")
      assert.deepStrictEqual((yield* server.requests("tool")).map(({ ending, prompts }) => [ending, prompts]), [
        ["complete", ["run it"]],
        ["complete", ["run it"]]
      ])
      assert.deepStrictEqual(yield* server.strays, [])
    }))
})
