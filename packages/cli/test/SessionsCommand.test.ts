import { assert, describe, it } from "@effect/vitest"
import { Contracts, type InboxEntry } from "@turnpike/contract"
import { Effect, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Log from "../../kernel/test/support/LogEvents.ts"
import * as Scratch from "./support/Scratch.ts"
import * as Home from "./support/SessionsHome.ts"
import * as Turnpike from "./support/Turnpike.ts"

const patience = 60_000

const sessions = (home: string, args: ReadonlyArray<string>, options: Turnpike.ShellOptions = {}) =>
  Effect.promise(() => Turnpike.run(["sessions", ...args], { home, ...options }))

/** The lines of an output, each as the JSON that it is. */
const json = (stdout: string): ReadonlyArray<unknown> => stdout.trimEnd().split("\n").map((line) => JSON.parse(line) as unknown)

const two = [...Log.turn(1, "the first prompt", Log.answer("one")), ...Log.turn(2, "the second prompt", Log.answer("two"))]
const demo = Home.session("demo", two)

const { refusal } = Turnpike

const holding = "turnpike chat (process 1 on anna)"

/** Holds a session, in this process, until the scope closes. */
const hold = (home: string, name: string) => Effect.flatMap(Home.store(home), (store) => Effect.map(store.open(Home.id(name), holding), (writer) => ({ store, writer })))

describe.concurrent("turnpike sessions", () => {
  it.live("makes nothing where there is nothing yet", () =>
    Effect.gen(function*() {
      const home = yield* Scratch.directory
      const data = Home.dataOf(home)
      assert.deepStrictEqual(yield* sessions(home, ["list"]), {
        code: 0,
        signal: null,
        stdout: "",
        stderr: `turnpike: there are no sessions in ${data} yet; \`turnpike run\` begins one\n`
      })
      for (const args of [["show", "demo"], ["send", "demo", "hello"], ["delete", "demo", "--yes"]]) {
        assert.deepStrictEqual(refusal(yield* sessions(home, args)), {
          exit: 1,
          stdout: "",
          code: "SESSION_UNKNOWN",
          message: `there is no session demo in ${data}`,
          remedy: "No session was begun there yet: `turnpike run` begins one. Sessions elsewhere are named with --data-dir."
        })
      }
      assert.isFalse(fs.existsSync(data))
      // A store that was being made when its maker died.
      fs.mkdirSync(data)
      fs.writeFileSync(Home.fileOf(home), "")
      assert.strictEqual((yield* sessions(home, ["list", "--json"])).stdout, "")
      assert.strictEqual(fs.statSync(Home.fileOf(home)).size, 0)
    }), patience)

  it.live("names the session that was probably meant", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const { code, message, remedy } = refusal(yield* sessions(home, ["explain", "dmeo"]))
      assert.deepStrictEqual([code, message, remedy], [
        "SESSION_UNKNOWN",
        `there is no session dmeo in ${Home.dataOf(home)}`,
        "Did you mean `turnpike sessions explain demo`? `turnpike sessions list` lists them."
      ])
      const other = refusal(yield* sessions(home, ["log", "a b\u001b[31m"]))
      assert.deepStrictEqual([other.code, other.message, other.remedy], [
        "SESSION_UNKNOWN",
        `there is no session "a b\\u001b[31m" in ${Home.dataOf(home)}`,
        "`turnpike sessions list` lists those that there are; sessions elsewhere are named with --data-dir."
      ])
    }), patience)

  it.live("changes no file where it only looks", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const before = Home.snapshot(home)
      for (const args of [["list"], ["show", "demo"], ["log", "demo"], ["explain", "demo", "1"]]) {
        assert.strictEqual((yield* sessions(home, args)).code, 0)
      }
      assert.deepStrictEqual(Home.snapshot(home), before)
    }), patience)

  it.live("leaves a store that is none, or is damaged or newer, as it is", () =>
    Effect.gen(function*() {
      const foreign = yield* Scratch.directory
      fs.mkdirSync(Home.dataOf(foreign))
      fs.writeFileSync(Home.fileOf(foreign), "something else\n".repeat(100))
      const newer = yield* Home.make(demo)
      const database = new DatabaseSync(Home.fileOf(newer))
      database.exec("update turnpike_store set version = 999")
      database.close()
      const damaged = yield* Home.make(demo)
      const bytes = fs.readFileSync(Home.fileOf(damaged))
      fs.writeFileSync(Home.fileOf(damaged), Buffer.concat([bytes.subarray(0, 100), Buffer.alloc(bytes.length - 100, 0xa5)]))
      for (const [home, code] of [[foreign, "STORE_FAILED"], [newer, "FORMAT_UNSUPPORTED"], [damaged, "STORE_FAILED"]] as const) {
        const before = Home.snapshot(home)
        for (const args of [["list"], ["send", "demo", "x"]]) {
          const refused = refusal(yield* sessions(home, args))
          assert.deepStrictEqual([refused.exit, refused.code, refused.stdout], [1, code, ""])
          assert.include(refused.message, Home.fileOf(home))
        }
        assert.deepStrictEqual(Home.snapshot(home), before)
      }
    }), patience)

  it.live.skipIf(!fs.existsSync("/dev/full"))("says when nobody takes what it prints, and nothing when a reader has read enough", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      for (const args of [["list"], ["log", "demo"]]) {
        const refused = refusal(yield* sessions(home, args, { redirect: ">/dev/full" }))
        assert.deepStrictEqual([refused.exit, refused.code], [1, "OUTPUT_CLOSED"])
      }
      const { stderr, stdout } = yield* sessions(home, ["log", "demo"], { redirect: "| true" })
      assert.deepStrictEqual([stdout, stderr], ["", ""])
    }), patience)
})

describe.concurrent("turnpike sessions list", () => {
  it.live("lists sessions, the last changed first, with who holds them", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(
        Home.session("old", Log.turn(1, "x")),
        demo,
        { header: Home.header("new", { created: 1_800_000_000_000, title: "A new\none" }), events: [], inbox: [{ seq: 0, time: 1, type: "received", id: "r-1", kind: "followup", text: "x", source: "user" }] }
      )
      const { writer } = yield* hold(home, "old")
      yield* writer.append([{ seq: 5, time: 1_790_000_005_000, ...Log.turnStart(2) }], { sync: true })
      const { code, stderr, stdout } = yield* sessions(home, ["list", "--json"])
      assert.deepStrictEqual([code, stderr], [0, ""])
      const [first, second, third] = json(stdout) as ReadonlyArray<{ readonly id: string; readonly holder: { readonly since: number } | null }>
      assert.deepStrictEqual(first, {
        id: "new",
        title: "A new\none",
        harness: "scripted",
        cwd: "/project",
        created: 1_800_000_000_000,
        updated: 1_800_000_000_000,
        events: 0,
        turns: 0,
        pending: 1,
        holder: null
      } as unknown)
      assert.deepStrictEqual([second?.id, third?.id, second?.holder], ["demo", "old", null])
      assert.deepStrictEqual(third, {
        id: "old",
        harness: "scripted",
        cwd: "/project",
        created: 1_790_000_000_000,
        updated: 1_790_000_005_000,
        events: 6,
        turns: 2,
        pending: 0,
        holder: { name: holding, since: third?.holder?.since }
      } as unknown)
      const { stdout: text } = yield* sessions(home, ["list", "--limit", "2"], { before: "TZ=UTC; export TZ" })
      assert.strictEqual(text, [
        "ID    CHANGED    TURNS  WAIT  HARNESS     [HELD BY] TITLE · DIRECTORY",
        `new   ${Date.now() > 1_800_000_000_000 ? "2027-01-15" : "later     "}     0     1  scripted    A new one · /project`,
        `demo  2026-09-21     2        scripted    /project`,
        ""
      ].join("\n"))
    }), patience)
})

describe.concurrent("turnpike sessions show", () => {
  it.live("tells of the turns, the inbox, the harness's session and the holder", () =>
    Effect.gen(function*() {
      const inbox: ReadonlyArray<InboxEntry.InboxEntry> = [
        { seq: 0, time: 5, type: "received", id: "r-1", kind: "followup", text: "later", source: "user" },
        { seq: 1, time: 6, type: "received", id: "r-2", kind: "inject", text: "know\nthis", source: "plugin:x" }
      ]
      const bound = { type: "session/bound", data: { harness_session_id: "h-1", resumed: false, model: "m" } } as const
      const home = yield* Home.make({ ...Home.session("demo", [...Log.turn(1, "do it", bound, Log.answer("done")), Log.turnStart(2)]), inbox })
      const { stdout } = yield* sessions(home, ["show", "demo"], { before: "TZ=UTC; export TZ" })
      assert.strictEqual(stdout, [
        "session demo",
        "  harness   scripted · m",
        "  directory /project",
        "  begun     2026-09-21 14:13:20",
        "  changed   2026-09-21 14:13:27",
        "  bound to  h-1 of scripted, which is known to have kept it",
        "  held by   nobody",
        "  used      usage unknown",
        "",
        "8 events in 2 turns",
        "    1  2026-09-21 14:13:20  completed · 6.0 s · event 6",
        "       > do it",
        "    2  2026-09-21 14:13:27  left open · event 7",
        "",
        "2 wait in the inbox",
        "  r-2  text from plugin:x, 1970-01-01 00:00:00: know this",
        "  r-1  prompt from user, 1970-01-01 00:00:00: later",
        ""
      ].join("\n"))
      const { writer } = yield* hold(home, "demo")
      assert.strictEqual(writer.recovery.closed.length, 1)
      const shown = JSON.parse((yield* sessions(home, ["show", "demo", "--json", "--limit", "1"])).stdout) as Readonly<Record<string, unknown>>
      const { holder, ...rest } = shown
      assert.strictEqual((holder as { readonly name: string }).name, holding)
      assert.deepStrictEqual(rest, {
        id: "demo",
        harness: "scripted",
        cwd: "/project",
        created: 1_790_000_000_000,
        updated: 1_790_000_007_000,
        events: 9,
        turns: [{
          turn: 2,
          trigger: { kind: "message", source: "user" },
          first_seq: 7,
          last_seq: 8,
          started: 1_790_000_007_000,
          ended: 1_790_000_007_000,
          verdict: { type: "interrupted", not_started: true }
        }],
        pending: 2,
        turn_count: 2,
        usage: { tokens: { source: "unavailable" }, cost: { source: "unavailable" } },
        turns_without_usage: 2,
        harness_session: { id: "h-1", persisted: true, model: "m" },
        inbox: {
          next_turn: [{ time: 5, id: "r-1", kind: "followup", text: "later", source: "user" }],
          next_step: [{ time: 6, id: "r-2", kind: "inject", text: "know\nthis", source: "plugin:x" }],
          discard_requests: []
        }
      })
    }), patience)
})

describe.concurrent("turnpike sessions log", () => {
  it.live("prints the events as the contract has them, from wherever one is", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const { code, stderr, stdout } = yield* sessions(home, ["log", "demo"])
      assert.deepStrictEqual([code, stderr, json(stdout)], [0, "", demo.events as ReadonlyArray<unknown>])
      const check = Contracts.lineChecker("session-event")
      assert.deepStrictEqual(stdout.trimEnd().split("\n").flatMap(check), [])
      assert.deepStrictEqual(json((yield* sessions(home, ["log", "demo", "--after", "8", "--json"])).stdout), demo.events.slice(9) as ReadonlyArray<unknown>)
      const last = yield* sessions(home, ["log", "demo", "--after", "11"])
      assert.deepStrictEqual([last.code, last.stdout, last.stderr], [0, "", ""])
      yield* Home.put(home, { header: Home.header("empty"), events: [] })
      for (const [name, after, message] of [["demo", "12", "the log of session demo ends at event 11, and --after is 12"], ["empty", "0", "session empty has no event yet"]] as const) {
        for (const follow of [[], ["--follow"]]) {
          assert.deepStrictEqual(refusal(yield* sessions(home, ["log", name, "--after", after, ...follow])), {
            exit: 2,
            stdout: "",
            code: "USAGE",
            message,
            remedy: "Leave out --after to read from the beginning."
          })
        }
      }
      const both = refusal(yield* sessions(home, ["log", "demo", "--json", "--format", "text"]))
      assert.deepStrictEqual([both.exit, both.code], [2, "USAGE"])
    }), patience)

  it.live("prints text for people", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const { stdout } = yield* sessions(home, ["log", "demo", "--format", "text"], { before: "TZ=UTC; export TZ" })
      assert.strictEqual(stdout, [
        "session demo · scripted · /project",
        "",
        "── turn 1 · 2026-09-21 14:13:20 · message from user · event 0",
        "> the first prompt",
        "one",
        "✓ completed · 5.0 s · usage unknown",
        "",
        "── turn 2 · 2026-09-21 14:13:26 · message from user · event 6",
        "> the second prompt",
        "two",
        "✓ completed · 5.0 s · usage unknown",
        ""
      ].join("\n"))
    }), patience)

  it.live.skipIf(process.platform === "win32")("follows what another process writes, until a signal", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const { writer } = yield* hold(home, "demo")
      for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
        const first = signal === "SIGINT" ? 12 : 13
        const running = Turnpike.start(["sessions", "log", "demo", "--follow", "--after", "9", "--format", "events"], { home })
        yield* Effect.promise(() => running.until(`"seq":${first - 1},`))
        const event = { seq: first, time: 1_790_000_100_000, ...(first === 12 ? Log.turnStart(3) : Log.user("live")) }
        yield* writer.append([event], { sync: false })
        yield* Effect.promise(() => running.until(`"seq":${first},`))
        running.child.kill(signal)
        const ended = yield* Effect.promise(() => running.ended)
        assert.deepStrictEqual([ended.code, ended.stderr], [code, ""])
        assert.deepStrictEqual((json(ended.stdout) as ReadonlyArray<{ readonly seq: number }>).map(({ seq }) => seq), first === 12 ? [10, 11, 12] : [10, 11, 12, 13])
      }
    }).pipe(Effect.scoped), patience)

  it.live.skipIf(process.platform === "win32")("stops following when its reader goes away, and when the session is deleted", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const store = yield* Home.store(home)
      yield* Effect.scoped(Effect.gen(function*() {
        const writer = yield* store.open(Home.id("demo"), holding)
        let seq = 12
        const write = Effect.suspend(() => writer.append([{ seq, time: 1_790_000_100_000, ...(seq++ === 12 ? Log.turnStart(3) : Log.chunk("more")) }], { sync: false }))
        const ended = yield* Effect.raceFirst(
          sessions(home, ["log", "demo", "--follow", "--format", "events"], { redirect: "| head -n 1" }),
          Effect.forever(Effect.andThen(write, Effect.sleep("100 millis")))
        )
        assert.deepStrictEqual([ended.stdout.startsWith("{\"seq\":0,"), ended.stderr], [true, ""])
      }))
      const running = Turnpike.start(["sessions", "log", "demo", "--follow", "--format", "text"], { home })
      yield* Effect.promise(() => running.until("turn 2"))
      yield* store.delete(Home.id("demo"))
      const { code, message } = refusal(yield* Effect.promise(() => running.ended))
      assert.deepStrictEqual([code, message], ["SESSION_UNKNOWN", "session demo was deleted"])
    }).pipe(Effect.scoped), patience)
})

describe.concurrent("turnpike sessions explain", () => {
  it.live("says why a turn ended, the last one unless another is asked for", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(Home.session("demo", [...Log.turn(1, "x", Log.answer("one")), Log.turnStart(2), Log.claimed(2, "r-1")]), {
        ...Home.session("crashed", [Log.turnStart(1), Log.claimed(1, "r-1")]),
        inbox: [{ seq: 0, time: 1, type: "received", id: "r-1", kind: "followup", text: "do it", source: "user" }]
      })
      const first = yield* sessions(home, ["explain", "demo", "1"], { before: "TZ=UTC; export TZ" })
      assert.deepStrictEqual([first.code, first.stdout], [
        0,
        [
          "✓ turn 1 completed: scripted ended it by itself, without an error",
          "  begun 2026-09-21 14:13:20",
          "  0  a message that was waiting began it",
          "  2  it was asked: “x”",
          "  3  scripted had said: “one”",
          "→ Nothing: it succeeded.",
          ""
        ].join("\n")
      ])
      const left = JSON.parse((yield* sessions(home, ["explain", "demo", "--json"])).stdout) as Readonly<Record<string, unknown>>
      assert.deepStrictEqual([left["turn"], left["state"], left["verdict"], left["success"]], [2, "left_open", null, null])
      yield* sessions(home, ["repair", "crashed", "--apply"])
      const crashed = JSON.parse((yield* sessions(home, ["explain", "crashed", "--json"])).stdout) as Readonly<Record<string, unknown>>
      assert.deepStrictEqual(crashed, {
        session_id: "crashed",
        turn: 1,
        state: "ended",
        trigger: { kind: "message", source: "user" },
        started: 1_790_000_000_000,
        ended: 1_790_000_001_000,
        verdict: { type: "interrupted", not_started: true },
        success: false,
        summary: "turn 1 was cut off by a crash before anything of it left for scripted",
        evidence: [
          { kind: "beginning", seq: 0, text: "a message that was waiting began it" },
          { kind: "recovery", seq: 2, text: "whoever opened the session next closed the turn" },
          { kind: "recovery", text: "receipt r-1, which it had taken, was put back as receipt r-2, which waits" }
        ],
        what_to_do: "Its prompt waits as receipt r-2: `turnpike chat --session crashed` takes it."
      })
      const wrong = [["explain", "demo", "0"], ["explain", "demo", "last"], ["explain", "demo", "7"]] as const
      assert.deepStrictEqual((yield* Effect.forEach(wrong, (args) => sessions(home, args))).map(refusal).map(({ code, exit, message, remedy }) => [exit, code, message, remedy]), [
        [2, "USAGE", "TURN is \"0\"; turns are counted from 1", "Give a turn's number, or leave it out for the last one; `turnpike sessions show ID` lists them."],
        [2, "USAGE", "TURN is \"last\"; turns are counted from 1", "Give a turn's number, or leave it out for the last one; `turnpike sessions show ID` lists them."],
        [2, "USAGE", "session demo has no turn 7", "Give a turn from 1 to 2."]
      ])
    }), patience)
})

describe.concurrent("turnpike sessions send", () => {
  it.live("receives a prompt durably and says who takes it", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      assert.deepStrictEqual(yield* sessions(home, ["send", "demo", "hello\u001b", "--key", "k"]), {
        code: 0,
        signal: null,
        stdout: "r-1\n",
        stderr: "turnpike: receipt r-1 of session demo: it was received; nobody holds the session: it waits until `turnpike chat --session demo` takes it\n"
      })
      const again = yield* sessions(home, ["send", "demo", "hello\u001b", "--key", "k"])
      assert.deepStrictEqual([again.code, again.stdout], [0, "r-1\n"])
      assert.include(again.stderr, "it was received before under this key, and is the same message")
      const other = refusal(yield* sessions(home, ["send", "demo", "another", "--key", "k"]))
      assert.deepStrictEqual([other.exit, other.code, other.stdout], [1, "KEY_CONFLICT", ""])
      const text = "two\nlines — and 🚂\n"
      assert.strictEqual((yield* sessions(home, ["send", "demo", "--steer", "-"], { input: text })).stdout, "r-2\n")
      const { store } = yield* hold(home, "demo")
      const held = JSON.parse((yield* sessions(home, ["send", "demo", "third", "--json"])).stdout) as { readonly receipt: { readonly time: number }; readonly holder: { readonly since: number } }
      assert.deepStrictEqual(held, {
        session_id: "demo",
        receipt: { time: held.receipt.time, id: "r-3", kind: "followup", text: "third", source: "user" },
        is_new: true,
        waits: true,
        holder: { name: holding, since: held.holder.since }
      } as unknown)
      const pending = yield* store.pending(Home.id("demo"))
      assert.deepStrictEqual([...pending.nextStep, ...pending.nextTurn].map(({ id, kind, text }) => [id, kind, text]), [
        ["r-2", "steer", text],
        ["r-1", "followup", "hello\u001b"],
        ["r-3", "followup", "third"]
      ])
      for (const [args, input] of [[["send", "demo", ""], ""], [["send", "demo", "-"], " \n"]] as const) {
        const empty = refusal(yield* sessions(home, args, { input }))
        assert.deepStrictEqual([empty.exit, empty.code], [2, "EMPTY_TASK"])
      }
    }).pipe(Effect.scoped), patience)
})

describe.concurrent("turnpike sessions inject", () => {
  it.live("parks a text, or writes it as a turn of its own unless somebody holds the session", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      const parked = yield* sessions(home, ["inject", "demo", "the build is red"])
      assert.deepStrictEqual([parked.stdout, parked.stderr], [
        "r-1\n",
        "turnpike: receipt r-1 of session demo: it was received; nobody holds the session: the next turn takes it before its prompt\n"
      ])
      const written = yield* sessions(home, ["inject", "demo", "--as", "turn", "-"], { input: "it is green\n" })
      assert.deepStrictEqual([written.stdout, written.stderr], ["3\n", "turnpike: the text is turn 3 of session demo\n"])
      const { store } = yield* hold(home, "demo")
      const added = yield* Stream.runCollect(store.read(Home.id("demo"), 11))
      assert.deepStrictEqual(added.map(({ data, seq, type }) => [seq, type, data]), [
        [12, "turn/start", { turn: 3, trigger: { kind: "injection", source: "user" } }],
        [13, "context/message", { text: "it is green\n", source: "user" }],
        [14, "turn/end", { turn: 3, verdict: { type: "completed" } }]
      ])
      assert.deepStrictEqual((yield* store.pending(Home.id("demo"))).nextStep.map(({ text }) => text), ["the build is red"])
      const refused = refusal(yield* sessions(home, ["inject", "demo", "--as", "turn", "x"]))
      assert.deepStrictEqual([refused.exit, refused.code, refused.remedy], [
        1,
        "SESSION_BUSY",
        "Leave out `--as turn`: the text then waits, and the next step of whoever holds the session takes it."
      ])
      assert.include(refused.message, `session demo is used by ${holding} since `)
      const wrong = refusal(yield* sessions(home, ["inject", "demo", "--as", "turn", "--key", "k", "x"]))
      assert.deepStrictEqual([wrong.exit, wrong.code], [2, "USAGE"])
    }).pipe(Effect.scoped), patience)
})

describe.concurrent("turnpike sessions fork", () => {
  it.live("begins a session with the first turns of another", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(Home.session("demo", two, { title: "A title" }))
      const made = yield* sessions(home, ["fork", "demo"])
      assert.match(made.stdout, /^[0-9a-f-]{36}\n$/)
      const forked = JSON.parse((yield* sessions(home, ["fork", "demo", "--at", "5", "--id", "other", "--json"])).stdout) as unknown
      assert.deepStrictEqual(forked, { id: "other", parent: { id: "demo", events: 6 } })
      const store = yield* Home.store(home)
      const { created, ...header } = yield* store.header(Home.id("other"))
      assert.isAbove(created, 1_790_000_000_000)
      assert.deepStrictEqual(header, {
        type: "session",
        format: 1,
        id: Home.id("other"),
        harness: "scripted",
        cwd: "/project",
        title: "A title",
        parent: { id: Home.id("demo"), events: 6 }
      })
      assert.deepStrictEqual(yield* Stream.runCollect(store.read(Home.id("other"), -1)), demo.events.slice(0, 6))
      assert.deepStrictEqual(yield* Stream.runCollect(store.read(Home.id(made.stdout.trim()), -1)), demo.events)
      const wrong = [["fork", "demo", "--at", "7"], ["fork", "demo", "--id", "other"], ["fork", "demo", "--id", "../x"]] as const
      assert.deepStrictEqual((yield* Effect.forEach(wrong, (args) => sessions(home, args))).map(refusal).map(({ code, exit, message }) => [exit, code, message]), [
        [2, "USAGE", "event 7 of session demo is not the end of a turn"],
        [1, "SESSION_EXISTS", "there is a session other already"],
        [2, "USAGE", "\"../x\" cannot be the id of a session"]
      ])
    }).pipe(Effect.scoped), patience)
})

describe.concurrent("turnpike sessions repair", () => {
  it.live("says what opening a session would put in order, and does it where it is told to", () =>
    Effect.gen(function*() {
      const home = yield* Home.make({
        ...Home.session("demo", [...two, Log.turnStart(3), Log.claimed(3, "r-1"), Log.stepStart(), Log.user("x", "r-1"), Log.call("a")]),
        inbox: [{ seq: 0, time: 1, type: "received", id: "r-1", kind: "followup", text: "x", source: "user" }]
      })
      const before = Home.snapshot(home)
      const dry = yield* sessions(home, ["repair", "demo"])
      assert.deepStrictEqual([dry.code, dry.stdout], [
        0,
        [
          "session demo was left by a crash; opening it puts it in order, and nothing was changed yet",
          "  shell (call a) would be given the result TOOL_OUTCOME_UNKNOWN: nobody knows what it did",
          "  turn 3 would be closed as interrupted",
          "→ `turnpike sessions repair demo --apply` does it now; the next run or chat does it by itself",
          ""
        ].join("\n")
      ])
      const planned = JSON.parse((yield* sessions(home, ["repair", "demo", "--json"])).stdout) as { readonly closed: ReadonlyArray<unknown> }
      assert.deepStrictEqual(Home.snapshot(home), before)
      const applied = JSON.parse((yield* sessions(home, ["repair", "demo", "--apply", "--json"])).stdout) as unknown
      assert.deepStrictEqual(applied, { ...planned, applied: true } as unknown)
      assert.strictEqual(planned.closed.length, 3)
      assert.strictEqual((yield* sessions(home, ["repair", "demo"])).stdout, "session demo is in order: there is nothing to do\n")
      yield* hold(home, "demo")
      const held = refusal(yield* sessions(home, ["repair", "demo", "--apply"]))
      assert.deepStrictEqual([held.exit, held.code, held.remedy], [
        1,
        "SESSION_BUSY",
        "Whoever holds a session has put it in order. Wait until it is let go, or end what holds it."
      ])
    }).pipe(Effect.scoped), patience)

  it.live("says how far a log can be read that is damaged, and how that part is saved", () =>
    Effect.gen(function*() {
      for (const [damagedAt, message] of [[8, "session demo: event 8 cannot be read: the checksum is not that of the bytes"], [190, "session demo: event 190 cannot be read: the checksum is not that of the bytes"]] as const) {
        const home = yield* Scratch.directory
        yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* Home.store(home)
          yield* store.create(Home.header("demo"))
          const writer = yield* store.open(Home.id("demo"), holding)
          // A row for each, so that all that is before the damaged one can be read.
          for (const event of Log.log(Array.from({ length: 40 }, (_, index) => Log.turn(index + 1, "x")).flat())) yield* writer.append([event], { sync: false })
        }))
        const database = new DatabaseSync(Home.fileOf(home))
        database.prepare("update batches set sum = sum + 1 where first_seq = ?").run(damagedAt)
        database.close()
        const before = Home.snapshot(home)
        const repaired = refusal(yield* sessions(home, ["repair", "demo"]))
        const end = damagedAt - 1 - damagedAt % 5
        assert.deepStrictEqual([repaired.exit, repaired.code, repaired.message, repaired.stdout], [
          1,
          "SESSION_DAMAGED",
          message,
          `session demo is damaged, and was not changed\n  its first ${damagedAt} events can be read\n  \`turnpike sessions fork demo --at ${end}\` begins a new session with the turns that have ended among them\n`
        ])
        assert.strictEqual(json((yield* sessions(home, ["log", "demo"])).stdout).length, damagedAt)
        assert.deepStrictEqual(Home.snapshot(home), before)
        const saved = yield* sessions(home, ["fork", "demo", "--at", String(end), "--id", "saved"])
        assert.deepStrictEqual([saved.code, saved.stdout], [0, "saved\n"])
        const gone = yield* sessions(home, ["delete", "demo", "--yes"])
        assert.deepStrictEqual([gone.code, gone.stdout], [0, "deleted demo\n"])
      }
    }), patience)
})

describe.concurrent("turnpike sessions delete", () => {
  it.live("deletes sessions with their directories, all or none", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo, Home.session("one", two), Home.session("two", two), Home.session("held", two))
      const settings = path.join(Home.dataOf(home), "sessions", "one", "settings")
      fs.mkdirSync(settings, { recursive: true })
      fs.writeFileSync(path.join(settings, "x"), "x")
      const { store } = yield* hold(home, "held")
      const refused = (yield* Effect.forEach([["delete", "one"], ["delete", "one", "nowhere", "--yes"], ["delete", "one", "held", "--yes"]], (args) => sessions(home, args))).map(refusal)
      assert.deepStrictEqual(refused.map(({ code, exit, remedy }) => [exit, code, remedy]), [
        [2, "USAGE", "Add --yes where it is meant."],
        [1, "SESSION_UNKNOWN", "`turnpike sessions list` lists those that there are; sessions elsewhere are named with --data-dir."],
        [1, "SESSION_BUSY", "Nothing was deleted. End what holds the session first."]
      ])
      assert.isTrue(fs.existsSync(settings))
      const deleted = yield* sessions(home, ["delete", "one", "two", "one", "--yes", "--json"])
      assert.deepStrictEqual([deleted.code, json(deleted.stdout)], [0, [{ id: "one", deleted: true }, { id: "two", deleted: true }]])
      assert.deepStrictEqual((yield* Stream.runCollect(store.list)).map(({ header }) => header.id as string).sort(), ["demo", "held"])
      assert.isFalse(fs.existsSync(path.dirname(settings)))
    }).pipe(Effect.scoped), patience)

  it.live.skipIf(!Turnpike.hasTerminal)("asks a person, and takes nothing but yes for yes", () =>
    Effect.gen(function*() {
      const home = yield* Home.make(demo)
      for (const [answer, code, told] of [["\r", 0, "nothing was deleted"], ["\u0003", 130, "nothing was deleted"], ["y\r", 0, "deleted demo"]] as const) {
        const running = Turnpike.startOnTerminal(["sessions", "delete", "demo"], { home })
        yield* Effect.promise(() => running.until("Delete it? [y/N] "))
        running.child.stdin.write(answer)
        const ended = yield* Effect.promise(() => running.ended)
        assert.deepStrictEqual([ended.code, ended.stdout.includes(told)], [code, true])
        assert.include(ended.stdout, "  demo: 2 turns, /project\n")
      }
      assert.strictEqual((yield* sessions(home, ["list"])).stdout, "")
    }), patience)
})

describe.concurrent("a conversation that another process runs", () => {
  it.live.skipIf(process.platform === "win32")("takes what is sent to it, and is explained and put in order when it was killed", () =>
    Effect.gen(function*() {
      const home = yield* Scratch.directory
      const scenario = path.join(home, "scenario.json")
      fs.writeFileSync(scenario, JSON.stringify({
        description: "Answers once, and then never comes to an end.",
        turns: [{ do: [{ type: "text", text: "hello" }, { type: "end", reason: "completed" }] }, { repeats: true, do: [{ type: "text", text: "Let me think" }, { type: "hang" }] }]
      }))
      const chat = Turnpike.start(["chat", "--harness", "scripted", "--scenario", scenario, "--session", "live", "--format", "events"], { home })
      yield* Effect.addFinalizer(() => Effect.sync(() => chat.child.kill("SIGKILL")))
      chat.child.stdin.write("{\"type\":\"prompt\",\"text\":\"one\"}\n")
      yield* Effect.promise(() => chat.until("\"result\":{\"result\""))
      const followed = Turnpike.start(["sessions", "log", "live", "--follow", "--format", "text"], { home })
      yield* Effect.promise(() => followed.until("completed"))

      const sent = yield* sessions(home, ["send", "live", "two"])
      assert.strictEqual(sent.code, 0)
      assert.match(sent.stderr, /it was received; (turnpike chat \(process \d+ on .+\) holds the session since .+, and takes it after the turns before it|it was taken already)\n$/)
      yield* Effect.promise(() => followed.until("Let me think"))
      followed.child.kill("SIGINT")
      assert.match((yield* Effect.promise(() => followed.ended)).stdout, /> one\n[^]*hello\n[^]*> two\n[^]*Let me think/)

      const running = JSON.parse((yield* sessions(home, ["explain", "live", "--json"])).stdout) as Readonly<Record<string, unknown>>
      assert.deepStrictEqual([running["turn"], running["state"], running["verdict"]], [2, "running", null])
      const held = refusal(yield* sessions(home, ["repair", "live"]))
      assert.deepStrictEqual([held.exit, held.code], [1, "SESSION_BUSY"])

      chat.child.kill("SIGKILL")
      yield* Effect.promise(() => chat.ended)
      assert.include((yield* sessions(home, ["explain", "live"])).stdout, "… turn 2 has no end: a crash left it open, and nobody has opened the session since")
      assert.include((yield* sessions(home, ["repair", "live", "--apply"])).stdout, "  turn 2 was closed as interrupted\n")
      const told = JSON.parse((yield* sessions(home, ["explain", "live", "--json"])).stdout) as Readonly<Record<string, unknown>>
      assert.deepStrictEqual([told["state"], told["summary"], told["what_to_do"]], [
        "ended",
        "turn 2 was cut off by a crash",
        "Go on with `turnpike chat --session live`: what the turn did until then is in its log."
      ])
    }).pipe(Effect.scoped), patience)
})
