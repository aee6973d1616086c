import { assert, describe, it } from "@effect/vitest"
import type { AgentRunResult } from "@turnpike/contract"
import { Deferred, Effect, Fiber } from "effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as ResultFile from "../src/ResultFile.ts"
import * as Scratch from "./support/Scratch.ts"

const result: AgentRunResult.AgentRunResult = {
  result: { success: true, summary: "done" },
  reason: "success",
  verdict: { type: "completed" },
  session: { id: "s-1", harness: "scripted", turn: 1 },
  usage: { tokens: { source: "unavailable" }, cost: { source: "unavailable" } },
  denials: [],
  background_killed: [],
  killed: [],
  survivors: [],
  error: null,
  session_log: [],
  output_artifacts: [],
  observability: null,
  duration_ms: 1
}

const refusal = (file: string) =>
  Effect.map(Effect.flip(Effect.scoped(ResultFile.open(file))), ({ failure }) => [failure.code, failure.message])

describe("the result file", () => {
  it.effect("is written whole, as JSON for people, in place of the old one", () =>
    Effect.gen(function*() {
      const file = yield* Scratch.file("result.json", "old")
      fs.chmodSync(file, 0o640)
      yield* Effect.scoped(Effect.gen(function*() {
        const opened = yield* ResultFile.open(file)
        assert.strictEqual(fs.readFileSync(file, "utf8"), "old")
        yield* opened.write(result)
      }))
      assert.strictEqual(fs.readFileSync(file, "utf8"), `${JSON.stringify(result, undefined, 2)}\n`)
      assert.strictEqual(fs.statSync(file).mode & 0o777, 0o640)
      assert.deepStrictEqual(fs.readdirSync(path.dirname(file)), ["result.json"])
    }))

  it.effect("stays as it was when nothing is written, and leaves nothing else", () =>
    Effect.gen(function*() {
      const file = yield* Scratch.file("result.json", "old")
      yield* Effect.scoped(ResultFile.open(file))
      yield* Effect.scoped(ResultFile.open(path.join(path.dirname(file), "new.json")))
      assert.deepStrictEqual([fs.readFileSync(file, "utf8"), fs.readdirSync(path.dirname(file))], ["old", ["result.json"]])
    }))

  it.effect("is found behind a link, which stays", () =>
    Effect.gen(function*() {
      const file = yield* Scratch.file("result.json", "old")
      const link = path.join(yield* Scratch.directory, "link.json")
      fs.symlinkSync(file, link)
      yield* Effect.scoped(Effect.flatMap(ResultFile.open(link), (opened) => opened.write(result)))
      assert.deepStrictEqual([fs.lstatSync(link).isSymbolicLink(), JSON.parse(fs.readFileSync(file, "utf8")) as unknown], [true, result])
    }))

  it.effect("may be a device", () => Effect.scoped(Effect.flatMap(ResultFile.open("/dev/null"), (opened) => opened.write(result))))

  it.effect("is refused before anything runs where it cannot be written", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      const file = yield* Scratch.file("file", "")
      assert.deepStrictEqual([yield* refusal(directory), yield* refusal(path.join(directory, "no", "r.json")), yield* refusal(path.join(file, "r.json"))], [
        ["RESULT_UNWRITABLE", `the result cannot be written to ${directory}: it is a directory`],
        ["RESULT_UNWRITABLE", `the result cannot be written to ${path.join(directory, "no", "r.json")}: its directory does not exist`],
        ["RESULT_UNWRITABLE", `the result cannot be written to ${path.join(file, "r.json")}: a part of its path is no directory`]
      ])
    }))

  it.effect("says where writing fails at the end, and keeps the old one", () =>
    Effect.gen(function*() {
      const file = yield* Scratch.file("result.json", "old")
      const directory = path.dirname(file)
      yield* Effect.scoped(Effect.gen(function*() {
        const opened = yield* ResultFile.open(file)
        for (const name of fs.readdirSync(directory)) if (name.startsWith(".")) fs.rmSync(path.join(directory, name))
        const { failure } = yield* Effect.flip(opened.write(result))
        assert.strictEqual(failure.code, "RESULT_UNWRITABLE")
      }))
      assert.strictEqual(fs.readFileSync(file, "utf8"), "old")
    }))

  it.effect("stays behind its link, also where it is still to be made", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      fs.mkdirSync(path.join(directory, "below"))
      fs.symlinkSync("below/second", path.join(directory, "first"))
      fs.symlinkSync("result.json", path.join(directory, "below/second"))
      yield* Effect.scoped(Effect.flatMap(ResultFile.open(path.join(directory, "first")), (opened) => opened.write(result)))
      assert.deepStrictEqual(fs.readdirSync(path.join(directory, "below")).sort(), ["result.json", "second"])
      assert.isTrue(fs.lstatSync(path.join(directory, "first")).isSymbolicLink())
    }))

  it.live.skipIf(process.platform === "win32")("waits for whoever reads a named pipe, and gives all of it at the reader's pace", () =>
    Effect.gen(function*() {
      const file = path.join(yield* Scratch.directory, "pipe")
      assert.strictEqual(spawnSync("mkfifo", [file]).status, 0)
      const waited = yield* Deferred.make<void>()
      const long = { ...result, result: { success: true, summary: "x".repeat(1_000_000) } }
      const writing = yield* Effect.forkChild(
        Effect.scoped(Effect.flatMap(ResultFile.open(file, Effect.asVoid(Deferred.succeed(waited, undefined))), (opened) => opened.write(long)))
      )
      yield* Deferred.await(waited)
      const text = yield* Effect.promise(() => fs.promises.readFile(file, "utf8"))
      yield* Fiber.join(writing)
      assert.strictEqual(text, `${JSON.stringify(long, undefined, 2)}\n`)
    }))

  it.live.skipIf(process.platform === "win32")("is given up for a named pipe that nobody reads when the wait is interrupted, or whose reader went away", () =>
    Effect.gen(function*() {
      const file = path.join(yield* Scratch.directory, "pipe")
      assert.strictEqual(spawnSync("mkfifo", [file]).status, 0)
      const waiting = yield* Effect.forkChild(Effect.scoped(ResultFile.open(file)), { startImmediately: true })
      yield* Fiber.interrupt(waiting)
      const reader = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
      const error = yield* Effect.flip(Effect.scoped(Effect.gen(function*() {
        const opened = yield* ResultFile.open(file)
        fs.closeSync(reader)
        yield* opened.write(result)
      })))
      assert.strictEqual(error.failure.message, `the result cannot be written to ${file}: its reader went away`)
    }))
})
