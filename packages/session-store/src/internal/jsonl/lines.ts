/** Lines of JSON with a checksum at their end, as `LogLine` of the kernel writes them, taken apart quickly. */
import { LogLine } from "@turnpike/kernel"
import * as zlib from "node:zlib"

const encoder = new TextEncoder()

export const lineFeed = 0x0a

/** The bytes of lines, each with its line feed. */
export const bytesOf = (records: ReadonlyArray<object>): Uint8Array =>
  encoder.encode(records.map((record) => `${LogLine.encode(record)}\n`).join(""))

/** `,"sum":"` and `"}`, with eight hexadecimal digits between them. */
const key = encoder.encode(`,"sum":"`)
const closing = encoder.encode(`"}`)
const tailLength = key.length + 8 + closing.length

/** How many bytes of the checksum's field are others than they have to be, its digits aside. */
const misfits = (line: Uint8Array): number => {
  const start = line.length - tailLength
  if (start <= 0) return tailLength
  let count = 0
  for (const [index, byte] of key.entries()) if (line[start + index] !== byte) count++
  for (const [index, byte] of closing.entries()) if (line[start + key.length + 8 + index] !== byte) count++
  return count
}

/** Whether a line is as it was written. */
export const isSound = (line: Uint8Array): boolean => {
  if (misfits(line) > 0) return false
  const start = line.length - tailLength
  const digits = zlib.crc32(line.subarray(0, start)).toString(16).padStart(8, "0")
  for (let index = 0; index < 8; index++) if (line[start + key.length + index] !== digits.charCodeAt(index)) return false
  return true
}

/**
 * Whether a line that is not sound was once written to its end: a write that was cut
 * off leaves a beginning, which has no checksum's field at its end. One byte of the
 * field may be another one.
 */
export const wasWhole = (line: Uint8Array): boolean => misfits(line) <= 1 || misfits(line.subarray(0, -1)) === 0

/**
 * Whether a disk has left out a part of the line, which reads as zeros. A single zero
 * within it may be a letter with a flipped bit; those at its ends are two bits away.
 */
export const hasHole = (line: Uint8Array): boolean => {
  for (let at = line.indexOf(0); at >= 0; at = line.indexOf(0, at + 1)) {
    if (at === 0 || at === line.length - 1 || line[at + 1] === 0) return true
  }
  return false
}

export const beginsWith = (line: Uint8Array, start: Uint8Array): boolean => {
  for (let index = 0; index < start.length; index++) if (line[index] !== start[index]) return false
  return true
}
