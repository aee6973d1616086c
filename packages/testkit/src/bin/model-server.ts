#!/usr/bin/env node
/**
 * `turnpike-model-server`: the scripted model server for a shell.
 *
 * Prints its URL as the only line on stdout and serves until it is interrupted.
 * Exit codes: 0 stopped by a signal, 1 could not listen, 2 usage error.
 */
import { parseArgs } from "node:util"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as ModelServer from "../ModelServer.ts"

const usage = `Usage: turnpike-model-server [--port N] [--model ID]...

Serves a scripted model on 127.0.0.1 until it is interrupted.

  --port N     port to listen on; 0 (default) takes any free one
  --model ID   an id for the list of models; may be repeated (default: scripted-model)
  --help       print this
`

const help = `${usage}
Give a client the base URL  http://127.0.0.1:PORT/s/<scenario>/<run id>  for Anthropic
Messages, OpenAI Responses or OpenAI Chat Completions. A run id is up to 128 letters,
digits, _ and -. Parameters of a scenario follow it after commas, percent-encoded.

Scenarios:
${ModelServer.scenarioLines().join("\n")}

What a run has sent:     curl http://127.0.0.1:PORT/control/runs/<run id>/requests
Let a wait go on:        curl -X POST http://127.0.0.1:PORT/control/runs/<run id>/release

Example:
  turnpike-model-server --port 8787 &
  ANTHROPIC_BASE_URL=http://127.0.0.1:8787/s/text/demo ANTHROPIC_API_KEY=none claude -p hello
`

const parse = (): Result.Result<{ readonly help: boolean; readonly options: ModelServer.Options }, string> => {
  const parsed = Result.try(() =>
    parseArgs({
      options: {
        port: { type: "string" },
        model: { type: "string", multiple: true },
        help: { type: "boolean", short: "h" }
      }
    }).values
  )
  if (Result.isFailure(parsed)) {
    return Result.fail(parsed.failure instanceof Error ? parsed.failure.message : String(parsed.failure))
  }
  const { port, model, help } = parsed.success
  if (port !== undefined && !(/^[0-9]{1,5}$/.test(port) && Number(port) <= 65_535)) {
    return Result.fail(`--port takes a number from 0 to 65535, not "${port}"`)
  }
  if (model?.includes("") === true) return Result.fail("--model takes an id, not an empty text")
  return Result.succeed({
    help: help === true,
    options: { ...(port === undefined ? {} : { port: Number(port) }), ...(model === undefined ? {} : { models: model }) }
  })
}

const serve = (options: ModelServer.Options) => {
  const fiber = Effect.runFork(
    Effect.scoped(
      Effect.gen(function*() {
        const server = yield* ModelServer.make(options)
        process.stdout.write(`${server.url}\n`)
        return yield* Effect.never
      })
    )
  )
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void Effect.runFork(Fiber.interrupt(fiber)))
  }
  fiber.addObserver((exit) => {
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) {
      const failure = Cause.squash(exit.cause)
      process.stderr.write(`turnpike-model-server: ${failure instanceof Error ? failure.message : String(failure)}\n`)
      process.exitCode = 1
    }
  })
}

const request = parse()
if (Result.isFailure(request)) {
  process.stderr.write(`turnpike-model-server: ${request.failure}\n\n${usage}`)
  process.exitCode = 2
} else if (request.success.help) process.stdout.write(help)
else serve(request.success.options)
