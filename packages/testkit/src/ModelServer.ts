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
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as AnthropicMessagesWire from "./AnthropicMessagesWire.ts"
import * as Answer from "./internal/answer.ts"
import * as Exchange from "./internal/exchange.ts"
import * as RequestBody from "./internal/requestBody.ts"
import * as Route from "./internal/route.ts"
import * as RunRecord from "./internal/runRecord.ts"
import * as ModelReply from "./ModelReply.ts"
import * as ModelRequest from "./ModelRequest.ts"
import * as ModelScenario from "./ModelScenario.ts"
import type * as ModelWire from "./ModelWire.ts"

type Request = ModelRequest.ModelRequest

/** The server could not listen: the port is taken, may not be had, or is none. */
export class ListenFailed extends Schema.TaggedError<ListenFailed>()("ListenFailed", {
  port: Schema.Number,
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
  /**
   * What a client is given. A run id is 1 to 128 letters, digits, `_` and `-`;
   * another is answered with 400. Throws a `BadScenario` for a scenario that is none.
   */
  readonly baseUrl: (scenario: ModelScenario.ModelScenario, runId: string) => string
  /** The run's requests so far, in the order of `seq`; none for a run that nobody has used. */
  readonly requests: (runId: string) => Effect.Effect<ReadonlyArray<Request>>
  /**
   * Completes with the first request of the run that satisfies the predicate
   * (default: any), whether it is recorded already or yet to come. It looks again
   * whenever a request is amended, so a predicate can ask for an `ending`. Dies of
   * what the predicate throws.
   */
  readonly waitForRequest: (runId: string, predicate?: (request: Request) => boolean) => Effect.Effect<Request>
  /** Lets one waiting request of the run pass: the one that waits longest, else the next that comes. */
  readonly release: (runId: string) => Effect.Effect<void>
  /**
   * Drops the run: its requests, its counts, and releases that nothing has used.
   * Requests that wait in it can no longer be released; their clients have to leave.
   */
  readonly forget: (runId: string) => Effect.Effect<void>
  /** Requests that belong to no run, proxy requests included. */
  readonly strays: Effect.Effect<ReadonlyArray<Request>>
}>()("@turnpike/testkit/ModelServer") {}

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

const headersOf = (request: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value ?? ""])
  )

/** What a client sent, without its credentials. */
const sentBy = (incoming: IncomingMessage, path: string, body: string): ModelRequest.Redacted =>
  ModelRequest.redact({ headers: headersOf(incoming), path, body })

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Reads a body. One that is nested too deeply for this process is as bad as one that is no JSON. */
const readBody = (read: ModelWire.ModelWire["read"], text: string, { redacted }: ModelRequest.Redacted): Result.Result<ModelWire.Reading, string> =>
  Result.flatMap(
    Result.mapError(Result.try((): unknown => JSON.parse(text)), (error) => `the body is not JSON: ${messageOf(error)}`),
    (json) =>
      Result.flatMap(
        Result.mapError(Result.try(() => read(redacted(json))), (error) => `the body cannot be read: ${messageOf(error)}`),
        Result.mapError((problem) => problem.replace(/\s*\n\s*/g, " "))
      )
  )

/** What is known of a request before it is answered. */
interface Known {
  readonly scenario: string | null
  readonly operation: ModelRequest.Operation
  readonly wire: ModelRequest.Wire | null
  readonly sent: ModelRequest.Redacted
  readonly reading?: ModelWire.Reading
}

const recordOf = (method: string, { operation, reading, scenario, sent, wire }: Known): Omit<Request, "seq"> => ({
  method,
  path: sent.path,
  operation,
  wire,
  scenario,
  headers: sent.headers,
  model: reading?.model ?? null,
  stream: reading?.stream ?? null,
  system: reading?.system ?? "",
  messages: reading?.messages ?? [],
  prompts: ModelRequest.promptsOf(reading?.messages ?? []),
  tools: reading?.tools ?? [],
  body: sent.body,
  status: null,
  usage: null,
  ending: "open"
})

const modelEntry = (id: string) => ({
  id,
  type: "model",
  object: "model",
  display_name: id,
  created: 1_735_689_600,
  created_at: "2025-01-01T00:00:00Z",
  owned_by: "turnpike"
})

const modelsAt = (path: string, models: ReadonlyArray<string>): unknown => {
  const id = path.slice("/models/".length)
  if (id !== "") return modelEntry(id)
  return {
    object: "list",
    data: models.map(modelEntry),
    has_more: false,
    first_id: models[0] ?? null,
    last_id: models.at(-1) ?? null
  }
}

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
    known: Known,
    answer: (exchange: Exchange.Exchange, request: Request) => Effect.Effect<Exchange.Ending>
  ): Effect.Effect<void> =>
    Effect.suspend(() => {
      const request = run.record(recordOf(incoming.method ?? "GET", known))
      const exchange = Exchange.make(incoming, response, (status) => run.amend(request.seq, { status }))
      return exchange.during(Effect.suspend(() => answer(exchange, request))).pipe(
        Effect.onExit((exit) =>
          Effect.sync(() =>
            run.amend(request.seq, {
              ending: Exit.isSuccess(exit) ? exit.value : Cause.hasInterruptsOnly(exit.cause) ? "server_closed" : "cut"
            })
          )
        ),
        Effect.asVoid
      )
    })

  /** Answers a request of a run. */
  const handleRun = Effect.fnUntraced(function*(
    { asks: { operation, wire }, path, recorded: asRecorded, runId, scenario: segment }: Extract<Route.Route, { readonly kind: "run" }>,
    incoming: IncomingMessage,
    response: ServerResponse
  ): Effect.fn.Return<void> {
    const run = runOf(runId)
    const body = yield* Effect.result(RequestBody.text(incoming, maxBodyBytes))
    const text = Result.getOrElse(body, () => "")
    const known = { scenario: segment, operation, wire: wire?.name ?? null, sent: sentBy(incoming, asRecorded, text) }
    const answer = (give: Parameters<typeof recorded>[4], reading?: ModelWire.Reading) =>
      recorded(run, incoming, response, reading === undefined ? known : { ...known, reading }, give)
    const scenario = ModelScenario.decode(segment)
    if (Result.isFailure(scenario)) {
      return yield* recorded(run, incoming, response, { ...known, operation: "unknown", wire: null }, (exchange) =>
        exchange.json(400, doNotRetry, mistake(scenario.failure.message)))
    }
    if (operation === "probe") return yield* answer((exchange) => exchange.text(200, ""))
    if (operation === "list_models") return yield* answer((exchange) => exchange.json(200, {}, modelsAt(path, models)))
    if (operation === "unknown" || wire === null) {
      return yield* answer((exchange) =>
        exchange.json(404, doNotRetry, mistake(`there is no ${incoming.method ?? "GET"} ${asRecorded} here`)))
    }
    const malformed = (status: number, message: string) =>
      answer((exchange) => exchange.json(status, doNotRetry, wire.failure({ status, reason: "malformed", message }, `req_${nonce}`)))
    if (Result.isFailure(body)) return yield* malformed(body.failure.status, body.failure.message)
    const reading = readBody(operation === "count_tokens" ? AnthropicMessagesWire.readCount : wire.read, text, known.sent)
    if (Result.isFailure(reading)) return yield* malformed(400, reading.failure)
    if (operation === "count_tokens") {
      return yield* answer(
        (exchange, request) => exchange.json(200, {}, { input_tokens: ModelReply.inputTokens(request) }),
        reading.success
      )
    }
    return yield* answer((exchange, request) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const plan = ModelReply.plan(scenario.success, request, run.countAnswer())
        const usage = plan.type === "reply" ? ModelReply.usageOf(request, plan.reply) : ModelReply.nothingUsed
        return Answer.give({
          exchange,
          wire,
          head: {
            id: `${nonce}${(answers++).toString(36).padStart(4, "0")}`,
            model: reading.success.model,
            createdSeconds: Math.floor(now / 1000),
            usage
          },
          streams: reading.success.stream,
          passGate: run.passGate,
          billed: Effect.sync(() => run.amend(request.seq, { usage }))
        }, plan)
      }), reading.success)
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
    const target = incoming.url ?? "/"
    const route = Route.of(incoming.method ?? "GET", target)
    const plain = (answer: (exchange: Exchange.Exchange) => Effect.Effect<Exchange.Ending>) => {
      const exchange = Exchange.make(incoming, response, () => {})
      return Effect.asVoid(exchange.during(Effect.suspend(() => answer(exchange))))
    }
    switch (route.kind) {
      case "control":
        return yield* plain((exchange) => handleControl(route.path, incoming, exchange))
      case "help":
        return yield* plain((exchange) => exchange.text(200, helpText(`http://127.0.0.1:${incoming.socket.localPort ?? port}`)))
      case "run":
        return yield* handleRun(route, incoming, response)
      case "stray": {
        const text = yield* Effect.result(RequestBody.text(incoming, maxBodyBytes))
        const sent = sentBy(incoming, target, Result.getOrElse(text, () => ""))
        return yield* recorded(strays, incoming, response, { scenario: null, operation: "unknown", wire: null, sent }, (exchange) =>
          exchange.json(route.status, doNotRetry, mistake(route.problem)))
      }
    }
  })

  const server = yield* Effect.acquireRelease(listen(port), close)
  // Made after the server, so ended before it: what is still open is known to have been closed from this side.
  const runFork = yield* FiberSet.makeRuntime<never, void, never>()
  server.on("request", (incoming, response) => {
    runFork(
      Effect.catchDefect(handle(incoming, response), (defect) =>
        // A client whose answer never comes would tell nobody that this server is wrong.
        Effect.sync(() => {
          if (response.headersSent) {
            response.destroy()
            return
          }
          response.writeHead(500, { ...doNotRetry, "content-type": "application/json" })
          response.end(JSON.stringify(mistake(`the scripted model server failed: ${messageOf(defect)}`)))
        }))
    )
  })
  server.on("connect", (incoming: IncomingMessage, socket) => {
    const { seq } = strays.record(
      recordOf("CONNECT", { scenario: null, operation: "unknown", wire: null, sent: sentBy(incoming, incoming.url ?? "", "") })
    )
    strays.amend(seq, { status: 403, ending: "complete" })
    socket.on("error", () => {})
    // The HTTP server no longer counts this connection among those that it can close, and would wait for it.
    socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", () => socket.destroy())
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
    const failed = (cause: unknown) => resume(Effect.fail(new ListenFailed({ port, cause })))
    server.once("error", failed)
    try {
      server.listen(port, "127.0.0.1", () => {
        server.off("error", failed)
        resume(Effect.succeed(server))
      })
    } catch (cause) {
      failed(cause)
    }
  })

const close = (server: Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })
