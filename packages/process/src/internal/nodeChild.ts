/**
 * The one place where a supervised program is started.
 *
 * `node:child_process` is used directly and not `effect/process`: supervision
 * needs file descriptors beyond the third, the exit code and the signal as the
 * system reports them, an exit that does not wait for the process group
 * (zombies count there, and not every pid 1 collects them), and reads the pid
 * in the same turn of the event loop in which it came to be.
 *
 * On Linux the parent-death signal of the containment is bound to the *thread*
 * that starts the process. Never call this from a Worker.
 */
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn, type StdioOptions } from "node:child_process"
import type { Duplex, Readable, Writable } from "node:stream"
import { isMainThread } from "node:worker_threads"

export interface NodeChild {
  readonly process: ChildProcess
  readonly pid: number
  readonly stdin: Writable
  readonly stdout: Readable
  /** What the outermost program writes to its standard error. */
  readonly stderr: Readable
  /** File descriptor 3, readable and writable. */
  readonly control: Duplex
  /** File descriptor 4, readable, where it was asked for. */
  readonly fourth: Readable | undefined
}

export interface SpawnFault {
  /** The system's name of the error, such as `E2BIG`. */
  readonly code: string
  readonly detail: string
}

const fault = (error: unknown): SpawnFault => {
  const { code, message } = error as NodeJS.ErrnoException
  return { code: code ?? "UNKNOWN", detail: message }
}

/** Whether processes may be started from this thread. */
export const onMainThread = (): boolean => isMainThread

/**
 * Starts a program without a shell, as the leader of a session and process
 * group of its own. Completes when the program is being executed.
 */
export const start = (
  argv: readonly [string, ...Array<string>],
  options: { readonly cwd: string; readonly env: Record<string, string>; readonly fourth: boolean }
): Effect.Effect<NodeChild, SpawnFault> =>
  Effect.callback<NodeChild, SpawnFault>((resume) => {
    const stdio: StdioOptions = options.fourth ? ["pipe", "pipe", "pipe", "pipe", "pipe"] : ["pipe", "pipe", "pipe", "pipe"]
    let child: ChildProcess
    try {
      // Throws for E2BIG and the like, emits "error" for others; Deno emits where Node throws.
      child = spawn(argv[0], argv.slice(1), { cwd: options.cwd, env: options.env, detached: true, stdio })
    } catch (error) {
      resume(Effect.fail(fault(error)))
      return
    }
    let settled = false
    child.on("error", (error) => {
      // After the start this event says that a signal could not be sent, which `kill` reports by itself.
      if (!settled) {
        settled = true
        resume(Effect.fail(fault(error)))
      }
    })
    child.once("spawn", () => {
      if (settled) return
      settled = true
      resume(Effect.succeed({
        process: child,
        pid: child.pid!,
        stdin: child.stdin!,
        stdout: child.stdout!,
        stderr: child.stderr!,
        control: child.stdio[3] as Duplex,
        fourth: options.fourth ? child.stdio[4] as Readable : undefined
      }))
    })
  }).pipe(Effect.uninterruptible)

export type KillOutcome = "sent" | "gone" | "refused"

/** Sends a signal; a negative pid means the process group. */
export const kill = (pid: number, signal: NodeJS.Signals): KillOutcome => {
  try {
    process.kill(pid, signal)
    return "sent"
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM" ? "refused" : "gone"
  }
}
