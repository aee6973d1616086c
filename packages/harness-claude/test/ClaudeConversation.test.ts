import { assert, describe, it } from "@effect/vitest"
import { type Dialect, Frame } from "@turnpike/harness"
import { ClaudeConversation, ClaudeTools, ClaudeWire } from "@turnpike/harness-claude"
import { Prompt, ToolAllowlist } from "@turnpike/kernel"
import { Effect } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import { asked, bytesOf, framesOf, ofRecording, type Options, toText, translate } from "./support/translate.ts"

const tools = (...list: ReadonlyArray<string>) => ({ tools: ClaudeTools.plan({ _tag: "Only", tools: list }) })

/** Recordings whose whole translation is written down, and what was asked in them. */
const recordings: Readonly<Record<string, Options>> = {
  "w1-two-turns": { prompts: ["first", "/clear"] },
  "w2-tool-denied": { ...tools("Bash(git *)") },
  "w3-tool-allowed": { ...tools("execute") },
  "w4-interrupt-while-asked": { ...tools("Bash(git *)") },
  "w5-background-task": { ...tools("Bash"), prompts: ["run it", "second"] },
  "w6-interrupt-streaming": { ...tools("read") },
  "w7-cut-then-whole": { ...tools("read") },
  "w8-401": { ...tools("read") },
  "w9-max-tokens": { ...tools("read") },
  "w10-empty": { ...tools("read") },
  "w11-malformed-then-whole": { ...tools("read") },
  "w12-malformed": { ...tools("read") },
  "d-ctxlen": { tools: ClaudeTools.plan(ToolAllowlist.dangerousAll) },
  "d-refusal": { tools: ClaudeTools.plan(ToolAllowlist.dangerousAll) },
  "d-econnrefused": { tools: ClaudeTools.plan(ToolAllowlist.dangerousAll) },
  "k5-default-retries-529": { tools: ClaudeTools.plan(ToolAllowlist.dangerousAll) },
  "k9-max-turns": { tools: ClaudeTools.plan(ToolAllowlist.dangerousAll) },
  "k11-think-partial": { tools: ClaudeTools.plan(ToolAllowlist.dangerousAll) },
  "l2-interrupt": { tools: ClaudeTools.plan(ToolAllowlist.dangerousAll), prompts: ["first", "second"] },
  "l3-perm-allow": { tools: ClaudeTools.plan(ToolAllowlist.dangerousAll) },
  "l7-error-then-ok": { tools: ClaudeTools.plan(ToolAllowlist.dangerousAll), prompts: ["first", "second"] }
}

describe("ClaudeConversation, of recordings", () => {
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
      const own = outputs.filter(({ _tag }) => _tag === "Own").length
      assert.deepStrictEqual([own, endings], [name === "w5-background-task" ? 1 : 0, (options.prompts?.length ?? 1) + own], name)
      assert.deepStrictEqual(
        outputs.flatMap((output) => output._tag === "Event" && output.event.type === "notice" && output.event.data.kind === "unknown_frame" ? [output.event.data.message] : []),
        [],
        name
      )
    }
  })

  it.effect("does not depend on where the bytes were cut", () =>
    Effect.gen(function*() {
      const bytes = bytesOf("w2-tool-denied")
      const whole = toText(ofRecording("w2-tool-denied", recordings["w2-tool-denied"]))
      const sizes = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3000 })))
      const result = yield* Arbitrary.checkEffect(Arbitrary.schema(sizes), (chunks) =>
        toText(translate(framesOf(bytes, chunks), recordings["w2-tool-denied"])) === whole)
      assert.strictEqual(result._tag, "Passed")
    }))
})

const begin = (more?: Partial<ClaudeConversation.Asked>) =>
  ClaudeConversation.prompt(ClaudeConversation.initial(asked(more)), Prompt.fromText("hello")).state

const after = (state: ClaudeConversation.State, ...frames: ReadonlyArray<Frame.Frame>): Dialect.Step<ClaudeConversation.State> =>
  frames.reduce<Dialect.Step<ClaudeConversation.State>>((step, frame) => {
    const next = ClaudeConversation.frame(step.state, frame)
    return { state: next.state, outputs: [...step.outputs, ...next.outputs] }
  }, { state, outputs: [] })

const lifecycle = (state: string, uuid = "00000000-0000-4000-8000-000000000001"): Frame.Frame => ({ type: "command_lifecycle", command_uuid: uuid, state })
const init = (more: Frame.Frame = {}): Frame.Frame => ({ type: "system", subtype: "init", session_id: "s", model: "claude-opus-5-5", tools: ["Glob", "Grep", "Read"], ...more })
const result = (more: Frame.Frame = {}): Frame.Frame => ({ type: "result", subtype: "success", is_error: false, result: "done", ...more })
const call = (name: string, input: Schema.Json = {}): Frame.Frame => ({
  type: "assistant",
  message: { id: "m", model: "x", content: [{ type: "tool_use", id: "c1", name, input }] }
})
const toolResult = (more: Frame.Frame = {}): Frame.Frame => ({
  type: "user",
  message: { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "out", ...more }] }
})
const endings = ({ outputs }: Dialect.Step<ClaudeConversation.State>) =>
  outputs.flatMap((output) =>
    output._tag === "End" ? [output.end.stop_reason] : output._tag === "Fail" || output._tag === "Kill" ? [`${output._tag} ${output.failure.code}`] : [])
const notices = ({ outputs }: Dialect.Step<ClaudeConversation.State>) =>
  outputs.flatMap((output) => output._tag === "Event" && output.event.type === "notice" ? [[output.event.data.kind, output.event.data.message]] : [])

describe("ClaudeConversation", () => {
  it("sends a prompt as text, with an id of its own", () => {
    const { outputs } = ClaudeConversation.prompt(ClaudeConversation.initial(asked()), Prompt.fromText("/clear"))
    assert.deepStrictEqual(outputs, [{
      _tag: "Send",
      frame: {
        type: "user",
        uuid: "00000000-0000-4000-8000-000000000001",
        session_id: "",
        parent_tool_use_id: null,
        text_not_typed: true,
        message: { role: "user", content: "/clear" }
      }
    }])
  })

  it("refuses a prompt that a version would run as a command, and no other", () => {
    const state = ClaudeConversation.initial(asked({ takesPromptsAsText: false, version: "2.1.197" }))
    const step = ClaudeConversation.prompt(state, Prompt.fromText(" /clear"))
    assert.deepStrictEqual(endings(step), ["Fail UNSUPPORTED"])
    assert.deepStrictEqual(step.outputs.map(({ _tag }) => _tag), ["Fail"])
    assert.deepStrictEqual(ClaudeConversation.prompt(state, Prompt.fromText("clear")).outputs.map(({ _tag }) => _tag), ["Send"])
  })

  it("kills a process that ran the prompt as a command", () => {
    assert.deepStrictEqual(endings(after(begin(), lifecycle("queued"), { type: "conversation_reset" })), ["Kill HARNESS_PROTOCOL"])
    assert.deepStrictEqual(endings(after(begin(), init(), result({ local_command: "clear" }))), ["Kill HARNESS_PROTOCOL"])
  })

  it("does not take the end of a turn of Claude Code's own for the end of the prompt's", () => {
    const step = after(begin(), lifecycle("queued"), init(), result({ result: "not yours" }), lifecycle("started"), init(), result())
    assert.deepStrictEqual(endings(step), ["completed"])
    assert.deepStrictEqual(step.outputs.flatMap((output) => output._tag === "Busy" ? [output.busy] : []), [true, false])
  })

  it("nor of one that had begun when the prompt was given, or begins before it is read", () => {
    const own = after(ClaudeConversation.initial(asked()), init()).state
    const given = ClaudeConversation.prompt(own, Prompt.fromText("hello")).state
    const prompted = after(given, result({ result: "not yours" }), lifecycle("queued"), lifecycle("started"), init(), result())
    assert.deepStrictEqual(endings(prompted), ["completed"])
    // That it tells of prompts is known since the first one.
    const second = "00000000-0000-4000-8000-000000000002"
    const known = after(begin(), lifecycle("queued"), lifecycle("started"), init(), result()).state
    const again = ClaudeConversation.prompt(known, Prompt.fromText("hello")).state
    const between = after(again, init(), result({ result: "not yours" }))
    assert.deepStrictEqual([endings(between), between.outputs.flatMap((output) => output._tag === "Busy" ? [output.busy] : [])], [[], [true, false]])
    assert.deepStrictEqual(endings(after(between.state, lifecycle("queued", second), lifecycle("started", second), init(), result())), ["completed"])
  })

  it("fails a prompt that is over without a result", () => {
    assert.deepStrictEqual(endings(after(begin(), lifecycle("queued"), lifecycle("completed"))), ["Fail NO_TERMINAL"])
    assert.deepStrictEqual(endings(after(begin(), lifecycle("queued"), lifecycle("completed", "another"))), [])
  })

  it("keeps what it does not know as a notice, without credentials", () => {
    const step = after(begin(), { type: "a_frame_of_the_future", token: "abcdefghijklmnop" })
    assert.deepStrictEqual(step.outputs, [{
      _tag: "Event",
      event: {
        type: "notice",
        data: {
          kind: "unknown_frame",
          message: "a record of the unknown kind a_frame_of_the_future",
          raw: { type: "a_frame_of_the_future", token: "[REDACTED]" }
        }
      }
    }])
    assert.deepStrictEqual(notices(after(begin(), { type: "result", subtype: "success" })), [
      ["unknown_frame", "a record of the unknown kind result, which does not have the expected shape"]
    ])
  })

  it("is not held up by fields that it does not know", () => {
    const step = after(begin(), init({ news: [1] }), { ...call("Read"), news: {} }, toolResult({ news: 1 }), result({ news: null }))
    assert.deepStrictEqual([endings(step), notices(step)], [["completed"], []])
  })

  it("kills a process that ran a tool which the allow-list does not hold, without asking", () => {
    assert.deepStrictEqual(endings(after(begin(), init(), call("Bash"), toolResult())), ["Kill POLICY_VIOLATION"])
    assert.deepStrictEqual(endings(after(begin(), init(), call("Bash"), toolResult({ is_error: true }))), [])
    assert.deepStrictEqual(endings(after(begin(), init(), call("Read"), toolResult())), [])
    const permitted: Frame.Frame = {
      type: "control_request",
      request_id: "r",
      request: { subtype: "can_use_tool", tool_name: "Bash", input: {}, tool_use_id: "c1" }
    }
    assert.deepStrictEqual(endings(after(begin(), init(), call("Bash"), permitted, toolResult())), [])
    assert.deepStrictEqual(endings(after(begin(), init(), permitted, call("Bash"), toolResult())), [])
  })

  it("lets the gate allow what the list holds, and ask for the rest", () => {
    const hook = (name: string): Frame.Frame => ({
      type: "control_request",
      request_id: "r",
      request: { subtype: "hook_callback", callback_id: "turnpike-tools", input: { hook_event_name: "PreToolUse", tool_name: name, tool_input: {} } }
    })
    const decisions = ["Read", "Bash", "mcp__x__y"].map((name) => {
      const [output] = ClaudeConversation.frame(begin(), hook(name)).outputs
      return JSON.stringify(output).match(/"permissionDecision":"(\w+)"/)?.[1]
    })
    assert.deepStrictEqual(decisions, ["allow", "ask", "ask"])
  })

  it("tells a decider whether the list holds the tool, and stops the turn when nobody answered", () => {
    const request: Frame.Frame = {
      type: "control_request",
      request_id: "r",
      request: { subtype: "can_use_tool", tool_name: "Read", input: { file_path: "/etc/hostname" }, tool_use_id: "c1", description: "read it" }
    }
    const [ask] = ClaudeConversation.frame(begin(), request).outputs
    assert.isTrue(ask?._tag === "Ask")
    if (ask?._tag !== "Ask") return
    assert.deepStrictEqual(ask.request, {
      requestId: "r",
      toolName: "Read",
      input: { file_path: "/etc/hostname" },
      description: "read it",
      listed: true
    })
    const response = (decision: "allow" | "deny" | "cancelled") => ask.respond({ decision, reason: "because" })[0]?.["response"]
    const body = (response: Frame.Frame) => ({ subtype: "success", request_id: "r", response })
    assert.deepStrictEqual([response("allow"), response("deny"), response("cancelled")], [
      body({ behavior: "allow", updatedInput: { file_path: "/etc/hostname" } }),
      body({ behavior: "deny", message: "because" }),
      body({ behavior: "deny", message: "because", interrupt: true })
    ])
  })

  it("allows everything by itself where all tools were allowed", () => {
    const request: Frame.Frame = { type: "control_request", request_id: "r", request: { subtype: "can_use_tool", tool_name: "Bash", input: {} } }
    const [ask] = ClaudeConversation.frame(begin({ tools: ClaudeTools.plan(ToolAllowlist.dangerousAll) }), request).outputs
    assert.deepStrictEqual(ask?._tag === "Ask" ? ask.preset?.decision : undefined, "allow")
  })

  it("answers a request that it does not know, so that nobody waits", () => {
    const step = after(begin(), { type: "control_request", request_id: "r", request: { subtype: "elicitation" } })
    assert.deepStrictEqual(step.outputs[0], {
      _tag: "Send",
      frame: { type: "control_response", response: { subtype: "error", request_id: "r", error: "elicitation is not supported here" } }
    })
  })

  it("tells what is in force and was not asked for", () => {
    const step = after(begin({ model: "claude-haiku-4-5" }), init({
      claude_code_version: "2.1.400",
      tools: ["Read", "Bash", "mcp__x__y"],
      mcp_servers: [{ name: "x", status: "connected" }, { name: "y", status: "needs-auth" }, { name: "z", status: "pending" }]
    }))
    assert.deepStrictEqual(notices(step), [
      ["untested_version", "Claude Code 2.1.400 is not the version that is tested, 2.1.332"],
      ["model_differs", "the model is claude-opus-5-5; asked for was claude-haiku-4-5"],
      ["tools_differ", "Claude Code does not offer Glob, Grep"],
      ["tools_differ", "Claude Code offers Bash, mcp__x__y beyond the allow-list; a call is refused unless it is permitted when it asks"],
      ["mcp_server_failed", "the MCP server y is not there: needs-auth"]
    ])
  })

  it("tells of the session once, and again when it changes", () => {
    const first = after(begin(), init(), result())
    const bound = (step: Dialect.Step<ClaudeConversation.State>) => step.outputs.filter((output) => output._tag === "Event" && output.event.type === "session/bound").length
    const second = after(ClaudeConversation.prompt(first.state, Prompt.fromText("b")).state, init(), result())
    const third = after(ClaudeConversation.prompt(second.state, Prompt.fromText("c")).state, init({ session_id: "t" }), result())
    assert.deepStrictEqual([bound(first), bound(second), bound(third)], [1, 0, 1])
    assert.deepStrictEqual(notices(third), [["rebound", "Claude Code goes on under the session id t instead of s"]])
    assert.deepStrictEqual(third.outputs.filter(({ _tag }) => _tag === "Session"), [{ _tag: "Session", harnessSessionId: "t" }])
  })

  it("takes an error for a failure whatever the subtype says, and a message of an error without a flag, too", () => {
    assert.deepStrictEqual(endings(after(begin(), init(), result({ is_error: true, api_error_status: 429 }))), ["Fail RATE_LIMIT"])
    const synthetic: Frame.Frame = { type: "assistant", error: "rate_limit", message: { id: "m", model: "<synthetic>", content: [{ type: "text", text: "limit" }] } }
    assert.deepStrictEqual(endings(after(begin(), init(), synthetic, result())), ["Fail RATE_LIMIT"])
    const goesOn: Frame.Frame = { type: "assistant", message: { id: "n", model: "x", content: [{ type: "text", text: "done" }] } }
    assert.deepStrictEqual(endings(after(begin(), init(), synthetic, goesOn, result())), ["completed"])
  })

  it("tells the answer as it comes where it was not streamed, and not twice where it was", () => {
    const message: Frame.Frame = { type: "assistant", message: { id: "m", model: "x", content: [{ type: "text", text: "hi" }] } }
    const delta: Frame.Frame = { type: "stream_event", event: { type: "content_block_delta", delta: { type: "text_delta", text: "hi" } } }
    const start: Frame.Frame = { type: "stream_event", event: { type: "message_start", message: { id: "m" } } }
    const told = (...frames: ReadonlyArray<Frame.Frame>) =>
      after(begin(), init(), ...frames).outputs.flatMap((output) =>
        output._tag === "Event" && output.event.type.startsWith("assistant/") ? [output.event.type] : [])
    assert.deepStrictEqual(told(message), ["assistant/chunk", "assistant/message"])
    assert.deepStrictEqual(told(start, delta, message), ["assistant/chunk", "assistant/message"])
  })

  it("bounds what a tool said", () => {
    const step = after(begin(), init(), call("Read"), toolResult({ content: "x".repeat(40_000) }))
    const output = step.outputs.flatMap((one) => one._tag === "Event" && one.event.type === "tool/result" ? [one.event.data.output] : [])
    assert.deepStrictEqual(output, [`${"x".repeat(32_768)}… (7232 more characters)`])
    const emoji = after(begin(), init(), call("Read"), toolResult({ content: `x${"😀".repeat(20_000)}` }))
    assert.include(JSON.stringify(emoji.outputs), `${"😀".repeat(3)}… (7234 more characters)`)
  })

  it("tells a list of things to do", () => {
    const todos = [{ content: "a", status: "pending" }, { content: "b", status: "completed" }] as const
    const step = after(begin({ ...tools("TodoWrite") }), init(), call("TodoWrite", { todos: [...todos] }))
    assert.deepStrictEqual(step.outputs.at(-1), { _tag: "Event", event: { type: "todo/write", data: { todos: [...todos] } } })
    const odd = after(begin({ ...tools("TodoWrite") }), init(), call("TodoWrite", { todos: [{ content: "a", status: "half" }] }))
    assert.isTrue(odd.outputs.at(-1)?._tag === "Event")
    assert.notInclude(JSON.stringify(odd.outputs), "todo/write")
  })
})

describe("a record that is too long to be read", () => {
  const isNeeded = (head: string) => {
    const beginning = Frame.beginning({ _tag: "Oversize", bytesTotal: 1e9, head: new TextEncoder().encode(`${head},"more":"x`), terminated: true })
    return beginning !== undefined && ClaudeWire.needed(beginning)
  }

  it("is one that the turn waits for where it ends the turn or asks something", () => {
    const awaited = [
      "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false",
      "{\"type\":\"control_request\",\"request_id\":\"c2\",\"request\":{\"subtype\":\"can_use_tool\""
    ]
    const others = [
      "{\"type\":\"assistant\",\"message\":{\"model\":\"m\",\"id\":\"1\"",
      "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"tool_use_id\":\"t\",\"type\":\"tool_result\""
    ]
    assert.deepStrictEqual([awaited.map(isNeeded), others.map(isNeeded)], [awaited.map(() => true), others.map(() => false)])
  })
})
