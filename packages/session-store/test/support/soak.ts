/**
 * The stores for longer than the slow suite has time for: writers that are killed,
 * every call that a disk can refuse, more flipped bits, and how long the event loop is
 * held up. Writes what was seen, with the seeds that repeat it.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { bundle } from "./bundle.ts"
import { temporary } from "./directory.ts"
import * as DiskLife from "./diskLife.ts"
import { flips } from "./flips.ts"
import * as Damage from "./jsonlDamage.ts"
import * as KillLoop from "./killLoop.ts"
import * as Postgres from "./postgres.ts"
import * as Programs from "./programs.ts"
import type { Lag } from "./programs/lag.ts"
import type { StoreName, Where } from "./programs/stores.ts"
import { random } from "./programs/writer.ts"
import * as Refusals from "./refusals.ts"

const usage = `Usage: npm run soak:store -- [--rounds N] [--flips N] [--seed N] [--out FILE]

Kills writers, refuses calls of the system, flips bits, and looks each time whether the store keeps its promises.

  --rounds N   how often a writer is killed on each store; 300 unless given
  --flips N    how many bits are flipped, one at a time, in SQLite's file and in each file of JSON lines; 20000 unless given
  --seed N     where the random choices begin; 1 unless given
  --out FILE   where what was seen goes, as JSON; packages/session-store/test/results/soak.json unless given

Exit codes: 0 every promise was kept; 1 otherwise; 2 usage error.
`

const optionsOf = () => {
  try {
    const { values } = parseArgs({
      options: { rounds: { type: "string" }, flips: { type: "string" }, seed: { type: "string" }, out: { type: "string" }, help: { type: "boolean" } }
    })
    if (values.help === true) {
      console.log(usage)
      process.exit(0)
    }
    const numberOf = (name: "rounds" | "flips" | "seed", otherwise: number) => {
      const text = values[name] ?? `${otherwise}`
      if (!/^\d+$/u.test(text)) throw new Error(`--${name} takes a whole number, not ${JSON.stringify(text)}`)
      return Number(text)
    }
    return {
      rounds: numberOf("rounds", 300),
      flips: numberOf("flips", 20_000),
      seed: numberOf("seed", 1),
      out: values.out ?? fileURLToPath(new URL("../results/soak.json", import.meta.url))
    }
  } catch (cause) {
    process.stderr.write(`${cause instanceof Error ? cause.message : String(cause)}\n\n${usage}`)
    process.exit(2)
  }
}

const options = optionsOf()
const began = Date.now()
const faults: Array<string> = []
const results: Record<string, unknown> = {}

const step = async <A extends object>(name: string, work: () => Promise<A & { readonly faults: ReadonlyArray<string> }>) => {
  process.stderr.write(`soak: ${name} …\n`)
  const started = Date.now()
  const { faults: found, ...seen } = await work()
  faults.push(...found.map((fault) => `${name}: ${fault}`))
  results[name] = { ...seen, seconds: Math.round((Date.now() - started) / 1000), ...(found.length > 0 ? { faults: found } : {}) }
  process.stderr.write(`soak: ${name}: ${JSON.stringify(results[name])}\n`)
}

/** As many chains as keep two cores busy. */
const chains = 4

/** A session is looked at as a whole after each round, so that one that gets long makes the rounds long. */
const roundsOfSession = 25

const killed = (programs: string, store: StoreName, rounds: number, first: number, runtime?: ReadonlyArray<string>) => async () => {
  const seen = KillLoop.tally()
  const found: Array<string> = []
  const sessions = Math.ceil(rounds / roundsOfSession)
  const seeds = Array.from({ length: sessions }, (_, index) => options.seed * 1_000 + first + index)
  const rest = [...seeds]
  const chain = async () => {
    for (let seed = rest.shift(); seed !== undefined; seed = rest.shift()) {
      const count = Math.min(roundsOfSession, rounds)
      found.push(...await KillLoop.run({ bundle: programs, store, session: `s${seed}`, rounds: count, seed, ...(runtime === undefined ? {} : { runtime }) }, seen))
    }
  }
  await Promise.all(Array.from({ length: chains }, chain))
  return { ...seen, seeds: `${seeds[0]} to ${seeds.at(-1)}`, faults: found }
}

const refused = (refusals: Refusals.Refused) => async () => {
  const { call, error } = refusals
  const calls = await Refusals.callsOf(refusals)
  const done = await Refusals.refuse(refusals, Array.from({ length: calls }, (_, index) => index + 1))
  return {
    calls,
    noticed: done.filter(({ outcome }) => outcome.refused.length > 0).length,
    faults: done.flatMap(({ nth, outcome }) => outcome.fault === undefined ? [] : [`${call} ${nth} ${error}: ${outcome.fault}`])
  }
}

const program = Effect.gen(function*() {
  const programs = yield* Effect.acquireRelease(Effect.promise(bundle), ({ remove }) => Effect.sync(remove))
  const directory = yield* temporary
  const inDirectory = (name: string) => ({ kind: "sqlite" as const, directory: path.join(directory, name) })
  const inLines = (name: string) => ({ kind: "jsonl" as const, directory: path.join(directory, name) })
  const todo = (name: string, work: () => Promise<object & { readonly faults: ReadonlyArray<string> }>) => Effect.promise(() => step(name, work))

  const places: ReadonlyArray<readonly [Where, string]> = [["here", "in the store's thread"], ["thread", "in a thread of its own"], ["moving", "moving into a thread"]]
  for (const [index, [where, how]] of places.entries()) {
    yield* todo(`SQLite, ${how}: writers killed`, killed(programs.file, { ...inDirectory(`killed-${where}`), where }, options.rounds, index * 25))
  }
  const { database, host, port, username } = yield* Postgres.server
  yield* todo("PostgreSQL: writers killed", killed(programs.file, { kind: "postgres", server: { host, port, username, database } }, options.rounds, 100))
  const deno = fileURLToPath(new URL("../../../../test/deno/runtime/node_modules/.bin/deno", import.meta.url))
  yield* todo("SQLite under Deno: writers killed", killed(programs.file, inDirectory("deno"), Math.ceil(options.rounds / 10), 200, [deno, "run", "-A"]))
  yield* todo("JSON lines: writers killed", killed(programs.file, inLines("lines"), options.rounds, 300))
  yield* todo("JSON lines under Deno: writers killed", killed(programs.file, inLines("lines-deno"), Math.ceil(options.rounds / 10), 400, [deno, "run", "-A"]))
  for (const [call, error] of [["pwrite64", "EIO"], ["pwrite64", "ENOSPC"], ["fsync", "EIO"], ["ftruncate", "EIO"]] as const) {
    for (const [where, how] of places) {
      yield* todo(`SQLite, ${how}: every ${call} fails with ${error} once`, refused({ bundle: programs.file, directory, call, error, where }))
    }
  }
  yield* todo("SQLite: bits flipped", async () => {
    const next = random(options.seed)
    const found = await Effect.runPromise(flips(path.join(directory, "flips"), (size) => Array.from({ length: options.flips }, () => Math.floor(next() * size))))
    const { unnoticed, ...counts } = found
    return { ...counts, seed: options.seed, faults: unnoticed }
  })
  yield* todo("JSON lines: bits flipped", async () => {
    const next = random(options.seed)
    const one = await Effect.runPromise(Damage.small)
    const found = []
    for (const name of Damage.names) {
      const bits = Damage.bytesOf(one.disk, name).length * 8
      const chosen = options.flips >= bits ? Array.from({ length: bits }, (_, bit) => bit) : Array.from({ length: options.flips }, () => Math.floor(next() * bits))
      found.push({ file: name, bits: chosen.length, ...await Effect.runPromise(Damage.flips(one, name, chosen)) })
    }
    return { files: found.map(({ unnoticed: _, ...counts }) => counts), seed: options.seed, faults: found.flatMap(({ unnoticed }) => unnoticed) }
  })
  yield* todo("JSON lines: power lost", async () => {
    const next = random(options.seed)
    const times = Math.max(1, Math.ceil(options.rounds / 10))
    const found = []
    for (let time = 0; time < times; time++) found.push(...await Effect.runPromise(DiskLife.losePowerBehind(20, next, 100)))
    return {
      times: found.length,
      torn: found.filter(({ cutBytes }) => cutBytes > 0).length,
      seed: options.seed,
      faults: found.flatMap(({ fault }, time) => fault === undefined ? [] : [`${time}: ${fault}`])
    }
  })
  for (const kind of ["memory", "sqlite", "jsonl"] as const) {
    for (const sessions of [1, 10, 50]) {
      yield* todo(`event loop, ${kind}, ${sessions} sessions`, async () => {
        const { errors, lines } = await Programs.run({ bundle: programs.file, name: "lag", args: { store: { ...inDirectory(`lag-${kind}-${sessions}`), kind }, sessions, turns: 10 } })
        const [line] = lines
        return line === undefined ? { faults: [errors] } : { milliseconds: JSON.parse(line) as Lag, faults: [] }
      })
    }
  }
})

await Effect.runPromise(Effect.scoped(program))
fs.mkdirSync(path.dirname(options.out), { recursive: true })
fs.writeFileSync(
  options.out,
  `${JSON.stringify({ date: new Date(began).toISOString().slice(0, 10), node: process.version, cpus: `${os.cpus().length} × ${os.cpus()[0]?.model ?? ""}`, seed: options.seed, seconds: Math.round((Date.now() - began) / 1000), faults, results }, null, 2)}\n`
)
for (const fault of faults) console.log(`not kept: ${fault}`)
console.log(`${Object.keys(results).length} parts, ${faults.length} promises not kept; ${path.relative(process.cwd(), options.out)} has what was seen`)
process.exitCode = faults.length > 0 ? 1 : 0
