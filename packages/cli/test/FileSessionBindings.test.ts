import { assert, describe, it } from "@effect/vitest"
import { SessionBindings } from "@turnpike/kernel"
import { Effect, Exit, Option, Scope } from "effect"
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as FileSessionBindings from "../src/FileSessionBindings.ts"
import * as Holder from "../src/Holder.ts"
import * as Scratch from "./support/Scratch.ts"

const binding: SessionBindings.Binding = {
  session_id: "s-1",
  harness: "scripted",
  harness_session_id: "theirs",
  persisted: true,
  cwd: "/project",
  turns: 3,
  created_at: 1,
  updated_at: 2
}

const fileOf = (data: string, id = "s-1") => path.join(FileSessionBindings.directoryOf(data, id), "session.json")

const refusal = (data: string, id = "s-1") =>
  Effect.map(Effect.flip(Effect.scoped(FileSessionBindings.make(data).acquire(id))), ({ failure }) => failure)

const isRoot = process.geteuid?.() === 0

describe("FileSessionBindings", () => {
  it.effect("remembers from one holder to the next, in a file of the user's own", () =>
    Effect.gen(function*() {
      const data = yield* Scratch.directory
      const bindings = FileSessionBindings.make(data)
      yield* Effect.scoped(Effect.gen(function*() {
        const lease = yield* bindings.acquire("s-1")
        assert.deepStrictEqual(lease.binding, Option.none())
        yield* lease.save({ ...binding, turns: 2 })
        yield* lease.save(binding)
      }))
      const lease = yield* bindings.acquire("s-1")
      assert.deepStrictEqual(lease.binding, Option.some(binding))
      assert.deepStrictEqual(JSON.parse(fs.readFileSync(fileOf(data), "utf8")), binding)
      assert.strictEqual(fs.statSync(fileOf(data)).mode & 0o777, 0o600)
      assert.strictEqual(fs.statSync(path.dirname(fileOf(data))).mode & 0o777, 0o700)
      assert.deepStrictEqual(fs.readdirSync(path.dirname(fileOf(data))).toSorted(), ["lock.1", "session.json"])
    }))

  it.effect("refuses a second holder, naming the first", () =>
    Effect.gen(function*() {
      const data = yield* Scratch.directory
      const bindings = FileSessionBindings.make(data)
      yield* bindings.acquire("s-1")
      const { code, message, retryable } = yield* refusal(data)
      assert.deepStrictEqual({ code, message, retryable }, {
        code: "SESSION_BUSY",
        message: "session s-1 is used by another run of this process",
        retryable: true
      })
      yield* bindings.acquire("s-2")
    }))

  it.effect("says how to go on where the holder cannot be seen", () =>
    Effect.gen(function*() {
      const data = yield* Scratch.directory
      const lock = path.join(FileSessionBindings.directoryOf(data, "s-1"), "lock.1")
      fs.mkdirSync(path.dirname(lock), { recursive: true })
      fs.writeFileSync(lock, Holder.format({ ...Holder.self(), pid_namespace: "pid:[1]" }))
      const { code, remedy } = yield* refusal(data)
      assert.deepStrictEqual({ code, remedy }, {
        code: "SESSION_BUSY",
        remedy: `If that process is gone, delete ${lock}; else wait, or use another session.`
      })
    }))

  it.effect("leaves nothing of a session of which nothing was saved", () =>
    Effect.gen(function*() {
      const data = yield* Scratch.directory
      yield* Effect.scoped(FileSessionBindings.make(data).acquire("s-1"))
      assert.deepStrictEqual(fs.readdirSync(path.join(data, "sessions")), [])
    }))

  it.effect("saves nothing after its scope has closed", () =>
    Effect.gen(function*() {
      const data = yield* Scratch.directory
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(FileSessionBindings.make(data).acquire("s-1"), scope)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Effect.flip(lease.save(binding))).failure.code, "SESSION_BUSY")
      assert.isFalse(fs.existsSync(fileOf(data)))
    }))

  it.effect.each([
    ["", "it is not JSON"],
    ["{\"session_id\":\"s-1\"", "it is not JSON"],
    ["null", "Expected SessionBinding"],
    [JSON.stringify({ ...binding, extra: 1 }), "extra"],
    [JSON.stringify({ ...binding, turns: -1 }), "turns"],
    [JSON.stringify({ ...binding, session_id: "other" }), "it belongs to session other"]
  ] as const)("names a file that it cannot understand, and leaves it as it is: %s", ([content, why]) =>
    Effect.gen(function*() {
      const data = yield* Scratch.directory
      const file = fileOf(data)
      fs.mkdirSync(path.dirname(file), { recursive: true })
      fs.writeFileSync(file, content)
      const { code, message, remedy } = yield* refusal(data)
      assert.strictEqual(code, "DATA_DIR_UNUSABLE")
      assert.include(message, file)
      assert.include(message, why)
      assert.strictEqual(remedy, "Move the file away to begin the session anew, or use another session.")
      assert.strictEqual(fs.readFileSync(file, "utf8"), content)
      assert.deepStrictEqual(fs.readdirSync(path.dirname(file)), ["session.json"])
    }))

  it.effect("names a file that is a directory", () =>
    Effect.gen(function*() {
      const data = yield* Scratch.directory
      fs.mkdirSync(fileOf(data), { recursive: true })
      const { code, message } = yield* refusal(data)
      assert.deepStrictEqual({ code, message }, {
        code: "DATA_DIR_UNUSABLE",
        message: `the file ${fileOf(data)} of session s-1 cannot be read: it is a directory`
      })
    }))

  it.effect.skipIf(isRoot)("names a directory that may not be written", () =>
    Effect.gen(function*() {
      const data = yield* Scratch.directory
      fs.chmodSync(data, 0o500)
      const { code, message } = yield* refusal(data)
      assert.strictEqual(code, "DATA_DIR_UNUSABLE")
      assert.include(message, "it may not be written")
    }))

  it.effect.skipIf(!isRoot)("says that the disk is full, and keeps what was saved before", () =>
    Effect.gen(function*() {
      const data = yield* Effect.acquireRelease(
        Effect.map(Scratch.directory, (made) => {
          const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", made])
          return mounted.status === 0 ? made : undefined
        }),
        (made) => Effect.sync(() => made === undefined ? undefined : execFileSync("umount", [made]))
      )
      // A container may forbid mounting; then there is no small disk to fill.
      if (data === undefined) return
      const lease = yield* FileSessionBindings.make(data).acquire("s-1")
      yield* lease.save(binding)
      const filler = fs.openSync(path.join(data, "filler"), "w")
      try {
        for (let block = 0; block < 1000; block++) fs.writeSync(filler, Buffer.alloc(4096))
      } catch (cause) {
        assert.strictEqual((cause as NodeJS.ErrnoException).code, "ENOSPC")
      } finally {
        fs.closeSync(filler)
      }
      const error = yield* Effect.flip(lease.save({ ...binding, turns: 4 }))
      assert.deepStrictEqual([error.failure.code, error.failure.message], [
        "DATA_DIR_UNUSABLE",
        `session s-1 cannot be saved in ${fileOf(data)}: its disk is full`
      ])
      assert.deepStrictEqual(JSON.parse(fs.readFileSync(fileOf(data), "utf8")), binding)
      assert.deepStrictEqual(fs.readdirSync(path.dirname(fileOf(data))).toSorted(), ["lock.1", "session.json"])
      assert.strictEqual((yield* refusal(data, "s-2")).code, "DATA_DIR_UNUSABLE")
    }))
})
