/** Runs the benchmarks that are asked for, one after the other, and writes all their samples down. */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import * as Decode from "./Decode.ts"
import * as Delay from "./Delay.ts"
import * as Many from "./Many.ts"
import * as Overhead from "./Overhead.ts"
import * as StoreAppend from "./StoreAppend.ts"
import * as StoreLag from "./StoreLag.ts"
import * as StoreRead from "./StoreRead.ts"
import * as StoreSessions from "./StoreSessions.ts"
import * as StoreStart from "./StoreStart.ts"
import * as Surface from "./Surface.ts"
import * as Warm from "./Warm.ts"
import * as Benchmark from "./support/Benchmark.ts"
import * as Machine from "./support/Machine.ts"

const benchmarks: ReadonlyArray<Benchmark.Benchmark> = [
  Delay.benchmark,
  Decode.benchmark,
  Overhead.benchmark,
  Warm.benchmark,
  Many.benchmark,
  StoreAppend.benchmark,
  StoreRead.benchmark,
  StoreSessions.benchmark,
  Surface.benchmark,
  StoreLag.benchmark,
  StoreStart.benchmark
]

/** The name of all that are about the store of sessions. */
const storeName = "store"

const usage = `Usage: npm run bench -- [--only NAME]… [--quick] [--wait-quiet SECONDS] [--out FILE]

Measures turnpike on this machine, and beside it what one would take instead. Nothing leaves the
machine: the model is a scripted one on 127.0.0.1. Each benchmark first holds its output to what is
right, and fails if it is not, however fast.

  --only NAME           one benchmark, or those of the store of sessions: \`${storeName}\`; may be repeated
  --quick               few and short rounds: to see that it works, not to quote a figure
  --wait-quiet SECONDS  wait, at most so long for each benchmark, until nothing else is at work, and do
                        rounds again in which others were
  --out FILE            where all samples go, as JSON; test/bench/results/latest.json unless given. What
                        is there of other benchmarks stays
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
const chosen = only.flatMap((name) =>
  name === storeName
    ? benchmarks.filter(({ isOfStore }) => isOfStore)
    : [benchmarks.find((one) => one.name === name) ?? refuse(`there is no benchmark "${name}"; there are ${benchmarks.map((one) => one.name).join(", ")}; and ${storeName}, for several of them`)]
)
if (!/^\d+$/.test(given["wait-quiet"])) refuse(`--wait-quiet takes seconds, not "${given["wait-quiet"]}"`)
if (given.needs === true) {
  process.stdout.write(`${[...new Set(chosen.flatMap(({ needs }) => needs))].join("\n")}\n`)
  process.exit(0)
}
const bundle = process.env["BENCH_BUNDLE"] ?? refuse("start it with `npm run bench`, which bundles the command first")
const out = path.resolve(given.out ?? fileURLToPath(new URL("results/latest.json", import.meta.url)))
const say = (text: string) => void process.stderr.write(`bench: ${text}\n`)

const machine = Machine.describe()
/** What an earlier call has written there; a file that holds something else is not overwritten. */
const earlier = (): Record<string, unknown> => {
  if (!fs.existsSync(out)) return {}
  try {
    const { reports } = JSON.parse(fs.readFileSync(out, "utf8"))
    if (typeof reports === "object" && reports !== null) return reports
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  return refuse(`--out names ${out}, which holds something else than results; name another file`)
}
const reports = earlier()
const commit = Machine.commit()
let hasFailed = false
process.stdout.write(`${machine.cores} cores of ${machine.cpu}, ${machine.memory_gib} GiB, ${machine.kernel}, Node ${machine.node}${given.quick ? "; quick: not to be quoted" : ""}\n`)
/**
 * Rounds are done again while others have more than this part of the machine. Some of it is the round's
 * own: what the kernel does for it, and what was killed and nobody waited for, is not counted as its.
 */
const mostDisturbance = 0.2

for (const benchmark of chosen) {
  let leftMs = Number(given["wait-quiet"]) * 1000
  const wait = async () => {
    const since = performance.now()
    const busy = leftMs > 0 ? await Machine.quiet(leftMs, say) : await Machine.busyPart(1000)
    leftMs -= performance.now() - since
    return busy
  }
  const disturbances: Array<number> = []
  let repeated = 0
  const undisturbed = async <A>(round: () => Promise<A>): Promise<A> => {
    for (;;) {
      const since = performance.now()
      const others = Machine.watch()
      const outcome = await round()
      const part = others()
      if (part <= mostDisturbance || leftMs <= 0) {
        disturbances.push(Math.round(part * 1000) / 1000)
        return outcome
      }
      repeated++
      say(`others had ${Math.round(part * 100)} % of the machine; once more`)
      leftMs -= performance.now() - since
      await wait()
    }
  }
  const busy = await wait()
  const from = performance.now()
  say(`${benchmark.name} …`)
  try {
    const report = await benchmark.run({ quick: given.quick, bundle, say, undisturbed })
    const seconds = Math.round((performance.now() - from) / 100) / 10
    const others = { before: busy, most: Math.max(0, ...disturbances), mean: disturbances.reduce((sum, one) => sum + one, 0) / Math.max(1, disturbances.length), repeated }
    reports[benchmark.name] = { ok: true, at: new Date().toISOString(), commit, quick: given.quick, others, seconds, ...report }
    process.stdout.write(
      `\n## ${benchmark.name}: ${benchmark.summary}\n\n${Benchmark.toMarkdown(report.figures)}\n\n${report.checks} outputs were held to what is right; ${seconds} s; others had ${Math.round(others.mean * 100)} % of the machine on average and ${Math.round(others.most * 100)} % at most; ${repeated} rounds were done again.\n`
    )
    for (const absent of report.absent ?? []) process.stdout.write(`Not measured: ${absent}\n`)
  } catch (error) {
    hasFailed = true
    const why = error instanceof Benchmark.Invalid ? error.message : (error as Error).stack ?? String(error)
    reports[benchmark.name] = { ok: false, why }
    process.stdout.write(`\n## ${benchmark.name}: no figures\n\n${why}\n`)
  }
  fs.mkdirSync(path.dirname(out), { recursive: true })
  fs.writeFileSync(out, `${JSON.stringify({ machine, reports })}\n`)
}
say(`all samples are in ${out}`)
process.exit(hasFailed ? 1 : 0)
