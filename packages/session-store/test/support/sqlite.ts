/** Stores and connections on a file. */
import { SqliteSessionStore } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import * as path from "node:path"
import * as NodeSqlite from "../../src/internal/nodeSqlite.ts"
import { Directory } from "./directory.ts"

/** The store's file in a directory. */
export const fileIn = (directory: string): string => path.join(directory, SqliteSessionStore.fileName)

/** A store in a directory of its own. */
export const layer = Layer.unwrap(Effect.map(Directory, (directory) => SqliteSessionStore.layer({ directory }))).pipe(
  Layer.provideMerge(Directory.layer)
)

/** One that begins with what else comes later, if at all: a thread of its own for what is written. */
export const threadedLayer = Layer.provide(layer, Layer.succeed(NodeSqlite.KeptMillis, 0))

/** A connection beside the store's. */
export const client: Effect.Effect<SqlClient, unknown, Directory | Scope.Scope> = Effect.gen(function*() {
  const run = yield* NodeSqlite.inThisThread({ file: fileIn(yield* Directory), pragmas: "PRAGMA busy_timeout=1000" })
  return (yield* NodeSqlite.make(run, run, { reading: 10, writing: 10 })).client
})
