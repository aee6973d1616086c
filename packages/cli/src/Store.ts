/**
 * Where the command keeps sessions: one SQLite file in the data directory.
 * Loaded when a command needs it.
 */
import type { Scalars } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fromFailure, type Refusal } from "./Refusal.ts"

/** The name of the file in a data directory. */
export const fileName = "sessions.sqlite"

/** Opens the store of a data directory, which exists. Fails as `SqliteSessionStore.layer` does. */
export const open = (dataDirectory: string): Effect.Effect<SessionStore.Service, Refusal, Scope.Scope> =>
  Effect.flatMap(
    Effect.promise(() => import("@turnpike/session-store")),
    ({ SqliteSessionStore }) => SqliteSessionStore.make({ directory: dataDirectory })
  ).pipe(Effect.mapError((error) => fromFailure(error.failure)))

/**
 * The harness that a session was begun with; `undefined` where there is no such
 * session. Holds nothing, and makes no store where there is none.
 */
export const harnessOf = (dataDirectory: string, sessionId: Scalars.SessionId): Effect.Effect<string | undefined, Refusal> =>
  Effect.suspend(() => {
    if (!fs.existsSync(path.join(dataDirectory, fileName))) return Effect.undefined
    return Effect.flatMap(open(dataDirectory), (store) =>
      Effect.matchEffect(store.header(sessionId), {
        onFailure: ({ failure }) => failure.code === "SESSION_UNKNOWN" ? Effect.undefined : Effect.fail(fromFailure(failure)),
        onSuccess: ({ harness }) => Effect.succeed(harness)
      })).pipe(Effect.scoped)
  })

/** What this process calls itself where it holds a session, such as `turnpike chat (process 4711 on anna)`. */
export const holder = (command: string): string => `turnpike ${command} (process ${process.pid} on ${os.hostname()})`
