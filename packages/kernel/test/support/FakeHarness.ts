/** A harness whose every part does what a test says, and which counts what is done to it. */
import type { Capabilities, TurnEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Harness, type HarnessError, type TurnError } from "../../src/index.ts"
import * as FakeSession from "./FakeSession.ts"

export const capabilities: Capabilities.Capabilities = {
  resume: "enforced",
  chosen_session_id: "unsupported",
  steering: "unsupported",
  tool_allow_list: "enforced",
  permission_requests: "enforced",
  system_prompt: "advisory",
  model_choice: "enforced",
  usage: "enforced",
  cost: "unsupported",
  structured_output: "unsupported",
  interrupt_keeps_history: "enforced",
  isolation: "unsupported",
  background_tasks: "enforced"
}

export interface Parts {
  readonly name?: string
  readonly turn?: (text: string) => Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>
  readonly check?: Harness.Harness["check"]
  /** Runs before the session is there. */
  readonly opening?: Effect.Effect<unknown, HarnessError.HarnessError>
  readonly interrupt?: Effect.Effect<void>
  readonly backgroundDone?: Effect.Effect<void>
  readonly close?: Effect.Effect<Harness.CloseReport>
  readonly onOwnTurn?: Harness.HarnessSession["onOwnTurn"]
  /** Runs when the scope that opened the session closes. */
  readonly released?: Effect.Effect<void>
}

export interface FakeHarness {
  readonly harness: Harness.Harness
  readonly counts: {
    checks: number
    opened: number
    closed: number
    released: number
    turns: number
    /** Turns that run now. */
    running: number
    interrupts: number
  }
  readonly options: Array<Harness.SessionOptions>
  readonly prompts: Array<string>
}

export const bound = (id = "h-1", resumed = false): TurnEvent.TurnEvent => ({
  type: "session/bound",
  data: { harness_session_id: id, resumed }
})

/** A turn that says who it is, answers, and ends. */
export const happyTurn = (text: string): Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError> =>
  Stream.make(bound(), FakeSession.chunk("echo: "), FakeSession.chunk(text), FakeSession.message(`echo: ${text}`), FakeSession.end(`echo: ${text}`))

export const make = (parts: Parts = {}): FakeHarness => {
  const counts = { checks: 0, opened: 0, closed: 0, released: 0, turns: 0, running: 0, interrupts: 0 }
  const seen: Array<Harness.SessionOptions> = []
  const prompts: Array<string> = []
  const turn = parts.turn ?? happyTurn

  const session = (options: Harness.SessionOptions): Harness.HarnessSession => ({
    sessionId: options.sessionId,
    runTurn: ({ text }) =>
      Stream.unwrap(
        Effect.acquireRelease(
          Effect.sync(() => {
            counts.turns++
            counts.running++
            prompts.push(text)
          }),
          () => Effect.andThen(Effect.yieldNow, Effect.sync(() => counts.running--))
        ).pipe(Effect.map(() => turn(text)))
      ),
    interrupt: Effect.andThen(Effect.sync(() => void counts.interrupts++), parts.interrupt ?? Effect.void),
    backgroundDone: parts.backgroundDone ?? Effect.void,
    ...(parts.onOwnTurn === undefined ? {} : { onOwnTurn: parts.onOwnTurn }),
    close: Effect.suspend(() => {
      counts.closed++
      return parts.close ?? Effect.succeed(Harness.nothingFound)
    })
  })

  return {
    counts,
    options: seen,
    prompts,
    harness: {
      name: parts.name ?? "fake",
      capabilities,
      check: (options) =>
        Effect.suspend(() => {
          counts.checks++
          return parts.check?.(options) ?? Effect.succeed({})
        }),
      open: (options) =>
        Effect.andThen(
          parts.opening ?? Effect.void,
          Effect.acquireRelease(
            Effect.sync(() => {
              counts.opened++
              seen.push(options)
              return session(options)
            }),
            () => Effect.andThen(Effect.sync(() => void counts.released++), parts.released ?? Effect.void)
          )
        ),
      diagnose: () => Effect.succeed({ harness: "fake", usable: true, findings: [] })
    }
  }
}
