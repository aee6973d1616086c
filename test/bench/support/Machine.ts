/** What a figure depends on and a reader has to know; no name of a host, a user or a place. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import { fileURLToPath } from "node:url"

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memory_gib: number
  readonly kernel: string
  readonly node: string
  /** Processes that ran or waited for a core during the minute before, as the kernel counts. */
  readonly load: number
}

export const describe = (): Machine => ({
  cpu: os.cpus()[0]?.model.trim() ?? "unknown",
  cores: os.cpus().length,
  memory_gib: Math.round(os.totalmem() / 2 ** 30),
  kernel: `${os.type()} ${os.release()}`,
  node: process.versions.node,
  load: Math.round((os.loadavg()[0] ?? 0) * 100) / 100
})

/** What is measured: the commit, and whether the packages' sources differ from it. */
export const commit = (): string => {
  const cwd = fileURLToPath(new URL("../../..", import.meta.url))
  const git = (...args: ReadonlyArray<string>) => spawnSync("git", ["-c", `safe.directory=${cwd.replace(/\/$/, "")}`, ...args], { cwd, encoding: "utf8" }).stdout?.trim() ?? ""
  const changed = git("status", "--porcelain", "--", "packages") !== ""
  return `${git("rev-parse", "--short", "HEAD") || "unknown"}${changed ? " with changes" : ""}`
}

/** Ticks that all cores have spent so far: at work, and in all. */
const ticks = (): { readonly busy: number; readonly all: number } => {
  const [, user = 0, nice = 0, system = 0, idle = 0, iowait = 0, ...more] = fs.readFileSync("/proc/stat", "utf8").split("\n", 1)[0]!
    .split(/\s+/).map(Number)
  const rest = more.slice(0, 3).reduce((sum, one) => sum + one, 0)
  return { busy: user + nice + system + rest, all: user + nice + system + rest + idle + iowait }
}

/** The part of all cores that is at work during some milliseconds in which the caller does nothing, from 0 to 1. */
export const busyPart = async (duringMs: number): Promise<number> => {
  const before = ticks()
  await new Promise((resolve) => setTimeout(resolve, duringMs))
  const after = ticks()
  return after.all === before.all ? 0 : (after.busy - before.busy) / (after.all - before.all)
}

/** Milliseconds of CPU that this process and all that it has waited for have used. */
const own = (): number => {
  const fields = fs.readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)?.split(" ") ?? []
  return fields.slice(11, 15).reduce((sum, one) => sum + Number(one), 0) * 10
}

/** Begins to look; the answer tells which part of the machine others have had since, from 0 to 1. */
export const watch = (): () => number => {
  const [before, ownBefore] = [ticks(), own()]
  return () => {
    const [after, ownAfter] = [ticks(), own()]
    const all = (after.all - before.all) * 10
    return all === 0 ? 0 : Math.max(0, (after.busy - before.busy) * 10 - (ownAfter - ownBefore)) / all
  }
}

/** Waits until others leave the machine alone for a second; answers what was seen last, and says so when the time is up. */
export const quiet = async (atMostMs: number, say: (text: string) => void): Promise<number> => {
  const until = Date.now() + atMostMs
  for (let announced = false;;) {
    const busy = await busyPart(1000)
    if (busy < 0.12) return busy
    if (Date.now() > until) {
      say(`the machine did not become quiet: ${Math.round(busy * 100)} % of it is at work`)
      return busy
    }
    if (!announced) say(`waiting for a quiet machine: ${Math.round(busy * 100)} % of it is at work`)
    announced = true
  }
}
