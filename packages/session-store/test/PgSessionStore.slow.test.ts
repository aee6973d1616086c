import { afterAll, beforeAll, describe, it } from "@effect/vitest"
import * as PgClient from "@effect/sql-pg/PgClient"
import { PgSessionStore } from "@turnpike/session-store"
import { StoreSuite } from "@turnpike/testkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Scope from "effect/Scope"
import { hooksOf } from "./support/hooks.ts"
import * as Postgres from "./support/postgres.ts"

const scope = Effect.runSync(Scope.make())
let server: Postgres.Server

beforeAll(async () => {
  server = await Effect.runPromise(Scope.provide(Postgres.server, scope))
}, 120_000)

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)), 60_000)

/** The name of a schema of a test's own. */
class Schema extends Context.Service<Schema, string>()("test/Schema") {
  static count = 0
  static readonly layer = Layer.sync(Schema, () => `sessions ${++Schema.count}`)
}

const optionsOf = (schema: string): PgSessionStore.Options => {
  const { database, host, port, username } = server
  return { host, port, username, database, schema }
}

const layer = Layer.unwrap(Effect.map(Schema, (schema) => PgSessionStore.layer(optionsOf(schema)))).pipe(Layer.provideMerge(Schema.layer))

const client = Effect.gen(function*() {
  const schema = yield* Schema
  const { database, host, port, username } = server
  return yield* PgClient.make({ host, port, username, database, startupParameters: { search_path: `"${schema}"` } })
}).pipe(Effect.provide(Reactivity.layer))

StoreSuite.storeSuite("PgSessionStore", { describe, it: it.live }, layer, hooksOf(client))
