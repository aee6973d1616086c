/**
 * What the cases of the harness suite work with: sessions in a situation, turns
 * taken whole, and a look at the machine.
 *
 * Every process of a case is found again by a variable in its environment that
 * no other case has, however it was started and whoever its parent is.
 */
import { TurnEvent } from "@turnpike/contract"
import { AgentSession, type Harness, type HarnessError, Permission, Prompt, Redaction, ToolAllowlist, TurnError, TurnOutput } from "@turnpike/kernel"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Situation from "../../Situation.ts"

/** Where a case is at home. */
export interface Place {
  /** A directory of the case's own; its `work` is the working directory and its `home` the home directory. */
  readonly directory: string
}

/** Says with which options a session is opened so that a situation comes about. The scope is the case's. */
export type Driver = (
  situation: Situation.Situation,
  place: Place
) => Effect.Effect<Partial<Harness.SessionOptions>, unknown, Scope.Scope>

export interface Bench extends Place {
  readonly harness: Harness.Harness
  readonly tools: Situation.ToolNames
  readonly work: string
  /** The options of a session in a situation; `overrides` win, and its `env` is added. */
  readonly options: (
    situation: Situation.Situation,
    overrides?: Partial<Harness.SessionOptions>
  ) => Effect.Effect<Harness.SessionOptions, unknown, Scope.Scope>
  readonly open: (
    situation: Situation.Situation,
    overrides?: Partial<Harness.SessionOptions>
  ) => Effect.Effect<Harness.HarnessSession, unknown, Scope.Scope>
  /** The command lines of the case's living processes. A case fails that leaves one once its sessions are closed, and it is killed. */
  readonly processes: () => ReadonlyArray<string>
}

/** A turn that has ended by itself. */
export interface Turn {
  readonly events: ReadonlyArray<TurnEvent.TurnEvent>
  readonly output: TurnOutput.TurnOutput
  readonly end: TurnEvent.TurnEnd["data"]
}

const variable = "TURNPIKE_SUITE_CASE"

interface Living {
  readonly pid: number
  readonly command: string
}

const onLinux = (mark: string): ReadonlyArray<Living> =>
  fs.readdirSync("/proc").filter((name) => /^\d+$/u.test(name) && Number(name) !== process.pid).flatMap((pid) => {
    try {
      if (!fs.readFileSync(`/proc/${pid}/environ`, "utf8").includes(mark)) return []
      // A process that has ended and was not yet waited for has no command line.
      const command = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim()
      return command === "" ? [] : [{ pid: Number(pid), command }]
    } catch {
      // It is gone meanwhile, or somebody else's.
      return []
    }
  })

const elsewhere = (mark: string): ReadonlyArray<Living> =>
  execFileSync("ps", ["-axEww", "-o", "pid=,command="], { encoding: "utf8", maxBuffer: 1 << 26 }).split("\n").flatMap((line) => {
    const [, pid = "", command = ""] = /^\s*(\d+)\s+(.*)$/u.exec(line) ?? []
    return command.includes(mark) ? [{ pid: Number(pid), command }] : []
  })

/** Ends what a harness under test has left alive, so that no case leaves anything behind, however it went. */
const killAll = (living: () => ReadonlyArray<Living>): void => {
  // Again, for what a process has started before it was killed.
  for (let round = 0; round < 5; round++) {
    const found = living()
    if (found.length === 0) return
    for (const { pid } of found) {
      try {
        process.kill(pid, "SIGKILL")
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error
      }
    }
  }
}

/** Waits until a fact of the outside holds; fails with what it was last, after 20 s unless given. */
export const eventually = <A>(what: string, look: () => A, holds: (value: A) => boolean, withinMs = 20_000): Effect.Effect<A> =>
  Effect.gen(function*() {
    const until = Date.now() + withinMs
    for (;;) {
      const value = look()
      if (holds(value)) return value
      if (Date.now() > until) return assert.fail(`${what}: after ${withinMs} ms it is still ${JSON.stringify(value)}`)
      yield* Effect.sleep(20)
    }
  })

/** Waits until nothing of the case is alive. */
export const nothingLeft = (bench: Bench): Effect.Effect<ReadonlyArray<string>> =>
  eventually("the processes of the case", bench.processes, (found) => found.length === 0)

export const make = (
  harness: Harness.Harness,
  driver: Driver,
  tools: Situation.ToolNames
): Effect.Effect<Bench, never, Scope.Scope> =>
  Effect.gen(function*() {
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-suite-")))),
      (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true, maxRetries: 3 }))
    )
    const token = crypto.randomUUID()
    const living = (): ReadonlyArray<Living> => (process.platform === "linux" ? onLinux : elsewhere)(`${variable}=${token}`)
    const processes = () => living().map(({ command }) => command)
    // Runs when the sessions of the case, which are opened later, have been closed.
    yield* Effect.addFinalizer(() =>
      Effect.ensuring(
        eventually("processes that are left when every session is closed", processes, (found) => found.length === 0, 5000),
        Effect.sync(() => killAll(living))
      )
    )
    const work = path.join(directory, "work")
    const home = path.join(directory, "home")
    fs.mkdirSync(work)
    fs.mkdirSync(home)
    const place: Place = { directory }
    const options: Bench["options"] = (situation, overrides = {}) =>
      Effect.map(driver(situation, place), (given): Harness.SessionOptions => {
        const base: Harness.SessionOptions = {
          sessionId: `suite-${token.slice(0, 8)}`,
          resume: undefined,
          cwd: work,
          model: undefined,
          system: undefined,
          tools: ToolAllowlist.readOnlyDefault,
          permission: Permission.deny,
          inheritedEnv: { PATH: process.env["PATH"] ?? "", HOME: home, LANG: "C.UTF-8" },
          env: {},
          credentials: undefined,
          program: undefined,
          configDir: undefined,
          redact: Redaction.shapes
        }
        return { ...base, ...given, ...overrides, env: { ...given.env, ...overrides.env, [variable]: token } }
      })
    return {
      directory,
      harness,
      tools,
      work,
      options,
      open: (situation, overrides) => Effect.flatMap(options(situation, overrides), harness.open),
      processes
    }
  })

const decode = Schema.decodeUnknownSync(TurnEvent.TurnEvent, { onExcessProperty: "error" })

/** Holds the events of one turn to the rules that hold for every turn. */
export const checkRules = (events: ReadonlyArray<TurnEvent.TurnEvent>): void => {
  const calls = new Set<string>()
  const requests = new Set<string>()
  let openStep: number | undefined
  for (const [i, event] of events.entries()) {
    decode(event)
    const isLast = i === events.length - 1
    assert.equal(event.type === "harness/end", isLast, `event ${i} of ${events.length} is ${event.type}; the ending comes last, and once`)
    switch (event.type) {
      case "step/start":
        assert.equal(openStep, undefined, `step ${event.data.step} starts while step ${openStep} is open`)
        openStep = event.data.step
        break
      case "step/end":
        assert.equal(openStep, event.data.step, `step ${event.data.step} ends but is not open`)
        openStep = undefined
        break
      case "tool/call":
        calls.add(event.data.call_id)
        break
      case "tool/result":
        assert.ok(calls.has(event.data.call_id), `the result of ${event.data.call_id} has no call before it`)
        break
      case "permission/request":
        requests.add(event.data.request_id)
        break
      case "permission/decision":
        assert.ok(requests.delete(event.data.request_id), `the decision on ${event.data.request_id} has no request before it`)
        break
      case "usage": {
        const { cost, tokens } = event.data.usage
        if (tokens.source === "unavailable") assert.equal(tokens.input_tokens ?? tokens.output_tokens, undefined, "figures that are unavailable are absent")
        if (cost.source === "unavailable") assert.equal(cost.usd, undefined, "a cost that is unavailable is absent")
        break
      }
      default:
        break
    }
  }
  assert.deepEqual([...requests], [], "every permission request has its decision")
  assert.equal(openStep, undefined, "every step ends")
}

/** Runs a turn to its ending. */
export const turn = (session: AgentSession.AgentSession, text: string): Effect.Effect<Turn, TurnError.TurnError> =>
  Effect.map(Stream.runCollect(session.runTurn(Prompt.fromText(text))), (collected) => {
    const events = [...collected]
    checkRules(events)
    const last = events.at(-1)
    if (last?.type !== "harness/end") return assert.fail("the turn's stream ended without an ending")
    return { events, output: events.reduce(TurnOutput.add, TurnOutput.empty), end: last.data }
  })

/** Runs a turn that has to fail, and answers its failure with the events before it. */
export const failingTurn = (session: AgentSession.AgentSession, text: string) =>
  Effect.gen(function*() {
    const events: Array<TurnEvent.TurnEvent> = []
    const exit = yield* Effect.exit(Stream.runForEach(session.runTurn(Prompt.fromText(text)), (event) => Effect.sync(() => events.push(event))))
    if (Exit.isSuccess(exit)) return assert.fail(`the turn did not fail: ${JSON.stringify(events)}`)
    const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    if (error === undefined) return assert.fail(`the turn did not fail but: ${Cause.pretty(exit.cause)}`)
    assert.equal(events.some((event) => event.type === "harness/end"), false, "a turn that fails has no ending")
    assert.ok(error instanceof TurnError.TurnError, `a turn fails with a TurnError, not with ${String(error)}`)
    return { error, events }
  })

/** A turn that is watched while it runs. */
export interface Watched {
  readonly fiber: Fiber.Fiber<void, TurnError.TurnError>
  readonly events: ReadonlyArray<TurnEvent.TurnEvent>
}

/** Begins a turn and waits for an event. */
export const watch = (
  session: AgentSession.AgentSession,
  text: string,
  until: (event: TurnEvent.TurnEvent) => boolean
): Effect.Effect<Watched, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { events, fiber, seen } = yield* start(session, text, until)
    yield* Effect.raceFirst(
      Deferred.await(seen),
      Effect.flatMap(Fiber.await(fiber), () => Effect.sync(() => assert.fail(`the turn ended before what was waited for: ${JSON.stringify(events)}`)))
    )
    return { fiber, events }
  })

/** Begins a turn and waits for nothing. The turn is interrupted where the case ends before it. */
export const start = (session: AgentSession.AgentSession, text: string, until: (event: TurnEvent.TurnEvent) => boolean = () => false) =>
  Effect.gen(function*() {
    const events: Array<TurnEvent.TurnEvent> = []
    const seen = yield* Deferred.make<void>()
    const fiber = yield* Effect.forkScoped(
      Stream.runForEach(session.runTurn(Prompt.fromText(text)), (event) => {
        events.push(event)
        return until(event) ? Effect.asVoid(Deferred.succeed(seen, undefined)) : Effect.void
      }),
      { startImmediately: true }
    )
    return { events, fiber, seen }
  })

/** Waits for the ending of a watched turn. */
export const ended = ({ events, fiber }: Watched): Effect.Effect<TurnEvent.TurnEnd["data"], TurnError.TurnError> =>
  Effect.map(Fiber.join(fiber), () => {
    checkRules(events)
    const last = events.at(-1)
    return last?.type === "harness/end" ? last.data : assert.fail("the turn's stream ended without an ending")
  })

export const isText = (event: TurnEvent.TurnEvent): boolean => event.type === "assistant/chunk" && event.data.kind === "text"

export const notices = (events: ReadonlyArray<TurnEvent.TurnEvent>): ReadonlyArray<TurnEvent.NoticeKind> =>
  events.flatMap((event) => (event.type === "notice" ? [event.data.kind] : []))

/** The harness's own id of the session, as the events name it last. */
export const harnessId = (events: ReadonlyArray<TurnEvent.TurnEvent>): string => {
  const id = events.flatMap((event) => (event.type === "session/bound" ? [event.data.harness_session_id] : [])).at(-1)
  return id ?? assert.fail("no session/bound among the events")
}

/** The prompts that the program says it was given, from its answer. */
export const prompts = (text: string): ReadonlyArray<string> => {
  const value = Result.getOrUndefined(Result.try((): unknown => JSON.parse(text)))
  if (!Array.isArray(value)) return assert.fail(`the answer is no list of prompts: ${JSON.stringify(text.slice(0, 200))}`)
  return value.map(String)
}

/** The failure code with which opening a session, or else its first turn, fails. */
export const codeOf = (error: unknown): string => {
  const failure = (error as Partial<HarnessError.HarnessError>).failure
  return failure?.code ?? assert.fail(`this is no failure of a harness or a turn: ${String(error)}`)
}
