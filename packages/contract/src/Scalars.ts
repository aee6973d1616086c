/**
 * The scalars that every contract shares.
 *
 * Brands vanish in JSON Schema, so each id's meaning and each number's unit and
 * range stand in its `description`.
 */
import * as Schema from "effect/Schema"

/** A string with at least one character. */
export const NonEmptyString = Schema.String.check(Schema.isMinLength(1))

/** Turnpike's own id of a session. Constant for the session's life, whatever the harness calls it. */
export const SessionId = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/)
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
export const Count = Schema.Natural.annotate({
  description: "A whole number from 0 to 9007199254740991."
})

/** Milliseconds since 1970-01-01T00:00:00Z. */
export const EpochMillis = Schema.Natural.annotate({
  description: "Milliseconds since 1970-01-01T00:00:00Z."
})

/** A moment in UTC, to the millisecond. */
export const Timestamp = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
).annotate({
  identifier: "Timestamp",
  description: "RFC 3339, UTC, milliseconds: 2026-01-31T09:00:00.000Z."
})

/** Free-form JSON. Only fields that are declared as such carry it. */
export const Json = Schema.Json
