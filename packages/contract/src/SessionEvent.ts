/**
 * What happened in a session, as its log keeps it.
 *
 * A turn is enclosed: `turn/start` opens it, `turn/end` closes it, and every
 * other event stands between the two. `seq` starts at 0 and has no gaps.
 */
import * as Schema from "effect/Schema"
import { Count, EpochMillis, Ordinal } from "./Scalars.ts"
import * as TurnEvent from "./TurnEvent.ts"
import * as Verdict from "./Verdict.ts"

export const Trigger = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("message"), source: Schema.String }),
  Schema.Struct({ kind: Schema.Literal("background") })
]).annotate({ identifier: "TurnTrigger", description: "Why the turn began." })

const event = <const T extends string, F extends Schema.Struct.Fields>(type: T, description: string, data: F) =>
  Schema.Struct({ type: Schema.Literal(type), data: Schema.Struct(data) }).annotate({ description })

const turn = Ordinal.annotateKey({ description: "1 for the session's first turn." })

export const TurnStart = event("turn/start", "A turn opens.", { turn, trigger: Trigger })
export const TurnEnd = event("turn/end", "The turn closes, once, with its verdict.", { turn, verdict: Verdict.Verdict })
export const UserMessage = event("user/message", "The prompt of the turn.", {
  text: Schema.String,
  source: Schema.String.annotateKey({ description: "Who wrote it, such as user." })
})
export const ErrorEvent = event("error", "A failure within the turn.", {
  code: Schema.String,
  message: Schema.String
})

/** The log's events without their envelope. */
export const bodies = [TurnStart, ...TurnEvent.members, UserMessage, ErrorEvent, TurnEnd] as const
export type Body = (typeof bodies)[number]["Type"]

const envelope = { seq: Count.annotateKey({ description: "Position in the log, from 0, without gaps." }), time: EpochMillis }

const enveloped = bodies.map((body) =>
  Schema.Struct({ ...envelope, ...body.fields } as const)
) as unknown as ReadonlyArray<
  Schema.Codec<{ readonly seq: number; readonly time: number } & Body>
>

/** One entry of a session's log. */
export const SessionEvent = Schema.Union(enveloped).annotate({
  identifier: "SessionEvent",
  description: "One entry of a session's log."
})
export type SessionEvent = { readonly seq: number; readonly time: number } & Body

