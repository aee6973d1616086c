/**
 * One process of a session, from its start to its end.
 *
 * It belongs to a scope of its own within the session's. Its output is read from
 * the start on: until the handshake is done it is kept here, and looked through
 * for reasons to refuse the process; afterwards it goes to the session.
 */
import type { TurnEvent } from "@turnpike/contract"
import { type HarnessError, type Redaction } from "@turnpike/kernel"
import { type Child, type Command, type ProcessError, ProcessInfo } from "@turnpike/process"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type * as Dialect from "../Dialect.ts"
import * as Failures from "../Failures.ts"
import type * as Frame from "../Frame.ts"
import * as JsonlPeer from "../JsonlPeer.ts"
import type * as Asks from "./asks.ts"

/** A program that says more than this before it is ready is none of ours: 1000 items. */
const maxEarly = 1000

export interface LiveProcess<State> {
  readonly launch: Dialect.Launch
  readonly scope: Scope.Closeable
  readonly child: Child.Child
  readonly peer: JsonlPeer.JsonlPeer
  /** Keeps what is received in order while the handshake's leftovers are delivered. */
  readonly gate: Semaphore.Semaphore
  readonly refused: Deferred.Deferred<never, HarnessError.HarnessError>
  /** Permission requests that came outside any turn. */
  readonly asks: Asks.Asks
  early: Array<Frame.Received>
  /** Undefined until the handshake is done. */
  state: State | undefined
  tasks: ReadonlyArray<TurnEvent.BackgroundTask>
  busy: boolean
  /** Whether its output has ended. What is to be done about it may still be under way. */
  silent: boolean
  /** Completes when everything about the end of its output was done. */
  readonly over: Deferred.Deferred<void>
  /** Whether it can no longer be prompted. */
  gone: boolean
  /** Whether what it left was added to the session's report. */
  retired: boolean
  exit: Child.ProcessExit | undefined
  /** Why it could not be written to. */
  deaf: string
}

export interface Options<State> {
  readonly how: Dialect.Launch
  readonly dialect: Dialect.Dialect<State>
  readonly spawn: (command: Command.Command) => Effect.Effect<Child.Child, ProcessError.ProcessError, Scope.Scope>
  readonly sessionScope: Scope.Scope
  readonly receive: (live: LiveProcess<State>, item: Frame.Received) => Effect.Effect<void>
  /** Its output has ended. */
  readonly gone: (live: LiveProcess<State>) => Effect.Effect<void>
  readonly redact: Redaction.Redactor
}

const evidenceOf = <State>(
  live: LiveProcess<State>,
  stderr: string,
  exit: Child.ProcessExit | undefined,
  late: boolean
): Dialect.Evidence => ({ launch: live.launch, received: live.early, exit, stderr, late })

/** Keeps what came before the end of the handshake, and refuses the process as soon as that says enough. */
export const early = <State>(
  live: LiveProcess<State>,
  item: Frame.Received,
  dialect: Dialect.Dialect<State>
): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (live.early.length < maxEarly) live.early.push(item)
    const evidence = evidenceOf(live, "", undefined, false)
    const refused = dialect.refused(evidence)
      ?? (live.early.length < maxEarly ? undefined : Failures.handshake(dialect.harness, { ...evidence, received: live.early.slice(-20) }, (text) => text))
    return refused === undefined ? Effect.void : Effect.asVoid(Deferred.fail(live.refused, refused))
  })

/** What is known of a process whose output has ended. One that goes on without it is ended. */
export const evidence = <State>(live: LiveProcess<State>, late = false): Effect.Effect<Dialect.Evidence> =>
  Effect.gen(function*() {
    const bySelf = late ? Option.none() : yield* Effect.timeoutOption(live.child.exit, "5 seconds")
    const exit = Option.isSome(bySelf) ? bySelf.value : undefined
    if (exit === undefined && !late) yield* live.child.terminate()
    const { text } = yield* live.child.stderr
    return evidenceOf(live, text, exit, late)
  })

/** Gives the process the end of its input and waits until it has ended; `undefined` where it did not do so in time. */
export const endByItself = <State>(
  live: LiveProcess<State>,
  within: Duration.Input
): Effect.Effect<Child.ProcessExit | undefined> =>
  live.child.stdin.end.pipe(
    Effect.andThen(live.child.exit),
    Effect.timeoutOption(within),
    Effect.map(Option.getOrUndefined)
  )

/** The child of the program that a process descends from; `undefined` for one whose ancestors are gone. */
const childAbove = (
  process: ProcessInfo.ProcessInfo,
  all: ReadonlyMap<number, ProcessInfo.ProcessInfo>,
  programPid: number
): ProcessInfo.ProcessInfo | undefined => {
  const seen = new Set<number>()
  let at = process
  while (at.parentPid !== programPid) {
    const parent = all.get(at.parentPid)
    if (parent === undefined || seen.has(parent.pid)) return undefined
    seen.add(parent.pid)
    at = parent
  }
  return at
}

/**
 * Ends what a turn left behind, in less than 5 s: a moment to go by itself, TERM,
 * KILL. Spares what descends from a child of the program that was there before
 * the turn, such as a server that the program keeps.
 */
export const sweep = <State>(live: LiveProcess<State>, mark: Child.Mark): Effect.Effect<Child.KillReport> =>
  Effect.gen(function*() {
    const programPid = (yield* live.child.leader)?.pid
    const wasThere = (process: ProcessInfo.ProcessInfo) => mark.alive.has(ProcessInfo.identity(process))
    let all = new Map<number, ProcessInfo.ProcessInfo>()
    const spare = (process: ProcessInfo.ProcessInfo) => {
      const child = programPid === undefined ? undefined : childAbove(process, all, programPid)
      return child !== undefined && wasThere(child)
    }
    for (let looks = 0; looks < 10; looks++) {
      const living = yield* live.child.descendants
      all = new Map(living.map((process) => [process.pid, process]))
      if (living.every((process) => wasThere(process) || spare(process))) return { killed: [], survivors: [] }
      yield* Effect.sleep("50 millis")
    }
    return yield* live.child.killBornSince(mark, { spare })
  })

/** Starts a process and makes sure that it is the harness. When it fails or is interrupted, nothing is left of it. */
export const start = <State>(options: Options<State>): Effect.Effect<LiveProcess<State>, HarnessError.HarnessError> =>
  Effect.gen(function*() {
    const { dialect } = options
    const scope = yield* Scope.fork(options.sessionScope)
    return yield* Effect.gen(function*() {
      const command = yield* dialect.command(options.how)
      const child = yield* options.spawn(command).pipe(
        Effect.mapError(Failures.notStarted),
        Effect.provideService(Scope.Scope, scope)
      )
      const { write } = child.stdin
      const peer = yield* (dialect.framing === "content-length"
        ? JsonlPeer.makeContentLength({ write, bytes: child.bytes }, dialect.answers)
        : JsonlPeer.make({ write, lines: child.lines }, dialect.answers))
      const live: LiveProcess<State> = {
        launch: options.how,
        scope,
        child,
        peer,
        gate: yield* Semaphore.make(1),
        refused: yield* Deferred.make<never, HarnessError.HarnessError>(),
        asks: new Map(),
        early: [],
        state: undefined,
        tasks: [],
        busy: false,
        silent: false,
        over: yield* Deferred.make<void>(),
        gone: false,
        retired: false,
        exit: undefined,
        deaf: ""
      }
      const read = peer.received.pipe(
        Stream.runForEach((item) => Semaphore.withPermits(live.gate, 1)(options.receive(live, item))),
        // A pipe that cannot be read is as good as closed; `gone` tells of the rest.
        Effect.ignore,
        Effect.andThen(options.gone(live))
      )
      yield* Effect.forkIn(read, scope)

      // A program may have said why and gone before it was asked: then its last words are still to be read.
      const lastWords = Effect.andThen(Effect.timeoutOption(Deferred.await(live.over), "5 seconds"), live.child.stderr)
      const explain = (late: boolean) =>
        Effect.gen(function*() {
          const found = yield* evidence(live, late)
          const all = late ? found : { ...found, stderr: (yield* lastWords).text }
          return yield* Effect.fail(dialect.refused(all) ?? Failures.handshake(dialect.harness, all, options.redact))
        })
      const state = yield* dialect.handshake(peer, options.how).pipe(
        Effect.raceFirst(Deferred.await(live.refused)),
        Effect.catchTags({ PeerClosed: () => explain(false), AnswerLate: () => explain(true) })
      )
      yield* Semaphore.withPermits(live.gate, 1)(Effect.suspend(() => {
        live.state = state
        return Effect.forEach(live.early.splice(0), (item) => options.receive(live, item), { discard: true })
      }))
      return live
    }).pipe(Effect.onExit((exit) => Exit.isSuccess(exit) ? Effect.void : Scope.close(scope, exit)))
  })
