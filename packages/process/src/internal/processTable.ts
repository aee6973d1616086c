/**
 * The operating system's list of processes: read, never cached, by one
 * synchronous pass (a few milliseconds for some hundred processes).
 *
 * A process that ends while it is being read is left out. Linux answers from
 * `/proc`; elsewhere `ps` answers, without environments, pipes and namespaces;
 * where neither can be had, single processes are looked for by their number. It
 * throws where the system lets nobody look: what cannot be seen is not gone.
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as SpareDescriptor from "./spareDescriptor.ts"

export interface Row {
  readonly pid: number
  readonly parentPid: number
  readonly group: number
  readonly session: number
  readonly started: number
  /** Dead, and only not yet collected by its parent. */
  readonly zombie: boolean
}

export interface ProcessTable {
  readonly source: "procfs" | "ps" | "none"
  readonly rows: () => ReadonlyArray<Row>
  readonly row: (pid: number) => Row | undefined
  /** The command line with spaces between the arguments; the bracketed name where there is none; "" for a dead one. */
  readonly command: (pid: number) => string
  /** Variables separated by NUL; "" where it may not be read. */
  readonly environment: (pid: number) => string
  /** What the process's file descriptors are connected to, such as `pipe:[123]`; none where it may not be read. */
  readonly files: (pid: number, most: number) => ReadonlyArray<string>
  /** The process's number in each pid namespace that it is in, ours first; [] where unknown. */
  readonly namespacePids: (pid: number) => ReadonlyArray<number>
  /** The owner of the process; -1 where unknown. */
  readonly uid: (pid: number) => number
}

/**
 * Reads whole files into the same memory, one after the other. `/proc` does not tell
 * the length of its files, so that `readFileSync` takes 64 KiB for each of them, and
 * a pass over the table megabytes.
 */
const makeReader = (): (path: string) => string => {
  let buffer = Buffer.allocUnsafeSlow(16 * 1024)
  const whole = (path: string) => {
    const file = fs.openSync(path, "r")
    try {
      let length = 0
      for (let read = -1; read !== 0; length += read) {
        if (length === buffer.length) buffer = Buffer.concat([buffer], length * 2)
        read = fs.readSync(file, buffer, length, buffer.length - length, null)
      }
      return buffer.toString("latin1", 0, length)
    } finally {
      fs.closeSync(file)
    }
  }
  return (path) => {
    try {
      return SpareDescriptor.read(() => whole(path))
    } catch (error) {
      if (SpareDescriptor.isExhausted(error)) throw error
      // Gone, or not ours to read: the callers treat both as "nothing known".
      return ""
    }
  }
}

const readText = makeReader()

/** Reads `/proc/<pid>/stat`. The name in parentheses may hold any character, so fields count from the last one. */
export const parseStat = (text: string): Row | undefined => {
  const open = text.indexOf("(")
  const close = text.lastIndexOf(")")
  if (open === -1 || close === -1) return undefined
  const fields = text.slice(close + 2).split(" ")
  const pid = Number(text.slice(0, open))
  const started = Number(fields[19])
  if (!Number.isInteger(pid) || !Number.isInteger(started)) return undefined
  const state = fields[0]
  return {
    pid,
    parentPid: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    started,
    zombie: state === "Z" || state === "X"
  }
}

const procfs: ProcessTable = {
  source: "procfs",
  rows: () => {
    const rows: Array<Row> = []
    for (const name of SpareDescriptor.read(() => fs.readdirSync("/proc"))) {
      const first = name.charCodeAt(0)
      if (first < 48 || first > 57) continue
      const row = parseStat(readText(`/proc/${name}/stat`))
      if (row !== undefined) rows.push(row)
    }
    return rows
  },
  row: (pid) => parseStat(readText(`/proc/${pid}/stat`)),
  command: (pid) => {
    const line = Buffer.from(readText(`/proc/${pid}/cmdline`), "latin1").toString("utf8").replace(/\0+$/, "").replaceAll("\0", " ")
    if (line !== "") return line
    const name = /\((.*)\)/s.exec(readText(`/proc/${pid}/stat`))
    return name === null ? "" : `[${name[1]}]`
  },
  environment: (pid) => readText(`/proc/${pid}/environ`),
  files: (pid, most) => {
    try {
      const names = SpareDescriptor.read(() => fs.readdirSync(`/proc/${pid}/fd`)).slice(0, most)
      return names.flatMap((name) => {
        try {
          return [fs.readlinkSync(`/proc/${pid}/fd/${name}`)]
        } catch {
          return []
        }
      })
    } catch (error) {
      if (SpareDescriptor.isExhausted(error)) throw error
      return []
    }
  },
  namespacePids: (pid) => {
    const match = /^NSpid:\s*(.*)$/m.exec(readText(`/proc/${pid}/status`))
    return match === null ? [] : match[1]!.trim().split(/\s+/).map(Number)
  },
  uid: (pid) => {
    try {
      return fs.statSync(`/proc/${pid}`).uid
    } catch {
      return -1
    }
  }
}

const psColumns = ["-A", "-o", "pid=,ppid=,pgid=,uid=,stat=,lstart=,command="]

interface PsEntry extends Row {
  readonly uid: number
  readonly command: string
}

/** Reads one line of `ps`: four numbers, the state, five words of the start time, the command. */
export const parsePs = (line: string): PsEntry | undefined => {
  const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/.exec(line)
  if (match === null) return undefined
  const group = Number(match[3])
  return {
    pid: Number(match[1]),
    parentPid: Number(match[2]),
    group,
    // macOS's ps cannot print the session's number.
    session: group,
    started: Math.floor(Date.parse(match[6]!) / 1000),
    zombie: match[5]!.startsWith("Z"),
    uid: Number(match[4]),
    command: match[7]!
  }
}

const psEntries = (): ReadonlyArray<PsEntry> =>
  execFileSync("ps", psColumns, { encoding: "utf8", env: { ...process.env, LC_ALL: "C" }, maxBuffer: 64 * 1024 * 1024 })
    .split("\n").flatMap((line) => parsePs(line) ?? [])

const psEntry = (pid: number): PsEntry | undefined => psEntries().find((entry) => entry.pid === pid)

const ps: ProcessTable = {
  source: "ps",
  rows: psEntries,
  row: psEntry,
  command: (pid) => psEntry(pid)?.command ?? "",
  environment: () => "",
  files: () => [],
  namespacePids: () => [],
  uid: (pid) => psEntry(pid)?.uid ?? -1
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

/** Knows nobody's parent, group or start: enough to end a program, too little to find what it started. */
const none: ProcessTable = {
  source: "none",
  rows: () => [],
  row: (pid) => isAlive(pid) ? { pid, parentPid: 0, group: pid, session: pid, started: 0, zombie: false } : undefined,
  command: () => "",
  environment: () => "",
  files: () => [],
  namespacePids: () => [],
  uid: () => -1
}

/**
 * Answers the table of this machine. A `/proc` that was mounted for another pid
 * namespace counts other numbers than `kill` does, and so does a `ps` that reads
 * it: neither is used.
 */
export const ofThisMachine = (): ProcessTable => {
  if (process.platform === "win32") return none
  if (process.platform !== "linux") {
    try {
      psEntries()
      return ps
    } catch {
      return none
    }
  }
  SpareDescriptor.hold()
  try {
    return fs.readlinkSync("/proc/self") === String(process.pid) ? procfs : none
  } catch {
    return none
  }
}

export const sources = { procfs, ps }
