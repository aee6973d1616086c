import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import { DatabaseSync } from "node:sqlite"
import * as Log from "../../kernel/test/support/LogEvents.ts"
import * as Home from "./support/SessionsHome.ts"
import * as Turnpike from "./support/Turnpike.ts"

const patience = 120_000

const sessions = (home: string, args: ReadonlyArray<string>, options: Turnpike.ShellOptions = {}) =>
  Effect.promise(() => Turnpike.run(["sessions", ...args], { home, ...options }))

const { refusal } = Turnpike

const idsOf = (stdout: string): ReadonlyArray<string> =>
  stdout.trimEnd().split("\n").map((line) => (JSON.parse(line) as { readonly id: string }).id)

const demo = Home.session("demo", Log.turn(1, "the first prompt", Log.answer("one")))
const open = Home.session("open", [Log.turnStart(1), Log.stepStart(), Log.user("x")])
const bad = Home.session("bad", Log.turn(1, "x"))

const execute = (home: string, statement: string) => {
  const database = new DatabaseSync(Home.fileOf(home))
  database.exec(statement)
  database.close()
}

describe.concurrent("a session that cannot be read", () => {
  it.live("keeps nobody from the others", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo, bad, open)
      execute(home, "update sessions set header_sum = header_sum + 1 where id = 'bad'")
      const before = Home.snapshot(home)
      const refused = {
        exit: 1,
        code: "SESSION_DAMAGED",
        message: "session bad: its header cannot be read: the checksum is not that of its text",
        remedy: "Nothing was changed. Nothing else of the session can be read without it: restore the sessions from a copy, or delete this one with `turnpike sessions delete`."
      }
      const listed = refusal(yield* sessions(home, ["list", "--json"]))
      assert.deepStrictEqual({ ...listed, stdout: idsOf(listed.stdout) }, { ...refused, stdout: ["demo", "open"] })
      for (const command of ["show", "log", "explain", "repair", "export", "fork"]) {
        assert.deepStrictEqual(refusal(yield* sessions(home, [command, "bad"])), { ...refused, stdout: "" })
      }
      for (const args of [["show", "demo"], ["repair", "open"], ["explain", "open"], ["log", "demo", "--after", "5"]]) {
        const { code, stderr } = yield* sessions(home, args)
        assert.deepStrictEqual([code, stderr], [0, ""], args.join(" "))
      }
      const mistyped = refusal(yield* sessions(home, ["show", "dmo"]))
      assert.deepStrictEqual([mistyped.code, mistyped.remedy], ["SESSION_UNKNOWN", "Did you mean `turnpike sessions show demo`? `turnpike sessions list` lists them."])
      assert.deepStrictEqual(Home.snapshot(home), before)
      const sent = yield* sessions(home, ["send", "demo", "hello"])
      assert.deepStrictEqual([sent.code, sent.stderr], [0, "turnpike: receipt r-1 of session demo: it was received; nobody holds the session: it waits until `turnpike chat --session demo` takes it\n"])
      assert.deepStrictEqual((yield* sessions(home, ["delete", "bad", "--yes"])).stdout, "deleted bad\n")
      assert.deepStrictEqual(idsOf((yield* sessions(home, ["list", "--json"])).stdout), ["demo", "open"])
    }), patience)

  it.live("can be forked where only its inbox is what cannot", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo, bad)
      for (const name of ["bad", "demo"]) yield* sessions(home, ["send", name, "hello"])
      execute(home, "update inbox set sum = sum + 1 where session = (select number from sessions where id = 'bad')")
      for (const command of ["show", "export"]) {
        const { code, exit, message, remedy } = refusal(yield* sessions(home, [command, "bad"]))
        assert.deepStrictEqual([exit, code, message, remedy], [
          1,
          "SESSION_DAMAGED",
          "session bad: record 0 of its inbox cannot be read: the checksum is not that of its text",
          "Nothing was changed. `turnpike sessions fork` begins a new session with the turns of its log; restore its inbox from a copy."
        ])
      }
      assert.deepStrictEqual((yield* sessions(home, ["fork", "bad", "--id", "saved"])).stdout, "saved\n")
      assert.deepStrictEqual((yield* sessions(home, ["show", "demo"])).code, 0)
    }), patience)
})

describe.concurrent("what was done and cannot be told", () => {
  it.live.skipIf(!fs.existsSync("/dev/full"))("is said to be done, so that nobody does it again", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo, bad, open)
      const done: ReadonlyArray<readonly [args: ReadonlyArray<string>, said: string]> = [
        [["send", "demo", "x"], "receipt r-1 of session demo: it was received"],
        [["send", "demo", "x", "--json"], "receipt r-2 of session demo: it was received"],
        [["inject", "demo", "x"], "receipt r-3 of session demo: it was received"],
        [["inject", "demo", "x", "--as", "turn"], "the text is turn 2 of session demo"],
        [["inject", "demo", "x", "--as", "turn", "--json"], "the text is turn 3 of session demo"],
        [["fork", "demo", "--id", "new"], "session new begins with the first 12 events of demo"],
        [["fork", "demo", "--id", "newer", "--json"], "session newer begins with the first 12 events of demo"],
        [["repair", "open", "--apply"], "session open was put in order"],
        [["repair", "open", "--apply"], "session open is in order"],
        [["delete", "bad", "new", "--yes"], "sessions bad, new were deleted"],
        [["delete", "newer", "--yes", "--json"], "session newer was deleted"]
      ]
      for (const [args, said] of done) {
        const { code, exit, message } = refusal(yield* sessions(home, args, { redirect: ">/dev/full" }))
        assert.deepStrictEqual([exit, code, message.startsWith(`${said}, but standard output cannot be written: `)], [1, "OUTPUT_CLOSED", true], message)
      }
      assert.deepStrictEqual([...idsOf((yield* sessions(home, ["list", "--json"])).stdout)].sort(), ["demo", "open"])
    }), patience)
})
