/** What to run, and how. Never a shell's text: each argument arrives as it is. */
import type { Ladder } from "./Child.ts"
import type { Variables } from "./ChildEnvironment.ts"
import type { Strategy } from "./Containment.ts"

export interface Command {
  /** A path, or a name that is looked for in the PATH of the command's environment. */
  readonly program: string
  readonly args?: ReadonlyArray<string>
  /** An existing directory; relative paths are taken from this process's own. */
  readonly cwd: string
  /** Changes to the cleaned environment: a value sets, `undefined` removes. */
  readonly env?: Variables
  /** Else the supervisor's default. One that does not work here is refused, not replaced. */
  readonly containment?: Strategy
  /** The longest line of standard output that is kept, in bytes; 32 MiB unless given, at most 256 MiB. */
  readonly maxLineBytes?: number
  /** How much of the end of standard error is kept, in bytes; 64 KiB unless given. */
  readonly stderrTailBytes?: number
  /** How the program is asked to end when it is closed while it runs; TERM for 2 s unless given. KILL follows always. */
  readonly closeLadder?: Ladder
}

export const defaultCloseLadder: Ladder = [{ signal: "SIGTERM", waitMs: 2000 }]
export const defaultStderrTailBytes = 64 * 1024
export const largestLineBytes = 256 * 1024 * 1024
