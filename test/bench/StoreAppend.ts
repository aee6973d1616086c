/**
 * How many events a second a session takes that are on disk before they are acknowledged, 512 at
 * a time, and how many bytes each of them takes there. Beside it, in turn, what one could write
 * oneself: a table of node:sqlite with a packed row a batch, and a file of JSON lines; the same
 * store on PostgreSQL; and how long the disk alone takes to have something.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Postgres from "../../packages/session-store/test/support/postgres.ts"
import type { Appended, Arguments, Way } from "./programs/storeAppend.ts"
import * as Benchmark from "./support/Benchmark.ts"
import * as Program from "./support/Program.ts"
import * as Statistics from "./support/Statistics.ts"

const size = 512

/** Milliseconds until the disk has a written page and a file's new length, one by one. */
const syncs = (directory: string, count: number): ReadonlyArray<number> => {
  const descriptor = fs.openSync(path.join(directory, "synced"), "a")
  const page = Buffer.alloc(4096, "a")
  const each = Array.from({ length: count }, () => {
    const from = performance.now()
    fs.writeSync(descriptor, page)
    fs.fdatasyncSync(descriptor)
    return performance.now() - from
  })
  fs.closeSync(descriptor)
  return each
}

export const names = {
  store: "SQLite: the store",
  log: "SQLite: the log that a driver writes to, which checks each event",
  bare: "node:sqlite bare: one packed row a batch, in the same thread",
  lines: "JSON lines, fdatasync after each batch",
  postgres: "PostgreSQL: the store"
} as const

type Name = keyof typeof names

/** A server of the measurement's own, or why there is none. */
const withServer = <A>(work: (server: Postgres.Server | string) => Promise<A>): Promise<A> =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(
    Effect.catchDefect(Postgres.server, (defect) => Effect.succeed(defect instanceof Error ? defect.message : String(defect))),
    (server) => Effect.promise(() => work(server))
  )))

export const benchmark: Benchmark.Benchmark = {
  name: "append",
  summary: "durable appends of 512 events: a second, and bytes an event",
  isOfStore: true,
  needs: [],
  run: ({ quick, say, undisturbed }) =>
    withServer(async (server) => {
      const check = Benchmark.checker()
      const rounds = quick ? 1 : 5
      const plan = quick ? { batches: 40, uncounted: 20 } : { batches: 500, uncounted: 100 }
      /** Each round on PostgreSQL has tables of its own. */
      let schemas = 0
      const ways: ReadonlyArray<readonly [Name, (directory: string) => Way]> = [
        ["store", (directory) => ({ kind: "store", store: { kind: "sqlite", directory } })],
        ["log", (directory) => ({ kind: "log", store: { kind: "sqlite", directory } })],
        ["bare", () => ({ kind: "bare" })],
        ["lines", () => ({ kind: "lines" })],
        ...(typeof server === "string" ? [] : [["postgres", (): Way => {
          const { database, host, port, username } = server
          return { kind: "store", store: { kind: "postgres", server: { host, port, username, database, schema: `round_${++schemas}` } } }
        }] as const])
      ]
      const samples: { readonly appended: Partial<Record<Name, Array<Appended>>>; readonly sync_ms: Array<ReadonlyArray<number>> } = { appended: {}, sync_ms: [] }
      for (let round = 1; round <= rounds; round++) {
        for (const [name, wayIn] of ways) {
          say(`append: round ${round} of ${rounds}, ${names[name]}`)
          const appended = await undisturbed(() =>
            Program.inDirectory((directory) =>
              Program.run<Appended>("storeAppend", { way: wayIn(directory), directory, ...plan, size } satisfies Arguments)))
          check.equal(`what is read of ${names[name]}`, appended.read, appended.written)
          ;(samples.appended[name] ??= []).push(appended)
        }
        samples.sync_ms.push(await undisturbed(() => Program.inDirectory(async (directory) => syncs(directory, 200))))
      }
      const figures = ways.flatMap(([name]) => {
        const all = samples.appended[name] ?? []
        const of = (what: string, unit: string, value: (appended: Appended) => number, goal?: Benchmark.Goal) =>
          Benchmark.figure(`${names[name]}: ${what}`, unit, all.map(value), goal)
        return [
          of("appended", "events/s", ({ events, ms }) => events / ms * 1000, name === "store" ? { kind: "at least", value: 500_000 } : undefined),
          of("CPU", "µs an event", ({ cpu_ms, events }) => cpu_ms * 1000 / events),
          of("ratio to node:sqlite bare", "×", ({ events, ms }) => {
            const { events: bareEvents, ms: bareMs } = samples.appended.bare?.[all.findIndex((one) => one.ms === ms)] ?? { events: Number.NaN, ms: 1 }
            return events / ms / (bareEvents / bareMs)
          }),
          ...(all.every(({ file_bytes }) => file_bytes !== undefined)
            ? [of("size", "B an event", ({ events, file_bytes = 0 }) => file_bytes / events, name === "store" ? { kind: "at most", value: 25 } : undefined)]
            : [])
        ]
      })
      return {
        figures: [
          ...figures,
          Benchmark.figure("JSON of the events", "B an event", (samples.appended.store ?? []).map(({ events, json_bytes }) => json_bytes / events)),
          Benchmark.figure("the disk alone: a written page and its sync", "ms", samples.sync_ms.map((each) => Statistics.median(each)))
        ],
        samples,
        checks: check.count(),
        ...(typeof server === "string" ? { absent: [`PostgreSQL: ${server}`] } : {})
      }
    })
}
