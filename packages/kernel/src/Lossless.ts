/**
 * What may enter a log: what JSON gives back as it was.
 */
import type * as Schema from "effect/Schema"
import * as Result from "effect/Result"

/** How deep a value may be nested: the depth that every reader of the contract takes. */
const maxDepth = 100

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Whether an array is its items and nothing else. A loop, since the methods of arrays pass over holes. */
const isDense = (value: ReadonlyArray<unknown>): boolean => {
  // Besides its items an array has its length.
  if (Reflect.ownKeys(value).length !== value.length + 1) return false
  for (let index = 0; index < value.length; index++) {
    const property = Object.getOwnPropertyDescriptor(value, index)
    if (property?.enumerable !== true || !("value" in property)) return false
  }
  return true
}

const scalarFault = (value: unknown): string | undefined => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined
    case "number":
      return !Number.isFinite(value) ? "is no finite number" : Object.is(value, -0) ? "is minus zero" : undefined
    default:
      return value === null ? undefined : `is ${value === undefined ? "undefined" : `a ${typeof value}`}`
  }
}

class Fault extends Error {}

const copy = (value: unknown, place: string, above: ReadonlyArray<object>): Schema.Json => {
  const fail = (what: string): never => {
    throw new Fault(`${place} ${what}`)
  }
  if (typeof value !== "object" || value === null) {
    const fault = scalarFault(value)
    return fault === undefined ? value as Schema.Json : fail(fault)
  }
  if (above.length >= maxDepth) return fail(`is nested more than ${maxDepth} levels deep`)
  if (above.includes(value)) return fail("holds itself")
  const within = [...above, value]
  if (Array.isArray(value)) {
    if (!isDense(value)) return fail("is an array with holes or with names")
    return Object.freeze(value.map((item, index) => copy(item, `${place}[${index}]`, within)))
  }
  if (!isPlain(value)) return fail("is no plain object")
  const copied: Record<string, Schema.Json> = {}
  for (const key of Reflect.ownKeys(value)) {
    if (typeof key === "symbol") return fail("has a symbol for a name")
    const property = Object.getOwnPropertyDescriptor(value, key)
    if (property?.enumerable !== true || !("value" in property)) return fail(`has ${key}, which is hidden or computed`)
    Object.defineProperty(copied, key, {
      value: copy(property.value, `${place}.${key}`, within),
      enumerable: true,
      configurable: true,
      writable: true
    })
  }
  return Object.freeze(copied)
}

/**
 * Copies a value, and freezes the copy, so that whoever holds the value or the
 * copy changes nothing of what was logged. Fails with the first place that JSON
 * would not give back as it is: `undefined`, functions, symbols, big integers,
 * numbers that are not finite, minus zero, cycles, arrays with holes, instances of
 * classes, names that are hidden.
 */
export const snapshot = (value: unknown, name: string): Result.Result<Schema.Json, string> => {
  try {
    return Result.succeed(copy(value, name, []))
  } catch (fault) {
    if (fault instanceof Fault) return Result.fail(fault.message)
    throw fault
  }
}
