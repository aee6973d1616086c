import { describe, it } from "@effect/vitest"
import { StoreSuite } from "@turnpike/testkit"
import { hooksOf } from "./support/hooks.ts"
import * as Sqlite from "./support/sqlite.ts"

StoreSuite.storeSuite("SqliteSessionStore", { describe, it: it.live }, Sqlite.layer, hooksOf(Sqlite.client))
