/** What the programs of the store's benchmarks begin and end with. */
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"

/** Does what the arguments in JSON ask for, and answers in JSON. What fails ends the process with a stack. */
export const answer = async <Arguments, A>(work: (args: Arguments) => Effect.Effect<A, unknown> | Promise<A>): Promise<void> => {
  const given = work(JSON.parse(process.argv[2] ?? "{}"))
  const found = Effect.isEffect(given) ? await Effect.runPromise(given) : await given
  process.stdout.write(`${JSON.stringify(found)}\n`)
}

/** A digest of values in order, to see that what was read is what was written. */
export const digest = () => {
  const hash = createHash("sha256")
  return {
    add: (values: Iterable<unknown>): void => {
      for (const value of values) hash.update(`${JSON.stringify(value)}\n`)
    },
    end: (): string => hash.digest("hex")
  }
}

/** Milliseconds of the clock and of CPU, of all threads of this process. */
export const timed = async (work: () => Promise<unknown>): Promise<{ readonly ms: number; readonly cpu_ms: number }> => {
  const cpu = process.cpuUsage()
  const from = performance.now()
  await work()
  const ms = performance.now() - from
  const { system, user } = process.cpuUsage(cpu)
  return { ms, cpu_ms: (system + user) / 1000 }
}

export interface Memory {
  /** After a collection, in bytes. */
  readonly heap: number
  readonly rss: number
}

export const memory = (): Memory => {
  globalThis.gc?.()
  const { heapUsed: heap, rss } = process.memoryUsage()
  return { heap, rss }
}
