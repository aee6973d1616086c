/**
 * Where sessions are kept: their logs, their inboxes, and who may write.
 *
 * One port for every backend. What it promises, and every store's suite shows:
 *
 * - An append is committed whole or not at all, and in order; what `append`
 *   acknowledged survives the process, and with `sync` the machine.
 * - One writer: a lease has a generation, and an append under an older one than
 *   the store has seen is refused, also from a process that was frozen.
 * - A receipt is durable before its sender is told, and is claimed at most once.
 * - Readers need no lease, see committed events only, and miss and repeat none.
 */
import { Contracts, Failure, type InboxEntry, type Scalars, type SessionEvent, type SessionHeader } from "@turnpike/contract"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { faultOf } from "./internal/eventDecoder.ts"
import * as Lossless from "./Lossless.ts"

/** A store cannot do what was asked. What it held before, it holds still. */
export class SessionStoreError extends Schema.TaggedError<SessionStoreError>()("SessionStoreError", {
  failure: Failure.Failure
}) {
  override get message() {
    return this.failure.message
  }
}

/** Who holds a session, for those who are refused. */
export interface Holder {
  /** What holds it, as a noun, such as `turnpike chat (process 4711 on host anna)`. */
  readonly name: string
  /** Since when, in milliseconds since 1970. */
  readonly since: number
}

/** A session as a list shows it. */
export interface Summary {
  readonly header: SessionHeader.SessionHeader
  /** How many events the log has. */
  readonly events: number
  /** How many turns were begun. */
  readonly turns: number
  /** The time of the last event, or of the session's creation. */
  readonly updated: number
  /** Receipts that wait. */
  readonly pending: number
  readonly holder: Holder | undefined
}

/** What opening a session for writing put in order. */
export interface Recovery {
  /** The events that closed a turn which a crash had left open, in order. */
  readonly closed: ReadonlyArray<SessionEvent.SessionEvent>
  /** Bytes after the last whole record that were cut off; 0 where a store has no such thing. */
  readonly cutBytes: number
  /** The new receipts of prompts that had been claimed and not begun. */
  readonly requeued: ReadonlyArray<InboxEntry.Receipt>
}

/** What is to be received: a receipt before the inbox gave it its id and time. */
export type Message = Pick<InboxEntry.Receipt, "kind" | "text" | "source"> & {
  readonly key?: string
  readonly retry_of?: InboxEntry.ReceiptId
}

export interface Received {
  readonly receipt: InboxEntry.Receipt
  /** False where the same key and content had been received before: the receipt is that one. */
  readonly isNew: boolean
}

/**
 * What waits in an inbox, each in the order in which it was received. A receipt
 * that repeats another stands in that one's place, so that no prompt overtakes
 * one that a crash kept from being begun.
 */
export interface Pending {
  /** Grows with each record of the inbox; see `inboxChanged`. */
  readonly version: number
  /** `followup`. */
  readonly nextTurn: ReadonlyArray<InboxEntry.Receipt>
  /** `steer` and `inject`. */
  readonly nextStep: ReadonlyArray<InboxEntry.Receipt>
  /** Receipts that wait and that somebody else asks to be discarded. */
  readonly discardRequests: ReadonlyArray<{ readonly id: InboxEntry.ReceiptId; readonly by: string }>
}

export interface AppendOptions {
  /** Whether the events are to be on disk, and not only with the operating system, before this is acknowledged. */
  readonly sync: boolean
}

/** The right to write one session, until its scope closes. */
export interface Writer {
  readonly header: SessionHeader.SessionHeader
  /** Greater than that of every earlier writer of the session. */
  readonly generation: number
  readonly recovery: Recovery
  /**
   * Appends events whose `seq` go on from the log's end without a gap, all or
   * none. An `inbox/claimed` among them takes its receipts out of the inbox in the
   * same commit. `SessionLog` sees to the other rules of a log.
   *
   * Fails with `LOG_RULE` where a `seq` is not the next one or a receipt that is
   * claimed does not wait; with `SESSION_BUSY` where another writer has taken over, or
   * the scope has closed; with `STORE_FAILED` or `STORE_FULL` where the medium
   * does. Nothing of it is then in the log.
   */
  readonly append: (
    events: ReadonlyArray<SessionEvent.SessionEvent>,
    options: AppendOptions
  ) => Effect.Effect<void, SessionStoreError>
  /**
   * Takes receipts that wait out of the inbox. Those that do not wait are left out of
   * the answer. Fails with `INVALID_SPEC` where `by` is empty.
   */
  readonly discard: (
    ids: ReadonlyArray<InboxEntry.ReceiptId>,
    cause: InboxEntry.DiscardCause,
    by: string
  ) => Effect.Effect<ReadonlyArray<InboxEntry.Receipt>, SessionStoreError>
}

export interface Service {
  /**
   * Makes a session, with the first events of a fork where it is one: as many as
   * its header says, with no turn open at their end. What they claim is the parent's.
   * They are copied. Fails with `SESSION_EXISTS`, and with `LOG_RULE` for any other
   * seed, naming the event that is not as JSON holds it or breaks a rule.
   */
  readonly create: (
    header: SessionHeader.SessionHeader,
    seed?: ReadonlyArray<SessionEvent.SessionEvent>
  ) => Effect.Effect<void, SessionStoreError>
  /** Fails with `SESSION_UNKNOWN`. */
  readonly header: (id: Scalars.SessionId) => Effect.Effect<SessionHeader.SessionHeader, SessionStoreError>
  /**
   * Takes the session for writing, and puts in order what a crash left.
   *
   * Fails with `SESSION_UNKNOWN`, with `SESSION_BUSY` naming the holder and since
   * when, and with `SESSION_DAMAGED` where committed events cannot be read,
   * naming the place: nothing is then changed.
   */
  readonly open: (id: Scalars.SessionId, holder: string) => Effect.Effect<Writer, SessionStoreError, Scope.Scope>
  /**
   * The committed events whose `seq` is greater than `after`, in order; all of
   * them for -1. Ends at the log's end. Events of a later version that may be passed
   * over are among them: see `SessionEvent.isForeign`.
   */
  readonly read: (id: Scalars.SessionId, after: number) => Stream.Stream<SessionEvent.SessionEvent, SessionStoreError>
  /** As `read`, and then those that are committed later, by whichever process. Fails with `SESSION_UNKNOWN` once the session is deleted. */
  readonly follow: (id: Scalars.SessionId, after: number) => Stream.Stream<SessionEvent.SessionEvent, SessionStoreError>
  /**
   * Receives a message for a session, whoever holds it, durably before it answers.
   * Fails with `KEY_CONFLICT` where its key was used with another kind, text or source,
   * and with `INVALID_SPEC` where no record of an inbox can hold it, such as one whose
   * key is empty.
   */
  readonly receive: (id: Scalars.SessionId, message: Message) => Effect.Effect<Received, SessionStoreError>
  /**
   * Asks the session's holder to discard receipts. Those that do not wait are passed
   * over. Fails with `INVALID_SPEC` where `by` is empty.
   */
  readonly requestDiscard: (
    id: Scalars.SessionId,
    ids: ReadonlyArray<InboxEntry.ReceiptId>,
    by: string
  ) => Effect.Effect<void, SessionStoreError>
  readonly pending: (id: Scalars.SessionId) => Effect.Effect<Pending, SessionStoreError>
  /**
   * Completes when the inbox has a record more than at a `version` of `pending`, by
   * whichever process; at once where it has one already, so that none is missed
   * between a look and this. Fails with `SESSION_UNKNOWN` once the session is deleted.
   */
  readonly inboxChanged: (id: Scalars.SessionId, version: number) => Effect.Effect<void, SessionStoreError>
  /**
   * All sessions, the last changed first. Fails with `SESSION_DAMAGED` or
   * `FORMAT_UNSUPPORTED` where one cannot be read; the others may have been told before.
   */
  readonly list: Stream.Stream<Summary, SessionStoreError>
  /** The records of an inbox, in order, for export. */
  readonly inbox: (id: Scalars.SessionId) => Stream.Stream<InboxEntry.InboxEntry, SessionStoreError>
  /**
   * Puts a whole exported session in, all or nothing. The events are read to their end
   * before the records of the inbox. Its last turn may be open; the
   * first writer closes it. Fails with `SESSION_EXISTS`, with `SESSION_DAMAGED` where
   * the log or the inbox breaks a rule, and as its streams do.
   */
  readonly restore: (
    header: SessionHeader.SessionHeader,
    events: Stream.Stream<SessionEvent.SessionEvent, SessionStoreError>,
    inbox: Stream.Stream<InboxEntry.InboxEntry, SessionStoreError>
  ) => Effect.Effect<void, SessionStoreError>
  /** Deletes a session with its inbox. Fails with `SESSION_UNKNOWN` and, where it is held, `SESSION_BUSY`. */
  readonly delete: (id: Scalars.SessionId) => Effect.Effect<void, SessionStoreError>
}

export class SessionStore extends Context.Service<SessionStore, Service>()("@turnpike/kernel/SessionStore") {}

const decodeEntry = Contracts.decode("inbox-entry")

const invalid = (message: string) =>
  new SessionStoreError({
    failure: Failure.make("INVALID_SPEC", message, { remedy: "Correct the named field; `turnpike schema inbox-entry` prints the contract." })
  })

/** Fails where a record with these words is none of the contract: whoever read the inbox later could not read past it. */
const ifRecord = (what: string, record: object): Effect.Effect<void, SessionStoreError> =>
  Effect.suspend(() => {
    const decoded = decodeEntry(record)
    return Result.isSuccess(decoded) ? Effect.void : Effect.fail(invalid(`${what} is none that an inbox can hold: ${decoded.failure}`))
  })

/** What the inbox gives to a record itself. */
const given = { seq: 0, time: 0, id: "r" }

const ifMessage = (message: Message): Effect.Effect<void, SessionStoreError> => {
  const own = Object.keys(given).find((field) => Object.hasOwn(message, field))
  return own === undefined
    ? ifRecord("the message", { ...given, type: "received", ...message })
    : Effect.fail(invalid(`the message has a field ${own} of its own; the inbox gives it`))
}

const ifDecider = (by: string): Effect.Effect<void, SessionStoreError> =>
  ifRecord("the request for a discard", { seq: 0, time: 0, type: "discard_requested", ids: ["r"], by })

/** The events that a session begins with, detached from the caller's, or why a log cannot hold one of them. */
const seedOf = (seed: ReadonlyArray<SessionEvent.SessionEvent>): Effect.Effect<ReadonlyArray<SessionEvent.SessionEvent>, SessionStoreError> =>
  Effect.suspend(() => {
    const events: Array<SessionEvent.SessionEvent> = []
    const refuse = (fault: string) => {
      const message = `event ${events.length} of those that the session is to begin with is none that a log can hold: ${fault}`
      return Effect.fail(new SessionStoreError({ failure: Failure.make("LOG_RULE", message) }))
    }
    for (const event of seed) {
      const snapshot = Lossless.snapshot(event, "event")
      if (Result.isFailure(snapshot)) return refuse(snapshot.failure)
      const fault = faultOf(snapshot.success)
      if (fault !== undefined) return refuse(fault)
      // The copy has the event's shape: it was made of it.
      events.push(snapshot.success as unknown as SessionEvent.SessionEvent)
    }
    return Effect.succeed(events)
  })

/** The store, refusing what would become an event or a record that nobody can read. Every store is one of these. */
export const strict = (service: Service): Service => ({
  ...service,
  create: (header, seed = []) => Effect.flatMap(seedOf(seed), (events) => service.create(header, events)),
  open: (id, holder) =>
    Effect.map(service.open(id, holder), (writer) => ({
      ...writer,
      discard: (ids, cause, by) => Effect.andThen(ifDecider(by), writer.discard(ids, cause, by))
    })),
  receive: (id, message) => Effect.andThen(ifMessage(message), service.receive(id, message)),
  requestDiscard: (id, ids, by) => Effect.andThen(ifDecider(by), service.requestDiscard(id, ids, by))
})
