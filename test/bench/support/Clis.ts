/**
 * The real CLIs as one would call them by hand, and what one would take instead of turnpike, all on
 * the scripted model and all with the same native programs.
 */
import { ModelServer } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as Real from "../../real/support/realCli.ts"
import * as Benchmark from "./Benchmark.ts"

export type { RealCli } from "../../real/support/realCli.ts"

/** What a scripted model answers to these prompts of one conversation. */
export const answerTo = (...prompts: ReadonlyArray<string>): string =>
  `I was sent ${prompts.length} prompt${prompts.length === 1 ? "" : "s"}: ${JSON.stringify(prompts)}`

/** A home and an environment of one CLI, pointed at a model of its own kind of requests. */
export interface Desk {
  readonly cli: Real.RealCli
  readonly program: string
  readonly place: Real.PrivatePlace
  readonly env: Readonly<Record<string, string>>
  readonly remove: () => void
}

export interface Model {
  /** Makes a place in which a CLI talks to this model and to nothing else. */
  readonly desk: (cli: Real.RealCli) => Desk
  readonly close: () => Promise<void>
}

const environments = { claude: Real.claudeEnv, codex: Real.codexEnv, copilot: Real.copilotEnv }

export const model = async (): Promise<Model> => {
  const scope = Effect.runSync(Scope.make())
  const server = await Effect.runPromise(Effect.provideService(ModelServer.make(), Scope.Scope, scope))
  return {
    desk: (cli) => {
      const place = Real.makePrivatePlace()
      const env = environments[cli](place, { baseUrl: server.baseUrl({ type: "text" }, `bench-${randomUUID().slice(0, 8)}`), proxyUrl: server.url, apiKey: "sk-scripted-key-of-the-benchmarks" })
      return {
        cli,
        program: Real.programOf(cli),
        place,
        env: { ...env, PATH: `${path.dirname(process.execPath)}:${env["PATH"]}`, TURNPIKE_HOME: path.join(place.home, "turnpike") },
        remove: place.remove
      }
    },
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

export interface Ran {
  readonly ms: number
  readonly stdout: string
}

/** Runs a program to its end; the time is that of the whole process. One that fails ends the benchmark. */
export const run = async (desk: Desk, program: string, args: ReadonlyArray<string>, stdin: string, env: Readonly<Record<string, string>> = {}): Promise<Ran> => {
  const from = performance.now()
  const ended = await Real.run(program, args, { cwd: desk.place.work, env: { ...desk.env, ...env }, stdin, signal: AbortSignal.timeout(90_000) })
  const ms = performance.now() - from
  if (ended.code !== 0) {
    throw new Benchmark.Invalid(`${path.basename(program)} ${args.join(" ").slice(0, 200)} ended with ${ended.signal ?? `exit ${ended.code}`}: ${ended.stdout.slice(-500)}${ended.stderr.slice(-1500)}`)
  }
  return { ms, stdout: ended.stdout }
}

/** The CLI's own way to run one prompt, and to go on with that conversation. The prompt is on standard input. */
export const bare: Readonly<Record<Real.RealCli, { readonly first: (id: string) => ReadonlyArray<string>; readonly resume: (id: string) => ReadonlyArray<string> }>> = {
  claude: { first: (id) => ["--print", `--session-id=${id}`], resume: (id) => ["--print", `--resume=${id}`] },
  codex: {
    first: () => ["exec", "--skip-git-repo-check", "--sandbox=read-only", "-"],
    resume: () => ["exec", "--skip-git-repo-check", "--sandbox=read-only", "resume", "--last", "-"]
  },
  copilot: { first: (id) => ["--silent", "--no-color", `--session-id=${id}`], resume: (id) => ["--silent", "--no-color", `--resume=${id}`] }
}

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))

/** A program that prompts the CLI through its maker's SDK and prints each turn's answer and milliseconds. */
export const sdk: Readonly<Record<Real.RealCli, { readonly name: string; readonly file: string }>> = {
  claude: { name: "Claude Agent SDK", file: here("../peers/claude-agent-sdk.mjs") },
  codex: { name: "Codex SDK", file: here("../peers/codex-sdk.mjs") },
  copilot: { name: "Copilot SDK", file: here("../peers/copilot-sdk.mjs") }
}

export const acpx = here("../node_modules/acpx/dist/cli.js")
const acpAdapter = here("../node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js")

/** The beginning of every call of acpx: its adapter for Claude Code, which is given the same program. */
export const acpxArguments: ReadonlyArray<string> = ["--agent", `${process.execPath} ${acpAdapter}`, "--format", "quiet"]
export const acpxEnv = (desk: Desk): Readonly<Record<string, string>> => ({ CLAUDE_CODE_EXECUTABLE: desk.program })
