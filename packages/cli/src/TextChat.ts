/**
 * A conversation with a person, on the kernel's session loop.
 *
 * A turn that fails is told and the conversation goes on. Ctrl-C asks the
 * running turn to end, a second one cuts it off, a third one leaves.
 */
import { KeyboardInput, LineInput, type Outlet, Screen, ShownRequests, type Style, TerminalChannel, TerminalPermission, TurnText } from "@turnpike/channel-terminal"
import { type AgentSession, type Harness, type Permission, Redaction, type RunPreparation, SessionDecorator, SessionLoop } from "@turnpike/kernel"
import type { TurnEvent } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Composition from "./Composition.ts"
import { fromFailure, refuse, type Refusal } from "./Refusal.ts"
import * as RememberedSession from "./RememberedSession.ts"
import { graceMillis } from "./RunCommand.ts"
import type * as Signals from "./Signals.ts"

/** The parts of a conversation that exist before its session does. */
export interface Person {
  readonly keyboard: KeyboardInput.KeyboardInput | undefined
  readonly ask: Permission.Decider | undefined
  readonly requests: ShownRequests.ShownRequests
  /** Set when the conversation begins: what Ctrl-C means while a question is open. */
  readonly onInterrupt: (handler: Effect.Effect<void>) => void
}

/** The person at the terminal; nobody where standard input is something else. */
export const person = (redact: Redaction.Redactor): Person => {
  let handler: Effect.Effect<void> = Effect.void
  const isTerminal = process.stdin.isTTY === true
  const keyboard = isTerminal
    ? KeyboardInput.make(process.stdin, process.stdout.isTTY ? process.stdout : process.stderr)
    : undefined
  const requests = ShownRequests.make()
  return {
    keyboard,
    requests,
    ask: keyboard === undefined
      ? undefined
      : TerminalPermission.make({ keyboard, redact, shown: requests.shown, interrupted: Effect.suspend(() => handler) }),
    onInterrupt: (next) => {
      handler = next
    }
  }
}

export interface Options {
  readonly prepared: RunPreparation.Prepared
  readonly session: Harness.HarnessSession
  readonly person: Person
  readonly out: Outlet.Outlet
  readonly err: Outlet.Outlet
  readonly style: Style.Style
  readonly version: string
  readonly signals: Signals.Signals
  /** Takes known secrets out of what the harness tells, apart from the model's own words. */
  readonly hide: Redaction.Redactor
}

/** An event without secrets. The answer stays as it is, to the byte. */
const cleaned = (hide: Redaction.Redactor) => (event: TurnEvent.TurnEvent): TurnEvent.TurnEvent => {
  switch (event.type) {
    case "assistant/chunk":
    case "assistant/message":
    case "harness/end":
      return event
    default:
      // An event is JSON, and hiding words in its texts leaves its shape.
      return Redaction.json(event as unknown as Schema.Json, hide) as unknown as TurnEvent.TurnEvent
  }
}

/** The turn that runs, for those who want it stopped. */
const stoppable = (session: AgentSession.AgentSession, preempt: Effect.Effect<boolean>) => {
  let interrupts = 0
  let running = 0
  let timer: Fiber.Fiber<unknown> | undefined
  const watched: AgentSession.AgentSession = {
    sessionId: session.sessionId,
    interrupt: Effect.suspend(() => session.interrupt),
    runTurn: (prompt) =>
      Stream.suspend(() => {
        running++
        interrupts = 0
        return session.runTurn(prompt)
      }).pipe(Stream.ensuring(Effect.suspend(() => {
        running--
        const pending = timer
        timer = undefined
        return pending === undefined ? Effect.void : Fiber.interrupt(pending)
      })))
  }
  return {
    session: watched,
    isRunning: () => running > 0,
    /** Answers how often the running turn was asked to end, this time included. */
    interrupt: Effect.suspend(() => {
      interrupts++
      if (interrupts > 1) return Effect.as(preempt, interrupts)
      return Effect.as(
        Effect.andThen(
          session.interrupt,
          Effect.sync(() => {
            timer = Effect.runFork(Effect.andThen(Effect.sleep(graceMillis), preempt))
          })
        ),
        interrupts
      )
    })
  }
}

const reading = (line: LineInput.Line): TerminalChannel.Reading => {
  switch (line._tag) {
    case "Text":
      return { _tag: "Line", text: line.text }
    case "Bad":
      return { _tag: "Bad", why: `line ${line.number} of standard input ${line.why}` }
    case "End":
      return line
  }
}

const lines = (input: LineInput.LineInput): TerminalChannel.Options["read"] => () => Effect.map(input.next, reading)

/** Runs the conversation to its end and returns the exit code. */
export const run = (options: Options): Effect.Effect<number, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const { err, out, person, prepared, style } = options
    const { harness, options: { cwd, sessionId } } = prepared
    const { keyboard } = person
    const left = yield* Deferred.make<number>()
    const text = TurnText.make(style)
    const screen = Screen.make(out, err)
    const channel = TerminalChannel.make({
      read: keyboard === undefined
        ? lines(LineInput.make(process.stdin))
        : (continued) => keyboard.ask(continued ? "… " : "> "),
      screen,
      text,
      requests: person.requests,
      opening: { sessionId, harness: harness.name, turnpikeVersion: options.version, cwd, capabilities: harness.capabilities, turn: 1 },
      interrupted: Effect.asVoid(Deferred.succeed(left, 130))
    })

    const cuttable = yield* SessionDecorator.preemptible(RememberedSession.make(options.session, prepared))
    const turn = stoppable(cuttable.session, cuttable.preempt)
    const shown: AgentSession.AgentSession = {
      ...turn.session,
      runTurn: (prompt) =>
        Stream.unwrap(Effect.as(screen.watch(text.activity), turn.session.runTurn(prompt))).pipe(
          Stream.map(cleaned(options.hide)),
          Stream.tapError(channel.turnFailed)
        )
    }
    const session = yield* SessionDecorator.serial(SessionDecorator.resilient(shown))

    const interrupt: Effect.Effect<{ readonly isHard: boolean }> = Effect.gen(function*() {
      if (!turn.isRunning()) {
        yield* Deferred.succeed(left, 130)
        return { isHard: true }
      }
      const count = yield* turn.interrupt
      if (count === 1) yield* Effect.ignore(screen.show(text.note("asking the agent to end its turn; Ctrl-C again cuts it off")))
      if (count < 3) return { isHard: false }
      yield* Deferred.succeed(left, 130)
      return { isHard: true }
    })
    person.onInterrupt(Effect.asVoid(interrupt))
    yield* options.signals.receiveBy((signal) =>
      signal === "interrupt" ? interrupt : Effect.as(Deferred.succeed(left, 143), { isHard: true })
    )

    if (keyboard !== undefined) {
      yield* Effect.ignore(screen.show([{ to: "aside", text: style.paint("dim", `${harness.name} · /exit or Ctrl-D leaves`) + "\n" }]))
    }
    const conversation = SessionLoop.runSessionLoop(session, channel).pipe(
      Effect.mapError((error) => fromFailure(error.failure)),
      Effect.as(undefined)
    )
    const code = yield* Effect.raceFirst(conversation, Deferred.await(left))
    yield* Effect.ignore(err.flush)
    const decided = yield* Deferred.poll(left)
    // An answer that was written last may wait for its reader yet.
    const flushed = Effect.mapError(out.flush, (error) => refuse("OUTPUT_CLOSED", `${Composition.detail(error)} before everything was told`))
    yield* code !== undefined || decided._tag === "Some" ? Effect.ignore(flushed) : flushed
    if (code !== undefined) return code
    if (decided._tag === "Some") return yield* decided.value
    return keyboard === undefined && channel.hasFailed() ? 3 : 0
  })
