/**
 * A session's log as its writer has it: what may enter, in which order it is
 * committed, and who is told when it is.
 *
 * An event is committed before it is published, so that what anybody has seen
 * survives a crash. An event that breaks a rule of the log is refused, always:
 * the writers obey, and no reader has to be lenient. Pieces of answers that follow
 * each other closely are committed together: each waits until 4 ms after the last
 * commit, 20 ms where the store is busy, or for whatever comes next.
 */
import { Failure, type Scalars, type SessionEvent } from "@turnpike/contract"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { faultOf } from "./internal/eventDecoder.ts"
import * as HarnessBinding from "./HarnessBinding.ts"
import * as LogState from "./LogState.ts"
import * as Lossless from "./Lossless.ts"
import * as SessionStore from "./SessionStore.ts"
import * as Surface from "./Surface.ts"

/** How long after a commit a piece of an answer waits for others, in milliseconds: 4. One that comes later waits for none. */
export const batchMillis = 4

/** How long it waits at most where commits take their time: 20 ms. */
export const maxBatchMillis = 20

/** Of a store that is busy, commits take at most about this part of the time. */
const commitShare = 8

/** How many pieces wait at most: those of a fast model in that time, many times over. */
export const maxBatch = 512

export interface SessionLog {
  readonly writer: SessionStore.Writer
  /**
   * Appends one event and answers it as it stands in the log. A piece of an answer
   * may be answered at once and committed a moment later; of everything else the commit
   * is waited for, and where somebody acts on it, it is on disk.
   *
   * Fails with `LOG_RULE` where the event may not stand there, is none of the
   * contract, or is not as JSON holds it, and as the store does; nothing of it is then
   * in the log. Pieces that waited for it are lost with it. Cannot be called by an
   * observer of the same log.
   */
  readonly append: (body: SessionEvent.Body) => Effect.Effect<SessionEvent.SessionEvent, SessionStore.SessionStoreError>
  /** As `append`, with several events in one commit: all of them enter, or none. It is waited for, whatever they are. */
  readonly appendAll: (
    bodies: ReadonlyArray<SessionEvent.Body>
  ) => Effect.Effect<ReadonlyArray<SessionEvent.SessionEvent>, SessionStore.SessionStoreError>
  /** Commits what waits. */
  readonly flush: Effect.Effect<void, SessionStore.SessionStoreError>
  /**
   * Calls with each event that is committed from now on, in order, until the scope
   * closes. The next event waits for it. What an observer fails with is logged and
   * changes nothing.
   */
  readonly observe: (
    observer: (event: SessionEvent.SessionEvent) => Effect.Effect<void, unknown>
  ) => Effect.Effect<void, never, Scope.Scope>
  /** The number of the last turn that was begun, in what is committed; 0 before the first. */
  readonly lastTurn: () => number
  /** The number of the turn that is open, in what is committed. */
  readonly openTurn: () => number | undefined
  /** What the open turn lacks besides its end. */
  readonly dangling: () => ReadonlyArray<SessionEvent.Body>
  /** The messages that a model is shown. */
  readonly messages: () => ReadonlyArray<Surface.Message>
  /** Under which id the harness has the session; `undefined` where it never named one. */
  readonly binding: () => HarnessBinding.HarnessBinding | undefined
}

type StoreError = SessionStore.SessionStoreError

const refuse = (message: string) => new SessionStore.SessionStoreError({ failure: Failure.make("LOG_RULE", message) })

const damaged = (id: string, event: SessionEvent.SessionEvent, why: string) =>
  new SessionStore.SessionStoreError({ failure: Failure.make("SESSION_DAMAGED", `event ${event.seq} of session ${id}, ${event.type}: ${why}`) })

/** One round of telling observers. What it calls, and whatever that begins, is within it as long as it lasts. */
interface Telling {
  readonly log: object
  isOver: boolean
}

const Tellings = Context.Reference<ReadonlyArray<Telling>>("@turnpike/kernel/SessionLog/Tellings", { defaultValue: () => [] })

/**
 * What has to be on disk before anybody acts on it: what opens and closes a turn,
 * what a prompt is made of and where it came from, that a tool may run, and that
 * it was called. A machine that fails then takes no effect with it that the log
 * does not know.
 */
const synced: ReadonlySet<string> = new Set<SessionEvent.Body["type"]>([
  "turn/start",
  "turn/end",
  "inbox/claimed",
  "user/message",
  "context/message",
  "steering/message",
  "session/bound",
  "permission/decision",
  "tool/call"
])

/** The body as an event that a reader will take, detached from the caller's value and frozen. */
const eventOf = (body: SessionEvent.Body, seq: number, millis: number): Result.Result<SessionEvent.SessionEvent, string> => {
  const snapshot = Lossless.snapshot(body, body.type)
  if (Result.isFailure(snapshot)) return Result.fail(`${snapshot.failure}; a log holds what JSON gives back as it was`)
  const own = ["seq", "time", "sum"].find((field) => Object.hasOwn(body, field))
  if (own !== undefined) return Result.fail(`${body.type} has a ${own} of its own; the log gives it`)
  // The copy has the body's shape: it was made of it.
  const event = Object.freeze({ seq, time: Math.max(0, Math.round(millis)), ...(snapshot.success as unknown as SessionEvent.Body) })
  const fault = faultOf(event)
  if (fault !== undefined) return Result.fail(`${body.type} is no event of a log: ${fault}`)
  return event.type === "turn/end" && event.data.verdict.type === "interrupted"
    ? Result.fail("turn/end may say interrupted only where a crash is recovered from")
    : Result.succeed(event)
}

/**
 * Opens a session for writing, puts in order what a crash left, and reads its log
 * once. Fails as the store's `open` does. What waits when the scope closes is
 * committed before the session is let go.
 */
export const open = (
  store: SessionStore.Service,
  id: Scalars.SessionId,
  holder: string
): Effect.Effect<SessionLog, StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const writer = yield* store.open(id, holder)
    /** What the log amounts to as it is committed, and with the pieces that wait. */
    let committed = LogState.empty()
    let surface = Surface.empty()
    const forkedEvents = writer.header.parent?.events ?? 0
    let binding: HarnessBinding.HarnessBinding | undefined
    const fold = (event: SessionEvent.SessionEvent) => {
      surface = Surface.add(surface, event)
      // What the parent of a fork told its harness goes on without this session.
      if (event.seq >= forkedEvents) binding = HarnessBinding.add(binding, event)
    }
    yield* Stream.runForEachArray(store.read(id, -1), (events) =>
      Effect.suspend(() => {
        for (const event of events) {
          const next = LogState.next(committed, event)
          if (Result.isFailure(next)) return Effect.fail(damaged(id, event, next.failure.message))
          committed = next.success
          fold(event)
        }
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
    /** Whether the last commit failed, or the scope has closed: pieces then do not wait, so that whoever brings them hears of it. */
    let isFailing = false
    let isClosed = false
    /** When the last commit began, and how long pieces wait after it. */
    let committedAt = Number.NEGATIVE_INFINITY
    let pause = batchMillis

    const tell = (event: SessionEvent.SessionEvent) =>
      Effect.forEach([...observers], (observer) =>
        Effect.catchCause(Effect.suspend(() => observer(event)), (cause) =>
          Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError(`an observer of session ${id} failed`, cause)), { discard: true })

    const publish = (events: ReadonlyArray<SessionEvent.SessionEvent>): Effect.Effect<void> =>
      observers.size === 0 ? Effect.void : Effect.flatMap(Tellings, (tellings) => {
        const telling: Telling = { log: self, isOver: false }
        return Effect.forEach(events, tell, { discard: true }).pipe(
          Effect.provideService(Tellings, [...tellings, telling]),
          Effect.ensuring(Effect.sync(() => {
            telling.isOver = true
          }))
        )
      })

    /** Commits events that go on from what is committed, and makes `after` the state that there is then. */
    const commit = (events: ReadonlyArray<SessionEvent.SessionEvent>, after: LogState.LogState): Effect.Effect<void, StoreError> =>
      writer.append(events, { sync: events.some(({ type }) => synced.has(type)) }).pipe(
        Effect.tapCause(() =>
          Effect.sync(() => {
            isFailing = true
          })),
        Effect.andThen(Effect.suspend(() => {
          isFailing = false
          waiting = []
          state = committed = after
          for (const event of events) fold(event)
          return publish(events)
        }))
      )

    /** Commits the pieces that wait with events behind them. Where that fails all of it is gone. */
    const commitWith = (events: ReadonlyArray<SessionEvent.SessionEvent>, after: LogState.LogState) =>
      Effect.onError(commit([...waiting, ...events], after), () =>
        Effect.sync(() => {
          waiting = []
          state = committed
        }))

    const commitWaiting = Effect.suspend(() => waiting.length === 0 ? Effect.void : commit(waiting, state))

    /** Remembers of a commit when it was, and lets the next one wait the longer the longer it took. */
    const timed = <E>(now: number, committing: Effect.Effect<void, E>): Effect.Effect<void, E> =>
      Effect.andThen(committing, Effect.map(Clock.currentTimeMillis, (then) => {
        committedAt = now
        pause = Math.min(maxBatchMillis, Math.max(batchMillis, (then - now) * commitShare))
      }))

    /** Commits what waits by then. Where that fails it waits on, for whatever comes next. */
    const late = Effect.suspend(() => Effect.sleep(pause)).pipe(
      Effect.andThen(Effect.suspend(() => {
        isTimed = false
        return Effect.uninterruptible(Semaphore.withPermits(lock, 1)(Effect.flatMap(Clock.currentTimeMillis, (now) => timed(now, commitWaiting))))
      })),
      Effect.catchCause((cause) => Effect.logDebug(`pieces of session ${id} wait on: they could not be committed`, cause))
    )

    /** The bodies as the next events, with the state after each, or why they may not enter. */
    const entering = (bodies: ReadonlyArray<SessionEvent.Body>, now: number): Result.Result<{
      readonly events: ReadonlyArray<SessionEvent.SessionEvent>
      readonly after: LogState.LogState
    }, string> => {
      const events: Array<SessionEvent.SessionEvent> = []
      let after = state
      for (const body of bodies) {
        const made = eventOf(body, after.next, now)
        if (Result.isFailure(made)) return Result.fail(made.failure)
        const next = LogState.next(after, made.success)
        if (Result.isFailure(next)) return Result.fail(`${body.type} may not stand at ${made.success.seq}: ${next.failure.message}`)
        events.push(made.success)
        after = next.success
      }
      return Result.succeed({ events, after })
    }

    /** Takes bodies in. Only one alone may wait for others. */
    const take = (bodies: ReadonlyArray<SessionEvent.Body>, mayWait: boolean): Effect.Effect<ReadonlyArray<SessionEvent.SessionEvent>, StoreError> =>
      Effect.gen(function*() {
        if ((yield* Tellings).some((telling) => telling.log === self && !telling.isOver)) {
          return yield* refuse(`${bodies[0]?.type} was appended by an observer of the same log`)
        }
        const now = yield* Clock.currentTimeMillis
        return yield* Semaphore.withPermits(lock, 1)(Effect.suspend(() => {
          const entered = entering(bodies, now)
          if (Result.isFailure(entered)) return Effect.fail(refuse(entered.failure))
          const { after, events } = entered.success
          const [event] = events
          if (event === undefined) return Effect.succeed(events)
          const waits = mayWait && event.type === "assistant/chunk" && !isFailing && !isClosed && waiting.length < maxBatch - 1 &&
            (waiting.length > 0 || now - committedAt < pause)
          if (!waits) return Effect.as(timed(now, commitWith(events, after)), events)
          state = after
          waiting.push(event)
          if (isTimed) return Effect.succeed(events)
          isTimed = true
          return Effect.as(Effect.forkIn(late, scope), events)
        }))
      }).pipe(Effect.uninterruptible)

    const append: SessionLog["append"] = (body) =>
      // One body in, one event out.
      Effect.map(take([body], true), ([event]) => event as SessionEvent.SessionEvent)

    const flush = Effect.uninterruptible(Semaphore.withPermits(lock, 1)(commitWaiting))

    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        isClosed = true
        return Effect.catchCause(flush, (cause) => Effect.logError(`the last pieces of session ${id} could not be written`, cause))
      })
    )

    return {
      writer,
      append,
      appendAll: (bodies) => take(bodies, false),
      flush,
      observe: (observer) =>
        Effect.suspend(() => {
          // Of its own, so that one that observes twice is called twice, until each of its scopes closes.
          const own = (event: SessionEvent.SessionEvent) => observer(event)
          return Effect.asVoid(Effect.acquireRelease(
            Effect.sync(() => observers.add(own)),
            () => Effect.sync(() => observers.delete(own))
          ))
        }),
      lastTurn: () => committed.lastTurn,
      openTurn: () => committed.open?.number,
      dangling: () => LogState.dangling(committed),
      messages: () => Surface.messages(surface),
      binding: () => binding
    }
  })
