/**
 * Text that the command line names: a file, or standard input.
 *
 * It is taken as it is, to the byte; what is not UTF-8 is refused rather than
 * altered.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { refuse, type Refusal } from "./Refusal.ts"

export const standardInput = "-"

/** What a name is called in a message. */
export const shown = (name: string): string => name === standardInput ? "standard input" : name

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EACCES: "it may not be read",
  EPERM: "it may not be read",
  EISDIR: "it is a directory",
  ENOTDIR: "a part of its path is no directory",
  ELOOP: "its symbolic links go in a circle",
  ENAMETOOLONG: "its name is too long"
}

export const reasonOf = (cause: unknown): string => {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  return (code === undefined ? undefined : reasons[code]) ?? (cause instanceof Error ? cause.message : String(cause))
}

const unreadable = (name: string, flag: string | undefined, why: string): Refusal =>
  refuse("FILE_UNREADABLE", `${flag === undefined ? "" : `${flag}: `}${shown(name)} cannot be read: ${why}`)

/** Reads a stream to its end. Interrupting it leaves the rest unread. */
const drain = (stream: NodeJS.ReadStream): Effect.Effect<Buffer, string> =>
  Effect.callback<Buffer, string>((resume) => {
    const chunks: Array<Buffer> = []
    const onData = (chunk: Buffer) => chunks.push(chunk)
    const onEnd = () => resume(Effect.succeed(Buffer.concat(chunks)))
    const onError = (cause: Error) => resume(Effect.fail(reasonOf(cause)))
    stream.on("data", onData).once("end", onEnd).once("error", onError)
    return Effect.sync(() => {
      stream.off("data", onData).off("end", onEnd).off("error", onError)
      stream.pause()
    })
  })

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Reads the whole text. `flag` is the flag that names it, for the message. */
export const read = (name: string, flag?: string): Effect.Effect<string, Refusal> =>
  Effect.gen(function*() {
    const bytes = yield* (name === standardInput
      ? drain(process.stdin)
      : Effect.tryPromise({ try: (signal) => fs.promises.readFile(name, { signal }), catch: reasonOf })
    ).pipe(Effect.mapError((why) => unreadable(name, flag, why)))
    return yield* Effect.try({
      try: () => decoder.decode(bytes),
      catch: () => unreadable(name, flag, "it is not UTF-8 text")
    })
  })
