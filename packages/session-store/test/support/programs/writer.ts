/**
 * Writes turns into a session until it is killed, and says on its output what was
 * acknowledged, right after it was. A line that stands there is a promise.
 */
import { Scalars, type SessionEvent } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as zlib from "node:zlib"
import { layerOf, type StoreName } from "./stores.ts"

export interface Arguments {
  readonly store: StoreName
  readonly session: string
  readonly seed: number
  /** How many turns it writes; without an end unless this is given. */
  readonly turns?: number
}

/** What was acknowledged: events by their range and the CRC-32 of their JSON lines, and whether they had to be on disk; or a receipt. */
export type Acknowledged =
  | { readonly events: readonly [first: number, last: number]; readonly sum: number; readonly sync: boolean }
  | { readonly receipt: string; readonly key: string }
  | { readonly opened: number }
  | { readonly failed: string; readonly message: string }

export const sumOf = (events: ReadonlyArray<SessionEvent.SessionEvent>): number => zlib.crc32(events.map((event) => JSON.stringify(event)).join("\n"))

/** mulberry32: small, and the same everywhere. */
export const random = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const say = (line: Acknowledged) => fs.writeSync(1, `${JSON.stringify(line)}\n`)

export const write = ({ seed, session, store: name, turns: wanted = Number.POSITIVE_INFINITY }: Arguments) =>
  Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    const next = random(seed)
    const upTo = (count: number) => Math.floor(next() * count)
    const id = Scalars.SessionId.make(session)
    yield* Effect.catchIf(
      store.create({ type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/project" }),
      ({ failure }) => failure.code === "SESSION_EXISTS",
      () => Effect.void
    )
    const writer = yield* store.open(id, `writer ${seed}`)
    const before = yield* Stream.runCollect(store.read(id, -1))
    let seq = before.length
    let turns = before.filter(({ type }) => type === "turn/start").length
    say({ opened: seq })

    const append = (bodies: ReadonlyArray<SessionEvent.Body>, sync: boolean) =>
      Effect.gen(function*() {
        const events = bodies.map((body, index) => ({ seq: seq + index, time: 1_000 + seq + index, ...body }))
        yield* writer.append(events, { sync })
        say({ events: [seq, seq + events.length - 1], sum: sumOf(events), sync })
        seq += events.length
      })

    for (let round = 0; round < wanted; round++) {
      for (let more = upTo(3); more >= 0; more--) {
        const key = `${seed}-${round}-${more}`
        const { receipt } = yield* store.receive(id, { kind: upTo(4) === 0 ? "steer" : "followup", text: `prompt ${key}`, source: "user", key })
        say({ receipt: receipt.id, key })
      }
      const { nextStep, nextTurn } = yield* store.pending(id)
      const ids = [...nextTurn.slice(0, 1), ...nextStep].map((receipt) => receipt.id)
      if (upTo(10) === 0 && nextTurn.length > 1) yield* writer.discard([nextTurn[1]!.id], "removed", "user")
      const turn = ++turns
      const first = nextTurn[0]
      yield* append([
        { type: "turn/start", data: { turn, trigger: { kind: "message", source: "user" } } },
        ...(ids.length === 0 ? [] : [{ type: "inbox/claimed", data: { turn, ids } } as const])
      ], true)
      if (first !== undefined) {
        yield* append([
          { type: "step/start", data: { step: 1 } },
          { type: "user/message", data: { text: first.text, source: "user", receipt: first.id }, surface_op: "append" }
        ], true)
        for (let batches = upTo(6); batches > 0; batches--) {
          yield* append(
            Array.from({ length: 1 + upTo(20) }, () => ({ type: "assistant/chunk", data: { kind: "text", text: `${next()} ` } } as const)),
            false
          )
        }
        if (upTo(2) === 0) {
          yield* append([{ type: "tool/call", data: { call_id: `c${seq}`, name: "shell" } }], true)
          yield* append([{ type: "tool/result", data: { call_id: `c${seq - 1}`, output: "é".repeat(upTo(3_000)), is_error: false }, surface_op: "append" }], false)
        }
        yield* append([{ type: "step/end", data: { step: 1 } }], false)
      }
      yield* append([{ type: "turn/end", data: { turn, verdict: { type: "completed" } } }], true)
    }
  }).pipe(
    Effect.scoped,
    Effect.provide(layerOf(name)),
    Effect.catch(({ failure }) => Effect.sync(() => say({ failed: failure.code, message: failure.message })))
  )
