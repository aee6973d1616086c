/**
 * One task on one harness: a stream of events and one result.
 *
 * The phases are provision, launch, submit, await and capture. However they go,
 * the run ends in one place: one verdict, the session closed once, one
 * `session_end`, one result. An interrupted caller goes through there too.
 */
import { type AgentRunResult, Failure, type Scalars, TurnEvent, Usage, Verdict } from "@turnpike/contract"
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
import type * as ChannelError from "./ChannelError.ts"
import * as Harness from "./Harness.ts"
import * as EventText from "./internal/eventText.ts"
import * as OwnTurn from "./internal/ownTurn.ts"
import * as TurnShape from "./internal/turnShape.ts"
import * as Judge from "./Judge.ts"
import type * as Prompt from "./Prompt.ts"
import * as RunEvidence from "./RunEvidence.ts"
import type * as Redaction from "./Redaction.ts"
import type { Prepared } from "./RunPreparation.ts"
import * as RunStream from "./RunStream.ts"
import type { TurnError } from "./TurnError.ts"
import * as TurnLog from "./TurnLog.ts"
import * as TurnRecord from "./TurnRecord.ts"

export interface ExecuteOptions {
  readonly runId: Scalars.RunId
  readonly turnpikeVersion: string
  readonly sink: RunStream.Sink
  readonly cancel: Cancel.CancelToken
  /** Whether the result is the stream's last event or delivered by the caller. */
  readonly deliver: "stream" | "caller"
  /** How long a turn that was asked to end may take before it is cut off. */
  readonly grace: Duration.Input
  /**
   * How long the sink may take for one event once a hard request was made; then
   * its reader counts as gone. Absent: 5 seconds. Before that a reader may take
   * all the time; it holds the harness back.
   */
  readonly readerGrace?: Duration.Input
  /** An open session to use and to leave open. Absent: the run opens one and closes it. */
  readonly keep?: KeptSession
  /** The turn, where somebody else opens and closes it. Absent: the run does, with the task as its prompt. */
  readonly turn?: TurnLog.TurnLog
  /** What the turn consists of, where the harness began it by itself. Absent: the session is prompted. */
  readonly events?: Stream.Stream<TurnEvent.TurnEvent, TurnError>
}

/**
 * An open session that several runs use, one after the other. A harness says who
 * it is once; what it said last is kept here, so that each run can tell it.
 */
export interface KeptSession {
  readonly session: Harness.HarnessSession
  /** Undefined until the harness has said it. */
  bound: TurnEvent.Of<"session/bound">["data"] | undefined
}

/** Keeps a session that the caller opened and will close. */
export const keep = (session: Harness.HarnessSession): KeptSession => ({ session, bound: undefined })

const defaultReaderGrace: Duration.Input = "5 seconds"

const Stopped = Symbol("the run is to end")
type Stopped = typeof Stopped

interface Failing {
  readonly failure: Failure.Failure
}

/** The failure of a step; a defect is a bug of ours or of the harness's adapter, and says so. */
const failureOf = (cause: Cause.Cause<Failing>): Failure.Failure =>
  Option.getOrElse(
    Option.map(Cause.findErrorOption(cause), (error) => error.failure),
    () =>
      Failure.make(
        "INTERNAL",
        Cause.hasInterruptsOnly(cause) ? "a part of the run ended itself" : `a bug ended the run: ${Cause.pretty(cause)}`
      )
  )

/**
 * Runs a prepared task. It does not fail: what goes wrong is in the result.
 * When the caller is interrupted the run is cut off and told to its end, and
 * then the interruption goes on. A sink that fails at `session_end` or later
 * changes nothing any more; its owner knows.
 */
export const execute = (prepared: Prepared, options: ExecuteOptions): Effect.Effect<AgentRunResult.AgentRunResult> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const { harness, log, options: sessionOptions, record, spec, store } = prepared
      const { cancel } = options
      const { redact } = sessionOptions
      const started = yield* Clock.currentTimeMillis
      const turnLog = options.turn ?? TurnLog.ofPrompt({ store, writer: log.writer, log })
      const { turn } = turnLog
      const scope = yield* Scope.make()
      const evidence = RunEvidence.make(redact)
      const shape = TurnShape.make(RunStream.phaseIds)
      const eventText = EventText.make(sessionOptions)
      const problems: Array<string> = []
      // A later run of a kept session goes on with the conversation that the earlier ones had.
      const isContinued = options.keep?.bound !== undefined
      let bound = options.keep?.bound === undefined ? undefined : { ...options.keep.bound, resumed: true }
      let began = turnLog.isOpen()
      /** What became of the history, where the harness had lost it. */
      let lostHistory: "fresh" | "replayed" | undefined
      /** The turn before, where it was cut off and its reader was not yet told what that means. */
      let cutOffTurn = log.binding()?.cutOffTurn
      /** What is told once the harness's first word is in the log: that the session has begun, under which id. */
      let opening: Effect.Effect<void> | undefined
      let lostChannel: ChannelError.ChannelError | undefined

      /** Whether somebody asked for the end. What is remembered from then on is no cause. */
      const isStopped = Effect.map(cancel.requests, (requests) => {
        if (requests.length > 0) evidence.stopAsked()
        return evidence.isStopAsked()
      })
      const fail = (failure: Failure.Failure) => Effect.map(isStopped, () => evidence.fail(failure))
      /** Does what the log may refuse. Where it does, the run has failed. */
      const written = (writing: Effect.Effect<void, Failing>): Effect.Effect<void> =>
        Effect.catchCause(writing, (cause) => fail(failureOf(cause)))
      const trouble = (what: string, cause: Cause.Cause<Failing>) => {
        problems.push(redact(`${what}: ${failureOf(cause).message}`))
      }

      const stream = RunStream.make({
        runId: options.runId,
        sink: options.sink,
        opening: {
          sessionId: sessionOptions.sessionId,
          harness: harness.name,
          turnpikeVersion: options.turnpikeVersion,
          cwd: sessionOptions.cwd,
          capabilities: harness.capabilities,
          turn,
          trigger: turnLog.trigger
        },
        lost: (error) =>
          Effect.suspend(() => {
            lostChannel = error
            return cancel.request({ cause: "channel_lost", mode: "hard" })
          }),
        // A reader that takes nothing must not keep a run alive that is to be cut off.
        patience: Effect.andThen(cancel.hard, Effect.sleep(options.readerGrace ?? defaultReaderGrace))
      })

      /**
       * Runs a step unless the run is to end; an interruption of the caller is a
       * hard request. The step's own interruption is its failure.
       */
      const unless = <A, E>(request: Effect.Effect<Cancel.Request>, step: Effect.Effect<A, E>): Effect.Effect<A | Stopped, E> =>
        Effect.gen(function*() {
          const exit = yield* Effect.exit(restore(Effect.raceFirst(Effect.exit(step), Effect.as(request, Stopped as Stopped))))
          if (Exit.isSuccess(exit)) return exit.value === Stopped ? Stopped : yield* exit.value
          yield* cancel.request({ cause: "disposed", mode: "hard" })
          return Stopped
        })

      /** Brackets a step by its phase's two events. A failure is remembered and told; it goes no further. */
      const phase = <A>(name: RunStream.Phase, step: Effect.Effect<A | Stopped, Failing>): Effect.Effect<A | Stopped> =>
        Effect.gen(function*() {
          yield* stream.phaseStart(name)
          const exit = yield* Effect.exit(step)
          if (Exit.isFailure(exit)) yield* fail(failureOf(exit.cause))
          const problem = Exit.isFailure(exit) ? evidence.failure()?.message : exit.value === Stopped ? "stopped" : undefined
          yield* stream.phaseEnd(name, problem)
          return Exit.isFailure(exit) ? Stopped : exit.value
        })

      /** Remembers and logs one event of the turn. It is told once it is committed: what a reader has seen survives. */
      const tell = (event: TurnEvent.TurnEvent): Effect.Effect<void, Failing> =>
        Effect.suspend(() => {
          evidence.see(event)
          return turnLog.append(event)
        })
      const tellAll = (events: ReadonlyArray<TurnEvent.TurnEvent>) => Effect.forEach(events, tell, { discard: true })
      yield* Scope.provide(
        log.observe((event) => {
          if (!TurnLog.isOfTurn(event)) return Effect.void
          if (opening === undefined || event.type === "notice") return stream.turnEvent(event)
          return Effect.andThen(opening, Effect.suspend(() => stream.turnEvent(event)))
        }),
        scope
      )

      /** Takes what the harness says of its session, once the log has it. */
      const bind = (data: TurnEvent.Of<"session/bound">["data"]): Effect.Effect<void, Failing> =>
        Effect.suspend(() => {
          bound = data
          if (options.keep !== undefined) options.keep.bound = data
          const turn = data.resumed ? cutOffTurn : undefined
          cutOffTurn = undefined
          return turn === undefined ? Effect.void : tell(TurnEvent.make("notice", {
            kind: "turn_in_doubt",
            message: `turn ${turn} was cut off, and ${harness.name}, which goes on with the session, may not have all of it`
          }))
        })

      // No generators on the way of every event: suspended ones are what the collector of garbage spends its time on.
      const observe = (event: TurnEvent.TurnEvent): Effect.Effect<void, Failing> =>
        Effect.suspend(() => {
          if (event.type === "notice" && event.data.kind === "fresh_session") lostHistory = "fresh"
          if (event.type === "notice" && event.data.kind === "replayed") lostHistory = "replayed"
          const told = tellAll(eventText.clean(event).flatMap(shape.tell))
          return event.type === "session/bound" ? Effect.andThen(told, bind(event.data)) : told
        })

      const open: Effect.Effect<Harness.HarnessSession | Stopped> = Effect.gen(function*() {
        if (options.keep !== undefined) return options.keep.session
        if (yield* isStopped) return Stopped
        yield* phase("provision", Effect.void)
        if (evidence.failure() !== undefined || (yield* isStopped)) return Stopped
        // A session that opened at the moment of the request is closed like any other, with its report.
        let opened: Harness.HarnessSession | undefined
        const opening = Scope.provide(Effect.suspend(() => harness.open(sessionOptions)), scope).pipe(
          Effect.tap((session) =>
            Effect.sync(() => {
              opened = session
            })
          )
        )
        const session = yield* phase("launch", unless(cancel.graceful, opening))
        return session === Stopped && opened !== undefined ? opened : session
      })

      /** Asks the turn to end once somebody wants that. It has the grace, then it is to be cut off. */
      const ask = (session: Harness.HarnessSession): Effect.Effect<void> =>
        Effect.gen(function*() {
          const request = yield* cancel.graceful
          if (request.mode === "hard") return
          yield* Effect.forkIn(
            Effect.catchCause(Effect.suspend(() => session.interrupt), (cause) =>
              Effect.sync(() => {
                if (!Cause.hasInterruptsOnly(cause)) trouble("the harness could not be asked to end its turn", cause)
              })),
            scope,
            { startImmediately: true }
          )
          yield* Effect.sleep(options.grace)
          yield* cancel.request({ cause: request.cause, mode: "hard" })
        })

      /** Leaves the turn to its natural end, or cuts it off on a hard request. */
      const runTurn = (session: Harness.HarnessSession, prompt: Prompt.Prompt): Effect.Effect<void> =>
        Effect.gen(function*() {
          let heard = false
          const begun = (event: TurnEvent.TurnEvent) =>
            stream.phaseEnd("submit").pipe(
              Effect.andThen(Effect.suspend(() => stream.open(event.type === "session/bound" ? event.data : bound))),
              Effect.andThen(stream.phaseStart("await"))
            )
          const hear = (event: TurnEvent.TurnEvent) =>
            isStopped.pipe(
              Effect.andThen(Effect.suspend(() => {
                // A notice may come from before the prompt; it is no sign that the prompt was taken.
                if (heard || event.type === "notice") return observe(event)
                // Whoever is told an id can go on with it, whatever happens next.
                if (event.type === "session/bound") {
                  opening = Effect.suspend(() => {
                    heard = true
                    opening = undefined
                    return begun(event)
                  })
                  return observe(event)
                }
                heard = true
                return Effect.andThen(begun(event), observe(event))
              })),
              // An event is taken whole or not at all.
              Effect.uninterruptible
            )
          const fiber = yield* Effect.forkIn(
            Stream.runForEach(AgentSession.oneEnding(Stream.suspend(() => options.events ?? session.runTurn(prompt))), hear),
            scope,
            { startImmediately: true }
          )
          const asking = yield* Effect.forkIn(ask(session), scope, { startImmediately: true })
          yield* unless(cancel.hard, Fiber.await(fiber))
          yield* Fiber.interrupt(asking)
          // Waits until nothing of the turn runs any more; does nothing where it has ended.
          yield* Fiber.interrupt(fiber)
          const exit = yield* Fiber.await(fiber)
          if (Exit.isFailure(exit)) {
            if (Cause.hasInterruptsOnly(exit.cause)) evidence.cutOff()
            else yield* fail(failureOf(exit.cause))
          }
          const problem = evidence.failure()?.message ?? (evidence.isCutOff() ? "cut off" : undefined)
          opening = undefined
          if (!heard) {
            yield* stream.phaseEnd("submit", problem)
            yield* stream.open(bound)
          }
          yield* written(Effect.andThen(tellAll([...eventText.rest().flatMap(shape.tell), ...shape.close()]), log.flush))
          if (heard) yield* stream.phaseEnd("await", problem)
        })

      /** Takes what the harness does by itself, now that its turn is over and this run waits for its tasks, into the turn. */
      const listen = (session: Harness.HarnessSession): Effect.Effect<void> => {
        if (session.onOwnTurn === undefined) return Effect.void
        const take = (events: Stream.Stream<TurnEvent.TurnEvent, TurnError>) =>
          Effect.suspend(() => {
            const before = evidence.output().usage
            return Stream.runForEach(events, (event) => {
              const part = OwnTurn.asPart(event, before)
              return part === undefined ? Effect.void : observe(part)
            })
          })
        return Scope.provide(
          session.onOwnTurn((events) =>
            Effect.catchCause(take(events), (cause) =>
              Effect.sync(() => {
                if (!Cause.hasInterruptsOnly(cause) && !evidence.isStopAsked()) trouble("what the harness did by itself failed", cause)
              }))
          ),
          scope
        )
      }

      /** Closes the session, once its tasks are done where the caller wants to wait for them. */
      const close = (session: Harness.HarnessSession): Effect.Effect<Harness.CloseReport> =>
        Effect.gen(function*() {
          if (evidence.endedByItself() && !(yield* isStopped) && spec.background !== "kill") {
            yield* listen(session)
            const waited = yield* Effect.exit(unless(cancel.graceful, Effect.suspend(() => session.backgroundDone)))
            if (Exit.isFailure(waited)) trouble("waiting for background tasks failed", waited.cause)
          }
          const exit = yield* Effect.exit(Effect.suspend(() => session.close))
          if (Exit.isSuccess(exit)) return withoutCredentials(exit.value, redact)
          trouble("closing the session failed", exit.cause)
          return Harness.nothingFound
        })

      const timeoutSeconds = spec.limits?.timeout_s ?? undefined
      const timer = timeoutSeconds === undefined ? undefined : yield* Effect.forkIn(
        Effect.delay(cancel.request({ cause: "timeout", mode: "graceful" }), timeoutSeconds * 1000),
        scope,
        { startImmediately: true }
      )

      const session = yield* open
      let report = Harness.nothingFound
      if (session !== Stopped) {
        if (yield* isStopped) {
          if (began) yield* stream.open(bound)
        } else {
          // On disk before anything of it leaves.
          const begun = yield* Effect.exit(turnLog.begin(spec.task))
          began = turnLog.isOpen()
          if (Exit.isFailure(begun)) {
            yield* fail(failureOf(begun.cause))
            if (began) yield* stream.open(bound)
          } else {
            yield* stream.phaseStart("submit")
            yield* runTurn(session, begun.value)
          }
        }
        yield* stream.phaseStart("capture")
        if (options.keep === undefined) {
          report = yield* close(session)
          if (began) yield* written(Effect.andThen(tellAll(shape.close()), log.flush))
        }
        problems.push(...report.problems)
      }
      if (timer !== undefined) yield* Fiber.interrupt(timer)
      const closed = yield* Effect.exit(Scope.close(scope, Exit.void))
      if (Exit.isFailure(closed)) trouble("what the run had opened could not be closed", closed.cause)
      if (session !== Stopped) yield* stream.phaseEnd("capture", problems.length === 0 ? undefined : problems.join("; "))

      if (began) {
        for (const message of problems) yield* written(turnLog.append(TurnEvent.make("notice", { kind: "teardown_failed", message })))
      }
      const judged = Judge.judge(
        evidence.forJudge(yield* cancel.requests, spec.background === "kill" ? [] : report.backgroundKilled)
      )
      // A verdict that the log does not have is none. From here on nothing can change it.
      const ending = began ? yield* Effect.exit(turnLog.end(judged, evidence.failure())) : Exit.void
      const verdict: Verdict.Verdict = Exit.isSuccess(ending) ? judged : { type: "error", error: failureOf(ending.cause) }
      const { reason, success } = Verdict.consequences(verdict)
      const error = tellMore(Verdict.failureOf(verdict), {
        CHANNEL_LOST: lostChannel === undefined ? undefined : redact(lostChannel.message),
        POLICY_VIOLATION: evidence.failure()?.message
      })
      const outcome = { success, summary: error === undefined ? evidence.output().text : error.message }
      for (const message of problems) yield* stream.notice("teardown_failed", message)
      if (began && record.notKept() > 0) {
        yield* stream.notice("text_lost", `${record.notKept()} events of the turn are in the session's log and not in this result, which holds ${TurnRecord.defaultMaxEntries}`)
      }
      yield* stream.close(verdict)
      yield* stream.end(outcome, reason)
      const ended = yield* Clock.currentTimeMillis
      const harnessSessionId = log.binding()?.harnessSessionId
      const resumed = bound?.resumed === true || (options.keep !== undefined && isContinued && lostHistory === undefined)
        ? "native"
        : lostHistory ?? (bound !== undefined && prepared.earlierTurns > 0 ? "fresh" : undefined)
      const result: AgentRunResult.AgentRunResult = {
        result: outcome,
        reason,
        verdict,
        session: {
          id: sessionOptions.sessionId,
          harness: harness.name,
          ...(harnessSessionId === undefined ? {} : { harness_session_id: harnessSessionId }),
          ...(began && resumed !== undefined ? { resumed } : {}),
          turn: began ? turn : 0
        },
        usage: began ? evidence.output().usage : Usage.unavailable,
        denials: evidence.denials(),
        background_killed: report.backgroundKilled,
        killed: report.killed,
        survivors: report.survivors,
        error: error ?? null,
        session_log: began ? record.entries(turn) : [],
        output_artifacts: [],
        observability: null,
        duration_ms: Math.max(0, Math.round(ended - started))
      }
      if (options.deliver === "stream") yield* stream.result(result)
      // An interruption of the caller that waited until here goes on when this region ends.
      return result
    })
  ).pipe(Effect.withSpan("Run.execute"))

/** The report, whose sentences are the harness's. */
const withoutCredentials = (report: Harness.CloseReport, redact: Redaction.Redactor): Harness.CloseReport => ({
  ...report,
  backgroundKilled: report.backgroundKilled.map((task) =>
    task.description === undefined ? task : { ...task, description: redact(task.description) }),
  problems: report.problems.map(redact)
})

/** Adds what is known of the occurrence to a failure that follows from a verdict alone. */
const tellMore = (
  failure: Failure.Failure | undefined,
  known: { readonly [code in Failure.FailureCode]?: string | undefined }
): Failure.Failure | undefined => {
  const more = failure === undefined ? undefined : known[failure.code]
  return failure === undefined || more === undefined || more === failure.message
    ? failure
    : { ...failure, message: `${failure.message}: ${more}` }
}
