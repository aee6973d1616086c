/**
 * How long it takes to read a session: the last 50 events of a long log, as somebody does who comes
 * back to it, and all of it, as somebody does who makes something else of it.
 *
 * Logs of three lengths, so that it can be seen whether the time grows with the length alone; and one
 * whose rows have 8 events each, as a model's pace makes them, rather than the 512 that fill one.
 */
import type { Arguments, Read } from "./programs/storeRead.ts"
import * as Benchmark from "./support/Benchmark.ts"
import * as Program from "./support/Program.ts"
import * as Statistics from "./support/Statistics.ts"

interface Log {
  readonly name: string
  readonly events: number
  readonly size: number
}

const log = (events: number, size: number): Log => ({ name: `${Benchmark.number(events)} events, ${size} a row`, events, size })

export const logs = { short: log(10_000, 512), middle: log(100_000, 512), long: log(1_000_000, 512), paced: log(100_000, 8) } as const

export const benchmark: Benchmark.Benchmark = {
  name: "read",
  summary: "a session's log: its last 50 events, and all of them",
  isOfStore: true,
  needs: [],
  run: async ({ quick, say, undisturbed }) => {
    const check = Benchmark.checker()
    const rounds = quick ? 1 : 3
    const chosen = quick ? [logs.short] : Object.values(logs)
    const samples: Record<string, Array<Read>> = {}
    for (let round = 1; round <= rounds; round++) {
      for (const { events, name, size } of chosen) {
        say(`read: round ${round} of ${rounds}, ${name}`)
        const read = await undisturbed(() =>
          Program.inDirectory((directory) =>
            Program.run<Read>("storeRead", { directory, events, size, replays: events >= 1_000_000 ? 3 : 7, tails: 500 } satisfies Arguments)))
        check.equal(`what is read of ${name}`, read.read, read.written)
        check.equal(`the end of ${name}`, read.read_tails, [read.written_tail])
        ;(samples[name] ??= []).push(read)
      }
    }
    const figures = chosen.flatMap(({ events, name }) => {
      const all = samples[name] ?? []
      const isGoal = events === logs.long.events
      // The first of a process is the compiler's, and is told apart.
      return [
        Benchmark.figure(`${name}: all of it`, "s", all.map(({ replay_ms }) => Statistics.median(replay_ms.slice(1)) / 1000), isGoal ? { kind: "at most", value: 2 } : undefined),
        Benchmark.figure(`${name}: all of it, the first time in a process`, "s", all.map(({ replay_ms }) => (replay_ms[0] ?? Number.NaN) / 1000)),
        Benchmark.figure(`${name}: an event`, "µs", all.map(({ replay_ms }) => Statistics.median(replay_ms.slice(1)) * 1000 / events)),
        Benchmark.figure(`${name}: opened to go on with it`, "s", all.map(({ open_ms }) => open_ms / 1000)),
        Benchmark.figure(`${name}: its last 50, p50`, "ms", all.map(({ tail_ms }) => Statistics.quantile(tail_ms, 0.5)), isGoal ? { kind: "at most", value: 0.25 } : undefined),
        Benchmark.figure(`${name}: its last 50, p99`, "ms", all.map(({ tail_ms }) => Statistics.quantile(tail_ms, 0.99)))
      ]
    })
    return { figures, samples: Object.fromEntries(Object.entries(samples).map(([name, all]) => [name, all.map(({ read_tails: _, written_tail: __, ...rest }) => rest)])), checks: check.count() }
  }
}
