/**
 * What every harness has to do, as tests: ours, and a stranger's.
 *
 * An author says how the harness is made and how each situation is brought
 * about, and gets one test for each fact. A situation that cannot be brought
 * about is named with the reason, and its tests show as skipped; one that is
 * neither driven nor excused fails. What an option asks for and a harness declares
 * unsupported is not skipped: the suite asserts that it is refused, cleanly and by
 * name. Whatever a test is about, it fails where the harness leaves a process once
 * its sessions are closed.
 *
 * Works with any runner that can run an effect, such as `it.live` of
 * `@effect/vitest`.
 */
import type { Harness } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Bench from "./internal/suite/bench.ts"
import type { Case } from "./internal/suite/case.ts"
import * as Control from "./internal/suite/control.ts"
import * as OwnTurns from "./internal/suite/ownTurns.ts"
import * as Sessions from "./internal/suite/sessions.ts"
import * as Turns from "./internal/suite/turns.ts"
import type * as Situation from "./Situation.ts"

export type { Driver, Place } from "./internal/suite/bench.ts"

/** What is tested. */
export interface Subject<R> {
  readonly harness: Effect.Effect<Harness.Harness, unknown, R>
  /** What the harness needs, made anew for each test. */
  readonly layer: Layer.Layer<R>
  /** Brings situations about: answers the options to open a session with. */
  readonly driver: Bench.Driver
  /** The harness's own names for tools. */
  readonly tools: Situation.ToolNames
  /** Situations that cannot be brought about, each with the reason. */
  readonly cannot?: Partial<Record<Situation.Situation, string>>
}

/** A test runner: `describe` and `it.live` of `@effect/vitest` fit. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => void
  readonly it: {
    (name: string, run: () => Effect.Effect<void, unknown, Scope.Scope>, timeoutMs: number): void
    readonly skip: (name: string, run: () => Effect.Effect<void, unknown, Scope.Scope>, timeoutMs: number) => void
  }
}

/** How long one test may take. */
export const timeoutMs = 60_000

/** Every case, in order. */
const all: ReadonlyArray<Case> = [...Turns.cases, ...Sessions.cases, ...Control.cases, ...OwnTurns.cases]

/** The prompts that have to arrive byte for byte, for tests of an adapter's own. */
export const hostilePrompts: ReadonlyArray<string> = Turns.hostilePrompts

/** Declares the suite's tests. */
export const harnessSuite = <R>(name: string, { describe, it }: Runner, subject: Subject<R>): void =>
  describe(name, () => {
    for (const each of all) {
      const excuse = each.needs.map((situation) => subject.cannot?.[situation]).find((reason) => reason !== undefined)
      const run = () =>
        Effect.gen(function*() {
          const harness = yield* subject.harness
          yield* each.run(yield* Bench.make(harness, subject.driver, subject.tools))
        }).pipe(Effect.scoped, Effect.provide(subject.layer))
      if (excuse === undefined) it(each.name, run, timeoutMs)
      else it.skip(`${each.name} (${excuse})`, run, timeoutMs)
    }
  })
