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

/** A file that waits for its content, beside its target. */
export interface Pending {
  readonly target: string
  /** Writes the content and gives it the target's name. Throws the system's error, and leaves nothing then. */
  readonly complete: (text: string) => void
  /** Removes the file. Does nothing when it was completed. */
  readonly discard: () => void
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
export const begin = (target: string, mode = 0o600): Pending => {
  const directory = path.dirname(target)
  const temporary = path.join(directory, `.${path.basename(target).slice(0, 100)}.${randomUUID()}.tmp`)
  let descriptor: number | undefined = fs.openSync(temporary, "wx", mode)
  const discard = () => {
    if (descriptor === undefined) return
    fs.closeSync(descriptor)
    descriptor = undefined
    fs.rmSync(temporary, { force: true })
  }
  return {
    target,
    complete: (text) => {
      if (descriptor === undefined) throw new Error(`${target} was completed or discarded before`)
      try {
        fs.writeFileSync(descriptor, text)
        fs.fsyncSync(descriptor)
        fs.renameSync(temporary, target)
      } catch (cause) {
        discard()
        throw cause
      }
      fs.closeSync(descriptor)
      descriptor = undefined
      syncDirectory(directory)
    },
    discard
  }
}

export const write = (target: string, text: string): void => begin(target).complete(text)
