/**
 * A conversation with a person.
 *
 * A turn that fails is told and the conversation goes on. Prompts that others
 * send to the session are told too, and run while nothing is typed or run. Ctrl-C asks the
 * running turn to end, a second one cuts it off, a third one leaves.
 */
import { KeyboardInput, LineInput, type Outlet, Screen, ShownRequests, type Style, TerminalPermission, TerminalPrompts, TurnText } from "@turnpike/channel-terminal"
import { type Failure, Usage } from "@turnpike/contract"
import { type ChannelError, Conversation, type Harness, type Permission, type Redaction, type RunPreparation } from "@turnpike/kernel"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import * as Composition from "./Composition.ts"
import { fromFailure, refuse, type Refusal } from "./Refusal.ts"
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
}

const reading = (line: LineInput.Line): TerminalPrompts.Reading => {
  switch (line._tag) {
    case "Text":
      return { _tag: "Line", text: line.text }
    case "Bad":
      return { _tag: "Bad", why: `line ${line.number} of standard input ${line.why}` }
    case "End":
      return line
  }
}

const lines = (input: LineInput.LineInput): TerminalPrompts.Options["read"] => () => Effect.map(input.next, reading)

/** A prompt that could not become a turn, as the end of one. */
const unasked = (failure: Failure.Failure | undefined): TurnText.Ending => ({
  word: failure === undefined ? "stopped before it began" : `error ${failure.code}`,
  success: false,
  failure,
  answer: "",
  durationMs: 0,
  usage: Usage.unavailable
})

/** Runs the conversation to its end and returns the exit code. */
export const run = (options: Options): Effect.Effect<number, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const { err, out, person, prepared, signals, style } = options
    const { harness, options: { sessionId } } = prepared
    const { keyboard } = person
    const left = yield* Deferred.make<number>()
    const text = TurnText.make(style)
    const screen = Screen.make(out, err)
    const prompts = TerminalPrompts.make({
      read: keyboard === undefined
        ? lines(LineInput.make(process.stdin))
        : (continued) => keyboard.ask(continued ? "… " : "> "),
      screen
    })
    let lost: ChannelError.ChannelError | undefined
    let hasFailed = false
    let interrupts = 0
    /** What is being asked; `undefined` while a prompt is typed. */
    let asking: string | undefined
    /** Completes when somebody else's prompt begins while one is typed. */
    let disturbed = yield* Deferred.make<void>()

    const show = (pieces: ReadonlyArray<TurnText.Piece>) =>
      Effect.tapError(screen.show(pieces), (error) =>
        Effect.sync(() => {
          lost = error
        }))
    const ended = (ending: TurnText.Ending) =>
      Effect.suspend(() => {
        interrupts = 0
        hasFailed ||= !ending.success
        return Effect.ignore(show(text.end(ending)))
      })

    const conversation = yield* Effect.mapError(
      Conversation.make({
        prepared,
        session: options.session,
        newRunId: randomUUID,
        turnpikeVersion: options.version,
        sink: (event) =>
          Effect.tap(show(text.add(event)), () =>
            event.type === "permission_request" ? person.requests.add(event.request_id) : Effect.void),
        deliver: "caller",
        grace: graceMillis,
        begins: ({ messages }) =>
          Effect.gen(function*() {
            const others = messages.filter((message) => message.text !== asking)
            if (others.length === 0) return
            yield* Deferred.succeed(disturbed, undefined)
            for (const message of others) yield* Effect.ignore(show(text.note(`${message.source}: ${message.text}`)))
          }),
        ended: (result) =>
          Effect.andThen(
            ended(TurnText.endingOf(result)),
            Effect.flatMap(Deferred.isDone(left), (isLeft) => isLeft ? Effect.void : signals.rearm)
          )
      }),
      (error) => fromFailure(error.failure)
    )

    const interrupt: Effect.Effect<{ readonly isHard: boolean }> = Effect.gen(function*() {
      const request = yield* conversation.interrupt("interrupt")
      if (request === undefined) {
        yield* Deferred.succeed(left, 130)
        return { isHard: true }
      }
      interrupts++
      if (interrupts === 1) yield* Effect.ignore(show(text.note("asking the agent to end its turn; Ctrl-C again cuts it off")))
      if (interrupts < 3) return { isHard: false }
      yield* Deferred.succeed(left, 130)
      return { isHard: true }
    })
    person.onInterrupt(Effect.asVoid(interrupt))
    yield* signals.receiveBy((signal) =>
      signal === "interrupt" ? interrupt : Effect.as(Deferred.succeed(left, 143), { isHard: true })
    )

    if (keyboard !== undefined) {
      yield* Effect.ignore(show([{ to: "aside", text: style.paint("dim", `${harness.name} · session ${sessionId} · /exit or Ctrl-D leaves`) + "\n" }]))
    }

    const ask = (prompt: string) =>
      Effect.gen(function*() {
        asking = prompt
        yield* screen.watch(text.activity)
        const outcome = yield* Effect.result(conversation.ask(prompt))
        if (outcome._tag === "Failure") yield* ended(unasked(outcome.failure.failure))
        else if (outcome.success === undefined) yield* ended(unasked(undefined))
      }).pipe(
        Effect.scoped,
        Effect.ensuring(Effect.sync(() => {
          asking = undefined
        }))
      )

    const talk: Effect.Effect<number | undefined, Refusal> = Effect.gen(function*() {
      while (true) {
        yield* conversation.whenIdle
        if (lost !== undefined) return yield* fromFailure(lost.failure)
        disturbed = yield* Deferred.make<void>()
        const next = yield* Effect.raceFirst(
          Effect.mapError(prompts.next, (error) => fromFailure(error.failure)),
          Effect.as(Deferred.await(disturbed), undefined)
        )
        if (next === undefined) continue
        if (next._tag === "Ready") yield* ask(next.text)
        else if (next.wasInterrupted) return 130
        else {
          // What others gave is told to its end, too.
          yield* conversation.whenIdle
          return undefined
        }
      }
    })
    const code = yield* Effect.raceFirst(talk, Deferred.await(left))
    yield* Effect.ignore(err.flush)
    const decided = yield* Deferred.poll(left)
    // An answer that was written last may wait for its reader yet.
    const flushed = Effect.mapError(out.flush, (error) => refuse("OUTPUT_CLOSED", `${Composition.detail(error)} before everything was told`))
    yield* code !== undefined || decided._tag === "Some" ? Effect.ignore(flushed) : flushed
    if (code !== undefined) return code
    if (decided._tag === "Some") return yield* decided.value
    return keyboard === undefined && (hasFailed || prompts.hasFailed()) ? 3 : 0
  })
