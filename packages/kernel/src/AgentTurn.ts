/**
 * One turn of the session driver on an agent's session: the messages become its
 * prompt, its events the turn's, and its ending the evidence of the verdict.
 */
import type { TurnEvent, Verdict } from "@turnpike/contract"
import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as AgentSession from "./AgentSession.ts"
import * as EventText from "./internal/eventText.ts"
import * as TurnShape from "./internal/turnShape.ts"
import * as Judge from "./Judge.ts"
import type * as Redaction from "./Redaction.ts"
import * as RunEvidence from "./RunEvidence.ts"
import type * as SessionDriver from "./SessionDriver.ts"
import type { SessionStoreError } from "./SessionStore.ts"
import * as TurnError from "./TurnError.ts"
import * as TurnLog from "./TurnLog.ts"

export interface Options {
  /** The session that runs the turns, opened when the first one needs it. */
  readonly session: Effect.Effect<AgentSession.AgentSession, TurnError.TurnError>
  readonly redact: Redaction.Redactor
  /** The credentials that the session was given, which no event repeats. */
  readonly credentials: Parameters<typeof EventText.make>[0]
  /** How long a turn that was asked to end itself has for that. */
  readonly grace: Duration.Input
}

/**
 * Makes what runs a driver's turns on a session. A graceful request asks the
 * session to end the turn and gives it the grace; a hard one cuts it off, and
 * nothing of the turn runs when the verdict is there.
 */
export const make = (options: Options): SessionDriver.Execute => (turn) =>
  ofStream(options, turn, (session) => session.runTurn(TurnLog.promptOf(turn.messages)))

const ofStream = (
  options: Options,
  turn: SessionDriver.OpenTurn,
  run: (session: AgentSession.AgentSession) => Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>
): Effect.Effect<Verdict.Verdict, SessionStoreError> =>
  Effect.scopedWith((scope) => Effect.gen(function*() {
    const evidence = RunEvidence.make(options.redact)
    const shape = TurnShape.make([])
    const text = EventText.make(options.credentials)

    const noteStop = Effect.map(turn.cancel.requests, (requests) => {
      if (requests.length > 0) evidence.stopAsked()
    })
    const tell = (event: TurnEvent.TurnEvent): Effect.Effect<void, SessionStoreError> =>
      Effect.suspend(() => {
        evidence.see(event)
        const body = TurnLog.bodyOf(event)
        return body === undefined ? Effect.void : Effect.asVoid(turn.append(body))
      })
    const tellAll = (events: ReadonlyArray<TurnEvent.TurnEvent>) => Effect.forEach(events, tell, { discard: true })
    /** An event is taken whole or not at all. */
    const hear = (event: TurnEvent.TurnEvent) =>
      Effect.andThen(noteStop, Effect.suspend(() => tellAll(text.clean(event).flatMap(shape.tell)))).pipe(Effect.uninterruptible)

    const stream = Stream.unwrap(Effect.map(options.session, (session) => {
      const asking = Effect.gen(function*() {
        const request = yield* turn.cancel.graceful
        if (request.mode === "hard") return
        yield* Effect.forkIn(
          Effect.catchCause(session.interrupt, (cause) => Effect.logWarning("the session could not be asked to end its turn", cause)),
          scope
        )
        yield* Effect.sleep(options.grace)
        yield* turn.cancel.request({ cause: request.cause, mode: "hard" })
      })
      return Stream.unwrap(Effect.as(Effect.forkIn(asking, scope), AgentSession.oneEnding(Stream.suspend(() => run(session)))))
    }))

    const fiber = yield* Effect.forkIn(Stream.runForEach(stream, hear), scope, { startImmediately: true })
    yield* Effect.raceFirst(Fiber.await(fiber), turn.cancel.hard)
    // Waits until nothing of the turn runs any more; does nothing where it has ended.
    yield* Fiber.interrupt(fiber)
    const exit = yield* Fiber.await(fiber)
    yield* noteStop
    if (Exit.isFailure(exit)) {
      const squashed = Cause.squash(exit.cause)
      if (Cause.hasInterruptsOnly(exit.cause)) evidence.cutOff()
      else if (squashed instanceof TurnError.TurnError) evidence.fail(squashed.failure)
      else return yield* Effect.failCause(exit.cause as Cause.Cause<SessionStoreError>)
    }
    yield* tellAll([...text.rest().flatMap(shape.tell), ...shape.close()])
    return Judge.judge(evidence.forJudge(yield* turn.cancel.requests, []))
  }))

/**
 * Makes what runs a background turn: the harness goes on by itself and this is
 * what it says, with its own ending.
 */
export const ofBackground = (
  options: Options,
  events: Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>
): SessionDriver.Execute => (turn) => ofStream(options, turn, () => events)
