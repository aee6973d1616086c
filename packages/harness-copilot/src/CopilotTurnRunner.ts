/**
 * Runs each turn as a process of its own, `copilot -p …`, contained like every
 * process here.
 *
 * Its input is at its end from the start, both outputs are drained while it
 * runs, and what it leaves behind is killed with it. Firing the slot kills the
 * child by its handle, never by a number that might belong to another by then.
 */
import { Failures } from "@turnpike/harness"
import { Redaction } from "@turnpike/kernel"
import type { Child, Command, ProcessError } from "@turnpike/process"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import type { PreemptSlot } from "./PreemptSlot.ts"
import * as TurnRunner from "./TurnRunner.ts"

/** The largest answer, in bytes: 64 MiB. A program that says more is stopped. */
export const maxOutputBytes = 64 * 1024 * 1024

export interface Options {
  /** The program: the native one, because npm's loader does not pass on signals. */
  readonly program: string
  /** An existing directory. */
  readonly cwd: string
  /** Changes to the environment. */
  readonly env?: Command.Command["env"]
  readonly slot: PreemptSlot
  readonly spawn: (command: Command.Command) => Effect.Effect<Child.Child, ProcessError.ProcessError, Scope.Scope>
  /** Takes credentials out of a failure's text, before it is cut. An answer is not touched. Nothing is taken out unless given. */
  readonly redact?: Redaction.Redactor
  /** How much of the output's end a failure's text carries, in bytes: 2048 unless given; 0 for none. */
  readonly tailBytes?: number
}

interface Ended {
  readonly exit: Child.ProcessExit
  readonly stdout: Buffer
  readonly stderr: Child.ErrorTail
}

/** Tells of a turn whose process failed: how it ended, how much it had said, and the redacted end of that. */
export const failureText = (
  { exit, stderr, stdout }: Ended,
  { redact = (text: string) => text, tailBytes = Redaction.defaultTailBytes }: Pick<Options, "redact" | "tailBytes">
): string => {
  const head = `copilot turn failed: it ${Failures.describeExit(exit)} (${stdout.length + stderr.totalBytes} bytes of output)`
  const tail = Redaction.tail(redact(stdout.toString("utf8") + stderr.text), tailBytes)
  return tail.trim() === "" ? head : `${head}: ${tail.trim()}`
}

export const make = (options: Options): TurnRunner.TurnRunner => {
  const drain = (child: Child.Child) =>
    Effect.gen(function*() {
      const parts: Array<Uint8Array> = []
      let bytes = 0
      yield* Stream.runForEach(child.bytes, (part) =>
        Effect.suspend(() => {
          parts.push(part)
          bytes += part.length
          return bytes > maxOutputBytes
            ? Effect.fail(TurnRunner.failed(`copilot turn failed: it wrote more than ${maxOutputBytes} bytes and was stopped`, undefined))
            : Effect.void
        }))
      return Buffer.concat(parts)
    })

  const run = (argv: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const fired = yield* options.slot.arm
      const preempted = Effect.andThen(fired, Effect.fail(TurnRunner.interrupted()))
      const child = yield* options.spawn({
        program: options.program,
        args: argv,
        cwd: options.cwd,
        ...(options.env === undefined ? {} : { env: options.env }),
        // What is pre-empted is to be gone, not asked.
        closeLadder: []
      })
      return yield* Effect.gen(function*() {
        yield* child.stdin.end
        const stdout = yield* drain(child)
        const exit = yield* child.exit
        const ended: Ended = { exit, stdout, stderr: yield* child.stderr }
        if (exit.code === 0) return stdout.toString("utf8")
        yield* Effect.logDebug("a copilot turn failed").pipe(Effect.annotateLogs({
          status: Failures.describeExit(exit),
          stdout_length: stdout.length,
          stderr_length: ended.stderr.totalBytes,
          output: (options.redact ?? ((text: string) => text))(stdout.toString("utf8") + ended.stderr.text)
        }))
        return yield* TurnRunner.failed(failureText(ended, options), exit.code)
      }).pipe(Effect.raceFirst(preempted), Effect.ensuring(child.close))
    }).pipe(
      Effect.mapError((error) =>
        error._tag === "ProcessError"
          ? TurnRunner.failed(`copilot turn failed: ${(options.redact ?? ((text: string) => text))(error.message)}`, undefined, error)
          : error
      ),
      Effect.scoped
    )

  return { runArgv: Effect.fn("CopilotTurnRunner.runArgv")(run) }
}
