import { assert, describe, it } from "@effect/vitest"
import { type AgentRunEvent, Failure, TurnEvent } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { Cancel, ChannelError, Harness, HarnessError, Redaction, Run, SessionLog, SessionStore, SessionStoreMemory, TurnError } from "../src/index.ts"
import * as FakeHarness from "./support/FakeHarness.ts"
import * as FakeSession from "./support/FakeSession.ts"
import * as Scene from "./support/Scene.ts"

const { bound } = FakeHarness
const { chunk, end, message } = FakeSession

const call = (id: string, name = "Bash") => TurnEvent.make("tool/call", { call_id: id, name, input: { command: "ls" } })
const result = (id: string, data: Partial<TurnEvent.Of<"tool/result">["data"]> = {}) =>
  TurnEvent.make("tool/result", { call_id: id, is_error: false, ...data })

const startFailed = HarnessError.notStarted(Failure.make("SPAWN_FAILED", "no such program"))

const deaf: FakeHarness.Parts = {
  turn: () => Stream.concat(Stream.make(bound(), chunk("par"), call("t1"), chunk("tial")), Stream.never)
}

describe("a reader that goes away", () => {
  it.effect("at any event ends the run with channel_lost, and nothing more is sent to it", () =>
    Effect.gen(function*() {
      const whole = yield* Scene.run({ fake: FakeHarness.make() })
      const total = whole.events.length
      assert.strictEqual(total, 18)
      for (let nth = 0; nth < total; nth++) {
        const fake = FakeHarness.make()
        let offered = 0
        const told = yield* Scene.run({
          fake,
          sink: () => Effect.suspend(() => offered++ === nth ? Effect.fail(ChannelError.io("EPIPE")) : Effect.void)
        })
        assert.strictEqual(offered, nth + 1, `event ${nth}`)
        assert.deepStrictEqual(told.events, whole.events.slice(0, nth), `event ${nth}`)
        assert.deepStrictEqual(Scene.faults(told, fake, { cut: true }), [], `event ${nth}`)
        const ended = whole.events.findIndex(({ type }) => type === "message")
        // Once the ending has been read the turn stands, whoever is there to hear of it.
        assert.strictEqual(
          Scene.show(told.result),
          nth <= ended ? "adapter_error CHANNEL_LOST" : "success",
          `event ${nth}: ${whole.events[nth]?.type}`
        )
      }
    }))

  it.effect("is told in the result with what the channel said, without credentials", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const told = yield* Scene.run({ fake, sink: () => Effect.fail(ChannelError.io("EPIPE token=abcdef")) })
      assert.deepStrictEqual(told.result?.error?.message, "the channel that the turn needed went away: channel I/O error: EPIPE token=[REDACTED]")
    }))

  it.effect("by a bug is a lost channel too", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const told = yield* Scene.run({
        fake,
        sink: (event) => {
          if (event.type === "turn_start") throw new Error("bug in the sink")
          return Effect.void
        }
      })
      assert.strictEqual(Scene.show(told.result), "adapter_error CHANNEL_LOST")
      assert.strictEqual(told.events.at(-1)?.type, "session_start")
    }))

  it.effect("by taking nothing any more holds the turn back, and is given up a grace after a hard request", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const cancel = yield* Cancel.make
      const told: Scene.Told = { events: [], result: undefined }
      const fiber = yield* Effect.forkChild(
        Scene.run({ fake, cancel, sink: (event) => event.type === "text_delta" ? Effect.never : Effect.void }, told),
        { startImmediately: true }
      )
      yield* TestClock.adjust("1 day")
      assert.isUndefined(fiber.pollUnsafe())
      yield* cancel.request({ cause: "user", mode: "hard" })
      yield* TestClock.adjust(4999)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
      assert.strictEqual(Scene.show(told.result), "hard_cancel CANCELLED")
      assert.strictEqual(told.events.at(-1)?.type, "tool_start")
      assert.deepStrictEqual(Scene.faults(told, fake, { cut: true }), [])
    }))

  it.effect("is never interrupted in the middle of an event: the numbers have no gap", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make(deaf)
      const cancel = yield* Cancel.make
      const told: Scene.Told = { events: [], result: undefined }
      const gate = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        Scene.run({ fake, cancel, sink: (event) => event.type === "text_delta" ? Deferred.await(gate) : Effect.void }, told),
        { startImmediately: true }
      )
      yield* Effect.yieldNow
      yield* cancel.request({ cause: "user", mode: "hard" })
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(Scene.faults(told, fake), [])
      assert.strictEqual(told.events.at(-1)?.type, "result")
    }))
})

describe("an interrupted caller", () => {
  it.effect("at any event and in every phase leaves a run that is told to its end, and is interrupted then", () =>
    Effect.gen(function*() {
      const total = (yield* Scene.run({ fake: FakeHarness.make() })).events.length
      for (let nth = 0; nth < total; nth++) {
        const fake = FakeHarness.make()
        const told: Scene.Told = { events: [], result: undefined }
        const reached = yield* Deferred.make<void>()
        const goOn = yield* Deferred.make<void>()
        let offered = 0
        const fiber = yield* Effect.forkChild(
          Scene.run({
            fake,
            sink: () =>
              Effect.suspend(() =>
                offered++ === nth ? Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(goOn)) : Effect.void
              )
          }, told),
          { startImmediately: true }
        )
        yield* Deferred.await(reached)
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
        yield* Deferred.succeed(goOn, undefined)
        yield* Fiber.join(interrupting)
        assert.strictEqual(Scene.exitOf(yield* Fiber.await(fiber)), "interrupted", `event ${nth}`)
        assert.deepStrictEqual(Scene.faults(told, fake), [], `event ${nth}`)
        assert.strictEqual(told.events.at(-1)?.type, "result", `event ${nth}`)
      }
    }))

  for (
    const [phase, parts] of Object.entries<FakeHarness.Parts>({
      launch: { opening: Effect.never },
      await: deaf,
      capture: { backgroundDone: Effect.never }
    })
  ) {
    it.effect(`while ${phase} hangs cuts the run off`, () =>
      Effect.gen(function*() {
        const fake = FakeHarness.make(parts)
        const told: Scene.Told = { events: [], result: undefined }
        const fiber = yield* Effect.forkChild(Scene.run({ fake }, told), { startImmediately: true })
        yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(Scene.exitOf(yield* Fiber.await(fiber)), "interrupted")
        assert.deepStrictEqual(Scene.faults(told, fake), [])
        const last = told.events.at(-1)
        assert.strictEqual(
          last?.type === "result" ? Scene.show(last.result) : "none",
          phase === "capture" ? "success" : "hard_cancel CANCELLED"
        )
      }))
  }

  it.effect("that cannot be interrupted still sees its cancel requests heard", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make(deaf)
      const cancel = yield* Cancel.make
      const fiber = yield* Effect.forkChild(Effect.uninterruptible(Scene.run({ fake, cancel })), { startImmediately: true })
      yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
      yield* cancel.request({ cause: "user", mode: "hard" })
      assert.strictEqual(Scene.show((yield* Fiber.join(fiber)).result), "hard_cancel CANCELLED")
    }))
})

describe("the result", () => {
  it.effect("is the whole answer, the turn, and the log in its order", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const { events, result } = yield* Scene.run({ fake })
      assert.deepStrictEqual<unknown>(events.at(-1), { type: "result", run_id: "run-1", seq: 17, ts: "1970-01-01T00:00:00.000Z", result })
      const claim = result?.session_log[1]
      const receipt = claim?.type === "inbox/claimed" ? claim.data.ids[0] : undefined
      assert.isString(receipt)
      assert.deepStrictEqual<unknown>(result, {
        result: { success: true, summary: "echo: hello" },
        reason: "success",
        verdict: { type: "completed" },
        session: { id: "session-1", harness: "fake", harness_session_id: "h-1", turn: 1 },
        usage: { tokens: { source: "unavailable" }, cost: { source: "unavailable" } },
        denials: [],
        background_killed: [],
        killed: [],
        survivors: [],
        error: null,
        session_log: [
          { seq: 0, time: 0, type: "turn/start", data: { turn: 1, trigger: { kind: "message", source: "user" } } },
          { seq: 1, time: 0, type: "inbox/claimed", data: { turn: 1, ids: [receipt] } },
          { seq: 2, time: 0, type: "step/start", data: { step: 1 } },
          { seq: 3, time: 0, type: "user/message", data: { text: "hello", source: "user", receipt }, surface_op: "append" },
          { seq: 4, time: 0, type: "session/bound", data: { harness_session_id: "h-1", resumed: false } },
          // Two pieces of the answer stand before the message in the log.
          { seq: 7, time: 0, type: "assistant/message", data: { text: "echo: hello" }, surface_op: "append" },
          { seq: 8, time: 0, type: "step/end", data: { step: 1 } },
          { seq: 9, time: 0, type: "turn/end", data: { turn: 1, verdict: { type: "completed" } } }
        ],
        output_artifacts: [],
        observability: null,
        duration_ms: 0
      })
      assert.deepStrictEqual(fake.prompts, ["hello"])
    }))

  it.effect("goes to the caller alone where it is not delivered on the stream", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const told = yield* Scene.run({ fake, deliver: "caller" })
      assert.deepStrictEqual(told.events.map(({ type }) => type).slice(-2), ["turn_end", "session_end"])
      assert.strictEqual(told.result?.reason, "success")
      assert.deepStrictEqual(Scene.faults(told, fake), [])
    }))

  it.effect("lists what the session's closing found, and denials that were seen or listed, each once", () =>
    Effect.gen(function*() {
      const killed = [{ pid: 7, command: "sleep 300" }]
      const survivors = [{ pid: 8, command: "daemon" }]
      const fake = FakeHarness.make({
        turn: () =>
          Stream.make(
            bound(),
            call("a"),
            result("a", { is_error: true, denied: true }),
            call("b", "Write"),
            result("b", { is_error: true, denied: true }),
            end("no", { denials: [{ tool_name: "Write", call_id: "b" }, { tool_name: "Fetch" }] })
          ),
        close: Effect.succeed({ ...Harness.nothingFound, killed, survivors })
      })
      const told = yield* Scene.run({ fake })
      assert.deepStrictEqual(told.result?.denials, [
        { tool_name: "Write", call_id: "b" },
        { tool_name: "Fetch" },
        { tool_name: "Bash", call_id: "a", input: { command: "ls" } }
      ])
      assert.deepStrictEqual([told.result?.killed, told.result?.survivors], [killed, survivors])
      assert.deepStrictEqual(Scene.faults(told, fake), [])
    }))

  it.effect("keeps in its log the failure that a stronger cause outranked", () =>
    Effect.gen(function*() {
      const closing = yield* Deferred.make<void>()
      const cancel = yield* Cancel.make
      const fake = FakeHarness.make({
        turn: () => Stream.fail(TurnError.io("the pipe broke")),
        close: Effect.as(Deferred.await(closing), Harness.nothingFound)
      })
      const fiber = yield* Effect.forkChild(Scene.run({ fake, cancel }), { startImmediately: true })
      yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)
      yield* cancel.request({ cause: "user", mode: "hard" })
      yield* Deferred.succeed(closing, undefined)
      const told = yield* Fiber.join(fiber)
      assert.strictEqual(Scene.show(told.result), "hard_cancel CANCELLED")
      assert.deepStrictEqual(told.result?.session_log.map(({ data, type }) => type === "error" ? [type, data] : type), [
        "turn/start",
        "inbox/claimed",
        "step/start",
        "user/message",
        "step/end",
        ["error", { code: "HARNESS_IO", message: "the pipe broke" }],
        "turn/end"
      ])
    }))

  it.effect("says something of a failure that says nothing, and bounds one that says too much", () =>
    Effect.gen(function*() {
      const failing = (text: string) =>
        Effect.map(
          Scene.run({ fake: FakeHarness.make({ turn: () => Stream.fail(TurnError.reported(Failure.make("SERVER", text))) }) }),
          ({ result }) => result?.error?.message ?? ""
        )
      assert.strictEqual(yield* failing(""), "SERVER, without a message")
      assert.strictEqual((yield* failing(`😀${"x".repeat(1_000_000)}`)).length, 8193)
      assert.strictEqual(yield* failing("password=hunter2"), "password=[REDACTED]")
      // Redacted before it is cut: of a key across the bound nothing is left.
      assert.notInclude(yield* failing(`${"x ".repeat(4090)}sk-ant-${"s".repeat(100)}`), "sss")
    }))
})

describe("events", () => {
  it.effect("carry no credential that the run was given, and bounded outputs", () =>
    Effect.gen(function*() {
      const key = "sekret-value-1234"
      const login = JSON.stringify({ tokens: { id: "id-token-0123456789", refresh: "refresh-0123456789" } })
      const fake = FakeHarness.make({
        turn: () =>
          Stream.make(
            TurnEvent.make("notice", { kind: "harness_note", message: `key ${key}`, raw: { a: [key] } }),
            bound(),
            TurnEvent.make("permission/request", { request_id: "p", tool_name: "Bash", input: { command: key }, description: `run ${key}` }),
            TurnEvent.make("permission/decision", { request_id: "p", decision: "deny", by: "deny" }),
            TurnEvent.make("tool/call", { call_id: "a", name: "Bash", input: { command: `echo ${key}` } }),
            result("a", { output: `${key} id-token-0123456789 refresh-0123456789 ${"x".repeat(200_000)}`, denied: true }),
            TurnEvent.make("todo/write", { todos: [{ content: `use ${key}`, status: "pending" }] }),
            TurnEvent.make("retry/scheduled", {
              attempt: 1,
              error: Failure.make("SERVER", `refused ${key}`, { data: { key } })
            }),
            TurnEvent.make("permission/request", { request_id: "q", tool_name: "Bash" }),
            TurnEvent.make("permission/decision", { request_id: "q", decision: "deny", by: "hook", reason: `it holds ${key}` }),
            end("done", {
              denials: [{ tool_name: "Bash", call_id: "a", input: { command: key } }],
              background: [{ id: "t", description: `curl ${key}` }],
              harness_reason: key
            })
          ),
        close: Effect.succeed({ ...Harness.nothingFound, backgroundKilled: [{ id: "t", description: `curl ${key}` }] })
      })
      const told = yield* Scene.run({
        fake,
        session: { env: { SOME_API_KEY: key }, credentials: { codex: { auth_json: login } }, redact: Redaction.withSecrets([key]) }
      })
      assert.deepStrictEqual(told.result?.background_killed, [{ id: "t", description: "curl [REDACTED]" }])
      const text = JSON.stringify(told)
      assert.notInclude(text, key)
      assert.notInclude(text, "0123456789")
      assert.isBelow(text.length, 150_000)
      assert.deepStrictEqual(Scene.faults(told, fake), [])
    }))

  it.effect("are never nested deeper than a reader of the contract takes", () =>
    Effect.gen(function*() {
      const deep = (levels: number): Schema.Json => {
        let value: Schema.Json = "the end"
        for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { value }
        return value
      }
      const inputOf = (levels: number) => TurnEvent.make("tool/call", { call_id: `c${levels}`, name: "Bash", input: deep(levels) })
      const fake = FakeHarness.make({
        turn: () =>
          Stream.make(
            bound(),
            inputOf(64),
            inputOf(65),
            inputOf(100_000),
            TurnEvent.make("notice", { kind: "unknown_frame", message: "?", raw: deep(200) }),
            end("done", { denials: [{ tool_name: "Bash", input: deep(200) }] })
          )
      })
      const told = yield* Scene.run({ fake })
      assert.deepStrictEqual(Scene.faults(told, fake), [])
      const inputs = told.events.flatMap((event) => event.type === "tool_start" && event.kind === "tool" ? [JSON.stringify(event.tool_input)] : [])
      assert.strictEqual(inputs[0], JSON.stringify(deep(64)))
      assert.strictEqual(inputs[1]?.includes("the end"), false)
      assert.deepStrictEqual(inputs.map((text) => text.includes("[nested more than 64 levels deep]")), [false, true, true])
      const failing = FakeHarness.make({
        turn: () => Stream.fail(TurnError.reported(Failure.make("HARNESS_FAILED", "broken", { data: deep(100_000) })))
      })
      assert.deepStrictEqual(Scene.faults(yield* Scene.run({ fake: failing }), failing), [])
    }))

  it.effect("carry no credential in the model's words either, however its pieces are cut", () =>
    Effect.gen(function*() {
      const key = "sekret-value-1234"
      const pieces = (...texts: ReadonlyArray<string>) => texts.map((text) => TurnEvent.make("assistant/chunk", { kind: "text", text }))
      const turnOf = (...events: ReadonlyArray<TurnEvent.TurnEvent>) =>
        Scene.run({ fake: FakeHarness.make({ turn: () => Stream.fromIterable(events) }), session: { env: { SOME_API_KEY: key } } })
      const texts = (told: Scene.Told) => told.events.flatMap((event) => event.type === "text_delta" ? [event.text] : [])

      const whole = yield* turnOf(...pieces("it is sek", "ret-val", "ue-1234", " and se"), end(`it is ${key} and se`))
      assert.deepStrictEqual(texts(whole), ["it is ", "[REDACTED]", " and ", "se"])
      assert.strictEqual(whole.result?.result.summary, "it is [REDACTED] and se")
      assert.notInclude(JSON.stringify(whole), key)

      const torn = yield* turnOf(...pieces("it is sekret"))
      assert.deepStrictEqual(texts(torn), ["it is ", "sekret"])

      const plain = yield* turnOf(...pieces("", "s", "afe"), end("safe"))
      assert.deepStrictEqual(texts(plain), ["", "safe"])
    }))

  it.effect("before the session is named are told before it: a notice opens no turn", () =>
    Effect.gen(function*() {
      const note = TurnEvent.make("notice", { kind: "restarted", message: "again" })
      const fake = FakeHarness.make({ turn: () => Stream.make(note, bound("h-9"), end("a")) })
      const told = yield* Scene.run({ fake })
      assert.deepStrictEqual(Scene.words(told.events).slice(4, 10), [
        "submit {",
        "notice restarted",
        "} submit",
        "session_start",
        "turn_start",
        "await {"
      ])
      const start = told.events.find((event) => event.type === "session_start")
      assert.strictEqual(start?.type === "session_start" ? start.harness_session_id : undefined, "h-9")
      assert.deepStrictEqual(Scene.faults(told, fake), [])
    }))
})

describe("what the harness does by itself while a run waits for its tasks", () => {
  const used = (input_tokens: number): TurnEvent.TurnEvent =>
    TurnEvent.make("usage", { usage: { tokens: { source: "reported", input_tokens, output_tokens: 1 }, cost: { source: "unavailable" } }, final: true })

  it.effect("is told and logged in its turn, and counts in what it consumed; the answer stays what it was", () =>
    Effect.gen(function*() {
      const done = yield* Deferred.make<void>()
      const own = Stream.make(
        TurnEvent.make("step/start", { step: 1 }),
        chunk("the task"),
        message("the task is done"),
        TurnEvent.make("step/end", { step: 1 }),
        used(5),
        end("the task is done")
      )
      const fake = FakeHarness.make({
        turn: () => Stream.make(bound(), message("begun"), used(10), end("begun")),
        backgroundDone: Deferred.await(done),
        onOwnTurn: (listener) => Effect.asVoid(Effect.forkScoped(Effect.andThen(listener(own), Deferred.succeed(done, undefined))))
      })
      const told = yield* Scene.run({ fake })
      assert.deepStrictEqual(Scene.faults(told, fake), [])
      assert.deepStrictEqual([Scene.show(told.result), told.result?.result.summary], ["success", "begun"])
      assert.deepStrictEqual(told.result?.usage.tokens, { source: "reported", input_tokens: 15, output_tokens: 2 })
      assert.deepStrictEqual(told.result?.session_log.slice(4).map(({ data, type }) => [type, Reflect.get(data as object, "origin")]), [
        ["session/bound", undefined],
        ["assistant/message", undefined],
        ["usage", undefined],
        ["step/end", undefined],
        ["step/start", undefined],
        ["assistant/message", "background"],
        ["step/end", undefined],
        ["usage", undefined],
        ["turn/end", undefined]
      ])
      assert.deepStrictEqual(Scene.words(told.events).slice(9), ["message", "token_usage", "} await", "capture {", "text_delta", "message", "token_usage", "} capture", "turn_end", "session_end", "result"])
    }))

  it.effect("is no failure of the run where it fails, and is told", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make({
        turn: () => Stream.make(bound(), end("begun")),
        onOwnTurn: (listener) => listener(Stream.fail(TurnError.io("the pipe broke")))
      })
      const told = yield* Scene.run({ fake })
      assert.deepStrictEqual([Scene.show(told.result), Scene.faults(told, fake)], ["success", []])
      assert.include(Scene.words(told.events), "notice teardown_failed")
    }))
})

describe("a session that is kept open", () => {
  it.effect("runs one turn after the other with the same session, counts them, and stays open", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make({ turn: (text) => Stream.make(end(`echo: ${text}`)) })
      const options: Scene.Options = { fake }
      const prepared = yield* Scene.prepare(options)
      const keep = Run.keep(yield* fake.harness.open(prepared.options))
      const turns: Array<unknown> = []
      for (const task of ["one", "two", "three"]) {
        const told: Scene.Told = { events: [], result: undefined }
        yield* Scene.execute({ ...prepared, spec: { ...prepared.spec, task } }, { ...options, keep }, told)
        turns.push([told.result?.session.turn, told.result?.result.summary])
        assert.deepStrictEqual(Scene.faults(told, fake, { kept: true }), [])
      }
      assert.deepStrictEqual(turns, [[1, "echo: one"], [2, "echo: two"], [3, "echo: three"]])
      assert.deepStrictEqual([fake.counts.opened, fake.counts.closed, fake.counts.released], [1, 0, 0])
    }).pipe(Effect.scoped, Effect.provide(SessionStoreMemory.layer)))

  it.effect("is told whole at the start of each run, although its harness says it once", () =>
    Effect.gen(function*() {
      const facts = { harness_session_id: "h-1", resumed: false, harness_version: "1.2.3", model: "m", tools: ["Read"], mcp_servers: [] }
      let turns = 0
      const fake = FakeHarness.make({
        turn: (text) =>
          Stream.suspend(() => {
            turns++
            const said: Stream.Stream<TurnEvent.TurnEvent> = turns === 1
              ? Stream.make({ type: "session/bound", data: facts })
              : turns === 4
              ? Stream.make({ type: "session/bound", data: { ...facts, model: "n", resumed: true } })
              : Stream.empty
            return text === "break" ? Stream.fail(TurnError.io("x")) : Stream.concat(said, Stream.make(end(text)))
          })
      })
      const prepared = yield* Scene.prepare({ fake })
      const keep = Run.keep(yield* fake.harness.open(prepared.options))
      const starts: Array<unknown> = []
      for (const task of ["one", "two", "break", "four", "five"]) {
        const told: Scene.Told = { events: [], result: undefined }
        yield* Scene.execute({ ...prepared, spec: { ...prepared.spec, task } }, { fake, keep }, told)
        const start = told.events.find((event) => event.type === "session_start")
        starts.push(start?.type === "session_start"
          ? [start.harness_session_id, start.harness_version, start.model, start.tools, start.mcp_servers, start.resumed, told.result?.session.resumed]
          : undefined)
        assert.deepStrictEqual(Scene.faults(told, fake, { kept: true }), [])
      }
      const first = ["h-1", "1.2.3", "m", ["Read"], [], false, undefined]
      const later = ["h-1", "1.2.3", "m", ["Read"], [], true, "native"]
      const changed = ["h-1", "1.2.3", "n", ["Read"], [], true, "native"]
      assert.deepStrictEqual(starts, [first, later, later, changed, changed])
    }).pipe(Effect.scoped, Effect.provide(SessionStoreMemory.layer)))

  it.effect("tells once, when it is resumed, that the turn before was cut off", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make({
        turn: (text) =>
          text === "break"
            ? Stream.concat(Stream.make(bound()), Stream.fail(TurnError.io("x")))
            : Stream.make({ type: "session/bound", data: { harness_session_id: "h-1", resumed: true } }, end(text))
      })
      const store = yield* SessionStore.SessionStore
      const doubts: Array<ReadonlyArray<string>> = []
      for (const task of ["break", "two", "three"]) {
        const options = { fake, spec: { task } }
        const told: Scene.Told = { events: [], result: undefined }
        yield* Effect.scoped(Effect.flatMap(Scene.prepare(options), (prepared) => Scene.execute(prepared, options, told)))
        doubts.push(told.events.flatMap((event) => event.type === "notice" ? [`${event.kind}: ${event.message}`] : []))
        assert.deepStrictEqual(Scene.faults(told, fake), [])
      }
      assert.deepStrictEqual(doubts, [[], ["turn_in_doubt: turn 1 was cut off, and fake, which goes on with the session, may not have all of it"], []])
      const notices = (yield* Stream.runCollect(store.read(Scene.sessionId, -1))).filter(({ type }) => type === "notice")
      assert.strictEqual(notices.length, 1, "it is in the log")
    }).pipe(Effect.provide(SessionStoreMemory.layer)))

  it.effect("tells an id that it has in its log", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make({ turn: (text) => Stream.make(bound(), end(text)) })
      const prepared = yield* Scene.prepare({ fake })
      const known: Array<unknown> = []
      const sink = (event: AgentRunEvent.AgentRunEvent) =>
        Effect.sync(() => {
          if (event.type === "session_start") known.push([event.harness_session_id, prepared.log.binding()?.harnessSessionId])
        })
      const told: Scene.Told = { events: [], result: undefined }
      yield* Scene.execute(prepared, { fake, sink }, told)
      assert.deepStrictEqual(known, [["h-1", "h-1"]])
    }).pipe(Effect.scoped, Effect.provide(SessionStoreMemory.layer)))

  it.effect("is not prompted where the run was asked to end before, and is usable after a turn was cut off", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make({ turn: (text) => text === "hang" ? Stream.never : Stream.make(bound(), end(text)) })
      const prepared = yield* Scene.prepare({ fake })
      const keep = Run.keep(yield* fake.harness.open(prepared.options))
      const turn = (task: string, cancel: Cancel.CancelToken) => {
        const told: Scene.Told = { events: [], result: undefined }
        return Effect.as(Scene.execute({ ...prepared, spec: { ...prepared.spec, task } }, { fake, keep, cancel }, told), told)
      }
      const early = yield* Cancel.make
      yield* early.request({ cause: "user", mode: "graceful" })
      assert.strictEqual(Scene.show((yield* turn("never", early)).result), "graceful_cancel CANCELLED")
      const cancel = yield* Cancel.make
      const hanging = yield* Effect.forkChild(turn("hang", cancel), { startImmediately: true })
      yield* cancel.request({ cause: "user", mode: "hard" })
      assert.strictEqual(Scene.show((yield* Fiber.join(hanging)).result), "hard_cancel CANCELLED")
      const last = yield* turn("again", yield* Cancel.make)
      assert.deepStrictEqual([Scene.show(last.result), last.result?.session.turn], ["success", 2])
      assert.deepStrictEqual(fake.prompts, ["hang", "again"])
    }).pipe(Effect.scoped, Effect.provide(SessionStoreMemory.layer)))
})

describe("what is remembered of the session", () => {
  /** Runs one turn after the other on the same session and says what was remembered after each. */
  const remembered = (...turns: ReadonlyArray<FakeHarness.Parts>) =>
    Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      const found: Array<unknown> = []
      for (const parts of turns) {
        const fake = FakeHarness.make(parts)
        yield* Effect.scoped(Effect.gen(function*() {
          const prepared = yield* Scene.prepare({ fake })
          yield* Scene.execute(prepared, { fake }, { events: [], result: undefined })
        }))
        const isKept = yield* Effect.isSuccess(store.header(Scene.sessionId))
        const log = isKept ? yield* Effect.scoped(SessionLog.open(store, Scene.sessionId, "the test")) : undefined
        found.push([log?.binding()?.harnessSessionId, log?.binding()?.isPersisted, log?.lastTurn(), fake.options[0]?.resume])
      }
      return found
    }).pipe(Effect.provide(SessionStoreMemory.layer))

  it.effect("is written once it has answered, and then lost only with its history", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* remembered(
          { opening: Effect.fail(startFailed) },
          { turn: () => Stream.concat(Stream.make(bound("a")), Stream.fail(TurnError.io("x"))) },
          { turn: () => Stream.make(bound("a", true), message("hi"), end("hi")) },
          { turn: () => Stream.make(bound("b", true), end("hi")) },
          { turn: () => Stream.concat(Stream.make(bound("c")), Stream.fail(TurnError.io("x"))) }
        ),
        [
          // Nothing has happened in it, and it is gone.
          [undefined, undefined, undefined, undefined],
          ["a", false, 1, undefined],
          ["a", true, 2, { harnessSessionId: "a", onLost: "fresh" }],
          ["b", true, 3, { harnessSessionId: "a", onLost: "fail" }],
          ["c", false, 4, { harnessSessionId: "b", onLost: "fail" }]
        ]
      )
    }))

  it.effect("has the prompt on disk before anything of it leaves", () =>
    Effect.gen(function*() {
      let atPrompt: ReadonlyArray<string> = []
      const prepared = yield* Scene.prepare({ fake: FakeHarness.make() })
      const fake = FakeHarness.make({
        turn: () =>
          Stream.unwrap(Effect.map(Stream.runCollect(Stream.orDie(prepared.store.read(Scene.sessionId, -1))), (events) => {
            atPrompt = [...events].map(({ type }) => type)
            return Stream.make(end("a"))
          }))
      })
      yield* Scene.execute({ ...prepared, harness: fake.harness }, { fake }, { events: [], result: undefined })
      assert.deepStrictEqual(atPrompt, ["turn/start", "inbox/claimed", "step/start", "user/message"])
    }).pipe(Effect.scoped, Effect.provide(SessionStoreMemory.layer)))
})

describe("what waits in the inbox of a run", () => {
  it.effect("is told with its prompt, but for what somebody wants to be discarded", () =>
    Effect.gen(function*() {
      const store = yield* SessionStoreMemory.make
      const fake = FakeHarness.make()
      yield* Effect.gen(function*() {
        const prepared = yield* Scene.prepare({ fake })
        const inject = (text: string) => store.receive(Scene.sessionId, { kind: "inject", text, source: "somebody" })
        const { receipt } = yield* inject("not this")
        yield* inject("this")
        yield* store.requestDiscard(Scene.sessionId, [receipt.id], "somebody")
        yield* Scene.execute(prepared, { fake }, { events: [], result: undefined })
      }).pipe(Effect.scoped, Effect.provideService(SessionStore.SessionStore, store))
      assert.deepStrictEqual(fake.prompts, ["this\n\nhello"])
    }))
})

describe("a number that JSON has and nobody can write again", () => {
  it.effect("is told as what comes nearest, and ends no turn", () =>
    Effect.gen(function*() {
      const input = JSON.parse("{\"nothing\":-0.0,\"much\":[1e999,-1e999]}") as Schema.Json
      const fake = FakeHarness.make({
        turn: () => Stream.make(bound(), TurnEvent.make("tool/call", { call_id: "t", name: "t", input }), result("t"), message("done"), end("done"))
      })
      const told = yield* Scene.run({ fake })
      assert.strictEqual(Scene.show(told.result), "success")
      const inputs = told.result?.session_log.flatMap((event) => event.type === "tool/call" ? [event.data.input] : [])
      assert.deepStrictEqual(inputs, [{ nothing: 0, much: ["Infinity", "-Infinity"] }])
    }))
})
