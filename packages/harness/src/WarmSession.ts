/**
 * A session whose process stays alive between its turns.
 *
 * The process is started when the session opens and belongs to the session's
 * scope. It hears one prompt at a time: a turn's stream holds the session until
 * it has ended. A process that was lost is started again, with resume, when the
 * next turn begins.
 *
 * What a reader does not take stops the process, by way of its pipe: nothing is
 * dropped and nothing piles up. Frames that come between turns are kept, up to
 * {@link maxHeld}, as notices of the next turn.
 */
import { type Scalars, TurnEvent } from "@turnpike/contract"
import { type Harness, type HarnessError, type Permission, type Prompt, type Redaction, TurnError } from "@turnpike/kernel"
import type { Child, Command, ProcessError } from "@turnpike/process"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type * as Dialect from "./Dialect.ts"
import * as Failures from "./Failures.ts"
import * as Frame from "./Frame.ts"
import * as Asks from "./internal/asks.ts"
import * as LiveProcess from "./internal/liveProcess.ts"
import * as LiveTurn from "./internal/liveTurn.ts"
import * as OwnTurns from "./internal/ownTurns.ts"
import * as Notices from "./Notices.ts"

/** The most notices that are kept between two turns: 64. The rest is counted. */
export const maxHeld = 64

export interface Options<State> {
  readonly sessionId: Scalars.SessionId
  readonly dialect: Dialect.Dialect<State>
  /** Starts a process that belongs to the scope. */
  readonly spawn: (command: Command.Command) => Effect.Effect<Child.Child, ProcessError.ProcessError, Scope.Scope>
  readonly resume: Harness.Resume | undefined
  readonly permission: Permission.Decider
  readonly redact: Redaction.Redactor
}

const closedUnderTurn = TurnError.io("the session was closed while the turn ran")
const sessionClosed = TurnError.io("the session is closed; open it again to go on")

/**
 * Opens a session. Fails with `SessionLost` where the harness no longer has the
 * session to be resumed and `resume.onLost` is `fail`. When it fails or is
 * interrupted, nothing is left running.
 */
export const open = <State>(
  options: Options<State>
): Effect.Effect<Harness.HarnessSession, HarnessError.HarnessError, Scope.Scope> =>
  Effect.gen(function*() {
    const { dialect, redact } = options
    // Of its own, so that the session's `close` runs before any of its processes is closed.
    const sessionScope = yield* Scope.fork(yield* Effect.scope)
    const lock = yield* Semaphore.make(1)
    const idle = yield* Latch.make(true)

    let harnessSessionId = options.resume?.harnessSessionId
    /** Whether the harness is known to hold history that a fresh session would lose. */
    let hasHistory = options.resume !== undefined
    let current: LiveTurn.LiveTurn<State> | undefined
    /** Sends the last turn's prompt. */
    let prompting: Fiber.Fiber<void> | undefined
    let closed = false
    let held: Array<TurnEvent.Of<"notice">> = []
    let notKept = 0
    /** What the next prompt has to tell a harness that lost its history. */
    let untold: Effect.Effect<string | undefined> | undefined
    const killed: Array<Harness.CloseReport["killed"][number]> = []
    const survivors: Array<Harness.CloseReport["survivors"][number]> = []
    const lostTasks = new Map<string, TurnEvent.BackgroundTask>()
    const problems: Array<string> = []

    const hold = (notice: TurnEvent.Of<"notice">) => {
      if (held.length < maxHeld) held.push(notice)
      else notKept++
    }

    const deliver = (
      live: LiveProcess.LiveProcess<State>,
      turn: LiveTurn.LiveTurn<State> | undefined,
      event: Dialect.Event
    ) =>
      Effect.suspend(() => {
        if (turn !== undefined) return Effect.asVoid(Queue.offer(turn.queue, event))
        // The last words of a process that was cut off belong to the turn that was cut off with it.
        if (live.gone || event.type === "assistant/chunk") return Effect.void
        hold(event.type === "notice" ? event : Notices.lateFrame({ type: event.type, data: { ...event.data } }, redact))
        return Effect.void
      })

    /** The process can no longer be used; its tasks are gone with it. */
    const lose = (live: LiveProcess.LiveProcess<State>) => {
      live.gone = true
      for (const task of live.tasks) lostTasks.set(task.id, task)
      live.tasks = []
      live.busy = false
      idle.openUnsafe()
    }

    /** Ends what is left of a process and adds what was found, once. */
    const retire = (live: LiveProcess.LiveProcess<State>) =>
      Effect.suspend(() => {
        lose(live)
        const first = !live.retired
        live.retired = true
        return Effect.map(live.child.close, (report) => {
          if (!first) return
          const seen = (list: Child.KillReport["killed"]) => list.map(({ pid, command }) => ({ pid, command }))
          killed.push(...seen(report.killed))
          survivors.push(...seen(report.survivors))
          if (report.suspects.length > 0) {
            problems.push(
              `${report.suspects.length} processes may come from ${dialect.harness} and were left alone: ${
                report.suspects.map(({ pid, command }) => `${pid} ${command}`).join("; ")
              }`
            )
          }
        })
      })

    const discard = (live: LiveProcess.LiveProcess<State>) =>
      Effect.andThen(retire(live), Scope.close(live.scope, Exit.void))

    /** The hard stop: TERM for a moment, then KILL, then everything that descends from it. */
    const kill = (live: LiveProcess.LiveProcess<State>) =>
      Effect.suspend(() => {
        lose(live)
        return live.child.terminate([{ signal: "SIGTERM", waitMs: 500 }])
      }).pipe(Effect.andThen(discard(live)), Effect.uninterruptible)

    const fail = (turn: LiveTurn.LiveTurn<State>, error: TurnError.TurnError) =>
      Effect.suspend(() => {
        turn.over = true
        return Queue.fail(turn.queue, error)
      })

    /** Sends, and fails the turn where the process lives but does not listen any more. */
    const send = (live: LiveProcess.LiveProcess<State>, frame: Frame.Frame) =>
      live.peer.send(frame).pipe(Effect.catch((error) =>
        Effect.sync(() => {
          live.deaf = error.message
        }).pipe(
          Effect.andThen(Effect.forkIn(giveUp(live), sessionScope)),
          Effect.asVoid
        )
      ))

    /** A process that has gone is noticed by the end of its output; one that only stopped listening is not. */
    const giveUp = (live: LiveProcess.LiveProcess<State>): Effect.Effect<void> =>
      Effect.sleep("2 seconds").pipe(Effect.andThen(Effect.suspend(() => {
        const turn = current
        if (live.silent || turn === undefined || turn.live !== live || turn.over) return Effect.void
        turn.over = true
        return Effect.andThen(kill(live), fail(turn, TurnError.io(`${dialect.harness} does not read its input: ${live.deaf}`)))
      })))

    const ask = (live: LiveProcess.LiveProcess<State>, turn: LiveTurn.LiveTurn<State> | undefined, output: Extract<Dialect.Output, { _tag: "Ask" }>) =>
      Asks.ask({
        output,
        open: turn?.asks ?? live.asks,
        decider: options.permission,
        deliver: (event) => turn === undefined ? Effect.void : deliver(live, turn, event),
        send: (frame) => send(live, frame),
        scope: live.scope
      })

    /** The turn that hears what a process says. */
    const hearing = (live: LiveProcess.LiveProcess<State>) => current?.live === live && !current.over ? current : undefined

    /**
     * Takes the conversation one step further; several fibers do so, hence in one go.
     * What comes of it is for the turn that runs now, though another one may begin
     * before all of it is performed.
     */
    const advance = (
      live: LiveProcess.LiveProcess<State>,
      step: (state: State) => Dialect.Step<State>
    ): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (live.state === undefined) return Effect.void
        const { outputs, state } = step(live.state)
        live.state = state
        let turn = hearing(live)
        return Effect.forEach(outputs, (output) =>
          output._tag === "Own"
            ? Effect.map(ownTurns.begin(live), () => {
              turn = hearing(live)
            })
            : perform(live, turn?.over === true ? undefined : turn, output), { discard: true })
      })

    const perform = (
      live: LiveProcess.LiveProcess<State>,
      turn: LiveTurn.LiveTurn<State> | undefined,
      output: Exclude<Dialect.Output, { _tag: "Own" }>
    ): Effect.Effect<void> => {
      switch (output._tag) {
        case "Event":
          return deliver(live, turn, output.event)
        case "Send":
          return send(live, output.frame)
        case "Ask":
          return ask(live, turn, output)
        case "Withdraw":
          return Asks.withdraw(turn?.asks ?? live.asks, output.requestId)
        case "Late":
          return deliver(live, turn, Notices.lateFrame(output.frame, redact))
        case "Session":
          return Effect.sync(() => {
            harnessSessionId = output.harnessSessionId
          })
        case "Tasks":
          return Effect.sync(() => {
            live.tasks = output.tasks
            settle(live)
          })
        case "Busy":
          return Effect.sync(() => {
            live.busy = output.busy
            settle(live)
          })
        case "End":
        case "Fail":
        case "Kill":
          if (turn === undefined) return Effect.void
          turn.over = true
          return Effect.map(Effect.forkIn(finish(live, turn, output), sessionScope), (fiber) => {
            turn.finishing = fiber
          })
      }
    }

    const settle = (live: LiveProcess.LiveProcess<State>) => {
      if (live.gone || (live.tasks.length === 0 && !live.busy)) idle.openUnsafe()
      else idle.closeUnsafe()
    }

    /** Brings a turn to its one ending, once what it left behind is gone. */
    const finish = (
      live: LiveProcess.LiveProcess<State>,
      turn: LiveTurn.LiveTurn<State>,
      output: Extract<Dialect.Output, { _tag: "End" | "Fail" | "Kill" }>
    ): Effect.Effect<void> =>
      Effect.gen(function*() {
        yield* Asks.cancelAll(turn.asks)
        if (output._tag === "Kill") {
          yield* kill(live)
          yield* fail(turn, TurnError.reported(output.failure))
          return
        }
        hasHistory = true
        const exit = dialect.oneTurnPerProcess ? yield* LiveProcess.endByItself(live, dialect.endOfInput) : undefined
        if (live.tasks.length === 0) {
          const report = yield* LiveProcess.sweep(live, turn.mark)
          if (report.killed.length > 0) {
            killed.push(...report.killed.map(({ pid, command }) => ({ pid, command })))
            yield* deliver(live, turn, LiveTurn.leftovers(report.killed))
          }
          // What cannot be killed from outside goes with the process.
          if (report.survivors.length > 0) yield* kill(live)
        }
        if (dialect.oneTurnPerProcess && exit === undefined) yield* kill(live)
        if (output._tag === "Fail") {
          yield* fail(turn, TurnError.reported(output.failure))
          return
        }
        const code = exit?.code ?? (live.gone ? live.exit?.code : undefined)
        yield* Queue.offer(
          turn.queue,
          TurnEvent.make("harness/end", code === undefined || code === null ? output.end : { ...output.end, exit_code: code })
        )
        yield* Queue.end(turn.queue)
      }).pipe(
        Effect.catchCause((cause) =>
          Cause.hasInterruptsOnly(cause) ? Effect.void : Queue.failCause(turn.queue, cause)
        ),
        Effect.asVoid
      )

    const receive = (live: LiveProcess.LiveProcess<State>, item: Frame.Received): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (live.state === undefined) return LiveProcess.early(live, item, dialect)
        if (item._tag === "Frame") return advance(live, (state) => dialect.frame(state, item.frame))
        const turn = hearing(live)
        const told = deliver(live, turn, Notices.unreadable(item, redact))
        const beginning = turn === undefined ? undefined : Frame.beginning(item)
        return beginning === undefined || !dialect.needed(beginning)
          ? told
          : Effect.andThen(told, perform(live, turn, { _tag: "Kill", failure: Failures.unread(dialect.harness, item) }))
      })

    /** The process's output has ended: nothing more will be heard of it. */
    const gone = (live: LiveProcess.LiveProcess<State>) =>
      Effect.gen(function*() {
        live.silent = true
        const expected = live.gone || closed
        const evidence = yield* LiveProcess.evidence(live)
        live.exit = evidence.exit
        if (live.state === undefined || expected) return
        lose(live)
        const turn = current
        if (turn === undefined || turn.live !== live || turn.over) return
        turn.over = true
        yield* Asks.cancelAll(turn.asks)
        yield* retire(live)
        const failure = dialect.died(evidence) ?? Failures.death(dialect.harness, evidence, redact)
        yield* fail(turn, TurnError.exec(failure))
      }).pipe(Effect.ensuring(Deferred.succeed(live.over, undefined)))

    const launch = (how: Dialect.Launch) =>
      LiveProcess.start({ how, dialect, spawn: options.spawn, sessionScope, receive, gone, redact })

    /** Starts a process for the session, by the caller's policy where the harness has lost it. */
    const start: Effect.Effect<LiveProcess.LiveProcess<State>, HarnessError.HarnessError> = Effect.suspend(() =>
      harnessSessionId === undefined
        ? launch({ _tag: "Begin" })
        : launch({ _tag: "Resume", harnessSessionId }).pipe(
          Effect.catch((error) => {
            if (error.reason._tag !== "SessionLost" || (onLost === "fail" && hasHistory)) return Effect.fail(error)
            beginAgain(error.message)
            return launch({ _tag: "Begin" })
          })
        )
    )

    /** The harness's next session knows nothing of this one, unless it is told. */
    const beginAgain = (why: string) => {
      harnessSessionId = undefined
      untold = onLost === "replay" ? options.resume?.history : undefined
      hold(untold === undefined
        ? Notices.make("fresh_session", `${why}; the session goes on without its history`)
        : Notices.make("replayed", `${why}; a new session is told the conversation so far`))
    }

    const onLost = options.resume?.onLost ?? "fail"
    if (options.resume !== undefined && harnessSessionId === undefined) beginAgain(`${dialect.harness} has no session with this history`)
    let live = yield* start

    /** The process to prompt: the one there is, or a new one that resumes. */
    const ready = Effect.suspend(() => live.silent ? Deferred.await(live.over) : Effect.void).pipe(Effect.andThen(Effect.suspend(() =>
      live.gone
        ? Effect.gen(function*() {
          yield* discard(live)
          const next = yield* start
          if (closed) {
            yield* discard(next)
            return yield* sessionClosed
          }
          live = next
          if (!dialect.oneTurnPerProcess) hold(Notices.make("restarted", `the process of ${dialect.harness} was started again`))
        }).pipe(Effect.mapError((error) => error._tag === "HarnessError" ? TurnError.exec(error.failure) : error))
        : Effect.void
    )))

    /** Ends a turn whose reader went away before its ending: the process goes, with all that the turn began. */
    const abandon = (turn: LiveTurn.LiveTurn<State>) =>
      Effect.gen(function*() {
        turn.over = true
        yield* Queue.shutdown(turn.queue)
        yield* Asks.cancelAll(turn.asks)
        if (turn.live !== undefined) yield* kill(turn.live)
      })

    /** Waits until a turn whose ending is decided has done what belongs to it. */
    const settled = (turn: LiveTurn.LiveTurn<State>) =>
      Queue.shutdown(turn.queue).pipe(
        Effect.andThen(Effect.suspend(() => turn.finishing === undefined ? Effect.void : Fiber.await(turn.finishing)))
      )

    /** Ends what a turn's reader leaves behind. */
    const leave = (turn: LiveTurn.LiveTurn<State>) => Effect.suspend(() => turn.over ? settled(turn) : abandon(turn))

    const runsNoMore = (turn: LiveTurn.LiveTurn<State>) => {
      if (current === turn) current = undefined
    }

    const ownTurns = OwnTurns.make<State>({
      scope: sessionScope,
      finished: Effect.suspend(() => current?.over === true && current.finishing !== undefined ? Effect.asVoid(Fiber.await(current.finishing)) : Effect.void),
      open: (turn) => {
        // Of one that is over, only its reader is not done yet.
        if (closed || current?.over === false) return false
        current = turn
        return true
      },
      close: runsNoMore,
      leave
    })

    const interruptProcess = (target: LiveProcess.LiveProcess<State>) =>
      Effect.suspend(() => {
        if (dialect.interrupt === undefined) return Effect.asVoid(target.child.signal("SIGINT"))
        // A request that overtook the prompt would find nothing to interrupt.
        const prompted = prompting === undefined ? Effect.void : Fiber.await(prompting)
        return Effect.andThen(prompted, advance(target, dialect.interrupt)).pipe(
          Effect.timeoutOption("1 second"),
          // A process that does not read its input cannot be asked through it.
          Effect.flatMap((sent) => Option.isSome(sent) ? Effect.void : Effect.asVoid(target.child.signal("SIGINT")))
        )
      })

    /** Gives the turn a process and the process its prompt. */
    const begin = (
      turn: LiveTurn.LiveTurn<State>,
      prompt: Prompt.Prompt
    ): Effect.Effect<Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>, TurnError.TurnError> =>
      Effect.gen(function*() {
        yield* ready
        const process = live
        turn.mark = yield* process.child.mark
        const told = held.splice(0)
        if (notKept > 0) told.push(Notices.make("late_frame", `${notKept} more records between the turns were not kept`))
        notKept = 0
        yield* Queue.offerAll(turn.queue, told)
        const history = untold === undefined ? undefined : yield* untold
        const asked = history === undefined ? prompt : { ...prompt, text: `${history}\n\n${prompt.text}` }
        // From here to the prompt nothing may come between: an interrupt, or the process's end.
        return yield* Effect.suspend(() => {
          if (turn.interrupted) {
            turn.over = true
            return Effect.as(
              Effect.andThen(Queue.offer(turn.queue, LiveTurn.neverBegun), Queue.end(turn.queue)),
              Stream.fromQueue(turn.queue)
            )
          }
          if (process.silent) return begin(turn, prompt)
          turn.live = process
          untold = undefined
          return Effect.forkIn(advance(process, (state) => dialect.prompt(state, asked)), process.scope, { startImmediately: true }).pipe(
            Effect.map((fiber) => {
              prompting = fiber
              return Stream.fromQueue(turn.queue)
            })
          )
        })
      })

    const runTurn = (prompt: Prompt.Prompt): Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError> =>
      Stream.unwrap(Effect.gen(function*() {
        yield* Semaphore.takeScoped(lock, 1)
        const turn = yield* LiveTurn.make<State>()
        const before: Array<TurnEvent.TurnEvent> = []
        while (ownTurns.isOpen()) before.push(...yield* ownTurns.settle)
        if (closed) return yield* sessionClosed
        current = turn
        yield* Effect.addFinalizer(() => Effect.andThen(leave(turn), Effect.sync(() => runsNoMore(turn))))
        yield* Queue.offerAll(turn.queue, before.slice(0, LiveTurn.maxWaiting / 2))
        return yield* begin(turn, prompt)
      }))

    const steer = (message: Prompt.Prompt): Effect.Effect<boolean> =>
      Effect.gen(function*() {
        const turn = current
        // A message that overtook the prompt would find no turn.
        if (prompting !== undefined) yield* Fiber.await(prompting)
        const target = turn?.live
        if (turn === undefined || turn !== current || turn.over || turn.interrupted || target?.state === undefined) return false
        const asked = dialect.steer?.(target.state, message)
        if (asked === undefined) return false
        target.state = asked.state
        const answer = yield* Effect.option(target.peer.request(asked.requestId, asked.frame, "10 seconds"))
        return Option.isSome(answer) && asked.isTaken(answer.value)
      })

    const interrupt = Effect.suspend(() => {
      const turn = current
      if (turn === undefined || turn.over || turn.interrupted) return Effect.void
      turn.interrupted = true
      const target = turn.live
      return target === undefined
        ? Effect.void
        : Effect.andThen(Asks.cancelAll(turn.asks), interruptProcess(target))
    })

    const close: Effect.Effect<Harness.CloseReport> = yield* Effect.cached(
      Effect.gen(function*() {
        closed = true
        const turn = current
        for (const task of live.tasks) lostTasks.set(task.id, task)
        if (turn !== undefined && !turn.over) {
          yield* kill(live)
          yield* fail(turn, closedUnderTurn)
        } else {
          // A program that is asked to end waits for its tasks, which are to end now.
          if (!live.gone && live.tasks.length === 0) yield* LiveProcess.endByItself(live, dialect.endOfInput)
          yield* discard(live)
        }
        idle.openUnsafe()
        if (held.length + notKept > 0) {
          yield* Effect.logDebug(`${held.length + notKept} remarks of ${dialect.harness} came after the last turn`, held)
        }
        return { killed, survivors, backgroundKilled: [...lostTasks.values()], problems }
      }).pipe(Effect.uninterruptible)
    )
    yield* Effect.addFinalizer(() => close)

    return {
      sessionId: options.sessionId,
      runTurn,
      ...(dialect.steer === undefined ? {} : { steer }),
      ...(dialect.hasOwnTurns === true ? { onOwnTurn: ownTurns.listen } : {}),
      interrupt,
      backgroundDone: idle.await,
      close
    }
  })
