import { describe, it } from "@effect/vitest"
import { SessionStoreMemory } from "@turnpike/kernel"
import { StoreSuite } from "@turnpike/testkit"

StoreSuite.storeSuite("SessionStoreMemory", { describe, it: it.live }, SessionStoreMemory.layer)
