/**
 * Fifty runs at once, on the scripted agent: what they cost in memory and CPU, all in one process
 * through the packages, and as fifty `turnpike run` processes.
 *
 * Every agent says a first word and waits, so that all are there when memory is looked at; then all
 * talk at once. What the agents themselves take is told apart: a real one takes more.
 */
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as Benchmark from "./support/Benchmark.ts"
import * as Processes from "./support/Processes.ts"

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))
const scenario = here("programs/many.json")
/** The pieces of a run: its first word and its answer. */
const pieces = 201

interface Place {
  readonly directory: string
  readonly go: string
  readonly mark: string
  readonly env: Readonly<Record<string, string>>
}

const makePlace = (): Place => {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-many-")))
  const go = path.join(directory, "go")
  const mark = randomUUID()
  return {
    directory,
    go,
    mark,
    env: {
      PATH: `${path.dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
      HOME: directory,
      LANG: "C.UTF-8",
      TURNPIKE_HOME: path.join(directory, "data"),
      BENCH_GO: go,
      [Processes.markName]: mark
    }
  }
}

/** Memory of processes, in MiB. */
const memory = (pids: ReadonlyArray<number>) => {
  const all = pids.map(Processes.memoryOf)
  const sum = (of: (one: Processes.Memory) => number) => all.reduce((total, one) => total + of(one), 0) / 1024
  return { rss: sum((one) => one.rss_kib), pss: sum((one) => one.pss_kib) }
}

/** The agents among the processes: Node on the scripted agent's program. What contains them also names it. */
const agentsOf = (mark: string): ReadonlyArray<number> =>
  Processes.marked(mark).filter(({ command }) => /^\S*\bnode \S*agent\.[tj]s /.test(command)).map(({ pid }) => pid)

const gone = (place: Place) => Processes.eventually("processes that are left", () => Processes.marked(place.mark), (left) => left.length === 0)

interface Measured {
  /** MiB of turnpike's own processes, shared pages divided among those that share them, while all runs are live. */
  readonly own_pss: number
  readonly own_rss: number
  /** MiB of the process before the first run; of the packages alone. */
  readonly before_pss: number
  readonly heap_before: number
  readonly heap_live: number
  readonly agents_pss: number
  /** Milliseconds of CPU until all were live, and from then to the end. */
  readonly cpu_start: number
  readonly cpu_talk: number
  /** Seconds until all were live, and until all had ended. */
  readonly live_after: number
  readonly ended_after: number
}

interface Outcome {
  readonly pieces: number
  readonly answer: string
  readonly success: boolean
  readonly survivors: number
}

const inOneProcess = async (runs: number, place: Place): Promise<{ readonly outcomes: ReadonlyArray<Outcome>; readonly measured: Measured }> => {
  const from = performance.now()
  const child = spawn(process.execPath, ["--conditions=turnpike-source", here("programs/many.ts"), String(runs), scenario], { cwd: place.directory, env: place.env, stdio: ["ignore", "pipe", "pipe"] })
  const pid = child.pid ?? 0
  let stderr = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
  const phases = new Map<string, { readonly cpu_ms: number; readonly heap_used: number; readonly outcomes?: ReadonlyArray<Outcome>; readonly at: number; readonly pss: number; readonly rss: number; readonly agents: number }>()
  let rest = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) {
      const told = JSON.parse(line)
      phases.set(told.phase, { ...told, at: (performance.now() - from) / 1000, ...memory([pid]), agents: told.phase === "live" ? memory(agentsOf(place.mark)).pss : 0 })
      if (told.phase === "live") fs.writeFileSync(place.go, "")
    }
  })
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve))
  const [loaded, live, done] = ["loaded", "live", "done"].map((phase) => phases.get(phase))
  if (code !== 0 || loaded === undefined || live === undefined || done?.outcomes === undefined) throw new Benchmark.Invalid(`the process of ${runs} runs ended with exit ${code}: ${stderr.slice(-2000)}`)
  return {
    outcomes: done.outcomes,
    measured: {
      own_pss: live.pss,
      own_rss: live.rss,
      before_pss: loaded.pss,
      heap_before: loaded.heap_used / 2 ** 20,
      heap_live: live.heap_used / 2 ** 20,
      agents_pss: live.agents,
      cpu_start: live.cpu_ms - loaded.cpu_ms,
      cpu_talk: done.cpu_ms - live.cpu_ms,
      live_after: live.at,
      ended_after: done.at
    }
  }
}

const asProcesses = async (runs: number, place: Place, bundle: string): Promise<{ readonly outcomes: ReadonlyArray<Outcome>; readonly measured: Measured }> => {
  const from = performance.now()
  let ready = 0
  let allReady: () => void = () => {}
  const live = new Promise<void>((resolve) => {
    allReady = resolve
  })
  const pids: Array<number> = []
  const ended = Array.from({ length: runs }, (_, index) =>
    new Promise<Outcome>((resolve, reject) => {
      const child = spawn(process.execPath, [path.join(bundle, "bin.js"), "run", "--harness=scripted", `--scenario=${scenario}`, "--format=events", `run ${index}`], { cwd: place.directory, env: place.env, stdio: ["ignore", "pipe", "pipe"] })
      pids.push(child.pid ?? 0)
      let seen = 0
      let rest = ""
      let stderr = ""
      let outcome: Outcome | undefined
      child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        const lines = (rest + text).split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) {
          const event = JSON.parse(line)
          if (event.type === "text_delta") {
            seen++
            if (event.text === "ready" && ++ready === runs) allReady()
          }
          if (event.type === "result") outcome = { pieces: seen, answer: event.result.result.summary, success: event.result.result.success, survivors: event.result.survivors.length }
        }
      })
      child.on("error", reject)
      child.on("close", (code) => outcome === undefined ? reject(new Benchmark.Invalid(`turnpike run ended with exit ${code}: ${stderr}`)) : resolve(outcome))
    }))
  const all = Promise.all(ended)
  await Promise.race([live, all])
  const cpu = new Map<number, number>()
  const look = () => pids.forEach((pid) => cpu.set(pid, Math.max(cpu.get(pid) ?? 0, Processes.cpuOf(pid))))
  const total = () => [...cpu.values()].reduce((sum, one) => sum + one, 0)
  look()
  const started = total()
  const liveAfter = (performance.now() - from) / 1000
  const own = memory(pids)
  const agents = memory(agentsOf(place.mark)).pss
  fs.writeFileSync(place.go, "")
  // A process that has ended tells nothing: what it used last is what was seen last, at most so long before.
  const timer = setInterval(look, 100)
  const outcomes = await all
  clearInterval(timer)
  return {
    outcomes,
    measured: {
      own_pss: own.pss,
      own_rss: own.rss,
      before_pss: 0,
      heap_before: 0,
      heap_live: 0,
      agents_pss: agents,
      cpu_start: started,
      cpu_talk: total() - started,
      live_after: liveAfter,
      ended_after: (performance.now() - from) / 1000
    }
  }
}

export const benchmark: Benchmark.Benchmark = {
  name: "many",
  summary: "memory and CPU of 50 runs at once, in one process and as 50 processes",
  needs: [],
  run: async ({ bundle, quick, say, undisturbed }) => {
    const check = Benchmark.checker()
    const rounds = quick ? 1 : 3
    const runs = quick ? 4 : 50
    const samples: { readonly one: Array<Measured>; readonly each: Array<Measured> } = { one: [], each: [] }
    for (let round = 1; round <= rounds; round++) {
      for (const way of ["one", "each"] as const) {
        say(`many: round ${round} of ${rounds}, ${way === "one" ? "in one process" : `as ${runs} processes`}`)
        samples[way].push(await undisturbed(async () => {
          const place = makePlace()
          try {
            const { measured, outcomes } = way === "one" ? await inOneProcess(runs, place) : await asProcesses(runs, place, bundle)
            check.equal("what the runs came to", outcomes, Array.from({ length: runs }, (_, index) => ({ pieces, answer: `run ${index} is done`, success: true, survivors: 0 })))
            check.equal("what is left running", await gone(place), [])
            return measured
          } finally {
            fs.rmSync(place.directory, { recursive: true, force: true })
          }
        }))
      }
    }
    const events = runs * pieces
    const one = (name: string, unit: string, of: (measured: Measured) => number) => Benchmark.figure(`${runs} runs in one process: ${name}`, unit, samples.one.map(of))
    const each = (name: string, unit: string, of: (measured: Measured) => number) => Benchmark.figure(`${runs} processes of turnpike run: ${name}`, unit, samples.each.map(of))
    return {
      figures: [
        one("memory of the process before", "MiB", (m) => m.before_pss),
        one("memory of the process with all live", "MiB", (m) => m.own_pss),
        one("each run adds, of the process", "MiB", (m) => (m.own_pss - m.before_pss) / runs),
        one("each run adds, of the heap in use", "MiB", (m) => (m.heap_live - m.heap_before) / runs),
        one("CPU to start them", "ms a run", (m) => m.cpu_start / runs),
        one("CPU while they talk and end", "µs an event", (m) => m.cpu_talk * 1000 / events),
        one("all live after", "s", (m) => m.live_after),
        one("the agents' own memory", "MiB each", (m) => m.agents_pss / runs),
        each("memory, shared pages divided", "MiB each", (m) => m.own_pss / runs),
        each("memory, resident", "MiB each", (m) => m.own_rss / runs),
        each("CPU to start them", "ms a run", (m) => m.cpu_start / runs),
        each("CPU while they talk and end", "ms a run", (m) => m.cpu_talk / runs),
        each("all live after", "s", (m) => m.live_after),
        each("the agents' own memory", "MiB each", (m) => m.agents_pss / runs)
      ],
      samples,
      checks: check.count()
    }
  }
}
