/** The store that a program of the tests is told to use, as JSON in its first argument. */
import { type SessionStore, SessionStoreMemory } from "@turnpike/kernel"
import { JsonlSessionStore, PgSessionStore, SqliteSessionStore } from "@turnpike/session-store"
import * as Layer from "effect/Layer"
import * as NodeSqlite from "../../../src/internal/nodeSqlite.ts"

/** Where SQLite is written: in the thread of whoever asks, in one of its own, or in that one from the second transaction on. */
export type Where = "here" | "thread" | "moving"

const keptMillis: { readonly [where in Where]: number } = { here: Number.POSITIVE_INFINITY, thread: 0, moving: Number.MIN_VALUE }

/** A store that keeps files. */
export type FileStoreName =
  | { readonly kind: "sqlite"; readonly directory: string; readonly leaseMillis?: number; readonly where?: Where }
  | { readonly kind: "jsonl"; readonly directory: string; readonly leaseMillis?: number }

export type StoreName =
  | FileStoreName
  /** What all else is compared with. */
  | { readonly kind: "memory" }
  | { readonly kind: "postgres"; readonly server: PgSessionStore.Options; readonly leaseMillis?: number }

export const layerOf = (name: StoreName): Layer.Layer<SessionStore.SessionStore, SessionStore.SessionStoreError> => {
  if (name.kind === "memory") return SessionStoreMemory.layer
  const lease = name.leaseMillis === undefined ? {} : { lease: name.leaseMillis }
  if (name.kind === "postgres") return PgSessionStore.layer({ ...name.server, ...lease })
  if (name.kind === "jsonl") return JsonlSessionStore.layer({ directory: name.directory, ...lease })
  const sqlite = SqliteSessionStore.layer({ directory: name.directory, ...lease })
  return name.where === undefined ? sqlite : Layer.provide(sqlite, Layer.succeed(NodeSqlite.KeptMillis, keptMillis[name.where]))
}
