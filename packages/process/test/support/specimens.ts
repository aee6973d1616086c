/**
 * The programs that the process suite supervises, and the count of those alive.
 *
 * Each scenario has a directory of its own, and every process that it starts has
 * that directory's path in its command line or its environment: so the count is
 * exact, whatever else runs on the machine. `tail -f <directory>/<name>` is a
 * process that stays until it is killed and whose command line names it. It has
 * its name from the moment in which it is tail: while it is a shell, setsid or env
 * that is yet to become it, it is still in the group that it is going to leave.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

export const variable = "SPECIMEN_DIRECTORY"

/** A directory that every user may write to, so that programs of other users can be started in it. */
export const makeDirectory = (name: string, below = os.tmpdir()): string => {
  const directory = fs.mkdtempSync(path.join(below, `specimen-${name}-`))
  fs.chmodSync(directory, 0o777)
  return directory
}

export interface Specimen {
  readonly pid: number
  readonly command: string
}

const read = (file: string): string => {
  try {
    return fs.readFileSync(file, "latin1")
  } catch {
    return ""
  }
}

/** The living processes that belong to a specimen directory. This process is not among them. */
export const alive = (directory: string): ReadonlyArray<Specimen> =>
  fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid).flatMap((name) => {
    const stat = read(`/proc/${name}/stat`)
    const state = stat.slice(stat.lastIndexOf(")") + 2)[0]
    if (state === undefined || state === "Z" || state === "X") return []
    const command = read(`/proc/${name}/cmdline`)
    return command.includes(directory) || read(`/proc/${name}/environ`).includes(`${variable}=${directory}`)
      ? [{ pid: Number(name), command: command.replaceAll("\0", " ").trim() }]
      : []
  })

/** Kills what is left of a test. Others may be faster: a watchdog, say. */
export const end = (processes: ReadonlyArray<Specimen>): void => {
  for (const { pid } of processes) {
    try {
      process.kill(pid, "SIGKILL")
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error
    }
  }
}

/** The names of the `tail -f` processes in a list of commands, sorted; what is going to be one is not among them. */
export const names = (directory: string, processes: ReadonlyArray<{ readonly command: string }>): ReadonlyArray<string> =>
  processes.flatMap(({ command }) => {
    const match = new RegExp(`^tail -f ${directory}/([a-z-]+)$`).exec(command)
    return match === null ? [] : [match[1]!]
  }).sort()

/**
 * An agent with tools that do all there is to get away: in its group, in sessions
 * of their own, double-forked, and with an empty environment.
 */
export const escapes = `
tail -f "$SPECIMEN_DIRECTORY/plain" &
setsid tail -f "$SPECIMEN_DIRECTORY/setsid" &
(setsid tail -f "$SPECIMEN_DIRECTORY/daemon" </dev/null >/dev/null 2>&1 &)
env -i setsid tail -f "$SPECIMEN_DIRECTORY/bare" &
`

/** What `escapes` leaves to be killed. */
export const escaped = ["bare", "daemon", "plain", "setsid"]

/** Files that `tail -f` can open. */
export const touch = (directory: string, files: ReadonlyArray<string>): void => {
  for (const file of files) fs.writeFileSync(path.join(directory, file), "", { mode: 0o666 })
}
