/**
 * A file descriptor that is kept for when there are no others.
 *
 * Whoever ends processes has to find them, also where this process has as many
 * files open as it may: the spare one is given back for the moment of a read. A
 * read is synchronous, so nobody else gets it meanwhile.
 */
import * as fs from "node:fs"

let spare: number | undefined

/** Takes a spare descriptor, once for this process. */
export const hold = (): void => {
  if (spare !== undefined) return
  try {
    spare = fs.openSync("/dev/null", "r")
  } catch {
    // None is left, or there is no such file here: then there is nothing to spare, and reads fail as they would.
  }
}

/** Whether the reason is that no more files can be open, in this process or on this machine. */
export const isExhausted = (error: unknown): boolean => {
  const { code } = error as NodeJS.ErrnoException
  return code === "EMFILE" || code === "ENFILE"
}

/** Reads what needs one descriptor; the second time with the spare one. */
export const read = <A>(once: () => A): A => {
  try {
    return once()
  } catch (error) {
    if (spare === undefined || !isExhausted(error)) throw error
    fs.closeSync(spare)
    spare = undefined
    try {
      return once()
    } finally {
      hold()
    }
  }
}
