/**
 * What it costs to put turnpike before a CLI: one prompt through `turnpike run`, the same prompt
 * through the CLI as one would call it by hand, and through what one would take instead, on the same
 * scripted model, in turn. The time is that of the whole process, from its start to its end.
 */
import { spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as path from "node:path"
import * as Benchmark from "./support/Benchmark.ts"
import * as Clis from "./support/Clis.ts"

interface Way {
  readonly name: string
  /** Runs one prompt; answers the milliseconds and what was answered, and where they went where that is known. */
  readonly go: (prompt: string) => Promise<Told>
}

interface Told {
  readonly ms: number
  readonly answer: string
  readonly parts?: Parts
}

/** The parts of a run's time, in milliseconds, by the moments that its events bear. */
interface Parts {
  /** Node, the command's code, the containment tried out, and the CLI asked for its version: until the first event. */
  readonly begin: number
  /** The CLI starts and says that it is ready. */
  readonly launch: number
  /** From the prompt to the end of the answer. */
  readonly turn: number
  /** The CLI ends, and what it left is looked for. */
  readonly capture: number
  /** From the last event to the end of the process. */
  readonly end: number
}

const partsOf = (lines: ReadonlyArray<string>, begun: number, ended: number): Parts => {
  const events = lines.map((line): { readonly ts: string; readonly type: string; readonly tool_name?: string } => JSON.parse(line))
  const at = (type: string, name: string) => Date.parse(events.find((event) => event.type === type && event.tool_name === name)?.ts ?? "")
  const [first, last] = [Date.parse(events[0]?.ts ?? ""), Date.parse(events.at(-1)?.ts ?? "")]
  const [ready, answered] = [at("tool_end", "launch"), at("tool_end", "await")]
  return { begin: first - begun, launch: ready - first, turn: answered - ready, capture: last - answered, end: ended - last }
}

const prompt = "hello"

/** All ways for one CLI, each with a place of its own. The first is the CLI itself. */
const ways = (cli: Clis.RealCli, model: Clis.Model, bundle: string) => {
  const desks: Array<Clis.Desk> = []
  const desk = () => {
    const made = model.desk(cli)
    desks.push(made)
    return made
  }
  const [own, ours, others, acpx] = [desk(), desk(), desk(), cli === "claude" ? desk() : undefined]
  const list: Array<Way> = [
    {
      name: `${cli} itself`,
      go: async (text) => {
        const { ms, stdout } = await Clis.run(own, own.program, Clis.bare[cli].first(randomUUID()), text)
        return { ms, answer: stdout.trim() }
      }
    },
    {
      name: `turnpike run --harness ${cli}`,
      go: async (text) => {
        const begun = Date.now()
        const { ms, stdout } = await Clis.run(ours, process.execPath, [path.join(bundle, "bin.js"), "run", `--harness=${cli}`, `--program=${ours.program}`, "--format=events", "-"], text)
        const lines = stdout.trimEnd().split("\n")
        const { result, type } = JSON.parse(lines.at(-1) ?? "{}")
        return { ms, answer: type === "result" && result.result.success ? result.result.summary : stdout.slice(-300), parts: partsOf(lines, begun, begun + ms) }
      }
    },
    {
      name: Clis.sdk[cli].name,
      go: async (text) => {
        const { ms, stdout } = await Clis.run(others, process.execPath, [Clis.sdk[cli].file, others.program, text], "")
        return { ms, answer: JSON.parse(stdout)[0].answer }
      }
    }
  ]
  if (acpx !== undefined) {
    list.push({
      name: "acpx exec, with its adapter for Claude Code",
      go: async (text) => {
        const { ms, stdout } = await Clis.run(acpx, process.execPath, [Clis.acpx, ...Clis.acpxArguments, "exec", text], "", Clis.acpxEnv(acpx))
        return { ms, answer: stdout.trim() }
      }
    })
  }
  return { list, program: own.program, remove: () => desks.forEach((one) => one.remove()) }
}

export const benchmark: Benchmark.Benchmark = {
  name: "overhead",
  summary: "turnpike run against each CLI by hand, and against its SDK, one prompt",
  needs: ["real", "peers"],
  run: async ({ bundle, quick, say, undisturbed }) => {
    const check = Benchmark.checker()
    const rounds = quick ? 1 : 15
    const samples: Record<string, Array<number>> = {}
    const parts: Record<string, Array<Parts>> = {}
    /** What a run needs before it begins, alone: Node, the command's code, the CLI's version. */
    const alone: Record<string, Array<number>> = {}
    const time = (what: string, program: string, args: ReadonlyArray<string>, exit: number): readonly [string, number] => {
      const from = performance.now()
      const { status } = spawnSync(program, args, { stdio: "ignore" })
      const ms = performance.now() - from
      check.equal(`the exit of ${what}`, status, exit)
      return [what, Math.round(ms * 10) / 10]
    }
    /** The ways of each CLI, itself first. */
    const groups: Array<ReadonlyArray<string>> = []
    const model = await Clis.model()
    try {
      for (const cli of ["claude", "codex", "copilot"] as const) {
        const { list, program, remove } = ways(cli, model, bundle)
        groups.push(list.map(({ name }) => name))
        try {
          for (let round = 0; round <= rounds; round++) {
            say(`overhead: ${cli}, round ${round} of ${rounds}`)
            // Each way is first, second, … as often as the others: what follows a heavy one is not always the same.
            const order = [...list.slice(round % list.length), ...list.slice(0, round % list.length)]
            const done = await undisturbed(async () => {
              const told: Array<readonly [name: string, Told]> = []
              for (const way of order) {
                const one = await way.go(prompt)
                check.equal(`the answer through ${way.name}`, way.name === "codex itself" ? one.answer.split("\n").at(-1) : one.answer, Clis.answerTo(prompt))
                told.push([way.name, one])
              }
              return {
                told,
                alone: [
                  time("Node that does nothing", process.execPath, ["-e", "0"], 0),
                  time("turnpike run that is refused", process.execPath, [path.join(bundle, "bin.js"), "run", `--harness=${cli}`, "--program=/no/such/program", prompt], 1),
                  time(`${cli} --version`, program, ["--version"], 0)
                ]
              }
            })
            // The first round makes caches and directories.
            if (round === 0) continue
            for (const [name, { ms, parts: where }] of done.told) {
              ;(samples[name] ??= []).push(Math.round(ms * 10) / 10)
              if (where !== undefined) (parts[name] ??= []).push(where)
            }
            for (const [what, ms] of done.alone) (alone[what] ??= []).push(ms)
          }
        } finally {
          remove()
        }
      }
    } finally {
      await model.close()
    }
    const figures = groups.flatMap(([own = "", ...others]) => [
      Benchmark.figure(`${own}: wall`, "ms", samples[own]!),
      ...others.flatMap((name) => [
        Benchmark.figure(`${name}: wall`, "ms", samples[name]!),
        Benchmark.figure(
          `${name}: ratio to ${own}`,
          "×",
          samples[name]!.map((ms, round) => ms / samples[own]![round]!),
          name.startsWith("turnpike") ? { kind: "at most", value: 1.2 } : undefined
        ),
        ...(["begin", "launch", "turn", "capture", "end"] as const).flatMap((part) =>
          parts[name] === undefined ? [] : [Benchmark.figure(`${name}: of which ${part}`, "ms", parts[name].map((one) => one[part]))]
        )
      ])
    ])
    return {
      figures: [...figures, ...Object.entries(alone).map(([what, times]) => Benchmark.figure(`${what}: wall`, "ms", times))],
      samples: { ...samples, parts, alone },
      checks: check.count()
    }
  }
}
