/**
 * A dialect's module and the executable that loads it agree by shape alone: the
 * shape is written down on both sides, and compared here.
 */
import { assert, describe, it } from "@effect/vitest"
import type { DialectWords } from "@turnpike/testkit"
import type * as Player from "../src/player/Dialect.ts"

/** Compiles where the one can stand for the other. */
const fits = <A, B extends A>(given?: B, wanted?: A): boolean => given === wanted

describe("a dialect", () => {
  it("that is written for the testkit is one for the player", () => {
    assert.strictEqual(fits<Player.DialectModule, DialectWords.DialectModule>(), true)
  })

  it("is given by the player what the testkit promises", () => {
    assert.strictEqual(fits<DialectWords.DialectHost, Player.DialectHost>(), true)
    assert.strictEqual(fits<DialectWords.TurnState, Player.TurnState>(), true)
    assert.strictEqual(fits<DialectWords.SessionState, Player.SessionState>(), true)
    assert.strictEqual(fits<DialectWords.Spoken, Player.Spoken>(), true)
  })
})
