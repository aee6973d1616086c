import { assert, describe, it } from "@effect/vitest"
import { type AgentRunSpec, type Failure, Scalars } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { HarnessError, RunPreparation, SessionBindings } from "../src/index.ts"
import * as FakeHarness from "./support/FakeHarness.ts"
import * as Scene from "./support/Scene.ts"

const { layerMemory } = SessionBindings.SessionBindings

const refusal = (spec: Partial<AgentRunSpec.AgentRunSpec>, fake = FakeHarness.make()) =>
  Effect.scoped(Scene.prepare({ fake, spec })).pipe(Effect.flip, Effect.map((error) => error.failure))

const said = (failure: Failure.Failure) => [failure.code, failure.message]

const remember = (binding: Partial<SessionBindings.Binding>) =>
  Effect.gen(function*() {
    const bindings = yield* SessionBindings.SessionBindings
    const lease = yield* bindings.acquire(Scene.sessionId)
    yield* lease.save({
      session_id: Scene.sessionId,
      harness: "fake",
      persisted: false,
      cwd: Scene.sessionOptions.cwd,
      turns: 1,
      created_at: 0,
      updated_at: 0,
      ...binding
    })
  }).pipe(Effect.scoped)

describe("prepare", () => {
  it.effect("gives a new session its id, and holds it until its scope closes", () =>
    Effect.gen(function*() {
      const fake = FakeHarness.make()
      const bindings = yield* SessionBindings.SessionBindings
      yield* Effect.scoped(Effect.gen(function*() {
        const prepared = yield* Scene.prepare({ fake })
        assert.deepStrictEqual(prepared.options, { ...Scene.sessionOptions, sessionId: Scene.sessionId, resume: undefined })
        assert.deepStrictEqual(prepared.lease.binding, Option.none())
        assert.deepStrictEqual(said(yield* refusal({})), ["SESSION_BUSY", "session session-1 is used by another run of this process"])
      }))
      yield* Effect.scoped(bindings.acquire(Scene.sessionId))
      assert.deepStrictEqual([fake.counts.checks, fake.counts.opened], [1, 0])
    }).pipe(Effect.provide(layerMemory)))

  const unavailable: Record<string, Partial<AgentRunSpec.AgentRunSpec>> = {
    input_artifacts: { input_artifacts: ["a.txt"] },
    observability: { observability: [{ name: "x", config: {} }] },
    "limits.token_budget": { limits: { token_budget: 5 } },
    "session.resume: replay": { session: { id: Scene.sessionId, resume: "replay" } }
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
      for (const resume of ["fail", "fresh"] as const) {
        assert.deepStrictEqual(said(yield* refusal({ session: { id, resume } })), ["SESSION_UNKNOWN", "there is no session mine to continue"])
      }
    }).pipe(Effect.provide(layerMemory)))

  const lostPolicies: ReadonlyArray<readonly [boolean, "fail" | "fresh" | undefined, "fail" | "fresh"]> = [
    [true, undefined, "fail"],
    [true, "fail", "fail"],
    [true, "fresh", "fresh"],
    // What the harness never wrote down cannot be lost.
    [false, undefined, "fresh"],
    [false, "fail", "fresh"],
    [false, "fresh", "fresh"]
  ]
  for (const [persisted, resume, onLost] of lostPolicies) {
    it.effect(`continues a session that was ${persisted ? "" : "not "}written, with resume ${resume ?? "absent"}: lost means ${onLost}`, () =>
      Effect.gen(function*() {
        yield* remember({ harness_session_id: "h-7", persisted })
        const prepared = yield* Effect.scoped(Scene.prepare({
          fake: FakeHarness.make(),
          spec: { session: { id: Scene.sessionId, ...(resume === undefined ? {} : { resume }) } }
        }))
        assert.deepStrictEqual(prepared.options.resume, { harnessSessionId: "h-7", onLost })
      }).pipe(Effect.provide(layerMemory)))
  }

  it.effect("has nothing to resume where the harness never named its session", () =>
    Effect.gen(function*() {
      yield* remember({ cwd: "/elsewhere" })
      const prepared = yield* Effect.scoped(Scene.prepare({ fake: FakeHarness.make() }))
      assert.isUndefined(prepared.options.resume)
    }).pipe(Effect.provide(layerMemory)))

  it.effect("refuses to continue a session with another harness or in another directory, naming both", () =>
    Effect.gen(function*() {
      yield* remember({ harness_session_id: "h", harness: "other" })
      assert.deepStrictEqual(said(yield* refusal({})), ["SESSION_MISMATCH", "session session-1 belongs to other, not to fake"])
      yield* remember({ harness_session_id: "h", cwd: "/elsewhere" })
      assert.deepStrictEqual(said(yield* refusal({})), [
        "SESSION_MISMATCH",
        "session session-1 belongs to the directory /elsewhere, not to /project"
      ])
    }).pipe(Effect.provide(layerMemory)))

  it.effect("gives a lease whose binding is what was saved last", () =>
    Effect.gen(function*() {
      yield* remember({ turns: 4 })
      const { lease } = yield* Scene.prepare({ fake: FakeHarness.make() })
      const before = Option.getOrThrow(lease.binding)
      yield* lease.save({ ...before, turns: 5 })
      assert.deepStrictEqual(lease.binding, Option.some({ ...before, turns: 5 }))
    }).pipe(Effect.scoped, Effect.provide(layerMemory)))
})
