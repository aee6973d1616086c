/**
 * Text that the command line names: a file, or standard input.
 *
 * It is taken as it is, to the byte; what is not UTF-8, or too long, is refused
 * rather than altered.
 */
import { LineInput } from "@turnpike/channel-terminal"
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

/** Whether two names are of one regular file. */
export const isSameFile = (name: string, other: string): boolean => {
  if (name === standardInput) return false
  const [one, two] = [name, other].map((each) => {
    try {
      return fs.statSync(each, { bigint: true, throwIfNoEntry: false })
    } catch {
      // What cannot be looked at is refused where it is opened.
      return undefined
    }
  })
  return one?.isFile() === true && one.dev === two?.dev && one.ino === two.ino
}

/** The longest text that is taken: 32 MiB, as a prompt of a conversation. */
export const maxBytes = LineInput.defaultMaxBytes

interface Problem {
  readonly why: string
  readonly remedy?: string
}

const tooLong: Problem = {
  why: `it is longer than ${maxBytes} bytes`,
  remedy: "Let the task name a file with the rest, which the agent reads as far as it needs."
}
const notText: Problem = { why: "it is not UTF-8 text", remedy: "Save it as UTF-8 text." }

const unreadable = (name: string, flag: string | undefined, { why, ...facts }: Problem): Refusal =>
  refuse("FILE_UNREADABLE", `${flag === undefined ? "" : `${flag}: `}${shown(name)} cannot be read: ${why}`, facts)

/** Reads a stream to its end, or until it is too long. Interrupting it leaves the rest unread. */
const drain = (stream: NodeJS.ReadableStream): Effect.Effect<Buffer, Problem> =>
  Effect.callback<Buffer, Problem>((resume) => {
    const chunks: Array<Buffer> = []
    let bytes = 0
    const leave = () => {
      stream.off("data", onData).off("end", onEnd).off("error", onError)
      stream.pause()
    }
    const onData = (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= maxBytes) return void chunks.push(chunk)
      leave()
      resume(Effect.fail(tooLong))
    }
    const onEnd = () => resume(Effect.succeed(Buffer.concat(chunks)))
    const onError = (cause: Error) => resume(Effect.fail({ why: reasonOf(cause) }))
    stream.on("data", onData).once("end", onEnd).once("error", onError)
    return Effect.sync(leave)
  })

const drainFile = (name: string): Effect.Effect<Buffer, Problem> =>
  Effect.acquireUseRelease(
    Effect.sync(() => fs.createReadStream(name)),
    drain,
    (stream) =>
      Effect.sync(() => {
        // What comes after the end of the reading concerns nobody.
        stream.on("error", () => {})
        stream.destroy()
      })
  )

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Reads the whole text. `flag` is the flag that names it, for the message. */
export const read = (name: string, flag?: string): Effect.Effect<string, Refusal> =>
  Effect.gen(function*() {
    const bytes = yield* (name === standardInput ? drain(process.stdin) : drainFile(name)).pipe(
      Effect.mapError((problem) => unreadable(name, flag, problem))
    )
    return yield* Effect.try({
      try: () => decoder.decode(bytes),
      catch: () => unreadable(name, flag, notText)
    })
  })
