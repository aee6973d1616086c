import { assert, describe, it } from "@effect/vitest"
import { Verdict } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Cancel } from "../src/index.ts"
import * as Random from "./support/Random.ts"

const isDone = (fiber: Fiber.Fiber<unknown>) => fiber.pollUnsafe() !== undefined

/** The level that a token shows: what completes. */
const level = (token: Cancel.CancelToken) =>
  Effect.gen(function*() {
    const graceful = yield* Effect.forkChild(token.graceful, { startImmediately: true })
    const hard = yield* Effect.forkChild(token.hard, { startImmediately: true })
    yield* Effect.yieldNow
    const seen = isDone(hard) ? "hard" : isDone(graceful) ? "graceful" : "none"
    yield* Fiber.interrupt(graceful)
    yield* Fiber.interrupt(hard)
    return seen
  })

describe("escalator", () => {
  const table: ReadonlyArray<readonly [ReadonlyArray<Cancel.Signal>, string]> = [
    [[], "none"],
    [["interrupt"], "graceful"],
    [["interrupt", "interrupt"], "hard"],
    [["interrupt", "interrupt", "interrupt"], "hard"],
    [["terminate"], "hard"],
    [["interrupt", "terminate"], "hard"],
    [["terminate", "interrupt"], "hard"],
    [["terminate", "terminate"], "hard"]
  ]
  for (const [signals, expected] of table) {
    it.effect(`makes of [${signals.join(", ")}] the level ${expected}`, () =>
      Effect.gen(function*() {
        const token = yield* Cancel.make
        const signal = Cancel.escalator(token)
        for (const one of signals) yield* signal(one)
        assert.strictEqual(yield* level(token), expected)
      }))
  }

  it.effect("says what it asked for: the person's interrupts, the parent's termination", () =>
    Effect.gen(function*() {
      const signal = Cancel.escalator(yield* Cancel.make)
      assert.deepStrictEqual(yield* signal("interrupt"), { cause: "user", mode: "graceful" })
      assert.deepStrictEqual(yield* signal("interrupt"), { cause: "user", mode: "hard" })
      assert.deepStrictEqual(yield* signal("terminate"), { cause: "parent", mode: "hard" })
    }))
})

describe("CancelToken", () => {
  it.effect("keeps the first request of each cause and level, in order", () =>
    Effect.gen(function*() {
      const token = yield* Cancel.make
      yield* token.request({ cause: "user", mode: "graceful" })
      yield* token.request({ cause: "user", mode: "graceful" })
      yield* token.request({ cause: "timeout", mode: "graceful" })
      yield* token.request({ cause: "user", mode: "hard" })
      assert.deepStrictEqual(yield* token.requests, [
        { cause: "user", mode: "graceful" },
        { cause: "timeout", mode: "graceful" },
        { cause: "user", mode: "hard" }
      ])
      assert.deepStrictEqual(yield* token.graceful, { cause: "user", mode: "graceful" })
      assert.deepStrictEqual(yield* token.hard, { cause: "user", mode: "hard" })
    }))

  it.effect("completes graceful also with a first request that is hard", () =>
    Effect.gen(function*() {
      const token = yield* Cancel.make
      yield* token.request({ cause: "parent", mode: "hard" })
      assert.deepStrictEqual(yield* token.graceful, { cause: "parent", mode: "hard" })
    }))

  it.effect("only rises, and its first causes stay, whatever is asked and in whatever order", () =>
    Effect.gen(function*() {
      const rank = { none: 0, graceful: 1, hard: 2 }
      for (let seed = 0; seed < 200; seed++) {
        const random = Random.make(seed)
        const token = yield* Cancel.make
        const asked: Array<Cancel.Request> = []
        let before: keyof typeof rank = "none"
        for (let count = random.below(12); count >= 0; count--) {
          const request: Cancel.Request = {
            cause: random.pick(Verdict.AbortCause.literals),
            mode: random.pick(Verdict.CancelMode.literals)
          }
          asked.push(request)
          yield* token.request(request)
          const now: keyof typeof rank = yield* level(token)
          assert.isAtLeast(rank[now], rank[before], `seed ${seed}`)
          before = now
          assert.deepStrictEqual(yield* token.graceful, asked[0], `seed ${seed}`)
          const hard = asked.find(({ mode }) => mode === "hard")
          if (hard !== undefined) assert.deepStrictEqual(yield* token.hard, hard, `seed ${seed}`)
        }
        const key = (request: Cancel.Request) => `${request.cause} ${request.mode}`
        assert.deepStrictEqual((yield* token.requests).map(key), [...new Set(asked.map(key))], `seed ${seed}`)
      }
    }))
})

describe("strongest", () => {
  const table: ReadonlyArray<readonly [ReadonlyArray<string>, string | undefined]> = [
    [[], undefined],
    [["user graceful"], "user graceful"],
    [["user graceful", "timeout graceful"], "timeout graceful"],
    [["timeout graceful", "user graceful"], "timeout graceful"],
    [["timeout graceful", "budget graceful"], "timeout graceful"],
    [["budget graceful", "timeout graceful"], "budget graceful"],
    [["user graceful", "timeout hard", "user hard"], "user hard"],
    [["timeout graceful", "channel_lost hard"], "channel_lost hard"],
    [["channel_lost hard", "user hard"], "user hard"],
    [["user hard", "parent hard"], "user hard"],
    [["parent hard", "user hard"], "parent hard"],
    [["user graceful", "policy_violation graceful"], "policy_violation graceful"]
  ]
  for (const [requests, expected] of table) {
    it(`of [${requests.join(", ")}] is ${expected}`, () => {
      const parsed = requests.map((request): Cancel.Request => {
        const [cause, mode] = request.split(" ")
        return { cause: cause as Verdict.AbortCause, mode: mode as Verdict.CancelMode }
      })
      const found = Cancel.strongest(parsed)
      assert.strictEqual(found === undefined ? undefined : `${found.cause} ${found.mode}`, expected)
    })
  }
})
