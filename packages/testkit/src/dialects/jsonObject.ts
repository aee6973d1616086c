/** Objects of JSON, as the dialects read them. */
import type { Json } from "../DialectWords.ts"

export type JsonObject = { readonly [key: string]: Json }

export const isObject = (value: unknown): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value)

/** The object under a key; an empty one where there is none. */
export const objectAt = (value: Json | undefined, key: string): JsonObject => {
  const inner = isObject(value) ? value[key] : undefined
  return isObject(inner) ? inner : {}
}

export const textAt = (value: JsonObject, key: string): string | undefined => {
  const inner = value[key]
  return typeof inner === "string" ? inner : undefined
}

/** Reads a frame; absent where the text is no object. */
export const parse = (text: string): JsonObject | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
