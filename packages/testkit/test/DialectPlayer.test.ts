import { assert, describe, it } from "@effect/vitest"
import { DialectPlayer } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as path from "node:path"
import { runText } from "./support/played.ts"

const scenario = { turns: [{ do: [{ type: "end", reason: "completed" }] }] }

describe("DialectPlayer", () => {
  it.live("makes a program that is gone with its scope", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const program = yield* Scope.provide(DialectPlayer.program(scenario, { name: "it's" }), scope)
      assert.strictEqual(path.basename(program), "it's")
      assert.strictEqual(fs.existsSync(program), true)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(fs.existsSync(path.dirname(program)), false)
    }))

  it.live("fails with what is not there, and with a name that is none", () =>
    Effect.gen(function*() {
      const refused = (made: Effect.Effect<string, DialectPlayer.PlayerUnavailable, Scope.Scope>) =>
        Effect.map(Effect.flip(Effect.scoped(made)), ({ _tag, message }) => [_tag, message])
      assert.deepStrictEqual(yield* refused(DialectPlayer.program(scenario, { agent: "/nowhere/agent" })), [
        "PlayerUnavailable",
        "there is no scripted agent /nowhere/agent"
      ])
      assert.deepStrictEqual(yield* refused(DialectPlayer.program(scenario, { dialect: "/nowhere/dialect.ts" })), [
        "PlayerUnavailable",
        "there is no dialect /nowhere/dialect.ts"
      ])
      assert.deepStrictEqual(yield* refused(DialectPlayer.replay("/nowhere/x.stdout")), ["PlayerUnavailable", "there is no recording /nowhere/x.stdout"])
      assert.deepStrictEqual(yield* refused(DialectPlayer.program(scenario, { name: "../claude" })), [
        "PlayerUnavailable",
        "the program's name is \"../claude\"; it has to be a file name without a directory"
      ])
    }))

  it.live("leaves it to the program to tell every place of a scenario that is wrong", () =>
    Effect.gen(function*() {
      const program = yield* DialectPlayer.program({ turns: [{ do: [{ type: "delay", ms: -1 }, { type: "sing" }] }], colour: 1 })
      const { code, stderr, stdout } = yield* runText(program, [])
      assert.deepStrictEqual([code, stdout], [2, ""])
      for (const place of ["turns[0].do[0].ms", "turns[0].do[1].type", "colour"]) assert.include(stderr, place)
    }).pipe(Effect.scoped))
})
