/** What a disk can bring about in files of JSON lines, on one in memory, beside what FileStores.slow.test.ts looks at. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as DiskLife from "./support/diskLife.ts"
import * as Damage from "./support/jsonlDamage.ts"
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
        for (const times of [2, calls.length]) {
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

describe("a disk that forgets what the n-th sync was to write, and says once that it failed", () => {
  it.live("has what later ones acknowledged, when the power has gone", () =>
    Effect.gen(function*() {
      const seed = seedOf()
      const next = random(seed)
      const calls = yield* DiskLife.calls
      const wrong: Array<string> = []
      let syncs = 0
      for (let nth = 1; nth <= calls.length; nth++) {
        const found = yield* DiskLife.forgetSync(nth, next)
        if (found !== undefined) syncs++
        if (found?.fault !== undefined) wrong.push(`call ${nth}: ${found.fault.slice(0, 1_500)}`)
      }
      console.log(`forgotten by a sync, seed ${seed}: ${syncs} times`)
      assert.deepStrictEqual(wrong, [])
      assert.isAbove(syncs, 10)
    }), 60_000)
})

describe("a machine that loses its power behind appends that were not synced", () => {
  it.live("has what was, and a log that can be opened, whatever its disk has left out", () =>
    Effect.gen(function*() {
      const seed = seedOf()
      const found = yield* DiskLife.losePowerBehind(20, random(seed), 300)
      console.log(`power lost behind appends, seed ${seed}: ${found.filter(({ cutBytes }) => cutBytes > 0).length} of ${found.length} logs torn`)
      assert.deepStrictEqual(found.flatMap(({ fault }, time) => fault === undefined ? [] : [`${time}: ${fault.slice(0, 1_500)}`]), [])
      assert.isAbove(found.filter(({ cutBytes }) => cutBytes > 0).length, 100)
    }), 60_000)
})

describe("a file that is cut off", () => {
  /** What is told of each length of a file, from nothing to all but its last byte. */
  const cuts = (one: Damage.Small, name: Damage.Name) =>
    Effect.forEach(Array.from({ length: Damage.bytesOf(one.disk, name).length }, (_, length) => length), (length) =>
      Effect.map(Damage.lookAt(one, name, (bytes) => bytes.subarray(0, length)), (seen) => ({ length, seen })))

  /** How much was acknowledged of what is left. */
  const countAt = ({ marks }: Damage.Small, name: Damage.Name, length: number, before: number) =>
    marks.reduce((count, mark) => mark.file === name && mark.bytes <= length ? mark.count : count, before)

  /** Where the first two lines end, which say what the log is and what it follows. */
  const endsOf = (bytes: Buffer): readonly [number, number] => [bytes.indexOf("\n"), bytes.indexOf("\n", bytes.indexOf("\n") + 1)]

  const whole = Effect.gen(function*() {
    const one = yield* Damage.small
    return { one, right: Result.getOrThrow(yield* Damage.lookAt(one, "last")) }
  })

  it.live("as the last writer's log ends with what was acknowledged of what is left, or is refused where its beginning is missing", () =>
    Effect.gen(function*() {
      const { one, right } = yield* whole
      const bytes = Damage.bytesOf(one.disk, "last")
      const [first, second] = endsOf(bytes)
      for (const { length, seen } of yield* cuts(one, "last")) {
        if (length <= second) {
          const what = length <= first ? "log.2.jsonl has no first line" : "what its 2. writer wrote is missing (log.2.jsonl)"
          assert.deepStrictEqual([length, seen], [length, Result.fail({ code: "SESSION_DAMAGED", message: `session s: ${what}` })])
        } else {
          const { events, receipts } = Result.getOrThrow(seen)
          assert.deepStrictEqual([length, events], [length, right.events.slice(0, countAt(one, "last", length, 3))])
          assert.deepStrictEqual(receipts.slice(0, 3), right.receipts)
        }
      }
    }), 60_000)

  it.live("as the log of a writer before is refused, wherever it is cut", () =>
    Effect.gen(function*() {
      const { one } = yield* whole
      const bytes = Damage.bytesOf(one.disk, "first")
      const [first, second] = endsOf(bytes)
      for (const { length, seen } of yield* cuts(one, "first")) {
        const { code, message } = Result.getOrThrow(Result.flip(seen))
        assert.strictEqual(code, "SESSION_DAMAGED")
        if (length <= first) assert.strictEqual(message, "session s: log.1.jsonl has no first line")
        else if (length <= second) assert.strictEqual(message, "session s: log.1.jsonl was never begun, and another one follows it")
        else assert.match(message, new RegExp(`^session s: event [0-3] cannot be read \\(log\\.1\\.jsonl, byte \\d+\\): ${bytes.length} bytes were kept, and they are not there$`, "u"))
      }
    }), 60_000)

  it.live("as the inbox ends with what was acknowledged of what is left, or is refused where a writer goes by more", () =>
    Effect.gen(function*() {
      const { one, right } = yield* whole
      const bytes = Damage.bytesOf(one.disk, "inbox")
      const opened = bytes.indexOf("\n", bytes.indexOf(`"generation":2`))
      for (const { length, seen } of yield* cuts(one, "inbox")) {
        if (length < opened) {
          const what = length < bytes.indexOf("\n")
            ? /^session s: its inbox cannot be read: it (is not what was written|has no first line) \(inbox\.jsonl, line 1\)$/u
            : /^session s: its inbox ends before its 2\. writer opened it \(inbox\.jsonl\)$/u
          assert.match(Result.getOrThrow(Result.flip(seen)).message, what)
        } else assert.deepStrictEqual([length, Result.getOrThrow(seen).receipts], [length, right.receipts.slice(0, countAt(one, "inbox", length, 0))])
      }
    }), 60_000)

  it.live("as a header, or as what says whose the directory is, is refused with its place, unless only its line's end is missing", () =>
    Effect.gen(function*() {
      const { one, right } = yield* whole
      for (const [name, code, place] of [["header", "SESSION_DAMAGED", "session s: its header cannot be read: "], ["store", "STORE_FAILED", `the sessions in ${DiskLife.directory} are damaged: ${Damage.files.store} cannot be read: `]] as const) {
        const size = Damage.bytesOf(one.disk, name).length
        for (const { length, seen } of yield* cuts(one, name)) {
          if (length === size - 1) assert.deepStrictEqual(seen, Result.succeed(right))
          else assert.deepStrictEqual([length, Result.isFailure(seen) && [seen.failure.code, seen.failure.message.slice(0, place.length)]], [length, [code, place]])
        }
      }
    }), 60_000)
})

describe("a bit that is flipped", () => {
  const every = (bytes: number) => Array.from({ length: bytes * 8 }, (_, bit) => bit)

  it.live("is noticed, wherever it is, or changes nothing of what anybody is told", () =>
    Effect.gen(function*() {
      const one = yield* Damage.small
      const seed = seedOf()
      const next = random(seed)
      const anyOf = (bytes: number) => Array.from({ length: bytes }, (_, byte) => byte * 8 + Math.floor(next() * 8))
      const found: Record<string, Damage.Flips> = {}
      for (const [name, bitsOf] of [["last", every], ["inbox", every], ["header", every], ["store", every], ["first", anyOf], ["seed", anyOf]] as const) {
        found[name] = yield* Damage.flips(one, name, bitsOf(Damage.bytesOf(one.disk, name).length))
      }
      console.log(`flipped bits, seed ${seed}: ${JSON.stringify(found)}`)
      const size = Damage.bytesOf(one.disk, "last").length
      const committed = Damage.bytesOf(one.disk, "last").lastIndexOf(`{"log":"committed"`)
      const seedSize = Damage.bytesOf(one.disk, "seed").length
      assert.deepStrictEqual(found, {
        // The last line says that the append before it counts, which it does anyway where nothing is behind it.
        last: { detected: { SESSION_DAMAGED: committed * 8 }, harmless: [`${committed} to ${size - 1}`], unnoticed: [] },
        inbox: { detected: { SESSION_DAMAGED: Damage.bytesOf(one.disk, "inbox").length * 8 }, harmless: [], unnoticed: [] },
        header: { detected: { SESSION_DAMAGED: Damage.bytesOf(one.disk, "header").length * 8 }, harmless: [], unnoticed: [] },
        store: { detected: { STORE_FAILED: Damage.bytesOf(one.disk, "store").length * 8 }, harmless: [], unnoticed: [] },
        first: { detected: { SESSION_DAMAGED: Damage.bytesOf(one.disk, "first").length }, harmless: [], unnoticed: [] },
        // The session began with nothing, and nobody looks there for it.
        seed: { detected: {}, harmless: [`0 to ${seedSize - 1}`], unnoticed: [] }
      })
    }), 120_000)
})

describe("zeros in the middle of a file", () => {
  it.live("cut off what was not synced, and are damage anywhere else", () =>
    Effect.gen(function*() {
      const one = yield* Damage.small
      const right = Result.getOrThrow(yield* Damage.lookAt(one, "last"))
      const seed = seedOf()
      const next = random(seed)
      console.log(`zeros: seed ${seed}`)
      const marks = one.marks.filter(({ file }) => file === "last")
      // The third of its appends, and the last, were not synced.
      const synced = marks[1]?.bytes ?? 0
      for (const name of ["first", "last", "inbox"] as const) {
        const size = Damage.bytesOf(one.disk, name).length
        for (let time = 0; time < 300; time++) {
          const from = Math.floor(next() * (size - 2))
          const to = from + 2 + Math.floor(next() * Math.min(600, size - from - 2))
          const seen = yield* Damage.lookAt(one, name, (bytes) => bytes.fill(0, from, to))
          const where = `${name}, ${from} to ${to}`
          if (Result.isFailure(seen)) {
            assert.strictEqual(seen.failure.code, "SESSION_DAMAGED", where)
            // A writer that died while he wrote keeps nobody from opening his session.
            assert.isFalse(name === "last" && from >= synced, `${where}: ${seen.failure.message}`)
          } else {
            const { events, receipts } = seen.success
            assert.deepStrictEqual(events, right.events.slice(0, events.length), where)
            assert.deepStrictEqual(receipts.slice(0, 3), right.receipts.slice(0, receipts.length), where)
            // What a line that is left says to have been on disk.
            const left = Damage.bytesOf(one.disk, name).subarray(to).toString()
            const known = Math.max(0, ...[...left.slice(left.indexOf("\n")).matchAll(/"synced":(\d+)/gu)].map(([, bytes]) => Number(bytes)))
            assert.isAtLeast(events.length, name === "last" ? marks.reduce((count, mark) => mark.bytes <= known ? mark.count : count, 3) : 9, where)
          }
        }
      }
    }), 120_000)
})
