/** The store that a program of the tests is told to use, as JSON in its first argument. */
import { type SessionStore, SessionStoreMemory } from "@turnpike/kernel"
import { PgSessionStore, SqliteSessionStore } from "@turnpike/session-store"
import type * as Layer from "effect/Layer"

export type StoreName =
  | { readonly kind: "sqlite"; readonly directory: string; readonly leaseMillis?: number }
  /** What all else is compared with. */
  | { readonly kind: "memory" }
  | { readonly kind: "postgres"; readonly server: PgSessionStore.Options; readonly leaseMillis?: number }

export const layerOf = (name: StoreName): Layer.Layer<SessionStore.SessionStore, SessionStore.SessionStoreError> => {
  if (name.kind === "memory") return SessionStoreMemory.layer
  const lease = name.leaseMillis === undefined ? {} : { lease: name.leaseMillis }
  return name.kind === "sqlite"
    ? SqliteSessionStore.layer({ directory: name.directory, ...lease })
    : PgSessionStore.layer({ ...name.server, ...lease })
}
