/**
 * Lives a session's life while somebody outside makes one call of the system fail.
 * Then the store is opened again: what was acknowledged is there, what was refused is
 * not, and each refusal said why. Answers one line of JSON.
 */
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as Scenario from "./scenario.ts"
import { layerOf, type Where } from "./stores.ts"

export interface Arguments {
  readonly directory: string
  readonly where: Where
}

export interface Outcome {
  readonly refused: Scenario.Told["refused"]
  /** Why it is not as it has to be. */
  readonly fault: string | undefined
}

const within = ({ directory, where }: Arguments, work: (store: SessionStore.Service) => Effect.Effect<void, SessionStore.SessionStoreError>) =>
  Effect.flatMap(SessionStore.SessionStore, work).pipe(Effect.provide(layerOf({ kind: "sqlite", directory, where }), { local: true }))

export const faults = (args: Arguments) =>
  Effect.gen(function*() {
    const told = Scenario.nothing()
    const refuse = (step: string) => ({ failure: { code, message, retryable } }: SessionStore.SessionStoreError) =>
      Effect.sync(() => {
        told.refused.push({ step, code, message, retryable })
      })
    const live = (options: { readonly size: number; readonly turns: number }) =>
      Effect.catch(within(args, (store) => Scenario.live(store, told, options)), refuse("layer"))
    const check = within(args, (store) => Scenario.check(store, told)).pipe(
      Effect.tapError(refuse("check")),
      // There is one fault, or one in each of two threads: nothing is in the way of what follows.
      Effect.retry({ times: 2 })
    )
    yield* live({ size: 200, turns: 2 })
    const ended = yield* Effect.exit(Effect.andThen(check, Effect.andThen(live({ size: 50, turns: 1 }), check)))
    const outcome: Outcome = { refused: told.refused, fault: ended._tag === "Success" ? undefined : String(ended.cause) }
    fs.writeSync(1, `${JSON.stringify(outcome)}\n`)
  })
