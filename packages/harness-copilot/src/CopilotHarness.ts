/**
 * GitHub Copilot CLI as a harness: one process a session, over its JSON-RPC server.
 *
 * A process that was lost is started again and the session resumed. The system
 * prompt, the service's key and the list of tools go in with the opening of the
 * session on standard input, so none of them shows in a process list.
 */
import { type Capabilities, Failure } from "@turnpike/contract"
import { type Dialect, Failures, type Frame, InstalledHarness, InstalledProgram, JsonlPeer, SessionEnvironment } from "@turnpike/harness"
import { type Harness, HarnessError } from "@turnpike/kernel"
import { type Command, Supervisor } from "@turnpike/process"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { randomUUID } from "node:crypto"
import * as CopilotConversation from "./CopilotConversation.ts"
import * as CopilotHome from "./CopilotHome.ts"
import * as CopilotProgram from "./CopilotProgram.ts"
import * as CopilotProvider from "./CopilotProvider.ts"
import * as CopilotTools from "./CopilotTools.ts"
import * as CopilotWire from "./CopilotWire.ts"

export const name = "copilot"

/**
 * `chosen_session_id` is unsupported because the adapter makes the id, a UUID:
 * Copilot begins or continues whatever id it is given, so one that somebody else
 * chose could continue what nobody meant. `isolation` is enforced for settings,
 * history and sign-in, by a COPILOT_HOME of the session's own. Copilot counts
 * premium requests, never money.
 */
export const capabilities: Capabilities.Capabilities = {
  resume: "enforced",
  chosen_session_id: "unsupported",
  steering: "unsupported",
  tool_allow_list: "enforced",
  permission_requests: "enforced",
  system_prompt: "advisory",
  model_choice: "enforced",
  usage: "enforced",
  cost: "unsupported",
  structured_output: "unsupported",
  interrupt_keeps_history: "enforced",
  isolation: "enforced",
  background_tasks: "unsupported"
}

export interface Options {
  /** How long a process may take until it is ready for a prompt; 60 s unless given. It needs about 1 s where nothing slows it down. */
  readonly handshakeTimeout?: Duration.Input
}

const failed = (failure: Failure.Failure) => HarnessError.notStarted(failure)

interface Planned {
  readonly tools: CopilotTools.Plan
  readonly choice: CopilotProvider.Choice
}

/** What a session's options come to, or what of them cannot be honoured. Starts nothing. */
const planned = (session: Harness.SessionOptions): Effect.Effect<Planned, HarnessError.HarnessError> =>
  Effect.suspend(() => {
    const tools = CopilotTools.plan(session.tools)
    if (tools.refused !== undefined) {
      return Effect.fail(HarnessError.unsupported(name, `tools.allow ${JSON.stringify(tools.refused.entry)}`, `it ${tools.refused.why}`))
    }
    const choice = CopilotProvider.choose({ ...session.inheritedEnv, ...session.env }, session.model)
    return Result.isSuccess(choice) ? Effect.succeed({ tools, choice: choice.success }) : Effect.fail(choice.failure)
  })

const commandOf = (
  session: Pick<Harness.SessionOptions, "cwd" | "inheritedEnv"> & Partial<Pick<Harness.SessionOptions, "env" | "configDir">>,
  file: string
): Command.Command => ({
  program: file,
  args: ["--headless", "--no-auto-update", "--stdio"],
  cwd: session.cwd,
  env: SessionEnvironment.changes({ inheritedEnv: session.inheritedEnv, env: session.env ?? {} }, {
    // What the caller's own sessions allow is not what this one may do.
    COPILOT_ALLOW_ALL: undefined,
    ...(session.configDir === undefined ? {} : { COPILOT_HOME: session.configDir })
  })
})

const decodeConnected = Schema.decodeUnknownResult(CopilotWire.Connected)
const decodeOpened = Schema.decodeUnknownResult(CopilotWire.Opened)

/** Sends a request of the handshake and answers what came back for it. */
const ask = (peer: JsonlPeer.JsonlPeer, id: string, frame: Frame.Frame, deadline: Duration.Input) =>
  Effect.map(peer.request(id, frame, deadline), (answer): typeof CopilotWire.Answer.Type => {
    const message = CopilotWire.read(answer)
    return message.kind === "answer" ? message.record : { id, error: { message: "an answer without the expected shape" } }
  })

/** Begins the exchange with a process that was just started. */
const handshake = (options: Options, session: Harness.SessionOptions, { choice, tools }: Planned, program: InstalledProgram.Identified) =>
  Effect.fnUntraced(function*(peer: JsonlPeer.JsonlPeer, launch: Dialect.Launch) {
    const deadline = options.handshakeTimeout ?? "60 seconds"
    const refusal = (why: string, code?: number | null) => {
      const message = `Copilot refused to begin: ${session.redact(why).slice(0, 2048)}`
      return code === CopilotWire.methodNotFound
        ? InstalledProgram.otherProtocol(CopilotProgram.description, message)
        : failed(Failure.make("HANDSHAKE_FAILED", message))
    }
    const [connectId, openId] = [randomUUID(), randomUUID()]
    const connect = yield* ask(peer, connectId, CopilotWire.connect(connectId), deadline)
    if (connect.error !== undefined) return yield* refusal(connect.error.message, connect.error.code)
    const connected = decodeConnected(connect.result)
    const protocol = Result.isSuccess(connected) ? connected.success.protocolVersion : undefined
    if (protocol !== CopilotWire.protocolVersion) {
      return yield* InstalledProgram.otherProtocol(
        CopilotProgram.description,
        `Copilot speaks protocol version ${protocol ?? "(none)"}; the one that works here is ${CopilotWire.protocolVersion}`
      )
    }

    const sessionId = launch._tag === "Resume" ? launch.harnessSessionId : randomUUID()
    const open = yield* ask(
      peer,
      openId,
      CopilotWire.open(openId, launch._tag === "Resume" ? "resume" : "create", {
        sessionId,
        cwd: session.cwd,
        model: choice.model,
        provider: choice.provider,
        system: session.system,
        availableTools: tools.all ? undefined : tools.offered,
        gateTools: !tools.all
      }),
      deadline
    )
    if (open.error !== undefined) {
      const { code, message } = open.error
      if (launch._tag === "Resume" && /\bSession not found\b/.test(message)) return yield* HarnessError.sessionLost(name, launch.harnessSessionId)
      // A file that is torn, and one that says it is another session's. Observed with 1.0.102.
      return yield* (launch._tag === "Resume" && /\bSession file is corrupted\b|\bbelongs to a different session\b/.test(message)
        ? HarnessError.sessionLost(name, launch.harnessSessionId, session.redact(message).slice(0, 2048))
        : refusal(message, code))
    }
    const opened = decodeOpened(open.result)
    if (Result.isFailure(opened)) return yield* refusal("it did not say which session it opened")
    return CopilotConversation.initial({
      tools,
      model: session.model,
      sessionId: opened.success.sessionId,
      resumes: launch._tag === "Resume" ? launch.harnessSessionId : undefined,
      redact: session.redact,
      uuid: randomUUID,
      version: (Result.isSuccess(connected) ? connected.success.version : undefined) ?? program.version
    }, opened.success.modelState?.modelId ?? undefined)
  })

/** Reads why a process that was just started refused to go on. */
const refused = (session: Harness.SessionOptions) => (evidence: Dialect.Evidence): HarnessError.HarnessError | undefined => {
  for (const item of evidence.received) {
    if (item._tag === "Frame" && item.frame["method"] === "connect") {
      return Failures.echo(CopilotProgram.description.product)
    }
  }
  return Failures.notReady(CopilotProgram.description.product, evidence, session.redact)
}

const dialect = (
  options: Options,
  session: Harness.SessionOptions,
  plan: Planned,
  program: InstalledProgram.Identified
): Dialect.Dialect<CopilotConversation.State> => ({
  harness: name,
  framing: "content-length",
  command: () => Effect.sync(() => commandOf(session, program.file)),
  answers: CopilotWire.answered,
  handshake: handshake(options, session, plan, program),
  refused: refused(session),
  prompt: CopilotConversation.prompt,
  frame: CopilotConversation.frame,
  needed: CopilotWire.needed,
  interrupt: CopilotConversation.interrupt,
  died: () => undefined,
  oneTurnPerProcess: false,
  endOfInput: "3 seconds"
})

const decodeAuthStatus = Schema.decodeUnknownResult(CopilotWire.AuthStatus)

/** Asks Copilot whether it is signed in, in a process of its own; `undefined` where it does not tell within 10 s. */
const authStatus = (supervisor: Supervisor.Service, session: Harness.DiagnosisOptions, file: string): Effect.Effect<CopilotHome.Status | undefined> =>
  Effect.gen(function*() {
    const child = yield* supervisor.spawn(commandOf(session, file))
    const peer = yield* JsonlPeer.makeContentLength({ write: child.stdin.write, bytes: child.bytes }, CopilotWire.answered)
    yield* Effect.forkScoped(Stream.runDrain(peer.received))
    const [connectId, statusId] = [randomUUID(), randomUUID()]
    yield* ask(peer, connectId, CopilotWire.connect(connectId), "10 seconds")
    const { result } = yield* ask(peer, statusId, CopilotWire.authStatus(statusId), "10 seconds")
    const status = decodeAuthStatus(result)
    return Result.isSuccess(status) ? { isAuthenticated: status.success.isAuthenticated, login: status.success.login ?? undefined } : undefined
  }).pipe(
    Effect.scoped,
    Effect.timeoutOption("10 seconds"),
    Effect.map(Option.getOrUndefined),
    // A program that cannot be asked has told its version; the finding says so.
    Effect.catch(() => Effect.succeed(undefined))
  )

/** Makes the harness. Its sessions start their process through the supervisor. */
export const make = (options: Options = {}): Effect.Effect<Harness.Harness, never, Supervisor.Supervisor> =>
  InstalledHarness.make({
    capabilities,
    program: CopilotProgram.description,
    plan: planned,
    dialect: (session, plan, program) => dialect(options, session, plan, program),
    findings: (asked, { file }, supervisor) => CopilotHome.findings(asked, authStatus(supervisor, asked, file))
  })
