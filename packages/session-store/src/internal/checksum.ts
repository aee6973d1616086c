/** CRC-32 over texts and bytes, as zlib and PNG have it: what tells a flipped bit in a row. */
import * as zlib from "node:zlib"

/** A vertical bar stands between the parts, so that no two lists of numbers are the same text. */
export const sumOf = (facts: ReadonlyArray<number | string>, bytes?: Uint8Array): number => {
  const head = zlib.crc32(facts.join("|"))
  return bytes === undefined ? head : zlib.crc32(bytes, head)
}
