/**
 * Codex as a harness: one process a session, over its app-server.
 *
 * A process holds one thread. One that was lost is started again and the thread
 * resumed. Sandbox, permission and model are said with every start and every
 * resume, because Codex inherits none of them; instructions of a session that is
 * continued are added to its thread, because Codex would keep to those of its start.
 */
import { type Capabilities, Failure } from "@turnpike/contract"
import { type Dialect, Failures, InstalledHarness, type InstalledProgram, type JsonlPeer, SessionEnvironment } from "@turnpike/harness"
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

/** What cannot be honoured, before anything is started. */
const planned = (session: Harness.SessionOptions) =>
  Effect.gen(function*() {
    const unsupported = (option: string, detail: string) => HarnessError.unsupported(name, option, detail)
    if (session.credentials?.claude != null) return yield* unsupported("credentials.claude", "Codex cannot sign in with it")
    if (session.model !== undefined && /^\s*$/.test(session.model)) return yield* unsupported("model", "it is blank")
    const plan = CodexTools.plan(session.tools)
    if (plan.refused !== undefined) return yield* unsupported(`tools.allow ${plan.refused.entry}`, plan.refused.why)
    yield* CodexHome.check(session)
    return plan
  })

const commandOf = (session: Harness.SessionOptions, file: string): Effect.Effect<Command.Command, HarnessError.HarnessError> =>
  Effect.map(CodexHome.prepare(session), (own) => ({
    program: file,
    args: ["app-server"],
    cwd: session.cwd,
    env: SessionEnvironment.changes(session, own),
    maxLineBytes
  }))

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
      return failed(Failure.make("HARNESS_NOT_A_HARNESS", "the program gives back what it is told; it is not Codex"))
    }
  }
  if (evidence.exit === undefined && !evidence.late) return undefined
  // The version told that it is Codex, so what it says is about this start.
  const { failure } = Failures.handshake("Codex", evidence, session.redact)
  return failed(Failure.make("HANDSHAKE_FAILED", failure.message))
}

/** Why Codex refused to begin or to resume a thread, by its words: its codes are the same for all. */
const threadRefused = (error: CodexWire.RpcError, launch: Dialect.Launch, session: Harness.SessionOptions): HarnessError.HarnessError => {
  if (launch._tag === "Resume" && /no rollout found|invalid session id|thread not found/.test(error.message)) {
    return HarnessError.sessionLost(name, launch.harnessSessionId)
  }
  const failure = CodexFailure.ofRefusal(error, session.redact)
  if (error.message.includes("already has an active writer")) return failed(Failure.make("SESSION_IN_USE", failure.message))
  return failed(
    failure.code === "HARNESS_PROTOCOL" && /unknown variant|method not found/i.test(error.message)
      ? Failure.make("HARNESS_PROTOCOL", failure.message, { remedy: "Update Codex: npm install -g @openai/codex." })
      : failure.code === "HARNESS_PROTOCOL"
      ? Failure.make("HANDSHAKE_FAILED", failure.message)
      : failure
  )
}

const dialect = (
  options: Options,
  session: Harness.SessionOptions,
  plan: CodexTools.Plan,
  program: InstalledProgram.Identified
): Dialect.Dialect<CodexConversation.State> => {
  const deadline = options.handshakeTimeout ?? "60 seconds"
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
  const ask = (peer: JsonlPeer.JsonlPeer, id: string, frame: Parameters<JsonlPeer.JsonlPeer["request"]>[1]) =>
    Effect.map(peer.request(id, frame, deadline), CodexWire.read)
  return {
    harness: name,
    command: () => commandOf(session, program.file),
    answers: CodexWire.answered,
    handshake: (peer, launch) =>
      Effect.gen(function*() {
        const first = yield* ask(peer, "initialize", CodexWire.initialize("initialize", clientVersion))
        if (first.kind === "failure") return yield* threadRefused(first.error, launch, session)
        yield* peer.send(CodexWire.initialized)
        const answer = yield* ask(
          peer,
          "thread",
          launch._tag === "Resume" ? CodexWire.resumeThread("thread", launch.harnessSessionId, terms) : CodexWire.startThread("thread", terms)
        )
        if (answer.kind === "failure") return yield* threadRefused(answer.error, launch, session)
        const thread = answer.kind === "result" ? CodexWire.readThread(answer.result) : undefined
        if (thread === undefined || Result.isFailure(thread)) {
          return yield* failed(Failure.make("HARNESS_PROTOCOL", "Codex did not say which thread it began"))
        }
        if (launch._tag === "Resume" && session.system !== undefined && !isInstructed) {
          const added = yield* ask(peer, "instructions", CodexWire.instruct("instructions", thread.success.thread.id, session.system))
          if (added.kind === "failure") return yield* threadRefused(added.error, launch, session)
        }
        isInstructed = true
        return CodexConversation.initial({
          tools: plan,
          model: session.model,
          resumes: launch._tag === "Resume" ? launch.harnessSessionId : undefined,
          redact: session.redact,
          version: program.version,
          testedVersion: CodexProgram.tested,
          remarks: plan.all ? [] : CodexHome.remarks(session)
        }, thread.success)
      }),
    refused: refused(session),
    prompt: CodexConversation.prompt,
    frame: CodexConversation.frame,
    needed: CodexWire.needed,
    steer: CodexConversation.steer,
    interrupt: CodexConversation.interrupt,
    died: () => undefined,
    oneTurnPerProcess: false,
    endOfInput: "3 seconds"
  }
}

const findings = ({ cwd, inheritedEnv }: Harness.DiagnosisOptions): ReadonlyArray<Harness.Finding> => [
  CodexHome.signIn(inheritedEnv),
  ...(CodexHome.isTrapped(inheritedEnv)
    ? [{
      level: "warning" as const,
      message: `Codex's directory ${CodexHome.directory(inheritedEnv) ?? ""} is under the one for temporary files, where Codex itself runs no command; Turnpike gives it another TMPDIR`,
      remedy: "Choose a CODEX_HOME or a TMPDIR elsewhere."
    }]
    : []),
  ...CodexHome.remarks({ configDir: undefined, env: {}, inheritedEnv, credentials: undefined, cwd }).map(({ data }): Harness.Finding => ({
    level: "warning",
    message: data.message,
    remedy: "Take the rules out, or run isolated, where an allow-list matters."
  }))
]

/** Makes the harness. Its sessions start their process through the supervisor. */
export const make = (options: Options = {}): Effect.Effect<Harness.Harness, never, Supervisor.Supervisor> =>
  InstalledHarness.make({
    capabilities,
    program: CodexProgram.description,
    plan: planned,
    dialect: (session, plan, program) => dialect(options, session, plan, program),
    findings: (asked) => Effect.sync(() => findings(asked))
  })
