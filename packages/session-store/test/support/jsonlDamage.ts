/** Damages the files of a small session, a place at a time, and looks what readers and a writer are told then. */
import { Scalars, type SessionEvent } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import * as path from "node:path"
import { layoutOf, placeOf } from "../../src/internal/jsonl/layout.ts"
import { directory, within } from "./diskLife.ts"
import * as Memory from "./memoryFiles.ts"

type StoreError = SessionStore.SessionStoreError

const id = Scalars.SessionId.make("s")

/** Where a file that can be damaged is. */
export const files = {
  store: layoutOf(directory).store,
  header: placeOf(layoutOf(directory), id).header,
  seed: placeOf(layoutOf(directory), id).segment(0),
  first: placeOf(layoutOf(directory), id).segment(1),
  last: placeOf(layoutOf(directory), id).segment(2),
  inbox: placeOf(layoutOf(directory), id).inbox
} as const

export type Name = keyof typeof files

export const names: ReadonlyArray<Name> = ["store", "header", "seed", "first", "last", "inbox"]

/** So many bytes a file had to have for so many events or receipts, when these were acknowledged. */
export interface Mark {
  readonly file: Name
  readonly bytes: number
  readonly count: number
}

export interface Small {
  readonly disk: Memory.Disk
  readonly marks: ReadonlyArray<Mark>
}

export const bytesOf = (disk: Memory.Disk, name: Name): Buffer => Memory.bytesOf(disk, files[name])

/** A session of two writers, of whom the second died in his second turn, behind what he had synced. */
export const small: Effect.Effect<Small, StoreError> = Effect.gen(function*() {
  const disk = Memory.empty()
  const marks: Array<Mark> = []
  let left: Memory.Disk | undefined
  yield* within(Memory.filesOf(disk), (store) =>
    Effect.gen(function*() {
      let events = 0
      let receipts = 0
      const receive = (text: string) =>
        Effect.map(store.receive(id, { kind: "followup", text, source: "user" }), ({ receipt }) => {
          receipts++
          marks.push({ file: "inbox", bytes: bytesOf(disk, "inbox").length, count: receipts })
          return receipt.id
        })
      const append = (file: "first" | "last", writer: SessionStore.Writer, sync: boolean, bodies: ReadonlyArray<SessionEvent.Body>) =>
        Effect.map(writer.append(bodies.map((body, index) => ({ seq: events + index, time: 1, ...body })), { sync }), () => {
          events += bodies.length
          // What says that it counts comes behind it.
          marks.push({ file, bytes: bytesOf(disk, file).lastIndexOf(`{"log":"committed"`), count: events })
        })
      const trigger = { kind: "message", source: "user" } as const
      yield* store.create({ type: "session", format: 1, id, created: 1, harness: "scripted", cwd: "/" })
      const a = yield* receive("a")
      yield* Effect.scoped(Effect.gen(function*() {
        const writer = yield* store.open(id, "one")
        yield* append("first", writer, true, [{ type: "turn/start", data: { turn: 1, trigger } }, { type: "inbox/claimed", data: { turn: 1, ids: [a] } }])
        yield* append("first", writer, true, [{ type: "turn/end", data: { turn: 1, verdict: { type: "completed" } } }])
      }))
      const b = yield* receive("b")
      yield* Effect.scoped(Effect.gen(function*() {
        const writer = yield* store.open(id, "two")
        yield* receive("c")
        yield* append("last", writer, true, [{ type: "turn/start", data: { turn: 2, trigger } }, { type: "inbox/claimed", data: { turn: 2, ids: [b] } }])
        yield* append("last", writer, true, [{ type: "step/start", data: { step: 1 } }, { type: "user/message", data: { text: "b", source: "user", receipt: b }, surface_op: "append" }])
        for (const text of ["x", "y"]) yield* append("last", writer, false, [{ type: "assistant/chunk", data: { kind: "text", text } }])
        left = Memory.copyOf(disk)
      }))
    }))
  if (left === undefined) throw new Error("nothing is left")
  // The process has died.
  for (const name of [...left.names.keys()]) if (path.dirname(name) === layoutOf(directory).owners) left.names.delete(name)
  return { disk: left, marks }
})

/** What is told of the session to those who read it, and to one who opens it. */
export interface Seen {
  readonly events: ReadonlyArray<SessionEvent.SessionEvent>
  readonly receipts: ReadonlyArray<string>
  /** All the rest, in JSON. */
  readonly rest: string
}

export interface Refused {
  readonly code: string
  readonly message: string
}

/** Looks at a disk; what comes out is `Refused` where somebody was. The disk is another one afterwards. */
const look = (disk: Memory.Disk): Effect.Effect<Result.Result<Seen, Refused>> =>
  Effect.result(within(Memory.filesOf(disk), (store) =>
    Effect.gen(function*() {
      const header = yield* store.header(id)
      const list = yield* Stream.runCollect(store.list)
      const events = yield* Stream.runCollect(store.read(id, -1))
      const entries = yield* Stream.runCollect(store.inbox(id))
      const pending = yield* store.pending(id)
      const { closed, requeued } = yield* Effect.scoped(Effect.map(store.open(id, "the look"), ({ recovery }) => recovery))
      const after = yield* Stream.runCollect(store.read(id, -1))
      assert.deepEqual(after, [...events, ...closed], "what it had is what it has after it was opened")
      return {
        events,
        receipts: entries.flatMap((entry) => entry.type === "received" ? [entry.id] : []),
        rest: JSON.stringify({ header, list, entries, pending, closed, requeued: requeued.map(({ text }) => text) })
      }
    }))).pipe(Effect.map(Result.mapError(({ failure: { code, message } }) => ({ code, message }))))

/** What is told once a file's bytes are others. */
export const lookAt = ({ disk }: Small, name: Name, change: (bytes: Buffer) => Uint8Array = (bytes) => bytes) =>
  Effect.suspend(() => {
    const copy = Memory.copyOf(disk)
    Memory.rewrite(copy, files[name], change)
    return look(copy)
  })

export interface Flips {
  /** That were noticed, by what was said, and how often. */
  readonly detected: Readonly<Record<string, number>>
  /** The bytes that changed nothing of what is told, as ranges. */
  readonly harmless: ReadonlyArray<string>
  /** Bits by which something else was told, and nobody said so. */
  readonly unnoticed: ReadonlyArray<string>
}

const rangesOf = (bytes: Iterable<number>): ReadonlyArray<string> => {
  const ranges: Array<[first: number, last: number]> = []
  for (const byte of [...new Set(bytes)].sort((one, other) => one - other)) {
    const last = ranges.at(-1)
    if (last !== undefined && byte <= last[1] + 1) last[1] = byte
    else ranges.push([byte, byte])
  }
  return ranges.map(([first, last]) => `${first} to ${last}`)
}

/** Flips bits of a file, one at a time. */
export const flips = (one: Small, name: Name, bits: Iterable<number>): Effect.Effect<Flips> =>
  Effect.gen(function*() {
    const right = JSON.stringify(yield* lookAt(one, name))
    const detected: Record<string, number> = {}
    const harmless: Array<number> = []
    const unnoticed: Array<string> = []
    for (const bit of bits) {
      const seen = yield* lookAt(one, name, (bytes) => {
        bytes[bit >> 3]! ^= 1 << (bit & 7)
        return bytes
      })
      if (Result.isFailure(seen)) detected[seen.failure.code] = (detected[seen.failure.code] ?? 0) + 1
      else if (JSON.stringify(seen) === right) harmless.push(bit >> 3)
      else unnoticed.push(`bit ${bit & 7} of byte ${bit >> 3} of ${name}`)
    }
    return { detected, harmless: rangesOf(harmless), unnoticed }
  })
