/** The process that this code runs in, as an owner of others. */
import * as fs from "node:fs"
import type { Owner } from "../OwnerTag.ts"
import type { ProcessTable } from "./processTable.ts"

const bootId = (): string => {
  try {
    return fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
  } catch {
    // Not Linux: start times are seconds since 1970 there, which tell boots apart well enough.
    return "0"
  }
}

const namespace = (): string => {
  try {
    return /\d+/.exec(fs.readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0"
  } catch {
    return "0"
  }
}

export const owner = (table: ProcessTable): Owner => ({
  bootId: bootId(),
  namespace: namespace(),
  pid: process.pid,
  started: table.row(process.pid)?.started ?? 0
})

/**
 * Whether a tag's owner is certainly dead. Not certain, hence `false`: an owner
 * of another pid namespace, whose number means nothing here, or of another boot,
 * which no living process can have had.
 */
export const isDead = (candidate: Owner, self: Owner, table: ProcessTable): boolean => {
  if (candidate.bootId !== self.bootId || candidate.namespace !== self.namespace) return false
  const row = table.row(candidate.pid)
  return row === undefined || row.zombie || row.started !== candidate.started
}
