import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Log from "../../kernel/test/support/LogEvents.ts"
import * as Scratch from "./support/Scratch.ts"
import * as Home from "./support/SessionsHome.ts"
import * as Turnpike from "./support/Turnpike.ts"

const patience = 120_000

const turnpike = (home: string, args: ReadonlyArray<string>, options: Omit<Turnpike.Options, "home"> & Turnpike.ShellOptions = {}) =>
  Effect.promise(() => Turnpike.run(args, { home, ...options }))

/** The output of a command that has to succeed. */
const output = (home: string, ...args: ReadonlyArray<string>) =>
  Effect.map(turnpike(home, args), ({ code, stderr, stdout }) => {
    assert.strictEqual(code, 0, stderr)
    return stdout
  })

const { refusal } = Turnpike

const listed = (home: string) => Effect.map(output(home, "sessions", "list", "--json"), (stdout) => stdout.split("\n").filter((line) => line !== "").map((line) => (JSON.parse(line) as { readonly id: string }).id))

const two = [...Log.turn(1, "the first prompt", Log.answer("one")), ...Log.turn(2, "the second prompt", Log.answer("two"))]
const demo = Home.session("demo", two)

/** What a crash left: a turn is open, its prompt taken, and others wait. */
const crashed: Home.Session = {
  ...Home.session("crashed", [...two, Log.turnStart(3), Log.claimed(3, "r-1"), Log.stepStart(), Log.user("x", "r-1"), Log.call("a")], { title: "A title — with a dash" }),
  inbox: ["r-1", "r-2", "r-3"].map((id, seq) => ({ seq, time: seq, type: "received", id, kind: seq === 2 ? "inject" : "followup", text: `text ${seq}\u2028\u007f`, source: "user", key: `k-${seq}` }))
}

const forked = Home.session("forked", [...two, ...Log.turn(3, "x", Log.answer("three"))], { parent: { id: Home.id("demo"), events: 12 } })

/** One whose lines are more than a pipe takes at once. */
const long = Home.session("long", Array.from({ length: 3000 }, (_, index) => Log.turn(index + 1, "x".repeat(100))).flat())

describe.concurrent("turnpike sessions export and import", () => {
  it.live("carry a session into another data directory as it is, also with a turn that is open, an inbox, and a parent", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(crashed, forked)
      const other = yield* Scratch.directory
      for (const { events, header: { id }, inbox = [] } of [crashed, forked]) {
        const file = path.join(home, `${id}.jsonl`)
        const lines = yield* output(home, "sessions", "export", id)
        const report = JSON.parse(yield* output(home, "sessions", "export", id, "--output", file, "--json")) as unknown
        const contents = { events: events.length, records: inbox.length, bytes: Buffer.byteLength(lines) }
        assert.deepStrictEqual([report, fs.readFileSync(file, "utf8")], [{ id, file, ...contents }, lines])
        const imported = yield* turnpike(other, ["sessions", "import", "--json", "-"], { input: lines })
        assert.deepStrictEqual([imported.code, imported.stderr, JSON.parse(imported.stdout)], [0, "", { id, file: null, ...contents }])
        assert.strictEqual(yield* output(other, "sessions", "export", id), lines)
      }
      for (const command of [["log", "crashed"], ["show", "crashed", "--json"], ["explain", "crashed"]]) {
        assert.strictEqual(yield* output(other, "sessions", ...command), yield* output(home, "sessions", ...command), command.join(" "))
      }
      assert.deepStrictEqual((yield* listed(other)).toSorted(), ["crashed", "forked"])
      assert.include(yield* output(other, "sessions", "repair", "crashed", "--apply"), "turn 3 was closed as interrupted")
    }), patience)

  it.live("tell people what was done", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const exported = yield* turnpike(home, ["sessions", "export", "demo", "--output", "demo.jsonl"])
      assert.deepStrictEqual([exported.code, exported.stdout, exported.stderr], [
        0,
        "",
        "turnpike: session demo is in demo.jsonl: 12 events and 0 records of its inbox, 2 kB; `turnpike sessions import` puts it in elsewhere\n"
      ])
      const imported = yield* turnpike(home, ["sessions", "import", "demo.jsonl", "--data-dir", "other"])
      assert.deepStrictEqual([imported.code, imported.stdout, imported.stderr], [
        0,
        "demo\n",
        "turnpike: session demo of scripted in /project was put in: 12 events and 0 records of its inbox\n"
      ])
    }), patience)

  it.live("carry what the log has, without the secrets that it was kept free of, and leave behind what the agent remembers", () =>
    Effect.gen(function*() {
      const [home, other] = [yield* Scratch.directory, yield* Scratch.directory]
      const secret = "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz"
      const options = { cwd: other, env: { MY_API_KEY: secret } }
      const begun = yield* turnpike(home, ["run", "--harness", "scripted", "--session", "live", "--format", "summary", `Keep ${secret} to yourself`], options)
      assert.strictEqual(begun.code, 0, begun.stderr)
      const lines = yield* output(home, "sessions", "export", "live")
      const logged = yield* output(home, "sessions", "log", "live")
      assert.include(logged, "You asked: Keep [REDACTED] to yourself")
      const [, ...rest] = lines.replaceAll(/,"sum":"[0-9a-f]{8}"\}$/gm, "}").split("\n")
      assert.deepStrictEqual(rest.slice(0, -3).join("\n"), logged.trimEnd())
      assert.strictEqual((yield* turnpike(other, ["sessions", "import", "-"], { input: lines })).code, 0)
      const lost = yield* turnpike(other, ["run", "--session", "live", "--format", "summary", "Go on"], options)
      assert.strictEqual(lost.code, 3)
      assert.match(lost.stdout, /^error SESSION_LOST in /)
      const replayed = yield* turnpike(other, ["run", "--session", "live", "--resume", "replay", "--format", "summary", "Go on"], options)
      assert.strictEqual(replayed.code, 0, replayed.stderr)
      assert.include(replayed.stdout, "This conversation began earlier")
      const elsewhere = refusal(yield* turnpike(other, ["run", "--session", "live", "Go on"], { ...options, cwd: home }))
      assert.strictEqual(elsewhere.code, "SESSION_MISMATCH")
    }), patience)
})

describe.concurrent("turnpike sessions export", () => {
  it.live("does not go on for a reader that has read enough, and says when nobody takes it", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(long)
      const running = Turnpike.start(["sessions", "export", "long"], { home })
      yield* Effect.promise(() => running.until("\"type\":\"session\""))
      running.child.stdout.destroy()
      const { code, stderr } = yield* Effect.promise(() => running.ended)
      assert.deepStrictEqual([code, stderr], [0, ""])
      if (!fs.existsSync("/dev/full")) return
      const full = refusal(yield* turnpike(home, ["sessions", "export", "long"], { redirect: ">/dev/full" }))
      assert.deepStrictEqual([full.exit, full.code], [1, "OUTPUT_CLOSED"])
    }), patience)

  it.live.skipIf(process.platform === "win32")("leaves nothing where the file cannot be written to its end", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(long)
      const out = path.join(home, "out")
      fs.mkdirSync(out)
      const file = path.join(out, "long.jsonl")
      // A file size limit stands for a disk that is full: 100 blocks of 512 bytes.
      const refused = refusal(yield* turnpike(home, ["sessions", "export", "long", "--output", file], { before: "ulimit -f 100" }))
      assert.deepStrictEqual([refused.exit, refused.code, refused.message], [1, "RESULT_UNWRITABLE", `the session cannot be written to ${file}: it would be longer than a file may be`])
      assert.deepStrictEqual(fs.readdirSync(out), [])
    }), patience)

  it.live("refuses flags that are for a file, and sessions that there are not", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const refused = yield* Effect.forEach([["demo", "--json"], ["demo", "--force"], ["demo", "--force", "--output", "-"], ["dmeo"], ["demo", "--output", home]], (args) => turnpike(home, ["sessions", "export", ...args]))
      assert.deepStrictEqual(refused.map(refusal).map(({ code, exit, message, stdout }) => [exit, stdout, code, message]), [
        [2, "", "USAGE", "--json tells of the file that --output names, and the session goes to standard output"],
        [2, "", "USAGE", "--force replaces the file that --output names, and the session goes to standard output"],
        [2, "", "USAGE", "--force replaces the file that --output names, and the session goes to standard output"],
        [1, "", "SESSION_UNKNOWN", `there is no session dmeo in ${Home.dataOf(home)}`],
        [1, "", "RESULT_UNWRITABLE", `the session cannot be written to ${home}: it is a directory`]
      ])
      assert.strictEqual(refusal(refused[3]!).remedy, "Did you mean `turnpike sessions export demo`? `turnpike sessions list` lists them.")
    }), patience)

  it.live.skipIf(!Turnpike.canSeeWrites)("says when the session is deleted meanwhile", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(long)
      const running = Turnpike.start(["sessions", "export", "long"], { home })
      yield* Effect.promise(() => running.until("\"type\":\"session\""))
      yield* Effect.promise(() => Turnpike.holdBack(running))
      yield* output(home, "sessions", "delete", "long", "--yes")
      running.child.stdout.resume()
      const { code, stderr, stdout } = yield* Effect.promise(() => running.ended)
      assert.notInclude(stdout, "\"type\":\"end\"")
      assert.deepStrictEqual(refusal({ code, signal: null, stderr, stdout: "" }), {
        exit: 1,
        stdout: "",
        code: "SESSION_UNKNOWN",
        message: "session long was deleted meanwhile",
        remedy: "`turnpike sessions list` lists those that there are."
      })
    }), patience)

  it.live("works while another process drives the session, whose turn is then open", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const store = yield* Home.store(home)
      const writer = yield* store.open(Home.id("demo"), "turnpike chat (process 1 on anna)")
      yield* writer.append([{ seq: 12, time: 1_790_000_009_000, ...Log.turnStart(3) }], { sync: true })
      const lines = yield* output(home, "sessions", "export", "demo")
      const other = yield* Scratch.directory
      assert.strictEqual((yield* turnpike(other, ["sessions", "import", "-"], { input: lines })).code, 0)
      assert.include(yield* output(other, "sessions", "repair", "demo"), "turn 3 would be closed as interrupted")
      assert.strictEqual(yield* Stream.runCount(store.read(Home.id("demo"), -1)), 13)
    }).pipe(Effect.scoped), patience)
})

describe.concurrent("turnpike sessions import", () => {
  it.live("puts nothing in where the file is not what export wrote, and says why", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const lines = yield* output(home, "sessions", "export", "demo")
      const flipped = Buffer.from(lines)
      flipped[lines.indexOf("the second prompt")]! ^= 4
      const damaged = "Nothing was put in. Export the session again, or use a copy of the file that is whole."
      const foreign = "Nothing was put in. Name a file that it wrote, as it wrote it."
      const cases: ReadonlyArray<readonly [content: string | Uint8Array, code: string, message: RegExp, remedy: string]> = [
        ["", "SESSION_DAMAGED", /^FILE is not what `turnpike sessions export` writes: line 1 is missing: /, foreign],
        ["hello\n", "SESSION_DAMAGED", /^FILE is not what `turnpike sessions export` writes: line 1 is no header of a session: it is not JSON$/, foreign],
        [yield* output(home, "sessions", "log", "demo"), "SESSION_DAMAGED", /^FILE is not what `turnpike sessions export` writes: line 1 is no header/, foreign],
        [Uint8Array.of(0x1f, 0x8b, 8, 10), "SESSION_DAMAGED", /its bytes are not UTF-8$/, foreign],
        [lines.slice(0, -1), "SESSION_DAMAGED", /^FILE was not imported: line 14 was cut off/, damaged],
        [lines.slice(0, lines.lastIndexOf("{")), "SESSION_DAMAGED", /^FILE was not imported: line 14 is missing: the file ends before its last line/, damaged],
        [flipped, "SESSION_DAMAGED", /^FILE was not imported: line 10 is no event of a log: its checksum/, damaged],
        [`${lines}${lines}`, "SESSION_DAMAGED", /^FILE was not imported: line 15 begins another session, and a file has one$/, "Nothing was put in. Cut the file in two before line 15, and import each part."],
        [lines.replaceAll("\n", "\r\n"), "SESSION_DAMAGED", /^FILE is not what/, foreign],
        [`{"type":"session","format":2,"id":"demo"}\n`, "FORMAT_UNSUPPORTED", /^FILE was not imported: line 1 is a header of a session of a later version: /, "Nothing was put in. Update Turnpike."]
      ]
      const other = yield* Scratch.directory
      for (const [content, code, message, remedy] of cases) {
        const file = path.join(other, "file.jsonl")
        fs.writeFileSync(file, content)
        const refused = refusal(yield* turnpike(other, ["sessions", "import", file]))
        assert.deepStrictEqual([refused.exit, refused.stdout, refused.code, refused.remedy], [1, "", code, remedy], refused.message)
        assert.match(refused.message.replace(file, "FILE"), message)
      }
      assert.deepStrictEqual(yield* listed(other), [])
    }), patience)

  it.live.skipIf(!fs.existsSync("/dev/full"))("says that it was done where only the answer cannot be written", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const exported = refusal(yield* turnpike(home, ["sessions", "export", "demo", "--output", "demo.jsonl", "--json"], { redirect: ">/dev/full" }))
      const imported = refusal(yield* turnpike(home, ["sessions", "import", "demo.jsonl", "--data-dir", "other"], { redirect: ">/dev/full" }))
      assert.deepStrictEqual([exported, imported].map(({ code, exit }) => [exit, code]), [[1, "OUTPUT_CLOSED"], [1, "OUTPUT_CLOSED"]])
      assert.match(exported.message, /^session demo is in demo\.jsonl, but standard output cannot be written: /)
      assert.match(imported.message, /^session demo was put in, but standard output cannot be written: /)
      assert.strictEqual(yield* output(home, "sessions", "export", "demo", "--data-dir", "other"), fs.readFileSync(path.join(home, "demo.jsonl"), "utf8"))
    }), patience)

  it.live("makes no data directory for a file that cannot be read", () =>
    Effect.gen(function*() {
      const home = yield* Scratch.directory
      for (const [file, why] of [["nothing", "there is no such file"], [".", "it is a directory"]] as const) {
        const refused = refusal(yield* turnpike(home, ["sessions", "import", file]))
        assert.deepStrictEqual([refused.exit, refused.code, refused.message], [1, "FILE_UNREADABLE", `${file} cannot be read: ${why}`])
      }
      assert.strictEqual(refusal(yield* turnpike(home, ["sessions", "import", "-"])).code, "SESSION_DAMAGED")
      const unnamed = refusal(yield* turnpike(home, ["sessions", "import", ""]))
      assert.deepStrictEqual([unnamed.exit, unnamed.code, unnamed.message], [2, "USAGE", "the name of the file is empty"])
      assert.deepStrictEqual(fs.readdirSync(home), [])
    }), patience)

  it.live("does not touch a session that has the id", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const lines = yield* output(home, "sessions", "export", "demo")
      yield* output(home, "sessions", "send", "demo", "more")
      const before = yield* output(home, "sessions", "export", "demo")
      assert.deepStrictEqual(refusal(yield* turnpike(home, ["sessions", "import", "-"], { input: lines })), {
        exit: 1,
        stdout: "",
        code: "SESSION_EXISTS",
        message: `standard input was not imported: there is a session demo already, in ${Home.dataOf(home)}`,
        remedy: "The session that is there is as it was. Name another directory with --data-dir, or delete that session first."
      })
      assert.strictEqual(yield* output(home, "sessions", "export", "demo"), before)
    }), patience)

  it.live.skipIf(process.platform === "win32")("leaves no half of a session, however it is ended", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(long)
      const lines = yield* output(home, "sessions", "export", "long")
      const other = yield* Scratch.directory
      for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143], ["SIGKILL", null]] as const) {
        const running = Turnpike.start(["sessions", "import", "-"], { home: other })
        // Its end never comes, so that what it has taken is all that it gets.
        yield* Effect.promise(() => new Promise((resolve) => running.child.stdin.write(lines.slice(0, -1000), resolve)))
        yield* Effect.promise(async () => {
          for (let tries = 0; !fs.existsSync(Home.fileOf(other)); tries++) {
            if (tries > 1000) throw new Error("no store was made")
            await new Promise((resolve) => setTimeout(resolve, 10))
          }
        })
        assert.deepStrictEqual(yield* listed(other), [])
        running.child.kill(signal)
        assert.strictEqual((yield* Effect.promise(() => running.ended)).code, code)
        assert.deepStrictEqual(yield* listed(other), [])
      }
      assert.strictEqual((yield* turnpike(other, ["sessions", "import", "-"], { input: lines })).stdout, "long\n")
      assert.strictEqual(yield* output(other, "sessions", "export", "long"), lines)
    }), patience)

  it.live.skipIf(!Turnpike.hasTerminal)("says to a person what it waits for, and how far it is", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const lines = (yield* output(home, "sessions", "export", "demo")).split("\n")
      const other = yield* Scratch.directory
      const waiting = Turnpike.startOnTerminal(["sessions", "import", "-"], { home: other })
      yield* Effect.promise(() => waiting.until("waiting for the lines of a session from standard input; Ctrl-D ends them, Ctrl-C ends the waiting"))
      waiting.child.stdin.write(`${lines[0]}\n${lines[1]}\n`)
      yield* Effect.promise(() => waiting.until("standard input: 1 kB, 1 events"))
      waiting.child.stdin.write("\u0003")
      assert.strictEqual((yield* Effect.promise(() => waiting.ended)).code, 130)
      assert.deepStrictEqual(yield* listed(other), [])
    }), patience)
})
