/**
 * Why a process could not be started or talked to.
 *
 * One family; `reason` says which. A process that ran and failed is not in it:
 * that is its `exit`.
 */
import * as Schema from "effect/Schema"

/** No file of this name can be executed: the path is wrong or no directory of PATH has it. */
export class ProgramNotFound extends Schema.TaggedError<ProgramNotFound>()("ProgramNotFound", {
  program: Schema.String,
  searched: Schema.Array(Schema.String)
}) {
  override get message() {
    return this.searched.length === 0
      ? `there is no program ${this.program}; check the path`
      : `there is no program ${this.program} in PATH (${this.searched.join(":")}); install it or give its full path`
  }
}

/** The file exists and cannot be executed. */
export class ProgramNotExecutable extends Schema.TaggedError<ProgramNotExecutable>()("ProgramNotExecutable", {
  program: Schema.String,
  why: Schema.String
}) {
  override get message() {
    return `${this.program} cannot be executed: ${this.why}`
  }
}

/** The program's directory to run in is not a directory that can be entered. */
export class DirectoryUnusable extends Schema.TaggedError<DirectoryUnusable>()("DirectoryUnusable", {
  program: Schema.String,
  cwd: Schema.String,
  why: Schema.String
}) {
  override get message() {
    return `${this.program} cannot run in ${this.cwd}: ${this.why}; create the directory or name another`
  }
}

/** Arguments and environment exceed what the operating system passes to a program. */
export class ArgumentsTooLong extends Schema.TaggedError<ArgumentsTooLong>()("ArgumentsTooLong", {
  program: Schema.String,
  argumentBytes: Schema.Int,
  environmentBytes: Schema.Int
}) {
  override get message() {
    return `the system refused ${this.argumentBytes} bytes of arguments and ${this.environmentBytes} of environment for ${this.program}; `
      + "pass long text on standard input or in a file (one argument holds at most 128 KiB on Linux)"
  }
}

/** A part of the command that no program can be given. */
export class InvalidCommand extends Schema.TaggedError<InvalidCommand>()("InvalidCommand", {
  program: Schema.String,
  field: Schema.String,
  why: Schema.String
}) {
  override get message() {
    return `the command ${JSON.stringify(this.program)} is not valid: ${this.field} ${this.why}`
  }
}

/** The containment that was asked for does not work here. Nothing was started. */
export class ContainmentUnavailable extends Schema.TaggedError<ContainmentUnavailable>()("ContainmentUnavailable", {
  strategy: Schema.String,
  why: Schema.String,
  remedy: Schema.String
}) {
  override get message() {
    return `containment ${this.strategy} is not available here: ${this.why}; ${this.remedy}`
  }
}

/** The containment could not be set up for this one process. The program did not run. */
export class ContainmentFailed extends Schema.TaggedError<ContainmentFailed>()("ContainmentFailed", {
  strategy: Schema.String,
  program: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `containment ${this.strategy} could not be set up, so ${this.program} was not started: ${this.detail}`
  }
}

/**
 * The program was not started for a reason without a name of its own here: the
 * system's, or `ECANCELED` where the supervisor's own scope has ended.
 */
export class SpawnRefused extends Schema.TaggedError<SpawnRefused>()("SpawnRefused", {
  program: Schema.String,
  code: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    const remedy = this.code === "EAGAIN" || this.code === "ENOMEM" || this.code === "EMFILE" || this.code === "ENFILE"
      ? "; the machine or its limits (ulimit -u, ulimit -n) are exhausted"
      : ""
    return this.code === "ECANCELED"
      ? `${this.program} was not started: ${this.detail}`
      : `the system refused to start ${this.program} (${this.code}: ${this.detail})${remedy}`
  }
}

/** The process no longer reads its standard input: it closed it, has exited, or `end` was called. What was not read is lost. */
export class InputClosed extends Schema.TaggedError<InputClosed>()("InputClosed", {
  program: Schema.String,
  pid: Schema.Int,
  why: Schema.String
}) {
  override get message() {
    return `${this.program} (pid ${this.pid}) no longer reads its input: ${this.why}`
  }
}

/** The output has one reader, and had it already. */
export class OutputTaken extends Schema.TaggedError<OutputTaken>()("OutputTaken", {
  program: Schema.String,
  pid: Schema.Int
}) {
  override get message() {
    return `the output of ${this.program} (pid ${this.pid}) has been read by another reader; run \`lines\` once and share its elements`
  }
}

/** Reading the output failed, though the process may be alive. */
export class OutputFailed extends Schema.TaggedError<OutputFailed>()("OutputFailed", {
  program: Schema.String,
  pid: Schema.Int,
  detail: Schema.String
}) {
  override get message() {
    return `reading the output of ${this.program} (pid ${this.pid}) failed: ${this.detail}`
  }
}

/** This operating system cannot do it. */
export class PlatformUnsupported extends Schema.TaggedError<PlatformUnsupported>()("PlatformUnsupported", {
  platform: Schema.String,
  what: Schema.String
}) {
  override get message() {
    return `${this.what} is not supported on ${this.platform}; run Turnpike on Linux, on macOS, or in WSL`
  }
}

export const Reason = Schema.Union([
  ProgramNotFound,
  ProgramNotExecutable,
  DirectoryUnusable,
  ArgumentsTooLong,
  InvalidCommand,
  ContainmentUnavailable,
  ContainmentFailed,
  SpawnRefused,
  InputClosed,
  OutputTaken,
  OutputFailed,
  PlatformUnsupported
])
export type Reason = typeof Reason.Type

/** Recover from one reason with `Effect.catchReason("ProcessError", "ProgramNotFound", …)`. */
export class ProcessError extends Schema.TaggedError<ProcessError>()("ProcessError", { reason: Reason }) {
  override get message() {
    return this.reason.message
  }
}

/** Makes the error of a reason. */
export const fromReason = (reason: Reason): ProcessError => new ProcessError({ reason })
