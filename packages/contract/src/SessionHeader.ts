/**
 * What a session is, fixed at its creation: the first line of its log.
 */
import * as Schema from "effect/Schema"
import { Checksum } from "./InboxEntry.ts"
import { Count, EpochMillis, NonEmptyString, NonEmptySystemString, SessionId } from "./Scalars.ts"

/** The version of the log's format that this package writes. */
export const format = 1

export const SessionHeader = Schema.Struct({
  type: Schema.Literal("session"),
  format: Schema.Literal(format).annotateKey({ description: "The version of the log's format. A reader refuses one that it does not know." }),
  id: SessionId,
  created: EpochMillis,
  harness: NonEmptyString.annotateKey({ description: "The harness that the session was begun with." }),
  cwd: NonEmptySystemString.annotateKey({ description: "The absolute directory that the session was begun in." }),
  title: Schema.optionalKey(Schema.String),
  parent: Schema.optionalKey(Schema.Struct({
    id: SessionId,
    events: Count.annotateKey({ description: "How many of the parent's first events this log begins with." })
  })).annotateKey({ description: "The session that this one was forked from." }),
  sum: Schema.optionalKey(Checksum)
}).annotate({ identifier: "SessionHeader", description: "What a session is, fixed at its creation: the first line of its log." })
export type SessionHeader = typeof SessionHeader.Type
