import { assert, describe, it } from "@effect/vitest"
import type { SessionEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as zlib from "node:zlib"
import { sumOf } from "../src/internal/checksum.ts"
import * as Batch from "../src/internal/batch.ts"

const events = (count: number, text: (index: number) => string): ReadonlyArray<SessionEvent.SessionEvent> =>
  Array.from({ length: count }, (_, index) => ({ seq: 7 + index, time: 1, type: "assistant/chunk", data: { kind: "text", text: text(index) } }))

const { constants, deflateRaw, deflateRawSync } = zlib
const deflating = Batch.packerOf({ constants, deflateRaw, deflateRawSync })

const roundTrip = (given: ReadonlyArray<SessionEvent.SessionEvent>, packer?: Batch.Packer) =>
  Effect.gen(function*() {
    const batches = yield* Batch.packed(3, 5, given, packer)
    const back: Array<SessionEvent.SessionEvent> = []
    for (const batch of batches) back.push(...Result.getOrThrow(Batch.unpacked("s", 3, batch, -1)))
    assert.deepStrictEqual(back, given)
    return batches
  })

describe("a row of events", () => {
  it.effect("holds what was packed, however much that is and with what it is packed", () =>
    Effect.gen(function*() {
      const codecsOf = (batches: ReadonlyArray<Batch.Batch>) => batches.map(({ codec, first, last }) => [codec, first, last])
      assert.deepStrictEqual(codecsOf(yield* roundTrip(events(1, () => "a"))), [[0, 7, 7]])
      assert.deepStrictEqual(codecsOf(yield* roundTrip(events(10, (index) => `word ${index}`))), [[2, 7, 16]])
      assert.deepStrictEqual(codecsOf(yield* roundTrip(events(10, (index) => `word ${index}`), deflating)), [[1, 7, 16]])
      assert.deepStrictEqual(codecsOf(yield* roundTrip(events(1_100, (index) => `${index}`))), [[2, 7, 518], [2, 519, 1030], [2, 1031, 1106]])
      // Large ones are packed beside the event loop.
      assert.deepStrictEqual(codecsOf(yield* roundTrip(events(3, () => "é".repeat(200_000)))), [[2, 7, 8], [2, 9, 9]])
      assert.deepStrictEqual(codecsOf(yield* roundTrip(events(1, () => "é".repeat(400_000)), deflating)), [[1, 7, 7]])
      assert.deepStrictEqual(yield* roundTrip([]), [])
    }))

  it.effect("is read from anywhere in it", () =>
    Effect.gen(function*() {
      for (const count of [1, 2, 5, 40]) {
        const given = events(count, (index) => `${index} é\n`)
        const [batch] = yield* Batch.packed(3, 5, given)
        for (let after = -1; after <= 50; after++) {
          assert.deepStrictEqual(Result.getOrThrow(Batch.unpacked("s", 3, batch!, after)), given.filter(({ seq }) => seq > after))
        }
      }
    }))

  it.effect("with more or fewer events than it says is damaged, wherever it is read from", () =>
    Effect.sync(() => {
      for (const [written, last] of [[5, 12], [7, 12], [0, 12]] as const) {
        const bytes = new TextEncoder().encode(events(written, (index) => `${index}`).map((event) => JSON.stringify(event)).join("\n"))
        const batch = { first: 7, last, generation: 5, codec: 0, bytes, sum: sumOf([3, 7, last, 5, 0], bytes) }
        for (let after = -1; after < last; after++) {
          const result = Batch.unpacked("s", 3, batch, after)
          assert.isTrue(Result.isFailure(result) && result.failure.failure.code === "SESSION_DAMAGED", `${written} events, read after ${after}`)
        }
      }
    }))

  it.effect("that has another bit anywhere is damaged", () =>
    Effect.gen(function*() {
      const [batch] = yield* Batch.packed(3, 5, events(6, (index) => `some words ${index}`))
      const { bytes } = batch!
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const damaged = Uint8Array.from(bytes)
        damaged[bit >> 3]! ^= 1 << (bit & 7)
        const result = Batch.unpacked("s", 3, { ...batch!, bytes: damaged }, -1)
        assert.isTrue(Result.isFailure(result) && result.failure.failure.code === "SESSION_DAMAGED")
      }
      for (const other of [{ first: 8 }, { last: 13 }, { generation: 6 }, { codec: 0 }, { sum: batch!.sum ^ 1 }]) {
        const result = Batch.unpacked("s", 3, { ...batch!, ...other }, -1)
        assert.isTrue(Result.isFailure(result) && result.failure.failure.code === "SESSION_DAMAGED", JSON.stringify(other))
      }
      assert.isTrue(Result.isFailure(Batch.unpacked("s", 4, batch!, -1)))
    }))

  it.effect("that a later version packed, or wrote, is refused as that", () =>
    Effect.gen(function*() {
      const [packed] = yield* Batch.packed(3, 5, events(9, (index) => `some words ${index}`), { ...deflating, codec: 9 })
      const [unknown] = yield* Batch.packed(3, 5, [{ seq: 7, time: 1, type: "later/thing", data: {} } as never])
      const [field] = yield* Batch.packed(3, 5, [{ seq: 7, time: 1, type: "turn/start", data: { turn: 1, trigger: { kind: "continuation" }, later: 1 } } as never])
      for (const batch of [packed, unknown, field]) {
        const result = Batch.unpacked("s", 3, batch!, -1)
        assert.isTrue(Result.isFailure(result) && result.failure.failure.code === "FORMAT_UNSUPPORTED")
      }
    }))
})
