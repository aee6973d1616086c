/**
 * The file that gets a run's result.
 *
 * It is prepared before anything runs, so that a run whose result could not be
 * delivered never starts. A regular file is replaced whole; a device or a pipe
 * is written to, and a named pipe waited for until somebody reads it.
 */
import type { AgentRunResult } from "@turnpike/contract"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as path from "node:path"
import { refuse, type Refusal } from "./Refusal.ts"
import * as WholeFile from "./WholeFile.ts"

export interface ResultFile {
  /** Fails with `RESULT_UNWRITABLE`; the file is then what it was before. */
  readonly write: (result: AgentRunResult.AgentRunResult) => Effect.Effect<void, Refusal>
}

const format = (result: AgentRunResult.AgentRunResult): string => `${JSON.stringify(result, undefined, 2)}\n`

/** The system refused; `cause` is what it said. */
class FileFault extends Data.TaggedError("FileFault")<{ readonly cause: unknown }> {}

const fault = (cause: unknown): FileFault => new FileFault({ cause })

/** A place for the text. */
interface Pending {
  readonly complete: (text: string) => Effect.Effect<void, FileFault>
  readonly discard: Effect.Effect<void>
}

const attempt = <A>(run: () => A): Effect.Effect<A, FileFault> => Effect.try({ try: run, catch: fault })

const codeOf = (cause: unknown): string | undefined => (cause as NodeJS.ErrnoException | undefined)?.code

/** Tries again while the system says that it would have to wait. Waiting within a call would hold up everything else, signals included. */
const retried = <A>(run: () => A, waits: string): Effect.Effect<A, FileFault> =>
  attempt(run).pipe(
    Effect.catch((error) => codeOf(error.cause) === waits ? Effect.andThen(Effect.sleep(20), Effect.suspend(() => retried(run, waits))) : Effect.fail(error))
  )

const pipe = (file: string, waiting: Effect.Effect<void>): Effect.Effect<Pending, FileFault> =>
  Effect.gen(function*() {
    const opened = retried(() => fs.openSync(file, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK), "ENXIO")
    const told = Effect.andThen(Effect.delay(waiting, 1000), Effect.never)
    const descriptor = yield* Effect.raceFirst(opened, told)
    return {
      complete: (text) =>
        Effect.gen(function*() {
          const bytes = Buffer.from(text)
          for (let at = 0; at < bytes.length;) at += yield* retried(() => fs.writeSync(descriptor, bytes, at), "EAGAIN")
        }),
      discard: Effect.sync(() => fs.closeSync(descriptor))
    }
  })

const prepare = (file: string, waiting: Effect.Effect<void>): Effect.Effect<Pending, FileFault> =>
  Effect.gen(function*() {
    const target = path.resolve(file)
    const stat = yield* attempt(() => fs.statSync(target, { throwIfNoEntry: false }))
    if (stat?.isDirectory() === true) return yield* fault(Object.assign(new Error("it is a directory"), { code: "EISDIR" }))
    if (stat?.isSocket() === true) return yield* fault(new Error("it is a socket"))
    if (stat?.isFIFO() === true) return yield* pipe(target, waiting)
    if (stat !== undefined) yield* attempt(() => fs.accessSync(target, fs.constants.W_OK))
    if (stat !== undefined && !stat.isFile()) {
      return { complete: (text) => attempt(() => fs.writeFileSync(target, text)), discard: Effect.void }
    }
    const whole = yield* attempt(() => WholeFile.begin(WholeFile.followed(target), { mode: stat === undefined ? 0o666 : stat.mode & 0o777 }))
    return { complete: (text) => attempt(() => whole.complete(text)), discard: Effect.sync(whole.discard) }
  })

/**
 * Prepares the file, or refuses with `RESULT_UNWRITABLE`. What was prepared and
 * not written goes with the scope. `waiting` is run where a named pipe has had
 * no reader for a second.
 */
export const open = (file: string, waiting: Effect.Effect<void> = Effect.void): Effect.Effect<ResultFile, Refusal, Scope.Scope> => {
  const unwritable = ({ cause }: FileFault) => refuse("RESULT_UNWRITABLE", `the result cannot be written to ${file}: ${WholeFile.reasonOf(cause)}`)
  return Effect.acquireRelease(
    Effect.mapError(prepare(file, waiting), unwritable),
    (pending) => pending.discard,
    { interruptible: true }
  ).pipe(
    Effect.map((pending) => ({ write: (result) => Effect.mapError(pending.complete(format(result)), unwritable) }))
  )
}
