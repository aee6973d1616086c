/**
 * Sessions as files of JSON lines, one directory each: for those who want to read
 * them with `grep` and `tail`, or whose file system is what they have. Any number of
 * processes of one machine may use the directory at the same time.
 *
 * Each writer of a session has a file of its own, which says how many bytes of its
 * predecessor's count. It is made before those are looked at, so that a writer that
 * was overtaken, also one that was frozen, finds it before it acknowledges anything;
 * what such a one still writes counts for nobody. The inbox is one file, to which
 * anybody adds a line, and whose order decides. There is no lock, and nothing but
 * leases that anybody waits for.
 *
 * What is to be on disk is synced before it is acknowledged; other appends are in
 * the hands of the operating system and survive the process, not the machine. Opening
 * a session, and looking at one that nobody in this process writes, reads its log.
 */
import { SessionStore } from "@turnpike/kernel"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { nodeFiles } from "./internal/jsonl/nodeFiles.ts"
import * as Store from "./internal/jsonl/store.ts"
import type { StoreError } from "./internal/storeFailure.ts"

export type Options = Store.Options

/** Opens the store in a directory, which is made where it is missing. */
export const make = (options: Options): Effect.Effect<SessionStore.Service, StoreError, Scope.Scope> => Store.make(nodeFiles, options)

/**
 * The store as a layer. Fails with `STORE_FAILED` where the directory cannot be used,
 * is damaged or holds other things, with `STORE_FULL`, and with `FORMAT_UNSUPPORTED`
 * where a later version wrote it; it is untouched then.
 */
export const layer = (options: Options): Layer.Layer<SessionStore.SessionStore, StoreError> =>
  Layer.effect(SessionStore.SessionStore, make(options))
