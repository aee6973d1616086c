/**
 * Events of one append as one row: their JSON lines, compressed, with a checksum
 * over all that the row says.
 */
import type { SessionEvent } from "@turnpike/contract"
import { LogBlock, LogLine } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as zlib from "node:zlib"
import { sumOf } from "./checksum.ts"
import { damaged, type StoreError, unsupported } from "./storeFailure.ts"

/** How the bytes of a row are packed. The numbers stand in the rows: they keep their meaning. */
const codecs = { plain: 0, deflate: 1, zstd: 2 } as const

/** A row of events as the database has it. */
export interface Batch {
  readonly first: number
  readonly last: number
  /** That of the writer. */
  readonly generation: number
  readonly codec: number
  readonly sum: number
  readonly bytes: Uint8Array
}

/** The most events of one row, so that who reads from the middle unpacks no more. */
const maxEvents = 512

/** How many characters of events make a row full: 256 Ki. One that is larger has a row of its own. */
const maxCharacters = 256 * 1024

/** Shorter texts gain nothing from being packed. */
const minPackedBytes = 256

/** From here on it is packed beside the event loop, which it would hold up for milliseconds. */
const minAsyncBytes = 64 * 1024

type Packing = (bytes: Uint8Array) => Uint8Array
type Callback = (error: Error | null, packed: Uint8Array) => void

/** What a runtime can pack with: Node.js has zstd since 22.15. */
export interface Packer {
  readonly codec: number
  readonly pack: Packing
  readonly packBeside: (bytes: Uint8Array, callback: Callback) => void
}

type Zlib = Pick<typeof zlib, "constants" | "deflateRaw" | "deflateRawSync"> & Partial<Pick<typeof zlib, "zstdCompress" | "zstdCompressSync">>

export const packerOf = ({ constants, deflateRaw, deflateRawSync, zstdCompress, zstdCompressSync }: Zlib): Packer => {
  if (zstdCompress === undefined || zstdCompressSync === undefined) {
    return { codec: codecs.deflate, pack: (bytes) => deflateRawSync(bytes), packBeside: (bytes, callback) => deflateRaw(bytes, callback) }
  }
  // The lowest level: rows of events get no larger by it (measured: somewhat smaller than at the usual one), in two thirds of the time.
  const options = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
  return { codec: codecs.zstd, pack: (bytes) => zstdCompressSync(bytes, options), packBeside: (bytes, callback) => zstdCompress(bytes, options, callback) }
}

const ownPacker = packerOf(zlib)

const encoder = new TextEncoder()

const sumOfBatch = (session: number, { bytes, codec, first, generation, last }: Omit<Batch, "sum">): number =>
  sumOf([session, first, last, generation, codec], bytes)

const pack = (bytes: Uint8Array, packer: Packer): Effect.Effect<readonly [codec: number, bytes: Uint8Array]> => {
  if (bytes.length < minPackedBytes) return Effect.succeed([codecs.plain, bytes])
  const smaller = (packed: Uint8Array) => packed.length < bytes.length ? [packer.codec, packed] as const : [codecs.plain, bytes] as const
  if (bytes.length < minAsyncBytes) return Effect.sync(() => smaller(packer.pack(bytes)))
  return Effect.callback<readonly [number, Uint8Array]>((resume) =>
    packer.packBeside(bytes, (error, packed) => resume(error === null ? Effect.succeed(smaller(packed)) : Effect.die(error))))
}

/** Packs events that follow each other. No row is without events. */
export const packed = (
  session: number,
  generation: number,
  events: ReadonlyArray<SessionEvent.SessionEvent>,
  packer: Packer = ownPacker
): Effect.Effect<ReadonlyArray<Batch>> =>
  Effect.gen(function*() {
    const batches: Array<Batch> = []
    let lines: Array<string> = []
    let characters = 0
    for (let at = 0; at < events.length; at++) {
      // In range: `at` is less than the length.
      const line = JSON.stringify(events[at]!)
      lines.push(line)
      characters += line.length
      if (at + 1 < events.length && lines.length < maxEvents && characters < maxCharacters) continue
      const last = events[at]!.seq
      const [codec, bytes] = yield* pack(encoder.encode(lines.join("\n")), packer)
      const batch = { first: last - lines.length + 1, last, generation, codec, bytes }
      batches.push({ ...batch, sum: sumOfBatch(session, batch) })
      lines = []
      characters = 0
    }
    return batches
  })

const unpack = (codec: number, bytes: Uint8Array): Uint8Array | undefined => {
  switch (codec) {
    case codecs.plain:
      return bytes
    case codecs.deflate:
      return zlib.inflateRawSync(bytes)
    case codecs.zstd:
      return (zlib as Partial<typeof zlib>).zstdDecompressSync?.(bytes)
    default:
      return undefined
  }
}

const decode = LogLine.decoder("session-event")

const lineFeed = 10

/** Where the line after so many lines begins; the end where there are not so many. The last line has no line feed. */
const afterLines = (bytes: Uint8Array, count: number): number => {
  let start = 0
  for (let left = count; left > 0 && start < bytes.length; left--) {
    const end = bytes.indexOf(lineFeed, start)
    start = end < 0 ? bytes.length : end + 1
  }
  return start
}

/** Where the last so many lines begin; the beginning where there are not so many. */
const lastLines = (bytes: Uint8Array, count: number): number => {
  let start = bytes.length
  for (let left = count, end = bytes.length; left > 0 && end > 0; left--, end = start - 1) {
    start = bytes.subarray(0, end).lastIndexOf(lineFeed) + 1
  }
  return start
}

/**
 * The events of a row whose `seq` is greater than `after`, or why they cannot be
 * had. A row is as it was written where its checksum is right; what this version
 * cannot make of it then is of a later one.
 */
export const unpacked = (
  id: string,
  session: number,
  batch: Batch,
  after: number
): Result.Result<ReadonlyArray<SessionEvent.SessionEvent>, StoreError> => {
  const { codec, first, last, sum } = batch
  const place = first === last ? `event ${first}` : `events ${first} to ${last}`
  if (sumOfBatch(session, batch) !== sum) return Result.fail(damaged(id, `${place} cannot be read: the checksum is not that of the bytes`))
  const bytes = unpack(codec, batch.bytes)
  if (bytes === undefined) return Result.fail(unsupported(id, `${place} are packed in a way that this version, or this runtime, does not have (${codec})`))
  let seq = Math.min(Math.max(first, after + 1), last + 1)
  const before = seq - first
  const wanted = last + 1 - seq
  let start = wanted < before ? lastLines(bytes, wanted) : afterLines(bytes, before)
  const together = LogBlock.events(bytes.subarray(start), seq)
  if (together !== undefined && seq + together.length === last + 1) return Result.succeed(together)
  const events: Array<SessionEvent.SessionEvent> = []
  for (let end = start; end < bytes.length; start = end + 1, seq++) {
    end = bytes.indexOf(lineFeed, start)
    if (end < 0) end = bytes.length
    const line = decode(bytes.subarray(start, end))
    if (Result.isFailure(line)) return Result.fail(unsupported(id, `event ${seq} is of a later version: ${line.failure.message}`))
    if (line.success.seq !== seq) return Result.fail(damaged(id, `event ${seq} has the seq ${line.success.seq}`))
    events.push(line.success)
  }
  return seq === last + 1 ? Result.succeed(events) : Result.fail(damaged(id, `${place} are ${seq - first} events`))
}
