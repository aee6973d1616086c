/**
 * A supervised process as its owner sees it.
 *
 * It belongs to the scope that spawned it. The scope's end closes it: within a
 * bound nothing that descends from it is alive, or is listed as a survivor.
 */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Strategy } from "./Containment.ts"
import type { Line } from "./Line.ts"
import type { ProcessError } from "./ProcessError.ts"
import type { ProcessInfo } from "./ProcessInfo.ts"

/**
 * How the program's own first process ended. In a namespace the system's word
 * arrives as a shell's status: 128 + n stands for death by signal n, and for an
 * exit with that code. Then both `code` and `signal` are set, and nothing outside
 * can tell which it was; otherwise exactly one is.
 */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** One step of asking a process to end: the signal, and how long its effect is waited for. */
export interface Rung {
  readonly signal: NodeJS.Signals
  readonly waitMs: number
}

export type Ladder = ReadonlyArray<Rung>

/** INT for 2 s, TERM for 2 s; then KILL. */
export const defaultLadder: Ladder = [
  { signal: "SIGINT", waitMs: 2000 },
  { signal: "SIGTERM", waitMs: 2000 }
]

export interface Termination {
  /** The rung after which the program ended; `null` when it had ended before the first. */
  readonly endedBy: NodeJS.Signals | null
  /** `undefined` when even KILL did not end it within its bound. */
  readonly exit: ProcessExit | undefined
}

/** What had to be done to leave nothing behind. All lists are in the order of discovery. */
export interface KillReport {
  /**
   * Those that were alive and were killed. `killBornSince` lists those too that ended on
   * its TERM; `close` does not list those of the program's group that ended on a signal of
   * the ladder before KILL, since nothing tells them from those that the program ended.
   */
  readonly killed: ReadonlyArray<ProcessInfo>
  /** Those that are alive all the same: not ours to signal (another user's, through sudo), or stuck in the kernel. */
  readonly survivors: ReadonlyArray<ProcessInfo>
}

export interface CloseReport extends KillReport {
  /** How the program itself ended; `undefined` when it is among the survivors. */
  readonly exit: ProcessExit | undefined
  /**
   * Processes that may descend from the command, though nothing proves it: this
   * user's, younger than the command, without a living parent, and no other
   * supervisor's. They were not touched. Always empty in a namespace.
   */
  readonly suspects: ReadonlyArray<ProcessInfo>
  /** Whether others than the program held its standard output open, so that it was read without its end. */
  readonly outputHeld: boolean
}

/** Names the descendants that were alive at a moment. */
export interface Mark {
  readonly alive: ReadonlySet<string>
}

/**
 * The last of what the program wrote to standard error, unredacted. Redact it,
 * then bound it to what is shown: a cut may split a credential, so ask for a
 * larger tail than that.
 */
export interface ErrorTail {
  readonly bytes: Uint8Array
  /** The bytes as UTF-8 from the first whole character on, with U+FFFD for what is none. */
  readonly text: string
  /** All that was written, also what is no longer held. */
  readonly totalBytes: number
}

export interface Input {
  /**
   * Writes bytes, or text as UTF-8. Completes when the system has taken all of
   * it, so a process that does not read stops its writer. Writes happen in the
   * order in which they were begun; an interrupted one may have been written.
   * Fails with `InputClosed` when the process will never read it.
   */
  readonly write: (content: Uint8Array | string) => Effect.Effect<void, ProcessError>
  /** Writes text and an LF. */
  readonly writeLine: (text: string) => Effect.Effect<void, ProcessError>
  /** Gives the process the end of its input, after what was written. Does nothing the second time. */
  readonly end: Effect.Effect<void>
}

export interface Child {
  /**
   * The process that the supervisor started, as our namespace numbers it: the
   * program itself with `group`, else the containment's outermost process.
   */
  readonly pid: number
  readonly strategy: Strategy
  /** The absolute path of the program. */
  readonly program: string
  readonly stdin: Input
  /**
   * Standard output. It has one reader, once. The reading is what lets the process
   * go on: unread output stops it. Ends when the output does, or, when the program
   * has ended and descendants still hold the pipe, after a second of silence or
   * another MiB.
   */
  readonly lines: Stream.Stream<Line, ProcessError>
  /** Standard output as bytes, in pieces as they were read, for protocols without lines. In place of `lines`, and by the same rules. */
  readonly bytes: Stream.Stream<Uint8Array, ProcessError>
  readonly stderr: Effect.Effect<ErrorTail>
  /** Waits until the program's own first process has ended, whoever else is alive. */
  readonly exit: Effect.Effect<ProcessExit>
  /** The program's own first process while it lives, with its pid as our namespace numbers it. */
  readonly leader: Effect.Effect<ProcessInfo | undefined>
  /** Signals the program's process group; answers whether there was one to signal. */
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<boolean>
  /**
   * Ends the program: each rung's signal goes to its process group only if the rung
   * before did not end it, and KILL comes last, for at most 5 s. Descendants outside
   * the group stay until `close`.
   */
  readonly terminate: (ladder?: Ladder) => Effect.Effect<Termination>
  /** All living descendants but the program's own first process. */
  readonly descendants: Effect.Effect<ReadonlyArray<ProcessInfo>>
  readonly mark: Effect.Effect<Mark>
  /**
   * Ends the descendants that came to be after `mark`, but those that `spare`
   * keeps, and never the program itself: TERM, at most `graceMs` (1 s), KILL, at
   * most 2 s. Ones that appear meanwhile are included.
   */
  readonly killBornSince: (
    mark: Mark,
    options?: { readonly spare?: (process: ProcessInfo) => boolean; readonly graceMs?: number }
  ) => Effect.Effect<KillReport>
  /**
   * Ends the program by its `closeLadder` and kills all that descends from it.
   * Cannot be interrupted; bounded by the ladder and about 10 s. The second call answers
   * the first one's report. The scope's end does it, too.
   */
  readonly close: Effect.Effect<CloseReport>
}
