/**
 * Whether the messages that a model is shown cost more for the next turn the longer the log is: the
 * turn's events taken in after logs of three lengths, and, told apart, the array of all messages, which
 * whoever asks a model goes through anyway.
 */
import type { Arguments, Cost } from "./programs/surface.ts"
import * as Benchmark from "./support/Benchmark.ts"
import * as Program from "./support/Program.ts"
import * as Statistics from "./support/Statistics.ts"

export const lengths = [1000, 10_000, 100_000] as const

export const nameOf = (events: number) => `after ${Benchmark.number(events)} events`

export const growth = "a model's messages, one turn more: ratio of 100 000 events to 1 000"

export const benchmark: Benchmark.Benchmark = {
  name: "messages",
  summary: "a model's messages: what the next turn costs, the longer the log",
  isOfStore: true,
  needs: [],
  run: async ({ quick, say, undisturbed }) => {
    const check = Benchmark.checker()
    const rounds = quick ? 1 : 5
    const samples: Array<ReadonlyArray<Cost>> = []
    for (let round = 1; round <= rounds; round++) {
      say(`messages: round ${round} of ${rounds}`)
      const costs = await undisturbed(() => Program.run<ReadonlyArray<Cost>>("surface", { lengths, repeats: quick ? 10 : 40 } satisfies Arguments))
      check.equal("whether what was kept is what the whole logs come to", costs.map(({ isSame }) => isSame), lengths.map(() => true))
      samples.push(costs)
    }
    const each = (index: number, value: (cost: Cost) => number) => samples.flatMap((costs) => costs[index] === undefined ? [] : [value(costs[index])])
    const add = ({ add_us }: Cost) => Statistics.median(add_us)
    const last = lengths.length - 1
    return {
      figures: [
        ...lengths.flatMap((events, index) => [
          Benchmark.figure(`${nameOf(events)}: one turn more`, "µs", each(index, add)),
          Benchmark.figure(`${nameOf(events)}: all messages as an array`, "µs", each(index, ({ messages_us }) => Statistics.median(messages_us))),
          Benchmark.figure(`${nameOf(events)}: the whole log again`, "µs", each(index, ({ whole_us }) => Statistics.median(whole_us)))
        ]),
        Benchmark.figure(
          growth,
          "×",
          samples.map((costs) => add(costs[last]!) / add(costs[0]!)),
          { kind: "at most", value: 1.5 }
        )
      ],
      samples: { costs: samples },
      checks: check.count()
    }
  }
}
