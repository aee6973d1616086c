import { TurnEvent } from "@turnpike/contract"
import { assert, describe, it } from "@effect/vitest"
import { type Dialect, Frame } from "@turnpike/harness"
import { CodexConversation, CodexTools, CodexWire } from "@turnpike/harness-codex"
import { Prompt, ToolAllowlist } from "@turnpike/kernel"
import * as fs from "node:fs"
import { asked, ofRecording, thread, toText } from "./support/translate.ts"

const tools = (...list: ReadonlyArray<string>) => ({ tools: CodexTools.plan({ _tag: "Only", tools: list }) })

/** Recordings whose whole translation is written down, and what was asked in them. */
const recordings: Readonly<Record<string, Partial<CodexConversation.Asked>>> = {
  "w1-two-turns": {},
  "w2-tool-accepted": tools("read", "execute"),
  "w3-tool-declined": tools("read", "execute"),
  "w4-interrupt-streaming": {},
  "w5-interrupt-while-asked": tools("read", "execute"),
  "w6-resume": tools("read", "execute"),
  "w7-401": {},
  "w8-500": {},
  "w9-cut": {},
  "w10-max-tokens": {},
  "w11-refusal": {},
  "w12-empty": {},
  "w13-malformed": {},
  "w14-context-too-long": {},
  "w15-404": {},
  "w16-reasoning": {},
  "w17-no-key": {},
  "w20-too-long": {},
  "w22-patch": tools("read", "edit"),
  "w23-mcp-declined": {},
  "w24-connection-refused": {},
  "w25-cut-then-whole": {},
  "w26-rule-allows": {},
  "w27-429": {},
  "w28-write-in-read-only": {},
  "w29-529": {},
  "w30-dangerous-all": { tools: CodexTools.plan(ToolAllowlist.dangerousAll) },
  "w31-patch-declined": {},
  "w32-mcp-unasked": {},
  "w33-escalation-declined": {}
}

/** How many endings a recording has; one unless it is here. */
const endings: Readonly<Record<string, number>> = { "w1-two-turns": 2, "w24-connection-refused": 0 }

const isEnding = ({ _tag }: Dialect.Output): boolean => _tag === "End" || _tag === "Fail" || _tag === "Kill"

describe("CodexConversation, of recordings", () => {
  for (const [name, options] of Object.entries(recordings)) {
    it(`translates ${name}`, () => {
      const file = new URL(`./translations/${name}.txt`, import.meta.url)
      const resumed = name === "w6-resume" ? { resumes: "01a22ef0-0000-7000-8000-000000000000" } : {}
      const outputs = ofRecording(name, { ...options, ...resumed })
      const text = toText(outputs)
      // UPDATE_TRANSLATIONS=1 writes what is then to be read and believed.
      if (process.env["UPDATE_TRANSLATIONS"] === "1") fs.writeFileSync(file, text)
      assert.strictEqual(text, fs.readFileSync(file, "utf8"))
      assert.strictEqual(outputs.filter(isEnding).length, endings[name] ?? 1)
    })
  }

  it("knows every frame of them, and opens and closes steps in turn", () => {
    for (const [name, options] of Object.entries(recordings)) {
      const events = ofRecording(name, options).flatMap((output) => output._tag === "Event" ? [output.event] : [])
      assert.deepStrictEqual(events.flatMap((event) => event.type === "notice" && event.data.kind === "unknown_frame" ? [event.data.message] : []), [], name)
      let open = 0
      for (const event of events) {
        if (event.type === "step/start") assert.strictEqual(++open, 1, name)
        if (event.type === "step/end") assert.strictEqual(--open, 0, name)
      }
    }
  })
})

const threadId = "thread-1"
const turnId = "turn-1"
const place = { threadId, turnId }
const begin = (more?: Partial<CodexConversation.Asked>) =>
  CodexConversation.prompt(CodexConversation.initial(asked(more), thread(threadId)), Prompt.fromText("hello")).state

const after = (state: CodexConversation.State, ...frames: ReadonlyArray<Frame.Frame>): Dialect.Step<CodexConversation.State> =>
  frames.reduce<Dialect.Step<CodexConversation.State>>((step, frame) => {
    const next = CodexConversation.frame(step.state, frame)
    return { state: next.state, outputs: [...step.outputs, ...next.outputs] }
  }, { state, outputs: [] })

const started: Frame.Frame = { method: "turn/started", params: { threadId, turn: { id: turnId, status: "inProgress" } } }
const completed = (status: string): Frame.Frame => ({ method: "turn/completed", params: { threadId, turn: { id: turnId, status, error: null } } })
const piece = (delta: string, more: { readonly [key: string]: string } = {}): Frame.Frame => ({
  method: "item/agentMessage/delta",
  params: { ...place, itemId: "m", delta, ...more }
})
const notices = (outputs: ReadonlyArray<Dialect.Output>) =>
  outputs.flatMap((output) => output._tag === "Event" && output.event.type === "notice" ? [[output.event.data.kind, output.event.data.message]] : [])

describe("CodexConversation", () => {
  it("says sandbox and approval with every turn", () => {
    const { outputs } = CodexConversation.prompt(CodexConversation.initial(asked(tools("read", "edit", "fetch")), thread(threadId)), Prompt.fromText("hello"))
    assert.deepStrictEqual(outputs, [{
      _tag: "Send",
      frame: {
        id: "turnpike-1",
        method: "turn/start",
        params: {
          threadId,
          input: [{ type: "text", text: "hello", text_elements: [] }],
          approvalPolicy: "on-request",
          approvalsReviewer: "user",
          sandboxPolicy: { type: "workspaceWrite", writableRoots: [], networkAccess: true, excludeTmpdirEnvVar: false, excludeSlashTmp: false }
        }
      }
    }])
  })

  it("interrupts a turn that Codex has not begun yet as soon as it has", () => {
    const early = CodexConversation.interrupt(begin())
    assert.deepStrictEqual(early.outputs, [])
    const answered = after(early.state, { id: "turnpike-1", result: { turn: { id: turnId } } })
    assert.deepStrictEqual(answered.outputs, [])
    const { outputs } = after(answered.state, started)
    assert.deepStrictEqual(outputs.at(-1), {
      _tag: "Send",
      frame: { id: "turnpike-2", method: "turn/interrupt", params: { threadId, turnId } }
    })
  })

  it("tells what is in force and was not asked for", () => {
    const state = CodexConversation.prompt(
      CodexConversation.initial(asked({ model: "gpt-9", resumes: "thread-0", version: "0.999.0" }), { ...thread(threadId), sandbox: { type: "dangerFullAccess" } }),
      Prompt.fromText("hello")
    ).state
    assert.deepStrictEqual(notices(after(state, started).outputs), [
      ["rebound", "Codex goes on under the thread id thread-1 instead of thread-0"],
      ["untested_version", "Codex 0.999.0 is not the version that is tested, 0.171.0"],
      ["model_differs", "the model is gpt-5.4; asked for was gpt-9"],
      ["tools_differ", "the sandbox is dangerFullAccess; asked for was readOnly"]
    ])
  })

  it("answers requests that it does not know, so that Codex does not wait", () => {
    for (const method of ["item/tool/requestUserInput", "a/request/of/the/future"]) {
      const { outputs } = after(begin(), { id: 7, method, params: {} })
      assert.deepStrictEqual(outputs[0], { _tag: "Send", frame: { id: 7, error: { code: -32601, message: `${method} is not supported here` } } })
      assert.deepStrictEqual(notices(outputs), [["unknown_frame", `Codex asked for ${method}, which nobody here answers; it was told so`]])
    }
  })

  it("declines what an MCP server asks a person", () => {
    const { outputs } = after(begin(), { id: 0, method: "mcpServer/elicitation/request", params: { threadId, serverName: "good", message: "your name?", mode: "form" } })
    assert.deepStrictEqual(outputs[0], { _tag: "Send", frame: { id: 0, result: { action: "decline", content: null, _meta: null } } })
  })

  it("keeps frames of an unknown kind, and those that do not fit, as notices", () => {
    const { outputs } = after(begin(), { method: "thread/of/the/future", params: { news: 1 } }, { method: "item/started", params: { news: 1 } }, { news: 1 })
    assert.deepStrictEqual(notices(outputs), [
      ["unknown_frame", "a record of the unknown kind thread/of/the/future"],
      ["unknown_frame", "a record of the unknown kind item/started, which does not have the expected shape"],
      ["unknown_frame", "a record of the unknown kind without a method"]
    ])
  })

  it("takes an item of an unknown kind for progress", () => {
    const { outputs } = after(begin(), started, { method: "item/completed", params: { ...place, item: { type: "imageView", id: "i", path: "x" } } })
    assert.deepStrictEqual(outputs.map(({ _tag }) => _tag), ["Session", "Event"])
  })

  it("tells what agents do that Codex runs as theirs, and does not end the turn with them", () => {
    const { outputs, state } = after(
      begin(),
      started,
      piece("from below", { threadId: "thread-2", turnId: "turn-9" }),
      { method: "turn/completed", params: { threadId: "thread-2", turn: { id: "turn-9", status: "completed" } } }
    )
    assert.deepStrictEqual(outputs.at(-1), {
      _tag: "Event",
      event: TurnEvent.make("assistant/chunk", { kind: "text", text: "from below", origin: "subagent" })
    })
    assert.isDefined(state.turn)
  })

  it("keeps what comes after the turn's end out of the next turn", () => {
    const over = after(begin(), started, completed("completed"))
    assert.deepStrictEqual(after(over.state, piece("late")).outputs, [{ _tag: "Late", frame: piece("late") }])
    const next = CodexConversation.prompt(over.state, Prompt.fromText("again"))
    const known = after(next.state, { id: "turnpike-2", result: { turn: { id: "turn-2" } } })
    assert.deepStrictEqual(after(known.state, piece("late")).outputs, [{ _tag: "Late", frame: piece("late") }])
  })

  it("does not take the last turn's figures, told again when a thread is resumed, for this turn's", () => {
    const report = (id: string): Frame.Frame => {
      const last = { totalTokens: 12, inputTokens: 10, outputTokens: 2 }
      return { method: "thread/tokenUsage/updated", params: { threadId, turnId: id, tokenUsage: { total: last, last } } }
    }
    const early = after(begin(), report("turn-0"))
    assert.deepStrictEqual(early.outputs, [])
    assert.isUndefined(early.state.turn?.usage.latest)
    assert.isDefined(after(early.state, { id: "turnpike-1", result: { turn: { id: turnId } } }, report(turnId)).state.turn?.usage.latest)
  })

  it("refuses a prompt that Codex does not take, typed, and takes the next one", () => {
    const { outputs, state } = after(begin(), { id: "turnpike-1", error: { code: -32001, message: "too many requests" } })
    assert.deepStrictEqual(outputs.map((output) => output._tag === "Fail" ? [output.failure.code, output.failure.message, output.failure.retryable] : output), [
      ["OVERLOADED", "Codex says: too many requests", true]
    ])
    assert.isUndefined(state.turn)
  })

  it("allows everything unasked where all tools were allowed, and grants no more than was asked", () => {
    const request: Frame.Frame = {
      id: 3,
      method: "item/permissions/requestApproval",
      params: { threadId, turnId, itemId: "c", reason: "to fetch", permissions: { network: { enabled: true }, fileSystem: null } }
    }
    const { outputs: [output] } = after(begin({ tools: CodexTools.plan(ToolAllowlist.dangerousAll) }), request)
    assert.isTrue(output?._tag === "Ask" && output.preset?.decision === "allow")
    if (output?._tag !== "Ask") return
    assert.deepStrictEqual(output.respond({ decision: "allow", reason: "" }), [{ id: 3, result: { permissions: { network: { enabled: true } }, scope: "turn" } }])
    assert.deepStrictEqual(output.respond({ decision: "deny", reason: "" }), [{ id: 3, result: { permissions: {}, scope: "turn" } }])
  })

  it("tells the plan as a list of things to do", () => {
    const { outputs } = after(begin(), started, {
      method: "turn/plan/updated",
      params: { ...place, explanation: null, plan: [{ step: "look", status: "completed" }, { step: "write", status: "inProgress" }, { step: "rest", status: "pending" }] }
    })
    assert.deepStrictEqual(outputs.at(-1), {
      _tag: "Event",
      event: TurnEvent.make("todo/write", {
        todos: [{ content: "look", status: "completed" }, { content: "write", status: "in_progress" }, { content: "rest", status: "pending" }]
      })
    })
  })
})

describe("a record that is too long to be read", () => {
  const isNeeded = (head: string) => {
    const beginning = Frame.beginning({ _tag: "Oversize", bytesTotal: 1e9, head: new TextEncoder().encode(`${head},"more":"x`), terminated: true })
    return beginning !== undefined && CodexWire.needed(beginning)
  }

  it("is one that the turn waits for where it ends the turn or asks something", () => {
    const awaited = [
      "{\"method\":\"turn/completed\",\"params\":{\"threadId\":\"1\",\"turn\":{\"id\":\"2\"",
      "{\"method\":\"item/commandExecution/requestApproval\",\"id\":0,\"params\":{\"kind\":\"command\"",
      "{\"id\":4,\"result\":{\"turn\":{\"id\":\"2\""
    ]
    const others = [
      "{\"method\":\"item/completed\",\"params\":{\"item\":{\"type\":\"commandExecution\",\"id\":\"1\""
    ]
    assert.deepStrictEqual([awaited.map(isNeeded), others.map(isNeeded)], [awaited.map(() => true), others.map(() => false)])
  })
})
