/**
 * Writes a log of so many events, in rows of so many, and reads it in a store that was opened anew: its
 * end again and again, all of it a few times, and as who opens it to go on with it does.
 */
import { SessionLog, SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { layerOf } from "../../../packages/session-store/test/support/programs/stores.ts"
import { answer, digest, timed } from "../support/answer.ts"
import * as Logs from "./storeLogs.ts"

export interface Arguments {
  readonly directory: string
  readonly events: number
  /** How many events one append brings. */
  readonly size: number
  readonly replays: number
  readonly tails: number
}

export interface Read {
  /** Milliseconds, one a time. */
  readonly replay_ms: ReadonlyArray<number>
  readonly replay_cpu_ms: ReadonlyArray<number>
  /** Until the last 50 events are there; empty where none was asked for. */
  readonly tail_ms: ReadonlyArray<number>
  /** Until the session can be gone on with: its log read and held to its rules, and its messages derived. */
  readonly open_ms: number
  readonly written: string
  readonly read: string
  readonly written_tail: string
  readonly read_tails: ReadonlyArray<string>
}

const id = Logs.sessionId(0)

const write = ({ events, size }: Arguments) =>
  Effect.scoped(Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    yield* store.create(Logs.headerOf(0))
    const writer = yield* store.open(id, "the measurement")
    const sum = digest()
    for (let first = 0; first < events; first += size) {
      const batch = Logs.events(first, Math.min(size, events - first))
      sum.add(batch)
      yield* writer.append(batch, { sync: false })
    }
    return sum.end()
  }))

const tailLength = 50

const read = ({ events, replays, tails }: Arguments) =>
  Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    const replay_ms: Array<number> = []
    const replay_cpu_ms: Array<number> = []
    for (let replay = 0; replay < replays; replay++) {
      let found = 0
      const { cpu_ms, ms } = yield* Effect.promise(() =>
        timed(() => Effect.runPromise(Stream.runForEachArray(store.read(id, -1), (some) => Effect.sync(() => void (found += some.length))))))
      if (found !== events) throw new Error(`${found} events were read instead of ${events}`)
      replay_ms.push(ms)
      replay_cpu_ms.push(cpu_ms)
    }
    const sum = digest()
    yield* Stream.runForEachArray(store.read(id, -1), (some) => Effect.sync(() => sum.add(some)))
    const tail_ms: Array<number> = []
    const seen = new Set<string>()
    for (let tail = 0; tail < tails; tail++) {
      const from = performance.now()
      const found = yield* Stream.runCollect(store.read(id, events - tailLength - 1))
      tail_ms.push(performance.now() - from)
      seen.add(JSON.stringify(found))
    }
    const from = performance.now()
    const open_ms = yield* Effect.scoped(Effect.map(SessionLog.open(store, id, "the measurement"), () => performance.now() - from))
    return { replay_ms, replay_cpu_ms, tail_ms, open_ms, read: sum.end(), read_tails: [...seen] }
  })

await answer((args: Arguments): Effect.Effect<Read, unknown> =>
  Effect.gen(function*() {
    const layer = layerOf({ kind: "sqlite", directory: args.directory })
    const written = yield* Effect.provide(write(args), layer, { local: true })
    const found = yield* Effect.provide(read(args), layer, { local: true })
    return { ...found, written, written_tail: JSON.stringify(Logs.events(args.events - tailLength, tailLength)) }
  }))
