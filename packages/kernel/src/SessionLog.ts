/**
 * A session's log as its writer has it: what may enter, in which order it is
 * committed, and who is told when it is.
 *
 * An event is committed before it is published, so that what anybody has seen
 * survives a crash. An event that breaks a rule of the log is refused, always:
 * the writers obey, and no reader has to be lenient. Pieces of answers wait up to
 * 20 ms for others, or for whatever comes next, and are committed with it.
 */
import { Failure, type Scalars, type SessionEvent } from "@turnpike/contract"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as LogState from "./LogState.ts"
import * as Lossless from "./Lossless.ts"
import * as SessionStore from "./SessionStore.ts"
import * as Surface from "./Surface.ts"

/** How long a piece of an answer waits for others: 20 ms. */
export const batchMillis = 20

export interface SessionLog {
  readonly writer: SessionStore.Writer
  /**
   * Appends one event and answers it as it stands in the log. A piece of an answer
   * is answered at once and committed a moment later; of everything else the commit
   * is waited for, and with what opens and closes a turn, a claim, and a message
   * to the model it is on disk.
   *
   * Fails with `LOG_RULE` where the event may not stand there or is not as JSON
   * holds it, and as the store does; nothing of it is then in the log. Pieces that
   * could not be committed are lost, and the next append says so.
   */
  readonly append: (body: SessionEvent.Body) => Effect.Effect<SessionEvent.SessionEvent, SessionStore.SessionStoreError>
  /** Commits what waits. */
  readonly flush: Effect.Effect<void, SessionStore.SessionStoreError>
  /** Calls with each event that is committed from now on, in order, until the scope closes. What an observer fails with is logged and changes nothing. */
  readonly observe: (
    observer: (event: SessionEvent.SessionEvent) => Effect.Effect<void, unknown>
  ) => Effect.Effect<void, never, Scope.Scope>
  readonly lastTurn: () => number
  /** The number of the turn that is open. */
  readonly openTurn: () => number | undefined
  /** What the open turn lacks besides its end. */
  readonly dangling: () => ReadonlyArray<SessionEvent.Body>
  /** The messages that a model is shown. */
  readonly messages: () => ReadonlyArray<Surface.Message>
}

const refuse = (message: string) => new SessionStore.SessionStoreError({ failure: Failure.make("LOG_RULE", message) })

const damaged = (id: string, event: SessionEvent.SessionEvent, why: string) =>
  new SessionStore.SessionStoreError({ failure: Failure.make("SESSION_DAMAGED", `event ${event.seq} of session ${id}, ${event.type}: ${why}`) })

/** Whether an observer of this log is being told: then nothing may be appended. */
const Telling = Context.Reference<ReadonlySet<object>>("@turnpike/kernel/SessionLog/Telling", { defaultValue: () => new Set() })

/** What has to be on disk before anybody acts on it. */
const synced: ReadonlySet<string> = new Set([
  "turn/start",
  "turn/end",
  "inbox/claimed",
  "user/message",
  "context/message",
  "steering/message",
  "session/bound"
])

/**
 * Opens a session for writing, puts in order what a crash left, and reads its log
 * once. Fails as the store's `open` does.
 */
export const open = (
  store: SessionStore.Service,
  id: Scalars.SessionId,
  holder: string
): Effect.Effect<SessionLog, SessionStore.SessionStoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const writer = yield* store.open(id, holder)
    const surface = Surface.make()
    /** What the log amounts to as it is committed, and with the pieces that wait. */
    let committed = LogState.empty()
    yield* Stream.runForEach(store.read(id, -1), (event) =>
      Effect.suspend(() => {
        const next = LogState.next(committed, event)
        if (Result.isFailure(next)) return Effect.fail(damaged(id, event, next.failure.message))
        committed = next.success
        surface.take(event)
        return Effect.void
      }))
    let state = committed

    const lock = yield* Semaphore.make(1)
    const observers = new Set<(event: SessionEvent.SessionEvent) => Effect.Effect<void, unknown>>()
    const self = {}
    /** Pieces that wait for their commit. */
    let waiting: Array<SessionEvent.SessionEvent> = []
    /** Whether somebody will commit them. */
    let isTimed = false
    /** Why pieces were lost. */
    let lost: SessionStore.SessionStoreError | undefined

    const tell = (event: SessionEvent.SessionEvent) =>
      Effect.forEach([...observers], (observer) =>
        Effect.catchCause(Effect.suspend(() => observer(event)), (cause) =>
          Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError(`an observer of session ${id} failed`, cause)), { discard: true })

    const publish = (events: ReadonlyArray<SessionEvent.SessionEvent>): Effect.Effect<void> =>
      observers.size === 0 ? Effect.void : Effect.flatMap(Telling, (telling) =>
        Effect.provideService(Effect.forEach(events, tell, { discard: true }), Telling, new Set([...telling, self])))

    /** Commits the pieces that wait, and an event behind them. */
    const commit = (event: SessionEvent.SessionEvent | undefined): Effect.Effect<void, SessionStore.SessionStoreError> =>
      Effect.gen(function*() {
        const pieces = waiting
        const events = event === undefined ? pieces : [...pieces, event]
        waiting = []
        if (events.length === 0) return
        yield* writer.append(events, { sync: event !== undefined && synced.has(event.type) }).pipe(
          Effect.tapError(() =>
            Effect.sync(() => {
              state = committed
            })
          )
        )
        committed = state
        if (event !== undefined) surface.take(event)
        yield* publish(events)
      })

    /** Commits what waits by then; nothing, where something else has taken it along. */
    const late = Effect.sleep(batchMillis).pipe(
      Effect.andThen(Effect.suspend(() => {
        isTimed = false
        return Semaphore.withPermits(lock, 1)(commit(undefined)).pipe(Effect.uninterruptible)
      })),
      Effect.catch((error) =>
        Effect.sync(() => {
          lost ??= error
        })
      )
    )

    const append: SessionLog["append"] = (body) =>
      Effect.gen(function*() {
        if ((yield* Telling).has(self)) return yield* refuse(`${body.type} was appended by an observer of the same log`)
        const snapshot = Lossless.snapshot(body, body.type)
        if (Result.isFailure(snapshot)) return yield* refuse(`${snapshot.failure}; a log holds what JSON gives back as it was`)
        const now = yield* Clock.currentTimeMillis
        return yield* Semaphore.withPermits(lock, 1)(Effect.gen(function*() {
          if (lost !== undefined) {
            const error = lost
            lost = undefined
            return yield* error
          }
          // The copy has the body's shape: it was made of it.
          const event = Object.freeze({
            seq: state.next,
            time: Math.max(0, Math.round(now)),
            ...(snapshot.success as unknown as SessionEvent.Body)
          })
          const next = LogState.next(state, event)
          if (Result.isFailure(next)) return yield* refuse(`${body.type} may not stand at ${event.seq}: ${next.failure.message}`)
          state = next.success
          if (event.type === "assistant/chunk") {
            waiting.push(event)
            if (!isTimed) {
              isTimed = true
              yield* Effect.forkIn(late, scope)
            }
            return event
          }
          yield* commit(event)
          return event
        }))
      }).pipe(Effect.uninterruptible)

    const flush = Effect.suspend(() =>
      Semaphore.withPermits(lock, 1)(Effect.andThen(
        commit(undefined),
        Effect.suspend(() => {
          const error = lost
          lost = undefined
          return error === undefined ? Effect.void : Effect.fail(error)
        })
      ))
    ).pipe(Effect.uninterruptible)

    yield* Effect.addFinalizer(() =>
      Effect.catch(flush, (error) => Effect.logError(`the last pieces of session ${id} could not be written: ${error.message}`))
    )

    return {
      writer,
      append,
      flush,
      observe: (observer) =>
        Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => observers.add(observer)),
          () => Effect.sync(() => observers.delete(observer))
        )),
      lastTurn: () => committed.lastTurn,
      openTurn: () => committed.open?.number,
      dangling: () => LogState.dangling(committed),
      messages: surface.messages
    }
  })
