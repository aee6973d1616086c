/** Cases about sessions: identity, resumption, options, closing. */
import type { Harness } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as assert from "node:assert/strict"
import * as path from "node:path"
import * as Situation from "../../Situation.ts"
import * as Bench from "./bench.ts"
import type { Case } from "./case.ts"

const unknownId = "5c9b7c4e-0000-4000-8000-000000000000"

/** Opens a session in a scope of its own, so that it can be closed before the case ends. */
const openApart = (bench: Bench.Bench, situation: Situation.Situation, overrides?: Partial<Harness.SessionOptions>) =>
  Effect.gen(function*() {
    const scope = yield* Effect.acquireRelease(Scope.make(), (made) => Scope.close(made, Exit.void))
    const session = yield* Effect.provideService(bench.open(situation, overrides), Scope.Scope, scope)
    return { session, leave: Scope.close(scope, Exit.void) }
  })

/** What `check` and `open` fail with, in this order. */
const refusals = (bench: Bench.Bench, options: Harness.SessionOptions) =>
  Effect.all([Effect.flip(bench.harness.check(options)), Effect.flip(bench.harness.open(options))])

/** Asserts that options are refused by `check` and by `open`, with the option's name, and that nothing is started. */
const assertRefused = (bench: Bench.Bench, option: string, overrides: Partial<Harness.SessionOptions>) =>
  Effect.gen(function*() {
    const options = yield* bench.options("echo", overrides)
    for (const error of yield* refusals(bench, options)) {
      assert.deepEqual(
        error.reason._tag === "Unsupported" ? [error.reason.harness, error.reason.option] : error.message,
        [bench.harness.name, option]
      )
    }
    assert.deepEqual(bench.processes(), [])
  })

/** Each option, by the capability that it needs, with a value to ask for. */
const optionOf = {
  resume: ["resume", { resume: { harnessSessionId: unknownId, onLost: "fail" } }],
  tool_allow_list: ["tools", { tools: { _tag: "Only", tools: ["read"] } }],
  system_prompt: ["system", { system: "Be brief." }],
  model_choice: ["model", { model: "suite-model" }],
  isolation: ["configDir", { configDir: "/nowhere" }]
} as const satisfies Partial<Record<keyof Harness.Harness["capabilities"], readonly [string, Partial<Harness.SessionOptions>]>>

type Optional = keyof typeof optionOf

export const cases: ReadonlyArray<Case> = [
  {
    name: "our id of the session never changes, and the harness's own is another matter",
    needs: ["rebinds"],
    run: (bench) =>
      Effect.gen(function*() {
        const { sessionId } = yield* bench.options("rebinds")
        const session = yield* bench.open("rebinds")
        assert.equal(session.sessionId, sessionId)
        const { events } = yield* Bench.turn(session, Situation.promptOf("rebinds"))
        assert.equal(Bench.harnessId(events), "5c9b7c4e-0000-4000-8000-00000000b1d5")
        assert.ok(Bench.notices(events).includes("rebound"), "the change is told")
        assert.equal(session.sessionId, sessionId)
        const { end } = yield* Bench.turn(session, "after")
        assert.equal(end.stop_reason, "completed")
      })
  },
  {
    name: "a session that is resumed by another process keeps its context and our id",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.resume === "unsupported") return
        const first = yield* openApart(bench, "echo")
        const { events } = yield* Bench.turn(first.session, "remember me")
        yield* first.leave
        const second = yield* bench.open("echo", { resume: { harnessSessionId: Bench.harnessId(events), onLost: "fail" } })
        assert.equal(second.sessionId, first.session.sessionId)
        const resumed = yield* Bench.turn(second, "what was it?")
        assert.deepEqual(Bench.prompts(resumed.output.text), ["remember me", "what was it?"])
        const bound = resumed.events.flatMap((event) => (event.type === "session/bound" ? [event.data.resumed] : []))
        assert.equal(bound[0], true)
      })
  },
  {
    name: "a session that goes on under a new id of the harness's is told, and stays ours",
    needs: ["renames"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.resume === "unsupported") return
        const first = yield* openApart(bench, "renames")
        const { events } = yield* Bench.turn(first.session, "one")
        yield* first.leave
        const before = Bench.harnessId(events)
        const second = yield* bench.open("renames", { resume: { harnessSessionId: before, onLost: "fail" } })
        const resumed = yield* Bench.turn(second, "two")
        assert.deepEqual(Bench.prompts(resumed.output.text), ["one", "two"])
        assert.notEqual(Bench.harnessId(resumed.events), before)
        assert.ok(Bench.notices(resumed.events).includes("rebound"), "the change is told")
        assert.equal(second.sessionId, first.session.sessionId)
      })
  },
  {
    name: "a session that the harness has lost is not begun anew in silence",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.resume === "unsupported") return
        const opened = yield* Effect.result(bench.open("echo", { resume: { harnessSessionId: unknownId, onLost: "fail" } }))
        const code = Result.isFailure(opened)
          ? Bench.codeOf(opened.failure)
          : (yield* Bench.failingTurn(opened.success, "hello")).error.failure.code
        assert.equal(code, "SESSION_LOST")
        yield* Bench.nothingLeft(bench)
        const fresh = yield* bench.open("echo", { resume: { harnessSessionId: unknownId, onLost: "fresh" } })
        const { events, output } = yield* Bench.turn(fresh, "hello")
        assert.deepEqual(Bench.prompts(output.text), ["hello"])
        assert.ok(Bench.notices(events).includes("fresh_session"), "the loss is told")
      })
  },
  {
    name: "a session that the harness has lost, or never had, is told its history once where that is asked for",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.resume === "unsupported") return
        for (const harnessSessionId of [unknownId, undefined]) {
          const replayed = yield* bench.open("echo", { resume: { harnessSessionId, onLost: "replay", history: Effect.succeed("what was said") } })
          const { events, output } = yield* Bench.turn(replayed, "hello")
          assert.deepEqual(Bench.prompts(output.text), ["what was said\n\nhello"])
          assert.deepEqual(Bench.notices(events).filter((kind) => kind === "replayed" || kind === "fresh_session"), ["replayed"])
          const again = yield* Bench.turn(replayed, "again")
          assert.deepEqual(Bench.prompts(again.output.text), ["what was said\n\nhello", "again"])
          yield* replayed.close
        }
      })
  },
  {
    name: "a program that died between two turns is started again and keeps its context",
    needs: ["ready_then_dies"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.resume === "unsupported") return
        const session = yield* bench.open("ready_then_dies")
        yield* Bench.turn(session, Situation.promptOf("ready_then_dies"))
        yield* Bench.nothingLeft(bench)
        const after = Bench.turn(session, "after")
        // The system knows of a death before its owner does: a prompt that meets a dead program fails, and the next one does not.
        const { events, output } = yield* Effect.catchReason(after, "TurnError", "Exec", () => after)
        assert.deepEqual(Bench.prompts(output.text), [Situation.promptOf("ready_then_dies"), "after"])
        assert.ok(Bench.notices(events).includes("restarted"), "the new start is told")
      })
  },
  {
    name: "two sessions run at the same time",
    needs: ["meets"],
    run: (bench) =>
      Effect.gen(function*() {
        const [one, two] = [path.join(bench.directory, "one"), path.join(bench.directory, "two")]
        const run = (sessionId: string, own: string, other: string) =>
          Effect.gen(function*() {
            const session = yield* bench.open("meets", { sessionId, env: { MEETS_OWN: own, MEETS_OTHER: other } })
            return (yield* Bench.turn(session, Situation.promptOf("meets"))).output.text
          })
        const texts = yield* Effect.all([run("suite-one", one, two), run("suite-two", two, one)], { concurrency: 2 })
        assert.deepEqual(texts, ["met", "met"])
      })
  },
  {
    name: "the model and the instructions that were asked for arrive",
    needs: ["tells_options"],
    run: (bench) =>
      Effect.gen(function*() {
        const { capabilities } = bench.harness
        const session = yield* bench.open("tells_options", {
          ...(capabilities.model_choice === "unsupported" ? {} : { model: "suite-model" }),
          ...(capabilities.system_prompt === "unsupported" ? {} : { system: "Answer in verse." })
        })
        const { output } = yield* Bench.turn(session, Situation.promptOf("tells_options"))
        const told = JSON.parse(output.text) as { readonly model: string; readonly system: string }
        if (capabilities.model_choice !== "unsupported") assert.equal(told.model, "suite-model")
        if (capabilities.system_prompt !== "unsupported") assert.ok(told.system.includes("Answer in verse."), told.system)
      })
  },
  {
    name: "a model that is not the one that was asked for is told",
    needs: ["other_model"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.model_choice === "unsupported") return
        const session = yield* bench.open("other_model", { model: "suite-model" })
        const { events } = yield* Bench.turn(session, "hello")
        assert.ok(Bench.notices(events).includes("model_differs"), JSON.stringify(Bench.notices(events)))
      })
  },
  {
    name: "an MCP server that did not start is told",
    needs: ["mcp_fails"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("mcp_fails")
        const { events } = yield* Bench.turn(session, "hello")
        const told = events.flatMap((event) => (event.type === "notice" && event.data.kind === "mcp_server_failed" ? [event.data.message] : []))
        assert.deepEqual(told.map((message) => [message.includes("gone"), message.includes("server there")]), [[true, false]])
      })
  },
  {
    name: "what the harness declares unsupported is refused by name before anything runs",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        for (const capability of Object.keys(optionOf) as ReadonlyArray<Optional>) {
          if (bench.harness.capabilities[capability] !== "unsupported") continue
          const [option, overrides] = optionOf[capability]
          yield* assertRefused(bench, option, overrides)
        }
      })
  },
  {
    name: "a program that is missing, or is something else, is a typed failure with a remedy",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        const missing = "/nowhere/there/is/no/such/program"
        for (const [program, codes] of [
          [missing, ["HARNESS_NOT_FOUND", "UNSUPPORTED"]],
          ["/bin/true", ["HARNESS_NOT_A_HARNESS", "HANDSHAKE_FAILED", "UNSUPPORTED"]]
        ] as const) {
          const options = yield* bench.options("echo", { program })
          for (const error of yield* refusals(bench, options)) {
            assert.ok((codes as ReadonlyArray<string>).includes(error.failure.code), `${program}: ${error.failure.code}: ${error.message}`)
            assert.notEqual(error.failure.remedy, "")
          }
        }
        const { findings, harness, usable } = yield* bench.harness.diagnose({ program: missing, inheritedEnv: {}, cwd: bench.work })
        assert.deepEqual([harness, usable], [bench.harness.name, false])
        assert.ok(findings.some(({ level, remedy }) => level === "problem" && remedy !== undefined), JSON.stringify(findings))
        yield* Bench.nothingLeft(bench)
      })
  },
  {
    name: "opening that is interrupted leaves nothing running",
    needs: ["never_ready"],
    run: (bench) =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkScoped(Effect.scoped(bench.open("never_ready")), { startImmediately: true })
        yield* Bench.eventually("the program", bench.processes, (found) => found.length > 0)
        yield* Fiber.interrupt(fiber)
        yield* Bench.nothingLeft(bench)
      })
  },
  {
    name: "closing ends everything, says the same each time, and later prompts fail",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("echo")
        yield* Bench.turn(session, "hello")
        const report = yield* session.close
        // Remarks are not compared: they may tell of strangers' processes that only look like the harness's.
        const { problems: _, ...found } = report
        assert.deepEqual(found, { killed: [], survivors: [], backgroundKilled: [] } satisfies typeof found)
        assert.deepEqual(bench.processes(), [])
        assert.deepEqual(yield* session.close, report)
        yield* session.interrupt
        yield* session.backgroundDone
        yield* Bench.failingTurn(session, "hello again")
        assert.deepEqual(bench.processes(), [])
      })
  },
  {
    name: "closing while a turn runs fails the turn and leaves nothing running",
    needs: ["streams"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("streams")
        const watched = yield* Bench.watch(session, Situation.promptOf("streams"), Bench.isText)
        yield* session.close
        assert.equal(Exit.isFailure(yield* Fiber.await(watched.fiber)), true)
        yield* Bench.nothingLeft(bench)
      })
  },
  {
    name: "the end of the scope closes a session that is open, even one that ignores every request",
    needs: ["stuck"],
    run: (bench) =>
      Effect.gen(function*() {
        const { leave, session } = yield* openApart(bench, "stuck")
        const watched = yield* Bench.watch(session, Situation.promptOf("stuck"), Bench.isText)
        yield* leave
        assert.equal(Exit.isFailure(yield* Fiber.await(watched.fiber)), true)
        yield* Bench.nothingLeft(bench)
      })
  }
]
