/**
 * One session, many prompts: a driver each of whose turns is a run.
 *
 * Prompts are receipts of the session's inbox, so that whoever may write to the
 * session can give one; the runs are told one after the other, each with its own
 * id and one result, whoever gave its prompt. What the harness begins by itself
 * is a run, too, and prompts wait for its end.
 */
import { type AgentRunResult, Failure, type Scalars, type Verdict } from "@turnpike/contract"
import type * as Duration from "effect/Duration"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Cancel from "./Cancel.ts"
import type * as Harness from "./Harness.ts"
import * as Run from "./Run.ts"
import type { Prepared } from "./RunPreparation.ts"
import type * as RunStream from "./RunStream.ts"
import * as SessionDriver from "./SessionDriver.ts"
import * as SessionStore from "./SessionStore.ts"
import * as TurnLog from "./TurnLog.ts"

type StoreError = SessionStore.SessionStoreError

export interface Options {
  /** What every run has in common; the task of each is its prompt. */
  readonly prepared: Prepared
  /** The session that runs the turns, which stays the caller's. */
  readonly session: Harness.HarnessSession
  readonly newRunId: () => Scalars.RunId
  readonly turnpikeVersion: string
  readonly sink: RunStream.Sink
  readonly deliver: Run.ExecuteOptions["deliver"]
  readonly grace: Duration.Input
  /** Told before a run begins, with whoever gave its prompts. */
  readonly begins?: (turn: SessionDriver.OpenTurn) => Effect.Effect<void>
  /** Told when a run is over and its turn's end is on disk. The next one waits for it. */
  readonly ended?: (result: AgentRunResult.AgentRunResult) => Effect.Effect<void>
}

export interface Conversation {
  /**
   * Gives a prompt and completes when its turn is over and told, with its result;
   * `undefined` where it was taken back, or stopped before its run began. Prompts
   * that wait already come first. One that fails is taken back: no later turn runs
   * it, unless the failure says that it waits.
   */
  readonly ask: (text: string) => Effect.Effect<AgentRunResult.AgentRunResult | undefined, StoreError>
  /** Passes a signal to the turn that runs, or is asked for. Answers what became of it; `undefined` where there is none. */
  readonly interrupt: (signal: Cancel.Signal) => Effect.Effect<Cancel.Request | undefined>
  /** Completes when nothing runs and nobody is about to begin. */
  readonly whenIdle: Effect.Effect<void>
}

interface Running {
  readonly turn: number
  /** Whether the end of the turn is on disk. */
  readonly closed: Deferred.Deferred<void, StoreError>
  readonly run: Fiber.Fiber<void>
}

/** A prompt, and what became of it so far. */
interface Given {
  /** Whether somebody waits for what becomes of it. */
  isAwaited: boolean
  /** The turn that took it. */
  turn?: number
  /** That of the turn. */
  verdict?: Verdict.Verdict
  result?: AgentRunResult.AgentRunResult
}

/** How many prompts are remembered besides those that somebody waits for. */
const maxPrompts = 64

/** The failure of a prompt that nothing can be done about: a later turn takes it. */
const stillWaiting = ({ failure }: StoreError): StoreError =>
  new SessionStore.SessionStoreError({
    failure: { ...failure, message: `${failure.message}; the prompt waits in the session's inbox, and the next turn that can begin takes it` }
  })

/** How many turns in a row may begin without getting nearer to a prompt that waits. */
const maxTries = 3

/**
 * Begins a conversation, with what waits in the session's inbox. It belongs to
 * the scope: when that closes the running turn is cut off and told to its end.
 */
export const make = (options: Options): Effect.Effect<Conversation, StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const { prepared } = options
    const { log, store } = prepared
    const { id } = log.writer.header
    const scope = yield* Effect.scope
    const keep = Run.keep(options.session)
    /** Prompts by their receipts, the newest last: whoever gives one may learn its receipt later than its turn does. */
    const prompts = new Map<string, Given>()
    const promptOf = (receipt: string): Given => {
      const known = prompts.get(receipt)
      if (known !== undefined) return known
      if (prompts.size >= maxPrompts) {
        for (const [oldest, { isAwaited }] of prompts) {
          if (isAwaited) continue
          prompts.delete(oldest)
          break
        }
      }
      const made: Given = { isAwaited: false }
      prompts.set(receipt, made)
      return made
    }
    let running: Running | undefined
    let escalate: ((signal: Cancel.Signal) => Effect.Effect<Cancel.Request>) | undefined
    /** How many prompts are being asked, and what was requested before the turn of one began. */
    let asking = 0
    let early: ReadonlyArray<Cancel.Request> = []
    /** What the log would not take, since the last prompt. */
    const broken: { error?: StoreError } = {}

    /** Makes a turn a run: of its prompts, or of what the harness has begun by itself. */
    const execute = (events?: Run.ExecuteOptions["events"]): SessionDriver.Execute => (turn) =>
      Effect.gen(function*() {
        const judged = yield* Deferred.make<Verdict.Verdict>()
        const closed = yield* Deferred.make<void, StoreError>()
        yield* Effect.forEach(early, turn.cancel.request, { discard: true })
        early = []
        if (options.begins !== undefined) yield* options.begins(turn)
        const run = Run.execute({ ...prepared, spec: { ...prepared.spec, task: TurnLog.promptOf(turn.messages).text } }, {
          runId: options.newRunId(),
          turnpikeVersion: options.turnpikeVersion,
          sink: options.sink,
          cancel: turn.cancel,
          deliver: options.deliver,
          grace: options.grace,
          keep,
          ...(events === undefined ? {} : { events }),
          turn: TurnLog.ofDriver(turn, (verdict) => Effect.andThen(Deferred.succeed(judged, verdict), Deferred.await(closed)))
        }).pipe(Effect.flatMap((result) => {
          for (const message of turn.messages) promptOf(message.id).result = result
          return options.ended?.(result) ?? Effect.void
        }))
        const fiber = yield* Effect.forkIn(run, scope, { startImmediately: true })
        running = { turn: turn.turn, closed, run: fiber }
        return yield* Effect.raceFirst(
          Deferred.await(judged),
          Effect.andThen(Fiber.await(fiber), Effect.flatMap(Deferred.isDone(judged), (isJudged) =>
            isJudged ? Deferred.await(judged) : Effect.die(new Error("a run ended without a verdict"))))
        )
      })

    /** Lets the run of a turn that is over tell its end, before anything follows. */
    const conclude = (outcome: Effect.Effect<void, StoreError>) =>
      Effect.suspend(() => {
        const over = running
        running = undefined
        escalate = undefined
        return over === undefined ? Effect.void : Effect.andThen(Deferred.complete(over.closed, outcome), Fiber.await(over.run))
      })

    yield* log.observe((event) => {
      if (event.type === "inbox/claimed") {
        for (const receipt of event.data.ids) promptOf(receipt).turn = event.data.turn
      }
      if (event.type !== "turn/end") return Effect.void
      escalate = undefined
      for (const prompt of prompts.values()) if (prompt.turn === event.data.turn) prompt.verdict = event.data.verdict
      return event.data.turn === running?.turn ? conclude(Effect.void) : Effect.void
    })

    const driver = yield* SessionDriver.make({
      store,
      writer: log.writer,
      log,
      execute: execute(),
      wakeAtStart: true,
      trouble: (error) =>
        Effect.suspend(() => {
          broken.error = error
          return Effect.asVoid(conclude(Effect.fail(error)))
        })
    })

    if (options.session.onOwnTurn !== undefined) {
      yield* options.session.onOwnTurn((events) => driver.background(execute(events)))
    }

    const isRunning = Effect.map(driver.phase, ({ _tag }) => _tag === "Running")

    /** How many prompts come before a receipt that waits; -1 where it does not wait any more. */
    const placeOf = (receipt: string) => Effect.map(store.pending(id), ({ nextTurn }) => nextTurn.findIndex((each) => each.id === receipt))

    /** Waits for the end of the turn that takes a prompt. */
    const overWith = (receipt: string, prompt: Given) =>
      Effect.gen(function*() {
        let before = Number.POSITIVE_INFINITY
        for (let tries = 0;;) {
          yield* driver.whenIdle
          if (prompt.result !== undefined) return prompt.result
          if (broken.error !== undefined) return yield* broken.error
          const place = yield* placeOf(receipt)
          // A turn that took it and had no run of its own was stopped, or could not write the prompt.
          if (place < 0) return prompt.verdict?.type === "error" ? yield* new SessionStore.SessionStoreError({ failure: prompt.verdict.error }) : undefined
          tries = place < before ? 0 : tries + 1
          if (tries === maxTries) {
            return yield* new SessionStore.SessionStoreError({
              failure: Failure.make("STORE_FAILED", `no turn of session ${id} takes prompt ${receipt}`)
            })
          }
          before = place
          // A turn before it failed, and what waits is parked.
          yield* driver.wake
        }
      })

    /** Sees to it that no later turn runs what its sender was told has failed; answers whether that is certain. */
    const takeBack = (receipt: string): Effect.Effect<boolean> =>
      driver.takeBack(receipt, "user").pipe(
        // Who has the session now decides; it, or the next who has, finds the request.
        Effect.catch(() => store.requestDiscard(id, [receipt], "user")),
        Effect.match({ onFailure: () => false, onSuccess: () => true })
      )

    return {
      ask: (text) =>
        Effect.gen(function*() {
          asking++
          delete broken.error
          const { receipt } = yield* driver.send({ kind: "followup", text, source: "user" })
          const prompt = promptOf(receipt.id)
          prompt.isAwaited = true
          return yield* overWith(receipt.id, prompt).pipe(
            Effect.catch((error) => Effect.andThen(takeBack(receipt.id), (isTaken) => Effect.fail(isTaken ? error : stillWaiting(error)))),
            Effect.ensuring(Effect.sync(() => {
              prompt.isAwaited = false
            }))
          )
        }).pipe(Effect.ensuring(Effect.sync(() => {
          asking--
          if (asking === 0) early = []
        }))),
      interrupt: (signal) =>
        Effect.gen(function*() {
          if (asking === 0 && !(yield* isRunning)) return undefined
          escalate ??= Cancel.escalator({
            request: (request) =>
              Effect.flatMap(isRunning, (runs) =>
                runs
                  ? driver.cancel(request, { keepInbox: true })
                  : Effect.sync(() => {
                    early = [...early, request]
                  }))
          })
          return yield* escalate(signal)
        }),
      whenIdle: driver.whenIdle
    }
  })
