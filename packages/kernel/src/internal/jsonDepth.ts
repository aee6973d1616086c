/**
 * Free-form JSON of a harness, as it may be repeated.
 *
 * A reader of the contract takes `Contracts.maxDepth` levels, and what a tool is
 * given stands some levels deep in a result. Half of a deep value is of use; a line
 * that nobody can read is not.
 *
 * What was parsed may hold numbers that cannot be written again: `-0`, which
 * is written as `0`, and `1e999`, which is read as infinite.
 */
import type * as Schema from "effect/Schema"

/** The most levels of one free-form value: 64. */
export const maxLevels = 64

/** Stands where an array or an object was that is nested deeper. */
export const mark = `[nested more than ${maxLevels} levels deep]`

const cut = (value: Schema.Json, levels: number): Schema.Json => {
  // Minus zero and zero is zero.
  if (typeof value === "number") return Number.isFinite(value) ? value + 0 : String(value)
  if (typeof value !== "object" || value === null) return value
  if (levels === 0) return mark
  if (Array.isArray(value)) return value.map((item: Schema.Json) => cut(item, levels - 1))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cut(item as Schema.Json, levels - 1)]))
}

/**
 * The value, with {@link mark} in the place of what is nested too deep, `0` in that
 * of minus zero, and the word `Infinity` or `-Infinity` in that of a number too large.
 */
export const bound = (value: Schema.Json): Schema.Json => cut(value, maxLevels)
