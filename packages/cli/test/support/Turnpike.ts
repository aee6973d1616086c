/** Runs the command as a process of its own, from the bundle that was made for the tests. */
import { type ChildProcessByStdio, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Readable, Writable } from "node:stream"
import { inject } from "vitest"
import type {} from "./bundle.ts"

const bin = path.join(inject("turnpikeBundle"), "bin.js")

export interface Options {
  /** The home, with the data directory in it. */
  readonly home: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly stdout: () => string
  readonly stderr: () => string
  /** Completes when the two outputs hold the text so often; fails after 20 s. */
  readonly until: (text: string, count?: number) => Promise<void>
  readonly ended: Promise<Ended>
}

const environment = ({ env, home }: Options): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: home,
  TURNPIKE_HOME: path.join(home, "data"),
  // It is started by the hundred: what was compiled once starts a third faster.
  NODE_COMPILE_CACHE: path.join(path.dirname(bin), "compile-cache"),
  ...env
})

const patienceMs = 20_000

/** Every start looks for what dead owners left behind, and tests that kill owners run beside this one. */
const withoutReaped = (text: string): string => text.replaceAll(/^(\r\u001b\[2K)?turnpike: (killed \d+|\d+) left over from a run whose owner died.*\n/gm, "")

const follow = (child: Running["child"]): Running => {
  const out: Array<Buffer> = []
  const err: Array<Buffer> = []
  const text = (chunks: ReadonlyArray<Buffer>) => withoutReaped(Buffer.concat(chunks).toString("utf8").replaceAll("\r\n", "\n"))
  const waiting = new Set<() => void>()
  const collect = (chunks: Array<Buffer>) => (chunk: Buffer) => {
    chunks.push(chunk)
    for (const look of waiting) look()
  }
  child.stdout.on("data", collect(out))
  child.stderr.on("data", collect(err))
  child.stdin.on("error", () => {
    // A command that does not read its input is no fault of the test's.
  })
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code, signal) => resolve({ code, signal, stdout: text(out), stderr: text(err) }))
  })
  return {
    child,
    stdout: () => text(out),
    stderr: () => text(err),
    until: (wanted, count = 1) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`${JSON.stringify(wanted)} did not come; so far: ${text(out)}\n${text(err)}`))
        }, patienceMs)
        const look = () => {
          const found = text(out).split(wanted).length + text(err).split(wanted).length - 2
          if (found < count) return
          waiting.delete(look)
          clearTimeout(timer)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    ended
  }
}

export const start = (args: ReadonlyArray<string>, options: Options): Running =>
  follow(spawn(process.execPath, [bin, ...args], {
    cwd: options.cwd ?? options.home,
    env: environment(options),
    stdio: ["pipe", "pipe", "pipe"]
  }))

/** The bytes that a process has written so far, to whatever it writes. */
const writtenBy = (pid: number): number => Number(/^wchar: (\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/io`, "utf8"))?.[1])

/** Whether the machine tells how much a process has written. */
export const canSeeWrites = fs.existsSync("/proc/self/io")

/** Stops reading standard output, and completes when the command has stopped writing: half a second without a byte. */
export const holdBack = async ({ child }: Running): Promise<void> => {
  child.stdout.pause()
  const deadline = Date.now() + patienceMs
  const { pid } = child
  if (pid === undefined) throw new Error("the command did not start")
  let written = -1
  for (let still = 0; still < 5; still++) {
    if (Date.now() > deadline) throw new Error(`the command goes on writing although nobody reads: ${written} bytes so far`)
    const now = writtenBy(pid)
    if (now !== written) still = 0
    written = now
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export interface ShellOptions {
  readonly input?: string | Uint8Array
  /** What a shell does before it runs the command. */
  readonly before?: string
  /** Where a shell sends the command's outputs. */
  readonly redirect?: string
}

const shellLine = (args: ReadonlyArray<string>): string =>
  [process.execPath, bin, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ")

/** Runs the command to its end. Standard input is empty unless given. */
export const run = (args: ReadonlyArray<string>, options: Options & ShellOptions): Promise<Ended> => {
  const { before, redirect } = options
  const running = before === undefined && redirect === undefined
    ? start(args, options)
    : follow(spawn("sh", ["-c", `${before ?? ":"}; exec ${shellLine(args)} ${redirect ?? ""}`], {
      cwd: options.cwd ?? options.home,
      env: environment(options),
      stdio: ["pipe", "pipe", "pipe"]
    }))
  running.child.stdin.end(options.input ?? "")
  return running.ended
}

/** What was refused: how it ended, and the failure's code, sentence and remedy; all of standard error as the sentence where there is none. */
export const refusal = ({ code, stderr, stdout }: Ended) => {
  const [, message = stderr, name, remedy] = /^turnpike: ([^]*)\n {2}code: (.*)\n {2}what to do: (.*)\n$/.exec(stderr) ?? []
  return { exit: code, stdout, code: name, message, remedy }
}

/** Whether there is a program that lends a terminal. */
export const hasTerminal = fs.existsSync("/usr/bin/script")

/** As {@link start}, on a terminal of its own: what is written to either output comes on standard output. */
export const startOnTerminal = (args: ReadonlyArray<string>, options: Options): Running =>
  follow(spawn("script", ["-qec", `stty cols 100; exec ${shellLine(args)}`, "/dev/null"], {
    cwd: options.cwd ?? options.home,
    env: { ...environment(options), TERM: "xterm", NO_COLOR: "1", SHELL: "/bin/sh" },
    stdio: ["pipe", "pipe", "pipe"]
  }))
