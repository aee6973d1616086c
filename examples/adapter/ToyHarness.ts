/**
 * toy-agent as a harness: one process a session, which stays between the turns. Tools that the
 * allow-list holds run unasked; one that ran unasked and unlisted costs the toy its turn and its process.
 */
import { type Capabilities, Failure, TurnEvent } from "@turnpike/contract"
import { type Dialect, type Frame, InstalledHarness, Notices, SessionEnvironment } from "@turnpike/harness"
import { type Harness, HarnessError, ToolAllowlist } from "@turnpike/kernel"
import type { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as ToyWire from "./ToyWire.ts"

export const name = "toy"

export const capabilities: Capabilities.Capabilities = {
  resume: "enforced",
  chosen_session_id: "unsupported",
  steering: "unsupported",
  tool_allow_list: "enforced",
  permission_requests: "enforced",
  system_prompt: "enforced",
  model_choice: "unsupported",
  usage: "enforced",
  cost: "unsupported",
  structured_output: "unsupported",
  interrupt_keeps_history: "enforced",
  isolation: "enforced",
  background_tasks: "unsupported"
}

/** The toy's tools, with the neutral class of each. */
const classes = new Map<string, string>([["look", "read"], ["sh", "execute"]])

const isListed = (list: ToolAllowlist.ToolAllowlist, tool: string): boolean =>
  list._tag === "DangerousAll" || list.tools.some((each) => [tool, classes.get(tool)].includes(ToolAllowlist.classOf(each) ?? each))

/** Fails with the first option that the toy cannot honour. */
const refuse = ({ model, tools }: Harness.SessionOptions): Effect.Effect<void, HarnessError.HarnessError> => {
  const unsupported = (option: string, detail: string) => Effect.fail(HarnessError.unsupported(name, option, detail))
  if (model !== undefined) return unsupported("model", "it has one model and takes no other")
  const strange = tools._tag === "Only" ? tools.tools.find((tool) => ToolAllowlist.classOf(tool) === undefined && !classes.has(tool)) : undefined
  return strange === undefined ? Effect.void : unsupported("tools", `it has no tool ${strange}; it has look and sh`)
}

/** The conversation with one process. */
interface State {
  readonly hello: ToyWire.Hello
  readonly resumed: boolean
  readonly turn: number
  readonly running: boolean
  readonly text: string
  readonly calls: ReadonlyMap<string, TurnEvent.Denial>
  readonly denials: ReadonlyArray<TurnEvent.Denial>
}
const event = (value: Dialect.Event): Dialect.Output => ({ _tag: "Event", event: value })
const step = (state: State, ...outputs: ReadonlyArray<Dialect.Output>): Dialect.Step<State> => ({ state, outputs })

/** Begins a turn; before the first one it tells what the greeting says is in force, and where that is not what was asked. */
const prompt = (session: Harness.SessionOptions, state: State, text: string): Dialect.Step<State> => {
  const { hello: { chat, free, toy }, resumed } = state
  const turn = state.turn + 1
  const extra = free.filter((tool) => !isListed(session.tools, tool))
  const greeting: ReadonlyArray<Dialect.Output> = [
    { _tag: "Session", harnessSessionId: chat },
    event(TurnEvent.make("session/bound", { harness_session_id: chat, resumed, harness_version: toy, tools: free })),
    ...(extra.length === 0 ? [] : [event(Notices.make("tools_differ", `the toy also runs unasked: ${extra.join(", ")}`))])
  ]
  return step(
    { ...state, turn, running: true, text: "", calls: new Map(), denials: [] },
    ...(turn === 1 ? greeting : []),
    event(TurnEvent.make("step/start", { step: 1 })),
    { _tag: "Send", frame: { op: "prompt", turn, text } }
  )
}

/** How a turn ended, in the toy's words and in ours. */
const endings = new Map<string, TurnEvent.StopReason>([["answered", "completed"], ["stopped", "aborted"], ["cut", "max-tokens"], ["refused", "refusal"]])

const ending = ({ calls, denials, text }: State, why: string): Dialect.Output => {
  const stop_reason = endings.get(why)
  const worked = calls.size > denials.length
  if (stop_reason !== undefined) return { _tag: "End", end: { stop_reason, text, worked, denials, background: [], harness_reason: why } }
  if (why === "overloaded") return { _tag: "Fail", failure: Failure.make("OVERLOADED", "the toy's model is overloaded") }
  // An ending of the future still ends the turn.
  return { _tag: "Fail", failure: Failure.make("HARNESS_PROTOCOL", `the toy ended its turn for an unknown reason: ${why.slice(0, 100)}`) }
}

const usage = ({ cached, in: input_tokens, out }: ToyWire.Tokens): Dialect.Output => {
  const tokens = { source: "reported", input_tokens, output_tokens: out, cache_read_tokens: cached } as const
  return event(TurnEvent.make("usage", { usage: { tokens, cost: { source: "unavailable" } }, final: true }))
}

const overstepped = (tool: string) => Failure.make("POLICY_VIOLATION", `the toy ran ${tool} unasked, which the allow-list does not hold`)
const frame = (session: Harness.SessionOptions, state: State, raw: Frame.Frame): Dialect.Step<State> => {
  const decoded = ToyWire.decode(raw)
  if (Result.isFailure(decoded)) return step(state, event(Notices.unknownFrame(raw, String(raw["op"]), session.redact)))
  const said = decoded.success
  if (said.op === "hello" || !state.running || said.turn !== state.turn) return step(state, { _tag: "Late", frame: raw })
  switch (said.op) {
    case "text":
      return step({ ...state, text: state.text + said.add }, event(TurnEvent.make("assistant/chunk", { kind: "text", text: said.add })))
    case "tool": {
      const { ask, id, name: tool } = said
      const input = { line: said.line }
      const listed = isListed(session.tools, tool)
      const called = event(TurnEvent.make("tool/call", { call_id: id, name: tool, input }))
      const next = { ...state, calls: new Map(state.calls).set(id, { tool_name: tool, call_id: id, input }) }
      if (!ask && listed) return step(next, called)
      if (!ask) return step({ ...next, running: false }, called, { _tag: "Kill", failure: overstepped(tool) })
      return step(next, called, {
        _tag: "Ask",
        callId: id,
        request: { requestId: id, toolName: tool, input, description: undefined, listed },
        // A request is cancelled by the turn's end or by a request to stop, which the toy hears of itself.
        respond: ({ decision }) => decision === "cancelled" ? [] : [{ op: "go", id, yes: decision === "allow" }]
      })
    }
    case "ran": {
      const call = state.calls.get(said.id)
      if (call === undefined) return step(state, { _tag: "Late", frame: raw })
      const denied = said.how === "denied"
      return step(
        denied ? { ...state, denials: [...state.denials, call] } : state,
        event(TurnEvent.make("tool/result", { call_id: said.id, is_error: said.how !== "ok", output: said.out, ...(denied ? { denied } : {}) }))
      )
    }
    case "done": {
      const told = said.tokens === undefined ? [] : [usage(said.tokens)]
      return step({ ...state, running: false }, ...told, event(TurnEvent.make("step/end", { step: 1 })), ending(state, said.why))
    }
  }
}

const misspoken = (greeting: string) =>
  HarnessError.notStarted(Failure.make("HARNESS_PROTOCOL", `the toy does not speak version 1 of its protocol; it greets with ${greeting.slice(0, 200)}`))

const dialect = (session: Harness.SessionOptions, program: string): Dialect.Dialect<State> => ({
  harness: name,
  command: (launch) =>
    Effect.succeed({
      program,
      args: launch._tag === "Resume" ? [`--chat=${launch.harnessSessionId}`] : [],
      cwd: session.cwd,
      env: SessionEnvironment.changes(session, session.configDir === undefined ? {} : { TOY_HOME: session.configDir })
    }),
  answers: ({ op }) => op === "hello" ? "hello" : undefined,
  handshake: (peer, launch) =>
    Effect.gen(function*() {
      const free = [...classes.keys()].filter((tool) => isListed(session.tools, tool))
      const answer = yield* peer.request("hello", { op: "hello", v: 1, rules: session.system ?? "", free }, "10 seconds")
      const said = ToyWire.decode(answer)
      if (Result.isFailure(said) || said.success.op !== "hello") return yield* misspoken(session.redact(JSON.stringify(answer)))
      return { hello: said.success, resumed: launch._tag === "Resume", turn: 0, running: false, text: "", calls: new Map(), denials: [] }
    }),
  refused: ({ exit, launch }) => launch._tag === "Resume" && exit?.code === 4 ? HarnessError.sessionLost(name, launch.harnessSessionId) : undefined,
  prompt: (state, { text }) => prompt(session, state, text),
  frame: (state, raw) => frame(session, state, raw),
  needed: ({ op }) => op === "done" || op === "tool",
  interrupt: (state) => step(state, { _tag: "Send", frame: { op: "stop" } }),
  died: () => undefined,
  oneTurnPerProcess: false,
  endOfInput: "2 seconds"
})

/** Makes the harness. Its sessions start their process through the supervisor. */
export const make: Effect.Effect<Harness.Harness, never, Supervisor.Supervisor> = InstalledHarness.make({
  capabilities,
  program: { harness: name, product: "the toy", names: ["toy-agent"], version: /^toy-agent (\d+\.\d+\.\d+)\s*$/u, tested: "1.0.0" },
  plan: refuse,
  dialect: (session, _, { file }) => dialect(session, file),
  // What else `doctor` is to tell, such as how the program is signed in.
  findings: () => Effect.succeed([])
})
