/**
 * The file that gets an exported session: whole, or not there at all.
 *
 * It is nobody's but the user's own (mode 0600), as the sessions themselves are; one
 * that is replaced keeps its permissions.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as path from "node:path"
import * as InputText from "../InputText.ts"
import { refuse, Refusal } from "../Refusal.ts"
import * as Store from "../Store.ts"
import * as WholeFile from "../WholeFile.ts"

/** A file that waits for its content. */
export interface ExportFile {
  /** Its absolute path. */
  readonly path: string
  /** Adds a part. Fails with `RESULT_UNWRITABLE`; nothing is left then. */
  readonly write: (text: string) => Effect.Effect<void, Refusal>
  /** Puts it on disk and gives it its name. Fails with `RESULT_UNWRITABLE`; nothing is left then. */
  readonly complete: Effect.Effect<void, Refusal>
}

export interface Options {
  /** Whether a file that is there is replaced. */
  readonly force: boolean
  /** The data directory that the session is from: the files of its store are never replaced. */
  readonly dataDirectory: string
}

const unwritable = (file: string, why: string, remedy = "Name another file with --output, or leave it out to get the session on standard output."): Refusal =>
  refuse("RESULT_UNWRITABLE", `the session cannot be written to ${file}: ${why}`, { remedy })

const isThere = (file: string): Refusal => unwritable(file, "it is there already", "Name another file with --output, or replace it with --force.")

const isSameDirectory = (one: string, other: string): boolean => {
  const [first, second] = [one, other].map((each) => fs.statSync(each, { bigint: true, throwIfNoEntry: false }))
  return first !== undefined && first.dev === second?.dev && first.ino === second.ino
}

/** Whether it is a file of the store, or has the name of one: those beside the database come and go, and what has such a name is taken for one. */
const isOfStore = (target: string, dataDirectory: string): boolean => {
  const place = WholeFile.followed(target)
  return ["", "-wal", "-shm", "-journal"].map((suffix) => `${Store.fileName}${suffix}`).some((name) =>
    InputText.isSameFile(target, path.join(dataDirectory, name)) ||
    (path.basename(place) === name && isSameDirectory(path.dirname(place), dataDirectory))
  )
}

/** Begins the file, or answers why it may not be written. Throws the system's error. */
const begin = (file: string, { dataDirectory, force }: Options): WholeFile.Pending | Refusal => {
  const target = path.resolve(file)
  const stat = fs.statSync(target, { throwIfNoEntry: false })
  if (stat?.isDirectory() === true) return unwritable(file, "it is a directory")
  // Making it absolute takes away what says that a directory was meant.
  if (/[/\\]$/.test(file)) return unwritable(file, "its name is that of a directory")
  if (stat?.isFile() === false) return unwritable(file, "it is no regular file", "Leave out --output, and send standard output there.")
  if (isOfStore(target, dataDirectory)) return unwritable(file, "the sessions themselves are in it, or would be")
  if (stat !== undefined && !force) return isThere(file)
  if (stat !== undefined) fs.accessSync(target, fs.constants.W_OK)
  return WholeFile.begin(WholeFile.followed(target), stat === undefined ? { isNew: !force } : { mode: stat.mode & 0o777 })
}

const prepare = (file: string, options: Options): Effect.Effect<WholeFile.Pending, Refusal> =>
  Effect.flatMap(
    Effect.try({ try: () => begin(file, options), catch: (cause) => unwritable(file, WholeFile.reasonOf(cause)) }),
    (begun) => begun instanceof Refusal ? Effect.fail(begun) : Effect.succeed(begun)
  )

/**
 * Begins the file, or refuses with `RESULT_UNWRITABLE`, naming it. What was begun and
 * not completed goes with the scope.
 */
export const open = (file: string, options: Options): Effect.Effect<ExportFile, Refusal, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(prepare(file, options), (pending) => Effect.sync(pending.discard)),
    ({ complete, target, write }) => {
      const attempt = (work: () => void) =>
        Effect.try({
          try: work,
          catch: (cause) => (cause as NodeJS.ErrnoException | undefined)?.code === "EEXIST" ? isThere(file) : unwritable(file, WholeFile.reasonOf(cause))
        })
      return { path: target, write: (text) => attempt(() => write(text)), complete: attempt(() => complete("")) }
    }
  )
