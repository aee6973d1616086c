/** Runs the turnpike binary on a real CLI, as a person would, and looks at what it leaves. */
import { type AgentRunEvent, type AgentRunResult, StreamRules } from "@turnpike/contract"
import type { ModelRequest, ModelScenario, ModelServer } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { claudeEnv, codexEnv, copilotEnv, type Ended, makePrivatePlace, type Model, type PrivatePlace, programOf, type RealCli, run as runProgram } from "./realCli.ts"

const binary = fileURLToPath(new URL("../../../packages/cli/bin/turnpike.mjs", import.meta.url))

/** No run takes longer; one that does is killed, and its row fails. */
const longestMs = 90_000

/** The variable by which every process of a row is found, whoever its parent is. */
const markName = "TURNPIKE_REAL_ROW"

export interface Told {
  readonly exit: number | null
  readonly stdout: string
  readonly stderr: string
  readonly events: ReadonlyArray<AgentRunEvent.AgentRunEvent>
  readonly result: AgentRunResult.AgentRunResult | undefined
}

export interface RunOptions {
  /** Arguments after `run --harness … --program …`. */
  readonly args?: ReadonlyArray<string>
  /** The task, on standard input. */
  readonly task: string
  readonly scenario?: ModelScenario.ModelScenario
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly program?: string
  /** Called for every event as it comes. */
  readonly onEvent?: (event: AgentRunEvent.AgentRunEvent, signal: (name: NodeJS.Signals) => void) => void
}

export interface Bench {
  readonly place: PrivatePlace
  /** The run id under which the scripted model keeps what it was asked. */
  readonly runId: string
  readonly run: (options: RunOptions) => Promise<Told>
  /** Runs a specification from a file. */
  readonly runSpec: (file: string) => Promise<Told>
  /** What the user asked, as the last request to the model had it. */
  readonly prompts: () => Promise<ReadonlyArray<string>>
  /** The last request to the model. */
  readonly lastRequest: () => Promise<ModelRequest.ModelRequest | undefined>
  /** All that the model was asked, in order. */
  readonly requests: () => Promise<ReadonlyArray<ModelRequest.ModelRequest>>
  /** Completes when the model is asked something with this text. */
  readonly asked: (text: string) => Promise<void>
  /** Runs another command of the binary. */
  readonly command: (args: ReadonlyArray<string>) => Promise<Ended>
  /** Where the sessions are. */
  readonly dataDirectory: string
  /** The row's living processes: pid and command line. */
  readonly processes: () => ReadonlyArray<{ readonly pid: number; readonly command: string }>
  readonly remove: () => void
}

const apiKey = "sk-scripted-key-of-the-real-test"

/** What each CLI finds in its environment. */
const environments: Readonly<Record<RealCli, (place: PrivatePlace, model: Model) => Readonly<Record<string, string>>>> = {
  claude: (place, model) => ({ ...claudeEnv(place, model), CLAUDE_CODE_MAX_RETRIES: "1" }),
  codex: codexEnv,
  copilot: copilotEnv
}

export const makeBench = (server: ModelServer.ModelServer["Service"], cli: RealCli = "claude"): Bench => {
  const place = makePrivatePlace()
  const runId = `row-${randomUUID().slice(0, 8)}`
  const mark = randomUUID()
  const processes: Bench["processes"] = () =>
    fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((name) => {
      try {
        if (!fs.readFileSync(`/proc/${name}/environ`, "utf8").includes(`${markName}=${mark}`)) return []
        // A process that has ended and was not yet waited for has no command line.
        const command = fs.readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim()
        return command === "" ? [] : [{ pid: Number(name), command }]
      } catch {
        return []
      }
    })
  const dataDirectory = path.join(place.home, "turnpike")
  const start = (options: Omit<RunOptions, "task" | "args">, args: ReadonlyArray<string>, input: string): Promise<Told> =>
    new Promise((resolve, reject) => {
      const env: Record<string, string | undefined> = {
        ...environments[cli](place, {
          baseUrl: server.baseUrl(options.scenario ?? { type: "text" }, runId),
          proxyUrl: server.url,
          apiKey
        }),
        TURNPIKE_HOME: dataDirectory,
        [markName]: mark,
        ...options.env
      }
      const child = spawn(
        process.execPath,
        [binary, "run", `--program=${options.program ?? programOf(cli)}`, "--format=events", ...args],
        { cwd: place.work, env, stdio: ["pipe", "pipe", "pipe"] }
      )
      const signal = (name: NodeJS.Signals) => void child.kill(name)
      let stdout = ""
      let stderr = ""
      let read = 0
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        stdout += text
        for (let end = stdout.indexOf("\n", read); end !== -1; end = stdout.indexOf("\n", read)) {
          const line = stdout.slice(read, end)
          read = end + 1
          options.onEvent?.(JSON.parse(line), signal)
        }
      })
      child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
      // A run that is refused does not read its task; how it ended says more.
      child.stdin.on("error", () => {})
      child.stdin.end(input)
      const timer = setTimeout(() => child.kill("SIGKILL"), longestMs)
      child.on("error", reject)
      child.on("close", (exit) => {
        clearTimeout(timer)
        // The last line of a run that was killed may be torn.
        const events = stdout.split("\n").slice(0, -1).map((line): AgentRunEvent.AgentRunEvent => JSON.parse(line))
        const last = events.at(-1)
        resolve({ exit, stdout, stderr, events, result: last?.type === "result" ? last.result : undefined })
      })
    })
  const run: Bench["run"] = (options) => start(options, [`--harness=${cli}`, ...(options.args ?? []), "-"], options.task)
  const runSpec: Bench["runSpec"] = (file) => start({}, [`--spec=${file}`], "")
  const command: Bench["command"] = (args) =>
    runProgram(process.execPath, [binary, ...args], { cwd: place.work, env: { ...place.env, TURNPIKE_HOME: dataDirectory, [markName]: mark }, stdin: "" })
  const requests: Bench["requests"] = () => Effect.runPromise(server.requests(runId))
  const asked: Bench["asked"] = async (text) => {
    await Effect.runPromise(server.waitForRequest(runId, (request) => request.prompts.some((prompt) => prompt.includes(text))))
  }
  const lastRequest = async () => (await requests()).at(-1)
  const prompts = async () => (await lastRequest())?.prompts ?? []
  return { place, runId, run, runSpec, prompts, lastRequest, requests, asked, command, dataDirectory, processes, remove: place.remove }
}

/** What is wrong with a stream: every breach of the contract and its rules. Nothing may stand there where a run was refused. */
export const breaches = (told: Told): ReadonlyArray<string> =>
  told.result === undefined && told.exit === 1
    ? told.stdout === "" ? [] : [`a refused run wrote ${told.stdout}`]
    : StreamRules.validate(told.stdout, { result: "stream" }).map(({ line, message, rule }) => `${line} ${rule}: ${message}`)

/** The code that a refused run names on standard error. */
export const refusedWith = (told: Told): string | undefined => /^ {2}code: (\S+)$/m.exec(told.stderr)?.[1]

/** Waits until a fact of the outside holds. */
export const eventually = async <A>(what: string, look: () => A, holds: (value: A) => boolean, withinMs = 20_000): Promise<A> => {
  const until = Date.now() + withinMs
  for (;;) {
    const value = look()
    if (holds(value)) return value
    if (Date.now() > until) throw new Error(`${what}: after ${withinMs} ms it is still ${JSON.stringify(value)}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
