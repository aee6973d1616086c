/**
 * What it takes to start the command: CPU until `turnpike run` on the scripted agent tells its first
 * event, when its session has been made in the store and opened, against a Node that tells one and
 * has nothing else to do; and `turnpike --version` against a Node that has nothing to do at all.
 */
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Benchmark from "./support/Benchmark.ts"
import * as Program from "./support/Program.ts"

interface Spent {
  readonly ms: number
  readonly cpu_ms: number
}

/** Milliseconds of CPU that the threads of a process have used so far. */
const cpuOf = (pid: number): number =>
  fs.readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + Number(fs.readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]), 0) / 1e6

/** Runs a program to its end; answers what it had spent when its first line came, and all lines. */
const toFirstLine = (args: ReadonlyArray<string>, options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }): Promise<Spent & { readonly lines: ReadonlyArray<string> }> =>
  new Promise((resolve, reject) => {
    const from = performance.now()
    const child = spawn(process.execPath, args, { ...options, stdio: ["ignore", "pipe", "pipe"] })
    let spent: Spent | undefined
    let output = ""
    let errors = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      spent ??= { ms: performance.now() - from, cpu_ms: cpuOf(child.pid ?? 0) }
      output += text
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => errors += text)
    child.on("error", reject)
    child.on("close", (code) => code === 0 && spent !== undefined ? resolve({ ...spent, lines: output.trimEnd().split("\n") }) : reject(new Benchmark.Invalid(`${args.join(" ")} ended with ${code}: ${errors}`)))
  })

/** Milliseconds of CPU of all processes that this one has waited for; in steps of ten. */
const waitedFor = (): number => {
  const fields = fs.readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)?.split(" ") ?? []
  return (Number(fields[13]) + Number(fields[14])) * 10
}

/** What one of many whole runs takes on average, as the kernel's steps are coarse. */
const whole = (args: ReadonlyArray<string>, times: number, check: (output: string) => void): Spent => {
  const cpu = waitedFor()
  const from = performance.now()
  for (let time = 0; time < times; time++) {
    const { status, stderr, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" })
    if (status !== 0) throw new Benchmark.Invalid(`${args.join(" ")} ended with ${status}: ${stderr}`)
    check(stdout)
  }
  return { ms: (performance.now() - from) / times, cpu_ms: (waitedFor() - cpu) / times }
}

export const names = { first: "Node that writes a line", run: "turnpike run, first event", empty: "Node that does nothing", version: "turnpike --version" } as const

type Name = keyof typeof names

export const benchmark: Benchmark.Benchmark = {
  name: "start",
  summary: "CPU until turnpike run tells its first event, and of --version",
  isOfStore: true,
  needs: [],
  run: ({ bundle, quick, say, undisturbed }) =>
    Program.inDirectory(async (directory) => {
      const check = Benchmark.checker()
      const rounds = quick ? 2 : 15
      const times = quick ? 3 : 10
      const bin = path.join(bundle, "bin.js")
      const place = {
        cwd: directory,
        env: { PATH: `${path.dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`, HOME: directory, LANG: "C.UTF-8", TURNPIKE_HOME: path.join(directory, "data") }
      }
      const version = spawnSync(process.execPath, [bin, "--version"], { encoding: "utf8" }).stdout
      const samples: { readonly [name in Name]: Array<Spent> } = { first: [], run: [], empty: [], version: [] }
      check.equal("the version's number", /\d+\.\d+\.\d+/u.test(version), true)
      let runs = 0
      const once = async () => {
        const { lines, ...run } = await toFirstLine([bin, "run", "--harness=scripted", "--format=events", "hello"], place)
        runs++
        const last = JSON.parse(lines.at(-1) ?? "{}")
        check.equal("the first event and how the run ended", [JSON.parse(lines[0] ?? "{}").tool_name, last.type, last.result?.result.success], ["provision", "result", true])
        const { lines: line, ...first } = await toFirstLine(["-e", "console.log(\"first\"); setTimeout(() => {}, 200)"], place)
        check.equal("the line", line, ["first"])
        const empty = whole(["-e", ""], times, () => {})
        const versions = whole([bin, "--version"], times, (output) => check.equal("the version", output, version))
        return { run, first, empty, version: versions }
      }
      say("start: once, for the store to be there and the files to be in memory")
      await once()
      for (let round = 1; round <= rounds; round++) {
        say(`start: round ${round} of ${rounds}`)
        const found = await undisturbed(once)
        for (const name of ["first", "run", "empty", "version"] as const) samples[name].push(found[name])
      }
      const listed = spawnSync(process.execPath, [bin, "sessions", "list", "--json"], { ...place, encoding: "utf8" }).stdout.trimEnd().split("\n")
      check.equal("the sessions of all runs", listed.map((line) => JSON.parse(line).turns), Array.from({ length: runs }, () => 1))
      const ratio = (name: Name, to: Name) =>
        Benchmark.figure(`${names[name]}: ratio of CPU to ${names[to]}`, "×", samples[name].map(({ cpu_ms }, round) => cpu_ms / (samples[to][round]?.cpu_ms ?? Number.NaN)))
      return {
        figures: [
          ...(["first", "run", "empty", "version"] as const).flatMap((name) => [
            Benchmark.figure(`${names[name]}: CPU`, "ms", samples[name].map(({ cpu_ms }) => cpu_ms)),
            Benchmark.figure(`${names[name]}: wall`, "ms", samples[name].map(({ ms }) => ms))
          ]),
          ratio("run", "first"),
          ratio("version", "empty")
        ],
        samples,
        checks: check.count()
      }
    })
}
