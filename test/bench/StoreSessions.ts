/**
 * Many sessions in one file: how long it takes a process to open it and list all of them, and what
 * each takes of a process that holds all of them at once, with a driver that waits for a prompt.
 */
import type { Arguments, Bare, Held, Listed } from "./programs/storeSessions.ts"
import * as Benchmark from "./support/Benchmark.ts"
import * as Program from "./support/Program.ts"

const eventsEach = 6

export const benchmark: Benchmark.Benchmark = {
  name: "sessions",
  summary: "10 000 sessions: listed, and held at once in one process",
  isOfStore: true,
  needs: [],
  run: async ({ quick, say, undisturbed }) => {
    const check = Benchmark.checker()
    const rounds = quick ? 1 : 7
    const counts = quick ? [20, 200] : [1000, 10_000]
    const few = counts[0] ?? 0
    const many = counts[1] ?? 0
    const held: Array<Held> = []
    const listed: Record<number, Array<Listed>> = { [few]: [], [many]: [] }
    const bare: Array<number> = []
    await Program.inDirectory(async (root) => {
      const within = (sessions: number) => `${root}/${sessions}`
      const program = <A>(work: Arguments["work"], sessions: number) => Program.run<A>("storeSessions", { directory: within(sessions), sessions, work } satisfies Arguments)
      for (const sessions of counts) {
        say(`sessions: making ${sessions}`)
        await program("make", sessions)
      }
      for (let round = 1; round <= rounds; round++) {
        for (const sessions of counts) {
          say(`sessions: round ${round} of ${rounds}, ${sessions} listed`)
          const found = await undisturbed(() => program<Listed>("list", sessions))
          check.equal("what is listed", [found.sessions, found.events, found.isInOrder], [sessions, sessions * eventsEach, true])
          listed[sessions]?.push(found)
        }
        const alone = await undisturbed(() => program<Bare>("bare", many))
        check.equal("what is read by node:sqlite alone", alone.sessions, many)
        bare.push(alone.ms)
      }
      /** The number of the last turn of those that get a prompt, which they get anew where a round is done again. */
      let turn = 1
      for (let round = 1; round <= (quick ? 1 : 3); round++) {
        say(`sessions: round ${round}, ${many} held`)
        const found = await undisturbed(() => {
          turn++
          return program<Held>("hold", many)
        })
        check.equal("the phases of all drivers", found.phases, { Idle: many })
        check.equal(
          "the turns of those that got a prompt",
          found.answers,
          [0, Math.floor(many / 2), many - 1].map((number) => `session ${number}, turn ${turn}: prompt of ${number}`).sort()
        )
        held.push(found)
      }
    })
    const listings = (sessions: number) => listed[sessions] ?? []
    const name = Benchmark.number(many)
    const mib = 2 ** 20
    return {
      figures: [
        Benchmark.figure(`${name} sessions: opened and listed by a new process`, "ms", listings(many).map(({ ms }) => ms), { kind: "at most", value: 50 }),
        Benchmark.figure(`${name} sessions: listed again`, "ms", listings(many).map(({ again_ms }) => again_ms)),
        Benchmark.figure(`${Benchmark.number(few)} sessions: opened and listed by a new process`, "ms", listings(few).map(({ ms }) => ms)),
        Benchmark.figure(`${name} sessions: read by node:sqlite alone, unchecked`, "ms", bare),
        Benchmark.figure(`${name} sessions: ratio to node:sqlite alone`, "×", listings(many).map(({ ms }, round) => ms / (bare[round] ?? Number.NaN))),
        Benchmark.figure(`${name} sessions: heap that listing them keeps in use`, "KiB", listings(many).map(({ kept }) => kept / 1024), { kind: "at most", value: 1024 }),
        Benchmark.figure(`${Benchmark.number(few)} sessions: heap that listing them keeps in use`, "KiB", listings(few).map(({ kept }) => kept / 1024)),
        Benchmark.figure(`${name} sessions: resident memory that listing them takes`, "MiB", listings(many).map(({ peak, rss }) => (peak - rss) / mib)),
        Benchmark.figure(`${name} sessions held in one process: memory`, "KiB each", held.map(({ rss }) => rss / 1024 / many), { kind: "at most", value: 50 }),
        Benchmark.figure(`${name} sessions held in one process: of the heap in use`, "KiB each", held.map(({ heap }) => heap / 1024 / many)),
        Benchmark.figure(`${name} sessions held in one process: CPU while nothing happens`, "ms a second", held.map(({ idle_cpu_ms }) => idle_cpu_ms)),
        Benchmark.figure(`${name} sessions held in one process: all open after`, "s", held.map(({ seconds }) => seconds))
      ],
      samples: { listed, bare, held },
      checks: check.count()
    }
  }
}
