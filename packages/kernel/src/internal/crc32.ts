/**
 * CRC-32 as zlib, gzip and PNG have it: polynomial 0x04C11DB7, reflected, all
 * ones at the beginning and inverted at the end.
 */
const table = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

/** The checksum of the bytes before `end`, in eight hexadecimal digits. */
export const crc32 = (bytes: Uint8Array, end: number = bytes.length): string => {
  let crc = 0xffffffff
  // Every index is in range: a byte has 256 values, as many as the table.
  for (let at = 0; at < end; at++) crc = (crc >>> 8) ^ table[(crc ^ bytes[at]!) & 0xff]!
  return ((crc ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0")
}
