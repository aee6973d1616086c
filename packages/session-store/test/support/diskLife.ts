/** Lives a session's life on a disk in memory that refuses calls or loses its power, and looks what is left. */
import type { SessionEvent } from "@turnpike/contract"
import { LogState, type SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import type { Files } from "../../src/internal/jsonl/files.ts"
import * as Store from "../../src/internal/jsonl/store.ts"
import * as Memory from "./memoryFiles.ts"
import * as Scenario from "./programs/scenario.ts"

export const directory = "/a/sessions"

type StoreError = SessionStore.SessionStoreError

/** Works with the store of a disk, and says nothing of what such a disk makes it say. */
export const within = <A>(files: Files, work: (store: SessionStore.Service) => Effect.Effect<A, StoreError>) =>
  Effect.scoped(Effect.flatMap(Store.make(files, { directory }), work)).pipe(Effect.provide(Logger.layer([])))

/** Lives on, and tells also that the store could not be opened. */
const live = (files: Files, told: Scenario.Told, options: { readonly size: number; readonly turns: number }, watch = (store: SessionStore.Service) => store) =>
  Effect.catch(within(files, (store) => Scenario.live(watch(store), told, options)), ({ failure: { code, message, retryable } }) =>
    Effect.sync(() => {
      told.refused.push({ step: "layer", code, message, retryable })
    }))

/** How many calls a life makes, and of which kinds. */
export const calls: Effect.Effect<ReadonlyArray<Parameters<Memory.Meddle>[0]>> = Effect.gen(function*() {
  const made: Array<Parameters<Memory.Meddle>[0]> = []
  const told = Scenario.nothing()
  yield* live(Memory.refusing(Memory.empty(), (operation) => {
    made.push(operation)
    return undefined
  }), told, { size: 200, turns: 2 })
  assert.deepEqual(told.refused, [])
  return made
})

export interface Outcome {
  readonly refused: Scenario.Told["refused"]
  readonly fault: string | undefined
}

const faultOf = <A>(work: Effect.Effect<A, StoreError>) =>
  Effect.map(Effect.exit(work), (exit) => exit._tag === "Success" ? undefined : String(exit.cause))

/**
 * Lets the n-th call fail. Then the same store's files are opened again: what was
 * acknowledged is there, what was refused is not, and it goes on.
 */
export const refuse = (nth: number, refusal: Memory.Refusal): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const disk = Memory.empty()
    const told = Scenario.nothing()
    yield* live(Memory.refusing(disk, (_, call) => call === nth ? refusal : undefined), told, { size: 200, turns: 2 })
    const { refused } = told
    told.refused = []
    const files = Memory.filesOf(disk)
    const fault = yield* faultOf(Effect.gen(function*() {
      yield* within(files, (store) => Scenario.check(store, told))
      yield* live(files, told, { size: 50, turns: 1 })
      assert.deepEqual(told.refused, [])
      yield* within(files, (store) => Scenario.check(store, told))
    }))
    return { refused, fault }
  })

/** What was acknowledged, or that it is on disk. */
interface Kept {
  readonly onlySynced: boolean
  events: Array<SessionEvent.SessionEvent>
  receipts: Array<string>
}

/** Notes what is acknowledged. */
const watching = (kept: Kept) => (store: SessionStore.Service): SessionStore.Service => {
  let events: Array<SessionEvent.SessionEvent> = []
  return {
    ...store,
    receive: (id, message) => Effect.tap(store.receive(id, message), ({ receipt }) => Effect.sync(() => kept.receipts.push(receipt.id))),
    open: (id, holder) =>
      Effect.gen(function*() {
        const writer = yield* store.open(id, holder)
        // What counts then is on disk, whoever wrote it.
        events = yield* Stream.runCollect(store.read(id, -1))
        kept.events = events
        return {
          ...writer,
          append: (more, options) =>
            Effect.tap(writer.append(more, options), () =>
              Effect.sync(() => {
                events = [...events, ...more]
                if (options.sync || !kept.onlySynced) kept.events = events
              }))
        }
      })
  }
}

/** Opens what is left, and answers what is wrong with it: it holds what was acknowledged, is whole, and goes on. */
const look = (left: Memory.Disk, kept: Kept, isCreated: boolean): Effect.Effect<{ readonly fault: string | undefined; readonly cutBytes: number }> =>
  Effect.gen(function*() {
    // Whoever held sessions is gone, which another boot, or this process, has to wait for.
    for (const name of [...left.names.keys()]) if (name.startsWith(`${directory}/owners/`)) left.names.delete(name)
    const files = Memory.filesOf(left)
    let cutBytes = 0
    const fault = yield* faultOf(within(files, (store) =>
      Effect.gen(function*() {
        const isThere = yield* Effect.result(store.header(Scenario.id))
        if (Result.isFailure(isThere)) {
          assert.equal(isThere.failure.failure.code, "SESSION_UNKNOWN")
          assert.equal(isCreated, false, "it was created, and is not there")
          yield* store.create({ type: "session", format: 1, id: Scenario.id, created: 1, harness: "scripted", cwd: "/project" })
        }
        const before = yield* Stream.runCollect(store.read(Scenario.id, -1))
        assert.deepEqual(before.slice(0, kept.events.length), kept.events, "what was acknowledged is missing")
        const { recovery } = yield* Effect.scoped(Effect.tap(store.open(Scenario.id, "the check"), (writer) => {
          const turn = 1 + [...before, ...writer.recovery.closed].filter(({ type }) => type === "turn/start").length
          const seq = before.length + writer.recovery.closed.length
          return writer.append([
            { seq, time: 5, type: "turn/start", data: { turn, trigger: { kind: "message", source: "check" } } },
            { seq: seq + 1, time: 5, type: "turn/end", data: { turn, verdict: { type: "completed" } } }
          ], { sync: true })
        }))
        cutBytes = recovery.cutBytes
        const events = yield* Stream.runCollect(store.read(Scenario.id, -1))
        assert.deepEqual(events.slice(0, -2), [...before, ...recovery.closed])
        assert.ok(Result.isSuccess(LogState.all(LogState.empty(), events)))
        const received = (yield* Stream.runCollect(store.inbox(Scenario.id))).flatMap((entry) => entry.type === "received" ? [entry.id] : [])
        assert.deepEqual(kept.receipts.filter((receipt) => !received.includes(receipt)), [], "a receipt that was acknowledged is missing")
        const claimed = events.flatMap((event) => event.type === "inbox/claimed" ? event.data.ids : [])
        const waiting = (yield* store.pending(Scenario.id)).nextTurn.map((receipt) => receipt.id)
        assert.deepEqual([...claimed, ...waiting].filter((receipt) => received.includes(receipt)).sort(), [...received].sort(), "each receipt is claimed or waits, once")
      })))
    return { fault, cutBytes }
  })

/**
 * Lets the n-th call fail, and some after it: what is to be taken back may not be
 * either. What was acknowledged is there then, and it goes on.
 */
export const refuseMore = (nth: number, times: number): Effect.Effect<string | undefined> =>
  Effect.gen(function*() {
    const disk = Memory.empty()
    const told = Scenario.nothing()
    const kept: Kept = { onlySynced: false, events: [], receipts: [] }
    yield* live(Memory.refusing(disk, (_, call) => call >= nth && call < nth + times ? { code: "EIO" } : undefined), told, { size: 200, turns: 2 }, watching(kept))
    return (yield* look(disk, kept, told.isCreated)).fault
  })

/** Lets the power go a few times behind appends that were not synced, and answers what is wrong with what is left, and how much was cut off, each time. */
export const losePowerBehind = (appends: number, random: () => number, times: number) =>
  Effect.gen(function*() {
    const disk = Memory.empty()
    const kept: Kept = { onlySynced: true, events: [], receipts: [] }
    const left = yield* Effect.orDie(within(Memory.filesOf(disk), (own) =>
      Effect.scoped(Effect.gen(function*() {
        const store = watching(kept)(own)
        yield* store.create({ type: "session", format: 1, id: Scenario.id, created: 1, harness: "scripted", cwd: "/project" })
        const writer = yield* store.open(Scenario.id, "the writer")
        yield* writer.append([
          { seq: 0, time: 1, type: "turn/start", data: { turn: 1, trigger: { kind: "message", source: "user" } } },
          { seq: 1, time: 1, type: "step/start", data: { step: 1 } },
          { seq: 2, time: 1, type: "user/message", data: { text: "a", source: "user" }, surface_op: "append" }
        ], { sync: true })
        for (let seq = 3; seq < 3 + appends; seq++) {
          yield* writer.append([{ seq, time: 1, type: "assistant/chunk", data: { kind: "text", text: "é".repeat(Math.floor(random() * 300)) } }], { sync: false })
        }
        return Array.from({ length: times }, () => Memory.powerLost(disk, random, "holes"))
      }))))
    return yield* Effect.forEach(left, (one) => look(one, kept, true))
  })

/**
 * Lets the n-th call fail where it is a sync, which forgets what it was to write, and
 * the power go once the session was opened again and gone on with. `undefined` where
 * the call is no sync.
 */
export const forgetSync = (nth: number, random: () => number) =>
  Effect.gen(function*() {
    const disk = Memory.empty()
    const told = Scenario.nothing()
    const kept: Kept = { onlySynced: true, events: [], receipts: [] }
    let isSync = false
    yield* live(Memory.refusing(disk, (operation, call) => {
      if (call !== nth || operation !== "sync") return undefined
      isSync = true
      return { code: "EIO", done: "never" }
    }), told, { size: 200, turns: 2 }, watching(kept))
    if (!isSync) return undefined
    yield* live(Memory.filesOf(disk), told, { size: 50, turns: 1 }, watching(kept))
    return yield* look(Memory.powerLost(disk, random, "beginning"), kept, told.isCreated)
  })

/** Lets the power go at the n-th call, and answers what is wrong with what is left, and how much was cut off. */
export const losePower = (nth: number, random: () => number, loss: Memory.Loss) =>
  Effect.gen(function*() {
    const disk = Memory.empty()
    const told = Scenario.nothing()
    const kept: Kept = { onlySynced: true, events: [], receipts: [] }
    yield* live(Memory.refusing(disk, (_, call) => call >= nth ? { code: "EIO" } : undefined), told, { size: 200, turns: 2 }, watching(kept))
    return yield* look(Memory.powerLost(disk, random, loss), kept, told.isCreated)
  })
