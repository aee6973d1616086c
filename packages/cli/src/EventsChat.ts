/**
 * A conversation between programs: one prompt a line in, the events of one run
 * for each out.
 *
 * Every line gets exactly one result, in order, also one that is no prompt. A
 * run that fails does not end the conversation; a reader that goes away does.
 */
import { type AgentRunResult, Failure, Usage, Verdict } from "@turnpike/contract"
import { LineInput, type Outlet, PromptLine } from "@turnpike/channel-terminal"
import { type ChannelError, Conversation, type Harness, type RunPreparation, RunStream } from "@turnpike/kernel"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import * as Composition from "./Composition.ts"
import { graceMillis } from "./RunCommand.ts"
import { fromFailure, refuse, type Refusal } from "./Refusal.ts"
import type * as Signals from "./Signals.ts"

export interface Options {
  readonly prepared: RunPreparation.Prepared
  readonly session: Harness.HarnessSession
  readonly out: Outlet.Outlet
  readonly version: string
  readonly signals: Signals.Signals
}

/** The run of a line that could not become a turn: nothing was started. */
const refused = (options: Options, sink: RunStream.Sink, error: Failure.Failure): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { harness, options: { cwd, sessionId } } = options.prepared
    const verdict: Verdict.Verdict = { type: "error", error }
    const { reason, success } = Verdict.consequences(verdict)
    const outcome = { success, summary: error.message }
    const stream = RunStream.make({
      runId: randomUUID(),
      sink,
      opening: { sessionId, harness: harness.name, turnpikeVersion: options.version, cwd, capabilities: harness.capabilities, turn: 1 },
      lost: () => Effect.void
    })
    const result: AgentRunResult.AgentRunResult = {
      result: outcome,
      reason,
      verdict,
      session: { id: sessionId, harness: harness.name, turn: 0 },
      usage: Usage.unavailable,
      denials: [],
      background_killed: [],
      killed: [],
      survivors: [],
      error,
      session_log: [],
      output_artifacts: [],
      observability: null,
      duration_ms: 0
    }
    yield* stream.end(outcome, reason)
    yield* stream.result(result)
  })

const noPrompt = (message: string) =>
  Failure.make("INVALID_SPEC", message, { remedy: `Write one JSON object a line: ${PromptLine.example}` })

const takenBack = Failure.make("CANCELLED", "the prompt was taken back, or stopped, before its turn could begin", {
  remedy: "Give the prompt again."
})

/** What a line asks for. */
const promptOf = (line: Exclude<LineInput.Line, { readonly _tag: "End" }>): Result.Result<string, string> => {
  const why = (text: string) => `line ${line.number} of standard input ${text}`
  return line._tag === "Bad" ? Result.fail(why(line.why)) : Result.mapError(PromptLine.parse(line.text), why)
}

/** Runs the conversation to its end and returns the exit code. */
export const run = (options: Options): Effect.Effect<number, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const { out, prepared, signals } = options
    const left = yield* Deferred.make<number>()
    let hasFailed = false
    let lost: ChannelError.ChannelError | undefined
    const sink: RunStream.Sink = (event) =>
      Effect.tapError(out.write(`${JSON.stringify(event)}\n`), (error) =>
        Effect.sync(() => {
          lost = error
        }))

    const conversation = yield* Effect.mapError(
      Conversation.make({
        prepared,
        session: options.session,
        newRunId: randomUUID,
        turnpikeVersion: options.version,
        sink,
        deliver: "stream",
        grace: graceMillis,
        ended: (result) =>
          Effect.gen(function*() {
            hasFailed ||= !result.result.success
            if (!(yield* Deferred.isDone(left))) yield* signals.rearm
          })
      }),
      (error) => fromFailure(error.failure)
    )
    yield* signals.receiveBy((signal) =>
      Effect.gen(function*() {
        const request = yield* conversation.interrupt(signal)
        const isEnd = signal === "terminate" || request === undefined
        if (isEnd) yield* Deferred.succeed(left, signal === "terminate" ? 143 : 130)
        if (request !== undefined) {
          Composition.say(`turnpike: ${request.mode === "hard" ? "cutting the turn off" : "asking the agent to end its turn; interrupt again to cut it off"}`)
        }
        return { isHard: isEnd || request.mode === "hard" }
      })
    )

    const input = LineInput.make(process.stdin)
    const answer = (line: Exclude<LineInput.Line, { readonly _tag: "End" }>) =>
      Effect.gen(function*() {
        const prompt = promptOf(line)
        const failure = Result.isFailure(prompt) ? noPrompt(prompt.failure) : yield* Effect.match(conversation.ask(prompt.success), {
          onFailure: (error) => error.failure,
          onSuccess: (result) => result === undefined ? takenBack : undefined
        })
        if (failure === undefined) return
        hasFailed = true
        // One run after the other, also where somebody else gave the one before.
        yield* conversation.whenIdle
        yield* refused(options, sink, failure)
      })

    const talk = Effect.gen(function*() {
      while (true) {
        // Asked first: an input that has ended must not hide that somebody ended the conversation.
        if (yield* Deferred.isDone(left)) return yield* Deferred.await(left)
        const line: LineInput.Line | number = yield* Effect.raceFirst(input.next, Deferred.await(left)).pipe(
          Effect.mapError((error) => refuse("CHANNEL_LOST", error.message))
        )
        if (typeof line === "number") return line
        if (line._tag === "End") {
          // What others gave is told to its end, too.
          yield* Effect.raceFirst(conversation.whenIdle, Effect.asVoid(Deferred.await(left)))
          if (yield* Deferred.isDone(left)) continue
          return hasFailed ? 3 : 0
        }
        yield* answer(line)
        if (lost !== undefined) return 3
      }
    })
    const code = yield* talk
    // What was written last may wait for its reader yet.
    if (lost === undefined) lost = yield* Effect.match(out.flush, { onFailure: (error) => error, onSuccess: () => undefined })
    if (lost === undefined) return code
    Composition.tell(refuse("OUTPUT_CLOSED", `${Composition.detail(lost)} before everything was told`))
    return code === 0 ? 1 : code
  })
