/**
 * What dead owners left behind.
 *
 * A process belongs to the owners that the tags in its environment name. It is
 * an orphan when all of them are certainly dead: this boot's, of this pid
 * namespace, with no living process of that number and start time. Whatever a
 * living owner has is never touched, nor is this process or one above it.
 */
import * as Effect from "effect/Effect"
import type { KillReport } from "./Child.ts"
import * as Family from "./internal/family.ts"
import * as ProcessTable from "./internal/processTable.ts"
import * as ThisProcess from "./internal/thisProcess.ts"
import * as WallClock from "./internal/wallClock.ts"
import * as OwnerTag from "./OwnerTag.ts"
import * as ProcessInfo from "./ProcessInfo.ts"

export interface Options {
  readonly tagPrefix?: string | undefined
  /** Takes credentials out of command lines before they are bounded. */
  readonly redact?: ((text: string) => string) | undefined
}

const boundMs = 3_000

/**
 * Kills the orphans, at most 3 s long, and lists them. Those that are still
 * alive then, or that belong to another user, are the survivors. Where the system
 * has no `/proc` nothing can be found.
 */
export const reap = Effect.fn("Orphans.reap")(function*(options: Options = {}) {
  const table = ProcessTable.ofThisMachine()
  const prefix = options.tagPrefix ?? OwnerTag.defaultPrefix
  const self = ThisProcess.owner(table)
  const killed = new Map<string, ProcessInfo.ProcessInfo>()
  const deadline = WallClock.now() + boundMs
  while (true) {
    const orphans = find(table, self, prefix, killed)
    const infos = orphans.map((row): ProcessInfo.ProcessInfo => ({
      pid: row.pid,
      parentPid: row.parentPid,
      started: row.started,
      command: ProcessInfo.shownCommand(table.command(row.pid), options.redact ?? ((text) => text)),
      insideGroup: false,
      foundBy: "tag"
    }))
    // Described at first: a dying process has no command line any more.
    for (const info of infos) if (!killed.has(ProcessInfo.identity(info))) killed.set(ProcessInfo.identity(info), info)
    const outcomes = orphans.map((row) => Family.signalRow(table, row, "SIGKILL"))
    if (outcomes.every((outcome) => outcome === "refused") || WallClock.now() > deadline) {
      for (const info of infos) killed.delete(ProcessInfo.identity(info))
      return { killed: [...killed.values()], survivors: infos } satisfies KillReport
    }
    yield* WallClock.sleep(10)
  }
})

/** `known` are those that were found before, by their identities: one that has lost its parent meanwhile has nothing else to tell it by. */
const find = (
  table: ProcessTable.ProcessTable,
  self: OwnerTag.Owner,
  prefix: string,
  known: ReadonlyMap<string, unknown>
): ReadonlyArray<ProcessTable.Row> => {
  if (table.source !== "procfs") return []
  const rows = table.rows()
  const byPid = new Map(rows.map((row) => [row.pid, row]))
  const protectedPids = new Set<number>()
  for (let row = byPid.get(self.pid); row !== undefined && !protectedPids.has(row.pid); row = byPid.get(row.parentPid)) {
    protectedPids.add(row.pid)
  }
  const verdicts = new Map<string, boolean>()
  const isDead = (owner: OwnerTag.Owner) => {
    const key = OwnerTag.format(owner)
    const verdict = verdicts.get(key) ?? ThisProcess.isDead(owner, self, table)
    verdicts.set(key, verdict)
    return verdict
  }
  const orphans = new Map<number, ProcessTable.Row>()
  const untagged: Array<ProcessTable.Row> = []
  for (const row of rows) {
    if (row.zombie || protectedPids.has(row.pid)) continue
    if (known.has(ProcessInfo.identity(row))) {
      orphans.set(row.pid, row)
      continue
    }
    const owners = [...OwnerTag.inEnvironment(table.environment(row.pid), prefix).values()]
    if (owners.length === 0) untagged.push(row)
    else if (owners.every(isDead)) orphans.set(row.pid, row)
  }
  // A child of an orphan that cleared its environment is one, too.
  for (let grown = true; grown;) {
    grown = false
    for (const row of untagged) {
      if (orphans.has(row.pid) || !orphans.has(row.parentPid)) continue
      orphans.set(row.pid, row)
      grown = true
    }
  }
  return [...orphans.values()]
}
