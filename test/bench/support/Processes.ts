/** What the kernel says of processes. Linux only: it reads `/proc`. */
import * as fs from "node:fs"

/** Every process that carries the variable finds its way into a list by it, whoever its parent is. */
export const markName = "TURNPIKE_BENCH_MARK"

export interface Seen {
  readonly pid: number
  readonly command: string
}

const read = (file: string): string | undefined => {
  try {
    return fs.readFileSync(file, "utf8")
  } catch {
    // It has ended meanwhile, or is somebody else's.
    return undefined
  }
}

/** The living processes whose environment has the mark. One that ended and was not waited for has no command line and is left out. */
export const marked = (mark: string): ReadonlyArray<Seen> =>
  fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    if (read(`/proc/${name}/environ`)?.split("\0").includes(`${markName}=${mark}`) !== true) return []
    const command = read(`/proc/${name}/cmdline`)?.replaceAll("\0", " ").trim() ?? ""
    return command === "" ? [] : [{ pid: Number(name), command }]
  })

const kib = (text: string | undefined, field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text ?? "")?.[1] ?? 0)

export interface Memory {
  /** Resident, in KiB. */
  readonly rss_kib: number
  /** The same, with what is shared divided among those that share it. */
  readonly pss_kib: number
}

export const memoryOf = (pid: number): Memory => {
  const text = read(`/proc/${pid}/smaps_rollup`)
  return { rss_kib: kib(text, "Rss"), pss_kib: kib(text, "Pss") }
}

/** Resident, in KiB: cheaper than `memoryOf`; 0 of a process that has ended. */
export const rssOf = (pid: number): number => kib(read(`/proc/${pid}/status`), "VmRSS")

export const openFiles = (pid: number): number => {
  try {
    return fs.readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return 0
  }
}

/** Milliseconds of CPU that a process has used so far, without its children; 0 of one that has ended. */
export const cpuOf = (pid: number): number => {
  const fields = read(`/proc/${pid}/stat`)?.split(") ").at(-1)?.split(" ") ?? []
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10
}

/** Waits until a fact of the outside holds; fails, saying what it saw, when it does not in time. */
export const eventually = async <A>(what: string, look: () => A, holds: (value: A) => boolean, withinMs = 20_000): Promise<A> => {
  const until = Date.now() + withinMs
  for (;;) {
    const value = look()
    if (holds(value)) return value
    if (Date.now() > until) throw new Error(`${what}: after ${withinMs} ms it is still ${JSON.stringify(value)}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
