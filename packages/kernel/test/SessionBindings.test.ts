import { assert, describe, it } from "@effect/vitest"
import { Scalars } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { SessionBindings } from "../src/index.ts"

const { layerMemory } = SessionBindings.SessionBindings
const one = Scalars.SessionId.make("one")
const two = Scalars.SessionId.make("two")

const binding: SessionBindings.Binding = {
  session_id: one,
  harness: "fake",
  harness_session_id: "h",
  persisted: true,
  cwd: "/project",
  turns: 3,
  created_at: 1,
  updated_at: 2
}

describe("layerMemory", () => {
  it.effect("remembers nothing of a session that was never saved", () =>
    Effect.gen(function*() {
      const bindings = yield* SessionBindings.SessionBindings
      assert.deepStrictEqual((yield* bindings.acquire(one)).binding, Option.none())
    }).pipe(Effect.scoped, Effect.provide(layerMemory)))

  it.effect("remembers what was saved last, for whoever holds the session next", () =>
    Effect.gen(function*() {
      const bindings = yield* SessionBindings.SessionBindings
      yield* Effect.scoped(Effect.gen(function*() {
        const lease = yield* bindings.acquire(one)
        yield* lease.save({ ...binding, turns: 1 })
        yield* lease.save(binding)
        assert.deepStrictEqual(lease.binding, Option.none())
      }))
      assert.deepStrictEqual((yield* Effect.scoped(bindings.acquire(one))).binding, Option.some(binding))
      assert.deepStrictEqual((yield* Effect.scoped(bindings.acquire(two))).binding, Option.none())
    }).pipe(Effect.provide(layerMemory)))

  it.effect("refuses a second holder, naming the first, and lets him in once the first has gone, however he went", () =>
    Effect.gen(function*() {
      const bindings = yield* SessionBindings.SessionBindings
      for (const exit of [Exit.void, Exit.fail("x"), Exit.die("x"), Exit.interrupt(1)]) {
        const scope = yield* Scope.make()
        yield* Scope.provide(bindings.acquire(one), scope)
        const refused = yield* Effect.flip(Effect.scoped(bindings.acquire(one)))
        assert.deepStrictEqual(refused, SessionBindings.busy("one", "another run of this process"))
        assert.strictEqual(refused.failure.code, "SESSION_BUSY")
        yield* Effect.scoped(bindings.acquire(two))
        // A refused one takes nothing away from the holder.
        assert.strictEqual((yield* Effect.flip(Effect.scoped(bindings.acquire(one)))).failure.code, "SESSION_BUSY")
        yield* Scope.close(scope, exit)
        yield* Effect.scoped(bindings.acquire(one))
      }
    }).pipe(Effect.provide(layerMemory)))

  it.effect("saves nothing for a holder whose time is over", () =>
    Effect.gen(function*() {
      const bindings = yield* SessionBindings.SessionBindings
      const old = yield* Effect.scoped(bindings.acquire(one))
      assert.strictEqual((yield* Effect.flip(old.save(binding))).failure.code, "SESSION_BUSY")
      const now = yield* bindings.acquire(one)
      assert.strictEqual((yield* Effect.flip(old.save(binding))).failure.code, "SESSION_BUSY")
      assert.deepStrictEqual(now.binding, Option.none())
    }).pipe(Effect.scoped, Effect.provide(layerMemory)))
})
