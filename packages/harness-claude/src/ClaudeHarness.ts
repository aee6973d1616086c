/**
 * Claude Code as a harness: one process a session, over stream-json.
 *
 * A process that was lost is started again with `--resume`. The system prompt
 * and the gate of tools go in with the first words on standard input, so neither
 * their length nor their content shows in a process list.
 */
import { type Capabilities, Failure } from "@turnpike/contract"
import { type Dialect, Failures, InstalledHarness, InstalledProgram, type JsonlPeer, SessionEnvironment } from "@turnpike/harness"
import { type Harness, HarnessError } from "@turnpike/kernel"
import { type Command, Supervisor } from "@turnpike/process"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import * as ClaudeConversation from "./ClaudeConversation.ts"
import * as ClaudeHome from "./ClaudeHome.ts"
import * as ClaudeProgram from "./ClaudeProgram.ts"
import * as ClaudeTools from "./ClaudeTools.ts"
import * as ClaudeWire from "./ClaudeWire.ts"

export const name = "claude"

/**
 * `chosen_session_id` is unsupported because Claude Code takes only UUIDs, which
 * Turnpike's ids need not be; the adapter makes one. `isolation` is enforced for
 * settings, history and sign-in, by a configuration directory of the session's
 * own. Money is worked out by Claude Code's own price list.
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
  cost: "advisory",
  structured_output: "unsupported",
  interrupt_keeps_history: "enforced",
  isolation: "enforced",
  background_tasks: "enforced"
}

export interface Options {
  /**
   * How long a process may take until it is ready for a prompt; 60 s unless
   * given. It needs about 0.3 s where nothing slows it down; hooks that run at
   * its start count, servers that it connects to do not.
   */
  readonly handshakeTimeout?: Duration.Input
}

const failed = (failure: Failure.Failure) => HarnessError.notStarted(failure)

/** The longest line that is kept, in bytes: 64 MiB. A prompt of 2 MB comes back in hooks and replays. */
const maxLineBytes = 64 * 1024 * 1024

/** What a session's options come to, or what of them cannot be honoured. Starts nothing. */
const planned = ({ tools }: Harness.SessionOptions): Effect.Effect<ClaudeTools.Plan, HarnessError.HarnessError> =>
  Effect.suspend(() => {
    const plan = ClaudeTools.plan(tools)
    return plan.refused === undefined
      ? Effect.succeed(plan)
      : Effect.fail(HarnessError.unsupported(name, `tools.allow ${JSON.stringify(plan.refused.entry)}`, `it ${plan.refused.why}`))
  })

/** A token that the caller gives comes before a key that happens to be in the environment, which Claude Code would prefer. */
const signInVariables = (session: Harness.SessionOptions): Readonly<Record<string, string | undefined>> => {
  const token = session.credentials?.claude?.oauth_token
  return token === undefined
    ? {}
    : { ANTHROPIC_API_KEY: undefined, ANTHROPIC_AUTH_TOKEN: undefined, CLAUDE_CODE_OAUTH_TOKEN: token }
}

const commandOf = (
  session: Harness.SessionOptions,
  plan: ClaudeTools.Plan,
  file: string,
  launch: Dialect.Launch
): Command.Command => ({
  program: file,
  args: [
    "--print",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool=stdio",
    // Nobody here can answer a question that is not about permission.
    "--disallowedTools=AskUserQuestion",
    launch._tag === "Resume" ? `--resume=${launch.harnessSessionId}` : `--session-id=${randomUUID()}`,
    ...(session.model === undefined ? [] : [`--model=${session.model}`]),
    ...ClaudeTools.toArguments(plan)
  ],
  cwd: session.cwd,
  env: SessionEnvironment.changes(session, {
    ...(session.configDir === undefined ? {} : { CLAUDE_CONFIG_DIR: session.configDir }),
    ...signInVariables(session)
  }),
  maxLineBytes
})

/** Begins the exchange with a process that was just started. */
const handshake = (options: Options, session: Harness.SessionOptions, plan: ClaudeTools.Plan, program: InstalledProgram.Identified) =>
  Effect.fnUntraced(function*(peer: JsonlPeer.JsonlPeer, launch: Dialect.Launch) {
    const id = randomUUID()
    const answer = ClaudeWire.read(
      yield* peer.request(
        id,
        ClaudeWire.initialize(id, { system: session.system, gateTools: !plan.all }),
        options.handshakeTimeout ?? "60 seconds"
      )
    )
    if (answer.kind !== "control_response" || answer.record.response.subtype !== "success") {
      const error = answer.kind === "control_response" ? answer.record.response.error ?? "" : ""
      const why = `Claude Code refused to begin: ${session.redact(error).slice(0, 2048)}`
      return yield* (error.startsWith("Unsupported control request")
        ? InstalledProgram.otherProtocol(ClaudeProgram.description, why)
        : failed(Failure.make("HANDSHAKE_FAILED", why)))
    }
    return ClaudeConversation.initial({
      tools: plan,
      model: session.model,
      resumes: launch._tag === "Resume" ? launch.harnessSessionId : undefined,
      redact: session.redact,
      uuid: randomUUID,
      takesPromptsAsText: InstalledProgram.compareVersions(program.version, ClaudeProgram.takesPromptsAsText) >= 0,
      version: program.version,
      remarks: ClaudeHome.remarks(session)
    })
  })

/** Reads why a process that was just started refused to go on. */
const refused = (session: Harness.SessionOptions) => (evidence: Dialect.Evidence): HarnessError.HarnessError | undefined => {
  for (const item of evidence.received) {
    if (item._tag !== "Frame") continue
    const message = ClaudeWire.read(item.frame)
    if (message.kind === "control_request" && message.record.request.subtype === "initialize") {
      return Failures.echo(ClaudeProgram.description.product)
    }
    const errors = message.kind === "result" ? message.record.errors ?? [] : []
    if (evidence.launch._tag === "Resume" && errors.some((error) => error.startsWith("No conversation found"))) {
      return HarnessError.sessionLost(name, evidence.launch.harnessSessionId)
    }
    if (item.frame["startup_failure_reason"] === "config_file_invalid") {
      return failed(Failure.make("HANDSHAKE_FAILED", `Claude Code cannot read its configuration: ${session.redact(errors.join("\n")).slice(0, 2048)}`, {
        retryable: false,
        remedy: "Correct the named file, or move it away."
      }))
    }
  }
  if (evidence.launch._tag === "Resume" && evidence.stderr.includes("No conversation found")) {
    return HarnessError.sessionLost(name, evidence.launch.harnessSessionId)
  }
  if (/\bis already in use\b|\bis currently running\b/.test(evidence.stderr)) {
    return failed(Failure.make("SESSION_IN_USE", `Claude Code says: ${session.redact(evidence.stderr).trim().slice(0, 2048)}`))
  }
  return Failures.notReady(ClaudeProgram.description.product, evidence, session.redact)
}

const dialect = (
  options: Options,
  session: Harness.SessionOptions,
  plan: ClaudeTools.Plan,
  program: InstalledProgram.Identified
): Dialect.Dialect<ClaudeConversation.State> => ({
  harness: name,
  command: (launch) => Effect.sync(() => commandOf(session, plan, program.file, launch)),
  answers: ClaudeWire.answered,
  handshake: handshake(options, session, plan, program),
  refused: refused(session),
  prompt: ClaudeConversation.prompt,
  frame: ClaudeConversation.frame,
  needed: ClaudeWire.needed,
  interrupt: ClaudeConversation.interrupt,
  died: () => undefined,
  hasOwnTurns: true,
  oneTurnPerProcess: false,
  endOfInput: "3 seconds"
})

/** Makes the harness. Its sessions start their process through the supervisor. */
export const make = (options: Options = {}): Effect.Effect<Harness.Harness, never, Supervisor.Supervisor> =>
  InstalledHarness.make({
    capabilities,
    program: ClaudeProgram.description,
    credentials: "claude",
    plan: planned,
    dialect: (session, plan, program) => dialect(options, session, plan, program),
    findings: ClaudeHome.findings
  })
