/**
 * One warm session for a long time: `turnpike chat` as it ships, on the scripted agent, turn after
 * turn at an even pace.
 *
 * The turns are chosen by a seed. Most are plain; some run a tool, are denied one, leave a process
 * behind, fail, are refused, cut off or interrupted, and in some the agent dies. Every turn is held to the
 * verdict, the words and the stream that belong to it. Meanwhile the memory of both processes is
 * written down, turnpike's after a collection of garbage. At the end nothing may be left running.
 */
import { type AgentRunEvent, type AgentRunResult, StreamRules } from "@turnpike/contract"
import { type ChildProcess, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import * as Machine from "./support/Machine.ts"
import * as Processes from "./support/Processes.ts"
import * as Statistics from "./support/Statistics.ts"

const usage = `Usage: npm run soak -- [--minutes N] [--turns N] [--seed N] [--sample-seconds N] [--out FILE]

Runs one warm session on the scripted agent and looks at it meanwhile.

  --minutes N         how long the turns are spread over; 60 unless given, 0 for as fast as they go
  --turns N           how many turns; 10000 unless given
  --seed N            which turns they are; 1 unless given
  --sample-seconds N  how often memory is looked at; 15 unless given
  --out FILE          where all samples go, as JSON; test/bench/results/soak.json unless given

Exit codes: 0 every turn was right, memory is flat and nothing was left running; 1 otherwise; 2 usage error.
`

/** What a turn has to come to. */
interface Kind {
  readonly name: string
  /** Of a thousand turns. */
  readonly weight: number
  readonly verdict: string
  /** What the answer has to be; undefined where the verdict says all. */
  readonly answer: ((prompt: string) => string) | undefined
  readonly notice?: string
}

const filler = `${Array.from({ length: 40 }, () => "0123456789").join(" ")}.`

const kinds: ReadonlyArray<Kind> = [
  { name: "plain", weight: 700, verdict: "completed", answer: (prompt) => `You said: ${prompt}` },
  { name: "long", weight: 100, verdict: "completed", answer: (prompt) => `A long answer to ${prompt}: ${filler}` },
  { name: "tool", weight: 100, verdict: "completed", answer: (prompt) => `I looked for ${prompt}.` },
  { name: "denied", weight: 20, verdict: "completed", answer: (prompt) => `I could not write for ${prompt}.` },
  { name: "leftover", weight: 20, verdict: "completed", answer: (prompt) => `I left something running for ${prompt}.`, notice: "killed_leftovers" },
  { name: "limit", weight: 25, verdict: "error RATE_LIMIT", answer: undefined, notice: "retry" },
  { name: "refusal", weight: 10, verdict: "refusal", answer: undefined },
  { name: "cut", weight: 10, verdict: "max-tokens", answer: undefined },
  { name: "interrupt", weight: 10, verdict: "aborted user", answer: undefined },
  { name: "crash", weight: 5, verdict: "error HARNESS_FAILED", answer: undefined }
]

/** The same numbers from the same seed, from 0 to 1. */
const random = (seed: number): () => number => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const choose = (value: number): Kind => {
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0)
  let left = value * total
  return kinds.find(({ weight }) => (left -= weight) < 0) ?? kinds[0]!
}

const verdictOf = ({ verdict }: AgentRunResult.AgentRunResult): string =>
  verdict.type === "error" ? `error ${verdict.error.code}` : verdict.type === "aborted" ? `aborted ${verdict.cause}` : verdict.type

interface Sample {
  readonly turn: number
  readonly seconds: number
  /** After a collection, in bytes; what the hook wrote last. */
  readonly heap_used: number
  readonly external: number
  readonly rss_kib: number
  readonly open_files: number
  readonly agent_rss_kib: number
  readonly processes: number
}

const wholeNumber = (name: string, text: string, least: number): number => {
  const value = Number(text)
  if (Number.isInteger(value) && value >= least) return value
  process.stderr.write(`soak: --${name} takes a whole number of at least ${least}, not "${text}"\n\n${usage}`)
  process.exit(2)
}

const parse = () => {
  try {
    const { values } = parseArgs({
      options: {
        help: { type: "boolean", short: "h" },
        minutes: { type: "string", default: "60" },
        turns: { type: "string", default: "10000" },
        seed: { type: "string", default: "1" },
        "sample-seconds": { type: "string", default: "15" },
        out: { type: "string" }
      }
    })
    return values
  } catch (error) {
    process.stderr.write(`soak: ${(error as Error).message}\n\n${usage}`)
    process.exit(2)
  }
}

const given = parse()
if (given.help === true) {
  process.stdout.write(usage)
  process.exit(0)
}
const minutes = wholeNumber("minutes", given.minutes, 0)
const turns = wholeNumber("turns", given.turns, 1)
const seed = wholeNumber("seed", given.seed, 0)
const sampleSeconds = wholeNumber("sample-seconds", given["sample-seconds"], 1)
const bundle = process.env["BENCH_BUNDLE"]
if (bundle === undefined) {
  process.stderr.write("soak: start it with `npm run soak`, which bundles the command first\n")
  process.exit(2)
}
const out = path.resolve(given.out ?? fileURLToPath(new URL("results/soak.json", import.meta.url)))

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))
const home = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-soak-")))
const memoryFile = path.join(home, "memory.jsonl")
const mark = randomUUID()
const started = performance.now()
const machine = Machine.describe()
const commit = Machine.commit()

const chat: ChildProcess = spawn(
  process.execPath,
  ["--require", here("programs/memory-hook.cjs"), path.join(bundle, "bin.js"), "chat", "--harness=scripted", `--scenario=${here("programs/soak.json")}`, "--format=events"],
  {
    cwd: home,
    env: {
      PATH: process.env["PATH"],
      HOME: home,
      LANG: "C.UTF-8",
      TURNPIKE_HOME: path.join(home, "data"),
      BENCH_MEMORY_FILE: memoryFile,
      BENCH_MEMORY_MS: String(sampleSeconds * 1000),
      [Processes.markName]: mark
    },
    stdio: ["pipe", "pipe", "pipe"]
  }
)
const chatPid = chat.pid ?? 0
let stderr = ""
chat.stderr!.setEncoding("utf8").on("data", (text: string) => stderr = (stderr + text).slice(-100_000))
const exited = new Promise<number | null>((resolve) => chat.on("close", (code) => resolve(code)))
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    chat.kill("SIGTERM")
    void exited.then(() => process.exit(signal === "SIGINT" ? 130 : 143))
  })
}

/** The lines of one run, until its result. */
let waiting: { readonly kind: Kind; readonly resolve: (lines: ReadonlyArray<string>) => void } | undefined
let lines: Array<string> = []
let rest = ""
chat.stdout!.setEncoding("utf8").on("data", (text: string) => {
  const parts = (rest + text).split("\n")
  rest = parts.pop() ?? ""
  for (const line of parts) {
    lines.push(line)
    if (waiting?.kind.name === "interrupt" && line.includes(`"type":"text_delta"`) && line.includes("it.")) chat.kill("SIGINT")
    if (!line.includes(`"type":"result"`)) continue
    const whole = lines
    lines = []
    waiting?.resolve(whole)
    waiting = undefined
  }
})

const problems: Array<string> = []
const verdicts: Record<string, number> = {}
const counts: Record<string, number> = {}
const milliseconds: Array<number> = []
const samples: Array<Sample> = []
let restarts = 0

/** Holds one turn to what it has to be. */
const check = (turn: number, kind: Kind, prompt: string, text: ReadonlyArray<string>): void => {
  const wrong = (what: string) => void problems.push(`turn ${turn} (${kind.name}): ${what}`)
  for (const { message, rule } of StreamRules.validate(text.join("\n"), { result: "stream" })) wrong(`${rule}: ${message}`)
  const events = text.map((line): AgentRunEvent.AgentRunEvent => JSON.parse(line))
  const last = events.at(-1)
  if (last?.type !== "result") return wrong("no result")
  const { result } = last
  const verdict = verdictOf(result)
  verdicts[verdict] = (verdicts[verdict] ?? 0) + 1
  counts[kind.name] = (counts[kind.name] ?? 0) + 1
  if (verdict !== kind.verdict) wrong(`${verdict} instead of ${kind.verdict}: ${result.error?.message ?? ""}`)
  if (kind.answer !== undefined && result.result.summary !== kind.answer(prompt)) wrong(`the answer is ${JSON.stringify(result.result.summary.slice(0, 200))}`)
  const notices = events.flatMap((event) => event.type === "notice" ? [event.kind] : [])
  if (kind.notice !== undefined && !(notices as ReadonlyArray<string>).includes(kind.notice)) wrong(`no notice ${kind.notice}, only ${notices.join(", ")}`)
  if (kind.name === "denied" && result.denials.length !== 1) wrong(`${result.denials.length} denials`)
  if (notices.includes("restarted")) restarts++
  if (result.survivors.length > 0) wrong(`survivors: ${JSON.stringify(result.survivors)}`)
}

const look = (turn: number): void => {
  const latest = fs.existsSync(memoryFile) ? fs.readFileSync(memoryFile, "utf8").trimEnd().split("\n").at(-1) ?? "" : ""
  // The hook may not have looked yet.
  if (latest === "") return
  const { external, heap_used } = JSON.parse(latest) as { readonly external: number; readonly heap_used: number }
  const all = Processes.marked(mark)
  const agent = all.find(({ command }) => command.includes("--scenario") && !command.includes("bin.js") && /\/node\b/.test(command.split(" ")[0] ?? ""))
  samples.push({
    turn,
    seconds: Math.round((performance.now() - started) / 1000),
    heap_used,
    external,
    rss_kib: Processes.rssOf(chatPid),
    open_files: Processes.openFiles(chatPid),
    agent_rss_kib: agent === undefined ? 0 : Processes.rssOf(agent.pid),
    processes: all.length
  })
}

const next = random(seed)
const paceMs = minutes * 60_000 / turns
const begun = performance.now()
let lastLook = begun
let ended: number | null | undefined
void exited.then((code) => ended = code)
for (let turn = 1; turn <= turns && problems.length < 50; turn++) {
  const early = begun + (turn - 1) * paceMs - performance.now()
  if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
  const kind = choose(next())
  const prompt = `${kind.name} ${turn}`
  const from = performance.now()
  const told = new Promise<ReadonlyArray<string>>((resolve) => {
    waiting = { kind, resolve }
  })
  chat.stdin!.write(`${JSON.stringify({ type: "prompt", text: prompt })}\n`)
  const text = await Promise.race([told, exited, new Promise<undefined>((resolve) => setTimeout(resolve, 60_000, undefined).unref())])
  if (!Array.isArray(text)) {
    problems.push(`turn ${turn} (${kind.name}): ${ended === undefined ? "no result within 60 s" : `turnpike ended with exit ${ended}`}`)
    break
  }
  milliseconds.push(Math.round((performance.now() - from) * 100) / 100)
  check(turn, kind, prompt, text)
  if (performance.now() - lastLook >= sampleSeconds * 1000) {
    lastLook = performance.now()
    look(turn)
    if (samples.length % 20 === 0) process.stderr.write(`soak: turn ${turn}, ${Math.round((samples.at(-1)?.heap_used ?? 0) / 1e5) / 10} MB in use\n`)
  }
}
const seconds = Math.round((performance.now() - begun) / 1000)

chat.stdin!.end()
const exit = await Promise.race([exited, new Promise<undefined>((resolve) => setTimeout(resolve, 30_000, undefined).unref())])
const expectedExit = Object.keys(verdicts).some((verdict) => verdict !== "completed") ? 3 : 0
if (exit !== expectedExit) problems.push(`turnpike ended with exit ${exit} instead of ${expectedExit}: ${stderr.slice(-2000)}`)
// The watchdog goes a moment after the process that it watched.
const survivors = await Processes.eventually("what is left", () => Processes.marked(mark), (left) => left.length === 0, 10_000).catch(() => Processes.marked(mark))
for (const { command, pid } of survivors) problems.push(`left running: ${pid} ${command}`)
const killed = stderr.split("\n").filter((line) => line.startsWith("turnpike: killed: ")).length
fs.rmSync(home, { recursive: true, force: true })

/** The first tenth warms up; the line is laid through what comes after it. */
const after = samples.filter(({ turn }) => turn > turns / 10)
const growth = {
  heap_bytes_per_1000_turns: Math.round(Statistics.slope(after.map(({ heap_used, turn }) => [turn, heap_used])) * 1000),
  rss_kib_per_1000_turns: Math.round(Statistics.slope(after.map(({ rss_kib, turn }) => [turn, rss_kib])) * 1000),
  open_files_per_1000_turns: Math.round(Statistics.slope(after.map(({ open_files, turn }) => [turn, open_files])) * 1_000_000) / 1000
}
/** What is allowed for records of the session that are kept to its end, such as the list of what was killed: 300 bytes a turn. */
const mostHeapPer1000 = 300_000
const isJudged = after.length >= 10
if (isJudged && growth.heap_bytes_per_1000_turns > mostHeapPer1000) problems.push(`the heap grows by ${growth.heap_bytes_per_1000_turns} bytes in 1000 turns`)

const report = {
  benchmark: "soak",
  ok: problems.length === 0,
  at: new Date().toISOString(),
  commit,
  machine,
  options: { minutes, turns, seed, sample_seconds: sampleSeconds },
  seconds,
  turns_done: milliseconds.length,
  kinds: counts,
  verdicts,
  restarts,
  leftovers_killed: killed,
  survivors,
  memory_judged: isJudged,
  growth,
  turn_ms: { p50: Statistics.quantile(milliseconds, 0.5), p99: Statistics.quantile(milliseconds, 0.99), max: Math.max(...milliseconds) },
  problems,
  samples,
  milliseconds
}
fs.mkdirSync(path.dirname(out), { recursive: true })
fs.writeFileSync(out, `${JSON.stringify(report)}\n`)
const { machine: _, milliseconds: __, samples: ___, ...shown } = report
process.stdout.write(`${JSON.stringify(shown, undefined, 2)}\n`)
process.exit(problems.length === 0 ? 0 : 1)
