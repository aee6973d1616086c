/**
 * The scripted agent as a harness: a real process behind a real protocol that
 * does what a scenario says, without a model and without a key.
 *
 * It comes in by the same door as every other adapter, and passes the same
 * conformance suite.
 */
import { Capabilities, Failure } from "@turnpike/contract"
import { type Dialect, Failures, ProgramSearch, WarmSession } from "@turnpike/harness"
import { type Harness, HarnessError } from "@turnpike/kernel"
import { ChildEnvironment, type Command, Supervisor } from "@turnpike/process"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Program from "./internal/program.ts"
import * as Translation from "./internal/translation.ts"
import * as Scenario from "./Scenario.ts"
import * as ScriptedWire from "./ScriptedWire.ts"

export const name = "scripted"

export const capabilities: Capabilities.Capabilities = {
  resume: "enforced",
  chosen_session_id: "enforced",
  steering: "unsupported",
  tool_allow_list: "enforced",
  permission_requests: "enforced",
  system_prompt: "enforced",
  model_choice: "enforced",
  usage: "enforced",
  cost: "enforced",
  structured_output: "unsupported",
  interrupt_keeps_history: "enforced",
  isolation: "enforced",
  background_tasks: "enforced"
}

export interface Options {
  /**
   * What the agent plays: the name of a built-in scenario, a file, or a scenario
   * itself. Absent means what `TURNPIKE_SCENARIO` names in the session's
   * environment, and `demo` where it is not set.
   */
  readonly scenario?: string | Scenario.Scenario
  /** How long the agent may take to answer the opening of a session; 10 s unless given. */
  readonly handshakeTimeout?: Duration.Input
  /** The command line that runs the agent where a session names no program; the package's own unless given. */
  readonly agent?: readonly [program: string, ...args: ReadonlyArray<string>]
}

const failed = (failure: Failure.Failure) => HarnessError.notStarted(failure)

const wantedScenario = (options: Options, session: Harness.SessionOptions): string | Scenario.Scenario =>
  options.scenario ?? session.env["TURNPIKE_SCENARIO"] ?? session.inheritedEnv["TURNPIKE_SCENARIO"] ?? "demo"

/** The file of a scenario that is named, once it is known to be one. */
const namedScenario = (wanted: string, session: Harness.SessionOptions) =>
  Scenario.file(wanted, session.cwd).pipe(
    Effect.flatMap((file) => Effect.as(Scenario.read(file), file)),
    Effect.mapError(failed)
  )

/** The scenario's file. A scenario that is given as a value gets one that lives as long as the session. */
const scenarioFile = (options: Options, session: Harness.SessionOptions) =>
  Effect.gen(function*() {
    const wanted = wantedScenario(options, session)
    if (typeof wanted !== "string") {
      const directory = yield* Effect.acquireRelease(
        Effect.try({
          try: () => fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-scenario-")),
          catch: (cause) => failed(Failure.make("SPAWN_FAILED", `no file for the scenario can be made: ${String(cause)}`))
        }),
        (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
      )
      const file = path.join(directory, "scenario.json")
      fs.writeFileSync(file, JSON.stringify(wanted))
      return yield* Effect.as(Scenario.read(file), file).pipe(Effect.mapError(failed))
    }
    return yield* namedScenario(wanted, session)
  })

/** What cannot be honoured, before anything is started. */
const refuse = (session: Harness.SessionOptions) =>
  Object.entries(session.credentials ?? {}).some(([, value]) => value !== null && value !== undefined)
    ? Effect.fail(HarnessError.unsupported(name, "credentials", "a scripted agent signs in nowhere"))
    : Effect.void

const search = (session: Harness.DiagnosisOptions & { readonly env?: Readonly<Record<string, string>> }) =>
  ProgramSearch.find({
    harness: name,
    program: session.program,
    names: ["turnpike-scripted-agent"],
    cwd: session.cwd,
    env: { ...session.inheritedEnv, ...session.env },
    places: [],
    nativeBehind: () => []
  })

/** The command line that the session's program is started with, without its arguments. */
const programOf = (options: Options, session: Harness.DiagnosisOptions & { readonly env?: Readonly<Record<string, string>> }) =>
  session.program === undefined
    ? Effect.succeed(options.agent ?? Program.command())
    : Effect.map(search(session), ({ file }): readonly [string, ...ReadonlyArray<string>] => [file])

const ofRefusal = (
  refused: Extract<ScriptedWire.Frame, { readonly type: "refused" }>,
  launch: Dialect.Launch,
  session: Harness.SessionOptions
): HarnessError.HarnessError =>
  refused.why === "unknown"
    ? HarnessError.sessionLost(name, launch._tag === "Resume" ? launch.harnessSessionId : "that was to begin")
    : failed(Failure.make("SESSION_IN_USE", `the agent refused the session: ${session.redact(refused.message)}`))

const dialect = (
  options: Options,
  session: Harness.SessionOptions,
  program: readonly [string, ...ReadonlyArray<string>],
  scenario: string
): Dialect.Dialect<Translation.State> => {
  const facts: Translation.Facts = { tools: session.tools, model: session.model, redact: session.redact }
  const tools = Translation.toolNames(session.tools)
  const [file, ...args] = program
  const command = (launch: Dialect.Launch): Command.Command => ({
    program: file,
    args: [
      ...args,
      "--scenario",
      scenario,
      launch._tag === "Resume" ? "--resume" : "--session",
      launch._tag === "Resume" ? launch.harnessSessionId : crypto.randomUUID()
    ],
    cwd: session.cwd,
    env: {
      // This process's environment is not the caller's: what the caller does not have is removed.
      ...Object.fromEntries(Object.keys(process.env).map((key) => [key, undefined])),
      ...ChildEnvironment.make(session.inheritedEnv, {
        ...(session.configDir === undefined ? {} : { TURNPIKE_SCRIPTED_HOME: session.configDir }),
        ...session.env
      })
    }
  })
  return {
    harness: name,
    command: (launch) => Effect.sync(() => command(launch)),
    answers: (frame) => (frame["type"] === "opened" || frame["type"] === "refused" ? "open" : undefined),
    handshake: (peer, launch) =>
      Effect.gen(function*() {
        const answer = yield* peer.request("open", {
          type: "open",
          protocol: ScriptedWire.protocol,
          ...(session.model === undefined ? {} : { model: session.model }),
          ...(session.system === undefined ? {} : { system: session.system }),
          ...(tools === undefined ? {} : { tools })
        }, options.handshakeTimeout ?? "10 seconds")
        const decoded = ScriptedWire.decode(answer)
        if (Result.isFailure(decoded)) {
          return yield* Effect.fail(failed(Failure.make("HARNESS_PROTOCOL", `the agent's opening is not understood: ${session.redact(decoded.failure.message)}`)))
        }
        const opened = decoded.success
        if (opened.type === "refused") {
          return yield* Effect.fail(ofRefusal(opened, launch, session))
        }
        if (opened.type !== "opened" || opened.protocol !== ScriptedWire.protocol) {
          return yield* Effect.fail(failed(Failure.make(
            "HARNESS_PROTOCOL",
            `the agent speaks version ${opened.type === "opened" ? opened.protocol : "?"} of the protocol; this is version ${ScriptedWire.protocol}`
          )))
        }
        return Translation.begin(opened, launch._tag === "Resume" ? launch.harnessSessionId : undefined)
      }),
    // A refusal does not wait for the opening, so it may be there before anyone waits for an answer.
    refused: ({ launch, received }) => {
      for (const item of received) {
        const said = item._tag === "Frame" ? ScriptedWire.decode(item.frame) : undefined
        if (said !== undefined && Result.isSuccess(said) && said.success.type === "refused") return ofRefusal(said.success, launch, session)
      }
      return undefined
    },
    prompt: (state, prompt) => Translation.prompt(facts)(state, prompt.text),
    frame: Translation.frame(facts),
    needed: ScriptedWire.needed,
    interrupt: (state) => ({ state, outputs: [{ _tag: "Send", frame: { type: "interrupt" } }] }),
    died: () => undefined,
    hasOwnTurns: true,
    oneTurnPerProcess: false,
    endOfInput: "2 seconds"
  }
}

const open = (options: Options, supervisor: Supervisor.Service) =>
  Effect.fn("ScriptedHarness.open")(function*(session: Harness.SessionOptions) {
    yield* refuse(session)
    const program = yield* programOf(options, session)
    const scenario = yield* scenarioFile(options, session)
    return yield* WarmSession.open({
      sessionId: session.sessionId,
      dialect: dialect(options, session, program, scenario),
      spawn: supervisor.spawn,
      resume: session.resume,
      permission: session.permission,
      redact: session.redact
    })
  })

const versionOf = (said: ProgramSearch.SelfDescription): string | undefined =>
  said.exit?.code === 0 ? /^(\d+\.\d+\.\d+)\s*$/u.exec(said.text)?.[1] : undefined

const askVersion = (
  program: readonly [string, ...ReadonlyArray<string>],
  cwd: string,
  supervisor: Supervisor.Service
) => ProgramSearch.describe({ program: program[0], args: [...program.slice(1), "--version"], cwd }, supervisor.spawn)

/** Refuses what `open` would refuse. A program of the caller's is asked for its version; our own is known. */
const check = (options: Options, supervisor: Supervisor.Service) =>
  Effect.fn("ScriptedHarness.check")(function*(session: Harness.SessionOptions) {
    yield* refuse(session)
    const program = yield* programOf(options, session)
    const wanted = wantedScenario(options, session)
    if (typeof wanted === "string") yield* namedScenario(wanted, session)
    const shown = program.join(" ")
    if (session.program === undefined) return { program: shown }
    const said = yield* askVersion(program, session.cwd, supervisor)
    const version = versionOf(said)
    if (version === undefined) return yield* Effect.fail(ProgramSearch.notTheHarness(name, shown, said, session.redact))
    return { program: shown, version }
  })

const diagnose = (options: Options, supervisor: Supervisor.Service) =>
  Effect.fn("ScriptedHarness.diagnose")(function*(session: Harness.DiagnosisOptions) {
    const found = yield* programOf(options, session).pipe(
      Effect.flatMap((program) =>
        Effect.map(askVersion(program, session.cwd, supervisor), (said) => ({ program, said }))
      ),
      Effect.result
    )
    if (Result.isFailure(found)) {
      const { failure } = found.failure
      return { harness: name, usable: false, findings: [{ level: "problem" as const, message: failure.message, remedy: failure.remedy }] }
    }
    const { program, said } = found.success
    const version = versionOf(said)
    const shown = program.join(" ")
    if (version === undefined) {
      return {
        harness: name,
        usable: false,
        program: shown,
        findings: [{
          level: "problem" as const,
          message: `${shown} is not the scripted agent: asked for its version it ${said.exit === undefined ? "did not answer" : Failures.describeExit(said.exit)}`,
          remedy: Failure.codes.HARNESS_NOT_A_HARNESS.remedy
        }]
      }
    }
    return {
      harness: name,
      usable: true,
      program: shown,
      version,
      findings: [{ level: "ok" as const, message: `plays scenarios: ${Scenario.builtIn().join(", ")}` }]
    }
  })

/** Makes the harness. Sessions it opens start their process through the supervisor. */
export const make = (options: Options = {}): Effect.Effect<Harness.Harness, never, Supervisor.Supervisor> =>
  Effect.map(Supervisor.Supervisor, (supervisor) => ({
    name,
    capabilities,
    check: check(options, supervisor),
    open: open(options, supervisor),
    diagnose: diagnose(options, supervisor)
  }))
