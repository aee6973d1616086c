/** The tables of docs/benchmarks.md, made of the results that are committed: what stands there was measured. */
import * as Benchmark from "./Benchmark.ts"
import * as StoreDocument from "./StoreDocument.ts"
import { cell, judging, reader, type Results, table, word } from "./Tables.ts"

export interface Soak {
  readonly ok: boolean
  readonly at: string
  readonly options: { readonly minutes: number; readonly turns: number; readonly seed: number }
  readonly seconds: number
  readonly turns_done: number
  readonly kinds: Readonly<Record<string, number>>
  readonly verdicts: Readonly<Record<string, number>>
  readonly restarts: number
  readonly leftovers_killed: number
  readonly survivors: ReadonlyArray<unknown>
  readonly growth: { readonly heap_bytes_per_1000_turns: number; readonly rss_kib_per_1000_turns: number; readonly open_files_per_1000_turns: number }
  readonly turn_ms: { readonly p50: number; readonly p99: number; readonly max: number }
  readonly samples: ReadonlyArray<{ readonly turn: number; readonly heap_used: number; readonly rss_kib: number; readonly open_files: number; readonly agent_rss_kib: number }>
}

/** Each table by its name. */
export const tables = (results: Results, soak: Soak): Readonly<Record<string, string>> => {
  const of = reader(results)
  const { machine } = results
  const judged = judging(of)
  const delay = ["claude", "scripted"].flatMap((dialect) => [
    `${dialect}: bare reader of the pipe`,
    `${dialect}: session (packages)`,
    `${dialect}: run (packages)`,
    `${dialect}: turnpike run --format events`,
    ...(dialect === "claude" ? ["claude: Claude Agent SDK"] : [])
  ])
  const mixtures = ["claude", "codex", "copilot"].flatMap((name) => [`${name}, recorded`, `${name}, long answer`])
  const groups = [
    ["claude itself", "turnpike run --harness claude", "Claude Agent SDK", "acpx exec, with its adapter for Claude Code"],
    ["codex itself", "turnpike run --harness codex", "Codex SDK"],
    ["copilot itself", "turnpike run --harness copilot", "Copilot SDK"]
  ] as const
  const conversations = [
    ["claude itself, resumed", "turnpike chat --harness claude, warm", "Claude Agent SDK, same session", "acpx, same session"],
    ["codex itself, resumed", "turnpike chat --harness codex, warm", "Codex SDK, same session", "codex app-server, spoken to directly"],
    ["copilot itself, resumed", "turnpike chat --harness copilot, warm", "Copilot SDK, same session"]
  ] as const
  const compared = (benchmark: string, all: ReadonlyArray<readonly [string, ...ReadonlyArray<string>]>, suffix: string) =>
    table(["what", "time", "ratio to the CLI itself", "goal"], all.flatMap(([own, ...others]) => [
      [own, cell(of(benchmark, `${own}${suffix}`)), "1", ""],
      ...others.map((name) => {
        const ratio = of(benchmark, `${name}: ratio to ${own}`)
        return [name, cell(of(benchmark, `${name}${suffix}`)), cell(ratio), ratio.goal === undefined ? "" : `≤ ${ratio.goal.value} ×: ${word(ratio)}`]
      })
    ]))
  const mib = (kib: number) => `${Math.round(kib / 1024)} MiB`
  const moments = [0.1, 0.25, 0.5, 0.75, 1].map((part) => soak.samples[Math.max(0, Math.ceil(soak.samples.length * part) - 1)]!)
  return {
    ...StoreDocument.tables(of),
    machine: `${machine.cores} cores of ${machine.cpu} (a virtual machine), ${machine.memory_gib} GiB, ${machine.kernel}, Node ${machine.node}; measured on ${[...new Set(Object.values(results.reports).map(({ at }) => at.slice(0, 10)))].join(", ")}. `
      + `Others had, of the machine, on average and at most: ${
        Object.entries(results.reports).map(([name, { others }]) => `${name} ${Math.round(others.mean * 100)} % and ${Math.round(others.most * 100)} %`).join(", ")
      }. `
      + `${Object.values(results.reports).reduce((sum, { checks }) => sum + checks, 0)} outputs were held to what is right.`,
    goals: table(["what", "goal", "measured", ""], [
      ...["claude", "scripted"].flatMap((dialect) =>
        ["session (packages)", "run (packages)", "turnpike run --format events"].flatMap((name) => [
          judged("delay", `${dialect}: ${name}: p50`, "≤ 1 ms"),
          judged("delay", `${dialect}: ${name}: p99`, "≤ 5 ms")
        ])
      ),
      ...mixtures.map((name) => judged("decode", `${name}: decode and normalise`, "≥ 250 000 /s")),
      ...groups.map(([own, ours]) => judged("overhead", `${ours}: ratio to ${own}`, "≤ 1.2 ×")),
      ...conversations.map(([own, ours]) => judged("warm", `${ours}: ratio to ${own}`, "≤ 0.15 ×")),
      [
        `soak: heap in use, growth in ${soak.turns_done.toLocaleString("en").replaceAll(",", " ")} turns`,
        "flat",
        `${Benchmark.number(soak.growth.heap_bytes_per_1000_turns * soak.turns_done / 1000 / 2 ** 20)} MiB`,
        soak.ok ? "met" : "**missed**"
      ],
      ...StoreDocument.goals(of)
    ]),
    delay: table(["reader", "p50", "p99", "longest", "first second, p50", "first second, p99"], delay.map((name) => [
      name,
      ...["p50", "p99", "longest", "first second, p50", "first second, p99"].map((what) => cell(of("delay", `${name}: ${what}`)))
    ])),
    decode: table(["frames", "decode and normalise", "split and JSON.parse alone"], mixtures.map((name) => [
      name,
      cell(of("decode", `${name}: decode and normalise`)),
      cell(of("decode", `${name}: split and JSON.parse alone`))
    ])),
    overhead: compared("overhead", groups, ": wall"),
    parts: table(["part of the time", ...groups.map(([, ours]) => `\`${ours}\``)], ["begin", "launch", "turn", "capture", "end"].map((part) => [
      part,
      ...groups.map(([, ours]) => cell(of("overhead", `${ours}: of which ${part}`)))
    ])),
    alone: table(["alone, for comparison", "time"], ["Node that does nothing", "turnpike run that is refused", "claude --version", "codex --version", "copilot --version"].map((what) => [
      what,
      cell(of("overhead", `${what}: wall`))
    ])),
    warm: compared("warm", conversations, ""),
    many: table(["what", "measured"], results.reports["many"]!.figures.map((figure) => [figure.name, cell(figure)])),
    soak: [
      `${soak.turns_done} turns in ${Math.round(soak.seconds / 60)} minutes, seed ${soak.options.seed}: ${
        Object.entries(soak.verdicts).sort(([, a], [, b]) => b - a).map(([verdict, count]) => `${count} ${verdict}`).join(", ")
      }, each as its turn demands. The agent died and was started again ${soak.restarts} times, ${soak.leftovers_killed} processes that turns had left were killed, and ${soak.survivors.length} survived. A turn took ${Benchmark.number(soak.turn_ms.p50)} ms (p50), ${Benchmark.number(soak.turn_ms.p99)} ms (p99).`,
      "",
      table(["after turn", "heap in use", "resident", "open files", "the agent, resident"], moments.map((one) => [
        String(one.turn),
        `${(one.heap_used / 2 ** 20).toFixed(1)} MiB`,
        mib(one.rss_kib),
        String(one.open_files),
        mib(one.agent_rss_kib)
      ])),
      "",
      `By the line through all samples after the first tenth the heap in use grows by ${soak.growth.heap_bytes_per_1000_turns} bytes in 1000 turns, resident memory by ${soak.growth.rss_kib_per_1000_turns} KiB, and open files by ${soak.growth.open_files_per_1000_turns}.`
    ].join("\n")
  }
}

const marks = (name: string) => [`<!-- ${name}: begin -->\n`, `\n<!-- ${name}: end -->`] as const

/** Puts the tables into a document, each between its marks. Fails where a mark is missing. */
export const fill = (document: string, all: Readonly<Record<string, string>>): string =>
  Object.entries(all).reduce((text, [name, content]) => {
    const [begin, end] = marks(name)
    const from = text.indexOf(begin)
    const to = text.indexOf(end)
    if (from === -1 || to < from) throw new Error(`the document has no place for ${name}`)
    return text.slice(0, from + begin.length) + content + text.slice(to)
  }, document)
