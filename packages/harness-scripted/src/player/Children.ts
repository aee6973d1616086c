/**
 * Child processes that a scenario starts, in the ways in which they get away
 * from the process that started them.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import type { ActionOf } from "../ScenarioLanguage.ts"

const quiet = ["ignore", "ignore", "ignore"] as const
const loud = ["ignore", "inherit", "inherit"] as const

/** Writes a file so that whoever waits for it never reads half of it. */
export const writeFileWhole = (path: string, text: string): void => {
  const temporary = `${path}.${process.pid}.tmp`
  fs.writeFileSync(temporary, text)
  fs.renameSync(temporary, path)
}

/**
 * Starts a child. Resolves once it runs, or once it has ended where the action
 * says to wait. Rejects when the program cannot be started.
 */
export const start = (action: ActionOf<"spawn">): Promise<void> =>
  new Promise((resolve, reject) => {
    const trap = action.ignores === undefined || action.ignores.length === 0
      ? ""
      : `trap '' ${action.ignores.map((name) => name.replace(/^SIG/, "")).join(" ")}; `
    const stdio = action.holds_stdout === true ? [...loud] : [...quiet]
    const isDaemon = action.as === "daemon"
    // A daemon is started by a shell that leads a session of its own and is gone at once.
    const shell = isDaemon
      ? `${trap}"$@" & ${action.pid_file === undefined ? "" : `echo $! > "$PID_FILE.tmp" && mv "$PID_FILE.tmp" "$PID_FILE"`}`
      : `${trap}exec "$@"`
    const [program, ...rest] = trap === "" && !isDaemon
      ? action.argv
      : ["/bin/sh", "-c", shell, "sh", ...action.argv]
    const child = spawn(program ?? "", rest, {
      stdio,
      detached: action.as !== "child",
      env: { ...process.env, ...(action.pid_file === undefined ? {} : { PID_FILE: action.pid_file }) }
    })
    child.once("error", reject)
    child.once("spawn", () => {
      if (!isDaemon && action.pid_file !== undefined) writeFileWhole(action.pid_file, `${child.pid}\n`)
      if (action.wait !== true) {
        child.unref()
        if (!isDaemon) resolve()
      }
    })
    if (action.wait === true || isDaemon) child.once("exit", () => resolve())
  })
