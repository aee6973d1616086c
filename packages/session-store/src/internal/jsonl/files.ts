/**
 * The few things that the store asks of a file system.
 *
 * A port, so that tests can let each of them fail and forget what was not synced.
 * Nothing here is tried again or interpreted: a failure is the file system's own.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"

/** What the file system did not do. */
export class FileError extends Data.TaggedError("FileError")<{
  /** As a verb, such as `write`. */
  readonly operation: string
  readonly path: string
  /** The name of the error as Node.js has it, such as `ENOSPC`. */
  readonly code: string | undefined
  readonly text: string
}> {
  override get message() {
    return this.text
  }
}

export interface Stat {
  /** Tells a file from another one that has its name later. */
  readonly identity: string
  /** In bytes. */
  readonly size: number
}

export interface File {
  readonly path: string
  /**
   * Writes behind the file's end, whoever else writes there, by one call of the
   * system. Answers how many of the bytes were written: fewer where the disk is full.
   */
  readonly write: (bytes: Uint8Array) => Effect.Effect<number, FileError>
  /** The bytes at a position, fewer where the file ends before. */
  readonly read: (position: number, length: number) => Effect.Effect<Uint8Array, FileError>
  /** Completes once what the file has is on disk. */
  readonly sync: Effect.Effect<void, FileError>
  readonly truncate: (length: number) => Effect.Effect<void, FileError>
  readonly stat: Effect.Effect<Stat, FileError>
  readonly close: Effect.Effect<void>
}

/** For reading; for appending to one that is there, and reading; or made, where there must be none. */
export type How = "read" | "append" | "create"

export interface Files {
  readonly open: (path: string, how: How) => Effect.Effect<File, FileError>
  /** `undefined` where there is nothing of this name. */
  readonly stat: (path: string) => Effect.Effect<Stat | undefined, FileError>
  /**
   * Writes anew what a file has from a position on, so that the next sync is asked
   * for it: after one that failed a system forgets what was to be written.
   */
  readonly rewrite: (path: string, from: number) => Effect.Effect<void, FileError>
  /** Gives a file a second name, unless that one is taken: `EEXIST`. */
  readonly link: (path: string, as: string) => Effect.Effect<void, FileError>
  /** A file takes the place of another; a directory that of an empty one only. */
  readonly rename: (path: string, to: string) => Effect.Effect<void, FileError>
  readonly unlink: (path: string) => Effect.Effect<void, FileError>
  /** Makes a directory, with those above it, for its owner's eyes alone. Does nothing where it is there. */
  readonly makeDirectory: (path: string) => Effect.Effect<void, FileError>
  /** The names in a directory. */
  readonly list: (path: string) => Effect.Effect<ReadonlyArray<string>, FileError>
  /** Takes a directory away with all that is in it. Does nothing where it is not there. */
  readonly remove: (path: string) => Effect.Effect<void, FileError>
  /** Completes once the names in a directory are on disk. */
  readonly syncDirectory: (path: string) => Effect.Effect<void, FileError>
}

export const hasCode = (...codes: ReadonlyArray<string>) => (error: unknown): error is FileError =>
  error instanceof FileError && error.code !== undefined && codes.includes(error.code)

/** Uses a file, and closes it whatever comes. */
export const using = <A, E, R>(
  files: Files,
  path: string,
  how: How,
  use: (file: File) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | FileError, R> => Effect.acquireUseRelease(files.open(path, how), use, ({ close }) => close)

const short = (file: File): FileError =>
  new FileError({ operation: "write", path: file.path, code: "ENOSPC", text: `no space left on device, write '${file.path}'` })

/** Writes all of it, where nobody else writes. A write that gets no further is that of a full disk. */
export const writeAll = (file: File, bytes: Uint8Array): Effect.Effect<void, FileError> =>
  bytes.length === 0
    ? Effect.void
    : Effect.flatMap(file.write(bytes), (written) => {
      if (written === 0) return Effect.fail(short(file))
      return written === bytes.length ? Effect.void : writeAll(file, bytes.subarray(written))
    })

/** The whole of a small file; `undefined` where there is none. */
export const readSmall = (files: Files, path: string): Effect.Effect<Uint8Array | undefined, FileError> =>
  using(files, path, "read", (file) => Effect.flatMap(file.stat, ({ size }) => file.read(0, size))).pipe(
    Effect.catchIf(hasCode("ENOENT", "ENOTDIR"), () => Effect.undefined)
  )

/** Makes a file with these bytes, synced. */
export const makeSmall = (files: Files, path: string, bytes: Uint8Array): Effect.Effect<void, FileError> =>
  using(files, path, "create", (file) => Effect.andThen(writeAll(file, bytes), file.sync))
