/**
 * Lines of a stream that is not a terminal, one at a time.
 *
 * A line ends at a line feed and nowhere else, so a JSON text may hold any other
 * separator. The stream is read no further than the line that is asked for, but
 * for what one chunk brings. A line over the bound, and one that is not UTF-8,
 * are said to be so; the next line is not affected.
 */
import { ChannelError } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type { Readable } from "node:stream"

export type Line =
  | { readonly _tag: "Text"; readonly number: number; readonly text: string }
  /** What is wrong with the line, as the end of a sentence that begins with its number. */
  | { readonly _tag: "Bad"; readonly number: number; readonly why: string }
  | { readonly _tag: "End" }

export interface LineInput {
  /** The next line. One caller at a time. Interrupting it loses nothing. */
  readonly next: Effect.Effect<Line, ChannelError.ChannelError>
}

/** The longest line that is taken: 32 MiB. */
export const defaultMaxBytes = 32 * 1024 * 1024

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

export const make = (stream: Readable, maxBytes = defaultMaxBytes): LineInput => {
  const ready: Array<Line> = []
  let parts: Array<Buffer> = []
  let bytes = 0
  let number = 0
  let ended = false
  let broken: Error | undefined
  let started = false
  let waiting: (() => void) | undefined

  const finish = () => {
    number++
    const whole = Buffer.concat(parts)
    parts = []
    if (bytes > maxBytes) {
      ready.push({ _tag: "Bad", number, why: `is longer than ${maxBytes} bytes` })
    } else {
      try {
        ready.push({ _tag: "Text", number, text: decoder.decode(whole).replace(/\r$/, "") })
      } catch {
        ready.push({ _tag: "Bad", number, why: "is not UTF-8 text" })
      }
    }
    bytes = 0
  }

  const keep = (part: Buffer) => {
    bytes += part.length
    if (bytes <= maxBytes) parts.push(part)
    else parts = []
  }

  const start = () => {
    if (started) return
    started = true
    stream.on("data", (chunk: Buffer) => {
      let from = 0
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
        keep(chunk.subarray(from, at))
        finish()
        from = at + 1
      }
      if (from < chunk.length) keep(chunk.subarray(from))
      if (ready.length > 0) stream.pause()
      waiting?.()
    })
    stream.on("end", () => {
      if (bytes > 0) finish()
      ended = true
      waiting?.()
    })
    stream.on("error", (error: Error) => {
      broken = error
      waiting?.()
    })
    // A stream that is destroyed, or had its end before anybody asked, says nothing more of it.
    stream.on("close", () => {
      if (bytes > 0) finish()
      ended = true
      waiting?.()
    })
    ended = stream.destroyed || stream.readableEnded
  }

  const take = (): Effect.Effect<Line, ChannelError.ChannelError> | undefined => {
    const line = ready.shift()
    if (line !== undefined) return Effect.succeed(line)
    if (broken !== undefined) return Effect.fail(ChannelError.io(`the input broke: ${broken.message}`, broken))
    return ended ? Effect.succeed({ _tag: "End" }) : undefined
  }

  return {
    next: Effect.callback<Line, ChannelError.ChannelError>((resume) => {
      start()
      const now = take()
      if (now !== undefined) return resume(now)
      waiting = () => {
        const next = take()
        if (next === undefined) return
        waiting = undefined
        resume(next)
      }
      stream.resume()
      return Effect.sync(() => {
        waiting = undefined
        stream.pause()
      })
    })
  }
}
