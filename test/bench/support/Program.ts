/** The programs of the store's benchmarks, each in a process of its own: given arguments in JSON, they answer one line of it. */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as Benchmark from "./Benchmark.ts"

/** The answer of a program, which says in its types what it is. */
export const run = <A>(name: string, args: unknown): Promise<A> =>
  new Promise((resolve, reject) => {
    const program = fileURLToPath(new URL(`../programs/${name}.ts`, import.meta.url))
    const child = spawn(process.execPath, ["--conditions=turnpike-source", "--expose-gc", program, JSON.stringify(args)], { stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    let errors = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => output += text)
    child.stderr.setEncoding("utf8").on("data", (text: string) => errors = (errors + text).slice(-4000))
    child.on("error", reject)
    child.on("close", (code, signal) => {
      if (code !== 0) return reject(new Benchmark.Invalid(`${name} ended with ${signal ?? code}: ${errors}`))
      resolve(JSON.parse(output))
    })
  })

/** Does something in a directory on the disk that temporary files are on; it goes afterwards. */
export const inDirectory = async <A>(work: (directory: string) => Promise<A>): Promise<A> => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-bench-store-"))
  try {
    return await work(directory)
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}
