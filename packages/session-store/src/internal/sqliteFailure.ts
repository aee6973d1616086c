/** What SQLite answers, in the words of a store. */
import { Failure } from "@turnpike/contract"
import type { SqlError } from "effect/sql/SqlError"
import * as fs from "node:fs"
import * as path from "node:path"
import { codeOf, codes } from "./nodeSqlite.ts"

/** The name of the file means no file, or another one than the one that is open. */
export class VanishedFile extends Error {
  override readonly name = "VanishedFile"
  readonly file: string

  constructor(file: string) {
    super(`${file} was deleted, moved or replaced while it was in use`)
    this.file = file
  }
}

/** Whether the file system has no space left; some writes then fail with a code that does not say so. */
const isFull = (file: string): boolean => {
  try {
    const { bavail, bsize } = fs.statfsSync(path.dirname(file))
    return bavail * bsize < 64 * 1024
  } catch {
    return false
  }
}

export const sqliteFailure = (file: string, { message, reason }: SqlError): Failure.Failure => {
  const { cause } = reason
  const data = { place: file }
  if (cause instanceof VanishedFile) {
    return Failure.make("STORE_FAILED", `the sessions cannot be written: ${cause.message}`, {
      retryable: false,
      remedy: "Put the file back or begin a new one, and start Turnpike again.",
      data
    })
  }
  const code = codeOf(cause)
  const cannot = (what: string, remedy: string, retryable: boolean) =>
    Failure.make("STORE_FAILED", `the sessions in ${file} cannot be ${what}: ${message}`, { remedy, retryable, data: code === undefined ? data : { ...data, sqlite: code } })
  switch (code === undefined ? undefined : code & 0xff) {
    case codes.full:
      return Failure.make("STORE_FULL", `there is no space left for the sessions in ${file}`, { data })
    case codes.ioError:
      return isFull(file)
        ? Failure.make("STORE_FULL", `there is no space left for the sessions in ${file}`, { data })
        : cannot("read or written", "Check the disk and the directory; what was acknowledged before is kept.", true)
    case codes.readOnly:
      return cannot("written", "Make the file and its directory writable, or name another directory.", false)
    case codes.cannotOpen:
      return cannot("opened", "Check that the directory is there and may be written to, or name another one.", true)
    case codes.busy:
    case codes.locked:
      return cannot("written", "Another process writes them without an end. Look which one has the file open, and end it.", true)
    case codes.corrupt:
    case codes.notADatabase:
      return cannot("read", "The file is damaged; nothing was changed. Restore it from a copy, or save what can be read with `sqlite3 FILE .recover`.", false)
    default:
      return cannot("read or written", "Check the file and its directory; what was acknowledged before is kept.", true)
  }
}
