import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as ByteInput from "../../src/sessions/ByteInput.ts"
import * as Scratch from "../support/Scratch.ts"

const read = (file: string) =>
  Effect.scoped(Effect.gen(function*() {
    const { chunks, size } = yield* ByteInput.open(file)
    return { size, content: Buffer.concat(yield* Stream.runCollect(chunks)) }
  }))

describe("the bytes of a file", () => {
  it.live("come as they are, with their number", () =>
    Effect.gen(function*() {
      const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256))
      assert.deepStrictEqual(yield* read(yield* Scratch.file("x", content)), { size: 300_000, content })
      assert.deepStrictEqual(yield* read(yield* Scratch.file("x", "")), { size: 0, content: Buffer.alloc(0) })
    }))

  it.live("that cannot be read are told by their file's name", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      const told = (file: string) => Effect.map(Effect.flip(read(file)), ({ failure }) => [failure.code, failure.message])
      const missing = path.join(directory, "nothing")
      assert.deepStrictEqual(yield* told(missing), ["FILE_UNREADABLE", `${missing} cannot be read: there is no such file`])
      assert.deepStrictEqual(yield* told(directory), ["FILE_UNREADABLE", `${directory} cannot be read: it is a directory`])
    }))

  it.live.skipIf(process.platform === "win32")("of a pipe come without their number, and leave whoever writes it when enough was read", () =>
    Effect.gen(function*() {
      const pipe = path.join(yield* Scratch.directory, "pipe")
      assert.strictEqual(spawnSync("mkfifo", [pipe]).status, 0)
      const writer = fs.createWriteStream(pipe)
      writer.write("hello")
      const { chunks, size } = yield* ByteInput.open(pipe)
      assert.strictEqual(size, undefined)
      assert.strictEqual(Buffer.concat(yield* Stream.runCollect(Stream.take(chunks, 1))).toString(), "hello")
      writer.destroy()
    }).pipe(Effect.scoped))

  it.live.skipIf(process.platform === "win32")("of a pipe are waited for until somebody writes, and end where the writer does", () =>
    Effect.gen(function*() {
      const pipe = path.join(yield* Scratch.directory, "pipe")
      assert.strictEqual(spawnSync("mkfifo", [pipe]).status, 0)
      const reading = yield* Effect.forkChild(read(pipe), { startImmediately: true })
      const waited = yield* Effect.forkChild(read(pipe), { startImmediately: true })
      yield* Fiber.interrupt(waited)
      const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256))
      yield* Effect.promise(() => fs.promises.writeFile(pipe, content))
      assert.deepStrictEqual(yield* Fiber.join(reading), { size: undefined, content })
    }).pipe(Effect.scoped))
})
