/** The conformance suite has to fail where a harness is wrong: each mutant breaks one promise of a harness that keeps them all. */
import { assert, describe, it } from "@effect/vitest"
import { TurnEvent, Usage } from "@turnpike/contract"
import { ScriptedHarness } from "@turnpike/harness-scripted"
import { Harness, HarnessError, TurnError } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { HarnessSuite, Situation } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const tools: Situation.ToolNames = { execute: "execute", all: ["read", "search", "execute", "a_tool_of_its_own"] }

type Events = Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>

/** Changes what the turns of every session say. */
const turns = (change: (events: Events) => Events) => (harness: Harness.Harness): Harness.Harness => ({
  ...harness,
  open: (options) => Effect.map(harness.open(options), (session) => ({ ...session, runTurn: (prompt) => change(session.runTurn(prompt)) }))
})
const each = (change: (event: TurnEvent.TurnEvent) => ReadonlyArray<TurnEvent.TurnEvent>) =>
  turns(Stream.flatMap((event) => Stream.fromIterable(change(event))))
const session = (change: (session: Harness.HarnessSession) => Harness.HarnessSession) => (harness: Harness.Harness): Harness.Harness => ({
  ...harness,
  open: (options) => Effect.map(harness.open(options), change)
})
const options = (change: (options: Harness.SessionOptions) => Harness.SessionOptions) => (harness: Harness.Harness): Harness.Harness => ({
  ...harness,
  open: (given) => harness.open(change(given))
})
/** Changes what is told of the turns that the harness begins by itself. */
const ownTurns = (change: (events: Events) => Events) =>
  session((one) => ({ ...one, onOwnTurn: (listener) => one.onOwnTurn?.((events) => listener(change(events))) ?? Effect.void }))
const without = (kind: TurnEvent.NoticeKind) => each((event) => (event.type === "notice" && event.data.kind === kind ? [] : [event]))

/** Does not ask which turn a word is of: whatever is said once a turn speaks is taken for that turn's. */
const deafToTurns = turns((events) => {
  let speaks = false
  return Stream.map(events, (event) => {
    speaks ||= event.type === "assistant/chunk"
    const raw = event.type === "notice" && event.data.kind === "late_frame" ? event.data.raw as { readonly type?: string; readonly text?: string } : {}
    return speaks && raw.type === "text_delta" ? TurnEvent.make("assistant/chunk", { kind: "text", text: raw.text ?? "" }) : event
  })
})

const mutants: ReadonlyArray<readonly [fact: string, mutant: (harness: Harness.Harness) => Harness.Harness]> = [
  // Whatever a test is about, it sees a session that its scope does not close.
  [
    "turns of one session share its context",
    (harness) => ({ ...harness, open: (options) => Effect.flatMap(Scope.make(), (scope) => Scope.provide(harness.open(options), scope)) })
  ],
  ["a turn ends once, its ending is last, and its answer is whole", each((event) => (event.type === "harness/end" ? [event, event] : [event]))],
  ["a turn ends once, its ending is last, and its answer is whole", each((event) => (event.type === "session/bound" ? [] : [event]))],
  ["a turn ends once, its ending is last, and its answer is whole", each((event) => (event.type === "assistant/chunk" ? [{ ...event, data: { ...event.data, text: event.data.text.slice(1) } }] : [event]))],
  ["prompts arrive byte for byte, whatever they look like", session((one) => ({ ...one, runTurn: (prompt) => one.runTurn({ ...prompt, text: prompt.text.trim() }) }))],
  ["an interrupt while it streams ends the turn as aborted and leaves the session usable", each((event) => (event.type === "harness/end" ? [{ ...event, data: { ...event.data, stop_reason: "completed" } }] : [event]))],
  [
    "a program that dies in the middle of a turn fails it, with its last words and without credentials",
    turns(Stream.catch(() => Stream.succeed(TurnEvent.make("harness/end", { stop_reason: "completed", text: "", worked: false, denials: [], background: [] }))))
  ],
  ["a program that dies in the middle of a turn fails it, with its last words and without credentials", options((given) => ({ ...given, redact: (text) => text }))],
  ["usage is that of the turn, not of the session", each((event) => (event.type === "usage" ? [{ ...event, data: { ...event.data, usage: Usage.unavailable } }] : [event]))],
  [
    "usage that nobody reported is unavailable, never 0",
    each((event) =>
      event.type === "harness/end"
        ? [
          TurnEvent.make("usage", { usage: { tokens: { source: "reported", input_tokens: 0, output_tokens: 0 }, cost: { source: "unavailable" } }, final: true }),
          event
        ]
        : [event]
    )
  ],
  ["a line that is no frame is told, and nothing beside it is lost", without("unparsed_line")],
  ["a frame of an unknown kind is told, and the turn goes on", without("unknown_frame")],
  ["what comes after a turn's ending is told in the next one, and is no part of its answer", without("late_frame")],
  ["what comes of a turn that has ended is told, and is no part of the one that runs", without("late_frame")],
  ["what comes of a turn that has ended is told, and is no part of the one that runs", deafToTurns],
  ["a line over every bound is told, and the turn goes on", without("oversize_line")],
  ["our id of the session never changes, and the harness's own is another matter", session((one) => ({ ...one, sessionId: "another" }))],
  ["a session that goes on under a new id of the harness's is told, and stays ours", without("rebound")],
  ["a session that is resumed by another process keeps its context and our id", options((given) => ({ ...given, resume: undefined }))],
  ["a session that the harness has lost is not begun anew in silence", without("fresh_session")],
  ["a session that the harness has lost, or never had, is told its history once where that is asked for", without("replayed")],
  ["a session that the harness has lost is not begun anew in silence", options((given) => (given.resume === undefined ? given : { ...given, resume: { ...given.resume, onLost: "fresh" } }))],
  ["the model and the instructions that were asked for arrive", options((given) => ({ ...given, system: undefined }))],
  ["a model that is not the one that was asked for is told", without("model_differs")],
  ["tools in force that the allow-list does not hold are told", without("tools_differ")],
  ["an MCP server that did not start is told", without("mcp_server_failed")],
  ["what the harness declares unsupported is refused by name before anything runs", (harness) => ({ ...harness, capabilities: { ...harness.capabilities, system_prompt: "unsupported" } })],
  ["a program that is missing, or is something else, is a typed failure with a remedy", (harness) => ({ ...harness, check: () => Effect.succeed({}) })],
  ["closing ends everything, says the same each time, and later prompts fail", session((one) => ({ ...one, close: Effect.succeed(Harness.nothingFound) }))],
  ["a tool that is denied does not run, and the turn tells so", each((event) => (event.type === "harness/end" ? [{ ...event, data: { ...event.data, denials: [] } }] : [event]))],
  ["a tool that is denied does not run, and the turn tells so", options((given) => ({ ...given, permission: { name: "suite", decide: () => Effect.succeed({ decision: "allow", reason: "the suite says so" }) } }))],
  ["a tool that is allowed runs", options((given) => ({ ...given, permission: { name: "suite", decide: () => Effect.succeed({ decision: "deny", reason: "no" }) } }))],
  ["a message for the running turn is taken, belongs to the session, and begins no turn of its own", session((one) => ({ ...one, steer: () => Effect.succeed(true) }))],
  ["a message for the running turn is taken, belongs to the session, and begins no turn of its own", (harness) => ({ ...harness, capabilities: { ...harness.capabilities, steering: "enforced" } })],
  ["declared tasks outlive their turn and are waited for", session((one) => ({ ...one, backgroundDone: Effect.void }))],
  ["declared tasks that still run when the session is closed are listed", session((one) => ({ ...one, close: Effect.map(one.close, (report) => ({ ...report, backgroundKilled: [] })) }))],
  ["a turn that the harness begins by itself is told to whoever listens, keeps every rule of a turn, and a prompt waits for its end", ownTurns((events) => Stream.filter(events, ({ type }) => type !== "harness/end"))],
  [
    "a turn that the harness begins by itself is told to whoever listens, keeps every rule of a turn, and a prompt waits for its end",
    ownTurns(Stream.map((event) => event.type === "assistant/message" || event.type === "harness/end" ? { ...event, data: { ...event.data, text: "something else" } } as typeof event : event))
  ],
  [
    "a turn that the harness begins by itself is told to whoever listens, keeps every rule of a turn, and a prompt waits for its end",
    // Says what waits for nobody: a prompt's turn that begins with a word at once.
    turns((events) => Stream.concat(Stream.succeed(TurnEvent.make("notice", { kind: "harness_note", message: "not waited" })), events))
  ],
  ["a turn that the harness begins by itself and nobody listens to is told in the next one, and is no part of its answer", without("late_frame")],
  [
    "a reader that leaves a turn that the harness began by itself cuts it off, and the session goes on",
    (harness) => ({
      ...harness,
      open: (given) =>
        Effect.map(harness.open(given), (one) => ({
          ...one,
          onOwnTurn: (listener) =>
            one.onOwnTurn?.((events) => {
              fs.writeFileSync(path.join(given.cwd, "release"), "")
              return Effect.flatMap(Effect.orDie(Stream.runCollect(events)), (all) => listener(Stream.fromIterable(all)))
            }) ?? Effect.void
        }))
    })
  ],
  ...["is told to whoever listens, keeps every rule of a turn, and a prompt waits for its end", "and nobody listens to is told in the next one, and is no part of its answer"].map((fact) =>
    [`a turn that the harness begins by itself ${fact}`, session(({ onOwnTurn: _, ...one }) => one)] as const)
]

type Run = () => Effect.Effect<void, unknown, Scope.Scope>

/** The suite's tests by their names, for a mutant. */
const suiteOf = (mutant: (harness: Harness.Harness) => Harness.Harness): ReadonlyMap<string, Run> => {
  const tests = new Map<string, Run>()
  const add = (name: string, run: Run) => void tests.set(name, run)
  HarnessSuite.harnessSuite("mutant", { describe: (_, body) => body(), it: Object.assign(add, { skip: add }) }, {
    harness: Effect.map(ScriptedHarness.make(), mutant),
    layer: Supervisor.layer({ reapOrphans: false }),
    driver: (situation, { directory }) =>
      Effect.sync(() => {
        const file = path.join(directory, `${situation}.json`)
        fs.writeFileSync(file, JSON.stringify(Situation.scenario(situation, tools)))
        return { env: { TURNPIKE_SCENARIO: file, NODE_COMPILE_CACHE: path.join(os.tmpdir(), "turnpike-player-cache") } }
      }),
    tools
  })
  return tests
}

describe.concurrent("HarnessSuite", () => {
  for (const [i, [fact, mutant]] of mutants.entries()) {
    it.live(`sees mutant ${i} by: ${fact}`, () =>
      Effect.gen(function*() {
        const run = suiteOf(mutant).get(fact)
        assert.ok(run !== undefined, `there is no test of this name: ${fact}`)
        assert.strictEqual(Exit.isFailure(yield* Effect.exit(Effect.scoped(run()))), true)
      }), 60_000)
  }

  it.live("does not see from late words between turns that an adapter does not ask which turn a word is of", () =>
    Effect.gen(function*() {
      const run = suiteOf(deafToTurns).get("what comes after a turn's ending is told in the next one, and is no part of its answer")
      yield* Effect.scoped(run?.() ?? Effect.die("there is no such test"))
    }), 60_000)

  it("excuses what cannot be brought about by name, and shows it as skipped", () => {
    const skipped: Array<string> = []
    const ran: Array<string> = []
    HarnessSuite.harnessSuite("excused", {
      describe: (_, body) => body(),
      it: Object.assign((name: string) => void ran.push(name), { skip: (name: string) => void skipped.push(name) })
    }, {
      harness: Effect.die("never made"),
      layer: Supervisor.layer(),
      driver: () => Effect.fail(HarnessError.unsupported("a", "b", "c")),
      tools,
      cannot: { huge_line: "it has no lines" }
    })
    assert.deepStrictEqual(skipped, ["a line over every bound is told, and the turn goes on (it has no lines)"])
    assert.strictEqual(ran.length > 35, true)
  })
})
