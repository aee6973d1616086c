/**
 * Where the command keeps sessions: one SQLite file in the data directory.
 * Loaded when a command needs it.
 */
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as os from "node:os"
import { fromFailure, type Refusal } from "./Refusal.ts"

/** Opens the store of a data directory, which exists. Fails as `SqliteSessionStore.layer` does. */
export const open = (dataDirectory: string): Effect.Effect<SessionStore.Service, Refusal, Scope.Scope> =>
  Effect.flatMap(
    Effect.promise(() => import("@turnpike/session-store")),
    ({ SqliteSessionStore }) => SqliteSessionStore.make({ directory: dataDirectory })
  ).pipe(Effect.mapError((error) => fromFailure(error.failure)))

/** What this process calls itself where it holds a session, such as `turnpike chat (process 4711 on anna)`. */
export const holder = (command: string): string => `turnpike ${command} (process ${process.pid} on ${os.hostname()})`
