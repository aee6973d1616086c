/**
 * Kills a writer at random moments, again and again, and looks each time whether the
 * store has what was promised.
 */
import { Scalars, type SessionEvent } from "@turnpike/contract"
import { LogState, SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as Programs from "./programs.ts"
import { layerOf, type StoreName } from "./programs/stores.ts"
import { type Acknowledged, random, sumOf } from "./programs/writer.ts"

/** What was promised in a session, in all rounds so far. */
interface Promises {
  readonly events: Array<Extract<Acknowledged, { readonly sum: number }>>
  readonly receipts: Map<string, string>
}

/** How many times something was seen, for people. */
export interface Tally {
  rounds: number
  /** Of the acknowledged. */
  events: number
  receipts: number
  /** Turns that were open before the repair. */
  open: number
  /** Prompts that were put back. */
  requeued: number
}

export const tally = (): Tally => ({ rounds: 0, events: 0, receipts: 0, open: 0, requeued: 0 })

const countOf = <A>(all: ReadonlyArray<A>): ReadonlyMap<A, number> => {
  const counts = new Map<A, number>()
  for (const one of all) counts.set(one, (counts.get(one) ?? 0) + 1)
  return counts
}

/** What is wrong with a log and an inbox; nothing where they are as they have to be. */
export const faultsOf = (
  events: ReadonlyArray<SessionEvent.SessionEvent>,
  promised: Promises,
  received: ReadonlyArray<{ readonly id: string; readonly key?: string }>,
  waiting: ReadonlySet<string>,
  discarded: ReadonlySet<string>
): ReadonlyArray<string> => {
  const faults: Array<string> = []
  for (const { events: [first, last], sum } of promised.events) {
    if (sumOf(events.slice(first, last + 1)) !== sum) faults.push(`events ${first} to ${last} were acknowledged and are others, or missing`)
  }
  const state = LogState.all(LogState.empty(), events)
  if (Result.isFailure(state)) faults.push(`event ${state.failure.seq} breaks ${state.failure.rule}: ${state.failure.message}`)
  const ids = countOf(received.map(({ id }) => id))
  const keys = countOf(received.flatMap(({ key }) => key === undefined ? [] : [key]))
  for (const [id, count] of ids) if (count !== 1) faults.push(`receipt ${id} is there ${count} times`)
  for (const [key, count] of keys) if (count !== 1) faults.push(`key ${key} is there ${count} times`)
  for (const [key, id] of promised.receipts) {
    if (!received.some((receipt) => receipt.id === id && receipt.key === key)) faults.push(`receipt ${id} was acknowledged and is missing`)
  }
  const claims = countOf(events.flatMap((event) => event.type === "inbox/claimed" ? event.data.ids : []))
  for (const { id } of received) {
    const claimed = claims.get(id) ?? 0
    const places = claimed + (waiting.has(id) ? 1 : 0) + (discarded.has(id) ? 1 : 0)
    if (places !== 1) faults.push(`receipt ${id} is claimed ${claimed} times, ${waiting.has(id) ? "waits" : "does not wait"}, and is ${discarded.has(id) ? "" : "not "}discarded`)
  }
  return faults
}

/** Looks at a session before and after it is opened. */
const look = (session: Scalars.SessionId, promised: Promises, seen: Tally): Effect.Effect<ReadonlyArray<string>, SessionStore.SessionStoreError, SessionStore.SessionStore> =>
  Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    const check = Effect.gen(function*() {
      const events = yield* Stream.runCollect(store.read(session, -1))
      const entries = yield* Stream.runCollect(store.inbox(session))
      const { nextStep, nextTurn } = yield* store.pending(session)
      return {
        events,
        faults: faultsOf(
          events,
          promised,
          entries.filter((entry) => entry.type === "received"),
          new Set([...nextTurn, ...nextStep].map(({ id }) => id)),
          new Set(entries.flatMap((entry) => entry.type === "discarded" ? entry.ids : []))
        )
      }
    })
    let before = yield* check
    // A server may still be committing what its client, which is dead, asked for last: between two looks, then.
    for (let again = 0; before.faults.length > 0 && again < 20; again++) {
      yield* Effect.sleep("50 millis")
      before = yield* check
    }
    // A process that was killed takes a moment until it is gone, where another one than this waits for it.
    const writer = yield* Effect.retry(store.open(session, "the checker"), {
      while: ({ failure }) => failure.code === "SESSION_BUSY",
      schedule: Schedule.spaced("20 millis"),
      times: 250
    })
    const { events, faults } = yield* check
    if (writer.recovery.closed.length > 0) seen.open++
    seen.requeued += writer.recovery.requeued.length
    const ends = events.filter(({ type }) => type === "turn/end").length
    const starts = events.filter(({ type }) => type === "turn/start").length
    return [
      ...before.faults.map((fault) => `before the repair: ${fault}`),
      ...faults.map((fault) => `after the repair: ${fault}`),
      ...(ends === starts ? [] : [`${starts} turns were begun and ${ends} ended`])
    ]
  }).pipe(Effect.scoped)

export interface Options {
  readonly bundle: string
  readonly store: StoreName
  readonly session: string
  readonly rounds: number
  readonly seed: number
  /** What runs the writer; see `Programs.Start`. */
  readonly runtime?: ReadonlyArray<string>
}

/** Answers what was wrong, with the round and its seed; nothing where all was right. */
export const run = async ({ bundle, rounds, runtime, seed, session, store }: Options, seen: Tally): Promise<ReadonlyArray<string>> => {
  const id = Scalars.SessionId.make(session)
  const promised: Promises = { events: [], receipts: new Map() }
  const next = random(seed)
  for (let round = 0; round < rounds; round++) {
    const own = Math.floor(next() * 1_000_000_000)
    // Nearly always in the middle of its work, wherever that is when so much was acknowledged; at times before it has done anything.
    let due = 1 + Math.floor(next() * 15)
    const millis = next() * 5
    const ended = await Programs.run(
      { bundle, name: "writer", args: { store, session, seed: own }, ...(runtime === undefined ? {} : { runtime }) },
      (_, child) => {
        if (--due === 0) setTimeout(() => Programs.killGroup(child), millis)
      }
    )
    const told = ended.lines.map((line) => JSON.parse(line) as Acknowledged)
    for (const line of told) {
      if ("sum" in line) {
        promised.events.push(line)
        seen.events += line.events[1] - line.events[0] + 1
      }
      if ("receipt" in line) {
        promised.receipts.set(line.key, line.receipt)
        seen.receipts++
      }
    }
    const where = `round ${round} (seed ${seed}, ${own})`
    if (!told.some((line) => "opened" in line)) return [`${where}: the writer did not begin: ${JSON.stringify(told)} ${ended.errors}`]
    const faults = await Effect.runPromise(look(id, promised, seen).pipe(Effect.provide(layerOf(store))))
    seen.rounds++
    if (faults.length > 0) return faults.map((fault) => `${where}: ${fault}`)
  }
  return []
}
