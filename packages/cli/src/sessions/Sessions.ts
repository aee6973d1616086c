/**
 * The sessions of a data directory, for the commands on them.
 *
 * Whoever only looks makes neither the directory nor the store in it.
 */
import { Contracts, type Scalars, type SessionHeader } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as path from "node:path"
import { type Given, one, quote } from "../CommandLine.ts"
import * as Composition from "../Composition.ts"
import * as DataDirectory from "../DataDirectory.ts"
import * as InputText from "../InputText.ts"
import { fromFailure, refuse, type Refusal } from "../Refusal.ts"
import * as Store from "../Store.ts"
import { nearest } from "../Suggestion.ts"

/** The command that is run, with what the command line gave it. */
export interface Call {
  /** Such as `sessions show`. */
  readonly command: string
  readonly given: Given
}

const choose = (given: Given): Effect.Effect<DataDirectory.Choice, Refusal> =>
  Effect.suspend(() => {
    const choice = DataDirectory.choose(one(given, "data-dir"), Composition.environment())
    const refusal = DataDirectory.refusal(choice)
    return refusal === undefined ? Effect.succeed(choice) : Effect.fail(refusal)
  })

/** The directory as it would be used, also where it is not there. */
export const directoryOf = (given: Given): Effect.Effect<string, Refusal> => Effect.map(choose(given), ({ directory }) => directory)

/** Whether there is a store: a file that something was written into. Fails with `DATA_DIR_UNUSABLE` where nobody may look. */
const isThere = ({ by, directory }: DataDirectory.Choice): Effect.Effect<boolean, Refusal> =>
  Effect.try({
    try: () => {
      const found = fs.statSync(directory, { throwIfNoEntry: false })
      if (found?.isDirectory() === false) throw new Error("it is not a directory")
      return (fs.statSync(path.join(directory, Store.fileName), { throwIfNoEntry: false })?.size ?? 0) > 0
    },
    catch: (cause) => refuse("DATA_DIR_UNUSABLE", `the data directory ${directory} (${by}) cannot be looked at: ${InputText.reasonOf(cause)}`)
  })

/** Opens the store; `undefined` where no session was ever begun in the directory. */
export const look = (given: Given): Effect.Effect<SessionStore.Service | undefined, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const choice = yield* choose(given)
    return (yield* isThere(choice)) ? yield* Store.open(choice.directory) : undefined
  })

/** Opens the store, and makes it where it is missing. */
export const make = (given: Given): Effect.Effect<SessionStore.Service, Refusal, Scope.Scope> =>
  Effect.flatMap(choose(given), (choice) => Effect.flatMap(DataDirectory.open(choice), Store.open))

/** Among how many sessions the one is looked for that was meant: those that changed last. */
const searched = 2000

/** What is shown of an id that somebody typed. */
const shownId = (id: string): string => Result.isSuccess(decodeId(id)) ? id : quote(id)

const decodeHeader = Contracts.decode("session-header")

/** Whether a text may be the id of a session, or why not. */
const decodeId = (id: string): Result.Result<unknown, string> =>
  decodeHeader({ type: "session", format: 1, id, created: 0, harness: "x", cwd: "/" })

/** The id of a session that is to be made. Fails with `USAGE` where a text can be none. */
export const newId = (id: string): Effect.Effect<Scalars.SessionId, Refusal> =>
  Result.isSuccess(decodeId(id))
    ? Effect.succeed(id as Scalars.SessionId)
    : Effect.fail(refuse("USAGE", `${quote(id)} cannot be the id of a session`, {
      remedy: "An id has 1 to 128 characters of A-Z a-z 0-9 _ . - and begins with a letter or digit."
    }))

/** Whether a failure is that of a session that cannot be read, whatever is asked of it. */
export const isUnreadable = ({ failure }: SessionStore.SessionStoreError): boolean =>
  failure.code === "SESSION_DAMAGED" || failure.code === "FORMAT_UNSUPPORTED"

/** There is no such session: says which one may have been meant. */
const unknown = ({ command, given }: Call, id: string, store: SessionStore.Service | undefined): Effect.Effect<never, Refusal | SessionStore.SessionStoreError> =>
  Effect.gen(function*() {
    const { directory } = yield* choose(given)
    const known: Array<string> = []
    if (store !== undefined) {
      yield* Stream.runForEach(Stream.take(store.list, searched), ({ header }) => Effect.sync(() => known.push(header.id))).pipe(
        // That another session cannot be read is not what was asked.
        Effect.catchIf(isUnreadable, () => Effect.void)
      )
    }
    const meant = nearest(id, known)
    return yield* refuse("SESSION_UNKNOWN", `there is no session ${shownId(id)} in ${directory}`, {
      remedy: known.length === 0
        ? "No session was begun there yet: `turnpike run` begins one. Sessions elsewhere are named with --data-dir."
        : meant !== undefined
        ? `Did you mean \`turnpike ${command} ${meant}\`? \`turnpike sessions list\` lists them.`
        : "`turnpike sessions list` lists those that there are; sessions elsewhere are named with --data-dir.",
      data: { session_id: id.slice(0, 128) }
    })
  })

/** A session that there is. */
export interface Found {
  readonly id: Scalars.SessionId
  readonly store: SessionStore.Service
  readonly header: SessionHeader.SessionHeader
}

/** Opens the store in which a session is to be; where there is none, there is no such session. */
export const opened = (call: Call, id: string): Effect.Effect<SessionStore.Service, Refusal | SessionStore.SessionStoreError, Scope.Scope> =>
  Effect.flatMap(look(call.given), (store) => store === undefined ? unknown(call, id, undefined) : Effect.succeed(store))

/**
 * Finds a session. Fails with `SESSION_UNKNOWN`, naming the one that was probably
 * meant, and as the store does where the header cannot be read.
 */
export const find = (call: Call, id: string): Effect.Effect<Found, Refusal | SessionStore.SessionStoreError, Scope.Scope> =>
  Effect.flatMap(opened(call, id), (store) => among(call, store, id))

/** As {@link find}, in a store that is open. */
export const among = (call: Call, store: SessionStore.Service, id: string): Effect.Effect<Found, Refusal | SessionStore.SessionStoreError> =>
  store.header(id as Scalars.SessionId).pipe(
    Effect.map((header) => ({ id: header.id, store, header })),
    Effect.catchIf(({ failure }) => failure.code === "SESSION_UNKNOWN", () => unknown(call, id, store))
  )

/** A session was there when a command began, and is not any more. */
export const deleted = (id: string): Refusal =>
  refuse("SESSION_UNKNOWN", `session ${id} was deleted meanwhile`, { remedy: "`turnpike sessions list` lists those that there are." })

/** What a list has of a session. Fails with `SESSION_UNKNOWN` where it was deleted meanwhile. */
export const summaryOf = ({ id, store }: Pick<Found, "id" | "store">): Effect.Effect<SessionStore.Summary, Refusal | SessionStore.SessionStoreError> =>
  Effect.flatMap(
    // The one that is asked for is nearly always among the first.
    Stream.runHead(Stream.filter(store.list, ({ header }) => header.id === id)),
    Option.match({
      onNone: () => Effect.fail(deleted(id)),
      onSome: Effect.succeed
    })
  )

/** Who holds a session, as a list has it; `undefined` where nobody does. */
export const holderOf = (found: Pick<Found, "id" | "store">): Effect.Effect<SessionStore.Holder | undefined, Refusal | SessionStore.SessionStoreError> =>
  Effect.map(summaryOf(found), ({ holder }) => holder)

/** A command that would write into a session's log is refused while somebody holds it. */
export const busy = (id: string, holder: SessionStore.Holder, remedy: string): Refusal =>
  refuse("SESSION_BUSY", `session ${id} is used by ${holder.name} since ${new Date(holder.since).toISOString()}`, {
    remedy,
    data: { session_id: id, holder: holder.name, since: holder.since }
  })

/** Gives a failure of the store another remedy, where it has this code. */
export const withRemedy = (code: "SESSION_BUSY", remedy: string) =>
  Effect.mapError((error: SessionStore.SessionStoreError): SessionStore.SessionStoreError | Refusal =>
    error.failure.code === code ? fromFailure({ ...error.failure, remedy }) : error)
