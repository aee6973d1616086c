/**
 * How long it takes from the moment at which a harness writes a frame to the moment at which a consumer
 * has it as an event, while frames come evenly, 10 000 a second.
 *
 * The harness is `programs/sender.mjs`, which puts the moment into the frame. The same frames are
 * read by a bare reader of its pipe, which only cuts lines and parses JSON; by a warm session, whose
 * turn is a stream of events; by a run, whose events are those of the contract; and by `turnpike run
 * --format events` as it ships, whose standard output is read by this process. Beside it the Claude
 * Agent SDK reads the same program.
 */
import { ClaudeHarness } from "@turnpike/harness-claude"
import { ScriptedHarness } from "@turnpike/harness-scripted"
import { Cancel, Harness, Prompt, Run, RunPreparation, SessionStoreMemory } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as Benchmark from "./support/Benchmark.ts"
import * as Statistics from "./support/Statistics.ts"

const sender = fileURLToPath(new URL("programs/sender.mjs", import.meta.url))
const sdk = fileURLToPath(new URL("peers/claude-agent-sdk-delay.mjs", import.meta.url))
const rate = 10_000

type Dialect = "scripted" | "claude"

interface Place {
  readonly directory: string
  readonly report: string
  readonly env: Readonly<Record<string, string>>
}

/** What a consumer saw: the delay of each piece in microseconds, in order, and the answer's last words. */
interface Heard {
  readonly delay_us: Array<number>
  answer: string
}

const now = () => Number(process.hrtime.bigint())

/** Notes a piece; every text that is a moment counts. */
const note = (heard: Heard, text: string): void => void heard.delay_us.push(Math.round((now() - Number(text)) / 1000))

const makePlace = (dialect: Dialect, frames: number): Place => {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-delay-")))
  const report = path.join(directory, "sender.json")
  return {
    directory,
    report,
    env: {
      PATH: `${path.dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
      HOME: directory,
      LANG: "C.UTF-8",
      TURNPIKE_HOME: path.join(directory, "data"),
      ANTHROPIC_API_KEY: "none",
      SENDER_DIALECT: dialect,
      SENDER_FRAMES: String(frames),
      SENDER_RATE: String(rate),
      SENDER_REPORT: report
    }
  }
}

const makeHarness = (dialect: Dialect): Effect.Effect<Harness.Harness, never, Supervisor.Supervisor> =>
  dialect === "claude" ? ClaudeHarness.make() : ScriptedHarness.make({ agent: [process.execPath, sender] })

const sessionOptions = (dialect: Dialect, place: Place) =>
  Harness.options({
    sessionId: randomUUID(),
    cwd: place.directory,
    inheritedEnv: place.env,
    program: dialect === "claude" ? sender : undefined
  })

type Consumer = (dialect: Dialect, place: Place, context: Benchmark.Context) => Promise<Heard>

const inProcess = <E>(
  dialect: Dialect,
  work: (harness: Harness.Harness) => Effect.Effect<Heard, E, Supervisor.Supervisor>
): Promise<Heard> =>
  Effect.runPromise(Effect.gen(function*() {
    return yield* work(yield* makeHarness(dialect))
  }).pipe(Effect.provide(Supervisor.layer({ reapOrphans: false })), Effect.orDie))

/** The turn of a warm session, as whoever composes the packages reads it. */
const session: Consumer = (dialect, place) =>
  inProcess(dialect, (harness) =>
    Effect.scoped(Effect.gen(function*() {
      const heard: Heard = { delay_us: [], answer: "" }
      const opened = yield* harness.open(sessionOptions(dialect, place))
      yield* Stream.runForEach(opened.runTurn(Prompt.fromText("go")), (event) =>
        Effect.sync(() => {
          if (event.type === "assistant/chunk") note(heard, event.data.text)
          if (event.type === "harness/end") heard.answer = event.data.text
        }))
      return heard
    })))

/** The events of a whole run. */
const run: Consumer = (dialect, place) =>
  inProcess(dialect, (harness) =>
    Effect.scoped(Effect.gen(function*() {
      const heard: Heard = { delay_us: [], answer: "" }
      const { sessionId, ...options } = sessionOptions(dialect, place)
      const prepared = yield* RunPreparation.prepare({
        spec: { task: "go", harness: harness.name },
        harness,
        newSessionId: sessionId,
        holder: "the benchmark",
        session: options
      }).pipe(Effect.provide(SessionStoreMemory.layer))
      const result = yield* Run.execute(prepared, {
        runId: randomUUID(),
        turnpikeVersion: "0.0.0",
        sink: (event) =>
          Effect.sync(() => {
            if (event.type === "text_delta") note(heard, event.text)
          }),
        cancel: yield* Cancel.make,
        deliver: "caller",
        grace: "1 second"
      })
      heard.answer = result.result.success ? result.result.summary : `not a success: ${result.error?.message}`
      return heard
    })))

/** Reads the lines of a program that this process starts; the time counts when a chunk is there. */
const lines = (
  file: string,
  args: ReadonlyArray<string>,
  place: Place,
  input: string,
  take: (line: string) => void,
  env: Readonly<Record<string, string>> = {}
): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd: place.directory, env: { ...place.env, ...env }, stdio: ["pipe", "pipe", "pipe"] })
    let rest = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const all = (rest + text).split("\n")
      rest = all.pop() ?? ""
      for (const line of all) take(line)
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => stderr = (stderr + text).slice(-4000))
    child.stdin.on("error", () => {})
    child.stdin.write(input)
    child.on("error", reject)
    child.on("close", (code, signal) => code === 0 ? resolve(stderr) : reject(new Benchmark.Invalid(`${path.basename(file)} ${args.join(" ")} ended with ${signal ?? `exit ${code}`}: ${stderr}`)))
    if (args[0] !== sender) child.stdin.end()
    else take = closing(take, () => child.stdin.end())
  })

/** Ends the input of a sender once it has said its last word. */
const closing = (take: (line: string) => void, end: () => void) => (line: string): void => {
  take(line)
  if (line.includes('"type":"end"') || (line.includes('"type":"result"') && line.includes('"num_turns"'))) end()
}

const textOf = (dialect: Dialect, frame: { readonly type?: string; readonly text?: string; readonly event?: { readonly delta?: { readonly type?: string; readonly text?: string } }; readonly result?: string }) =>
  dialect === "scripted"
    ? { piece: frame.type === "text_delta" ? frame.text : undefined, answer: frame.type === "end" ? frame.text : undefined }
    : { piece: frame.event?.delta?.type === "text_delta" ? frame.event.delta.text : undefined, answer: frame.type === "result" ? frame.result : undefined }

/** What any reader of a pipe has to pay. */
const bare: Consumer = async (dialect, place) => {
  const heard: Heard = { delay_us: [], answer: "" }
  const input = dialect === "scripted"
    ? [{ type: "open", protocol: 1 }, { type: "prompt", id: "p1", text: "go" }]
    : [{ type: "user", uuid: randomUUID(), message: { role: "user", content: "go" } }]
  await lines(process.execPath, [sender], place, input.map((one) => `${JSON.stringify(one)}\n`).join(""), (line) => {
    const { answer, piece } = textOf(dialect, JSON.parse(line))
    if (piece !== undefined) note(heard, piece)
    if (answer !== undefined) heard.answer = answer
  })
  return heard
}

/** The command as it ships, read by this process. */
const command: Consumer = async (dialect, place, { bundle }) => {
  const heard: Heard = { delay_us: [], answer: "" }
  const program = dialect === "claude" ? sender : path.join(place.directory, "sender")
  if (dialect === "scripted") {
    fs.writeFileSync(program, `#!/bin/sh\nif [ "$1" = --version ]; then echo 1.0.0; exit 0; fi\nexec '${process.execPath}' '${sender}' "$@"\n`, { mode: 0o755 })
  }
  await lines(process.execPath, [path.join(bundle, "bin.js"), "run", `--harness=${dialect}`, `--program=${program}`, "--format=events", "go"], place, "", (line) => {
    const event = JSON.parse(line)
    if (event.type === "text_delta") note(heard, event.text)
    if (event.type === "result") heard.answer = event.result.result.summary
  })
  return heard
}

/** The Claude Agent SDK on the same program; it notes the delays where it has the message, and prints them at the end. */
const agentSdk: Consumer = async (_, place) => {
  const heard: Heard = { delay_us: [], answer: "" }
  await lines(process.execPath, [sdk, sender], place, "", (line) => Object.assign(heard, JSON.parse(line)))
  return heard
}

/** How often each number of microseconds was seen, as pairs; from a millisecond on in steps of ten. */
const counted = (values: ReadonlyArray<number>): ReadonlyArray<readonly [microseconds: number, times: number]> => {
  const counts = new Map<number, number>()
  for (const value of values) {
    const step = value < 1000 ? value : Math.round(value / 10) * 10
    counts.set(step, (counts.get(step) ?? 0) + 1)
  }
  return [...counts].sort(([a], [b]) => a - b)
}

interface Reader {
  readonly name: string
  readonly dialect: Dialect
  readonly consume: Consumer
  readonly isJudged: boolean
}

const readers: ReadonlyArray<Reader> = (["claude", "scripted"] as const).flatMap((dialect): ReadonlyArray<Reader> => [
  { name: `${dialect}: bare reader of the pipe`, dialect, consume: bare, isJudged: false },
  { name: `${dialect}: session (packages)`, dialect, consume: session, isJudged: true },
  { name: `${dialect}: run (packages)`, dialect, consume: run, isJudged: true },
  { name: `${dialect}: turnpike run --format events`, dialect, consume: command, isJudged: true },
  ...(dialect === "claude" ? [{ name: "claude: Claude Agent SDK", dialect, consume: agentSdk, isJudged: false }] : [])
])

export const benchmark: Benchmark.Benchmark = {
  name: "delay",
  summary: "from a harness's byte out to a consumer's event in, at 10 000 events a second",
  needs: ["peers"],
  run: async (context) => {
    const { quick, say } = context
    const check = Benchmark.checker()
    const rounds = quick ? 1 : 5
    const frames = quick ? 3000 : 30_000
    /** The first second of a process, in which its code is compiled, is told apart. */
    const warmUp = Math.min(rate, frames / 3)
    const samples: Record<string, Array<{ readonly delay_us: ReadonlyArray<number>; readonly late_us: ReadonlyArray<number>; readonly sender_cpu_ms: number }>> = {}
    for (let round = 1; round <= rounds; round++) {
      for (const { consume, dialect, name } of readers) {
        say(`delay: round ${round} of ${rounds}, ${name}`)
        const sample = await context.undisturbed(async () => {
          const place = makePlace(dialect, frames)
          try {
            const heard = await consume(dialect, place, context)
            check.equal(`${name}: what was heard`, { pieces: heard.delay_us.length, answer: heard.answer }, { pieces: frames, answer: `sent ${frames}` })
            const told = JSON.parse(fs.readFileSync(place.report, "utf8")) as { readonly late_us: ReadonlyArray<number>; readonly cpu_ms: number }
            return { delay_us: heard.delay_us, late_us: told.late_us, sender_cpu_ms: told.cpu_ms }
          } finally {
            fs.rmSync(place.directory, { recursive: true, force: true })
          }
        })
        ;(samples[name] ??= []).push(sample)
      }
    }
    const figures = readers.flatMap(({ isJudged, name }) => {
      const all = samples[name] ?? []
      const of = (what: "delay_us" | "late_us", part: number, from: number, to: number) =>
        all.map((one) => Statistics.quantile(one[what].slice(from, to), part) / 1000)
      const goal = (value: number) => isJudged ? { kind: "at most", value } as const : undefined
      return [
        Benchmark.figure(`${name}: p50`, "ms", of("delay_us", 0.5, warmUp, frames), goal(1)),
        Benchmark.figure(`${name}: p99`, "ms", of("delay_us", 0.99, warmUp, frames), goal(5)),
        Benchmark.figure(`${name}: longest`, "ms", of("delay_us", 1, warmUp, frames)),
        Benchmark.figure(`${name}: first second, p50`, "ms", of("delay_us", 0.5, 0, warmUp)),
        Benchmark.figure(`${name}: first second, p99`, "ms", of("delay_us", 0.99, 0, warmUp)),
        Benchmark.figure(`${name}: the sender was late, p99`, "ms", of("late_us", 0.99, warmUp, frames))
      ]
    })
    const kept = Object.fromEntries(Object.entries(samples).map(([name, all]) => [
      name,
      all.map(({ delay_us, late_us, sender_cpu_ms }) => ({
        first_second: { delay_us: counted(delay_us.slice(0, warmUp)), late_us: counted(late_us.slice(0, warmUp)) },
        after: { delay_us: counted(delay_us.slice(warmUp)), late_us: counted(late_us.slice(warmUp)) },
        sender_cpu_ms
      }))
    ]))
    return { figures, samples: kept, checks: check.count() }
  }
}
