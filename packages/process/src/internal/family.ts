/**
 * The descendants of one supervised command, as far as the process table shows.
 *
 * In a namespace the chain of parents is complete, because orphans go to the
 * namespace's first process. Without one, a process whose parent has died is
 * found by its tag, its session or group, a pipe that it shares with the command,
 * or because an earlier look saw it while its parent was alive.
 */
import * as OwnerTag from "../OwnerTag.ts"
import * as ProcessInfo from "../ProcessInfo.ts"
import * as NodeChild from "./nodeChild.ts"
import type { ProcessTable, Row } from "./processTable.ts"

export interface Member {
  readonly row: Row
  readonly foundBy: ProcessInfo.Evidence
}

export interface Root {
  readonly pid: number
  readonly started: number
  /** The name of the environment variable that the command's descendants inherit. */
  readonly tagName: string
  /** What descriptors 0 to 2 of the command are connected to. */
  readonly pipes: ReadonlySet<string>
  /** Our own processes between the root and the program, in a namespace; 0 for none. */
  readonly own: 0 | 1 | 2
}

export interface Family {
  /**
   * Whether the last look saw a process that it could not judge: one that is just
   * being replaced by another program has neither arguments nor environment. Such a
   * one may be a descendant; look again.
   */
  readonly isUncertain: () => boolean
  /** All that are alive but our own processes; the program's first process is among them while it lives. */
  readonly living: () => ReadonlyArray<Member>
  /** The program's own first process, once it was started and while it lives. */
  readonly leader: () => Row | undefined
  /** The first process of the namespace, whose death empties it. */
  readonly namespaceInit: () => Row | undefined
  readonly describe: (members: ReadonlyArray<Member>) => ReadonlyArray<ProcessInfo.ProcessInfo>
  /**
   * Processes of this user that came to be after the command, whose parent is
   * dead, and that nothing ties to the command or to any supervisor: they may have
   * been started by it. Without a namespace only. One that is just being replaced
   * by another program looks like this for a moment: look twice.
   */
  readonly suspects: () => ReadonlyArray<Member>
}

export const make = (
  table: ProcessTable,
  root: Root,
  options: {
    readonly redact: (text: string) => string
    /** Told of each descendant when it is first seen. */
    readonly seen?: (row: Row) => void
  }
): Family => {
  const known = new Set<string>([ProcessInfo.identity(root)])
  /** Numbers that were members: a session or group with such a number is the command's. */
  const numbers = new Map<number, number>([[root.pid, root.started]])
  const uid = process.geteuid?.() ?? -1
  let uncertain = false
  let ownLevel: number | undefined
  let cachedLeader: Row | undefined
  let cachedInit: Row | undefined
  const ours = new Set<string>()

  const isMemberNumber = (number: number, row: Row): boolean => {
    const started = numbers.get(number)
    return started !== undefined && row.started >= started
  }

  const collect = (): Map<number, Member> => {
    const rows = table.rows()
    const members = new Map<number, Member>()
    const add = (row: Row, foundBy: ProcessInfo.Evidence) => {
      members.set(row.pid, { row, foundBy })
      const id = ProcessInfo.identity(row)
      if (!known.has(id)) {
        known.add(id)
        numbers.set(row.pid, row.started)
        options.seen?.(row)
      }
    }
    const candidates = rows.filter((row) => !row.zombie && row.started >= root.started && row.pid !== process.pid)
    const grow = () => {
      for (let grown = true; grown;) {
        grown = false
        for (const row of candidates) {
          if (members.has(row.pid)) continue
          if (members.has(row.parentPid)) add(row, "parent")
          else if (isMemberNumber(row.group, row) || isMemberNumber(row.session, row)) add(row, "group")
          else continue
          grown = true
        }
      }
    }
    for (const row of candidates) {
      if (row.pid === root.pid && row.started === root.started) add(row, "parent")
    }
    grow()
    for (const row of candidates) {
      if (!members.has(row.pid) && known.has(ProcessInfo.identity(row))) add(row, "seen")
    }
    uncertain = false
    if (root.own === 0) {
      for (const row of candidates) {
        if (members.has(row.pid)) continue
        const environment = table.environment(row.pid)
        if (environment.includes(`${root.tagName}=`)) add(row, "tag")
        else if (environment === "" && isBetweenPrograms(row)) uncertain = true
        else if (root.pipes.size > 0 && table.files(row.pid, 256).some((file) => root.pipes.has(file))) add(row, "pipe")
      }
    }
    grow()
    forget(rows, members)
    return members
  }

  const isBetweenPrograms = (row: Row): boolean =>
    table.source === "procfs" && row.parentPid !== 2 && table.uid(row.pid) === uid && table.command(row.pid).startsWith("[")

  /** Drops what can no longer tie a process to the command, so that a long life does not fill the memory. */
  const forget = (rows: ReadonlyArray<Row>, members: ReadonlyMap<number, Member>) => {
    const alive = new Set(rows.map(ProcessInfo.identity))
    const inUse = new Set<number>([root.pid])
    for (const { row } of members.values()) inUse.add(row.group).add(row.session).add(row.pid)
    for (const id of known) if (!alive.has(id)) known.delete(id)
    for (const number of numbers.keys()) if (!inUse.has(number)) numbers.delete(number)
  }

  /** Learns which members are our own: in the namespace they have the first numbers. */
  const learn = (members: Iterable<Member>) => {
    // The first numbers are given once: when the program is known, all of them are.
    if (root.own === 0 || cachedLeader !== undefined) return
    ownLevel ??= table.namespacePids(root.pid).length || undefined
    if (ownLevel === undefined) return
    for (const { row } of members) {
      const pids = table.namespacePids(row.pid)
      if (pids.length !== ownLevel + 1) continue
      const number = pids[ownLevel]!
      if (number === 1) cachedInit = row
      if (number <= root.own) ours.add(ProcessInfo.identity(row))
      if (number === root.own + 1) cachedLeader = row
    }
  }

  const isAlive = (row: { readonly pid: number; readonly started: number }): boolean => {
    const current = table.row(row.pid)
    return current !== undefined && !current.zombie && current.started === row.started
  }

  const living = () => {
    const members = collect()
    learn(members.values())
    return [...members.values()].filter(({ row }) =>
      !ours.has(ProcessInfo.identity(row)) && !(root.own > 0 && row.pid === root.pid)
    )
  }

  const leader = () => {
    if (root.own === 0) return isAlive(root) ? table.row(root.pid) : undefined
    if (cachedLeader === undefined) learn(collect().values())
    return cachedLeader === undefined || !isAlive(cachedLeader) ? undefined : table.row(cachedLeader.pid)
  }

  const describe = (members: ReadonlyArray<Member>) => {
    const group = root.own === 0 ? root.pid : (cachedLeader?.pid ?? -1)
    return members.map(({ foundBy, row }) => ({
      pid: row.pid,
      parentPid: row.parentPid,
      started: row.started,
      command: ProcessInfo.shownCommand(table.command(row.pid), options.redact),
      insideGroup: row.group === group,
      foundBy
    }))
  }

  const suspects = () => {
    if (root.own !== 0 || table.source !== "procfs") return []
    const rows = table.rows()
    const systemd = new Set(rows.filter((row) => row.pid !== 1 && table.command(row.pid).includes("systemd --user")).map((row) => row.pid))
    return rows.filter((row) =>
      !row.zombie
      && row.started >= root.started
      && (row.parentPid === 1 || systemd.has(row.parentPid))
      && !known.has(ProcessInfo.identity(row))
      && row.pid !== process.pid
      && table.uid(row.pid) === uid
      && !OwnerTag.isMarked(table.environment(row.pid))
    ).map((row): Member => ({ row, foundBy: "seen" }))
  }

  return {
    isUncertain: () => uncertain,
    living,
    leader,
    namespaceInit: () => {
      if (cachedInit === undefined && root.own > 0) learn(collect().values())
      return cachedInit !== undefined && isAlive(cachedInit) ? cachedInit : undefined
    },
    describe,
    suspects
  }
}

/** Sends a signal to the process that a row describes, unless another has its number by now. */
export const signalRow = (table: ProcessTable, row: Row, signal: NodeJS.Signals): NodeChild.KillOutcome => {
  const current = table.row(row.pid)
  if (current === undefined || current.zombie || current.started !== row.started) return "gone"
  return NodeChild.kill(row.pid, signal)
}
