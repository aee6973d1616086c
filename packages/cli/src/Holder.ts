/**
 * The name of a process that holds something: enough to tell, from another
 * process, whether it still lives.
 *
 * A pid alone would not do, because numbers are used again: the holder's start
 * time and the boot stand beside it, and the pid namespace in which the number
 * counts.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"

const strict = { onExcessProperty: "error" } as const

export const Holder = Schema.Struct({
  pid: Schema.Int,
  /** Start time: clock ticks since boot on Linux, else as `ps` writes it. */
  started: Schema.String,
  boot_id: Schema.String,
  pid_namespace: Schema.String,
  host: Schema.String,
  since: Schema.String
})
export type Holder = typeof Holder.Type

const decode = Schema.decodeUnknownResult(Holder, strict)

const firstLine = (file: string): string | undefined => {
  try {
    return fs.readFileSync(file, "utf8").split("\n")[0]
  } catch {
    return undefined
  }
}

/** When the process of this number was started; `undefined` when there is none, or only its unreaped rest. */
const startOf = (pid: number): string | undefined => {
  if (process.platform === "linux") {
    const stat = firstLine(`/proc/${pid}/stat`)
    if (stat === undefined) return undefined
    // Fields count from the last parenthesis, since a name may hold anything: state first, start time twentieth.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19]
  }
  const { stdout } = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8", env: { ...process.env, LC_ALL: "C" } })
  return typeof stdout === "string" && stdout.trim() !== "" ? stdout.trim() : undefined
}

const bootId = (): string => firstLine("/proc/sys/kernel/random/boot_id") ?? ""

const pidNamespace = (): string => {
  try {
    return fs.readlinkSync("/proc/self/ns/pid")
  } catch {
    return ""
  }
}

/** This process. */
export const self = (): Holder => ({
  pid: process.pid,
  started: startOf(process.pid) ?? "",
  boot_id: bootId(),
  pid_namespace: pidNamespace(),
  host: os.hostname(),
  since: new Date().toISOString()
})

export type Life = "alive" | "dead" | "unknown"

/**
 * Whether a holder lives. Unknown is one whose number says nothing here: of
 * another pid namespace of this boot, or of another machine.
 */
export const lifeOf = (holder: Holder, me: Holder = self()): Life => {
  if (holder.boot_id !== me.boot_id) return holder.host === me.host ? "dead" : "unknown"
  if (holder.pid_namespace !== me.pid_namespace) return "unknown"
  return startOf(holder.pid) === holder.started ? "alive" : "dead"
}

/** Reads what {@link format} wrote; `undefined` when it is something else. */
export const parse = (text: string): Holder | undefined => {
  try {
    return Result.getOrUndefined(decode(JSON.parse(text)))
  } catch {
    return undefined
  }
}

export const format = (holder: Holder): string => `${JSON.stringify(holder)}\n`

/** For people. */
export const describe = (holder: Holder, life: Life): string =>
  holder.pid === process.pid && life === "alive"
    ? "another run of this process"
    : `process ${holder.pid} since ${holder.since}${life === "unknown" ? ` on ${holder.host} or in another container, where this process cannot see it` : ""}`
