/** The file system as Node.js and Deno have it. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { type File, FileError, type Files, type Stat } from "./files.ts"

const errorOf = (operation: string, path: string, cause: unknown): FileError => {
  const code = (cause as { readonly code?: unknown } | null)?.code
  return new FileError({ operation, path, code: typeof code === "string" ? code : undefined, text: cause instanceof Error ? cause.message : String(cause) })
}

type Done<A> = (error: Error | null, value?: A) => void

/** Asks the system; what the callback is given is the answer. */
const asked = <A>(operation: string, path: string, ask: (done: Done<A>) => void): Effect.Effect<A, FileError> =>
  Effect.callback<A, FileError>((resume) => {
    // The callbacks of calls that answer nothing give no value, and no one looks at it.
    ask((error, value) => resume(error === null || error === undefined ? Effect.succeed(value as A) : Effect.fail(errorOf(operation, path, error))))
  })

const statOf = ({ dev, ino, size }: fs.BigIntStats): Stat => ({ identity: `${dev}:${ino}`, size: Number(size) })

const flags = {
  read: fs.constants.O_RDONLY,
  append: fs.constants.O_RDWR | fs.constants.O_APPEND,
  create: fs.constants.O_RDWR | fs.constants.O_APPEND | fs.constants.O_CREAT | fs.constants.O_EXCL
} as const

/** So much is written anew at once: 256 KiB. */
const rewrittenBytes = 256 * 1024

const opened = (path: string, descriptor: number): File => ({
  path,
  write: (bytes) => asked<number>("write", path, (done) => fs.write(descriptor, bytes, 0, bytes.length, null, (error, written) => done(error, written))),
  read: (position, length) =>
    Effect.suspend(() => {
      const bytes = Buffer.allocUnsafe(length)
      const from = (at: number): Effect.Effect<Uint8Array, FileError> =>
        at === length
          ? Effect.succeed(bytes)
          : Effect.flatMap(
            asked<number>("read", path, (done) => fs.read(descriptor, bytes, at, length - at, position + at, (error, count) => done(error, count))),
            (count) => count === 0 ? Effect.succeed(bytes.subarray(0, at)) : from(at + count)
          )
      return from(0)
    }),
  sync: asked<void>("sync", path, (done) => fs.fdatasync(descriptor, done)),
  truncate: (length) => asked<void>("truncate", path, (done) => fs.ftruncate(descriptor, length, done)),
  stat: Effect.map(asked<fs.BigIntStats>("stat", path, (done) => fs.fstat(descriptor, { bigint: true }, done)), statOf),
  // What a file had was synced where it had to be; there is nothing to do about a descriptor that the system does not take back.
  close: Effect.ignore(asked<void>("close", path, (done) => fs.close(descriptor, done)))
})

export const nodeFiles: Files = {
  open: (path, how) =>
    // The system opens it whether anybody waits or not, and somebody has to close it.
    Effect.uninterruptible(Effect.map(
      asked<number>("open", path, (done) => fs.open(path, flags[how], 0o600, (error, descriptor) => done(error, descriptor))),
      (descriptor) => opened(path, descriptor)
    )),
  // In this thread: it takes microseconds, and a turn of the thread pool many times that.
  stat: (path) =>
    Effect.try({
      try: () => {
        const found = fs.statSync(path, { bigint: true, throwIfNoEntry: false })
        return found === undefined ? undefined : statOf(found)
      },
      catch: (cause) => errorOf("stat", path, cause)
    }).pipe(Effect.catchIf(({ code }) => code === "ENOTDIR", () => Effect.undefined)),
  rewrite: (path, from) =>
    Effect.acquireUseRelease(
      asked<number>("open", path, (done) => fs.open(path, fs.constants.O_RDWR, (error, descriptor) => done(error, descriptor))),
      (descriptor) => {
        const { read } = opened(path, descriptor)
        const write = (bytes: Uint8Array, position: number): Effect.Effect<void, FileError> =>
          bytes.length === 0 ? Effect.void : Effect.flatMap(
            asked<number>("write", path, (done) => fs.write(descriptor, bytes, 0, bytes.length, position, (error, written) => done(error, written))),
            (written) => write(bytes.subarray(written), position + written)
          )
        const all = (position: number): Effect.Effect<void, FileError> =>
          Effect.flatMap(read(position, rewrittenBytes), (bytes) =>
            bytes.length === 0 ? Effect.void : Effect.andThen(write(bytes, position), all(position + bytes.length)))
        return all(from)
      },
      (descriptor) => Effect.ignore(asked<void>("close", path, (done) => fs.close(descriptor, done)))
    ),
  link: (path, as) => asked<void>("link", as, (done) => fs.link(path, as, done)),
  rename: (path, to) => asked<void>("rename", to, (done) => fs.rename(path, to, done)),
  unlink: (path) => asked<void>("unlink", path, (done) => fs.unlink(path, done)),
  makeDirectory: (path) => asked<void>("mkdir", path, (done) => fs.mkdir(path, { recursive: true, mode: 0o700 }, (error) => done(error))),
  list: (path) => asked<Array<string>>("readdir", path, (done) => fs.readdir(path, (error, names) => done(error, names))),
  remove: (path) => asked<void>("rm", path, (done) => fs.rm(path, { recursive: true, force: true }, done)),
  syncDirectory: (path) =>
    Effect.acquireUseRelease(
      asked<number>("open", path, (done) => fs.open(path, fs.constants.O_RDONLY, (error, descriptor) => done(error, descriptor))),
      (descriptor) => asked<void>("sync", path, (done) => fs.fsync(descriptor, done)),
      (descriptor) => Effect.ignore(asked<void>("close", path, (done) => fs.close(descriptor, done)))
    )
}
