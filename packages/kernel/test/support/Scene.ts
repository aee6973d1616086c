/** One run of a fake harness from specification to result, and what must hold of every run. */
import { type AgentRunEvent, type AgentRunResult, type AgentRunSpec, Contracts, Scalars, type SessionEvent, StreamRules } from "@turnpike/contract"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import {
  Cancel,
  type ChannelError,
  Permission,
  Redaction,
  Run,
  RunPreparation,
  SessionStoreMemory,
  ToolAllowlist
} from "../../src/index.ts"
import type * as FakeHarness from "./FakeHarness.ts"

export const sessionId = Scalars.SessionId.make("session-1")

export const sessionOptions: RunPreparation.PrepareOptions["session"] = {
  cwd: "/project",
  model: undefined,
  system: undefined,
  tools: ToolAllowlist.readOnlyDefault,
  permission: Permission.deny,
  inheritedEnv: {},
  env: {},
  credentials: undefined,
  program: undefined,
  configDir: undefined,
  redact: Redaction.shapes
}

export interface Options {
  readonly fake: FakeHarness.FakeHarness
  readonly spec?: Partial<AgentRunSpec.AgentRunSpec>
  readonly session?: Partial<RunPreparation.PrepareOptions["session"]>
  readonly cancel?: Cancel.CancelToken
  readonly grace?: Duration.Input
  readonly readerGrace?: Duration.Input
  readonly deliver?: "stream" | "caller"
  readonly keep?: Run.KeptSession
  /** Runs with each event before it counts as taken. */
  readonly sink?: (event: AgentRunEvent.AgentRunEvent) => Effect.Effect<void, ChannelError.ChannelError>
}

export const prepare = ({ fake, session, spec }: Options) =>
  RunPreparation.prepare({
    spec: { harness: fake.harness.name, task: "hello", ...spec },
    harness: fake.harness,
    newSessionId: sessionId,
    holder: "the test",
    session: { ...sessionOptions, ...session }
  })

export interface Told {
  readonly events: Array<AgentRunEvent.AgentRunEvent>
  result: AgentRunResult.AgentRunResult | undefined
}

/** Runs what was prepared. `told` is filled while it runs. */
export const execute = (prepared: RunPreparation.Prepared, options: Options, told: Told) =>
  Effect.gen(function*() {
    const result = yield* Run.execute(prepared, {
      runId: Scalars.RunId.make("run-1"),
      turnpikeVersion: "0.0.0",
      sink: (event) => Effect.andThen(options.sink?.(event) ?? Effect.void, Effect.sync(() => void told.events.push(event))),
      cancel: options.cancel ?? (yield* Cancel.make),
      deliver: options.deliver ?? "stream",
      grace: options.grace ?? "5 seconds",
      ...(options.readerGrace === undefined ? {} : { readerGrace: options.readerGrace }),
      ...(options.keep === undefined ? {} : { keep: options.keep })
    })
    told.result = result
    return result
  })

export const run = (options: Options, told: Told = { events: [], result: undefined }) =>
  Effect.gen(function*() {
    const prepared = yield* prepare(options)
    yield* execute(prepared, options, told)
    return told
  }).pipe(Effect.scoped, Effect.provide(SessionStoreMemory.layer))

const decodeResult = Contracts.decode("agent-run-result")

/** What is wrong with a log: its order, its numbers, its pairs. */
export const faultsOfLog = (log: ReadonlyArray<SessionEvent.SessionEvent>): ReadonlyArray<string> => {
  if (log.length === 0) return []
  const found: Array<string> = []
  const types = log.map(({ type }) => type)
  const expect = (holds: boolean, fault: string) => {
    if (!holds) found.push(fault)
  }
  expect(log.every(({ seq }, index) => index === 0 || seq > (log[index - 1]?.seq ?? 0)), "seq does not grow")
  expect(types.slice(0, 4).join() === "turn/start,inbox/claimed,step/start,user/message", `begins with ${types.slice(0, 4).join()}`)
  expect(types.at(-1) === "turn/end", `ends with ${types.at(-1)}`)
  expect(types.filter((type) => type === "turn/start" || type === "turn/end").length === 2, "has more than one turn")
  expect(!types.includes("assistant/chunk"), "holds chunks")
  let step = 0
  let open = false
  const calls = new Set<string>()
  const requests = new Set<string>()
  for (const event of log) {
    switch (event.type) {
      case "step/start":
        expect(!open && event.data.step === step + 1, `step ${event.data.step} begins after ${step}`)
        step = event.data.step
        open = true
        break
      case "step/end":
        expect(open && event.data.step === step, `step ${event.data.step} ends`)
        open = false
        break
      case "tool/call":
        expect(!calls.has(event.data.call_id), `${event.data.call_id} begins twice`)
        calls.add(event.data.call_id)
        break
      case "tool/result":
        expect(calls.delete(event.data.call_id), `${event.data.call_id} ends without a beginning`)
        break
      case "permission/request":
        requests.add(event.data.request_id)
        break
      case "permission/decision":
        expect(requests.delete(event.data.request_id), `${event.data.request_id} was not asked`)
        break
      default:
        break
    }
  }
  expect(!open, "a step is open")
  expect(calls.size === 0, `calls are open: ${[...calls].join()}`)
  expect(requests.size === 0, `requests are open: ${[...requests].join()}`)
  return found
}

/** What is wrong with a run. `cut` says that its reader or its caller went away, so the stream may stop anywhere. */
export const faults = (told: Told, fake: FakeHarness.FakeHarness, how: { readonly cut?: boolean; readonly kept?: boolean } = {}): ReadonlyArray<string> => {
  const { events, result } = told
  const found: Array<string> = []
  const expect = (holds: boolean, fault: string) => {
    if (!holds) found.push(fault)
  }
  const text = events.map((event) => `${JSON.stringify(event)}\n`).join("")
  if (how.cut === true) {
    const checker = StreamRules.make({ result: "either" })
    for (const event of events) found.push(...checker.line(JSON.stringify(event)).map(({ message, rule }) => `${rule}: ${message}`))
  } else {
    const results = events.some(({ type }) => type === "result") ? "stream" : "file"
    found.push(...StreamRules.validate(text, { result: results }).map(({ line, message, rule }) => `line ${line} ${rule}: ${message}`))
    const ends = events.filter(({ type }) => type === "session_end")
    const last = events.filter(({ type }) => type !== "result").at(-1)
    expect(ends.length === 1 && last?.type === "session_end", `there are ${ends.length} session_end, and ${last?.type} is last`)
  }
  expect(events.every(({ run_id, seq }, index) => seq === index && run_id === "run-1"), "seq or run_id")
  if (how.kept !== true) {
    // Of a session that opened while its opening was being stopped nobody but its scope knows.
    const stopped = fake.counts.turns === 0 &&
      !events.some((event) => event.type === "tool_end" && event.tool_name === "launch" && event.success)
    expect(
      fake.counts.closed === fake.counts.opened || (stopped && fake.counts.closed === 0),
      `closed ${fake.counts.closed} of ${fake.counts.opened}`
    )
    expect(fake.counts.released === fake.counts.opened, `released ${fake.counts.released} of ${fake.counts.opened}`)
  }
  expect(fake.counts.running === 0, `${fake.counts.running} turns still run`)
  if (result !== undefined) {
    const decoded = decodeResult(JSON.parse(JSON.stringify(result)))
    if (Result.isFailure(decoded)) found.push(`the result is refused: ${decoded.failure}`)
    found.push(...faultsOfLog(result.session_log).map((fault) => `log: ${fault}`))
    expect((result.session.turn === 0) === (result.session_log.length === 0), "a turn without a log, or a log without a turn")
  }
  return found
}

/** The stream in words: types, with the tool's or phase's name and how it went. */
export const words = (events: ReadonlyArray<AgentRunEvent.AgentRunEvent>): ReadonlyArray<string> =>
  events.map((event) => {
    switch (event.type) {
      case "tool_start":
        return `${event.tool_name} {`
      case "tool_end":
        return `} ${event.tool_name}${event.success ? "" : ` (${event.output_summary ?? "failed"})`}`
      case "notice":
        return `notice ${event.kind}`
      default:
        return event.type
    }
  })

export const show = (result: AgentRunResult.AgentRunResult | undefined): string =>
  result === undefined ? "none" : `${result.reason} ${result.error?.code ?? ""}`.trim()

/** The exit of a run whose caller may have been interrupted. */
export const exitOf = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.isSuccess(exit) ? "success" : Exit.hasInterrupts(exit) ? "interrupted" : Option.getOrElse(Option.map(Exit.findErrorOption(exit), String), () => "defect")
