/**
 * The file that gets a run's result.
 *
 * It is prepared before anything runs, so that a run whose result could not be
 * delivered never starts. A regular file is replaced whole; a device or a pipe
 * is written to.
 */
import type { AgentRunResult } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as path from "node:path"
import * as InputText from "./InputText.ts"
import { refuse, type Refusal } from "./Refusal.ts"
import * as WholeFile from "./WholeFile.ts"

export interface ResultFile {
  /** Fails with `RESULT_UNWRITABLE`; the file is then what it was before. */
  readonly write: (result: AgentRunResult.AgentRunResult) => Effect.Effect<void, Refusal>
}

const format = (result: AgentRunResult.AgentRunResult): string => `${JSON.stringify(result, undefined, 2)}\n`

/** The file behind symbolic links, so that the link stays. */
const followed = (file: string): string => {
  try {
    return fs.realpathSync(file)
  } catch {
    return file
  }
}

const prepare = (file: string): WholeFile.Pending => {
  const target = followed(path.resolve(file))
  const stat = fs.statSync(target, { throwIfNoEntry: false })
  if (stat?.isDirectory() === true) throw Object.assign(new Error("it is a directory"), { code: "EISDIR" })
  if (stat !== undefined && !stat.isFile()) {
    fs.accessSync(target, fs.constants.W_OK)
    return { target, complete: (text) => fs.writeFileSync(target, text), discard: () => {} }
  }
  if (stat !== undefined) fs.accessSync(target, fs.constants.W_OK)
  return WholeFile.begin(target, stat === undefined ? 0o666 : stat.mode & 0o777)
}

/** Prepares the file, or refuses with `RESULT_UNWRITABLE`. What was prepared and not written goes with the scope. */
export const open = (file: string): Effect.Effect<ResultFile, Refusal, Scope.Scope> => {
  const unwritable = (cause: unknown) => {
    const code = (cause as NodeJS.ErrnoException | undefined)?.code
    const why = code === "ENOENT"
      ? "its directory does not exist"
      : code === "EACCES" || code === "EPERM"
      ? "it may not be written"
      : code === "ENOSPC"
      ? "its disk is full"
      : code === "EROFS"
      ? "its file system is read-only"
      : InputText.reasonOf(cause)
    return refuse("RESULT_UNWRITABLE", `the result cannot be written to ${file}: ${why}`)
  }
  return Effect.acquireRelease(
    Effect.try({ try: () => prepare(file), catch: unwritable }),
    (pending) => Effect.sync(pending.discard)
  ).pipe(
    Effect.map((pending) => ({
      write: (result) => Effect.try({ try: () => pending.complete(format(result)), catch: unwritable })
    }))
  )
}
