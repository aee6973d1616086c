/**
 * The played dialect against recordings of the real program: the same frames in
 * the same order, with the same fields of the same types.
 */
import { assert, describe, it } from "@effect/vitest"
import { DialectPlayer, type DialectWords, type Situation } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { type Frame, framesOf, run, shapeOf, type Step } from "./support/played.ts"

const directory = new URL("../../../test/fixtures/codex/0.171.0/", import.meta.url)
const recorded = (name: string): ReadonlyArray<Frame> => framesOf(fs.readFileSync(new URL(`${name}.stdout`, directory)))

const send = (frame: Frame): Step => ({ send: frame })
const isAnswer = (id: string) => (frame: Frame): boolean => frame["id"] === id && frame["method"] === undefined
const isMethod = (method: string) => (frame: Frame): boolean => frame["method"] === method

const opening = (sandbox: string): ReadonlyArray<Step> => [
  send({ id: "initialize", method: "initialize", params: { clientInfo: { name: "turnpike", title: "Turnpike", version: "0.1.0" } } }),
  { until: isAnswer("initialize") },
  send({ method: "initialized" }),
  send({ id: "thread", method: "thread/start", params: { approvalPolicy: "on-request", sandbox } }),
  { until: isAnswer("thread") }
]
/** Begins a turn of the thread that the last frame but one named. */
const prompt = (id: string, text: string): Step =>
  send({ id, method: "turn/start", params: { threadId: "any", input: [{ type: "text", text, text_elements: [] }] } })

const turns = (...lists: ReadonlyArray<ReadonlyArray<DialectWords.Json>>): Situation.Scenario => ({ turns: lists.map((list) => ({ do: list })) })
const say = (text: string, pieces = 6) => ({ type: "text", text, pieces })
const usage = { type: "usage", input_tokens: 1235, output_tokens: 6, cache_read_tokens: 200 }
const completed = { type: "end", reason: "completed" }

interface Comparison {
  readonly name: string
  readonly scenario: Situation.Scenario
  readonly steps: ReadonlyArray<Step>
}

const failing = (name: string, ...list: ReadonlyArray<DialectWords.Json>): Comparison => ({
  name,
  scenario: turns(list),
  steps: [...opening("read-only"), prompt("turnpike-1", "hello"), { until: isMethod("turn/completed") }]
})

const comparisons: ReadonlyArray<Comparison> = [
  {
    name: "w1-two-turns",
    scenario: turns([say("one two three four five six"), usage, completed], [say("one two three four five six"), usage, completed]),
    steps: [
      ...opening("read-only"),
      prompt("turnpike-1", "first"),
      { until: isMethod("turn/completed") },
      prompt("turnpike-2", "second"),
      { until: isMethod("turn/completed") }
    ]
  },
  {
    name: "w4-interrupt-streaming",
    scenario: turns([{ ...say("word0 ", 1), unfinished: true }, { type: "hang" }]),
    steps: [
      ...opening("read-only"),
      prompt("turnpike-1", "first"),
      { until: isMethod("turn/started") },
      {
        reply: (frame) => ({
          id: "turnpike-2",
          method: "turn/interrupt",
          params: { turnId: ((frame["params"] as Frame)["turn"] as Frame)["id"] }
        })
      },
      { until: isMethod("turn/completed") },
      send({ id: "turnpike-3", method: "turn/interrupt", params: { turnId: "over" } }),
      { until: isAnswer("turnpike-3") }
    ]
  },
  failing("w7-401", { type: "retry", attempt: 1, max_attempts: 1, delay_ms: 0, http_status: 401 }, { type: "fail", code: "AUTH", message: "no", http_status: 401 }),
  failing("w14-context-too-long", usage, { type: "fail", code: "CONTEXT_WINDOW_EXCEEDED", message: "no" }),
  failing("w16-reasoning", { type: "reasoning", text: "a b c d e f g h i", pieces: 9 }, say("one two three four five six"), usage, completed)
]

/** What a recording has and the played program leaves out, or has in fewer pieces: nothing that a turn is made of. */
const isTold = (frame: Frame): boolean => !["warning", "thread/status/changed", "account/rateLimits/updated"].includes(String(frame["method"]))

const nameOf = (frame: Frame): string => {
  const { error, id, method, params } = frame
  const item = (params as Frame | undefined)?.["item"] as Frame | undefined
  return method === undefined ? `${error === undefined ? "result" : "error"} ${String(id)}` : `${String(method)}${item === undefined ? "" : ` ${String(item["type"])}`}`
}

/** A run of pieces counts as one: how an answer is cut is the model's doing. */
const order = (frames: ReadonlyArray<Frame>): ReadonlyArray<string> =>
  frames.filter(isTold).map(nameOf).filter((name, index, all) => !name.endsWith("elta") || all[index - 1] !== name)

/** The fields of each kind of frame, with their types. */
const shapes = (frames: ReadonlyArray<Frame>): Readonly<Record<string, ReadonlyArray<string>>> => {
  const kinds = new Map<string, Set<string>>()
  for (const frame of frames.filter(isTold)) {
    const known = kinds.get(nameOf(frame)) ?? new Set<string>()
    for (const line of shapeOf(frame)) known.add(line)
    kinds.set(nameOf(frame), known)
  }
  return Object.fromEntries([...kinds].map(([name, lines]) => [name, [...lines].sort()]))
}

describe("the played Codex, against recordings", () => {
  for (const { name, scenario, steps } of comparisons) {
    it.live(`speaks as in ${name}`, () =>
      Effect.gen(function*() {
        const program = yield* DialectPlayer.program(scenario, { dialect: DialectPlayer.codex, name: "codex" })
        const home = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-codex-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true })))
        const played = yield* run(program, ["app-server"], steps, { CODEX_HOME: home })
        const real = recorded(name)
        assert.deepStrictEqual(order(played.frames), order(real))
        assert.deepStrictEqual(shapes(played.frames), shapes(real))
        assert.deepStrictEqual([played.code, played.signal], [0, null])
      }).pipe(Effect.scoped), 30_000)
  }

  it.live("loses a thread where the scenario says so, and does not pass over what it has no word for", () =>
    Effect.gen(function*() {
      const home = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-codex-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true })))
      const talk = (scenario: Situation.Scenario, steps: ReadonlyArray<Step>) =>
        Effect.gen(function*() {
          const program = yield* DialectPlayer.program(scenario, { dialect: DialectPlayer.codex, name: "codex" })
          return yield* run(program, ["app-server"], steps, { CODEX_HOME: home })
        })
      const begun = yield* talk(turns([{ type: "background", tasks: [] }, completed]), [...opening("read-only"), prompt("turnpike-1", "first"), { until: isMethod("turn/completed") }])
      assert.deepStrictEqual([begun.code, begun.stderr], [70, "turnpike-scripted-agent: Codex has no word for background\n"])
      const threadId = fs.readdirSync(path.join(home, "sessions"))[0]?.slice(0, -".json".length)
      const resume = [...opening("read-only").slice(0, 3), send({ id: "resume", method: "thread/resume", params: { threadId } }), { until: isAnswer("resume") }]
      const known = yield* talk(turns([completed]), resume)
      assert.strictEqual(known.frames.find(isAnswer("resume"))?.["error"], undefined)
      const lost = yield* talk({ ...turns([completed]), resume: "unknown" }, resume)
      assert.deepStrictEqual(lost.frames.find(isAnswer("resume"))?.["error"], { code: -32600, message: `no rollout found for thread id ${threadId}` })
    }).pipe(Effect.scoped), 30_000)
})
