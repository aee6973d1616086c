import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { SessionDriver } from "../src/index.ts"
import * as Scene from "./support/DriverScene.ts"

const Burst = Schema.Array(Schema.Struct({
  kind: Schema.Literals(["followup", "steer", "inject"]),
  isTakenBack: Schema.Boolean
})).check(Schema.isMaxLength(40))

describe("messages that were received back to back before the driver runs", () => {
  it.effect.prop("are a turn for each prompt, numbered without a gap, and each is claimed once or was taken back", [Burst], ([burst]) =>
    Effect.gen(function*() {
      const scene = Scene.make()
      const receipts = yield* Effect.forEach(burst, ({ kind }, index) => scene.receiveElsewhere({ kind, text: `text ${index}`, source: "user" }))
      const kept = receipts.filter((_, index) => burst[index]?.isTakenBack === false)
      yield* Effect.forEach(receipts.filter((receipt) => !kept.includes(receipt)), ({ id }) => scene.requestDiscard(id))
      yield* Effect.scoped(Effect.gen(function*() {
        const driver = yield* SessionDriver.make({ ...scene.options, wakeAtStart: true, execute: scene.watched(() => Effect.succeed({ type: "completed" })) })
        yield* driver.whenIdle
      }))
      const prompts = kept.filter(({ kind }) => kind === "followup")
      const others = kept.filter(({ kind }) => kind !== "followup")
      const isWoken = kept.some(({ kind }) => kind !== "inject")
      // The first turn takes all that is for the next step, in the order in which it came.
      const due = !isWoken ? [] : prompts.length === 0 ? [others] : prompts.map((prompt, index) => index === 0 ? [...others, prompt] : [prompt])
      const turns = scene.events.flatMap((event) => event.type === "turn/start" ? [event.data.turn] : [])
      const claims = scene.events.flatMap((event) => event.type === "inbox/claimed" ? [event.data.ids] : [])
      assert.deepStrictEqual([turns, claims], [due.map((_, index) => index + 1), due.map((batch) => batch.map(({ id }) => id))])
      assert.deepStrictEqual(scene.discarded.map(({ id }) => id), receipts.filter((receipt) => !kept.includes(receipt)).map(({ id }) => id))
      assert.deepStrictEqual(Scene.faults(scene, true), [])
    }), { arbitrary: { runs: 200 } })
})
