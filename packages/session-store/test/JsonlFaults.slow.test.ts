/** What only other processes, a disk or the system can bring about in files of JSON lines. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as DiskLife from "./support/diskLife.ts"
import type { Loss, Refusal } from "./support/memoryFiles.ts"
import { random } from "./support/programs/writer.ts"

const seedOf = () => Math.floor(Math.random() * 1_000_000_000)

describe("a disk that refuses the n-th call, for every n", () => {
  const cases: ReadonlyArray<readonly [string, Refusal]> = [
    ["and does nothing of it", { code: "EIO" }],
    ["and has done it", { code: "EIO", done: "wholly" }],
    ["because it is full, in the middle of a write", { code: "ENOSPC", done: "partly" }]
  ]
  for (const [name, refusal] of cases) {
    it.live(`${name}: what was acknowledged is there, nothing of what was refused, and the store goes on`, () =>
      Effect.gen(function*() {
        const calls = yield* DiskLife.calls
        const wrong: Array<string> = []
        let noticed = 0
        for (let nth = 1; nth <= calls.length; nth++) {
          const { fault, refused } = yield* DiskLife.refuse(nth, refusal)
          if (refused.length > 0) noticed++
          if (fault !== undefined) wrong.push(`call ${nth} (${calls[nth - 1]}), told ${JSON.stringify(refused.map(({ step }) => step))}: ${fault.slice(0, 1500)}`)
        }
        console.log(`${name}: ${calls.length} calls, ${noticed} noticed`)
        assert.deepStrictEqual(wrong, [])
        assert.isAbove(noticed, 50)
      }), 120_000)
  }

  it.live("and those after it, so that nothing can be taken back: what was acknowledged is there, and the store goes on", () =>
    Effect.gen(function*() {
      const calls = yield* DiskLife.calls
      const wrong: Array<string> = []
      for (let nth = 1; nth <= calls.length; nth++) {
        for (const times of [2, 5, calls.length]) {
          const fault = yield* DiskLife.refuseMore(nth, times)
          if (fault !== undefined) wrong.push(`${times} calls from ${nth} (${calls[nth - 1]}): ${fault.slice(0, 1500)}`)
        }
      }
      assert.deepStrictEqual(wrong, [])
    }), 120_000)
})

describe("a machine that loses its power at the n-th call, for every n", () => {
  for (const loss of ["beginning", "holes"] satisfies ReadonlyArray<Loss>) {
    it.live(`has what was acknowledged as on disk, and a log that can be opened (${loss})`, () =>
      Effect.gen(function*() {
        const seed = seedOf()
        const next = random(seed)
        const calls = yield* DiskLife.calls
        const wrong: Array<string> = []
        let cut = 0
        for (let nth = 1; nth <= calls.length; nth++) {
          const { cutBytes, fault } = yield* DiskLife.losePower(nth, next, loss)
          if (cutBytes > 0) cut++
          if (fault !== undefined) wrong.push(`call ${nth} (${calls[nth - 1]}): ${fault.slice(0, 1500)}`)
        }
        console.log(`power lost (${loss}), seed ${seed}: ${calls.length} times, ${cut} torn logs`)
        assert.deepStrictEqual(wrong, [])
        assert.isAbove(cut, 5)
      }), 120_000)
  }
})
