/**
 * `turnpike doctor`: what works here, what does not, and what to do.
 *
 * Starts no turn and spends no token. What runs with dead owners left behind is
 * killed, as every run does at its start.
 */
import { Outlet, Printable, Style } from "@turnpike/channel-terminal"
import type { Harness } from "@turnpike/kernel"
import { type Containment, Orphans, Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as path from "node:path"
import { type Given, isOn, one } from "./CommandLine.ts"
import * as Composition from "./Composition.ts"
import * as DataDirectory from "./DataDirectory.ts"
import * as HarnessDiagnosis from "./HarnessDiagnosis.ts"
import * as HarnessRegistry from "./HarnessRegistry.ts"
import * as Program from "./Program.ts"
import { refuse, type Refusal } from "./Refusal.ts"
import { print } from "./SchemaCommand.ts"
import * as Version from "./Version.ts"

/** What was found, also as JSON. */
interface Report {
  readonly turnpike_version: string
  /** Whether a run can be tried: on the harness that was asked about, else on any agent. The demonstration is none. */
  readonly usable: boolean
  /** What to do next, as a sentence with the command to type. */
  readonly next: string
  readonly machine: ReadonlyArray<Harness.Finding>
  readonly harnesses: ReadonlyArray<Harness.Diagnosis>
}

const ok = (message: string): Harness.Finding => ({ level: "ok", message })

const node = (): Harness.Finding =>
  process.versions["deno"] === undefined
    ? ok(`Node ${process.versions.node} (${process.execPath})`)
    : ok(`Deno ${process.versions["deno"]} (${process.execPath})`)

/** The nearest directory that exists, which is where a missing one would be made. */
const existing = (directory: string): string => {
  if (fs.existsSync(directory)) return directory
  const parent = path.dirname(directory)
  return parent === directory ? directory : existing(parent)
}

/** Looks whether the data directory could be used, without making it. */
const dataDirectory = (choice: DataDirectory.Choice): Harness.Finding => {
  const { by, directory } = choice
  const refusal = DataDirectory.refusal(choice)
  if (refusal !== undefined) return { level: "problem", message: refusal.failure.message, remedy: refusal.failure.remedy }
  try {
    const found = existing(directory)
    if (!fs.statSync(found).isDirectory()) throw Object.assign(new Error("it is not a directory"), { code: "ENOTDIR" })
    fs.accessSync(found, fs.constants.W_OK | fs.constants.X_OK)
    return ok(`data directory ${directory} (${by})${found === directory ? "" : "; the first run makes it"}`)
  } catch (cause) {
    const { failure } = DataDirectory.unusable(`data directory ${directory} (${by})`, cause)
    return { level: "problem", message: failure.message, remedy: failure.remedy }
  }
}

const containment = (all: ReadonlyArray<Containment.Availability>, used: string | undefined): ReadonlyArray<Harness.Finding> => [
  ...(used === undefined
    ? [{ level: "problem" as const, message: "no way to contain processes works here, so nothing can be started", remedy: "See the remedies below." }]
    : []),
  ...all.map((one): Harness.Finding =>
    one.available
      ? ok(`containment ${one.strategy}${one.strategy === used ? " (used)" : ""}: ${one.promise}${one.price === "" ? "" : ` ${one.price}`}`)
      : { level: "warning", message: `containment ${one.strategy} does not work here: ${one.why}`, remedy: one.remedy }
  )
]

const leftovers = ({ killed, survivors }: Supervisor.Service["reaped"]): Harness.Finding =>
  survivors.length > 0
    ? {
      level: "warning",
      message: `${survivors.length} processes of runs whose owner died could not be killed: ${survivors.map(({ command, pid }) => `${pid} ${command}`).join("; ")}`,
      remedy: "End them as the user that they belong to."
    }
    : ok(killed.length === 0 ? "no run left anything behind" : `${killed.length} processes of runs whose owner died were killed`)

/** The harnesses that count and can be used. The demonstration counts where it is asked about. */
const usableOf = (harnesses: ReadonlyArray<Harness.Diagnosis>, asked: string | undefined): ReadonlyArray<string> => {
  const wanted: ReadonlyArray<string> = asked === undefined ? HarnessRegistry.agents : [asked]
  return harnesses.filter((each) => each.usable && wanted.includes(each.harness)).map(({ harness }) => harness)
}

/** What to do next. Without a name in `asked` the only agent that can be used need not be named either. */
const next = (machine: ReadonlyArray<Harness.Finding>, harnesses: ReadonlyArray<Harness.Diagnosis>, asked: string | undefined): string => {
  const run = (harness: string | undefined) => `turnpike run${harness === undefined ? "" : ` --harness ${harness}`} "Say hello"`
  const usable = usableOf(harnesses, asked)
  if (machine.some(({ level }) => level === "problem") || !harnesses.some((each) => each.usable)) return "A run cannot be tried yet; each problem (✗) says what to do."
  return usable.length === 0
    ? `No agent can be used yet; each problem (✗) says what to do. A demonstration needs none: ${run("scripted")}`
    : `Try it: ${run(asked === undefined && usable.length === 1 ? undefined : usable[0])}`
}

const examine = (given: Given, asked: string | undefined): Effect.Effect<Report, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const program = one(given, "program")
    if (program !== undefined && asked === undefined) {
      return yield* refuse("USAGE", "--program names the program of one harness, and none is named", {
        remedy: "Write turnpike doctor HARNESS --program PATH."
      })
    }
    const redact = Composition.redactor()
    const inheritedEnv = Composition.environment()
    const supervisor = yield* Supervisor.make({ environment: inheritedEnv, redact, reapOrphans: false })
    const provided = Effect.provideService(Supervisor.Supervisor, supervisor)
    const loaded = yield* Effect.forEach(asked === undefined ? HarnessRegistry.names : [asked], (name) => HarnessRegistry.load(name)).pipe(provided)
    const used = yield* Effect.option(supervisor.containment)
    const machine = [
      node(),
      dataDirectory(DataDirectory.choose(one(given, "data-dir"), inheritedEnv)),
      ...containment(yield* supervisor.probe, used._tag === "Some" ? used.value.strategy : undefined),
      leftovers(yield* Orphans.reap({ redact }))
    ]
    const harnesses = yield* Effect.forEach(loaded, (harness) => HarnessDiagnosis.make(harness, { program }), { concurrency: "unbounded" })
    return {
      turnpike_version: Version.read(),
      usable: !machine.some(({ level }) => level === "problem") && usableOf(harnesses, asked).length > 0,
      next: next(machine, harnesses, asked),
      machine,
      harnesses
    }
  })

const signs = { ok: ["good", "✓"], warning: ["warn", "!"], problem: ["bad", "✗"] } as const

const text = (report: Report, style: Style.Style): string => {
  const finding = ({ level, message, remedy }: Harness.Finding): ReadonlyArray<string> => [
    `  ${style.paint(signs[level][0], signs[level][1])} ${message}`,
    ...(remedy === undefined ? [] : [`      → ${remedy}`])
  ]
  return [
    style.paint("bold", `turnpike ${report.turnpike_version}`),
    ...report.machine.flatMap(finding),
    ...report.harnesses.flatMap((each) => [
      "",
      `${style.paint("bold", each.harness)} ${style.paint(each.usable ? "good" : "bad", each.usable ? "can be tried" : "cannot be used")}${
        each.version === undefined ? "" : ` · ${each.version}`
      }${each.program === undefined ? "" : ` · ${each.program}`}`,
      ...each.findings.flatMap(finding)
    ]),
    "",
    style.paint(report.usable ? "good" : "bad", report.next),
    ""
  ].join("\n")
}

/** Rewrites every sentence that a program may have had a part in. */
const rewritten = (report: Report, rewrite: (text: string) => string): Report => {
  const clean = (finding: Harness.Finding): Harness.Finding => ({
    ...finding,
    message: rewrite(finding.message),
    ...(finding.remedy === undefined ? {} : { remedy: rewrite(finding.remedy) })
  })
  return {
    ...report,
    machine: report.machine.map(clean),
    harnesses: report.harnesses.map((each) => ({ ...each, findings: each.findings.map(clean) }))
  }
}

const command = (given: Given, asked: string | undefined): Effect.Effect<number, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const report = rewritten(yield* examine(given, asked), Composition.redactor())
    const isTerminal = Outlet.make(process.stdout, "standard output").isTerminal
    yield* print(isOn(given, "json") ? `${JSON.stringify(report, undefined, 2)}\n` : text(rewritten(report, Printable.printable), Style.choose(isTerminal, process.env)))
    return report.usable ? 0 : 1
  })

export const main = (given: Given, [asked]: ReadonlyArray<string>): Promise<number> => Program.run(command(given, asked))
