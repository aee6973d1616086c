/**
 * A program or library that runs an agent: the door through which every
 * adapter comes in, ours and a stranger's.
 */
import type { AgentRunResult, AgentRunSpec, Capabilities, Failure, Scalars, TurnEvent } from "@turnpike/contract"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { AgentSession } from "./AgentSession.ts"
import type * as HarnessError from "./HarnessError.ts"
import * as Permission from "./Permission.ts"
import type { Prompt } from "./Prompt.ts"
import * as Redaction from "./Redaction.ts"
import * as ToolAllowlist from "./ToolAllowlist.ts"
import type { TurnError } from "./TurnError.ts"

/** What to continue. */
export interface Resume {
  /** The harness's own id, as its `session/bound` named it; `undefined` where it has none for this conversation, which counts as lost. */
  readonly harnessSessionId: string | undefined
  /**
   * What to do when the harness no longer has it: `fail`; `fresh`, go on without the
   * history, announced by a `fresh_session` notice; `replay`, tell it to a new session
   * with its first prompt, announced by a `replayed` notice.
   */
  readonly onLost: "fail" | "fresh" | "replay"
  /** For `replay`: what a new session is told of the conversation so far. Asked for when it is needed. */
  readonly history?: Effect.Effect<string | undefined>
}

/** What a session is opened with. Each option is honoured or refused; none is dropped. */
export interface SessionOptions {
  readonly sessionId: Scalars.SessionId
  readonly resume: Resume | undefined
  /** An existing directory, absolute. */
  readonly cwd: string
  readonly model: string | undefined
  /** Instructions added to the harness's own. */
  readonly system: string | undefined
  readonly tools: ToolAllowlist.ToolAllowlist
  readonly permission: Permission.Decider
  /** The caller's environment. Marks of an enclosing agent are removed before a child sees it. */
  readonly inheritedEnv: Readonly<Record<string, string>>
  /** Variables of the caller's choice. They win over everything. */
  readonly env: Readonly<Record<string, string>>
  readonly credentials: AgentRunSpec.Credentials | undefined
  /** The harness's program: a path or a name to be found; absent means the harness's own search. */
  readonly program: string | undefined
  /** A directory of the session's own for the harness's settings; absent means the user's settings. */
  readonly configDir: string | undefined
  /** Removes credentials from text that leaves the process. */
  readonly redact: Redaction.Redactor
}

/**
 * Options with the careful choices for whatever is not given: a new session,
 * reading and searching only, permissions denied, nothing inherited, the
 * harness's own program, settings and model, the usual shapes of credentials
 * redacted.
 */
export const options = (
  given: Pick<SessionOptions, "sessionId" | "cwd"> & Partial<SessionOptions>
): SessionOptions => ({
  resume: undefined,
  model: undefined,
  system: undefined,
  tools: ToolAllowlist.readOnlyDefault,
  permission: Permission.deny,
  inheritedEnv: {},
  env: {},
  credentials: undefined,
  program: undefined,
  configDir: undefined,
  redact: Redaction.shapes,
  ...given
})

/** What was found when a session was closed. */
export interface CloseReport {
  /** Processes other than the harness's own that had to be killed. */
  readonly killed: ReadonlyArray<AgentRunResult.ProcessInfo>
  /** Processes that could not be killed. */
  readonly survivors: ReadonlyArray<AgentRunResult.ProcessInfo>
  /** Declared tasks that were still running. */
  readonly backgroundKilled: ReadonlyArray<TurnEvent.BackgroundTask>
  /** What went wrong while closing, in sentences. It never changes a verdict. */
  readonly problems: ReadonlyArray<string>
}

export const nothingFound: CloseReport = { killed: [], survivors: [], backgroundKilled: [], problems: [] }

/** A session of a harness, with its process. */
export interface HarnessSession extends AgentSession {
  /**
   * Puts a message into the running turn, which the agent reads at its next model
   * call. Answers whether the harness has taken it: `false` where no turn runs, or
   * where it is not known within 10 s. It never begins a turn. Absent where the
   * capability `steering` is `unsupported`.
   */
  readonly steer?: (message: Prompt) => Effect.Effect<boolean>
  /**
   * Calls with each turn that the harness begins by itself while no prompt's turn is
   * open, from now on, until the scope closes. It has one ending, as that of a prompt,
   * and prompts wait until it is read to its end; a reader that leaves before cuts it
   * off. One listener counts, the last. Where nobody listens, what such a turn says
   * becomes notices of the next prompt's turn. Absent where the harness does no such thing.
   */
  readonly onOwnTurn?: (
    listener: (events: Stream.Stream<TurnEvent.TurnEvent, TurnError>) => Effect.Effect<void>
  ) => Effect.Effect<void, never, Scope.Scope>
  /** Completes when no declared background task runs any more; at once where there are none. */
  readonly backgroundDone: Effect.Effect<void>
  /**
   * Ends the session and everything that it started, within a bound, and says
   * what was found. Later calls return the same report. The scope that opened
   * the session closes it too.
   */
  readonly close: Effect.Effect<CloseReport>
}

/** One line of `doctor`. */
export interface Finding {
  readonly level: "ok" | "warning" | "problem"
  /** What was found, as a sentence. */
  readonly message: string
  /** What to type or do next. */
  readonly remedy?: string
  /** What a session would fail with for this reason, where that is known. */
  readonly code?: Failure.FailureCode
}

/** What is known of a harness on this machine, without starting a turn or spending a token. */
export interface Diagnosis {
  readonly harness: string
  /** Whether a run can be tried. */
  readonly usable: boolean
  readonly program?: string
  readonly version?: string
  readonly findings: ReadonlyArray<Finding>
}

/** Where and how to look for a harness's program. */
export type DiagnosisOptions = Pick<SessionOptions, "program" | "inheritedEnv" | "cwd">

/** What a harness would run. */
export interface Checked {
  /** The program's path, where there is one. */
  readonly program?: string
  readonly version?: string
}

export interface Harness {
  readonly name: string
  readonly capabilities: Capabilities.Capabilities
  /**
   * Refuses what cannot be honoured, before anything runs: an option, a missing
   * program, a program that is something else. It begins no session and spends
   * no token; asking the program for its version is allowed.
   */
  readonly check: (options: SessionOptions) => Effect.Effect<Checked, HarnessError.HarnessError>
  /** Opens a session. When it fails or is interrupted nothing is left running. */
  readonly open: (options: SessionOptions) => Effect.Effect<HarnessSession, HarnessError.HarnessError, Scope.Scope>
  readonly diagnose: (options: DiagnosisOptions) => Effect.Effect<Diagnosis>
}
