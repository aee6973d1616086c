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
import { type Frame, kindOf, recording, run, runText, shapeOf, type Step } from "./support/played.ts"

const user = (content: string, more: Frame = {}): Step => ({
  send: { type: "user", message: { role: "user", content }, parent_tool_use_id: null, session_id: "", ...more }
})
const control = (requestId: string, request: Frame): Step => ({ send: { type: "control_request", request_id: requestId, request } })
const isResult = (frame: Frame): boolean => frame["type"] === "result"
const untilResult: Step = { until: isResult }
const untilWord = (word: string): Step => ({ until: (frame) => JSON.stringify(frame).includes(word) })

const say = (text: string) => ({ type: "text", text })
const usage = { type: "usage", input_tokens: 1035, output_tokens: 4, cache_read_tokens: 22, cache_write_tokens: 11, cost_usd: 0.0041 }
const completed = { type: "end", reason: "completed" }
const turns = (...lists: ReadonlyArray<ReadonlyArray<DialectWords.Json>>): Situation.Scenario => ({ turns: lists.map((list) => ({ do: list })) })
const words = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `word${from + i} `).join("")

const live = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
/** How the real program was started, or would have been to hear its prompt on standard input. */
const argumentsOf = (name: string): ReadonlyArray<string> => {
  const { argv } = recording(name)
  return argv.includes("--input-format") ? argv : live
}

const play = (scenario: Situation.Scenario, args: ReadonlyArray<string>, steps: ReadonlyArray<Step>, home?: string) =>
  Effect.gen(function*() {
    const program = yield* DialectPlayer.program(scenario, { dialect: DialectPlayer.claude, name: "claude" })
    const config = home ?? fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-claude-"))
    yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(config, { recursive: true, force: true })))
    return yield* run(program, args, steps, { CLAUDE_CONFIG_DIR: config })
  })

/** Fields that one of the two has and the other does not, by kind of frame. */
const differences = (played: ReadonlyArray<Frame>, real: ReadonlyArray<Frame>): ReadonlyArray<string> => {
  const byKind = (frames: ReadonlyArray<Frame>) => {
    const kinds = new Map<string, Set<string>>()
    for (const frame of frames) {
      const shape = kinds.get(kindOf(frame)) ?? new Set()
      for (const line of shapeOf(frame)) shape.add(line)
      kinds.set(kindOf(frame), shape)
    }
    return kinds
  }
  const ours = byKind(played)
  const theirs = byKind(real)
  return [...theirs].flatMap(([kind, shape]) => {
    const mine = ours.get(kind) ?? new Set()
    return [
      ...[...shape].filter((line) => !mine.has(line)).map((line) => `${kind} lacks ${line}`),
      ...[...mine].filter((line) => !shape.has(line)).map((line) => `${kind} invents ${line}`)
    ]
  })
}

interface Comparison {
  readonly name: string
  readonly scenario: Situation.Scenario
  readonly steps: ReadonlyArray<Step>
  /** Whether the order is that of the answers' making, which the recording cannot fix. */
  readonly anyOrder?: boolean
}

const answerWith = (response: Frame): Step => ({
  reply: (frame) => ({ type: "control_response", response: { subtype: "success", request_id: frame["request_id"], response } })
})
const isQuestion = (frame: Frame): boolean => frame["type"] === "control_request"
const asking = turns([
  say("Calling a tool. "),
  {
    type: "ask",
    id: "toolu_1",
    name: "Bash",
    input: { command: "touch x", description: "a tool call", timeout: 600000 },
    allowed: [{ type: "tool_result", id: "toolu_1", output: "did-it" }, say("TOOL-SEEN: did-it")],
    denied: [say("TOOL-SEEN: nope from host")]
  },
  usage,
  completed
])

/** A one-turn scenario, played without partial messages as the recordings of single prompts were made. */
const failing = (name: string, code: string, status?: number, retry = false): Comparison => ({
  name,
  scenario: turns([
    ...(retry ? [{ type: "retry", attempt: 1, max_attempts: 1, delay_ms: 600, ...(status === undefined ? {} : { http_status: status }) }] : []),
    { type: "fail", code, message: "no", ...(status === undefined ? {} : { http_status: status }) }
  ]),
  steps: [user("do it"), untilResult]
})

/** The caller registers a hook for every tool; it answers, and where it leaves the decision open a person does. */
const hooked = (name: string, decision: string, person: Frame): Comparison => ({
  name,
  // Whether a frame of the model's message comes before or after a question is a matter of milliseconds.
  anyOrder: true,
  scenario: turns([
    say("Calling a tool. "),
    {
      type: "ask",
      id: "toolu_1",
      name: "Bash",
      input: { command: "touch x", description: "a tool call", timeout: 600000 },
      allowed: [{ type: "tool_result", id: "toolu_1", output: "did-it" }, say("TOOL-SEEN: did-it")],
      denied: [say(decision === "deny" ? "TOOL-SEEN: PreToolUse:Bash hook error: because" : "TOOL-SEEN: nope")]
    },
    usage,
    completed
  ]),
  steps: [
    control("i0", { subtype: "initialize", appendSystemPrompt: "Be brief.", hooks: { PreToolUse: [{ matcher: "*", hookCallbackIds: ["gate"] }] } }),
    user("use tool", { text_not_typed: true }),
    { until: isQuestion },
    answerWith({ hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: decision, permissionDecisionReason: "because" } }),
    ...(decision === "ask" ? [{ until: isQuestion }, answerWith(person)] : []),
    untilResult
  ]
})

const comparisons: ReadonlyArray<Comparison> = [
  {
    name: "l1-longlived",
    scenario: turns(
      ...[1, 2, 3, 4, 5].map((count) => [
        say(`FAKE-REPLY nmsgs=${2 * count - 1} users=["turn ${Array.from({ length: count - 1 }, (_, i) => `${i + 1}","turn `).join("")}${count}"]`),
        usage,
        completed
      ])
    ),
    steps: [1, 2, 3, 4, 5].flatMap((count) => [user(`turn ${count}`), untilResult])
  },
  {
    name: "l2-interrupt",
    scenario: turns(
      [usage, { ...say(words(0, 6)), unfinished: true }, { type: "hang" }],
      [usage, { ...say(words(0, 13)), unfinished: true }, { type: "hang" }]
    ),
    steps: [user("slow please"), untilWord("word5"), control("int1", { subtype: "interrupt" }), untilResult, user("second"), untilWord("word12"), control("int2", { subtype: "interrupt" }), untilResult]
  },
  { name: "l3-perm-allow", scenario: asking, steps: [user("use tool"), { until: isQuestion }, answerWith({ behavior: "allow", updatedInput: {} }), untilResult] },
  { name: "l4-perm-deny", scenario: asking, steps: [user("use tool"), { until: isQuestion }, answerWith({ behavior: "deny", message: "nope from host" }), untilResult] },
  {
    name: "l5-init",
    anyOrder: true,
    scenario: turns([say("FAKE-REPLY nmsgs=1 users=[\"q1\"]"), usage, completed], [say("FAKE-REPLY nmsgs=3 users=[\"q1\",\"q2\"]"), usage, completed]),
    // The real program was given everything at once and then a line that is no JSON.
    steps: [
      control("i0", { subtype: "initialize" }),
      control("i2", { subtype: "set_permission_mode", mode: "acceptEdits" }),
      control("i1", { subtype: "set_model", model: "claude-haiku-4-5" }),
      user("q1", { uuid: "2a899dbf-a01d-4486-bce6-197d9ee19b32" }),
      user("q2", { uuid: "0759b63f-0dc3-4d3e-a70e-7ac377022b45" }),
      untilResult,
      untilResult,
      { until: (frame) => frame["state"] === "completed" },
      { send: "this is not json" }
    ]
  },
  {
    name: "l6-eof-midturn",
    scenario: turns([say(words(0, 20)), usage, completed]),
    steps: [user("slow")]
  },
  {
    name: "l9-slow-2nd-while-busy",
    scenario: turns([say(words(0, 20)), usage, completed], [say(words(0, 20)), usage, completed]),
    steps: [user("busy one"), user("busy two"), untilResult, untilResult]
  },
  {
    name: "k11-think-partial",
    scenario: turns([{ type: "reasoning", text: "let me think about it", pieces: 1 }, say("FAKE-REPLY nmsgs=2 users=[\"x\"]"), usage, completed]),
    steps: [user("x"), untilResult]
  },
  {
    name: "k6-perm-none",
    scenario: turns([
      say("Calling a tool. "),
      { type: "ask", id: "toolu_1", name: "Bash", input: { command: "touch x", description: "a tool call", timeout: 600000 }, denied: [say("TOOL-SEEN: no")] },
      usage,
      completed
    ]),
    steps: [user("x"), untilResult]
  },
  {
    name: "k9-max-turns",
    scenario: turns([
      say("Calling a tool. "),
      { type: "tool_call", id: "toolu_1", name: "Bash", input: { command: "echo hi", description: "a tool call", timeout: 600000 } },
      { type: "tool_result", id: "toolu_1", output: "hi" },
      usage,
      { type: "end", reason: "max-turns" }
    ]),
    steps: [user("x"), untilResult]
  },
  hooked("m1-hook-ask-allow", "ask", { behavior: "allow", updatedInput: {} }),
  hooked("m2-hook-ask-deny", "ask", { behavior: "deny", message: "nope" }),
  hooked("m3-hook-allow", "allow", {}),
  hooked("m4-hook-deny", "deny", {}),
  { name: "m5-slash-typed", scenario: turns([say("never"), completed]), steps: [user("/clear"), untilResult] },
  {
    name: "m6-slash-not-typed",
    scenario: turns([say("FAKE-REPLY nmsgs=2 users=[\"/clear\"]"), usage, completed]),
    steps: [user("/clear", { text_not_typed: true }), untilResult]
  },
  {
    name: "m7-sigint-idle",
    scenario: turns([say("FAKE-REPLY nmsgs=2 users=[\"hi\"]"), usage, completed]),
    steps: [user("hi"), untilResult, { signal: "SIGINT" }]
  },
  {
    name: "m8-unknown-control",
    scenario: turns([completed]),
    steps: [control("u1", { subtype: "dance" }), { until: (frame) => frame["type"] === "control_response" }]
  },
  {
    name: "m9-user-uuid",
    scenario: turns([say("FAKE-REPLY nmsgs=2 users=[\"hi\"]"), usage, completed]),
    steps: [user("hi", { uuid: "2a899dbf-a01d-4486-bce6-197d9ee19b32", text_not_typed: true }), untilResult]
  },
  failing("d-e401", "AUTH", 401, true),
  failing("d-e403", "PERMISSION_DENIED", 403),
  failing("d-e404", "MODEL_NOT_FOUND", 404),
  failing("d-e400", "INVALID_REQUEST", 400),
  failing("d-e429", "RATE_LIMIT", 429, true),
  failing("d-e500", "SERVER", 500, true),
  failing("d-ctxlen", "CONTEXT_WINDOW_EXCEEDED", 400),
  failing("d-econnrefused", "TRANSPORT", undefined, true)
]

describe.concurrent("ClaudeDialect", () => {
  for (const { anyOrder, name, scenario, steps } of comparisons) {
    it.live(`speaks as the real program did in ${name}`, () =>
      Effect.gen(function*() {
        const real = recording(name)
        const args = name.startsWith("k11") ? [...live, "--include-partial-messages"] : argumentsOf(name)
        const played = yield* play(scenario, args, steps)
        const kinds = (frames: ReadonlyArray<Frame>) => (anyOrder === true ? frames.map(kindOf).sort() : frames.map(kindOf))
        assert.deepStrictEqual(kinds(played.frames), kinds(real.frames))
        assert.deepStrictEqual(differences(played.frames, real.frames), [])
        assert.deepStrictEqual([played.code, played.stderr], [real.exitCode, real.stderr])
      }).pipe(Effect.scoped), 30_000)
  }

  const pairs = [
    ["b9-session-id-bad", ["--session-id", "not-a-uuid"]],
    ["c11-unknown-flag", ["--no-such-flag"]],
    ["c13-streamjson-without-verbose", []]
  ] as const
  for (const [name, more] of pairs) {
    it.live(`refuses its arguments as in ${name}`, () =>
      Effect.gen(function*() {
        const real = recording(name)
        const args = name.startsWith("c13") ? live.filter((argument) => argument !== "--verbose") : [...live, ...more]
        const played = yield* play(turns([completed]), args, [])
        assert.deepStrictEqual([played.frames, played.stderr, played.code], [[], real.stderr, real.exitCode])
      }).pipe(Effect.scoped))
  }

  it.live("says what of its arguments it does not play", () =>
    Effect.gen(function*() {
      const refused = (args: ReadonlyArray<string>) =>
        Effect.map(play(turns([completed]), args, []), ({ code, frames, stderr }) => [code, frames.length, stderr])
      assert.deepStrictEqual(yield* refused(["-p", "hello"]), [1, 0, "the player: it plays nothing but -p --input-format stream-json\n"])
      assert.deepStrictEqual(yield* refused([...live, "--model"]), [1, 0, "the player: --model needs a value\n"])
      const [code, , stderr] = yield* refused([...live, "--append-system-prompt-file", "/nowhere/at/all"])
      assert.deepStrictEqual([code, String(stderr).split(", ")[0]], [1, "the player: the instructions cannot be read: ENOENT: no such file or directory"])
    }).pipe(Effect.scoped), 30_000)

  const home = Effect.acquireRelease(
    Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-claude-"))),
    (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
  )
  const echo: Situation.Scenario = { turns: [{ repeats: true, do: [say("{{prompts}}"), completed] }] }

  it.live("keeps a session for the next process, and refuses to begin it twice", () =>
    Effect.gen(function*() {
      const real = recording("b3-session-id-again")
      const id = real.argv.at(-1) ?? ""
      const config = yield* home
      yield* play(echo, [...live, "--session-id", id], [user("one"), untilResult], config)
      const again = yield* play(echo, [...live, "--session-id", id], [], config)
      assert.deepStrictEqual([again.frames, again.stderr, again.code], [[], real.stderr, real.exitCode])
      const resumed = yield* play(echo, [...live, "--resume", id], [user("two"), untilResult], config)
      assert.deepStrictEqual([resumed.frames.at(-1)?.["session_id"], resumed.frames.at(-1)?.["result"]], [id, "[\"one\",\"two\"]"])
    }).pipe(Effect.scoped), 30_000)

  it.live("does not know a session that never was", () =>
    Effect.gen(function*() {
      const real = recording("b4-resume-unknown")
      const played = yield* play(echo, [...live, "--resume", real.argv.at(-1) ?? ""], [])
      assert.deepStrictEqual(differences(played.frames, real.frames), [])
      assert.deepStrictEqual([played.frames[0]?.["errors"], played.stderr, played.code], [real.frames[0]?.["errors"], real.stderr, real.exitCode])
    }).pipe(Effect.scoped))

  it.live("ends on TERM without a result, as in e3-sigterm", () =>
    Effect.gen(function*() {
      const real = recording("e3-sigterm")
      const scenario = turns([{ ...say(words(0, 6)), unfinished: true }, { type: "hang" }])
      const played = yield* play(scenario, [...live, "--include-partial-messages"], [user("x"), untilWord("word5"), { signal: "SIGTERM" }])
      assert.deepStrictEqual(played.frames.map(kindOf), real.frames.map(kindOf))
      assert.deepStrictEqual(played.code, real.exitCode)
    }).pipe(Effect.scoped))

  it.live("names its version", () =>
    Effect.gen(function*() {
      const program = yield* DialectPlayer.program(echo, { dialect: DialectPlayer.claude })
      const { code, stderr, ...rest } = yield* runText(program, ["--version"])
      assert.deepStrictEqual([rest.stdout, stderr, code], ["2.1.332 (Claude Code)\n", "", 0])
    }).pipe(Effect.scoped))
})

describe.concurrent("a replayed recording", () => {
  for (const name of ["l1-longlived", "l2-interrupt", "l3-perm-allow", "l6-eof-midturn", "d-e401"]) {
    it.live(`is ${name}, byte for byte, with its exit code`, () =>
      Effect.gen(function*() {
        const real = recording(name)
        const program = yield* DialectPlayer.replay(real.file, { name: "claude" })
        const results = real.frames.filter(isResult).length
        const inputs = name === "d-e401" ? [] : [user("1"), ...Array.from({ length: 4 }, () => user("more"))]
        const played = yield* run(program, real.argv, [...inputs, ...Array.from({ length: results }, () => untilResult)])
        assert.strictEqual(played.stdout.equals(real.bytes), true)
        assert.strictEqual(played.code, real.exitCode)
      }).pipe(Effect.scoped), 30_000)
  }
})
