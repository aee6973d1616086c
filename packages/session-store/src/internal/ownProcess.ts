/**
 * The name of a process, good enough for another one on the same machine to tell
 * that it is certainly dead.
 *
 * A pid alone would not do, because numbers are used again: the start time, the
 * boot and the pid namespace stand beside it. Of a process that another machine, boot
 * or container has, nothing is certain here: its lease has to run out.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as process from "node:process"

const OwnProcess = Schema.Struct({
  boot: Schema.String,
  namespace: Schema.String,
  pid: Schema.Int,
  started: Schema.String
})
type OwnProcess = typeof OwnProcess.Type

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(OwnProcess))

/** Runs what asks the system; `undefined` where it has no such thing, as on systems without `/proc`. */
const ask = (question: () => string | undefined): string | undefined => {
  try {
    return question()
  } catch {
    return undefined
  }
}

/** Clock ticks since boot; `undefined` where there is no such process, or only what is left until its parent asks. */
const startOf = (pid: number): string | undefined =>
  ask(() => {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
    // Fields count from the last parenthesis, since a name may hold anything: state first, start time twentieth.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19]
  })

/** This process. Its facts are empty where the system does not tell them. */
export const self = (): OwnProcess => ({
  boot: ask(() => fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()) ?? "",
  namespace: ask(() => fs.readlinkSync("/proc/self/ns/pid")) ?? "",
  pid: process.pid,
  started: startOf(process.pid) ?? ""
})

export const format = (one: OwnProcess): string => JSON.stringify(one)

/** Whether a process, as {@link format} wrote it, certainly lives no more. */
export const isDead = (written: string, me: OwnProcess): boolean => {
  const one = Result.getOrUndefined(decode(written))
  if (one === undefined || me.boot === "" || me.namespace === "" || one.started === "") return false
  return one.boot === me.boot && one.namespace === me.namespace && startOf(one.pid) !== one.started
}
