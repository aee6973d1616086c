/**
 * What the agent writes, in order, and as awkwardly as the scenario wishes.
 *
 * Writes are queued: `frame` returns at once, and `flushed` resolves when
 * everything queued before it has been handed to the kernel. A reader that has
 * gone away is not an error: agents run on without one.
 */
import { setImmediate } from "node:timers/promises"
import type { Json } from "../ScenarioLanguage.ts"

export interface Output {
  readonly frame: (value: Json) => void
  /** Puts the length before each frame from now on, instead of a line feed behind it. */
  readonly announceLengths: () => void
  /** Writes the beginning of something that takes so many bytes, and answers how it ends. */
  readonly announce: (bytes: number) => Uint8Array
  readonly bytes: (bytes: Uint8Array) => void
  readonly stderr: (text: string) => void
  /** Leaves the line feed of the next frame out. */
  readonly joinNext: () => void
  /** Cuts what is written from now on into pieces of so many bytes; 0 stops it. */
  readonly chunk: (bytes: number) => void
  /** Holds what is written from now on back until so many bytes are there; 0 writes the rest and stops it. */
  readonly buffer: (bytes: number) => void
  readonly close: (stream: "stdout" | "stderr") => void
  readonly flushed: () => Promise<void>
}

const header = (bytes: number): string => `Content-Length: ${bytes}\r\n\r\n`

const write = (stream: NodeJS.WritableStream, bytes: Uint8Array): Promise<void> =>
  new Promise((resolve) => {
    // The callback comes with an error where the reader is gone; there is nobody to tell.
    stream.write(bytes, () => resolve())
  })

export const make = (): Output => {
  let queue: Promise<void> = Promise.resolve()
  let chunkBytes = 0
  let joins = false
  let announces = false
  let bufferBytes = 0
  let held: Array<Uint8Array> = []
  const closed = new Set<NodeJS.WritableStream>()
  const later = (work: () => Promise<void>) => {
    queue = queue.then(work)
  }
  process.stdout.on("error", () => closed.add(process.stdout))
  process.stderr.on("error", () => closed.add(process.stderr))
  const release = () => {
    const whole = Buffer.concat(held)
    held = []
    if (whole.length > 0) put(process.stdout, whole)
  }
  const out = (bytes: Uint8Array) => {
    if (bufferBytes === 0) return put(process.stdout, bytes)
    held.push(bytes)
    if (held.reduce((size, each) => size + each.length, 0) >= bufferBytes) release()
  }
  const put = (stream: NodeJS.WritableStream, bytes: Uint8Array) => {
    const size = stream === process.stdout ? chunkBytes : 0
    later(async () => {
      if (closed.has(stream)) return
      if (size === 0) return write(stream, bytes)
      for (let at = 0; at < bytes.length; at += size) {
        await write(stream, bytes.subarray(at, at + size))
        // A turn of the event loop between two pieces makes each of them a write of its own.
        await setImmediate()
      }
    })
  }
  return {
    frame: (value) => {
      const text = JSON.stringify(value)
      out(Buffer.from(announces ? `${header(Buffer.byteLength(text))}${text}` : text + (joins ? "" : "\n")))
      joins = false
    },
    announceLengths: () => {
      announces = true
    },
    announce: (bytes) => {
      if (announces) out(Buffer.from(header(bytes)))
      return Buffer.from(announces ? "" : "\n")
    },
    bytes: out,
    stderr: (text) => put(process.stderr, Buffer.from(text)),
    joinNext: () => {
      joins = true
    },
    chunk: (bytes) => {
      chunkBytes = bytes
    },
    buffer: (bytes) => {
      bufferBytes = bytes
      if (bytes === 0) release()
    },
    close: (name) => {
      const stream = process[name]
      later(async () => {
        closed.add(stream)
        // `end` leaves the descriptor open on the standard streams; `destroy` is refused. Closing it is what the reader sees.
        const { closeSync } = await import("node:fs")
        closeSync(name === "stdout" ? 1 : 2)
      })
    },
    flushed: () => queue
  }
}
