/**
 * What stands in a session's inbox, beside its log.
 *
 * Receiving a prompt is not running it. A receipt is durable before its sender
 * is told, and is claimed by an event of the log, never here:
 * pending = received − claimed − discarded.
 */
import * as Schema from "effect/Schema"
import { Count, EpochMillis, NonEmptyString } from "./Scalars.ts"

/** The checksum of a line of a file of records. */
export const Checksum = Schema.String.check(Schema.isPattern(/^[0-9a-f]{8}$/u, {
  expected: "8 hexadecimal digits in lower case",
  toJsonSchema: () => ({ pattern: "^[0-9a-f]{8}$", not: { pattern: "\\n" } })
})).annotate({
  identifier: "Checksum",
  description:
    "In files only, always the last field of its line: CRC-32 (that of zlib and PNG) of the line's bytes before `,\"sum\":`, in hexadecimal."
})

/** The id of one receipt. Unique for the session's life. */
export const ReceiptId = NonEmptyString.annotate({
  identifier: "ReceiptId",
  description: "The id of a receipt. Unique for the session's life."
})
export type ReceiptId = typeof ReceiptId.Type

export const ReceiptKind = Schema.Literals(["followup", "steer", "inject"]).annotate({
  identifier: "ReceiptKind",
  description:
    "followup: a prompt for a turn of its own; steer: a prompt that a running turn takes at its next step; inject: a text that waits for the next step and wakes nobody."
})
export type ReceiptKind = typeof ReceiptKind.Type

const envelope = {
  seq: Count.annotateKey({ description: "Position in the inbox's own list of records, from 0, without gaps." }),
  time: EpochMillis,
  sum: Schema.optionalKey(Checksum)
}

/** What is to be told to the session. */
export const receiptFields = {
  id: ReceiptId,
  kind: ReceiptKind,
  text: Schema.String,
  source: Schema.String.annotateKey({ description: "Who wrote it, such as user." }),
  key: Schema.optionalKey(NonEmptyString).annotateKey({
    description: "The sender's idempotency key: the same key with the same content is the same receipt."
  }),
  retry_of: Schema.optionalKey(ReceiptId).annotateKey({
    description: "The receipt that a crash kept from being begun, and that this one repeats."
  })
}

export const Received = Schema.Struct({ ...envelope, type: Schema.Literal("received"), ...receiptFields }).annotate({
  description: "A receipt: accepted, not yet run."
})

export const DiscardCause = Schema.Literals(["cancelled", "removed", "session_deleted"]).annotate({
  identifier: "DiscardCause",
  description: "cancelled: the work that it belonged to was cancelled; removed: somebody took it back; session_deleted: with its session."
})
export type DiscardCause = typeof DiscardCause.Type

export const Discarded = Schema.Struct({
  ...envelope,
  type: Schema.Literal("discarded"),
  ids: Schema.Array(ReceiptId).check(Schema.isMinLength(1), Schema.isUnique()),
  cause: DiscardCause,
  by: NonEmptyString.annotateKey({ description: "Who decided it." })
}).annotate({ description: "Receipts that will not be run. Void for one that the log claims." })

export const DiscardRequested = Schema.Struct({
  ...envelope,
  type: Schema.Literal("discard_requested"),
  ids: Schema.Array(ReceiptId).check(Schema.isMinLength(1), Schema.isUnique()),
  by: NonEmptyString
}).annotate({ description: "Somebody who does not hold the session asks for a discard. The holder decides." })

export const members = [Received, Discarded, DiscardRequested] as const

/** One record of a session's inbox. */
export const InboxEntry = Schema.Union(members).annotate({
  identifier: "InboxEntry",
  description: "One record of a session's inbox."
})
export type InboxEntry = typeof InboxEntry.Type

/** A receipt as its sender gives it; id, time and position are the inbox's. */
export type Receipt = Omit<typeof Received.Type, "seq" | "sum" | "type">
