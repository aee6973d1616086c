/**
 * What happened in a session, as its log keeps it.
 *
 * A turn is enclosed: `turn/start` opens it, `turn/end` closes it, and every
 * other event stands between the two. `seq` starts at 0 and has no gaps. What was
 * written once keeps its meaning: the format only grows.
 */
import * as Schema from "effect/Schema"
import { Count, EpochMillis, Json, NonEmptyString, Ordinal } from "./Scalars.ts"
import { Checksum, ReceiptId } from "./InboxEntry.ts"
import * as TurnEvent from "./TurnEvent.ts"
import * as Verdict from "./Verdict.ts"

const source = Schema.String.annotateKey({ description: "Who wrote it, such as user, or plugin:bash." })

export const Trigger = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("message"), source }).annotate({ description: "A prompt that was waiting." }),
  Schema.Struct({ kind: Schema.Literal("injection"), source }).annotate({
    description: "A text that was put into the session as a turn of its own, without a model call."
  }),
  Schema.Struct({ kind: Schema.Literal("continuation") }).annotate({ description: "Work that an earlier turn left waiting." }),
  Schema.Struct({ kind: Schema.Literal("background") }).annotate({
    description: "The harness went on working by itself after its turn had ended."
  })
]).annotate({ identifier: "TurnTrigger", description: "Why the turn began." })
export type Trigger = typeof Trigger.Type

const event = <const T extends string, F extends Schema.Struct.Fields>(type: T, description: string, data: F) =>
  Schema.Struct({ type: Schema.Literal(type), data: Schema.Struct(data) }).annotate({ description })

const turn = Ordinal.annotateKey({ description: "1 for the session's first turn." })

export const TurnStart = event("turn/start", "A turn opens.", { turn, trigger: Trigger })
export const TurnEnd = event("turn/end", "The turn closes, once, with its verdict.", { turn, verdict: Verdict.Verdict })

const words = {
  text: Schema.String,
  source,
  receipt: Schema.optionalKey(ReceiptId).annotateKey({ description: "The inbox receipt that it was. Absent where it came another way." })
}
export const UserMessage = event("user/message", "The prompt of the turn.", words)
export const ContextMessage = event("context/message", "A text that the model is to know and that is no prompt.", words)
export const SteeringMessage = event("steering/message", "A prompt that came while the turn ran and was taken into it.", words)

export const InboxClaimed = event("inbox/claimed", "Receipts were taken out of the inbox for this turn.", {
  turn,
  ids: Schema.Array(ReceiptId).check(Schema.isMinLength(1), Schema.isUnique()).annotateKey({
    description: "In the order in which they were taken. Each once."
  })
})

export const RequestHeader = event("request/header", "What the next model requests have in common. Written when it changes.", {
  reason: Schema.Literals(["initial", "resume", "change"]),
  header: Schema.Struct({
    provider: NonEmptyString,
    model: NonEmptyString,
    system: Schema.optionalKey(Schema.String),
    tools: Schema.optionalKey(Schema.Array(Json)).annotateKey({ description: "The declared tools, in their order." }),
    config: Json.annotateKey({ description: "The effective options of the request." }),
    defaulted: Schema.optionalKey(Schema.Array(Schema.String)).annotateKey({
      description: "Names of the options that the provider filled in."
    })
  })
})

export const RequestContext = event("request/context", "The model that a request goes to, where it changed.", {
  provider: NonEmptyString,
  model: NonEmptyString,
  context_window: Schema.optionalKey(Count).annotateKey({ description: "Tokens that the model takes. Absent where unknown." })
})

export const RetryStarted = event("retry/started", "The wait of retry/scheduled is over and the request is sent again.", {
  attempt: Ordinal.annotateKey({ description: "That of the retry/scheduled." })
})

export const ErrorEvent = event("error", "A failure within the turn.", {
  code: Schema.String,
  message: Schema.String
})

/** Bodies whose effect on the model's view of the conversation is said by `surface_op`. */
const surfaceTypes = ["user/message", "context/message", "steering/message", "assistant/message", "tool/result"] as const
export type SurfaceType = (typeof surfaceTypes)[number]

const isSurfaceType = (type: string): type is SurfaceType => (surfaceTypes as ReadonlyArray<string>).includes(type)

/** Whether events of this type carry `surface_op`. */
export const isSurface = (type: string): boolean => isSurfaceType(type)

/** The log's events without their envelope. */
export const bodies = [
  TurnStart,
  ...TurnEvent.members,
  RetryStarted,
  UserMessage,
  ContextMessage,
  SteeringMessage,
  InboxClaimed,
  RequestHeader,
  RequestContext,
  ErrorEvent,
  TurnEnd
] as const
type KnownBody = (typeof bodies)[number]["Type"]

/** What an event does to the list of messages that the model is shown. */
export const SurfaceOp = Schema.Union([
  Schema.Literal("append"),
  Schema.Struct({
    replace: Schema.Struct({
      start: Count.annotateKey({
        description: "The first surface event that is replaced, counted from 0 among those that stand: the ones that nothing has replaced, in the order of the list."
      }),
      end: Count.annotateKey({ description: "The position after that of the last one that is replaced. More than start." })
    })
  })
]).annotate({
  identifier: "SurfaceOp",
  description:
    "append: the message comes last; replace: it stands in the place of a range of messages, whose events source_event_seqs names, every one. A tool/result replaces the result of its own call alone."
})
export type SurfaceOp = typeof SurfaceOp.Type

const envelope = {
  seq: Count.annotateKey({ description: "Position in the log, from 0, without gaps." }),
  time: EpochMillis,
  sum: Schema.optionalKey(Checksum)
}

const surface = {
  surface_op: SurfaceOp,
  source_event_seqs: Schema.optionalKey(
    Schema.Array(Count).check(Schema.isMinLength(1), Schema.isUnique())
  ).annotateKey({ description: "Earlier events that this one sums up or replaces. Each once." })
}

interface Envelope {
  readonly seq: number
  readonly time: number
}

interface Surface {
  readonly surface_op: SurfaceOp
  readonly source_event_seqs?: ReadonlyArray<number>
}

const enveloped = bodies.map((body) =>
  Schema.Struct({
    ...envelope,
    ...body.fields,
    ...(isSurfaceType(body.fields.type.literal) ? surface : {})
  } as const)
) as unknown as ReadonlyArray<Schema.Codec<Envelope & { readonly sum?: string } & KnownBody>>

const known: ReadonlySet<string> = new Set(bodies.map((body) => body.fields.type.literal))

/** Whether this format has events of this type. Those of plugins are not among them. */
export const isKnown = (type: string): boolean => known.has(type)

const pluginPattern = /^x\/[a-z0-9][a-z0-9-]*\/[a-z0-9][a-z0-9_-]*$/u

const ignorable = Schema.optionalKey(Schema.Literal(true)).annotateKey({
  description: "Present where a reader that does not know the event may go on without it."
})

/** A plugin's event, named `x/<namespace>/<name>`. */
export const PluginEvent = Schema.Struct({
  ...envelope,
  type: Schema.String.check(Schema.isPattern(pluginPattern, {
    expected: "x/<namespace>/<name>, in lower case letters, digits, - and, in the name, _",
    toJsonSchema: () => ({ pattern: pluginPattern.source, not: { pattern: "\\n" } })
  })),
  ignorable,
  data: Json
}).annotate({ description: "A plugin's event. Those who do not know the plugin keep it as it is." })

/** An event of a later format that this one may pass over. */
export const UnknownEvent = Schema.Struct({
  ...envelope,
  type: NonEmptyString.check(Schema.makeFilter((type: string) => !isKnown(type) && !type.startsWith("x/"), {
    expected: "a type that this format does not have",
    toJsonSchema: () => ({ not: { anyOf: [{ enum: [...known] }, { pattern: "^x/" }] } })
  })),
  ignorable: Schema.Literal(true).annotateKey({
    messageMissingKey: "Expected a type that this format has; only an event that is marked as ignorable may have another"
  }),
  data: Json
}).annotate({ description: "An event that this format does not know and that says that it may be passed over." })

interface PluginBody {
  readonly type: `x/${string}/${string}`
  readonly ignorable?: true
  readonly data: Schema.Json
}

/** A body, with its mark where it is on the surface. */
export type Body =
  | Exclude<KnownBody, { readonly type: SurfaceType }>
  | (Extract<KnownBody, { readonly type: SurfaceType }> & Surface)
  | PluginBody
export type SessionEvent = Envelope & Body

/**
 * One entry of a session's log.
 *
 * An {@link UnknownEvent} is accepted too and has no part in the type, or no
 * `type` could be told from the others: what reads a log of a later format
 * leaves out what {@link isForeign} finds.
 */
export const SessionEvent = Schema.Union([...enveloped, PluginEvent, UnknownEvent]).annotate({
  identifier: "SessionEvent",
  description: "One entry of a session's log."
}) as unknown as Schema.Codec<SessionEvent>

/** Narrows a known event to one type. */
export type Of<T extends KnownBody["type"]> = Envelope & Extract<KnownBody, { readonly type: T }> & (T extends SurfaceType ? Surface : object)

/** Whether an event is neither this format's own nor a plugin's: one that may be passed over. */
export const isForeign = (event: SessionEvent): boolean => !isKnown(event.type) && !event.type.startsWith("x/")
