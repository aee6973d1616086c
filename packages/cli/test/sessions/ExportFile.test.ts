import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as ExportFile from "../../src/sessions/ExportFile.ts"
import * as Scratch from "../support/Scratch.ts"

const options = { force: false, dataDirectory: "/nonexistent" }

/** Writes a file of two parts; `between` runs when one of them is there. */
const write = (file: string, { between = Effect.void, ...given }: Partial<ExportFile.Options> & { readonly between?: Effect.Effect<void> } = {}) =>
  Effect.scoped(Effect.gen(function*() {
    const opened = yield* ExportFile.open(file, { ...options, ...given })
    yield* opened.write("one\n")
    yield* between
    yield* opened.write("two\n")
    yield* opened.complete
    return opened.path
  }))

const why = (file: string, given?: Parameters<typeof write>[1]) =>
  Effect.map(Effect.flip(write(file, given)), ({ failure: { code, message, remedy } }) => ({ code, why: message.replace(`the session cannot be written to ${file}: `, ""), remedy }))

const elsewhere = "Name another file with --output, or leave it out to get the session on standard output."
const replace = "Name another file with --output, or replace it with --force."

describe("the file of an exported session", () => {
  it.live("is there when it is whole, for the user alone", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      const file = path.join(directory, "demo.jsonl")
      assert.strictEqual(yield* write(file, { between: Effect.sync(() => assert.isFalse(fs.existsSync(file))) }), file)
      assert.deepStrictEqual([fs.readFileSync(file, "utf8"), fs.statSync(file).mode & 0o777, fs.readdirSync(directory)], ["one\ntwo\n", 0o600, ["demo.jsonl"]])
    }))

  it.live("replaces another one where it is told to, and keeps its permissions and the link to it", () =>
    Effect.gen(function*() {
      const file = yield* Scratch.file("demo.jsonl", "before")
      fs.chmodSync(file, 0o640)
      const link = path.join(path.dirname(file), "link")
      fs.symlinkSync(file, link)
      assert.deepStrictEqual(yield* why(link), { code: "RESULT_UNWRITABLE", why: "it is there already", remedy: replace })
      assert.strictEqual(fs.readFileSync(file, "utf8"), "before")
      yield* write(link, { force: true })
      assert.deepStrictEqual([fs.readFileSync(file, "utf8"), fs.statSync(file).mode & 0o777, fs.lstatSync(link).isSymbolicLink()], ["one\ntwo\n", 0o640, true])
    }))

  it.live("leaves one that came meanwhile, and nothing of its own", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      const file = path.join(directory, "demo.jsonl")
      const between = Effect.sync(() => fs.writeFileSync(file, "another"))
      assert.deepStrictEqual(yield* why(file, { between }), { code: "RESULT_UNWRITABLE", why: "it is there already", remedy: replace })
      assert.deepStrictEqual([fs.readFileSync(file, "utf8"), fs.readdirSync(directory)], ["another", ["demo.jsonl"]])
    }))

  it.live("is not there where the writing was interrupted or failed", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      const exit = yield* Effect.exit(write(path.join(directory, "demo.jsonl"), { between: Effect.interrupt }))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(fs.readdirSync(directory), [])
    }))

  it.live("is refused by its name where it cannot be one", () =>
    Effect.gen(function*() {
      const directory = yield* Scratch.directory
      const store = yield* Scratch.file("sessions.sqlite", "the sessions")
      fs.symlinkSync("circle", path.join(directory, "circle"))
      const unwritable = (why: string, remedy = elsewhere) => ({ code: "RESULT_UNWRITABLE", why, remedy })
      assert.deepStrictEqual(yield* why(directory), unwritable("it is a directory"))
      assert.deepStrictEqual(yield* why(path.join(directory, "no", "file")), unwritable("its directory does not exist"))
      assert.deepStrictEqual(yield* why(path.join(store, "file")), unwritable("a part of its path is no directory"))
      assert.deepStrictEqual(yield* why(path.join(directory, "circle")), unwritable("its symbolic links go in a circle"))
      for (const name of ["new/", "sessions.sqlite/"]) {
        assert.deepStrictEqual(yield* why(`${path.dirname(store)}/${name}`, { force: true }), unwritable("its name is that of a directory"))
      }
      const dataDirectory = path.dirname(store)
      const link = path.join(directory, "data")
      fs.symlinkSync(dataDirectory, link)
      fs.symlinkSync(path.join(link, "sessions.sqlite-shm"), path.join(directory, "shared"))
      const ofStore = [store, ...["-wal", "-journal"].map((suffix) => `${store}${suffix}`), path.join(link, "sessions.sqlite-wal"), path.join(directory, "shared")]
      for (const file of ofStore) {
        assert.deepStrictEqual(yield* why(file, { force: true, dataDirectory }), unwritable("the sessions themselves are in it, or would be"), file)
      }
      assert.deepStrictEqual(fs.readdirSync(dataDirectory), ["sessions.sqlite"])
      assert.strictEqual(fs.readFileSync(store, "utf8"), "the sessions")
      if (fs.existsSync("/dev/full")) {
        assert.deepStrictEqual(yield* why("/dev/full", { force: true }), unwritable("it is no regular file", "Leave out --output, and send standard output there."))
      }
    }))
})
