/**
 * The durable engine of a session: one turn after the other, from an inbox that
 * survives, into a log where every turn has one ending.
 *
 * The order in every turn is `turn/start`, `inbox/claimed`, `step/start`, the
 * messages, and only when these are on disk what the turn itself brings; then
 * `step/end` and `turn/end`, whatever fails, throws or is interrupted. A failed
 * turn ends itself and nothing else: the driver goes idle and lives on.
 *
 * Work comes as receipts. A `followup` is a prompt for a turn of its own; a
 * `steer` joins the step that comes next; both wake an idle driver. An `inject`
 * waits for the next step and wakes nobody. A turn takes all that waits for the
 * next step, and then one prompt.
 */
import { Failure, type InboxEntry, type SessionEvent, type Verdict } from "@turnpike/contract"
import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as Cancel from "./Cancel.ts"
import * as DiscardRequests from "./internal/discardRequests.ts"
import * as Enclosure from "./internal/enclosure.ts"
import * as SessionStore from "./SessionStore.ts"

type Receipt = InboxEntry.Receipt
type StoreError = SessionStore.SessionStoreError

/** What the driver needs of a session's log. */
export type Log = Enclosure.Log

/** A turn whose beginning is in the log, on disk. */
export interface OpenTurn {
  /** From 1. */
  readonly turn: number
  readonly trigger: SessionEvent.Trigger
  /** What it was begun with, in the order of the log; empty in a background turn. */
  readonly messages: ReadonlyArray<Receipt>
  /** Everything that asks this turn, and no later one, to end. */
  readonly cancel: Cancel.CancelToken
  /** Appends one event of the turn. Its caller brings steps and calls in balance. */
  readonly append: Log["append"]
  /**
   * Takes what waits for the next step, now, and writes that it was claimed. Its messages
   * are the caller's to write, each with its receipt, before anything of them leaves.
   * Takes nothing once the turn is asked to end: what comes then is for the next one.
   */
  readonly claimNextStep: Effect.Effect<ReadonlyArray<Receipt>, StoreError>
}

/**
 * Runs the inside of one turn and judges it. It hears of a cancellation by the
 * turn's token and settles then: nothing is abandoned. What it leaves open is
 * closed for it.
 */
export type Execute = (turn: OpenTurn) => Effect.Effect<Verdict.Verdict, StoreError>

/** What is decided of a claimed batch before it becomes part of the conversation. */
export type Decision =
  /**
   * All of the batch, in any order and in other words where the policy says so; or
   * nothing of it. Not a part: after a crash the rest would be taken for prompts that
   * a writer had no time for, and run. Nor what was not claimed.
   */
  | { readonly _tag: "Enter"; readonly messages: ReadonlyArray<Receipt> }
  /** The turn ends `blocked`; the batch is spent. */
  | { readonly _tag: "Reject"; readonly by: string }

export type Phase =
  | { readonly _tag: "Idle"; readonly lastTurn: number }
  | { readonly _tag: "Running"; readonly turn: number }
  | { readonly _tag: "Maintenance"; readonly lastTurn: number }
  | { readonly _tag: "Closed" }

export interface Options {
  readonly store: Pick<SessionStore.Service, "receive" | "pending" | "inboxChanged">
  readonly writer: Pick<SessionStore.Writer, "header" | "discard">
  readonly log: Log
  readonly execute: Execute
  /** Asked once a turn, after the claim. Where it fails the turn ends with an error. Everything enters unless given. */
  readonly gate?: (messages: ReadonlyArray<Receipt>) => Effect.Effect<Decision, StoreError>
  /** Whether receipts that wait from before wake it at once. */
  readonly wakeAtStart: boolean
  /** Told of what no turn of the log can tell: the log itself could not be written. */
  readonly trouble?: (error: StoreError) => Effect.Effect<void>
}

export interface CancelOptions {
  /** Whether what waits stays, parked until another wake. Otherwise it is discarded. */
  readonly keepInbox: boolean
}

export interface SessionDriver {
  readonly phase: Effect.Effect<Phase>
  /** The phases from now on, the present one first; each only when it differs from the one before. */
  readonly phases: Stream.Stream<Phase>
  /**
   * Receives a message durably, and wakes the driver unless it is an `inject`, or was
   * received before and does not wait any more. Fails with `CANCELLED` once the driver
   * is closed, and as the store's `receive` does.
   */
  readonly send: (message: SessionStore.Message) => Effect.Effect<SessionStore.Received, StoreError>
  /**
   * Writes a text as a turn of its own, without a model call, and answers its
   * number. While a turn runs, or is about to, the text is parked like any other
   * `inject`, and the answer is `undefined`. Fails with `CANCELLED` once the driver is
   * closed, and as the log does where the text is not in it; its turn is ended then.
   */
  readonly injectAsTurn: (text: string, source: string) => Effect.Effect<number | undefined, StoreError>
  /** Wakes the driver for what is parked. */
  readonly wake: Effect.Effect<void>
  /** Asks the running turn to end. Does nothing, and arms nothing, where none runs. */
  readonly cancel: (request: Cancel.Request, options: CancelOptions) => Effect.Effect<void>
  /** Discards a receipt where it waits, and answers whether it did. */
  readonly takeBack: (id: InboxEntry.ReceiptId, by: string) => Effect.Effect<boolean, StoreError>
  /** Completes when no activity remains, also none that began while this waited. */
  readonly whenIdle: Effect.Effect<void>
  /** Runs a job while no turn can begin. Fails with `SESSION_BUSY` where the driver is not idle. Wakes wait behind it. */
  readonly maintain: <A, E, R>(job: Effect.Effect<A, E, R>) => Effect.Effect<A, E | StoreError, R>
  /** Runs what the harness does on its own account as a turn, as soon as none runs. Prompts wait meanwhile. */
  readonly background: (execute: Execute) => Effect.Effect<void>
}

/** One activity of the driver: turns from one wake to the next rest. */
interface Activity {
  cancel: Cancel.CancelToken
  /** Whether it will not look into the inbox again by itself. */
  settling: boolean
  /** Whether somebody woke it when it was settling, or cancelled. */
  wakeRequested: boolean
}

/** What the inside of a turn comes to, and whether the next turn may follow it without another wake. */
interface Outcome {
  readonly verdict: Verdict.Verdict
  readonly goesOn: boolean
}

/** How long after a failure the inbox is looked into again. */
const watchAgain: Duration.Input = "1 second"

/** Failures that no later look is spared. */
const lasting: ReadonlySet<Failure.FailureCode> = new Set(["FORMAT_UNSUPPORTED", "SESSION_BUSY", "SESSION_DAMAGED", "SESSION_UNKNOWN"])

const failed = (failure: Failure.Failure) => new SessionStore.SessionStoreError({ failure })

const numberOf = (phase: Phase): number | undefined =>
  phase._tag === "Closed" ? undefined : phase._tag === "Running" ? phase.turn : phase.lastTurn

const isSame = (one: Phase, other: Phase): boolean => one._tag === other._tag && numberOf(one) === numberOf(other)

const emptyTurn: Outcome = { verdict: { type: "completed" }, goesOn: false }

/** What a claim takes: all that waits for the next step, then one prompt. */
export const claimable = (pending: SessionStore.Pending): ReadonlyArray<Receipt> => [
  ...pending.nextStep,
  ...pending.nextTurn.slice(0, 1)
]

const isThere = ({ nextStep, nextTurn }: SessionStore.Pending, { id }: Receipt): boolean =>
  [...nextTurn, ...nextStep].some((receipt) => receipt.id === id)

/** Whether a decision holds each of the claimed receipts once, and no other. */
const isWhole = (claimed: ReadonlyArray<Receipt>, entering: ReadonlyArray<Receipt>): boolean => {
  const ids = new Set(entering.map(({ id }) => id))
  return ids.size === entering.length && ids.size === claimed.length && claimed.every(({ id }) => ids.has(id))
}

const isWaking = (receipt: Receipt): boolean => receipt.kind !== "inject"

const internal = (cause: Cause.Cause<unknown>): Verdict.Verdict => {
  const squashed = Cause.squash(cause)
  return {
    type: "error",
    error: squashed instanceof SessionStore.SessionStoreError
      ? squashed.failure
      : Failure.make("INTERNAL", `the turn broke: ${squashed instanceof Error ? squashed.message : String(squashed)}`)
  }
}

/**
 * Makes the driver of a session that the caller holds. It belongs to the scope:
 * when that closes, the running turn is cut off and settles, and what waits in
 * the inbox stays there.
 */
export const make = (options: Options): Effect.Effect<SessionDriver, StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const { execute, log, store, writer } = options
    const { id } = writer.header
    // Of its own: what runs in it is asked to settle before it is cut off.
    const fibers = yield* Scope.make()
    const phase = yield* SubscriptionRef.make<Phase>({ _tag: "Idle", lastTurn: log.lastTurn() })
    const idle = yield* Latch.make(true)
    /** Claims and discards, which must not meet. */
    const inbox = yield* Semaphore.make(1)
    /** Receipts that were there at the last look: only others wake a driver that has parked. */
    let seen = new Set<string>()
    /** The inbox as it was at the last look. */
    let version = 0
    let activity: Activity | undefined
    let maintenance: { wakeRequested: boolean } | undefined
    let closed = false
    /** Whether what waits is to wait for another wake. */
    let parked = false
    /** The verdict of a turn whose end could not be written. */
    let owed: Verdict.Verdict | undefined
    const waitingBackground: Array<Execute> = []

    const setPhase = (next: Phase) =>
      Effect.flatMap(SubscriptionRef.get(phase), (present) =>
        isSame(present, next) ? Effect.void : SubscriptionRef.set(phase, next))

    /** Looks into the inbox, after what somebody wants to be discarded is. */
    const look = Effect.tap(DiscardRequests.heeded(store, writer), (pending) =>
      Effect.sync(() => {
        seen = new Set([...pending.nextTurn, ...pending.nextStep].map((receipt) => receipt.id))
        version = pending.version
      }))

    const hasWork = (pending: SessionStore.Pending) => [...pending.nextTurn, ...pending.nextStep].some(isWaking)

    const claim = (turn: number, choose: (pending: SessionStore.Pending) => Effect.Effect<ReadonlyArray<Receipt>>) =>
      Effect.gen(function*() {
        const chosen = yield* choose(yield* look)
        yield* Enclosure.claim(log, turn, chosen)
        return chosen
      }).pipe(Semaphore.withPermits(inbox, 1), Effect.uninterruptible)

    /** What a turn takes for a step after its first: nothing once it is cancelled, since what is sent then is not for it. */
    const claimNextStep = (turn: number, cancel: Cancel.CancelToken) =>
      claim(turn, ({ nextStep }) => Effect.map(cancel.requests, (requests) => requests.length > 0 ? [] : nextStep))

    const stopped = (cancel: Cancel.CancelToken) =>
      Effect.map(cancel.requests, (requests): Verdict.Verdict | undefined => {
        const request = Cancel.strongest(requests)
        return request === undefined ? undefined : { type: "aborted", ...request }
      })

    /** Writes the end of the open turn, and before it whatever is open in it. */
    const end = (verdict: Verdict.Verdict): Effect.Effect<void, StoreError> =>
      Effect.suspend(() => {
        owed = verdict
        return Effect.onExit(Enclosure.end(log, verdict), (exit) =>
          Effect.sync(() => {
            // That it could not be written is what is told of the turn, and what its log says once it can.
            owed = Exit.isSuccess(exit) ? undefined : verdict.type === "error" ? verdict : internal(exit.cause)
          }))
      })

    /** Tells of a failure that the log cannot hold. */
    const trouble = (what: string) => (cause: Cause.Cause<StoreError>): Effect.Effect<void> => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.void
      const squashed = Cause.squash(cause)
      const told = squashed instanceof SessionStore.SessionStoreError && options.trouble !== undefined
        ? options.trouble(squashed)
        : Effect.void
      return Effect.andThen(Effect.logError(`session ${id}: ${what}`, cause), told)
    }

    /** Runs what stands between a turn's two boundaries. It may be interrupted; the boundary is not. */
    const bracket = (
      trigger: SessionEvent.Trigger,
      inside: (turn: number, trigger: SessionEvent.Trigger) => Effect.Effect<Outcome, StoreError>
    ): Effect.Effect<boolean, StoreError> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function*() {
          // A turn whose end could not be written has it before the next one begins.
          if (owed !== undefined) yield* end(owed)
          const turn = yield* Enclosure.open(log, trigger)
          yield* setPhase({ _tag: "Running", turn })
          const exit = yield* Effect.exit(restore(inside(turn, trigger)))
          // The log says of a turn that breaks while its session is closed that it was closed; what broke is told here.
          if (closed && Exit.isFailure(exit)) yield* trouble("a turn failed while the session was closed")(exit.cause)
          yield* end(
            Exit.isSuccess(exit)
              ? exit.value.verdict
              : closed || Cause.hasInterruptsOnly(exit.cause)
              ? { type: "aborted", cause: "disposed", mode: "hard" }
              : internal(exit.cause)
          )
          return Exit.isSuccess(exit) && exit.value.goesOn
        })
      )

    /** One turn of prompts. Answers whether the next may follow without another wake. */
    const promptTurn = (cancel: Cancel.CancelToken, source: string): Effect.Effect<boolean, StoreError> =>
      bracket({ kind: "message", source }, (turn, trigger) =>
        Effect.gen(function*() {
          const claimed = yield* claim(turn, (pending) => Effect.succeed(claimable(pending)))
          if (claimed.length === 0) return emptyTurn
          const decision: Decision = options.gate === undefined
            ? { _tag: "Enter", messages: claimed }
            : yield* options.gate(claimed)
          if (decision._tag === "Reject") return { verdict: { type: "blocked", by: decision.by }, goesOn: false }
          if (decision.messages.length === 0) return emptyTurn
          if (!isWhole(claimed, decision.messages)) {
            return yield* failed(Failure.make("LOG_RULE", `the policy of session ${id} lets in other messages than turn ${turn} claimed`))
          }
          const before = yield* stopped(cancel)
          if (before !== undefined) return { verdict: before, goesOn: false }
          yield* Enclosure.admit(log, decision.messages)
          const verdict = yield* execute({
            turn,
            trigger,
            messages: decision.messages,
            cancel,
            append: log.append,
            claimNextStep: claimNextStep(turn, cancel)
          })
          return { verdict, goesOn: verdict.type !== "error" && verdict.type !== "aborted" }
        }))

    const backgroundTurn = (cancel: Cancel.CancelToken, execute: Execute): Effect.Effect<boolean, StoreError> =>
      bracket({ kind: "background" }, (turn, trigger) =>
        Effect.gen(function*() {
          yield* Enclosure.admit(log, [])
          const verdict = yield* execute({ turn, trigger, messages: [], cancel, append: log.append, claimNextStep: claimNextStep(turn, cancel) })
          return { verdict, goesOn: true }
        }))

    /** Turns until nothing may follow. The first one of a wake is run whatever has become of its prompt. */
    const drive = (current: Activity, isWoken: boolean): Effect.Effect<void> =>
      Effect.gen(function*() {
        for (let isFirst = isWoken; !closed;) {
          const background = waitingBackground.shift()
          if (background !== undefined) yield* backgroundTurn(current.cancel, background)
          else {
            // From before this look on a wake counts: what it came for may be missed by the look.
            current.settling = true
            // Not looked: what came since the turn is to be new to whoever watches the inbox.
            if (!isFirst && parked) return
            const pending = yield* look
            if (!isFirst && !hasWork(pending)) return
            isFirst = false
            current.settling = false
            current.wakeRequested = false
            const [next] = [...pending.nextTurn, ...pending.nextStep.filter(isWaking)]
            if (!(yield* promptTurn(current.cancel, next?.source ?? "user"))) {
              parked = true
              current.settling = true
            }
          }
          // The authority to cancel never carries into the next turn.
          if ((yield* current.cancel.requests).length > 0) return
          current.cancel = yield* Cancel.make
        }
      }).pipe(
        Effect.catchCause((cause) => {
          parked = true
          return trouble("a turn could not be brought to its end in the log")(cause)
        })
      )

    /** Begins an activity: at the call, so that nobody comes between whoever found the driver idle and this. */
    const start = (isWoken: boolean): Effect.Effect<void> => {
      const current: Activity = { cancel: Cancel.makeUnsafe(), settling: false, wakeRequested: false }
      activity = current
      idle.closeUnsafe()
      if (isWoken) parked = false
      return setPhase({ _tag: "Running", turn: log.lastTurn() + 1 }).pipe(
        Effect.andThen(Effect.forkIn(Effect.ensuring(drive(current, isWoken), rest(current)), fibers)),
        Effect.asVoid,
        Effect.uninterruptible
      )
    }

    /** Goes idle, or begins again for a wake that came too late for the activity that is over. */
    const rest = (current: Activity): Effect.Effect<void> =>
      Effect.gen(function*() {
        current.settling = true
        do {
          if (!closed && current.wakeRequested) {
            current.wakeRequested = false
            const pending = yield* Effect.exit(look)
            if (Exit.isSuccess(pending) && hasWork(pending.value)) return yield* start(true)
          }
          if (!closed && waitingBackground.length > 0) return yield* start(false)
          if (!closed) yield* setPhase({ _tag: "Idle", lastTurn: log.lastTurn() })
          // Whoever came since the last look is served; from here to the end nobody can come.
        } while (!closed && (current.wakeRequested || waitingBackground.length > 0))
        activity = undefined
        idle.openUnsafe()
      })

    const wake: Effect.Effect<void> = Effect.suspend(() => {
      if (closed) return Effect.void
      if (maintenance !== undefined) {
        maintenance.wakeRequested = true
        return Effect.void
      }
      const current = activity
      if (current === undefined) return start(true)
      // A driver that runs takes what waits by itself; one that settles, or was cancelled, is told to look again.
      return Effect.map(current.cancel.requests, (requests) => {
        if (current.settling || requests.length > 0) current.wakeRequested = true
      })
      // What begins an activity is not left between its two halves.
    }).pipe(Effect.uninterruptible)

    const endMaintenance: Effect.Effect<void> = Effect.suspend(() => {
      const ending = maintenance
      const over = (): Effect.Effect<void> => {
        const woken = ending?.wakeRequested === true
        maintenance = undefined
        if (!closed && (woken || waitingBackground.length > 0)) return start(woken)
        idle.openUnsafe()
        return Effect.void
      }
      return Effect.andThen(closed ? Effect.void : setPhase({ _tag: "Idle", lastTurn: log.lastTurn() }), Effect.suspend(over))
    })

    const send = (message: SessionStore.Message): Effect.Effect<SessionStore.Received, StoreError> =>
      Effect.gen(function*() {
        if (closed) return yield* closedError
        const { received, waits } = yield* Semaphore.withPermits(inbox, 1)(Effect.gen(function*() {
          const received = yield* store.receive(id, message)
          seen.add(received.receipt.id)
          if (received.isNew) return { received, waits: true }
          const pending = yield* Effect.exit(store.pending(id))
          return { received, waits: Exit.isFailure(pending) || isThere(pending.value, received.receipt) }
        }))
        // One that was received before and is gone has had its turn.
        if (waits && isWaking(received.receipt)) yield* wake
        return received
      }).pipe(Effect.uninterruptible)

    const closedError = failed(Failure.make("CANCELLED", `session ${id} is closed`))

    const watch: Effect.Effect<void> = Effect.gen(function*() {
      while (true) {
        yield* store.inboxChanged(id, version)
        const { known, pending } = yield* Semaphore.withPermits(inbox, 1)(Effect.suspend(() => {
          const known = seen
          return Effect.map(look, (pending) => ({ known, pending }))
        }))
        if ([...pending.nextTurn, ...pending.nextStep].some((receipt) => isWaking(receipt) && !known.has(receipt.id))) yield* wake
      }
    }).pipe(Effect.catch((error) => {
      const ends = lasting.has(error.failure.code)
      return Effect.andThen(
        Effect.logWarning(`session ${id}: ${ends ? "its inbox cannot be watched any more" : "its inbox could not be looked into, which is tried again"}`, error),
        ends ? Effect.void : Effect.andThen(Effect.sleep(watchAgain), Effect.suspend(() => watch))
      )
    }))

    yield* Effect.addFinalizer(() =>
      Effect.gen(function*() {
        closed = true
        const current = activity
        if (current !== undefined) yield* current.cancel.request({ cause: "disposed", mode: "hard" })
        yield* idle.await
        yield* setPhase({ _tag: "Closed" })
        yield* Scope.close(fibers, Exit.void)
      })
    )
    const before = yield* look
    if (options.wakeAtStart && hasWork(before)) yield* start(true)
    yield* Effect.forkIn(watch, fibers)

    return {
      phase: SubscriptionRef.get(phase),
      phases: SubscriptionRef.changes(phase),
      send,
      injectAsTurn: (text, source) =>
        Effect.gen(function*() {
          if (closed) return yield* closedError
          if (activity !== undefined || maintenance !== undefined) {
            yield* send({ kind: "inject", text, source })
            return undefined
          }
          const turn = log.lastTurn() + 1
          idle.closeUnsafe()
          maintenance = { wakeRequested: false }
          let told: Exit.Exit<unknown, StoreError> = Exit.void
          yield* bracket({ kind: "injection", source }, () =>
            log.append({ type: "context/message", data: { text, source }, surface_op: "append" }).pipe(
              Effect.onExit((exit) =>
                Effect.sync(() => {
                  told = exit
                })),
              Effect.as({ verdict: { type: "completed" }, goesOn: false } as const)
            )).pipe(Effect.ensuring(endMaintenance))
          yield* told
          return turn
        }).pipe(Effect.uninterruptible),
      wake,
      cancel: (request, { keepInbox }) =>
        Effect.gen(function*() {
          const current = activity
          if (current === undefined) return
          if (!keepInbox) {
            current.wakeRequested = false
            yield* Effect.gen(function*() {
              const pending = yield* look
              const ids = [...pending.nextStep, ...pending.nextTurn].map((receipt) => receipt.id)
              if (ids.length > 0) yield* writer.discard(ids, "cancelled", request.cause)
            }).pipe(
              Semaphore.withPermits(inbox, 1),
              // The turn is to end all the same.
              Effect.catchCause((cause) => Effect.logError(`session ${id}: what waits could not be discarded, and waits on`, cause))
            )
          }
          yield* current.cancel.request(request)
        }).pipe(Effect.uninterruptible),
      takeBack: (receipt, by) =>
        Effect.map(
          Semaphore.withPermits(inbox, 1)(Effect.suspend(() => writer.discard([receipt], "cancelled", by))),
          (discarded) => discarded.length > 0
        ),
      whenIdle: idle.await,
      maintain: <A, E, R>(job: Effect.Effect<A, E, R>) =>
        Effect.uninterruptibleMask((restore) => Effect.suspend((): Effect.Effect<A, E | StoreError, R> => {
          if (closed) return Effect.fail(closedError)
          if (activity !== undefined || maintenance !== undefined) {
            return Effect.fail(failed(Failure.make("SESSION_BUSY", `session ${id} is not idle`)))
          }
          idle.closeUnsafe()
          maintenance = { wakeRequested: false }
          return Effect.andThen(
            setPhase({ _tag: "Maintenance", lastTurn: log.lastTurn() }),
            Effect.ensuring(restore(job), endMaintenance)
          )
        })),
      background: (execute) =>
        Effect.suspend(() => {
          if (closed) return Effect.void
          waitingBackground.push(execute)
          return activity === undefined && maintenance === undefined ? start(false) : Effect.void
        }).pipe(Effect.uninterruptible)
    }
  })
