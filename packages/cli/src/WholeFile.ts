/**
 * Files that are written whole or not at all.
 *
 * The text goes to a file beside the target, is synced to disk, and takes the
 * target's name in one step. A reader sees the old content or the new; a crash
 * leaves at most a file whose name begins with a dot and ends in `.tmp`.
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import * as InputText from "./InputText.ts"

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "its directory does not exist",
  EACCES: "it may not be written",
  EPERM: "it may not be written",
  ENOSPC: "its disk is full",
  EDQUOT: "its quota is used up",
  EFBIG: "it would be longer than a file may be",
  EROFS: "its file system is read-only",
  EPIPE: "its reader went away"
}

/** Why the system does not write a file, as half a sentence. */
export const reasonOf = (cause: unknown): string => {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  return (code === undefined ? undefined : reasons[code]) ?? InputText.reasonOf(cause)
}

/** A file that waits for its content, beside its target. */
export interface Pending {
  readonly target: string
  /** Adds a part of the content. Throws the system's error, and leaves nothing then. */
  readonly write: (text: string) => void
  /** Adds the rest and gives the file the target's name. Throws the system's error, and leaves nothing then. */
  readonly complete: (text: string) => void
  /** Removes the file. Does nothing when it was completed. */
  readonly discard: () => void
}

export interface Options {
  /** Permissions of a file that was not there: 0600 unless given. */
  readonly mode?: number
  /** Whether a file that has the target's name meanwhile stays: completing then throws `EEXIST`. */
  readonly isNew?: boolean
}

/** The file behind symbolic links, so that the link stays, also one whose file is still to be made. */
export const followed = (file: string): string => {
  let target = file
  // Links that go in a circle are none of these: looking at the file has failed before.
  while (fs.lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink() === true) {
    target = path.resolve(fs.realpathSync(path.dirname(target)), fs.readlinkSync(target))
  }
  return target
}

/** Gives a file another name that nothing has yet. */
const nameNew = (file: string, target: string): void => {
  try {
    fs.linkSync(file, target)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (code === "EEXIST") throw cause
    // A file system without hard links: between the look and the new name another one may come.
    if (fs.existsSync(target)) throw Object.assign(new Error(`${target} is there already`), { code: "EEXIST" })
    return fs.renameSync(file, target)
  }
  fs.rmSync(file)
}

const syncDirectory = (directory: string): void => {
  try {
    const descriptor = fs.openSync(directory, "r")
    try {
      fs.fsyncSync(descriptor)
    } finally {
      fs.closeSync(descriptor)
    }
  } catch {
    // Some systems do not sync directories. The content is safe; only its name may be lost with the power.
  }
}

/** Makes the file beside the target. Throws the system's error when the directory cannot be written. */
export const begin = (target: string, options: Options = {}): Pending => {
  const directory = path.dirname(target)
  const temporary = path.join(directory, `.${path.basename(target).slice(0, 100)}.${randomUUID()}.tmp`)
  let descriptor: number | undefined = fs.openSync(temporary, "wx", options.mode ?? 0o600)
  const discard = () => {
    if (descriptor === undefined) return
    fs.closeSync(descriptor)
    descriptor = undefined
    fs.rmSync(temporary, { force: true })
  }
  const orDiscard = (work: (descriptor: number) => void) => {
    if (descriptor === undefined) throw new Error(`${target} was completed or discarded before`)
    try {
      work(descriptor)
    } catch (cause) {
      discard()
      throw cause
    }
  }
  const write = (text: string) => orDiscard((to) => fs.writeFileSync(to, text))
  return {
    target,
    write,
    complete: (text) => {
      write(text)
      orDiscard((to) => {
        fs.fsyncSync(to)
        if (options.isNew === true) nameNew(temporary, target)
        else fs.renameSync(temporary, target)
        descriptor = undefined
        fs.closeSync(to)
      })
      syncDirectory(directory)
    },
    discard
  }
}
