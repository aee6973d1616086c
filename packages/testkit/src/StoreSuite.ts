/**
 * What holds of every store of sessions: ours, and a stranger's.
 *
 * Each fact runs on a store of its own, made by the layer. What only the author
 * can bring about, such as a lease that runs out, is a hook: a fact whose hook is
 * not given shows as skipped. What needs a second process or a broken medium is
 * not here, since that differs from store to store.
 *
 * Works with any runner that can run an effect, such as `it.live` of
 * `@effect/vitest`.
 */
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Inbox from "./internal/store/inboxFacts.ts"
import * as Log from "./internal/store/logFacts.ts"
import type { Fact, Hooks } from "./internal/store/scene.ts"
import * as Sessions from "./internal/store/sessionFacts.ts"

export type { Hooks } from "./internal/store/scene.ts"

/** A test runner: `describe` and `it.live` of `@effect/vitest` fit. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => void
  readonly it: {
    (name: string, run: () => Effect.Effect<void, unknown>, timeoutMs: number): void
    readonly skip: (name: string, run: () => Effect.Effect<void, unknown>, timeoutMs: number) => void
  }
}

/** How long one test may take. */
export const timeoutMs = 60_000

/** Every fact, in order. */
const all: ReadonlyArray<Fact> = [...Sessions.facts, ...Log.facts, ...Inbox.facts]

/** Declares the suite's tests. The layer is built anew for each; the hooks get what it gives. */
export const storeSuite = <R, E>(
  name: string,
  { describe, it }: Runner,
  layer: Layer.Layer<SessionStore.SessionStore | R, E>,
  hooks: Hooks<R> = {}
): void =>
  describe(name, () => {
    for (const { name: fact, needs, run } of all) {
      const test = () =>
        Effect.gen(function*() {
          const store = yield* SessionStore.SessionStore
          const context = yield* Effect.context<R>()
          const missing = (hook: string) => () => Effect.die(new Error(`the hook ${hook} is not given`))
          const { damage = missing("damage"), expire = missing("expire"), plant = missing("plant") } = hooks
          yield* run(store, {
            expire: (id) => Effect.provide(expire(id), context),
            damage: (id, seq) => Effect.provide(damage(id, seq), context),
            plant: (id, record) => Effect.provide(plant(id, record), context)
          })
        }).pipe(Effect.scoped, Effect.provide(layer))
      if (needs === undefined || hooks[needs] !== undefined) it(fact, test, timeoutMs)
      else it.skip(`${fact} (the hook ${needs} is not given)`, test, timeoutMs)
    }
  })
