import { assert, describe, it } from "@effect/vitest"
import { type AgentRunSpec, Failure, Scalars, type SessionEvent, type SessionHeader } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { HarnessError, RunPreparation, SessionLog, SessionStore, SessionStoreMemory } from "../src/index.ts"
import * as FakeHarness from "./support/FakeHarness.ts"
import * as Log from "./support/LogEvents.ts"
import * as Scene from "./support/Scene.ts"

const layerMemory = SessionStoreMemory.layer

const refusal = (spec: Partial<AgentRunSpec.AgentRunSpec>, fake = FakeHarness.make()) =>
  Effect.scoped(Scene.prepare({ fake, spec })).pipe(Effect.flip, Effect.map((error) => error.failure))

const said = (failure: Failure.Failure) => [failure.code, failure.message]

/** A session that exists, with these turns. */
const remember = (header: Partial<SessionHeader.SessionHeader>, ...events: ReadonlyArray<SessionEvent.Body>) =>
  Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    yield* store.create({ type: "session", format: 1, id: Scene.sessionId, created: 0, harness: "fake", cwd: Scene.sessionOptions.cwd, ...header })
    const log = yield* SessionLog.open(store, Scene.sessionId, "before")
    for (const body of events) yield* log.append(body)
  }).pipe(Effect.scoped)

const bound = (id: string): SessionEvent.Body => ({ type: "session/bound", data: { harness_session_id: id, resumed: false } })
const failed: SessionEvent.Body = { type: "turn/end", data: { turn: 1, verdict: { type: "error", error: Failure.make("HARNESS_IO", "x") } } }
/** A turn in which the harness named its session, and perhaps answered. */
const turn = (id: string, isAnswered: boolean): ReadonlyArray<SessionEvent.Body> => [
  Log.turnStart(1),
  Log.stepStart(1),
  Log.user("hello"),
  bound(id),
  ...(isAnswered ? [Log.answer("hi")] : []),
  Log.stepEnd(1),
  isAnswered ? Log.turnEnd(1) : failed
]

describe("prepare", () => {
  it.effect("gives a new session its id, and holds it until its scope closes", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const store = yield* SessionStore.SessionStore
      yield* Effect.scoped(Effect.gen(function*() {
        const prepared = yield* Scene.prepare({ fake })
        assert.deepStrictEqual(prepared.options, { ...Scene.sessionOptions, sessionId: Scene.sessionId, resume: undefined })
        assert.deepStrictEqual([prepared.earlierTurns, prepared.log.lastTurn()], [0, 0])
        const busy = yield* refusal({})
        assert.strictEqual(busy.code, "SESSION_BUSY")
        assert.include(busy.message, "the test")
      }))
      assert.deepStrictEqual([fake.counts.checks, fake.counts.opened], [1, 0])
      // Nothing happened in it.
      assert.strictEqual((yield* Effect.flip(store.header(Scene.sessionId))).failure.code, "SESSION_UNKNOWN")
    }).pipe(Effect.provide(layerMemory)))

  const unavailable: Record<string, Partial<AgentRunSpec.AgentRunSpec>> = {
    input_artifacts: { input_artifacts: ["a.txt"] },
    observability: { observability: [{ name: "x", config: {} }] },
    "limits.token_budget": { limits: { token_budget: 5 } }
  }
  for (const [field, spec] of Object.entries(unavailable)) {
    it.effect(`refuses ${field} by its name, before anything is held or asked`, () =>
      Effect.gen(function*() {
        const fake = FakeHarness.make()
        const failure = yield* refusal(spec, fake)
        assert.deepStrictEqual([failure.code, failure.data], ["NOT_AVAILABLE", { field }])
        assert.include(failure.message, field)
        assert.strictEqual(fake.counts.checks, 0)
        yield* Effect.scoped(Scene.prepare({ fake }))
      }).pipe(Effect.provide(layerMemory)))
  }

  it.effect("refuses a recipe", () =>
    Effect.gen(function*() {
      const error = yield* RunPreparation.prepare({
        spec: { recipe: "dir", task: "x" },
        harness: FakeHarness.make().harness,
        newSessionId: Scene.sessionId,
        holder: "the test",
        session: Scene.sessionOptions
      }).pipe(Effect.scoped, Effect.flip)
      assert.deepStrictEqual([error.failure.code, error.failure.data], ["NOT_AVAILABLE", { field: "recipe" }])
    }).pipe(Effect.provide(layerMemory)))

  it.effect("takes null and empty lists for what they mean: nothing asked", () =>
    Effect.gen(function*() {
      for (const spec of [{ limits: null }, { limits: { token_budget: null, timeout_s: null } }, { input_artifacts: [], observability: [] }]) {
        yield* Effect.scoped(Scene.prepare({ fake: FakeHarness.make(), spec }))
      }
    }).pipe(Effect.provide(layerMemory)))

  it.effect("refuses an empty task and a specification that is none, naming the field", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(said(yield* refusal({ task: "" })), ["EMPTY_TASK", "the task is empty"])
      assert.deepStrictEqual(said(yield* refusal({ task: " \n" })), ["EMPTY_TASK", "the task is empty"])
      for (const timeout_s of [Number.NaN, 0, -1, Infinity, 1e300]) {
        const failure = yield* refusal({ limits: { timeout_s } })
        assert.strictEqual(failure.code, "INVALID_SPEC", `${timeout_s}`)
        assert.include(failure.message, "limits.timeout_s")
      }
      const unknown = yield* refusal({ colour: "red" } as Partial<AgentRunSpec.AgentRunSpec>)
      assert.include(unknown.message, "colour: Unknown field")
    }).pipe(Effect.provide(layerMemory)))

  it.effect("refuses a harness that is not the one that the specification names", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(said(yield* refusal({ harness: "other" })), [
        "INVALID_SPEC",
        "harness: the specification names other, the run was given fake"
      ])
    }).pipe(Effect.provide(layerMemory)))

  it.effect("passes a harness's refusal on, and lets go of the session", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make({ check: () => Effect.fail(HarnessError.unsupported("fake", "model", "it has one")) })
      assert.deepStrictEqual(yield* refusal({}, fake), HarnessError.unsupported("fake", "model", "it has one").failure)
      yield* Effect.scoped(Scene.prepare({ fake: FakeHarness.make() }))
    }).pipe(Effect.provide(layerMemory)))

  it.effect("makes a typed refusal of a bug in the harness, without credentials", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make({ check: () => Effect.die(new Error("token=abcdef")) })
      const failure = yield* refusal({}, fake)
      assert.strictEqual(failure.code, "INTERNAL")
      assert.include(failure.message, "token=[REDACTED]")
      assert.notInclude(failure.message, "abcdef")
    }).pipe(Effect.provide(layerMemory)))

  it.effect("begins a session that it does not know, unless it is to be continued", () =>
    Effect.gen(function*() {
      const id = Scalars.SessionId.make("mine")
      const prepared = yield* Effect.scoped(Scene.prepare({ fake: FakeHarness.make(), spec: { session: { id } } }))
      assert.deepStrictEqual([prepared.options.sessionId, prepared.options.resume], [id, undefined])
      for (const resume of ["fail", "fresh", "replay"] as const) {
        assert.deepStrictEqual(said(yield* refusal({ session: { id, resume } })), ["SESSION_UNKNOWN", "there is no session mine to continue"])
      }
    }).pipe(Effect.provide(layerMemory)))

  const lostPolicies: ReadonlyArray<readonly [boolean, "fail" | "fresh" | "replay" | undefined, "fail" | "fresh" | "replay"]> = [
    [true, undefined, "fail"],
    [true, "fail", "fail"],
    [true, "fresh", "fresh"],
    [true, "replay", "replay"],
    // What the harness never wrote down cannot be lost.
    [false, undefined, "fresh"],
    [false, "fail", "fresh"],
    [false, "fresh", "fresh"],
    [false, "replay", "replay"]
  ]
  for (const [isAnswered, resume, onLost] of lostPolicies) {
    it.effect(`continues a session that the harness ${isAnswered ? "answered in" : "only named"}, with resume ${resume ?? "absent"}: lost means ${onLost}`, () =>
      Effect.gen(function*() {
        yield* remember({}, ...turn("h-7", isAnswered))
        const prepared = yield* Scene.prepare({
          fake: FakeHarness.make(),
          spec: { session: { id: Scene.sessionId, ...(resume === undefined ? {} : { resume }) } }
        })
        const { history, ...rest } = prepared.options.resume ?? {}
        assert.deepStrictEqual([rest, prepared.earlierTurns], [{ harnessSessionId: "h-7", onLost }, 1])
        const lines = isAnswered ? [{ role: "user", text: "hello" }, { role: "assistant", text: "hi" }] : [{ role: "user", text: "hello" }]
        const told = history === undefined ? undefined : (yield* history)?.split("\n").slice(2, -1).map((line): unknown => JSON.parse(line))
        assert.deepStrictEqual(told, onLost === "replay" ? lines : undefined)
      }).pipe(Effect.scoped, Effect.provide(layerMemory)))
  }

  it.effect("has nothing to resume where nothing was said", () =>
    Effect.gen(function*() {
      yield* remember({ cwd: "/elsewhere" }, Log.turnStart(1), failed)
      const prepared = yield* Effect.scoped(Scene.prepare({ fake: FakeHarness.make() }))
      assert.isUndefined(prepared.options.resume)
    }).pipe(Effect.provide(layerMemory)))

  it.effect("goes on without a prompt that the harness did not answer before it named its session, and does not hide it", () =>
    Effect.gen(function*() {
      yield* remember({}, Log.turnStart(1), Log.stepStart(1), Log.user("hello"), Log.stepEnd(1), failed)
      const resumed = (spec: Partial<AgentRunSpec.AgentRunSpec>, fake = FakeHarness.make()) =>
        Effect.map(Effect.scoped(Scene.prepare({ fake, spec })), ({ options: { resume } }) => resume && [resume.harnessSessionId, resume.onLost])
      assert.deepStrictEqual(yield* resumed({}), [undefined, "fresh"])
      assert.deepStrictEqual(yield* resumed({ session: { id: Scene.sessionId, resume: "replay" } }), [undefined, "replay"])
      const plain = FakeHarness.make()
      const forgetful = { ...plain, harness: { ...plain.harness, capabilities: { ...plain.harness.capabilities, resume: "unsupported" } } } as const
      assert.isUndefined(yield* resumed({}, forgetful))
      assert.deepStrictEqual(yield* resumed({ session: { id: Scene.sessionId, resume: "fresh" } }, forgetful), [undefined, "fresh"])
    }).pipe(Effect.provide(layerMemory)))

  const piece: SessionEvent.Body = { type: "assistant/message", data: { text: "h", partial: true }, surface_op: "append" }
  const past: Record<string, readonly [ReadonlyArray<SessionEvent.Body>, "fail" | "fresh"]> = {
    "only a piece of an answer": [[bound("h"), piece], "fresh"],
    "an answer under an id that the harness has replaced": [[bound("g"), Log.answer("hi"), bound("h")], "fail"],
    "a tool that may have had effects": [[bound("h"), Log.call("t"), { ...Log.result("t"), data: { call_id: "t", is_error: true, error_code: "TOOL_OUTCOME_UNKNOWN" } } as SessionEvent.Body], "fail"]
  }
  for (const [what, [events, onLost]] of Object.entries(past)) {
    it.effect(`takes ${what} for a past that ${onLost === "fail" ? "can" : "cannot"} be lost`, () =>
      Effect.gen(function*() {
        yield* remember({}, Log.turnStart(1), Log.stepStart(1), Log.user("hello"), ...events, Log.stepEnd(1), failed)
        const prepared = yield* Effect.scoped(Scene.prepare({ fake: FakeHarness.make() }))
        assert.deepStrictEqual(prepared.options.resume, { harnessSessionId: "h", onLost })
      }).pipe(Effect.provide(layerMemory)))
  }

  it.effect("goes on with a fork as the caller wants it: the harness has no session that ends there", () =>
    Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      yield* remember({}, ...turn("h-7", true))
      const fork = Scalars.SessionId.make("fork")
      const events = [...yield* Stream.runCollect(store.read(Scene.sessionId, -1))]
      yield* store.create({ ...(yield* store.header(Scene.sessionId)), id: fork, parent: { id: Scene.sessionId, events: events.length } }, events)
      assert.deepStrictEqual(said(yield* refusal({ session: { id: fork } })), [
        "SESSION_LOST",
        "session fork was forked from session-1, and fake has no session of its own that ends there"
      ])
      for (const resume of ["fresh", "replay"] as const) {
        const prepared = yield* Effect.scoped(Scene.prepare({ fake: FakeHarness.make(), spec: { session: { id: fork, resume } } }))
        assert.deepStrictEqual([prepared.options.resume?.harnessSessionId, prepared.options.resume?.onLost], [undefined, resume])
      }
    }).pipe(Effect.provide(layerMemory)))

  it.effect("refuses to continue a session with another harness or in another directory, naming both", () =>
    Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      yield* remember({ harness: "other" }, ...turn("h", true))
      assert.deepStrictEqual(said(yield* refusal({})), ["SESSION_MISMATCH", "session session-1 belongs to other, not to fake"])
      yield* store.delete(Scene.sessionId)
      yield* remember({ cwd: "/elsewhere" }, ...turn("h", true))
      assert.deepStrictEqual(said(yield* refusal({})), [
        "SESSION_MISMATCH",
        "session session-1 belongs to the directory /elsewhere, not to /project"
      ])
    }).pipe(Effect.provide(layerMemory)))

  it.effect("goes on with a session that somebody else began and left while it looked", () =>
    Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      const begins = Effect.provideService(Effect.ignore(remember({}, ...turn("h", true))), SessionStore.SessionStore, store)
      const fake = FakeHarness.make({ check: () => Effect.as(begins, {}) })
      const prepared = yield* Effect.scoped(Scene.prepare({ fake }))
      assert.deepStrictEqual([prepared.earlierTurns, prepared.options.resume?.harnessSessionId], [1, "h"])
      yield* store.header(Scene.sessionId)
    }).pipe(Effect.provide(layerMemory)))
})
