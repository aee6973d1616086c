/**
 * The scalars that every contract shares.
 *
 * Brands vanish in JSON Schema, so each id's meaning and each number's unit and
 * range stand in its `description`.
 */
import * as Schema from "effect/Schema"

/**
 * Restricts a string to a pattern that holds in every language.
 *
 * Python's `$` also matches before a final line feed, so JSON Schema gets a
 * second condition that forbids one. Without the flag `u` Effect leaves a
 * pattern out of JSON Schema.
 */
const matches = (pattern: RegExp, expected: string) =>
  Schema.isPattern(pattern, {
    expected,
    toJsonSchema: () => ({ pattern: pattern.source, not: { pattern: "\\n" } })
  })

/** A string with at least one character. */
export const NonEmptyString = Schema.String.check(Schema.isMinLength(1, { expected: "a string that is not empty" }))

/** Text that can be handed to an operating system, which ends every string at a NUL. */
export const SystemString = Schema.String.check(
  Schema.isPattern(/^[^\x00]*$/u, { expected: "a string without the character NUL" })
)

/** A path or a name that is handed to an operating system. */
export const NonEmptySystemString = Schema.String.check(
  Schema.isPattern(/^[^\x00]+$/u, { expected: "a string that is not empty, without the character NUL" })
)

/** Turnpike's own id of a session. Constant for the session's life, whatever the harness calls it. */
export const SessionId = Schema.String.check(
  matches(
    /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/u,
    "1 to 128 characters of A-Z a-z 0-9 _ . -, beginning with a letter or digit"
  )
).annotate({
  identifier: "SessionId",
  description:
    "Turnpike's own id of a session: 1 to 128 characters of A-Z a-z 0-9 _ . -, beginning with a letter or digit. It never changes for the session's life."
})
export type SessionId = typeof SessionId.Type

/** The id of one run: the same on every event of the run. */
export const RunId = NonEmptyString.annotate({
  identifier: "RunId",
  description: "The id of one run. The same on every event of the run."
})
export type RunId = typeof RunId.Type

/** Pairs a start with its end: a tool call, a phase, or a permission request. */
export const CallId = NonEmptyString.annotate({
  identifier: "CallId",
  description: "Pairs a start with its end. Unique within a run."
})
export type CallId = typeof CallId.Type

/** A count that starts at 0 and never exceeds 2^53 - 1. */
export const Count = Schema.Int.check(
  Schema.isGreaterThanOrEqualTo(0, { expected: "a whole number from 0" })
).annotate({
  description: "A whole number from 0 to 9007199254740991."
})

/** A position that is counted from 1: a turn of a session, a step of a turn, an attempt. */
export const Ordinal = Schema.Int.check(
  Schema.isGreaterThanOrEqualTo(1, { expected: "a whole number from 1" })
).annotate({
  description: "A whole number from 1 to 9007199254740991."
})

/**
 * An amount of United States dollars.
 *
 * The maximum is the largest finite double: some readers of JSON turn `1e999`
 * into infinity, and only a bound makes them refuse it.
 */
export const UsDollars = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: Number.MAX_VALUE }, { expected: "a number of dollars, 0 or more" })
).annotate({ description: "United States dollars." })

/** Milliseconds since 1970-01-01T00:00:00Z. */
export const EpochMillis = Schema.Int.check(
  Schema.isGreaterThanOrEqualTo(0, { expected: "milliseconds since 1970" })
).annotate({
  description: "Milliseconds since 1970-01-01T00:00:00Z."
})

const day = (text: string) => Number(text.slice(8, 10))

/** Whether a day of this number is in the month: February has no 30th. */
const isRealDay = (timestamp: string): boolean => new Date(timestamp.slice(0, 10)).getUTCDate() === day(timestamp)

/** A moment in UTC, to the millisecond. Leap seconds are not written. */
export const Timestamp = Schema.String.check(
  matches(
    /^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z$/u,
    "a moment in UTC with milliseconds, such as 2026-01-31T09:00:00.000Z"
  ),
  Schema.makeFilter(isRealDay, { expected: "a day that the month has", toJsonSchema: () => [{}, true] })
).annotate({
  identifier: "Timestamp",
  description: "RFC 3339, UTC, milliseconds: 2026-01-31T09:00:00.000Z."
})

/** The name of an environment variable. */
export const VariableName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z_][A-Za-z0-9_]*$/u, {
    expected: "a variable name: letters, digits and _, not beginning with a digit"
  })
)

/** Free-form JSON. Only fields that are declared as such carry it. */
export const Json = Schema.Json
