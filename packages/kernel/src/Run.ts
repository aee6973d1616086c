/**
 * One task on one harness: a stream of events and one result.
 *
 * The phases are provision, launch, submit, await and capture. However they go,
 * the run ends in one place: one verdict, the session closed once, one
 * `session_end`, one result. An interrupted caller goes through there too.
 */
import {
  type AgentRunResult,
  Failure,
  type Scalars,
  type TurnEvent,
  Usage,
  Verdict
} from "@turnpike/contract"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as AgentSession from "./AgentSession.ts"
import type * as Cancel from "./Cancel.ts"
import * as Harness from "./Harness.ts"
import * as Judge from "./Judge.ts"
import * as Prompt from "./Prompt.ts"
import * as RunEvidence from "./RunEvidence.ts"
import * as RunLog from "./RunLog.ts"
import type { Prepared } from "./RunPreparation.ts"
import * as RunStream from "./RunStream.ts"

export interface ExecuteOptions {
  readonly runId: Scalars.RunId
  readonly turnpikeVersion: string
  readonly sink: RunStream.Sink
  readonly cancel: Cancel.CancelToken
  /** Whether the result is the stream's last event or delivered by the caller. */
  readonly deliver: "stream" | "caller"
  /** How long a turn that was asked to end may take before it is cut off. */
  readonly grace: Duration.Input
  /** An open session to use and to leave open. Absent: the run opens one and closes it. */
  readonly keep?: Harness.HarnessSession
}

const Stopped = Symbol("the run is to end")
type Stopped = typeof Stopped

interface Failing {
  readonly failure: Failure.Failure
}

/** The failure of a step; a defect is a bug of ours and says so. */
const failureOf = (cause: Cause.Cause<Failing>): Failure.Failure =>
  Option.getOrElse(
    Option.map(Cause.findErrorOption(cause), (error) => error.failure),
    () => Failure.make("INTERNAL", `a bug ended the run: ${Cause.pretty(cause)}`)
  )

/**
 * Runs a prepared task. It does not fail: what goes wrong is in the result.
 * When the caller is interrupted the run is cut off and told to its end, and
 * then the interruption goes on.
 */
export const execute = (prepared: Prepared, options: ExecuteOptions): Effect.Effect<AgentRunResult.AgentRunResult> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const { harness, lease, options: sessionOptions, spec } = prepared
      const { cancel } = options
      const started = yield* Clock.currentTimeMillis
      const known = Option.getOrUndefined(lease.binding)
      const turn = (known?.turns ?? 0) + 1
      const prompt = Prompt.fromText(spec.task)
      const scope = yield* Scope.make()
      const log = RunLog.make()
      const evidence = RunEvidence.make(sessionOptions.redact)
      let bound: TurnEvent.Of<"session/bound">["data"] | undefined
      let persisted = known?.persisted ?? false
      let began = false
      let callerInterrupted = false

      const stop = (request: Cancel.Request) =>
        Effect.andThen(Effect.sync(evidence.stopAsked), cancel.request(request))

      const stream = RunStream.make({
        runId: options.runId,
        sink: options.sink,
        opening: {
          sessionId: sessionOptions.sessionId,
          harness: harness.name,
          turnpikeVersion: options.turnpikeVersion,
          cwd: sessionOptions.cwd,
          capabilities: harness.capabilities,
          turn
        },
        lost: () => stop({ cause: "channel_lost", mode: "hard" })
      })

      const save = Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const harnessSessionId = bound?.harness_session_id ?? known?.harness_session_id
        return lease.save({
          session_id: sessionOptions.sessionId,
          harness: harness.name,
          ...(harnessSessionId === undefined ? {} : { harness_session_id: harnessSessionId }),
          persisted,
          cwd: sessionOptions.cwd,
          turns: began ? turn : turn - 1,
          created_at: known?.created_at ?? now,
          updated_at: now
        })
      }).pipe(Effect.catch((error) => Effect.sync(() => evidence.fail(error.failure))))

      /** Runs a step unless the run is to end; an interruption of the caller is a hard request. */
      const unless = <A, E>(request: Effect.Effect<Cancel.Request>, step: Effect.Effect<A, E>): Effect.Effect<A | Stopped, E> =>
        Effect.gen(function*() {
          const exit = yield* Effect.exit(
            restore(Effect.raceFirst(step, Effect.as(request, Stopped as Stopped)))
          )
          if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) {
            callerInterrupted = true
            yield* stop({ cause: "disposed", mode: "hard" })
            return Stopped
          }
          return yield* exit
        })

      /** Brackets a step by its phase's two events. A failure is remembered and told; it goes no further. */
      const phase = <A>(name: RunStream.Phase, step: Effect.Effect<A | Stopped, Failing>): Effect.Effect<A | Stopped> =>
        Effect.gen(function*() {
          yield* stream.phaseStart(name)
          const exit = yield* Effect.exit(step)
          if (Exit.isFailure(exit)) evidence.fail(failureOf(exit.cause))
          const problem = Exit.isFailure(exit) ? evidence.failure()?.message : exit.value === Stopped ? "stopped" : undefined
          yield* stream.phaseEnd(name, problem)
          return Exit.isFailure(exit) ? Stopped : exit.value
        })

      const observe = (event: TurnEvent.TurnEvent): Effect.Effect<void> =>
        Effect.gen(function*() {
          evidence.see(event)
          const rebound = event.type === "session/bound" && event.data.harness_session_id !== bound?.harness_session_id
          if (event.type === "session/bound") bound = event.data
          // A harness that has answered has written its session; before that a resumption may find nothing.
          const written = !persisted && bound !== undefined &&
            (event.type === "assistant/message" || event.type === "harness/end")
          persisted ||= written
          if (rebound || written) yield* save
          yield* log.append(event)
          yield* stream.turnEvent(event)
        })

      const open: Effect.Effect<Harness.HarnessSession | Stopped> = Effect.gen(function*() {
        if (options.keep !== undefined) return options.keep
        yield* phase("provision", unless(cancel.graceful, save))
        if (evidence.failure() !== undefined || evidence.isStopAsked()) return Stopped
        return yield* phase("launch", unless(cancel.graceful, Scope.provide(harness.open(sessionOptions), scope)))
      })

      /** Leaves the turn to its natural end. Once asked to end it has the grace, then it is cut off. */
      const runTurn = (session: Harness.HarnessSession): Effect.Effect<void> =>
        Effect.gen(function*() {
          let heard = false
          const fiber = yield* Effect.forkIn(
            Stream.runForEach(AgentSession.oneEnding(session.runTurn(prompt)), (event) =>
              Effect.gen(function*() {
                if (!heard) {
                  heard = true
                  yield* stream.phaseEnd("submit")
                  yield* stream.open(event.type === "session/bound" ? event.data : undefined)
                  yield* stream.phaseStart("await")
                }
                yield* observe(event)
              })),
            scope,
            { startImmediately: true, uninterruptible: false }
          )
          const asking = yield* Effect.forkIn(
            Effect.gen(function*() {
              const request = yield* cancel.graceful
              yield* Effect.forkIn(session.interrupt, scope, { startImmediately: true })
              yield* Effect.sleep(options.grace)
              yield* stop({ cause: request.cause, mode: "hard" })
            }),
            scope,
            { startImmediately: true, uninterruptible: false }
          )
          const exit = yield* unless(cancel.hard, Fiber.await(fiber))
          yield* Fiber.interrupt(asking)
          if (exit === Stopped) {
            evidence.cutOff()
            yield* Fiber.interrupt(fiber)
          } else if (Exit.isFailure(exit)) {
            if (Cause.hasInterruptsOnly(exit.cause)) evidence.cutOff()
            else evidence.fail(failureOf(exit.cause))
          }
          const problem = evidence.failure()?.message ?? (evidence.isCutOff() ? "cut off" : undefined)
          yield* stream.phaseEnd(heard ? "await" : "submit", problem)
          if (!heard) yield* stream.open()
        })

      // The first request, whoever makes it, is the moment after which nothing is a cause.
      yield* Effect.forkIn(Effect.tap(cancel.graceful, () => Effect.sync(evidence.stopAsked)), scope, {
        startImmediately: true,
        uninterruptible: false
      })
      const timeoutSeconds = spec.limits?.timeout_s ?? undefined
      if (timeoutSeconds !== undefined) {
        yield* Effect.forkIn(
          Effect.delay(stop({ cause: "timeout", mode: "graceful" }), timeoutSeconds * 1000),
          scope,
          { startImmediately: true, uninterruptible: false }
        )
      }

      const session = yield* open
      let report = Harness.nothingFound
      if (session !== Stopped) {
        began = true
        yield* save
        yield* log.begin(turn, prompt)
        yield* stream.phaseStart("submit")
        yield* runTurn(session)
        yield* stream.phaseStart("capture")
        if (options.keep === undefined) {
          if (evidence.endedByItself() && !evidence.isStopAsked() && spec.background !== "kill") {
            yield* unless(cancel.graceful, session.backgroundDone)
          }
          report = yield* session.close
        }
        yield* stream.phaseEnd("capture", report.problems.length === 0 ? undefined : report.problems.join("; "))
      }
      yield* Scope.close(scope, Exit.void)
      yield* save

      // From here on nothing can change the verdict.
      const verdict = Judge.judge(
        evidence.forJudge(yield* cancel.requests, spec.background === "kill" ? [] : report.backgroundKilled)
      )
      const { reason, success } = Verdict.consequences(verdict)
      const error = Verdict.failureOf(verdict)
      const outcome = { success, summary: error === undefined ? evidence.output().text : error.message }
      for (const problem of report.problems) {
        yield* stream.notice("teardown_failed", sessionOptions.redact(problem))
      }
      yield* log.close(verdict)
      yield* stream.close(verdict)
      yield* stream.end(outcome, reason)
      const ended = yield* Clock.currentTimeMillis
      const harnessSessionId = bound?.harness_session_id
      const result: AgentRunResult.AgentRunResult = {
        result: outcome,
        reason,
        verdict,
        session: {
          id: sessionOptions.sessionId,
          harness: harness.name,
          ...(harnessSessionId === undefined ? {} : { harness_session_id: harnessSessionId }),
          resumed: bound?.resumed ?? false,
          turn: began ? turn : 0
        },
        usage: began ? evidence.output().usage : Usage.unavailable,
        denials: evidence.denials(),
        background_killed: report.backgroundKilled,
        killed: report.killed,
        survivors: report.survivors,
        error: error ?? null,
        session_log: yield* log.entries,
        output_artifacts: [],
        observability: null,
        duration_ms: Math.max(0, Math.round(ended - started))
      }
      if (options.deliver === "stream") yield* stream.result(result)
      if (callerInterrupted) return yield* Effect.interrupt
      return result
    })
  ).pipe(Effect.withSpan("Run.execute"))
