/** A session that programs of the tests hold, each a writer of turns that bear its name. */
import { Scalars } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Programs from "./programs.ts"
import { layerOf, type StoreName } from "./programs/stores.ts"

export const id = Scalars.SessionId.make("held")

export const withStore = <A>(store: StoreName, work: (store: SessionStore.Service) => Effect.Effect<A, SessionStore.SessionStoreError>) =>
  Effect.flatMap(SessionStore.SessionStore, work).pipe(Effect.provide(layerOf(store), { local: true }))

export const make = (store: StoreName) =>
  withStore(store, (one) => one.create({ type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/project" }))

/** Begins a program that takes the session; `before` as in `Programs.Start`. */
export const holder = (bundle: string, store: StoreName, name: string, before: ReadonlyArray<string> = []) =>
  Programs.converse({ bundle, name: "holder", args: { store, session: id, name }, before })

/** Who wrote its turns, in order. */
export const turnsBy = (store: StoreName) =>
  withStore(store, (one) =>
    Effect.map(Stream.runCollect(one.read(id, -1)), (events) =>
      events.flatMap((event) => event.type === "turn/start" && event.data.trigger.kind === "message" ? [event.data.trigger.source] : [])))
