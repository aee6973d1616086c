/**
 * A stream that text is written to, such as standard output.
 *
 * A reader that is slow is waited for; one that went away, and a disk that is
 * full, is a failure of the next write, never an unhandled event.
 */
import { ChannelError } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type { Writable } from "node:stream"

export interface Outlet {
  readonly isTerminal: boolean
  /** The width of the terminal; 80 elsewhere. */
  readonly columns: () => number
  /** Hands the text over. Completes when there is room for more; when it is interrupted the text is still on its way. */
  readonly write: (text: string) => Effect.Effect<void, ChannelError.ChannelError>
  /** Completes when everything has been taken by the system. */
  readonly flush: Effect.Effect<void, ChannelError.ChannelError>
}

/** A stream that may be a terminal. */
export type Target = Writable & { readonly isTTY?: boolean; readonly columns?: number }

export const make = (stream: Target, name: string): Outlet => {
  let broken: Error | undefined
  // Stays for the stream's life: an error without a listener would end the process.
  stream.on("error", (error: Error) => {
    broken ??= error
  })
  const failure = () => {
    const code = (broken as NodeJS.ErrnoException | undefined)?.code
    return ChannelError.publish(
      broken === undefined || code === "EPIPE" || code === "ECONNRESET" ? `the reader of ${name} went away` : `${name} cannot be written: ${broken.message}`
    )
  }
  const isGone = () => broken !== undefined || stream.destroyed || stream.writableEnded

  const settled = (begin: (done: () => void) => boolean) =>
    Effect.callback<void, ChannelError.ChannelError>((resume) => {
      if (isGone()) return resume(Effect.fail(failure()))
      const clear = () => {
        stream.off("error", lost).off("close", lost).off("drain", done)
      }
      const lost = () => {
        clear()
        resume(Effect.fail(failure()))
      }
      const done = () => {
        clear()
        resume(isGone() ? Effect.fail(failure()) : Effect.void)
      }
      stream.on("error", lost).on("close", lost)
      if (begin(done)) done()
      return Effect.sync(clear)
    })

  return {
    isTerminal: stream.isTTY === true,
    columns: () => stream.columns || 80,
    write: (text) =>
      text === "" ? Effect.void : settled((done) => {
        const hasRoom = stream.write(text)
        if (!hasRoom) stream.once("drain", done)
        return hasRoom
      }),
    flush: Effect.suspend(() =>
      !isGone() && stream.writableLength === 0 ? Effect.void : settled((done) => {
        stream.write("", () => done())
        return false
      })
    )
  }
}
