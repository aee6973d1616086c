/**
 * How long the event loop is held up while sessions are written to: turns whose
 * pieces are committed every 20 ms, as a model that answers fast makes them.
 */
import { Scalars, type SessionEvent } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { monitorEventLoopDelay, performance } from "node:perf_hooks"
import { layerOf, type StoreName } from "./stores.ts"

export interface Arguments {
  readonly store: StoreName
  readonly sessions: number
  readonly turns: number
}

export interface Lag {
  readonly sessions: number
  readonly appends: number
  readonly synced: number
  readonly seconds: number
  /** Beyond the millisecond at which the loop is looked at, in milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

const resolution = 1

export const lag = ({ sessions, store: name, turns }: Arguments) =>
  Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    let appends = 0
    let synced = 0
    const one = (session: number) =>
      Effect.gen(function*() {
        const id = Scalars.SessionId.make(`s${session}`)
        yield* store.create({ type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/project" })
        const writer = yield* store.open(id, "the measurement")
        let seq = 0
        const append = (bodies: ReadonlyArray<SessionEvent.Body>, sync: boolean) =>
          Effect.suspend(() => {
            const events = bodies.map((body, index) => ({ seq: seq + index, time: Date.now(), ...body }))
            seq += events.length
            appends++
            if (sync) synced++
            return writer.append(events, { sync })
          })
        // Not all in the same moment.
        yield* Effect.sleep(Math.floor(Math.random() * 20))
        for (let turn = 1; turn <= turns; turn++) {
          const { receipt } = yield* store.receive(id, { kind: "followup", text: "a prompt of some words", source: "user", key: `${turn}` })
          yield* append([{ type: "turn/start", data: { turn, trigger: { kind: "message", source: "user" } } }, { type: "inbox/claimed", data: { turn, ids: [receipt.id] } }], true)
          yield* append([{ type: "step/start", data: { step: 1 } }, { type: "user/message", data: { text: "a prompt of some words", source: "user", receipt: receipt.id }, surface_op: "append" }], true)
          for (let batch = 0; batch < 40; batch++) {
            yield* Effect.sleep(20)
            yield* append(Array.from({ length: 4 }, (_, index) => ({ type: "assistant/chunk", data: { kind: "text", text: ` word ${turn} ${batch} ${index}` } } as const)), false)
          }
          yield* append([{ type: "step/end", data: { step: 1 } }, { type: "turn/end", data: { turn, verdict: { type: "completed" } } }], true)
        }
      }).pipe(Effect.scoped)

    yield* Effect.sleep(200)
    const delay = monitorEventLoopDelay({ resolution })
    const began = performance.now()
    delay.enable()
    yield* Effect.forEach(Array.from({ length: sessions }, (_, index) => index), one, { concurrency: "unbounded", discard: true })
    delay.disable()
    const millis = (nanos: number) => Number(Math.max(0, nanos / 1e6 - resolution).toFixed(2))
    const result: Lag = {
      sessions,
      appends,
      synced,
      seconds: Number(((performance.now() - began) / 1000).toFixed(1)),
      p50: millis(delay.percentile(50)),
      p99: millis(delay.percentile(99)),
      max: millis(delay.max)
    }
    fs.writeSync(1, `${JSON.stringify(result)}\n`)
  }).pipe(Effect.provide(layerOf(name)))
