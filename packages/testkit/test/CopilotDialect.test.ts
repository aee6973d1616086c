/**
 * The played dialect against recordings of the real program: what a turn is made
 * of comes in the same order, and the fields of its frames have the same types.
 */
import { assert, describe, it } from "@effect/vitest"
import { DialectPlayer, type DialectWords, type Situation } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { announcedFramesOf, type Frame, run, shapeOf, type Step } from "./support/played.ts"

const directory = new URL("../../../test/fixtures/copilot/1.0.102/", import.meta.url)
const recorded = (name: string): ReadonlyArray<Frame> => announcedFramesOf(fs.readFileSync(new URL(`${name}.stdout`, directory)))

const rpc = (fields: Frame): Step => ({ send: { jsonrpc: "2.0", ...fields } })
const isAnswer = (id: string) => (frame: Frame): boolean => frame["id"] === id && frame["method"] === undefined
const eventOf = (frame: Frame): Frame | undefined =>
  frame["method"] === "session.event" ? (frame["params"] as Frame)["event"] as Frame : undefined
const dataOf = (frame: Frame): Frame => (eventOf(frame)?.["data"] ?? {}) as Frame
const isEvent = (type: string) => (frame: Frame): boolean => eventOf(frame)?.["type"] === type
const isHook = (type: string) => (frame: Frame): boolean => frame["method"] === "hooks.invoke" && (frame["params"] as Frame)["hookType"] === type

const opening = (how: "create" | "resume" = "create"): ReadonlyArray<Step> => [
  rpc({ id: "connect", method: "connect", params: {} }),
  { until: isAnswer("connect") },
  rpc({ id: "open", method: `session.${how}`, params: { sessionId: "session-1", model: "gpt-5.4", hooks: true } }),
  { until: isAnswer("open") }
]
const prompt = (id: string, text: string): Step => rpc({ id, method: "session.send", params: { sessionId: "session-1", prompt: text } })
const idle: Step = { until: isEvent("session.idle") }

/** Answers the gate of a call. */
const gate = (permissionDecision: "allow" | "ask"): ReadonlyArray<Step> => [
  { until: isHook("preToolUse") },
  { reply: (frame) => ({ jsonrpc: "2.0", id: frame["id"], result: { output: { permissionDecision, permissionDecisionReason: "the allow-list does not hold the tool" } } }) }
]

const turns = (...lists: ReadonlyArray<ReadonlyArray<DialectWords.Json>>): Situation.Scenario => ({ turns: lists.map((list) => ({ do: list })) })
const say = (text: string) => ({ type: "text", text })
const usage = { type: "usage", input_tokens: 1231, output_tokens: 6, cache_read_tokens: 200, cache_write_tokens: 0 }
const completed = { type: "end", reason: "completed" }
const ask = { type: "ask", id: "call-1", name: "bash", input: { command: "touch ran" } }

interface Comparison {
  readonly name: string
  readonly scenario: Situation.Scenario
  readonly steps: ReadonlyArray<Step>
}

const one = (name: string, ...list: ReadonlyArray<DialectWords.Json>): Comparison => ({
  name,
  scenario: turns(list),
  steps: [...opening(), prompt("send", "hello"), idle]
})

const comparisons: ReadonlyArray<Comparison> = [
  {
    name: "two-turns",
    scenario: turns([say("one two"), usage, completed], [say("one two"), usage, completed]),
    steps: [...opening(), prompt("send", "first"), idle, prompt("send-2", "second"), idle]
  },
  {
    name: "tool-allowed",
    scenario: turns([say("I call"), { ...ask, allowed: [{ type: "tool_result", id: "call-1", output: "done" }, say("The tool answered")] }, usage, completed]),
    steps: [...opening(), prompt("send", "hello"), ...gate("allow"), idle]
  },
  {
    name: "tool-denied",
    scenario: turns([say("I call"), { ...ask, denied: [say("The tool answered")] }, usage, completed]),
    steps: [
      ...opening(),
      prompt("send", "hello"),
      ...gate("ask"),
      { until: isEvent("permission.requested") },
      {
        reply: (frame) => ({
          jsonrpc: "2.0",
          id: "decide",
          method: "session.permissions.handlePendingPermissionRequest",
          params: { sessionId: "session-1", requestId: dataOf(frame)["requestId"], result: { kind: "reject", feedback: "no" } }
        })
      },
      idle
    ]
  },
  {
    name: "interrupt-streaming",
    scenario: turns([{ ...say("word0"), unfinished: true }, { type: "hang" }]),
    steps: [
      ...opening(),
      prompt("send", "hello"),
      { until: isEvent("assistant.message_delta") },
      rpc({ id: "abort", method: "session.abort", params: { sessionId: "session-1" } }),
      idle
    ]
  },
  one("thinking", { type: "reasoning", text: "the user wants" }, say("one two"), usage, completed),
  one("refusal", say("I will not"), usage, { type: "end", reason: "refusal" })
]

/** What is a turn's: Copilot says much beside it, about its settings, hooks and requests, that is not played. */
const told = new Set([
  "session.resume",
  "session.start",
  "user.message",
  "assistant.turn_start",
  "assistant.turn_end",
  "assistant.message_start",
  "assistant.message_delta",
  "assistant.message",
  "assistant.reasoning_delta",
  "assistant.reasoning",
  "assistant.usage",
  "tool.execution_start",
  "tool.execution_complete",
  "permission.requested",
  "permission.completed",
  "session.error",
  "abort",
  "assistant.idle",
  "session.idle"
])

const nameOf = (frame: Frame): string => String(eventOf(frame)?.["type"])

/** The order of the last turn, and a run of pieces counts as one: how an answer is cut is the model's doing. A usage comes where its request ends. */
const order = (frames: ReadonlyArray<Frame>): ReadonlyArray<string> => {
  const names = frames.map(nameOf).filter((name) => told.has(name) && name !== "assistant.usage" && name !== "session.start")
  return names.filter((name, index) => !name.endsWith("delta") || names[index - 1] !== name)
}

/** The fields of each kind of frame that are played, with their types; the real program has more of some. */
const shapes = (frames: ReadonlyArray<Frame>): ReadonlyMap<string, ReadonlySet<string>> => {
  const kinds = new Map<string, Set<string>>()
  for (const frame of frames) {
    const name = nameOf(frame)
    if (!told.has(name)) continue
    const known = kinds.get(name) ?? new Set<string>()
    for (const line of shapeOf(frame)) known.add(line)
    kinds.set(name, known)
  }
  return kinds
}

describe("the played Copilot, against recordings", () => {
  for (const { name, scenario, steps } of comparisons) {
    it.live(`speaks as in ${name}`, () =>
      Effect.gen(function*() {
        const program = yield* DialectPlayer.program(scenario, { dialect: DialectPlayer.copilot, name: "copilot" })
        const home = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-copilot-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true })))
        const played = yield* run(program, ["--headless", "--no-auto-update", "--stdio"], steps, { COPILOT_HOME: home }, "content-length")
        const real = recorded(name)
        assert.deepStrictEqual(order(played.frames), order(real))
        const known = shapes(real)
        const foreign = [...shapes(played.frames)].flatMap(([kind, lines]) => [...lines].filter((line) => known.get(kind)?.has(line) !== true).map((line) => `${kind}: ${line}`))
        assert.deepStrictEqual(foreign, [])
        assert.deepStrictEqual([played.code, played.signal], [0, null])
      }).pipe(Effect.scoped), 30_000)
  }

  const args = ["--headless", "--no-auto-update", "--stdio"]
  const homeless = Effect.acquireRelease(
    Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-copilot-"))),
    (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
  )
  const echo = { turns: [{ repeats: true, do: [say("{{prompts}}"), completed] }] }
  const talk = (scenario: Situation.Scenario, home: string, steps: ReadonlyArray<Step>) =>
    Effect.gen(function*() {
      const program = yield* DialectPlayer.program(scenario, { dialect: DialectPlayer.copilot, name: "copilot" })
      return yield* run(program, args, steps, { COPILOT_HOME: home }, "content-length")
    })
  const lost = { code: -32603, message: "Failed to load session events: Session not found: session-1" }
  const contentOf = (frames: ReadonlyArray<Frame>) => dataOf(frames.find(isEvent("assistant.message")) ?? {})["content"]

  it.live("goes on with a session that another process began, and with no other", () =>
    Effect.gen(function*() {
      const home = yield* homeless
      const never = yield* talk(echo, home, opening("resume"))
      assert.deepStrictEqual(never.frames.find(isAnswer("open"))?.["error"], lost)
      yield* talk(echo, home, [...opening(), prompt("send", "first"), idle])
      const resumed = yield* talk(echo, home, [...opening("resume"), prompt("send", "second"), idle])
      assert.strictEqual(contentOf(resumed.frames), "[\"first\",\"second\"]")
    }).pipe(Effect.scoped), 30_000)

  it.live("loses a session, or what was said in it, where the scenario says so", () =>
    Effect.gen(function*() {
      const home = yield* homeless
      yield* talk(echo, home, [...opening(), prompt("send", "first"), idle])
      const unknown = yield* talk({ ...echo, resume: "unknown" }, home, opening("resume"))
      assert.deepStrictEqual(unknown.frames.find(isAnswer("open"))?.["error"], lost)
      const empty = yield* talk({ ...echo, memory: "forgets" }, home, [...opening("resume"), prompt("send", "second"), idle])
      assert.strictEqual(contentOf(empty.frames), "[\"second\"]")
      const renamed = yield* talk({ ...echo, resume: "new_id" }, home, opening("resume"))
      assert.notStrictEqual(((renamed.frames.find(isAnswer("open")) ?? {})["result"] as Frame)["sessionId"], "session-1")
    }).pipe(Effect.scoped), 30_000)

  it.live("does not pass over what it has no word for", () =>
    Effect.gen(function*() {
      const { code, stderr } = yield* talk(turns([{ type: "todo", todos: [{ content: "a", status: "pending" }] }, completed]), yield* homeless, [
        ...opening(),
        prompt("send", "hello"),
        idle
      ])
      assert.deepStrictEqual([code, stderr], [70, "turnpike-scripted-agent: Copilot has no word for todo\n"])
    }).pipe(Effect.scoped), 30_000)
})
