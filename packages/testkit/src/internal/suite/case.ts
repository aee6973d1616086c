/** One fact that has to hold for every harness. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Situation } from "../../Situation.ts"
import type { Bench } from "./bench.ts"

export interface Case {
  /** The fact, as a sentence. */
  readonly name: string
  /** The situations that have to be brought about. */
  readonly needs: ReadonlyArray<Situation>
  readonly run: (bench: Bench) => Effect.Effect<void, unknown, Scope.Scope>
}
