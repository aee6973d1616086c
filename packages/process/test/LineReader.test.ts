import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import * as LineReader from "../src/internal/lineReader.ts"
import * as LineSplitter from "../src/LineSplitter.ts"
import * as Specimens from "./support/specimens.ts"

/** A pipe of which this process has both ends: what is written or closed is so at once. */
const pipe = Effect.acquireRelease(
  Effect.sync(() => {
    const directory = Specimens.makeDirectory("pipe")
    const file = path.join(directory, "pipe")
    spawnSync("mkfifo", [file])
    const output = new net.Socket({ fd: fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK), readable: true, writable: false })
    return { directory, output, writer: fs.openSync(file, "w") }
  }),
  ({ directory, output }) =>
    Effect.sync(() => {
      output.destroy()
      fs.rmSync(directory, { recursive: true })
    })
)

const realTimeout = setTimeout

/** Does something, and lets a silence be over, where timers are run: before what is in the pipe can be looked at. */
const afterSilence = (act: () => void) =>
  Effect.callback<void>((resume) => {
    realTimeout(() => {
      act()
      vi.advanceTimersByTime(LineReader.silenceMs)
      resume(Effect.void)
    }, 1)
  })

describe.skipIf(process.platform === "win32")("a reader of the output of a program that has ended", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
  afterEach(() => void vi.useRealTimers())

  it.live("sees what came while its process could not run, before it takes the time for silence", () =>
    Effect.scoped(Effect.gen(function*() {
      const { output, writer } = yield* pipe
      const reader = LineReader.make(output, LineSplitter.defaults)
      reader.programEnded()
      const line = yield* Effect.forkChild(reader.pull, { startImmediately: true })
      yield* afterSilence(() => fs.writeSync(writer, "late\n"))
      const lines = yield* Fiber.join(line)
      const end = yield* Effect.forkChild(Effect.flip(reader.pull), { startImmediately: true })
      yield* afterSilence(() => fs.closeSync(writer))
      assert.isTrue(Cause.isDone(yield* Fiber.join(end)))
      assert.deepStrictEqual([lines, reader.ending()], [[{ _tag: "Text", text: "late", byteLength: 4, terminated: true }], "end"])
    })))

  it.live("takes a silence for its end while another holds it", () =>
    Effect.scoped(Effect.gen(function*() {
      const { output, writer } = yield* pipe
      const reader = LineReader.make(output, LineSplitter.defaults)
      reader.programEnded()
      const end = yield* Effect.forkChild(Effect.flip(reader.pull), { startImmediately: true })
      yield* afterSilence(() => {})
      assert.isTrue(Cause.isDone(yield* Fiber.join(end)))
      fs.closeSync(writer)
      assert.strictEqual(reader.ending(), "held")
    })))
})
