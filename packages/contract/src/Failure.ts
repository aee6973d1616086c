/**
 * What went wrong, in words that leave the process.
 *
 * Every failure that a caller can meet has one code here. Codes are stable: a
 * code's meaning never changes, new codes are added. `docs/errors.md` has a
 * section for each, and a test compares the two.
 */
import * as Schema from "effect/Schema"
import { Count, Json, NonEmptyString } from "./Scalars.ts"

interface CodeFacts {
  /** Whether the same request may succeed later without a change by the caller. */
  readonly retryable: boolean
  /** What the caller can do, as a sentence. */
  readonly remedy: string
}

/**
 * All failure codes, with what holds for each unless an occurrence says
 * otherwise. The order is that of the documentation: input, start, session,
 * harness, model, ending, output.
 */
export const codes = {
  USAGE: { retryable: false, remedy: "Correct the command line; `turnpike --help` lists what it takes." },
  INVALID_SPEC: { retryable: false, remedy: "Correct the named field; `turnpike schema agent-run-spec` prints the contract." },
  EMPTY_TASK: { retryable: false, remedy: "Give a task: as an argument, with --task, with --task-file, or on standard input with -." },
  FILE_UNREADABLE: { retryable: false, remedy: "Check that the file exists and may be read." },
  NOT_AVAILABLE: { retryable: false, remedy: "Leave the field out; this version of Turnpike does not have that part." },
  NODE_TOO_OLD: { retryable: false, remedy: "Install Node 22.19 or later." },
  DATA_DIR_UNUSABLE: { retryable: false, remedy: "Choose a writable directory with --data-dir or TURNPIKE_HOME." },
  HARNESS_UNKNOWN: { retryable: false, remedy: "Choose one of the harnesses that `turnpike doctor` lists." },
  HARNESS_NOT_FOUND: { retryable: false, remedy: "Install the harness's program or name it with --program; `turnpike doctor` says what is missing." },
  HARNESS_NOT_A_HARNESS: { retryable: false, remedy: "Name the harness's own program with --program; the given one does not speak its protocol." },
  SPAWN_FAILED: { retryable: false, remedy: "Check that the program exists, may be executed, and is built for this machine." },
  CONTAINMENT_UNAVAILABLE: { retryable: false, remedy: "Choose another containment; `turnpike doctor` lists those that work here." },
  UNSUPPORTED: { retryable: false, remedy: "Leave the option out or choose a harness that has it; the capability table lists them." },
  SESSION_UNKNOWN: { retryable: false, remedy: "Check the session id, or leave --resume out to begin a new session." },
  SESSION_BUSY: { retryable: true, remedy: "Wait until the holder's run has ended, or use another session." },
  SESSION_LOST: { retryable: false, remedy: "The harness no longer has this session. Use --resume replay to tell its history to a new one, or --resume fresh to go on without it." },
  SESSION_IN_USE: { retryable: false, remedy: "The harness says that another process uses this session. End that process or use another session." },
  SESSION_MISMATCH: { retryable: false, remedy: "Continue the session with the harness and directory it was begun with." },
  SESSION_EXISTS: { retryable: false, remedy: "Choose another session id, or delete the session that has this one." },
  SESSION_DAMAGED: { retryable: false, remedy: "Nothing was changed. `turnpike sessions repair` shows what can be saved; restore the rest from a copy." },
  FORMAT_UNSUPPORTED: { retryable: false, remedy: "Update Turnpike: the session was written by a later version." },
  KEY_CONFLICT: { retryable: false, remedy: "Use another idempotency key: this one was used with other content." },
  LOG_RULE: { retryable: false, remedy: "This is a bug in Turnpike or in a plugin. Please report it with the message." },
  STORE_FAILED: { retryable: true, remedy: "Check the data directory or the database; what was acknowledged before is kept." },
  STORE_FULL: { retryable: true, remedy: "Free space where the sessions are stored; what was acknowledged before is kept." },
  HANDSHAKE_FAILED: { retryable: true, remedy: "Run the harness's program by hand to see why it does not start." },
  HARNESS_FAILED: { retryable: false, remedy: "Read the message; it carries the end of the harness's own output." },
  HARNESS_IO: { retryable: true, remedy: "The connection to the harness's process broke. Run again; the session can be continued." },
  HARNESS_PROTOCOL: { retryable: false, remedy: "The harness said something that Turnpike does not understand. Check its version with `turnpike doctor`." },
  NO_TERMINAL: { retryable: true, remedy: "The harness stopped without saying how its turn ended. Run again; what it did is in the session log." },
  EMPTY_RESPONSE: { retryable: true, remedy: "The harness ended its turn without an answer and without work. Run again or rephrase the task." },
  PREEMPTED: { retryable: true, remedy: "The turn was replaced by a more urgent one. Send the prompt again." },
  INVALID_CREDENTIAL: { retryable: false, remedy: "Sign in to the harness or give it a valid key; `turnpike doctor` says how." },
  PERMISSION_DENIED: { retryable: false, remedy: "The account may not use this model or service. Use another account or model." },
  QUOTA: { retryable: false, remedy: "The account has no credit left. Add credit or use another account." },
  RATE_LIMIT: { retryable: true, remedy: "Too many requests. Wait (see retry_after_ms) and run again." },
  OVERLOADED: { retryable: true, remedy: "The model's service is overloaded. Wait and run again." },
  SERVER: { retryable: true, remedy: "The model's service failed. Wait and run again." },
  TRANSPORT: { retryable: true, remedy: "The model's service could not be reached or the connection broke. Check the network and run again." },
  TIMEOUT: { retryable: true, remedy: "The model's service did not answer in time. Run again." },
  CONTEXT_WINDOW_EXCEEDED: { retryable: false, remedy: "The conversation is longer than the model takes. Shorten the task or begin a new session." },
  INVALID_REQUEST: { retryable: false, remedy: "The model's service refused the request as malformed. Check model and options." },
  MODEL_NOT_FOUND: { retryable: false, remedy: "Choose another model with --model." },
  MAX_TOKENS: { retryable: false, remedy: "The answer was cut at the model's output limit. Ask for less at a time." },
  MAX_TURNS: { retryable: false, remedy: "The harness reached its limit of model calls. Raise the limit or split the task." },
  REFUSAL: { retryable: false, remedy: "The model refused. Rephrase the task." },
  BLOCKED: { retryable: false, remedy: "A policy rejected the prompt before it reached the model." },
  POLICY_VIOLATION: { retryable: false, remedy: "The harness used a tool that the allow-list forbids; the turn was stopped. Check the harness's settings." },
  CHANNEL_LOST: { retryable: true, remedy: "The channel closed while the turn needed it. Reconnect and run again." },
  BACKGROUND_KILLED: { retryable: false, remedy: "Tasks were still running when the harness went away. Use --background kill to accept that." },
  INTERRUPTED: { retryable: true, remedy: "The turn was cut off by a crash. Run again; what it did is in the session log." },
  TIME_LIMIT: { retryable: true, remedy: "The run reached the caller's time limit. Raise --timeout or split the task." },
  SILENCE: { retryable: true, remedy: "The harness was silent for longer than the caller allows. Run again." },
  BUDGET: { retryable: false, remedy: "The run used up the caller's budget. Raise the limit or split the task." },
  CANCELLED: { retryable: true, remedy: "The run was cancelled. Run again to continue." },
  RESULT_UNWRITABLE: { retryable: false, remedy: "Choose a writable path with --result-file, or leave it out to get the result on standard output." },
  OUTPUT_CLOSED: { retryable: true, remedy: "The reader of standard output went away. Keep it open until the result event." },
  INTERNAL: { retryable: false, remedy: "This is a bug in Turnpike. Please report it with the message." }
} as const satisfies Record<string, CodeFacts>

export type FailureCode = keyof typeof codes

/** Codes that say that the caller's words were wrong, and not the world. */
const usageCodes: ReadonlySet<FailureCode> = new Set([
  "USAGE",
  "INVALID_SPEC",
  "EMPTY_TASK",
  "NOT_AVAILABLE",
  "HARNESS_UNKNOWN"
] as const)

/**
 * Returns the exit code of `turnpike` where a failure ends it before a run's
 * first event. Later the verdict decides: see `Verdict.consequences`.
 */
export const exitCodeBeforeStart = (code: FailureCode): 1 | 2 => usageCodes.has(code) ? 2 : 1

const codeNames = Object.keys(codes) as ReadonlyArray<FailureCode>

export const FailureCode = Schema.Literals(codeNames as readonly [FailureCode, ...Array<FailureCode>]).annotate({
  identifier: "FailureCode",
  description: "The stable code of a failure. A code's meaning never changes; docs/errors.md has a section for each."
})

/** One failure: what happened, whether trying again can help, and what to do. */
export const Failure = Schema.Struct({
  code: FailureCode,
  message: NonEmptyString.annotateKey({
    description: "What happened and what is still true, as a sentence. Carries no credential; long text is cut."
  }),
  retryable: Schema.Boolean.annotateKey({
    description: "Whether the same request may succeed later without a change by the caller."
  }),
  remedy: NonEmptyString.annotateKey({ description: "What to do, as a sentence." }),
  http_status: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 599 }))).annotateKey({
    description: "The HTTP status that the model's service answered with, where the harness tells it."
  }),
  retry_after_ms: Schema.optionalKey(Count).annotateKey({
    description: "Milliseconds to wait before trying again, where the service named a time."
  }),
  data: Schema.optionalKey(Json).annotateKey({ description: "Facts of this occurrence, free-form." })
}).annotate({
  identifier: "Failure",
  description: "What went wrong: a stable code, a sentence, whether trying again can help, and what to do."
})
export type Failure = typeof Failure.Type

/** Makes a failure with the code's own remedy and retryability; `facts` override them. */
export const make = (
  code: FailureCode,
  message: string,
  facts: Partial<Omit<Failure, "code" | "message">> = {}
): Failure => ({ code, message, retryable: codes[code].retryable, remedy: codes[code].remedy, ...facts })
