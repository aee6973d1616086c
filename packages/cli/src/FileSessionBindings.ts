/**
 * What Turnpike remembers of sessions, as files: `sessions/<id>/session.json` in
 * the data directory, beside the session's lock.
 *
 * A file that cannot be understood is never overwritten: it may be a newer
 * Turnpike's. A session of which nothing was saved leaves no directory.
 */
import { Failure, type Scalars } from "@turnpike/contract"
import { SessionBindings } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as path from "node:path"
import * as DataDirectory from "./DataDirectory.ts"
import * as Holder from "./Holder.ts"
import * as SessionLock from "./SessionLock.ts"
import * as WholeFile from "./WholeFile.ts"

const decode = Schema.decodeUnknownResult(SessionBindings.Binding, { onExcessProperty: "error" })

const failed = (failure: Failure.Failure) => new SessionBindings.SessionBindingsError({ failure })

const unusable = (what: string) => (cause: unknown) => failed(DataDirectory.unusable(what, cause).failure)

const spoiled = (file: string, sessionId: string, why: string) =>
  failed(
    Failure.make("DATA_DIR_UNUSABLE", `the file ${file} of session ${sessionId} cannot be used: ${why}; it was left as it is`, {
      remedy: "Move the file away to begin the session anew, or use another session."
    })
  )

/** The directory of a session, for what else belongs to it. */
export const directoryOf = (dataDirectory: string, sessionId: Scalars.SessionId): string =>
  path.join(dataDirectory, "sessions", sessionId)

const read = (
  file: string,
  sessionId: Scalars.SessionId
): Effect.Effect<Option.Option<SessionBindings.Binding>, SessionBindings.SessionBindingsError> =>
  Effect.suspend(() => {
    let text: string
    try {
      text = fs.readFileSync(file, "utf8")
    } catch (cause) {
      return (cause as NodeJS.ErrnoException).code === "ENOENT"
        ? Effect.succeedNone
        : Effect.fail(unusable(`the file ${file} of session ${sessionId} cannot be read`)(cause))
    }
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return Effect.fail(spoiled(file, sessionId, "it is not JSON"))
    }
    const decoded = decode(value)
    if (Result.isFailure(decoded)) {
      return Effect.fail(spoiled(file, sessionId, decoded.failure.message.replaceAll("\n", " ")))
    }
    if (decoded.success.session_id !== sessionId) {
      return Effect.fail(spoiled(file, sessionId, `it belongs to session ${decoded.success.session_id}`))
    }
    return Effect.succeedSome(decoded.success)
  })

const lock = (
  directory: string,
  sessionId: Scalars.SessionId
): Effect.Effect<() => void, SessionBindings.SessionBindingsError> =>
  Effect.try({
    try: () => SessionLock.acquire(directory),
    catch: unusable(`session ${sessionId} cannot be locked in ${directory}`)
  }).pipe(
    Effect.flatMap((outcome) => {
      switch (outcome._tag) {
        case "Held":
          return Effect.succeed(outcome.release)
        case "Unreadable":
          return Effect.fail(
            failed(
              Failure.make("DATA_DIR_UNUSABLE", `the lock ${outcome.file} of session ${sessionId} names no holder`, {
                remedy: "If no run uses the session, delete the file."
              })
            )
          )
        case "Busy": {
          const busy = SessionBindings.busy(sessionId, Holder.describe(outcome.holder, outcome.life))
          return Effect.fail(
            outcome.life === "alive"
              ? busy
              : failed({ ...busy.failure, remedy: `If that process is gone, delete ${outcome.file}; else wait, or use another session.` })
          )
        }
      }
    })
  )

/** Remembers in a data directory, which exists. */
export const make = (dataDirectory: string) => ({
  acquire: (
    sessionId: Scalars.SessionId
  ): Effect.Effect<SessionBindings.Lease, SessionBindings.SessionBindingsError, Scope.Scope> =>
    Effect.gen(function*() {
      const directory = directoryOf(dataDirectory, sessionId)
      const file = path.join(directory, "session.json")
      let isHeld = true
      yield* Effect.acquireRelease(
        lock(directory, sessionId),
        (release) =>
          Effect.sync(() => {
            isHeld = false
            release()
            // Succeeds on an empty directory alone: one of a session that was refused or never saved.
            try {
              fs.rmdirSync(directory)
            } catch {
              // It holds the session, or somebody else uses it already.
            }
          })
      )
      const binding = yield* read(file, sessionId)
      return {
        binding,
        save: (next) =>
          !isHeld ? Effect.fail(SessionBindings.over(sessionId)) : Effect.try({
            try: () => WholeFile.write(file, `${JSON.stringify(next, undefined, 2)}\n`),
            catch: unusable(`session ${sessionId} cannot be saved in ${file}`)
          })
      }
    })
})

/** The harness that a session was begun with; `undefined` where nothing is remembered of it. Holds nothing. */
export const harnessOf = (
  dataDirectory: string,
  sessionId: Scalars.SessionId
): Effect.Effect<string | undefined, SessionBindings.SessionBindingsError> =>
  Effect.map(
    read(path.join(directoryOf(dataDirectory, sessionId), "session.json"), sessionId),
    (known) => Option.getOrUndefined(known)?.harness
  )

export const layer = (dataDirectory: string): Layer.Layer<SessionBindings.SessionBindings> =>
  Layer.succeed(SessionBindings.SessionBindings, make(dataDirectory))
