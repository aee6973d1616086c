/**
 * How long the event loop of a process is held up while a session takes in 10 000 pieces of an
 * answer a second, with SQLite in its thread; beside it a store in memory, and nothing at all.
 */
import type { StoreName } from "../../packages/session-store/test/support/programs/stores.ts"
import type { Arguments, Lag } from "./programs/storeLag.ts"
import * as Benchmark from "./support/Benchmark.ts"
import * as Program from "./support/Program.ts"

const rate = 10_000

export const names = { sqlite: "SQLite", memory: "a store in memory", none: "no store" } as const

export const benchmark: Benchmark.Benchmark = {
  name: "lag",
  summary: "how long the event loop is held up at 10 000 pieces a second",
  isOfStore: true,
  needs: [],
  run: async ({ quick, say, undisturbed }) => {
    const check = Benchmark.checker()
    const rounds = quick ? 1 : 5
    const ways: ReadonlyArray<readonly [keyof typeof names, (directory: string) => StoreName | undefined]> = [
      ["sqlite", (directory) => ({ kind: "sqlite", directory })],
      ["memory", () => ({ kind: "memory" })],
      ["none", () => undefined]
    ]
    const samples: Record<string, Array<Lag>> = {}
    for (let round = 1; round <= rounds; round++) {
      for (const [way, storeIn] of ways) {
        say(`lag: round ${round} of ${rounds}, ${names[way]}`)
        const found = await undisturbed(() =>
          Program.inDirectory((directory) => {
            const store = storeIn(directory)
            return Program.run<Lag>("storeLag", { rate, seconds: quick ? 1 : 10, ...(store === undefined ? {} : { store }) } satisfies Arguments)
          }))
        check.equal(`whether all pieces are there in order, in ${names[way]}`, found.isThere, true)
        // Where it could not keep up the figures would be those of another measurement.
        check.equal(`whether ${names[way]} kept up with the pace`, Math.round(found.rate / rate * 10) / 10, 1)
        ;(samples[way] ??= []).push(found)
      }
    }
    return {
      figures: ways.flatMap(([way]) => {
        const of = (what: string, unit: string, value: (lag: Lag) => number, goal?: Benchmark.Goal) =>
          Benchmark.figure(`${names[way]}: ${what}`, unit, (samples[way] ?? []).map(value), goal)
        return [
          of("p50", "ms", ({ p50_ms }) => p50_ms),
          of("p99", "ms", ({ p99_ms }) => p99_ms, way === "sqlite" ? { kind: "at most", value: 10 } : undefined),
          of("longest", "ms", ({ max_ms }) => max_ms),
          of("CPU", "of a core", ({ cpu }) => cpu)
        ]
      }),
      samples,
      checks: check.count()
    }
  }
}
