import { describe, it, vi } from "@effect/vitest"
import { StoreSuite } from "@turnpike/testkit"
import * as Jsonl from "./support/jsonl.ts"

// Disks that others use as well take their time.
vi.setConfig({ testTimeout: 60_000 })

StoreSuite.storeSuite("JsonlSessionStore", { describe, it: it.live }, Jsonl.layer, Jsonl.hooks)
