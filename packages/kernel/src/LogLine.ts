/**
 * One line of a file of records: a JSON object, with a checksum as its last field.
 *
 * `,"sum":"` and eight hexadecimal digits stand before the closing brace: CRC-32
 * of the line's bytes before that comma. A line without a checksum is read too; one
 * whose checksum is wrong, or stands elsewhere, is damaged.
 */
import { Contracts, SessionEvent, SessionHeader } from "@turnpike/contract"
import * as Result from "effect/Result"
import { crc32 } from "./internal/crc32.ts"
import { faultOf } from "./internal/eventDecoder.ts"
import { bytesOf, textOf } from "./internal/utf8.ts"

export type Contract = "session-header" | "session-event" | "inbox-entry"

/** One record of a file. */
export type Record<C extends Contract> = Contracts.TypeOf<C>

type Fields = { readonly [name: string]: unknown }

/** Why a line is no record. */
export interface Fault {
  /**
   * damaged: it is not what was written, or was never written whole; newer: it
   * is as it was written, and has what this version does not know.
   */
  readonly kind: "damaged" | "newer"
  /** As a sentence without its full stop. It repeats no value. */
  readonly message: string
}

const key = ",\"sum\":\""
const keyBytes = bytesOf(key)
const opens = "{".charCodeAt(0)
const closes = "}".charCodeAt(0)
/** The checksum field with the closing brace. */
const tailLength = key.length + 8 + 2

/** The line of a record, or of another object that stands among records, with its checksum, without a line feed. A record that comes with a checksum gets its own. */
export const encode = (record: object): string => {
  const { sum: _, ...fields } = record as Fields
  const body = JSON.stringify(fields).slice(0, -1)
  return `${body}${key}${crc32(bytesOf(body))}"}`
}

const damaged = (message: string): Result.Result<never, Fault> => Result.fail({ kind: "damaged", message })

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value)

/** Whether the checksum field stands where it has to. */
const hasTail = (bytes: Uint8Array): boolean => {
  const start = bytes.length - tailLength
  return start > 0 && keyBytes.every((byte, index) => bytes[start + index] === byte)
}

/**
 * Whether a line that is damaged was on its medium whole before it was, and not
 * left so by a crash, which leaves out the end of a line with its line feed, or a
 * run of zeros in the place of what it left out.
 */
export const wasWhole = (bytes: Uint8Array): boolean => {
  const zero = bytes.indexOf(0)
  return (bytes[0] === opens || bytes[bytes.length - 1] === closes) && (zero < 0 || bytes.indexOf(0, zero + 1) < 0)
}

/** A line's object without its checksum. */
interface Parsed {
  readonly fields: Fields
  /** Whether it had a checksum, which was right. */
  readonly isVerified: boolean
}

const parse = (bytes: Uint8Array): Result.Result<Parsed, Fault> => {
  const text = textOf(bytes)
  if (text === undefined) return damaged("its bytes are not UTF-8")
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return damaged("it is not JSON")
  }
  if (!isObject(value)) return damaged("it is not a JSON object")
  if (!Object.hasOwn(value, "sum")) return Result.succeed({ fields: value, isVerified: false })
  const { sum, ...fields } = value
  if (!hasTail(bytes)) return damaged("its checksum is not its last field")
  return sum === crc32(bytes, bytes.length - tailLength)
    ? Result.succeed({ fields, isVerified: true })
    : damaged("its checksum is not that of its bytes")
}

/** The fields of a line that is no record of a contract, without its checksum, which it must have. */
export const fields = (bytes: Uint8Array): Result.Result<Fields, Fault> =>
  Result.flatMap(parse(bytes), (parsed) => parsed.isVerified ? Result.succeed(parsed.fields) : damaged("it has no checksum"))

/** Whether an object that is no record of the contract was meant to be one all the same. */
const isNewer = (contract: Contract, { fields: { format, type }, isVerified }: Parsed): boolean => {
  switch (contract) {
    case "session-header":
      return type === "session" && (isVerified || (typeof format === "number" && Number.isSafeInteger(format) && format > SessionHeader.format))
    case "session-event":
      return isVerified || (typeof type === "string" && type !== "" && !type.startsWith("x/") && !SessionEvent.isKnown(type))
    case "inbox-entry":
      return isVerified
  }
}

/** Makes what reads the records of one kind of file, each from a line without its line feed. */
export const decoder = <C extends Contract>(contract: C): (bytes: Uint8Array) => Result.Result<Record<C>, Fault> => {
  const decode = Contracts.decode(contract)
  const fault = contract === "session-event" ? faultOf : (fields: Fields): string | undefined => {
    const decoded = decode(fields)
    return Result.isFailure(decoded) ? decoded.failure : undefined
  }
  return (bytes) => {
    const parsed = parse(bytes)
    if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
    const { fields } = parsed.success
    const message = fault(fields)
    // What was parsed is answered, not what was decoded: a copy may lose a field named __proto__.
    if (message === undefined) return Result.succeed(fields as unknown as Record<C>)
    return Result.fail({ kind: isNewer(contract, parsed.success) ? "newer" : "damaged", message })
  }
}
