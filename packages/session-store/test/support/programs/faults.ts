/**
 * Lives a session's life again and again, each time in a directory of its own,
 * while somebody outside makes calls of the system fail. After each round the store
 * is opened again: what was acknowledged is there, what was refused is not, and each
 * refusal said why. Says a line of JSON for each round.
 */
import { SessionStore } from "@turnpike/kernel"
import { SqliteSessionStore } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Scenario from "./scenario.ts"

export interface Arguments {
  readonly directory: string
  readonly rounds: number
}

export interface Round {
  readonly round: number
  readonly refused: Scenario.Told["refused"]
  /** Why the round is not as it has to be. */
  readonly fault: string | undefined
}

const within = (directory: string, work: (store: SessionStore.Service) => Effect.Effect<void, SessionStore.SessionStoreError>) =>
  Effect.flatMap(SessionStore.SessionStore, work).pipe(Effect.provide(SqliteSessionStore.layer({ directory }), { local: true }))

const round = (directory: string, number: number): Effect.Effect<Round> =>
  Effect.gen(function*() {
    const own = path.join(directory, `${number}`)
    const told = Scenario.nothing()
    const life = within(own, (store) => Scenario.live(store, told, { size: 200, turns: 2 }))
    const refuse = (step: string) => ({ failure: { code, message, retryable } }: SessionStore.SessionStoreError) =>
      Effect.sync(() => {
        told.refused.push({ step, code, message, retryable })
      })
    yield* Effect.catch(life, refuse("layer"))
    // The fault may hit this one as well; the next finds nothing in its way.
    const checked = within(own, (store) => Scenario.check(store, told))
    yield* Effect.catch(checked, refuse("check"))
    const again = yield* Effect.exit(Effect.andThen(checked, Effect.andThen(within(own, (store) => Scenario.live(store, told, { size: 50, turns: 1 })), checked)))
    fs.rmSync(own, { recursive: true, force: true })
    return { round: number, refused: told.refused, fault: again._tag === "Success" ? undefined : String(again.cause) }
  })

export const faults = ({ directory, rounds }: Arguments) =>
  Effect.gen(function*() {
    for (let number = 0; number < rounds; number++) fs.writeSync(1, `${JSON.stringify(yield* round(directory, number))}\n`)
  })
