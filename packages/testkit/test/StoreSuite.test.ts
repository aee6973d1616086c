import { assert, describe, it } from "@effect/vitest"
import type { SessionEvent } from "@turnpike/contract"
import { SessionStore, SessionStoreMemory } from "@turnpike/kernel"
import { StoreSuite } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"

StoreSuite.storeSuite("SessionStoreMemory", { describe, it: it.live }, SessionStoreMemory.layer)

type Service = SessionStore.Service
type Run = () => Effect.Effect<void, unknown>

/** The facts that a store which is spoilt like this does not keep. */
const broken = (spoil: (store: Service) => Partial<Service>) =>
  Effect.gen(function*() {
    const layer = Layer.effect(
      SessionStore.SessionStore,
      Effect.map(SessionStoreMemory.make, (store) => SessionStore.SessionStore.of({ ...store, ...spoil(store) }))
    )
    const facts: Array<readonly [string, Run]> = []
    const declare = Object.assign((name: string, run: Run) => void facts.push([name, run]), { skip: () => {} })
    StoreSuite.storeSuite("spoilt", { describe: (_, body) => body(), it: declare }, layer)
    const failed: Array<string> = []
    for (const [name, run] of facts) {
      // What waits for ever is not kept either.
      const exit = yield* Effect.exit(Effect.timeout(run(), "1 second"))
      if (Exit.isFailure(exit)) failed.push(name)
    }
    return failed
  })

/** A store whose writers are spoilt. */
const writers = (spoil: (writer: SessionStore.Writer) => Partial<SessionStore.Writer>) => (store: Service): Partial<Service> => ({
  open: (id, holder) => Effect.map(store.open(id, holder), (writer) => ({ ...writer, ...spoil(writer) }))
})

describe("the suite sees a store", () => {
  const cases: ReadonlyArray<readonly [string, (store: Service) => Partial<Service>, string]> = [
    [
      "that keeps half of an append which it refuses",
      writers(({ append }) => ({
        append: (events, options) => Effect.andThen(append(events.slice(0, 1), options), append(events.slice(1), options))
      })),
      "an append with a gap, or with an event twice, is refused as a whole"
    ],
    [
      "that makes JSON of a seed which is none",
      ({ create }) => ({
        create: (header, seed) => create(header, seed === undefined ? seed : JSON.parse(JSON.stringify(seed, (_, value) => typeof value === "bigint" ? "1" : value)))
      }),
      "the seed of a fork is copied, and refused where it is not as JSON holds it or is no log"
    ],
    [
      "that acknowledges what it does not keep",
      writers(({ append }) => ({
        append: (events, options) => append(events.slice(0, 2_000), options)
      })),
      "a batch of thousands and an event of megabytes are kept whole"
    ],
    [
      "that leaves out what it does not know",
      (store) => ({ read: (id, after) => Stream.filter(store.read(id, after), (event: SessionEvent.SessionEvent) => !String(event.type).startsWith("later/")) }),
      "an event of a later version that may be passed over is kept as it is"
    ],
    [
      "whose readers see an event again when they come again",
      (store) => ({ follow: (id, after) => store.follow(id, Math.max(-1, after - 1)) }),
      "readers that come and go see each event once, whatever is committed meanwhile"
    ],
    [
      "whose readers see what was there, and nothing that comes later",
      (store) => ({ follow: (id, after) => store.read(id, after) }),
      "a reader that follows sees what is committed later, once each and without a gap, wherever it begins again"
    ],
    [
      "that receives a message twice under one key",
      (store) => ({ receive: (id, { key: _, ...message }) => store.receive(id, message) }),
      "a message is received once for its key, whoever sends it how often"
    ],
    [
      "that misses a record of the inbox between a look and a wait",
      (store) => ({ inboxChanged: (id) => Effect.flatMap(store.pending(id), ({ version }) => store.inboxChanged(id, version)) }),
      "whoever waits for the inbox hears of each record, also of one that came before he began to wait"
    ],
    [
      "that lets prompts overtake one that comes back",
      (store) => ({
        pending: (id) =>
          Effect.map(store.pending(id), (pending) => ({
            ...pending,
            nextTurn: [...pending.nextTurn].sort((one, other) => Number(one.retry_of !== undefined) - Number(other.retry_of !== undefined))
          }))
      }),
      "what a crash kept from being begun comes back once, in its place, however often the session is opened"
    ],
    [
      "that deletes what is held",
      (store) => ({ delete: (id) => Effect.catch(store.delete(id), (error) => error.failure.code === "SESSION_BUSY" ? Effect.void : Effect.fail(error)) }),
      "a session that is held is not deleted, and one that is deleted is gone"
    ]
  ]
  for (const [name, spoil, fact] of cases) {
    it.live(name, () => Effect.map(broken(spoil), (failed) => assert.include(failed, fact)), 60_000)
  }

  it.live("that is not spoilt", () => Effect.map(broken(() => ({})), (failed) => assert.deepStrictEqual(failed, [])))
})
