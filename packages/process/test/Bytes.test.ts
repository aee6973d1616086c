import { assert, describe, it } from "@effect/vitest"
import { Supervisor } from "@turnpike/process"
import { Effect, Exit, Stream } from "effect"
import { Buffer } from "node:buffer"

const run = <A, E>(program: Effect.Effect<A, E, Supervisor.Supervisor>) =>
  Effect.provide(program, Supervisor.layer({ containment: "group", reapOrphans: false }))

const spawn = (script: string) =>
  Effect.flatMap(Supervisor.Supervisor, (supervisor) => supervisor.spawn({ program: "/bin/sh", args: ["-c", script], cwd: "/" }))

describe("the output of a child as bytes", () => {
  it.live("is all that was written, whatever it holds, and ends with the output", () =>
    run(Effect.scoped(Effect.gen(function*() {
      const child = yield* spawn("printf 'a\\r\\n\\000\\377b'; sleep 0.05; printf 'no line end'")
      const chunks = yield* Stream.runCollect(child.bytes)
      assert.deepStrictEqual(Buffer.concat(chunks), Buffer.from("a\r\n\0\xffbno line end", "latin1"))
      assert.deepStrictEqual(yield* child.exit, { code: 0, signal: null })
    }))))

  it.live("has one reader, which lines count as", () =>
    run(Effect.scoped(Effect.gen(function*() {
      const child = yield* spawn("echo once")
      yield* Stream.runDrain(child.bytes)
      const again = [yield* Effect.flip(Stream.runDrain(child.bytes)), yield* Effect.flip(Stream.runDrain(child.lines))]
      assert.deepStrictEqual(again.map(({ reason }) => reason._tag), ["OutputTaken", "OutputTaken"])
    }))))

  it.live("stops the program while it is not read", () =>
    run(Effect.scoped(Effect.gen(function*() {
      const child = yield* spawn("head -c 4000000 /dev/zero; echo done >&2")
      let bytes = 0
      let early: string | undefined
      yield* Stream.runForEach(child.bytes, (chunk) =>
        Effect.gen(function*() {
          bytes += chunk.length
          if (early !== undefined) return
          // Time enough for a program that nobody stops.
          yield* Effect.sleep("300 millis")
          early = (yield* child.stderr).text
        }))
      yield* child.exit
      assert.deepStrictEqual([early, bytes, (yield* child.stderr).text], ["", 4_000_000, "done\n"])
    }))))

  it.live("can be given up in the middle", () =>
    run(Effect.scoped(Effect.gen(function*() {
      const child = yield* spawn("printf x; sleep 300")
      const exit = yield* Effect.exit(Stream.runForEach(child.bytes, () => Effect.interrupt))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual((yield* child.close).survivors, [])
    }))))
})
