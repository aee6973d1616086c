import { assert, describe, it } from "@effect/vitest"
import { Outlet } from "@turnpike/channel-terminal"
import { Effect, Fiber } from "effect"
import { PassThrough } from "node:stream"

describe("Outlet", () => {
  it.live("waits for a reader that is slow", () =>
    Effect.gen(function*() {
      const stream = new PassThrough({ highWaterMark: 4 })
      const outlet = Outlet.make(stream, "the pipe")
      const write = yield* Effect.forkChild(outlet.write("12345678"), { startImmediately: true })
      yield* Effect.yieldNow
      assert.isUndefined(write.pollUnsafe())
      stream.resume()
      yield* Fiber.join(write)
      yield* outlet.flush
      assert.strictEqual(stream.writableLength, 0)
    }))

  it.live("fails when the reader goes away, while it waits and at every later write", () =>
    Effect.gen(function*() {
      const stream = new PassThrough({ highWaterMark: 4 })
      const outlet = Outlet.make(stream, "the pipe")
      const write = yield* Effect.forkChild(Effect.flip(outlet.write("12345678")), { startImmediately: true })
      stream.destroy(Object.assign(new Error("broken pipe"), { code: "EPIPE" }))
      const first = yield* Fiber.join(write)
      const second = yield* Effect.flip(outlet.write("x"))
      const third = yield* Effect.flip(outlet.flush)
      assert.deepStrictEqual([first.message, second.message, third.message], Array.from({ length: 3 }, () => "channel publish error: the reader of the pipe went away"))
    }))

  it.live("says what else keeps it from writing", () =>
    Effect.gen(function*() {
      const stream = new PassThrough()
      const outlet = Outlet.make(stream, "the file")
      stream.destroy(Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" }))
      yield* Effect.yieldNow
      const error = yield* Effect.flip(outlet.write("x"))
      assert.strictEqual(error.message, "channel publish error: the file cannot be written: ENOSPC: no space left on device, write")
    }))

  it.live("leaves no listener behind when waiting is interrupted", () =>
    Effect.gen(function*() {
      const stream = new PassThrough({ highWaterMark: 1 })
      const outlet = Outlet.make(stream, "the pipe")
      const listeners = () => ["error", "close", "drain"].map((name) => stream.listenerCount(name))
      const before = listeners()
      for (let round = 0; round < 20; round++) {
        const write = yield* Effect.forkChild(outlet.write("12345678"), { startImmediately: true })
        yield* Fiber.interrupt(write)
      }
      assert.deepStrictEqual(listeners(), before)
    }))
})
