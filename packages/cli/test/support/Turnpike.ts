/** Runs the command as a process of its own, from the sources. */
import { type ChildProcessByStdio, spawn } from "node:child_process"
import * as os from "node:os"
import * as path from "node:path"
import type { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"

const bin = fileURLToPath(new URL("../../src/bin.ts", import.meta.url))

/** The words that run a file of the workspace's sources. */
export const nodeArguments = (file: string): ReadonlyArray<string> => ["--conditions=turnpike-source", file]

/** Compiled once for all tests; nothing else depends on it. */
const compileCache = path.join(os.tmpdir(), "turnpike-test-compile-cache")

export interface Options {
  /** The data directory and the home. */
  readonly home: string
  readonly input?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export const environment = ({ env, home }: Options): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: home,
  TURNPIKE_HOME: path.join(home, "data"),
  NODE_COMPILE_CACHE: compileCache,
  ...env
})

export interface Running {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly stdout: () => string
  readonly stderr: () => string
  /** Completes when standard output or standard error holds the text; fails after 20 s. */
  readonly until: (text: string, count?: number) => Promise<void>
  readonly ended: Promise<Ended>
}

const patienceMs = 20_000

export const start = (args: ReadonlyArray<string>, options: Options): Running => {
  const child = spawn(process.execPath, [...nodeArguments(bin), ...args], {
    cwd: options.cwd ?? options.home,
    env: environment(options),
    stdio: ["pipe", "pipe", "pipe"]
  })
  const out: Array<Buffer> = []
  const err: Array<Buffer> = []
  const text = (chunks: ReadonlyArray<Buffer>) => Buffer.concat(chunks).toString("utf8")
  let wake = () => {}
  child.stdout.on("data", (chunk: Buffer) => {
    out.push(chunk)
    wake()
  })
  child.stderr.on("data", (chunk: Buffer) => {
    err.push(chunk)
    wake()
  })
  child.stdin.on("error", () => {
    // A command that does not read its input is no fault of the test's.
  })
  if (options.input !== undefined) child.stdin.end(options.input)
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code, signal) => {
      resolve({ code, signal, stdout: text(out), stderr: text(err) })
      wake()
    })
  })
  const until = (wanted: string, count = 1) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${JSON.stringify(wanted)} did not come; so far: ${text(out)}\n${text(err)}`)), patienceMs)
      const before = wake
      wake = () => {
        before()
        if (text(out).split(wanted).length + text(err).split(wanted).length - 2 < count) return
        clearTimeout(timer)
        resolve()
      }
      wake()
    })
  return { child, stdout: () => text(out), stderr: () => text(err), until, ended }
}

/** Runs the command to its end. Standard input is empty unless given. */
export const run = (args: ReadonlyArray<string>, options: Options): Promise<Ended> =>
  start(args, { input: "", ...options }).ended

/** As {@link start}, on a terminal of its own: what it writes to either stream comes on standard output. */
export const startOnTerminal = (args: ReadonlyArray<string>, options: Options): Running => {
  const quoted = [process.execPath, ...nodeArguments(bin), ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ")
  const child = spawn("script", ["-qec", `stty cols 100; exec ${quoted}`, "/dev/null"], {
    cwd: options.cwd ?? options.home,
    env: { ...environment(options), TERM: "xterm", NO_COLOR: "1", SHELL: "/bin/sh" },
    stdio: ["pipe", "pipe", "pipe"]
  })
  return attach(child)
}

const attach = (child: ChildProcessByStdio<Writable, Readable, Readable>): Running => {
  const out: Array<Buffer> = []
  let wake = () => {}
  const text = () => Buffer.concat(out).toString("utf8").replaceAll("\r\n", "\n")
  child.stdout.on("data", (chunk: Buffer) => {
    out.push(chunk)
    wake()
  })
  child.stdin.on("error", () => {})
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code, signal) => resolve({ code, signal, stdout: text(), stderr: "" }))
  })
  const until = (wanted: string, count = 1) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${JSON.stringify(wanted)} did not come; so far: ${text()}`)), patienceMs)
      const before = wake
      wake = () => {
        before()
        if (text().split(wanted).length - 1 < count) return
        clearTimeout(timer)
        resolve()
      }
      wake()
    })
  return { child, stdout: text, stderr: () => "", until, ended }
}
