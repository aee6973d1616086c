/**
 * Reads the body of an HTTP request whole, within a bound, and undoes its
 * `content-encoding`.
 */
import type { IncomingMessage } from "node:http"
import * as zlib from "node:zlib"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** A body that cannot be read; `status` is the answer that it deserves. */
export class BadBody extends Schema.TaggedError<BadBody>()("BadBody", {
  status: Schema.Finite,
  problem: Schema.String
}) {
  override get message() {
    return this.problem
  }
}

type Decompress = (
  bytes: Buffer,
  options: { readonly maxOutputLength: number },
  done: (error: Error | null, result: Buffer) => void
) => void

const decompressors: ReadonlyMap<string, Decompress> = new Map<string, Decompress>([
  ["gzip", zlib.gunzip],
  ["x-gzip", zlib.gunzip],
  ["deflate", zlib.inflate],
  ["br", zlib.brotliDecompress],
  ["zstd", zlib.zstdDecompress]
])

const tooLarge = (maxBytes: number) => new BadBody({ status: 413, problem: `the body is larger than ${maxBytes} bytes` })

const bytesOf = (request: IncomingMessage, maxBytes: number): Effect.Effect<Buffer, BadBody> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let length = 0
    request.on("data", (chunk: Buffer) => {
      length += chunk.length
      // What follows is read and thrown away: a client that is still sending would not see the answer.
      if (length > maxBytes) return
      chunks.push(chunk)
    })
    request.on("end", () => resume(length > maxBytes ? Effect.fail(tooLarge(maxBytes)) : Effect.succeed(Buffer.concat(chunks))))
    request.on("error", (error) => resume(Effect.fail(new BadBody({ status: 400, problem: error.message }))))
  })

/** Reads the text of a body. `maxBytes` bounds it as sent, and as decompressed. */
export const text = Effect.fnUntraced(function*(request: IncomingMessage, maxBytes: number) {
  let bytes = yield* bytesOf(request, maxBytes)
  const encodings = (request.headers["content-encoding"] ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity")
  for (const encoding of encodings.reverse()) {
    const decompress = decompressors.get(encoding)
    if (decompress === undefined) {
      return yield* new BadBody({
        status: 415,
        problem: `content-encoding "${encoding}" is not known; send one of ${[...decompressors.keys()].join(", ")}, or none`
      })
    }
    const compressed = bytes
    bytes = yield* Effect.callback<Buffer, BadBody>((resume) => {
      decompress(compressed, { maxOutputLength: maxBytes }, (error, result) =>
        resume(
          error === null
            ? Effect.succeed(result)
            : Effect.fail(
              "code" in error && error.code === "ERR_BUFFER_TOO_LARGE"
                ? tooLarge(maxBytes)
                : new BadBody({ status: 400, problem: `the body is not ${encoding}: ${error.message}` })
            )
        ))
    })
  }
  return bytes.toString("utf8")
})
