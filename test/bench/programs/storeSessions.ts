/** Many sessions in one file: makes them, lists them, or holds all of them at once, each with its driver, as a server has them. */
import { Scalars, type SessionEvent } from "@turnpike/contract"
import { SessionDriver, SessionLog, SessionStore } from "@turnpike/kernel"
import { SqliteSessionStore } from "@turnpike/session-store"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { layerOf } from "../../../packages/session-store/test/support/programs/stores.ts"
import { answer, memory, timed } from "../support/answer.ts"
import * as Processes from "../support/Processes.ts"
import * as Logs from "./storeLogs.ts"

export interface Arguments {
  readonly directory: string
  readonly sessions: number
  /** `bare` reads what a list is made of by `node:sqlite` alone. */
  readonly work: "make" | "list" | "bare" | "hold"
}

export interface Listed {
  /** From a process that has loaded its code to the last session, the store opened first. */
  readonly ms: number
  /** The same again, in the store that is open. */
  readonly again_ms: number
  /** Resident, in bytes: what it had before, and its most, with what nobody has collected yet. */
  readonly rss: number
  readonly peak: number
  /** Bytes of the heap in use at most, each time after a collection, beyond what was in use before: of one more listing. */
  readonly kept: number
  readonly sessions: number
  readonly events: number
  /** Whether the one that was changed last came first, and so on. */
  readonly isInOrder: boolean
}

export interface Bare {
  readonly ms: number
  readonly sessions: number
}

export interface Held {
  /** Bytes by which all of them together made the process larger. */
  readonly heap: number
  readonly rss: number
  readonly seconds: number
  /** Milliseconds of CPU that all of them together take in a second in which nothing happens. */
  readonly idle_cpu_ms: number
  readonly phases: Readonly<Record<string, number>>
  /** What those were told that got a prompt afterwards. */
  readonly answers: ReadonlyArray<string>
}

/** The events of a session that had one turn. */
const oneTurn = (number: number): ReadonlyArray<SessionEvent.SessionEvent> =>
  ([
    { type: "turn/start", data: { turn: 1, trigger: { kind: "message", source: "user" } } },
    { type: "step/start", data: { step: 1 } },
    { type: "user/message", data: { text: `What was asked first in session ${number}`, source: "user" }, surface_op: "append" },
    { type: "assistant/message", data: { text: `An answer of some words, of which there are many. ${"word ".repeat(100)}` }, surface_op: "append" },
    { type: "step/end", data: { step: 1 } },
    { type: "turn/end", data: { turn: 1, verdict: { type: "completed" } } }
  ] satisfies ReadonlyArray<SessionEvent.Body>).map((body, seq) => ({ seq, time: 1_790_000_000_000 + number * 10 + seq, ...body }))

const make = ({ directory, sessions }: Arguments) =>
  Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    for (let number = 0; number < sessions; number++) yield* store.restore(Logs.headerOf(number), Stream.fromIterable(oneTurn(number)), Stream.empty)
    return { sessions }
  }).pipe(Effect.provide(layerOf({ kind: "sqlite", directory })))

const list = ({ directory }: Arguments) =>
  Effect.gen(function*() {
    const { rss } = memory()
    const from = performance.now()
    let peak = rss
    const once = (look: () => void) => Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      const seen = { sessions: 0, events: 0, last: Number.POSITIVE_INFINITY, isInOrder: true }
      yield* Stream.runForEachArray(store.list, (some) =>
        Effect.sync(() => {
          for (const { events, updated } of some) {
            seen.sessions++
            seen.events += events
            seen.isInOrder &&= updated <= seen.last
            seen.last = updated
          }
          look()
        }))
      return seen
    })
    const resident = () => {
      peak = Math.max(peak, process.memoryUsage.rss())
    }
    return yield* Effect.gen(function*() {
      const { events, isInOrder, sessions } = yield* once(resident)
      const ms = performance.now() - from
      const again = performance.now()
      yield* once(resident)
      const again_ms = performance.now() - again
      const { heap } = memory()
      let most = heap
      yield* once(() => {
        most = Math.max(most, memory().heap)
      })
      return { ms, again_ms, rss, peak, kept: most - heap, sessions, events, isInOrder } satisfies Listed
    }).pipe(Effect.provide(layerOf({ kind: "sqlite", directory })))
  })

/** What a list reads, in its order and as many at a time, with the headers parsed and nothing checked. */
const bare = ({ directory }: Arguments) =>
  Effect.sync(() => {
    const from = performance.now()
    const database = new DatabaseSync(path.join(directory, SqliteSessionStore.fileName))
    const numbers = database.prepare("select number from sessions where id is not null order by updated desc, number desc").all().map(({ number }) => Number(number))
    const page = database.prepare(`select s.number, s.id, s.header, s.header_sum, s.generation, s.next_seq, s.turns, s.updated, s.log_sum,
      s.inbox_seq, s.pending, s.inbox_sum, s.owner, s.holder, s.since, o.process, o.expires
      from sessions s left join owners o on o.id = s.owner where s.id is not null and number in (select value from json_each(?))`)
    let sessions = 0
    for (let at = 0; at < numbers.length; at += 250) {
      sessions += page.all(JSON.stringify(numbers.slice(at, at + 250))).map(({ header }) => JSON.parse(String(header)) as unknown).length
    }
    const ms = performance.now() - from
    database.close()
    return { ms, sessions } satisfies Bare
  })

const hold = ({ directory, sessions }: Arguments) =>
  Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    const answers: Array<string> = []
    const isAnswered = yield* Deferred.make<void>()
    const asked = [0, Math.floor(sessions / 2), sessions - 1]
    const one = (number: number) =>
      Effect.gen(function*() {
        const log = yield* SessionLog.open(store, Logs.sessionId(number), "the measurement")
        return yield* SessionDriver.make({
          store,
          writer: log.writer,
          log,
          wakeAtStart: true,
          execute: ({ messages, turn }) =>
            Effect.gen(function*() {
              answers.push(`session ${number}, turn ${turn}: ${messages.map(({ text }) => text).join()}`)
              if (answers.length === asked.length) yield* Deferred.succeed(isAnswered, undefined)
              return { type: "completed" } as const
            })
        })
      })
    // What the first of them loads is not the others'.
    yield* Effect.scoped(one(0))
    const before = { ...memory(), pss: Processes.memoryOf(process.pid).pss_kib * 1024 }
    const from = performance.now()
    const drivers: Array<SessionDriver.SessionDriver> = []
    for (let number = 0; number < sessions; number++) drivers.push(yield* one(number))
    for (const driver of drivers) yield* driver.whenIdle
    const seconds = (performance.now() - from) / 1000
    yield* Effect.sleep("1 second")
    const after = { ...memory(), pss: Processes.memoryOf(process.pid).pss_kib * 1024 }
    const idle = yield* Effect.promise(() => timed(() => Effect.runPromise(Effect.sleep("5 seconds"))))
    const phases: Record<string, number> = {}
    for (const driver of drivers) {
      const { _tag } = yield* driver.phase
      phases[_tag] = (phases[_tag] ?? 0) + 1
    }
    for (const number of asked) yield* store.receive(Scalars.SessionId.make(Logs.sessionId(number)), { kind: "followup", text: `prompt of ${number}`, source: "user" })
    yield* Deferred.await(isAnswered)
    for (const driver of drivers) yield* driver.whenIdle
    return {
      heap: after.heap - before.heap,
      rss: after.pss - before.pss,
      seconds,
      idle_cpu_ms: idle.cpu_ms / idle.ms * 1000,
      phases,
      answers: answers.sort()
    } satisfies Held
  }).pipe(Effect.scoped, Effect.provide(layerOf({ kind: "sqlite", directory })))

const works = { make, list, bare, hold }

await answer((args: Arguments): Effect.Effect<unknown, unknown> => works[args.work](args))
