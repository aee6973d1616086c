/** Lets the n-th call of the system fail, for one n after the other: strace has the kernel refuse it. */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Programs from "./programs.ts"
import type { Outcome } from "./programs/faults.ts"
import type { Where } from "./programs/stores.ts"

export interface Refusal {
  readonly call: string
  readonly error: string
  readonly nth: number
  readonly where: Where
  readonly outcome: Outcome | { readonly refused: []; readonly fault: string }
}

/** What is refused, and to whom. */
export interface Refused {
  readonly bundle: string
  /** Each life has a directory in it. */
  readonly directory: string
  readonly call: string
  readonly error: string
  readonly where: Where
}

const run = async ({ bundle, call, directory, where }: Refused, own: string, inject: ReadonlyArray<string>, trace: string): Promise<Refusal["outcome"]> => {
  const ended = await Programs.run({
    bundle,
    name: "faults",
    args: { directory: path.join(directory, own), where },
    before: ["strace", "-f", "-qq", "--seccomp-bpf", "-o", trace, "-e", `trace=${call}`, ...inject]
  })
  fs.rmSync(path.join(directory, own), { recursive: true, force: true })
  const [line] = ended.lines
  return ended.code === 0 && line !== undefined ? JSON.parse(line) as Outcome : { refused: [], fault: `it ended with ${ended.signal ?? ended.code}: ${ended.errors}` }
}

/** How many calls one life makes, in the thread that makes most: strace counts each thread's own. */
export const callsOf = async (refusals: Refused): Promise<number> => {
  const { call, directory, where } = refusals
  const trace = path.join(directory, `${call}-${where}.trace`)
  const { fault, refused } = await run(refusals, `${call}-${where}`, [], trace)
  if (fault !== undefined || refused.length > 0) throw new Error(`a life without a fault: ${fault ?? JSON.stringify(refused)}`)
  const counts = new Map<string, number>()
  for (const line of fs.readFileSync(trace, "utf8").split("\n")) {
    const [, thread] = /^(\d+)\s+(?!<)/u.exec(line) ?? []
    if (thread !== undefined && line.includes(`${call}(`)) counts.set(thread, (counts.get(thread) ?? 0) + 1)
  }
  return Math.max(0, ...counts.values())
}

/** Two at a time, since the machine has two cores. */
export const refuse = async (refused: Refused, nths: ReadonlyArray<number>): Promise<ReadonlyArray<Refusal>> => {
  const { call, error, where } = refused
  const refusals: Array<Refusal> = []
  const rest = [...nths]
  const work = async () => {
    for (let nth = rest.shift(); nth !== undefined; nth = rest.shift()) {
      const outcome = await run(refused, `${call}-${error}-${where}-${nth}`, ["-e", `inject=${call}:error=${error}:when=${nth}`], "/dev/null")
      refusals.push({ call, error, nth, where, outcome })
    }
  }
  await Promise.all([work(), work()])
  return refusals
}
