import { assert, describe, it } from "@effect/vitest"
import { type Dialect, Frame } from "@turnpike/harness"
import { CopilotConversation, CopilotTools, CopilotWire } from "@turnpike/harness-copilot"
import { Prompt, ToolAllowlist } from "@turnpike/kernel"
import { Effect } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import { asked, bytesOf, framesOf, ofRecording, type Options, toText, translate } from "./support/translate.ts"

const tools = (...list: ReadonlyArray<string>) => ({ tools: CopilotTools.plan({ _tag: "Only", tools: list }) })

/** Recordings whose whole translation is written down, and what was asked in them. */
const recordings: Readonly<Record<string, Options>> = {
  "two-turns": { prompts: ["first", "/clear"] },
  "resumed": { resumes: asked().sessionId },
  "tool-allowed": tools("execute"),
  "tool-denied": tools("bash(git *)"),
  "tool-all": { tools: CopilotTools.plan(ToolAllowlist.dangerousAll) },
  "interrupt-streaming": {},
  "interrupt-while-asked": tools("bash(git *)"),
  "thinking": {},
  "e401": {},
  "e429": {},
  "context-too-long": {},
  "cut-then-whole": {},
  "malformed": {},
  "max-tokens": {},
  "refusal": {},
  "empty": {},
  "not-signed-in": {}
}

describe("CopilotConversation, of recordings", () => {
  for (const [name, options] of Object.entries(recordings)) {
    it(`translates ${name}`, () => {
      const file = new URL(`./translations/${name}.txt`, import.meta.url)
      const text = toText(ofRecording(name, options))
      // UPDATE_TRANSLATIONS=1 writes what is then to be read and believed.
      if (process.env["UPDATE_TRANSLATIONS"] === "1") fs.writeFileSync(file, text)
      assert.strictEqual(text, fs.readFileSync(file, "utf8"))
    })
  }

  it("ends each turn once, and knows every frame", () => {
    for (const [name, options] of Object.entries(recordings)) {
      const outputs = ofRecording(name, options)
      const endings = outputs.filter(({ _tag }) => _tag === "End" || _tag === "Fail" || _tag === "Kill").length
      assert.strictEqual(endings, options.prompts?.length ?? 1, name)
      const odd = outputs.flatMap((output) =>
        output._tag === "Late" ? ["late"] : output._tag === "Event" && output.event.type === "notice" && output.event.data.kind === "unknown_frame" ? [output.event.data.message] : []
      )
      assert.deepStrictEqual(odd, [], name)
    }
  })

  it.effect("does not depend on where the bytes were cut", () =>
    Effect.gen(function*() {
      const bytes = bytesOf("tool-denied")
      const whole = toText(ofRecording("tool-denied", recordings["tool-denied"]))
      const sizes = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3000 })))
      const result = yield* Arbitrary.checkEffect(Arbitrary.schema(sizes), (chunks) =>
        toText(translate(framesOf(bytes, chunks), recordings["tool-denied"])) === whole)
      assert.strictEqual(result._tag, "Passed")
    }))
})

const sessionId = asked().sessionId
const fresh = (more?: Partial<CopilotConversation.Asked>, model: string | undefined = "gpt-5.4") => CopilotConversation.initial(asked(more), model)

const after = (state: CopilotConversation.State, ...frames: ReadonlyArray<Frame.Frame>): Dialect.Step<CopilotConversation.State> =>
  frames.reduce<Dialect.Step<CopilotConversation.State>>((step, frame) => {
    const next = CopilotConversation.frame(step.state, frame)
    return { state: next.state, outputs: [...step.outputs, ...next.outputs] }
  }, { state, outputs: [] })

/** A turn that Copilot has taken. */
const begin = (more?: Partial<CopilotConversation.Asked>) => {
  const { state } = CopilotConversation.prompt(fresh(more), Prompt.fromText("hello"))
  return after(state, { jsonrpc: "2.0", id: state.turn!.sendId, result: { messageId: "m" } }).state
}

const event = (type: string, data: Frame.Frame = {}, more: Frame.Frame = {}): Frame.Frame => ({
  jsonrpc: "2.0",
  method: "session.event",
  params: { sessionId, event: { type, data, id: "e", timestamp: "t", parentId: null, ...more } }
})
const message = (content: string, more: Frame.Frame = {}) => event("assistant.message", { messageId: "m1", content, toolRequests: [], ...more })
const usage = (finishReason: string) => event("assistant.usage", { inputTokens: 10, outputTokens: 2, finishReason })
const start = (name: string, input: Schema.Json = {}) => event("tool.execution_start", { toolCallId: "c1", toolName: name, arguments: input })
const complete = (more: Frame.Frame = {}) => event("tool.execution_complete", { toolCallId: "c1", success: true, result: { content: "out" }, ...more })
const permission = (permissionRequest: Frame.Frame, more: Frame.Frame = {}) =>
  event("permission.requested", { requestId: "r1", permissionRequest: { toolCallId: "c1", ...permissionRequest }, ...more })
const idle = event("session.idle", { mode: "interactive" })

const endings = ({ outputs }: Dialect.Step<CopilotConversation.State>) =>
  outputs.flatMap((output) =>
    output._tag === "End" ? [output.end.stop_reason] : output._tag === "Fail" || output._tag === "Kill" ? [`${output._tag} ${output.failure.code}`] : [])
const notices = ({ outputs }: Dialect.Step<CopilotConversation.State>) =>
  outputs.flatMap((output) => output._tag === "Event" && output.event.type === "notice" ? [[output.event.data.kind, output.event.data.message]] : [])
const asks = ({ outputs }: Dialect.Step<CopilotConversation.State>) => outputs.flatMap((output) => output._tag === "Ask" ? [output] : [])

describe("CopilotConversation", () => {
  it("tells of the session once, and sends a prompt as text", () => {
    const first = CopilotConversation.prompt(fresh(), Prompt.fromText("/clear"))
    assert.deepStrictEqual(first.outputs, [
      { _tag: "Session", harnessSessionId: sessionId },
      {
        _tag: "Event",
        event: { type: "session/bound", data: { harness_session_id: sessionId, resumed: false, harness_version: "1.0.102", model: "gpt-5.4" } }
      },
      {
        _tag: "Send",
        frame: { jsonrpc: "2.0", id: "00000000-0000-4000-8000-000000000001", method: "session.send", params: { sessionId, prompt: "/clear" } }
      }
    ])
    const second = CopilotConversation.prompt({ ...first.state, turn: undefined }, Prompt.fromText("b"))
    assert.deepStrictEqual(second.outputs.map(({ _tag }) => _tag), ["Send"])
  })

  it("tells that it goes on under another id than the one it was asked to resume", () => {
    const step = CopilotConversation.prompt(fresh({ resumes: "before" }), Prompt.fromText("a"))
    assert.deepStrictEqual(notices(step), [["rebound", `Copilot goes on under the session id ${sessionId} instead of before`]])
    assert.deepStrictEqual(step.outputs.flatMap((output) => output._tag === "Session" ? [output.harnessSessionId] : []), [sessionId])
  })

  it("tells what is in force and was not asked for", () => {
    const step = CopilotConversation.prompt(fresh({ version: "1.0.200", model: "gpt-5" }), Prompt.fromText("a"))
    assert.deepStrictEqual(notices(step), [
      ["untested_version", "Copilot 1.0.200 is not the version that is tested, 1.0.102"],
      ["model_differs", "the model is gpt-5.4; asked for was gpt-5"]
    ])
  })

  it("does not take an idle moment before the prompt was taken for its end", () => {
    const { state } = CopilotConversation.prompt(fresh(), Prompt.fromText("a"))
    assert.deepStrictEqual(endings(after(state, idle)), [])
    assert.deepStrictEqual(endings(after(state, idle, { jsonrpc: "2.0", id: state.turn!.sendId, result: {} }, message("b"), idle)), ["completed"])
    const refused = after(state, { jsonrpc: "2.0", id: state.turn!.sendId, error: { code: -32603, message: "no token=abcdefghijkl" } })
    assert.deepStrictEqual(endings(refused), ["Fail HARNESS_FAILED"])
    assert.notInclude(JSON.stringify(refused.outputs), "abcdefghijkl")
  })

  it("takes the end of the last answer for the turn's", () => {
    assert.deepStrictEqual(
      ["stop", "tool_calls", "length", "content_filter", "anything"].map((reason) => endings(after(begin(), usage(reason), message("a"), idle))[0]),
      ["completed", "completed", "max-tokens", "refusal", "completed"]
    )
    assert.deepStrictEqual(endings(after(begin(), usage("length"), usage("stop"), message("a"), idle)), ["completed"])
    assert.deepStrictEqual(endings(after(begin(), usage("stop"), event("assistant.usage", { finishReason: "length" }, { agentId: "sub" }), idle)), ["completed"])
  })

  it("fails a turn by the error that Copilot did not get over", () => {
    const error = event("session.error", { errorType: "rate_limit", message: "slow down", statusCode: 429 })
    assert.deepStrictEqual(endings(after(begin(), error, idle)), ["Fail RATE_LIMIT"])
    assert.deepStrictEqual(endings(after(begin(), error, message("all the same"), idle)), ["completed"])
    assert.deepStrictEqual(endings(after(begin(), event("session.error", { errorType: "query", message: "x" }, { agentId: "sub" }), message("a"), idle)), ["completed"])
    assert.deepStrictEqual(endings(after(begin(), event("abort", { reason: "user_initiated" }), error, event("session.idle", { aborted: true }))), ["aborted"])
  })

  it("keeps what it does not know as a notice, without credentials", () => {
    const step = after(begin(), event("a.thing_of_the_future", { token: "abcdefghijklmnop" }), { jsonrpc: "2.0", method: "future.notification" })
    assert.deepStrictEqual(notices(step), [
      ["unknown_frame", "a record of the unknown kind a.thing_of_the_future"],
      ["unknown_frame", "a record of the unknown kind future.notification"]
    ])
    assert.notInclude(JSON.stringify(step.outputs), "abcdefghijklmnop")
    assert.deepStrictEqual(notices(after(begin(), event("assistant.message", { content: 1 }))), [
      ["unknown_frame", "a record of the unknown kind assistant.message, which does not have the expected shape"]
    ])
    assert.deepStrictEqual(after(begin(), event("model.of_the_future")).outputs, [])
  })

  it("is not held up by fields that it does not know", () => {
    const step = after(begin(), event("assistant.turn_start", { turnId: "0", news: [1] }), message("a", { news: {} }), event("session.idle", { news: null }))
    assert.deepStrictEqual([endings(step), notices(step)], [["completed"], []])
  })

  it("answers a request that it does not know, so that nobody waits", () => {
    for (const id of [7, "seven"]) {
      const step = after(begin(), { jsonrpc: "2.0", id, method: "userInput.request", params: { question: "?" } })
      assert.deepStrictEqual(step.outputs[0], {
        _tag: "Send",
        frame: { jsonrpc: "2.0", id, error: { code: -32601, message: "userInput.request is not supported here" } }
      })
    }
    const hook = after(begin(), { jsonrpc: "2.0", id: 8, method: "hooks.invoke", params: { hookType: "agentStop", input: {} } })
    assert.deepStrictEqual(hook.outputs, [{ _tag: "Send", frame: { jsonrpc: "2.0", id: 8, result: {} } }])
  })

  it("lets the gate allow what the list holds, and ask for the rest", () => {
    const hook = (toolName: string, toolArgs: Schema.Json = {}): Frame.Frame => ({
      jsonrpc: "2.0",
      id: 1,
      method: "hooks.invoke",
      params: { sessionId, hookType: "preToolUse", input: { toolName, toolArgs } }
    })
    const state = begin(tools("view", "bash(git *)"))
    const decisions = [hook("view"), hook("bash", { command: "git status" }), hook("bash", { command: "rm x" }), hook("bash"), hook("server-tool")]
      .map((frame) => JSON.stringify(CopilotConversation.frame(state, frame).outputs).match(/"permissionDecision":"(\w+)"/)?.[1])
    assert.deepStrictEqual(decisions, ["allow", "allow", "ask", "ask", "ask"])
  })

  it("tells a decider of the call, and answers with a reason that lets the turn go on", () => {
    const step = after(begin(), start("view", { path: "/etc/hostname" }), permission({ kind: "read", path: "/etc/hostname", intention: "read it" }))
    const [ask] = asks(step)
    assert.deepStrictEqual(ask?.request, {
      requestId: "r1",
      toolName: "view",
      input: { path: "/etc/hostname" },
      description: "read it",
      listed: true
    })
    const result = (decision: "allow" | "deny" | "cancelled") => ask?.respond({ decision, reason: "because" }).map((frame) => frame["params"])
    const params = (result: Frame.Frame) => [{ sessionId, requestId: "r1", result }]
    assert.deepStrictEqual([result("allow"), result("deny"), result("cancelled")], [
      params({ kind: "approve-once" }),
      params({ kind: "reject", feedback: "because" }),
      []
    ])
    assert.deepStrictEqual(asks(after(begin(), permission({ kind: "hook" }, { resolvedByHook: true }))), [])
  })

  it("names the tool also where Copilot tells only the kind", () => {
    const named = (request: Frame.Frame) => {
      const [ask] = asks(after(begin(), permission({ toolCallId: null, ...request })))
      return [ask?.request.toolName, ask?.request.input]
    }
    assert.deepStrictEqual(named({ kind: "shell", fullCommandText: "ls" }), ["bash", { command: "ls" }])
    assert.deepStrictEqual(named({ kind: "url", url: "https://x" }), ["web_fetch", "https://x"])
    assert.deepStrictEqual(named({ kind: "of-the-future" }), ["of-the-future", undefined])
  })

  it("allows everything by itself where all tools were allowed", () => {
    const [ask] = asks(after(begin({ tools: CopilotTools.plan(ToolAllowlist.dangerousAll) }), permission({ kind: "shell", fullCommandText: "ls" })))
    assert.deepStrictEqual([ask?.preset?.decision, ask?.preset?.by], ["allow", "dangerous-all"])
  })

  it("no longer waits for an answer that Copilot gave itself", () => {
    const step = after(begin(), event("permission.completed", { requestId: "r1", result: { kind: "cancelled" } }))
    assert.deepStrictEqual(step.outputs, [{ _tag: "Withdraw", requestId: "r1" }])
  })

  it("kills a process that ran a tool which the allow-list does not hold, without asking", () => {
    assert.deepStrictEqual(endings(after(begin(), start("bash"), complete())), ["Kill POLICY_VIOLATION"])
    assert.deepStrictEqual(endings(after(begin(), start("bash"), complete({ success: false, error: { message: "no", code: "denied" } }))), [])
    assert.deepStrictEqual(endings(after(begin(), start("view"), complete())), [])
    assert.deepStrictEqual(endings(after(begin(), start("bash"), permission({ kind: "hook", toolName: "bash" }), complete())), [])
  })

  it("lists what was denied", () => {
    const step = after(begin(), start("bash", { command: "x" }), complete({ success: false, error: { message: "no", code: "rejected" } }), message("a"), idle)
    const end = step.outputs.flatMap((output) => output._tag === "End" ? [[output.end.worked, output.end.denials]] : [])
    assert.deepStrictEqual(end, [[false, [{ tool_name: "bash", call_id: "c1", input: { command: "x" } }]]])
  })

  it("tells the answer as it comes where it was not streamed, not twice where it was, and that one broke off", () => {
    const delta = (messageId: string) => event("assistant.message_delta", { messageId, deltaContent: "hi" })
    const told = (...frames: ReadonlyArray<Frame.Frame>) =>
      after(begin(), ...frames).outputs.flatMap((output) => output._tag === "Event" ? [output.event.type] : [])
    assert.deepStrictEqual(told(message("hi")), ["assistant/chunk", "assistant/message"])
    assert.deepStrictEqual(told(delta("m1"), message("hi")), ["assistant/chunk", "assistant/message"])
    assert.deepStrictEqual(told(delta("m0"), delta("m1"), message("hi")), ["assistant/chunk", "notice", "assistant/chunk", "assistant/message"])
  })

  it("tells what a subagent does as a subagent's, and ends by the session's own agent", () => {
    const sub = { agentId: "sub" }
    const step = after(
      begin(tools("task", "view")),
      event("assistant.turn_start", { turnId: "0" }, sub),
      event("assistant.message", { messageId: "s", content: "not the answer" }, sub),
      event("tool.execution_start", { toolCallId: "s1", toolName: "view", arguments: {} }, sub),
      message("the answer"),
      idle
    )
    const events = step.outputs.flatMap((output) => output._tag === "Event" && "origin" in output.event.data ? [[output.event.type, output.event.data.origin]] : [])
    assert.deepStrictEqual(events, [["assistant/message", "subagent"], ["tool/call", "subagent"]])
    assert.deepStrictEqual(step.outputs.flatMap((output) => output._tag === "End" ? [output.end.text] : []), ["the answer"])
  })

  it("keeps frames that come between turns as late ones, but for the end of nothing", () => {
    const step = after(fresh(), message("late"), idle, event("abort", { reason: "x" }))
    assert.deepStrictEqual(step.outputs.map(({ _tag }) => _tag), ["Late"])
  })

  it("asks for the end of a turn, and of nothing where there is none", () => {
    assert.deepStrictEqual(CopilotConversation.interrupt(fresh()).outputs, [])
    assert.deepStrictEqual(CopilotConversation.interrupt(begin()).outputs, [{
      _tag: "Send",
      frame: { jsonrpc: "2.0", id: "00000000-0000-4000-8000-000000000002", method: "session.abort", params: { sessionId } }
    }])
  })

  it("bounds what a tool said", () => {
    const step = after(begin(), start("view"), complete({ result: { content: "x".repeat(40_000) } }))
    const output = step.outputs.flatMap((one) => one._tag === "Event" && one.event.type === "tool/result" ? [one.event.data.output] : [])
    assert.deepStrictEqual(output, [`${"x".repeat(32_768)}… (7232 more characters)`])
  })
})

describe("a record that is too long to be read", () => {
  const isNeeded = (head: string) => {
    const beginning = Frame.beginning({ _tag: "Oversize", bytesTotal: 1e9, head: new TextEncoder().encode(`${head},"more":"x`), terminated: true })
    return beginning !== undefined && CopilotWire.needed(beginning)
  }

  it("is one that the turn waits for where it ends the turn or asks something", () => {
    const awaited = [
      "{\"jsonrpc\":\"2.0\",\"method\":\"session.event\",\"params\":{\"sessionId\":\"3\",\"event\":{\"type\":\"session.idle\",\"data\":{\"a\":1",
      "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"hooks.invoke\",\"params\":{\"sessionId\":\"3\"",
      "{\"jsonrpc\":\"2.0\",\"method\":\"session.event\",\"params\":{\"sessionId\":\"3\",\"event\":{\"type\":\"permission.requested\",\"data\":{\"a\":1"
    ]
    const others = [
      "{\"jsonrpc\":\"2.0\",\"method\":\"session.event\",\"params\":{\"sessionId\":\"3\",\"event\":{\"type\":\"tool.execution_complete\",\"data\":{\"a\":1"
    ]
    assert.deepStrictEqual([awaited.map(isNeeded), others.map(isNeeded)], [awaited.map(() => true), others.map(() => false)])
  })
})
