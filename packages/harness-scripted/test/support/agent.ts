/** Runs the scripted agent's executable as its owner would. */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import type { Scenario } from "../../src/Scenario.ts"

export const executable = fileURLToPath(new URL("../../src/bin/agent.ts", import.meta.url))

export type Frame = { readonly [key: string]: unknown }

/** One thing that the owner does, in order. */
export type Step =
  | { readonly send: Frame | string }
  /** Waits until a line of standard output has this in it. */
  | { readonly until: string }
  | { readonly signal: NodeJS.Signals }
  /** Waits for a fact of the outside. */
  | { readonly when: () => boolean }
  | { readonly end: true }

export interface Ran {
  readonly stdout: string
  readonly bytes: Buffer
  readonly frames: ReadonlyArray<Frame>
  readonly stderr: string
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

const framesOf = (text: string): ReadonlyArray<Frame> =>
  text.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as Frame]
    } catch {
      return []
    }
  })

/** A directory for what one test leaves behind; `work` is in it. */
export const place = (): { readonly directory: string; readonly remove: () => void } => {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-agent-")))
  return { directory, remove: () => fs.rmSync(directory, { recursive: true, force: true }) }
}

export const open: Step = { send: { type: "open", protocol: 1 } }
export const prompt = (text: string, id = text): Step => ({ send: { type: "prompt", id, text } })
export const ended: Step = { until: "\"type\":\"end\"" }

/** Runs the agent through the steps, then ends its input and waits for its end. */
export const run = (
  directory: string,
  scenario: Scenario | undefined,
  steps: ReadonlyArray<Step>,
  args: ReadonlyArray<string> = [],
  env: NodeJS.ProcessEnv = {}
): Promise<Ran> =>
  new Promise((resolve, reject) => {
    const file = path.join(directory, "scenario.json")
    if (scenario !== undefined) fs.writeFileSync(file, JSON.stringify(scenario))
    const child = spawn(process.execPath, [executable, ...(scenario === undefined ? [] : ["--scenario", file]), ...args], {
      cwd: directory,
      env: { PATH: process.env["PATH"], TURNPIKE_SCRIPTED_HOME: path.join(directory, "home"), ...env },
      stdio: "pipe"
    })
    const out: Array<Buffer> = []
    let stderr = ""
    let seen = 0
    let at = 0
    let waiting: NodeJS.Timeout | undefined
    const proceed = () => {
      clearTimeout(waiting)
      for (;;) {
        const step = steps[at]
        if (step === undefined) return void child.stdin.end()
        if ("until" in step) {
          const text = Buffer.concat(out).toString("utf8")
          const lines = text.slice(seen).split("\n").slice(0, -1)
          const index = lines.findIndex((line) => line.includes(step.until))
          if (index < 0) return
          seen += lines.slice(0, index + 1).reduce((size, line) => size + line.length + 1, 0)
        } else if ("when" in step) {
          if (!step.when()) {
            waiting = setTimeout(proceed, 10)
            return
          }
        } else if ("send" in step) child.stdin.write(`${typeof step.send === "string" ? step.send : JSON.stringify(step.send)}\n`)
        else if ("signal" in step) child.kill(step.signal)
        else child.stdin.end()
        at++
      }
    }
    child.on("error", reject)
    child.stdin.on("error", () => {})
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString("utf8")
    })
    child.stdout.on("data", (chunk: Buffer) => {
      out.push(chunk)
      proceed()
    })
    child.on("close", (code, signal) => {
      clearTimeout(waiting)
      const bytes = Buffer.concat(out)
      const stdout = bytes.toString("utf8")
      resolve({ stdout, bytes, frames: framesOf(stdout), stderr, code, signal })
    })
    proceed()
  })
