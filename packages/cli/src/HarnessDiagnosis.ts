/**
 * What of a harness is on this machine, within a bound of time. No turn is begun
 * and no token spent.
 */
import type { Harness } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Composition from "./Composition.ts"

export interface Asked {
  /** The program that the command line names. */
  readonly program: string | undefined
  /** Variables of the run's own, which may sign the harness in. */
  readonly env?: Readonly<Record<string, string>>
}

/** How long a harness's program may take to say what it is and how it is signed in: 25 s. */
const patience = "25 seconds"

/** Asks the harness. Where it does not answer in time, that is the problem that is told. */
export const make = (harness: Harness.Harness, { env, program }: Asked): Effect.Effect<Harness.Diagnosis> =>
  harness.diagnose({
    program: program === undefined ? undefined : Composition.located(program),
    inheritedEnv: { ...Composition.environment(), ...env },
    cwd: process.cwd()
  }).pipe(
    Effect.timeoutOption(patience),
    Effect.map(Option.getOrElse((): Harness.Diagnosis => ({
      harness: harness.name,
      usable: false,
      findings: [{ level: "problem", message: `its program did not answer within ${patience}`, remedy: "Run it by hand, or name another with --program." }]
    })))
  )
