/**
 * One process of the machine, as the operating system's process table shows it.
 *
 * `pid` alone names a process only while it lives: numbers are used again.
 * `pid` and `started` together do not repeat until the next boot.
 */
export interface ProcessInfo {
  /** As the namespace of this process numbers it. */
  readonly pid: number
  readonly parentPid: number
  /** Clock ticks (1/100 s on Linux) since boot; on other systems seconds since 1970. */
  readonly started: number
  /**
   * Its command line, arguments separated by spaces, else its name in brackets.
   * Passed through the supervisor's `redact`, then bounded to 256 characters.
   */
  readonly command: string
  /** Whether it is in the process group of the command's own first process. */
  readonly insideGroup: boolean
  readonly foundBy: Evidence
}

/**
 * How it is known to descend from the command: a chain of parents, the owner
 * tag in its environment, its process group or session, a pipe that it shares
 * with the command, or that it was seen as a descendant earlier.
 */
export type Evidence = "parent" | "tag" | "group" | "pipe" | "seen"

const commandCharacters = 256

/** A command line as a report shows it: redacted first, then bounded; no character is cut in two. */
export const shownCommand = (command: string, redact: (text: string) => string): string => {
  const whole = redact(command)
  if (whole.length <= commandCharacters) return whole
  const cut = whole.slice(0, commandCharacters)
  return /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut
}

/** Names a process for good: no two processes since boot have the same. */
export const identity = (process: { readonly pid: number; readonly started: number }): string => `${process.pid}:${process.started}`
