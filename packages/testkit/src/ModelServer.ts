/**
 * A scripted model behind the HTTP protocols of the vendors, on 127.0.0.1.
 *
 * A client is given a base URL that names what it will live through and the run
 * that it belongs to, `http://127.0.0.1:PORT/s/<scenario>/<run id>`, and needs no
 * other preparation. Under it are Anthropic Messages (`/v1/messages`), OpenAI
 * Responses (`/v1/responses`) and Chat Completions (`/v1/chat/completions`), each
 * streamed or whole, token counts, and the list of models; `/v1` may be left out.
 *
 * The server keeps every request of a run in memory until it is told to forget
 * it. Requests that belong to no run are strays. It also answers as an HTTP
 * proxy, with 403, and keeps what was asked of it among the strays: a client
 * whose proxy it is cannot reach anything else without leaving a trace.
 *
 * Time (`slow`) is the `Clock` of the scope that made the server. Closing that
 * scope ends all its connections at once.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { createServer } from "node:http"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as AnthropicMessagesWire from "./AnthropicMessagesWire.ts"
import * as Exchange from "./internal/exchange.ts"
import * as RequestBody from "./internal/requestBody.ts"
import * as RunRecord from "./internal/runRecord.ts"
import * as ModelReply from "./ModelReply.ts"
import * as ModelRequest from "./ModelRequest.ts"
import * as ModelScenario from "./ModelScenario.ts"
import type * as ModelWire from "./ModelWire.ts"
import * as OpenAiChatWire from "./OpenAiChatWire.ts"
import * as OpenAiResponsesWire from "./OpenAiResponsesWire.ts"

type Request = ModelRequest.ModelRequest

/** The server could not listen: the port is taken, or may not be had. */
export class ListenFailed extends Schema.TaggedError<ListenFailed>()("ListenFailed", {
  port: Schema.Finite,
  cause: Schema.Defect()
}) {
  override get message() {
    const why = this.cause instanceof Error ? this.cause.message : String(this.cause)
    return `cannot listen on 127.0.0.1:${this.port}: ${why}; choose another port, or 0 for any free one`
  }
}

export interface Options {
  /** 0, the default, takes any free port. */
  readonly port?: number
  /** Ids that the model list names; any id is accepted. Default: `scripted-model`. */
  readonly models?: ReadonlyArray<string>
  /** Bounds a request body, as sent and as decompressed. Default: 64 MiB. */
  readonly maxBodyBytes?: number
}

export class ModelServer extends Context.Service<ModelServer, {
  /** `http://127.0.0.1:PORT`, without a slash at its end. */
  readonly url: string
  readonly port: number
  /** What a client is given. A run id is 1 to 128 letters, digits, `_` and `-`; another is answered with 400. */
  readonly baseUrl: (scenario: ModelScenario.ModelScenario, runId: string) => string
  /** The run's requests so far, in the order of `seq`; none for a run that nobody has used. */
  readonly requests: (runId: string) => Effect.Effect<ReadonlyArray<Request>>
  /**
   * Completes with the first request of the run that satisfies the predicate
   * (default: any), whether it is recorded already or yet to come. It looks again
   * whenever a request is amended, so a predicate can ask for an `ending`.
   */
  readonly waitForRequest: (runId: string, predicate?: (request: Request) => boolean) => Effect.Effect<Request>
  /** Lets one waiting request of the run pass: the one that waits longest, else the next that comes. */
  readonly release: (runId: string) => Effect.Effect<void>
  /** Drops the run: its requests, its counts, and releases that nothing has used. */
  readonly forget: (runId: string) => Effect.Effect<void>
  /** Requests that belong to no run, proxy requests included. */
  readonly strays: Effect.Effect<ReadonlyArray<Request>>
}>()("@turnpike/testkit/ModelServer") {}

const wires: ReadonlyArray<readonly [path: string, wire: ModelWire.ModelWire]> = [
  ["/messages", AnthropicMessagesWire.wire],
  ["/responses", OpenAiResponsesWire.wire],
  ["/chat/completions", OpenAiChatWire.wire]
]

const runIdPattern = /^[A-Za-z0-9_-]{1,128}$/

/** A client that is told not to, does not ask again for what is a mistake of the test. */
const doNotRetry = { "x-should-retry": "false" }

const mistake = (message: string) => ({
  type: "error",
  error: { type: "invalid_request_error", message, param: null, code: "scripted_model_server" }
})

const helpText = (url: string): string =>
  [
    "Scripted model server.",
    "",
    `Base URL of a client:  ${url}/s/<scenario>/<run id>`,
    "Anthropic Messages, OpenAI Responses and OpenAI Chat Completions answer below it.",
    "",
    ...scenarioLines(),
    "",
    `GET    ${url}/control/runs/<run id>/requests   what the run has sent`,
    `POST   ${url}/control/runs/<run id>/release    let one waiting request pass`,
    `DELETE ${url}/control/runs/<run id>            forget the run`,
    `GET    ${url}/control/strays                   requests that belong to no run`,
    ""
  ].join("\n")

/** One line per scenario: how to spell it, and what it does. */
export const scenarioLines = (): ReadonlyArray<string> =>
  ModelScenario.catalogue.map(({ type, parameters, description }) => {
    const spelling = type + parameters.map(({ name, required }) => (required ? `,${name}=…` : `[,${name}=…]`)).join("")
    return `${spelling}\n    ${description}`
  })

interface Target {
  readonly scenario: string
  readonly runId: string
  /** Below the run's base URL, without query and without `/v1`. */
  readonly path: string
  /** As recorded: below the run's base URL, with query. */
  readonly recorded: string
}

const targetOf = (url: string): Target | null => {
  const match = /^\/s\/([^/?]+)\/([^/?]+)([^?]*)(\?.*)?$/.exec(url)
  if (match === null) return null
  const [, scenario = "", runId = "", rest = "", query = ""] = match
  return { scenario, runId, path: rest.replace(/^\/v1(?=\/)/, "").replace(/\/$/, ""), recorded: (rest || "/") + query }
}

const headersOf = (request: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value ?? ""])
  )

/** What a client sent, without its credentials. */
const sentBy = (incoming: IncomingMessage, path: string, body: string) =>
  ModelRequest.redact({ headers: headersOf(incoming), path, body })

const parseJson = (text: string): Result.Result<unknown, string> =>
  Result.mapError(
    Result.try((): unknown => JSON.parse(text)),
    (error) => (error instanceof Error ? error.message : String(error))
  )

/** Starts a server; it ends with the scope. */
export const make = Effect.fnUntraced(function*(
  options: Options = {}
): Effect.fn.Return<ModelServer["Service"], ListenFailed, Scope.Scope> {
  const { port = 0, models = ["scripted-model"], maxBodyBytes = 64 * 1024 * 1024 } = options
  const runs = new Map<string, RunRecord.RunRecord>()
  const strays = RunRecord.make()
  const nonce = (yield* Random.nextIntBetween(36 ** 5, 36 ** 6 - 1)).toString(36)
  let answers = 0

  const runOf = (runId: string): RunRecord.RunRecord => {
    const known = runs.get(runId)
    if (known !== undefined) return known
    const made = RunRecord.make()
    runs.set(runId, made)
    return made
  }

  /** Records a request before anything is answered, and how the answer ended after it has. */
  const recorded = (
    run: RunRecord.RunRecord,
    incoming: IncomingMessage,
    response: ServerResponse,
    about: Pick<Request, "scenario" | "operation" | "wire"> & {
      readonly sent: ReturnType<typeof sentBy>
      readonly reading: ModelWire.Reading | null
    },
    answer: (exchange: Exchange.Exchange, request: Request) => Effect.Effect<Exchange.Ending>
  ): Effect.Effect<void> =>
    Effect.suspend(() => {
      const request = run.record({
        method: incoming.method ?? "GET",
        path: about.sent.path,
        operation: about.operation,
        wire: about.wire,
        scenario: about.scenario,
        headers: about.sent.headers,
        model: about.reading?.model ?? null,
        stream: about.reading?.stream ?? null,
        system: about.reading?.system ?? "",
        messages: about.reading?.messages ?? [],
        prompts: ModelRequest.promptsOf(about.reading?.messages ?? []),
        tools: about.reading?.tools ?? [],
        body: about.sent.body,
        status: null,
        usage: null,
        ending: "open"
      })
      const exchange = Exchange.make(incoming, response, (status) => run.amend(request.seq, { status }))
      return exchange.during(answer(exchange, request)).pipe(
        Effect.onInterrupt(() => Effect.sync(() => run.amend(request.seq, { ending: "server_closed" }))),
        Effect.map((ending) => run.amend(request.seq, { ending }))
      )
    })

  const answerModel = Effect.fnUntraced(function*(
    exchange: Exchange.Exchange,
    run: RunRecord.RunRecord,
    wire: ModelWire.ModelWire,
    request: Request,
    answer: ModelReply.Answer
  ): Effect.fn.Return<Exchange.Ending> {
    const id = `${nonce}${(answers++).toString(36).padStart(4, "0")}`
    const idHeaders = { "request-id": `req_${id}`, "x-request-id": `req_${id}` }
    if (answer.type === "reset") return yield* exchange.reset
    if (answer.type === "failure") return yield* refuse(exchange, wire, answer.failure, idHeaders)

    const { reply, halt } = answer
    const usage = ModelReply.usageOf(request, reply)
    const head: ModelWire.Head = {
      id,
      model: request.model ?? models[0] ?? "scripted-model",
      createdSeconds: Math.floor((yield* Clock.currentTimeMillis) / 1000),
      usage
    }
    const billed = <A>(ending: A): A => {
      run.amend(request.seq, { usage })
      return ending
    }
    if (answer.gated) yield* run.passGate
    if (request.stream !== true) return yield* answerWhole(exchange, run, wire, reply, head, halt).pipe(Effect.map(billed))

    yield* exchange.open(200, { ...idHeaders, "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" })
    let sent = 0
    let words = 0
    let halted = halt === null
    for (const frame of wire.frames(reply, head)) {
      if (!halted && halt !== null && (frame.mark === "closing" || (frame.mark === "word" && words >= halt.words))) {
        halted = true
        switch (halt.act) {
          case "hang":
            return yield* Effect.never
          case "wait":
            yield* run.passGate
            break
          case "cut":
            return yield* exchange.cut
          case "bad_json":
            return yield* exchange.end(wire.tornFrame)
          case "error":
            return yield* exchange.end(wire.failureFrame(head, sent))
        }
      }
      yield* exchange.write(frame.text)
      sent++
      if (frame.mark === "word") {
        words++
        if (answer.paceMillis > 0) yield* Effect.sleep(answer.paceMillis)
      }
    }
    billed(null)
    return yield* exchange.end()
  })

  const answerWhole = Effect.fnUntraced(function*(
    exchange: Exchange.Exchange,
    run: RunRecord.RunRecord,
    wire: ModelWire.ModelWire,
    reply: ModelReply.ModelReply,
    head: ModelWire.Head,
    halt: ModelReply.Halt | null
  ): Effect.fn.Return<Exchange.Ending> {
    const headers = { "request-id": `req_${head.id}`, "x-request-id": `req_${head.id}`, "content-type": "application/json" }
    const body = JSON.stringify(wire.whole(reply, head))
    const length = { "content-length": String(Buffer.byteLength(body)) }
    const half = body.slice(0, Math.floor(body.length / 2))
    switch (halt?.where === "any" ? halt.act : null) {
      case "hang":
        yield* exchange.open(200, headers)
        return yield* Effect.never
      case "wait":
        yield* exchange.open(200, headers)
        yield* run.passGate
        return yield* exchange.end(body)
      case "cut":
        yield* exchange.open(200, { ...headers, ...length })
        yield* exchange.write(half)
        return yield* exchange.cut
      case "bad_json":
        yield* exchange.open(200, headers)
        return yield* exchange.end(half)
      case "error":
        return yield* refuse(exchange, wire, { status: 529, reason: "status" }, headers)
      case null:
        yield* exchange.open(200, { ...headers, ...length })
        return yield* exchange.end(body)
    }
  })

  const refuse = (
    exchange: Exchange.Exchange,
    wire: ModelWire.ModelWire,
    failure: ModelReply.Failure,
    headers: Readonly<Record<string, string>>
  ): Effect.Effect<Exchange.Ending> =>
    exchange.json(
      failure.status,
      failure.retryAfterSeconds === undefined ? headers : { ...headers, "retry-after": String(failure.retryAfterSeconds) },
      wire.failure(failure, headers["request-id"] ?? "")
    )

  const modelEntry = (id: string) => ({
    id,
    type: "model",
    object: "model",
    display_name: id,
    created: 1_735_689_600,
    created_at: "2025-01-01T00:00:00Z",
    owned_by: "turnpike"
  })

  const listModels = (exchange: Exchange.Exchange, path: string): Effect.Effect<Exchange.Ending> => {
    const id = path.slice("/models/".length)
    if (id !== "") return exchange.json(200, {}, modelEntry(id))
    return exchange.json(200, {}, {
      object: "list",
      data: models.map(modelEntry),
      has_more: false,
      first_id: models[0] ?? null,
      last_id: models.at(-1) ?? null
    })
  }

  /** Answers a request of a run. */
  const handleRun = Effect.fnUntraced(function*(
    target: Target,
    scenario: ModelScenario.ModelScenario,
    incoming: IncomingMessage,
    response: ServerResponse
  ): Effect.fn.Return<void> {
    const method = incoming.method ?? "GET"
    const run = runOf(target.runId)
    const wire = wires.find(([path]) => target.path === path || target.path === `${path}/count_tokens`)?.[1]
    const isCount = target.path === "/messages/count_tokens"
    const generates = method === "POST" && wire !== undefined && (isCount || wires.some(([path]) => path === target.path))
    const isModels = method === "GET" && (target.path === "/models" || target.path.startsWith("/models/"))
    const isProbe = (method === "GET" || method === "HEAD") && target.path === ""
    const text = yield* Effect.result(RequestBody.text(incoming, maxBodyBytes))
    const sent = sentBy(incoming, target.recorded, Result.getOrElse(text, () => ""))
    const about = {
      scenario: target.scenario,
      sent,
      wire: wire?.name ?? null,
      reading: null
    }
    if (isProbe) {
      return yield* recorded(run, incoming, response, { ...about, operation: "probe" }, (exchange) => exchange.text(200, ""))
    }
    if (isModels) {
      return yield* recorded(
        run,
        incoming,
        response,
        { ...about, operation: "list_models" },
        (exchange) => listModels(exchange, target.path)
      )
    }
    if (!generates || wire === undefined) {
      return yield* recorded(
        run,
        incoming,
        response,
        { ...about, operation: "unknown" },
        (exchange) => exchange.json(404, doNotRetry, mistake(`there is no ${method} ${target.recorded} here`))
      )
    }
    const operation = isCount ? "count_tokens" : "generate"
    const malformed = (status: number, message: string) =>
      recorded(
        run,
        incoming,
        response,
        { ...about, operation },
        (exchange) =>
          exchange.json(status, doNotRetry, wire.failure({ status, reason: "malformed", message }, `req_${nonce}`))
      )
    if (Result.isFailure(text)) return yield* malformed(text.failure.status, text.failure.message)
    const json = parseJson(sent.body)
    if (Result.isFailure(json)) return yield* malformed(400, `the body is not JSON: ${json.failure}`)
    const reading = (isCount ? AnthropicMessagesWire.readCount : wire.read)(json.success)
    if (Result.isFailure(reading)) return yield* malformed(400, reading.failure.replace(/\s*\n\s*/g, " "))
    return yield* recorded(
      run,
      incoming,
      response,
      { ...about, operation, reading: reading.success },
      (exchange, request) => {
        if (isCount) return exchange.json(200, {}, { input_tokens: ModelReply.inputTokens(request) })
        const answer = ModelReply.plan(scenario, request, run.countAnswer())
        return answerModel(exchange, run, wire, request, answer)
      }
    )
  })

  const handleControl = (path: string, incoming: IncomingMessage, exchange: Exchange.Exchange): Effect.Effect<Exchange.Ending> => {
    const method = incoming.method ?? "GET"
    if (method === "GET" && path === "/control/strays") return exchange.json(200, {}, { requests: strays.requests() })
    if (method === "GET" && path === "/control/runs") return exchange.json(200, {}, { runs: [...runs.keys()] })
    const [, runId = "", verb] = /^\/control\/runs\/([A-Za-z0-9_-]{1,128})(?:\/(requests|release))?$/.exec(path) ?? []
    if (runId !== "" && method === "GET" && verb === "requests") {
      return exchange.json(200, {}, { run_id: runId, requests: runs.get(runId)?.requests() ?? [] })
    }
    if (runId !== "" && method === "POST" && verb === "release") {
      runOf(runId).release()
      return exchange.json(200, {}, { run_id: runId, released: true })
    }
    if (runId !== "" && method === "DELETE" && verb === undefined) {
      return exchange.json(200, {}, { run_id: runId, forgotten: runs.delete(runId) })
    }
    return exchange.json(404, {}, mistake(`there is no ${method} ${path} here`))
  }

  const handle = Effect.fnUntraced(function*(incoming: IncomingMessage, response: ServerResponse): Effect.fn.Return<void> {
    const url = incoming.url ?? "/"
    const path = url.split("?")[0] ?? ""
    const plain = () => Exchange.make(incoming, response, () => {})
    if (path.startsWith("/control/")) {
      const exchange = plain()
      yield* exchange.during(handleControl(path, incoming, exchange))
      return
    }
    if ((incoming.method === "GET" || incoming.method === "HEAD") && path === "/") {
      const exchange = plain()
      yield* exchange.during(exchange.text(200, helpText(`http://127.0.0.1:${incoming.socket.localPort ?? port}`)))
      return
    }
    const target = targetOf(url)
    if (target !== null && runIdPattern.test(target.runId)) {
      const scenario = ModelScenario.decode(target.scenario)
      if (Result.isSuccess(scenario)) return yield* handleRun(target, scenario.success, incoming, response)
      return yield* recorded(
        runOf(target.runId),
        incoming,
        response,
        { scenario: target.scenario, operation: "unknown", wire: null, sent: sentBy(incoming, target.recorded, ""), reading: null },
        (exchange) => exchange.json(400, doNotRetry, mistake(scenario.failure.message))
      )
    }
    const isProxied = !url.startsWith("/")
    const problem = isProxied
      ? `this is no proxy; ${url} stays out of reach`
      : target !== null
      ? `the run id "${target.runId}" is not 1 to 128 letters, digits, "_" and "-"`
      : `${path} is below no run; a base URL is /s/<scenario>/<run id>, and GET / lists the scenarios`
    return yield* recorded(
      strays,
      incoming,
      response,
      { scenario: null, operation: "unknown", wire: null, sent: sentBy(incoming, url, ""), reading: null },
      (exchange) => exchange.json(isProxied ? 403 : target === null ? 404 : 400, doNotRetry, mistake(problem))
    )
  })

  const server = yield* Effect.acquireRelease(listen(port), close)
  // Made after the server, so ended before it: what is still open is known to have been closed from this side.
  const runFork = yield* FiberSet.makeRuntime<never, void, never>()
  server.on("request", (incoming, response) => {
    runFork(handle(incoming, response))
  })
  server.on("connect", (incoming: IncomingMessage, socket) => {
    const sent = sentBy(incoming, incoming.url ?? "", "")
    strays.record({
      method: "CONNECT",
      path: sent.path,
      operation: "unknown",
      wire: null,
      scenario: null,
      headers: sent.headers,
      model: null,
      stream: null,
      system: "",
      messages: [],
      prompts: [],
      tools: [],
      body: "",
      status: 403,
      usage: null,
      ending: "complete"
    })
    socket.on("error", () => {})
    socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
  })
  const address = server.address()
  const boundPort = address !== null && typeof address === "object" ? address.port : port
  const url = `http://127.0.0.1:${boundPort}`

  return ModelServer.of({
    url,
    port: boundPort,
    baseUrl: (scenario, runId) => `${url}/s/${ModelScenario.encode(scenario)}/${encodeURIComponent(runId)}`,
    requests: (runId) => Effect.sync(() => runs.get(runId)?.requests() ?? []),
    waitForRequest: (runId, predicate = () => true) => Effect.suspend(() => runOf(runId).waitFor(predicate)),
    release: (runId) => Effect.sync(() => runOf(runId).release()),
    forget: (runId) => Effect.sync(() => void runs.delete(runId)),
    strays: Effect.sync(() => strays.requests())
  })
})

/** A server for as long as the layer lives. */
export const layer = (options: Options = {}): Layer.Layer<ModelServer, ListenFailed> =>
  Layer.effect(ModelServer, make(options))

const listen = (port: number): Effect.Effect<Server, ListenFailed> =>
  Effect.callback((resume) => {
    // A client may keep a connection for as long as it likes: an idle one closed under it looks like a fault of the script.
    const server = createServer({ keepAliveTimeout: 3_600_000, requestTimeout: 0 })
    const failed = (cause: Error) => resume(Effect.fail(new ListenFailed({ port, cause })))
    server.once("error", failed)
    server.listen(port, "127.0.0.1", () => {
      server.off("error", failed)
      resume(Effect.succeed(server))
    })
  })

const close = (server: Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })
