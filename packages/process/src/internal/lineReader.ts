/**
 * Reads a process's standard output, as lines or as bytes, as fast as it is asked
 * for: what is not asked for stays in the pipe, and a full pipe stops the process.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import type { Readable } from "node:stream"
import { clearImmediate, setImmediate } from "node:timers"
import type { Line } from "../Line.ts"
import * as LineSplitter from "../LineSplitter.ts"

/** Why the output is over: its end, or that only others than the program still held it. */
export type Ending = "end" | "held"

export interface LineReader {
  /** Answers the next lines, at least one; ends with `Done`; fails with the system's words. */
  readonly pull: Pull.Pull<NonEmptyReadonlyArray<Line>, string>
  /** Answers the next bytes, as they were read, at least one; ends and fails like `pull`. A reader uses one of the two. */
  readonly pullBytes: Pull.Pull<NonEmptyReadonlyArray<Uint8Array>, string>
  /** Tells that the program itself has ended, so that its output is complete once it is read. */
  readonly programEnded: () => void
  readonly ending: () => Ending | undefined
  readonly destroy: () => void
}

/**
 * How long a silence, and how many more bytes, end the output after the program
 * has: a descendant may hold the pipe for ever. What the program itself wrote is
 * in the pipe by then, and a pipe and its buffers hold less than this.
 */
export const silenceMs = 1000
const mostBytesAfter = 1024 * 1024

export const make = (stream: Readable, options: LineSplitter.Options): LineReader => {
  let state = LineSplitter.initial(options)
  let programEnded = false
  let bytesAfter = 0
  let failure: string | undefined
  let streamEnded = false
  let ending: Ending | undefined
  let wake: (() => void) | undefined

  const notify = () => wake?.()
  stream.on("readable", notify)
  stream.on("end", () => {
    streamEnded = true
    notify()
  })
  stream.on("close", () => {
    streamEnded = true
    notify()
  })
  stream.on("error", (error) => {
    failure ??= error.message
    notify()
  })

  /** Waits for bytes; answers `undefined` when there are no more. */
  const read: Effect.Effect<Uint8Array | undefined, string> = Effect.callback((resume) => {
    let timer: NodeJS.Timeout | undefined
    let lastLook: NodeJS.Immediate | undefined
    const stopWaiting = () => {
      wake = undefined
      clearTimeout(timer)
      clearImmediate(lastLook)
    }
    const settle = (effect: Effect.Effect<Uint8Array | undefined, string>) => {
      stopWaiting()
      resume(effect)
    }
    const attempt = () => {
      if (ending !== undefined) return settle(Effect.succeed(undefined))
      const chunk = stream.read() as Buffer | null
      if (chunk !== null) {
        if (programEnded) bytesAfter += chunk.length
        if (bytesAfter > mostBytesAfter) ending = "held"
        return settle(Effect.succeed(chunk))
      }
      if (failure !== undefined) return settle(Effect.fail(failure))
      if (streamEnded) {
        ending = "end"
        return settle(Effect.succeed(undefined))
      }
      if (programEnded && timer === undefined) {
        timer = setTimeout(() => {
          // A process that was kept from running finds its timers due before it has seen what came meanwhile.
          lastLook = setImmediate(() => {
            ending = "held"
            settle(Effect.succeed(undefined))
          })
        }, silenceMs)
      }
    }
    wake = attempt
    attempt()
    return Effect.sync(stopWaiting)
  })

  // No generator: a program that streams makes a read of every line.
  const pull: LineReader["pull"] = Effect.flatMap(read, (chunk) => {
    if (chunk === undefined) {
      const rest = LineSplitter.end(state)
      state = LineSplitter.initial(options)
      return isNonEmpty(rest) ? Effect.succeed(rest) : Cause.done()
    }
    const [next, lines] = LineSplitter.push(state, chunk)
    state = next
    return isNonEmpty(lines) ? Effect.succeed(lines) : pull
  })

  const pullBytes: LineReader["pullBytes"] = Effect.flatMap(read, (chunk) => chunk === undefined ? Cause.done() : Effect.succeed([chunk] as const))

  return {
    pull,
    pullBytes,
    programEnded: () => {
      programEnded = true
      notify()
    },
    ending: () => ending,
    destroy: () => {
      stream.destroy()
    }
  }
}

const isNonEmpty = (lines: ReadonlyArray<Line>): lines is NonEmptyReadonlyArray<Line> => lines.length > 0
