/**
 * How long the event loop is held up while pieces of an answer come evenly, so many a second, and each
 * goes into the log of a session, as a driver's do. Looked at by the loop's own clock, which is one millisecond fine.
 */
import { SessionLog, SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { layerOf, type StoreName } from "../../../packages/session-store/test/support/programs/stores.ts"
import { answer } from "../support/answer.ts"
import * as Logs from "./storeLogs.ts"

export interface Arguments {
  /** Without one the pieces are made and nothing is done with them. */
  readonly store?: StoreName
  readonly rate: number
  readonly seconds: number
}

export interface Lag {
  /** Beyond the millisecond at which the loop is looked at. */
  readonly p50_ms: number
  readonly p99_ms: number
  readonly max_ms: number
  readonly pieces: number
  readonly rate: number
  /** Of one core. */
  readonly cpu: number
  /** Whether the log has all pieces, in order; true where there is none. */
  readonly isThere: boolean
}

const resolution = 1

/** Not measured: what the compiler and the store do at the beginning. */
const warmSeconds = 1

const textOf = (index: number): string => {
  const event = Logs.piece(index)
  return event.type === "assistant/chunk" ? event.data.text : ""
}

const measure = (append: (text: string) => Effect.Effect<unknown, unknown>, { rate, seconds }: Arguments) =>
  Effect.gen(function*() {
    const delay = monitorEventLoopDelay({ resolution })
    let cpu = process.cpuUsage()
    let measuredFrom = 0
    let pieces = 0
    const from = performance.now()
    for (;;) {
      const elapsed = performance.now() - from
      if (elapsed >= (warmSeconds + seconds) * 1000) break
      if (measuredFrom === 0 && elapsed >= warmSeconds * 1000) {
        measuredFrom = pieces
        cpu = process.cpuUsage()
        delay.enable()
      }
      for (const due = Math.floor(elapsed * rate / 1000); pieces < due; pieces++) yield* append(textOf(pieces))
      yield* Effect.sleep(1)
    }
    delay.disable()
    const { system, user } = process.cpuUsage(cpu)
    const millis = (nanos: number) => Math.max(0, nanos / 1e6 - resolution)
    return {
      p50_ms: millis(delay.percentile(50)),
      p99_ms: millis(delay.percentile(99)),
      max_ms: millis(delay.max),
      pieces,
      rate: (pieces - measuredFrom) / seconds,
      cpu: (system + user) / 1e6 / seconds
    }
  })

const inStore = (name: StoreName, args: Arguments) =>
  Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    const id = Logs.sessionId(0)
    yield* store.create(Logs.headerOf(0))
    const measured = yield* Effect.scoped(Effect.gen(function*() {
      const log = yield* SessionLog.open(store, id, "the measurement")
      yield* log.append({ type: "turn/start", data: { turn: 1, trigger: { kind: "message", source: "user" } } })
      yield* log.append({ type: "step/start", data: { step: 1 } })
      const lag = yield* measure((text) => log.append({ type: "assistant/chunk", data: { kind: "text", text } }), args)
      yield* log.append({ type: "step/end", data: { step: 1 } })
      yield* log.append({ type: "turn/end", data: { turn: 1, verdict: { type: "completed" } } })
      return lag
    }))
    let found = 0
    let isThere = true
    yield* Stream.runForEachArray(store.read(id, -1), (events) =>
      Effect.sync(() => {
        for (const event of events) if (event.type === "assistant/chunk") isThere &&= event.data.text === textOf(found++)
      }))
    return { ...measured, isThere: isThere && found === measured.pieces }
  }).pipe(Effect.provide(layerOf(name)))

await answer((args: Arguments): Effect.Effect<Lag, unknown> =>
  args.store === undefined ? Effect.map(measure(() => Effect.void, args), (lag) => ({ ...lag, isThere: true })) : inStore(args.store, args))
