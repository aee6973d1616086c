/**
 * Codex as a harness: one process a session, over its app-server.
 *
 * A process holds one thread. One that was lost is started again and the thread
 * resumed. Sandbox, permission and model are said with every start and every
 * resume, because Codex inherits none of them; instructions of a session that is
 * continued are added to its thread, because Codex would keep to those of its start.
 */
import { type Capabilities, Failure } from "@turnpike/contract"
import { type Dialect, Failures, type Frame, InstalledHarness, InstalledProgram, type JsonlPeer, SessionEnvironment } from "@turnpike/harness"
import { type Harness, HarnessError } from "@turnpike/kernel"
import { type Command, Supervisor } from "@turnpike/process"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as CodexConversation from "./CodexConversation.ts"
import * as CodexFailure from "./CodexFailure.ts"
import * as CodexHome from "./CodexHome.ts"
import * as CodexProgram from "./CodexProgram.ts"
import * as CodexTools from "./CodexTools.ts"
import * as CodexWire from "./CodexWire.ts"

export const name = "codex"

/**
 * `tool_allow_list` is advisory because it is a sandbox: it holds what is written
 * and the network, but what a command does within it is not seen, and the user's
 * own rules can let commands out. Codex chooses its thread's id, and can take a
 * message into a running turn, which Turnpike does not offer yet.
 */
export const capabilities: Capabilities.Capabilities = {
  resume: "enforced",
  chosen_session_id: "unsupported",
  steering: "enforced",
  tool_allow_list: "advisory",
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
  /** How long a process may take until its thread is ready for a prompt; 60 s unless given. It needs about 0.2 s where nothing slows it down. */
  readonly handshakeTimeout?: Duration.Input
}

const failed = (failure: Failure.Failure) => HarnessError.notStarted(failure)

/** The longest line that is kept, in bytes: 64 MiB. A prompt comes back as an item. */
const maxLineBytes = 64 * 1024 * 1024

/** What Turnpike tells Codex of itself. */
const clientVersion = "0.1.0"

/** What a session's options come to, or what of them cannot be honoured. Starts nothing. */
const planned = (session: Harness.SessionOptions): Effect.Effect<CodexTools.Plan, HarnessError.HarnessError> =>
  Effect.suspend(() => {
    const plan = CodexTools.plan(session.tools)
    return plan.refused === undefined
      ? Effect.as(CodexHome.check(session), plan)
      : Effect.fail(HarnessError.unsupported(name, `tools.allow ${plan.refused.entry}`, plan.refused.why))
  })

const commandOf = (session: Harness.SessionOptions, file: string): Effect.Effect<Command.Command, HarnessError.HarnessError> =>
  Effect.map(CodexHome.prepare(session), (own) => ({
    program: file,
    args: ["app-server"],
    cwd: session.cwd,
    env: SessionEnvironment.changes(session, own),
    maxLineBytes
  }))

/** Why Codex refused to begin or to resume a thread, by its words: its codes are the same for all. */
const threadRefused = (error: CodexWire.RpcError, launch: Dialect.Launch, session: Harness.SessionOptions): HarnessError.HarnessError => {
  if (launch._tag === "Resume") {
    if (/no rollout found|invalid session id|thread not found/.test(error.message)) {
      return HarnessError.sessionLost(name, launch.harnessSessionId)
    }
    // A file that is torn or empty, and one that says it is another thread's. Observed with 0.171.0.
    if (/failed to read (thread|session metadata)|belongs to thread|thread source changed/.test(error.message)) {
      return HarnessError.sessionLost(name, launch.harnessSessionId, session.redact(error.message).slice(0, 2048))
    }
  }
  const failure = CodexFailure.ofRefusal(error, session.redact)
  if (error.message.includes("already has an active writer")) return failed(Failure.make("SESSION_IN_USE", failure.message))
  if (failure.code !== "HARNESS_PROTOCOL") return failed(failure)
  return /unknown variant|method not found/i.test(error.message)
    ? InstalledProgram.otherProtocol(CodexProgram.description, failure.message)
    : failed(Failure.make("HANDSHAKE_FAILED", failure.message))
}

/** Begins the exchange with a process that was just started. */
const handshake = (options: Options, session: Harness.SessionOptions, plan: CodexTools.Plan, program: InstalledProgram.Identified) => {
  const terms: CodexWire.Terms = {
    cwd: session.cwd,
    model: session.model,
    developerInstructions: session.system,
    approvalPolicy: CodexTools.approvalPolicy(plan),
    sandbox: plan.sandbox,
    webSearch: CodexTools.webSearch(plan)
  }
  /** Whether the thread has the session's instructions: a process that is started again need not add them again. */
  let isInstructed = false
  return Effect.fnUntraced(function*(peer: JsonlPeer.JsonlPeer, launch: Dialect.Launch) {
    const ask = (id: string, frame: Frame.Frame) => Effect.map(peer.request(id, frame, options.handshakeTimeout ?? "60 seconds"), CodexWire.read)
    const first = yield* ask("initialize", CodexWire.initialize("initialize", clientVersion))
    if (first.kind === "failure") return yield* threadRefused(first.error, launch, session)
    yield* peer.send(CodexWire.initialized)
    const answer = yield* ask(
      "thread",
      launch._tag === "Resume" ? CodexWire.resumeThread("thread", launch.harnessSessionId, terms) : CodexWire.startThread("thread", terms)
    )
    if (answer.kind === "failure") return yield* threadRefused(answer.error, launch, session)
    const thread = answer.kind === "result" ? CodexWire.readThread(answer.result) : undefined
    if (thread === undefined || Result.isFailure(thread)) {
      return yield* failed(Failure.make("HARNESS_PROTOCOL", "Codex did not say which thread it began"))
    }
    if (launch._tag === "Resume" && session.system !== undefined && !isInstructed) {
      const added = yield* ask("instructions", CodexWire.instruct("instructions", thread.success.thread.id, session.system))
      if (added.kind === "failure") return yield* threadRefused(added.error, launch, session)
    }
    isInstructed = true
    return CodexConversation.initial({
      tools: plan,
      model: session.model,
      resumes: launch._tag === "Resume" ? launch.harnessSessionId : undefined,
      redact: session.redact,
      version: program.version,
      remarks: plan.all ? [] : CodexHome.remarks(session)
    }, thread.success)
  })
}

/** Reads why a process that was just started refused to go on. */
const refused = (session: Harness.SessionOptions) => (evidence: Dialect.Evidence): HarnessError.HarnessError | undefined => {
  for (const item of evidence.received) {
    if (item._tag !== "Frame") continue
    const message = CodexWire.read(item.frame)
    // Codex would go on without any of the user's settings, another provider than theirs included.
    if (message.kind === "configWarning" && message.params.summary.startsWith("Invalid configuration")) {
      return failed(Failure.make("HANDSHAKE_FAILED", `Codex cannot read its configuration: ${session.redact(message.params.details ?? message.params.summary).slice(0, 2048)}`, {
        retryable: false,
        remedy: "Correct the named file."
      }))
    }
    if (message.kind === "unknown request" && message.name === "initialize") {
      return Failures.echo(CodexProgram.description.product)
    }
  }
  return Failures.notReady(CodexProgram.description.product, evidence, session.redact)
}

const dialect = (
  options: Options,
  session: Harness.SessionOptions,
  plan: CodexTools.Plan,
  program: InstalledProgram.Identified
): Dialect.Dialect<CodexConversation.State> => ({
  harness: name,
  command: () => commandOf(session, program.file),
  answers: CodexWire.answered,
  handshake: handshake(options, session, plan, program),
  refused: refused(session),
  prompt: CodexConversation.prompt,
  frame: CodexConversation.frame,
  needed: CodexWire.needed,
  steer: CodexConversation.steer,
  interrupt: CodexConversation.interrupt,
  died: () => undefined,
  oneTurnPerProcess: false,
  endOfInput: "3 seconds"
})

/** Makes the harness. Its sessions start their process through the supervisor. */
export const make = (options: Options = {}): Effect.Effect<Harness.Harness, never, Supervisor.Supervisor> =>
  InstalledHarness.make({
    capabilities,
    program: CodexProgram.description,
    credentials: "codex",
    plan: planned,
    dialect: (session, plan, program) => dialect(options, session, plan, program),
    findings: CodexHome.findings
  })
