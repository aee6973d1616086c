/** The last bytes of a stream that is read as fast as it comes, and how many there were in all. */
import type { Readable } from "node:stream"

export interface Tail {
  readonly bytes: () => Uint8Array
  readonly totalBytes: () => number
}

export const collect = (stream: Readable, maxBytes: number): Tail => {
  let chunks: Array<Buffer> = []
  let held = 0
  let total = 0
  stream.on("data", (chunk: Buffer) => {
    total += chunk.length
    held += chunk.length
    chunks.push(chunk)
    // Joined now and then, so that neither many small chunks nor one large one is held for long.
    if (held > 2 * maxBytes || chunks.length > 1024) {
      const joined = Buffer.concat(chunks, held)
      chunks = [Buffer.from(joined.subarray(Math.max(0, held - maxBytes)))]
      held = chunks[0]!.length
    }
  })
  // The stream ends with its process; an error of it says no more than that.
  stream.on("error", () => {})
  return {
    bytes: () => {
      const joined = Buffer.concat(chunks, held)
      return new Uint8Array(joined.subarray(Math.max(0, held - maxBytes)))
    },
    totalBytes: () => total
  }
}
