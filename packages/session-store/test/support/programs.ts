/** Starts the programs of the tests, and reads what they answer. */
import { type ChildProcess, spawn } from "node:child_process"
import * as readline from "node:readline"

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** What it wrote to its standard output, line by line. A line that it could not end is left out. */
  readonly lines: ReadonlyArray<string>
  readonly errors: string
}

/** How a program is started: by Node.js, or by another program in front of it. */
export interface Start {
  readonly bundle: string
  readonly name: string
  readonly args: unknown
  /** What runs it: this Node.js, unless another runtime is named with its arguments. */
  readonly runtime?: ReadonlyArray<string>
  /** A program with its arguments that gets the command line behind them. */
  readonly before?: ReadonlyArray<string>
  /** A limit, after which it is killed: a minute, in milliseconds. */
  readonly limitMillis?: number
}

const begin = ({ args, before = [], bundle, name, runtime = [process.execPath] }: Start): ChildProcess => {
  const [program = "", ...rest] = [...before, ...runtime, bundle, name, JSON.stringify(args)]
  // A group of its own, so that what stands in front of it goes with it.
  return spawn(program, rest, { stdio: ["pipe", "pipe", "pipe"], detached: true })
}

/** Kills a program and what it was started by, or starts. */
export const killGroup = (child: ChildProcess) => {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL")
}

/** Runs a program to its end; `onLine` may end it before. */
export const run = (start: Start, onLine: (line: string, child: ChildProcess) => void = () => {}): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = begin(start)
    const timer = setTimeout(() => killGroup(child), start.limitMillis ?? 60_000)
    let output = ""
    let errors = ""
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      const from = output.lastIndexOf("\n") + 1
      output += chunk
      for (const line of output.slice(from).split("\n").slice(0, -1)) onLine(line, child)
    })
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      errors = (errors + chunk).slice(-20_000)
    })
    child.on("error", reject)
    child.on("close", (code, signal) => {
      clearTimeout(timer)
      resolve({ code, signal, lines: output.split("\n").slice(0, -1), errors })
    })
  })

/** A program that is asked and answers, a line each. */
export interface Conversation {
  readonly pid: number
  readonly ask: (line: string) => Promise<string>
  readonly answer: () => Promise<string>
  /** Ends it for good, and waits for it. */
  readonly end: (signal?: NodeJS.Signals) => Promise<void>
}

export const converse = (start: Start): Conversation => {
  const child = begin(start)
  let errors = ""
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    errors += chunk
  })
  const lines = readline.createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()))
  const answer = async () => {
    const { done, value } = await lines.next()
    if (done === true) throw new Error(`the program ended: ${errors}`)
    return value as string
  }
  return {
    pid: child.pid ?? 0,
    answer,
    ask: (line) => {
      child.stdin?.write(`${line}\n`)
      return answer()
    },
    end: (signal) => {
      if (signal === undefined) child.stdin?.end()
      else child.kill(signal)
      return closed
    }
  }
}
