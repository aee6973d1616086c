/** Runs the benchmarks that are asked for, one after the other, and writes all their samples down. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import * as Decode from "./Decode.ts"
import * as Delay from "./Delay.ts"
import * as Many from "./Many.ts"
import * as Overhead from "./Overhead.ts"
import * as Warm from "./Warm.ts"
import * as Benchmark from "./support/Benchmark.ts"
import * as Machine from "./support/Machine.ts"

const benchmarks: ReadonlyArray<Benchmark.Benchmark> = [Delay.benchmark, Decode.benchmark, Overhead.benchmark, Warm.benchmark, Many.benchmark]

const usage = `Usage: npm run bench -- [--only NAME]… [--quick] [--wait-quiet SECONDS] [--out FILE]

Measures turnpike on this machine, and beside it what one would take instead. Nothing leaves the
machine: the model is a scripted one on 127.0.0.1. Each benchmark first holds its output to what is
right, and fails if it is not, however fast.

  --only NAME           one benchmark; may be repeated
  --quick               few and short rounds: to see that it works, not to quote a figure
  --wait-quiet SECONDS  wait before each benchmark, at most so long, until nothing else is at work
  --out FILE            where all samples go, as JSON; test/bench/results/latest.json unless given
  --needs               print what the chosen benchmarks need installed, and do nothing

Benchmarks:
${benchmarks.map(({ name, summary }) => `  ${name.padEnd(11)} ${summary}`).join("\n")}

Standard output is a table in Markdown; progress goes to standard error.
Exit codes: 0 all were measured, 1 an output was not right or a benchmark failed, 2 usage error.
Whether a goal was reached does not change the exit code: a busy machine must not fail a build.
`

const refuse = (why: string): never => {
  process.stderr.write(`bench: ${why}\n\n${usage}`)
  process.exit(2)
}

const parse = () => {
  try {
    return parseArgs({
      options: {
        help: { type: "boolean", short: "h" },
        needs: { type: "boolean" },
        quick: { type: "boolean", default: false },
        only: { type: "string", multiple: true },
        "wait-quiet": { type: "string", default: "0" },
        out: { type: "string" }
      }
    }).values
  } catch (error) {
    return refuse((error as Error).message)
  }
}

const given = parse()
if (given.help === true) {
  process.stdout.write(usage)
  process.exit(0)
}
const only = given.only ?? benchmarks.map(({ name }) => name)
const chosen = only.map((name) => benchmarks.find((one) => one.name === name) ?? refuse(`there is no benchmark "${name}"; there are ${benchmarks.map((one) => one.name).join(", ")}`))
if (!/^\d+$/.test(given["wait-quiet"])) refuse(`--wait-quiet takes seconds, not "${given["wait-quiet"]}"`)
if (given.needs === true) {
  process.stdout.write(`${[...new Set(chosen.flatMap(({ needs }) => needs))].join("\n")}\n`)
  process.exit(0)
}
const bundle = process.env["BENCH_BUNDLE"] ?? refuse("start it with `npm run bench`, which bundles the command first")
const out = path.resolve(given.out ?? fileURLToPath(new URL("results/latest.json", import.meta.url)))
const say = (text: string) => void process.stderr.write(`bench: ${text}\n`)

/** What was measured: the commit, and whether the sources differ from it. */
const commit = (): string => {
  const git = (...args: ReadonlyArray<string>) =>
    spawnSync("git", ["-c", "safe.directory=*", ...args], { cwd: fileURLToPath(new URL(".", import.meta.url)), encoding: "utf8" }).stdout?.trim() ?? ""
  const changed = git("status", "--porcelain", "--", "../../packages") !== ""
  return `${git("rev-parse", "--short", "HEAD") || "unknown"}${changed ? " with changes" : ""}`
}

const machine = Machine.describe()
const reports: Record<string, unknown> = {}
let hasFailed = false
process.stdout.write(`${machine.cores} cores of ${machine.cpu}, ${machine.memory_gib} GiB, ${machine.kernel}, Node ${machine.node}${given.quick ? "; quick: not to be quoted" : ""}\n`)
for (const benchmark of chosen) {
  const waitMs = Number(given["wait-quiet"]) * 1000
  const busy = waitMs === 0 ? await Machine.busyPart(1000) : await Machine.quiet(waitMs, say)
  const from = performance.now()
  say(`${benchmark.name} …`)
  try {
    const report = await benchmark.run({ quick: given.quick, bundle, say })
    const seconds = Math.round((performance.now() - from) / 100) / 10
    reports[benchmark.name] = { ok: true, busy_before: busy, seconds, ...report }
    process.stdout.write(
      `\n## ${benchmark.name}: ${benchmark.summary}\n\n${Benchmark.toMarkdown(report.figures)}\n\n${report.checks} outputs were held to what is right; ${seconds} s; ${Math.round(busy * 100)} % of the machine was at work before.\n`
    )
    for (const absent of report.absent ?? []) process.stdout.write(`Not measured: ${absent}\n`)
  } catch (error) {
    hasFailed = true
    const why = error instanceof Benchmark.Invalid ? error.message : (error as Error).stack ?? String(error)
    reports[benchmark.name] = { ok: false, why }
    process.stdout.write(`\n## ${benchmark.name}: no figures\n\n${why}\n`)
  }
  fs.mkdirSync(path.dirname(out), { recursive: true })
  fs.writeFileSync(out, `${JSON.stringify({ at: new Date().toISOString(), commit: commit(), quick: given.quick, machine, reports })}\n`)
}
say(`all samples are in ${out}`)
process.exit(hasFailed ? 1 : 0)
