/** Flips bits of a file of sessions, one at a time, and looks whether anybody is told something else than before. */
import { SessionStore } from "@turnpike/kernel"
import { SqliteSessionStore } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Scenario from "./programs/scenario.ts"

const withStore = <A>(directory: string, work: (store: SessionStore.Service) => Effect.Effect<A, SessionStore.SessionStoreError>) =>
  Effect.flatMap(SessionStore.SessionStore, work).pipe(Effect.provide(SqliteSessionStore.layer({ directory }), { local: true }))

/** Everything that readers are told, in JSON; the code of the first failure where there is one. */
const told = (store: SessionStore.Service) =>
  Effect.gen(function*() {
    const list = yield* Stream.runCollect(store.list)
    const all = []
    for (const { header } of list) {
      all.push(header, yield* store.header(header.id), yield* Stream.runCollect(store.read(header.id, -1)), yield* Stream.runCollect(store.inbox(header.id)), yield* store.pending(header.id))
    }
    return JSON.stringify([list.map(({ holder: _, ...rest }) => rest), all])
  })

/** What a writer finds: it may be told that it cannot write, and nothing that is not so. */
const opened = (store: SessionStore.Service) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const { recovery } = yield* Scope.provide(store.open(Scenario.id, "the flips"), scope)
    yield* Scope.close(scope, Exit.void)
    return JSON.stringify([recovery, yield* Stream.runCollect(store.read(Scenario.id, -1))])
  })

export interface Flips {
  readonly bits: number
  /** That were noticed. */
  readonly detected: number
  /** That changed nothing of what is told. */
  readonly harmless: number
  /** Bits by which something else was told, and nobody said so. */
  readonly unnoticed: ReadonlyArray<string>
}

export const flips = (directory: string, bitsOf: (size: number) => Iterable<number>): Effect.Effect<Flips, SessionStore.SessionStoreError> =>
  Effect.gen(function*() {
    const original = path.join(directory, "original")
    const lived = Scenario.nothing()
    yield* withStore(original, (store) => Scenario.live(store, lived, { size: 40, turns: 2 }))
    yield* withStore(original, (store) => store.receive(Scenario.id, { kind: "steer", text: "waits", source: "user", key: "k" }))
    const bytes = fs.readFileSync(path.join(original, SqliteSessionStore.fileName))
    const copy = path.join(directory, "copy")
    const both = (store: SessionStore.Service) => Effect.all([told(store), opened(store)])
    const right = yield* withStore(original, both)

    let detected = 0
    let harmless = 0
    const unnoticed: Array<string> = []
    for (const bit of bitsOf(bytes.length * 8)) {
      fs.rmSync(copy, { recursive: true, force: true })
      fs.mkdirSync(copy)
      const damaged = Buffer.from(bytes)
      damaged[bit >> 3]! ^= 1 << (bit & 7)
      fs.writeFileSync(path.join(copy, SqliteSessionStore.fileName), damaged)
      const result = yield* Effect.result(withStore(copy, both))
      if (Result.isFailure(result)) detected++
      else if (result.success[0] === right[0] && result.success[1] === right[1]) harmless++
      else unnoticed.push(`bit ${bit & 7} of byte ${bit >> 3} (page ${(bit >> 15) + 1}, ${(bit >> 3) % 4096})`)
    }
    return { bits: detected + harmless + unnoticed.length, detected, harmless, unnoticed }
  })
