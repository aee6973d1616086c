/**
 * The contract's decoder of events, with a way around it for pieces of answers:
 * nearly every event of a log is one, and they are the simplest.
 */
import { Contracts } from "@turnpike/contract"
import * as Result from "effect/Result"

const decode = Contracts.decode("session-event")

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

/** Whether a value is a piece of the turn's own answer and nothing else. False says nothing. */
export const isPlainPiece = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null) return false
  const { data, seq, time, type } = value as { readonly [field: string]: unknown }
  if (type !== "assistant/chunk" || !isCount(seq) || !isCount(time) || Object.keys(value).length !== 4) return false
  if (typeof data !== "object" || data === null || Object.keys(data).length !== 2) return false
  const { kind, text } = data as { readonly [field: string]: unknown }
  return (kind === "text" || kind === "reasoning") && typeof text === "string"
}

/** Why a value is no event of a log; `undefined` where it is one. */
export const faultOf = (value: unknown): string | undefined => {
  if (isPlainPiece(value)) return undefined
  const decoded = decode(value)
  return Result.isFailure(decoded) ? decoded.failure : undefined
}
