import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as DataDirectory from "../src/DataDirectory.ts"
import * as Scratch from "./support/Scratch.ts"

const isRoot = process.geteuid?.() === 0

describe("the data directory", () => {
  it("is named by the flag, else by TURNPIKE_HOME, else by the platform", () => {
    const all = { TURNPIKE_HOME: "/own", XDG_STATE_HOME: "/state", HOME: "/home/me" }
    assert.deepStrictEqual(DataDirectory.choose("/flag", all), { directory: "/flag", by: "--data-dir" })
    assert.deepStrictEqual(DataDirectory.choose("relative", {}).directory, path.resolve("relative"))
    assert.deepStrictEqual(DataDirectory.choose(undefined, all), { directory: "/own", by: "TURNPIKE_HOME" })
  })

  it.skipIf(process.platform !== "linux")("is the XDG state directory on Linux, where that is absolute", () => {
    const directory = (environment: Record<string, string>) => DataDirectory.choose(undefined, { HOME: "/home/me", ...environment }).directory
    assert.deepStrictEqual(
      [directory({ XDG_STATE_HOME: "/state" }), directory({ XDG_STATE_HOME: "state" }), directory({ TURNPIKE_HOME: "" }), directory({ HOME: "here" })],
      ["/state/turnpike", "/home/me/.local/state/turnpike", "/home/me/.local/state/turnpike", path.join(os.userInfo().homedir, ".local/state/turnpike")]
    )
  })

  it.effect("is made for the user alone; one that exists keeps its mode", () =>
    Effect.gen(function*() {
      const parent = yield* Scratch.directory
      const made = yield* DataDirectory.open({ directory: path.join(parent, "a", "b"), by: "--data-dir" })
      assert.strictEqual(fs.statSync(made).mode & 0o777, 0o700)
      fs.chmodSync(made, 0o755)
      yield* DataDirectory.open({ directory: made, by: "--data-dir" })
      assert.strictEqual(fs.statSync(made).mode & 0o777, 0o755)
    }))

  it.effect("is refused where a variable names it by a relative path, which would be another one in every directory", () =>
    Effect.gen(function*() {
      const { failure } = yield* Effect.flip(DataDirectory.open(DataDirectory.choose(undefined, { TURNPIKE_HOME: "state" })))
      assert.deepStrictEqual([failure.code, failure.message, failure.remedy], [
        "DATA_DIR_UNUSABLE",
        "the data directory state (TURNPIKE_HOME) cannot be used: it is not an absolute path, and would be another one in every working directory",
        "Make TURNPIKE_HOME an absolute path, or name the directory with --data-dir."
      ])
      assert.isFalse(fs.existsSync("state"))
    }))

  it.effect("is refused where it is a file or lies in one", () =>
    Effect.gen(function*() {
      const file = yield* Scratch.file("file", "")
      const refusal = (directory: string) =>
        Effect.map(Effect.flip(DataDirectory.open({ directory, by: "TURNPIKE_HOME" })), ({ failure }) => [failure.code, failure.message])
      assert.deepStrictEqual([yield* refusal(file), yield* refusal(path.join(file, "x"))], [
        ["DATA_DIR_UNUSABLE", `the data directory ${file} (TURNPIKE_HOME) cannot be used: it is not a directory`],
        ["DATA_DIR_UNUSABLE", `the data directory ${path.join(file, "x")} (TURNPIKE_HOME) cannot be used: a part of its path is not a directory`]
      ])
    }))

  it.effect.skipIf(process.platform !== "linux")("is refused, without a hang, on a file system that takes no new entry", () =>
    Effect.gen(function*() {
      const { failure } = yield* Effect.flip(DataDirectory.open({ directory: "/proc/turnpike", by: "--data-dir" }))
      assert.deepStrictEqual(failure.code, "DATA_DIR_UNUSABLE")
    }))

  it.effect.skipIf(isRoot)("is refused where it may not be written", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      fs.chmodSync(directory, 0o500)
      const { failure } = yield* Effect.flip(DataDirectory.open({ directory, by: "--data-dir" }))
      assert.include(failure.message, "it may not be written")
    }))
})
