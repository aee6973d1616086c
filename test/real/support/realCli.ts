/** Where the real CLIs are, and how to run one so that it sees nothing of this machine. */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

/** Node's names for the platform are also those of the packages. */
const platform = `${process.platform}-${process.arch}`

/** How the package of Codex names the platforms. */
const codexTarget: Readonly<Record<string, string>> = {
  "linux-x64": "x86_64-unknown-linux-musl",
  "linux-arm64": "aarch64-unknown-linux-musl",
  "darwin-x64": "x86_64-apple-darwin",
  "darwin-arm64": "aarch64-apple-darwin"
}

const programs = {
  claude: [`@anthropic-ai/claude-code-${platform}`, process.platform === "win32" ? "claude.exe" : "claude"],
  codex: [`@openai/codex-${platform}`, "vendor", codexTarget[platform] ?? platform, "bin", process.platform === "win32" ? "codex.exe" : "codex"],
  copilot: [`@github/copilot-${platform}`, process.platform === "win32" ? "copilot.exe" : "copilot"]
} as const

export type RealCli = keyof typeof programs

/** The native program of a CLI; no launcher stands between it and the test. */
export const programOf = (cli: RealCli): string => {
  const file = path.join(project, "node_modules", ...programs[cli])
  if (!fs.existsSync(file)) throw new Error(`${cli} is not installed at ${file}; run \`npm run test:real\`, which installs it`)
  return file
}

export const versionOf = (cli: RealCli): string => {
  const [name] = programs[cli]
  return JSON.parse(fs.readFileSync(path.join(project, "node_modules", name, "package.json"), "utf8")).version
}

/** A home directory, a configuration directory and a working directory that are empty and nobody else's. */
export interface PrivatePlace {
  readonly home: string
  readonly config: string
  readonly work: string
  /** What a CLI finds in its environment; nothing of the test's own environment is in it. */
  readonly env: Readonly<Record<string, string>>
  readonly remove: () => void
}

export const makePrivatePlace = (): PrivatePlace => {
  const home = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-real-")))
  const config = path.join(home, "config")
  const work = path.join(home, "work")
  fs.mkdirSync(config)
  fs.mkdirSync(work)
  return {
    home,
    config,
    work,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: home, LANG: "C.UTF-8", TERM: "dumb" },
    remove: () => fs.rmSync(home, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** The scripted model as a CLI has to know it. `proxyUrl` takes whatever the CLI would send elsewhere. */
export interface Model {
  readonly baseUrl: string
  readonly proxyUrl: string
  readonly apiKey: string
}

/** What makes Claude Code talk to a scripted model and to nothing else; observed with 2.1.332. */
export const claudeEnv = (place: PrivatePlace, model: Model): Readonly<Record<string, string>> => ({
  ...place.env,
  CLAUDE_CONFIG_DIR: place.config,
  ANTHROPIC_BASE_URL: model.baseUrl,
  ANTHROPIC_API_KEY: model.apiKey,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  DISABLE_TELEMETRY: "1",
  DISABLE_ERROR_REPORTING: "1",
  HTTP_PROXY: model.proxyUrl,
  HTTPS_PROXY: model.proxyUrl,
  NO_PROXY: "127.0.0.1"
})

/**
 * The same for Codex, observed with 0.171.0, which takes its model's service from
 * `config.toml` alone. What a test has put into `more.toml` beside it comes after.
 */
export const codexEnv = (place: PrivatePlace, model: Model): Readonly<Record<string, string>> => {
  const more = path.join(place.config, "more.toml")
  fs.writeFileSync(
    path.join(place.config, "config.toml"),
    `model = "gpt-5.4"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "${model.baseUrl}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1

${fs.existsSync(more) ? fs.readFileSync(more, "utf8") : ""}`
  )
  return {
    ...place.env,
    CODEX_HOME: place.config,
    SCRIPTED_KEY: model.apiKey,
    HTTP_PROXY: model.proxyUrl,
    HTTPS_PROXY: model.proxyUrl,
    NO_PROXY: "127.0.0.1"
  }
}

/** The same for Copilot, observed with 1.0.102: Chat Completions, and no GitHub. */
export const copilotEnv = (place: PrivatePlace, model: Model): Readonly<Record<string, string>> => ({
  ...place.env,
  COPILOT_HOME: place.config,
  COPILOT_PROVIDER_BASE_URL: `${model.baseUrl}/v1`,
  COPILOT_PROVIDER_TYPE: "openai",
  COPILOT_PROVIDER_WIRE_API: "completions",
  COPILOT_PROVIDER_API_KEY: model.apiKey,
  COPILOT_MODEL: "gpt-5.4",
  COPILOT_OFFLINE: "true",
  COPILOT_AUTO_UPDATE: "false",
  HTTP_PROXY: model.proxyUrl,
  HTTPS_PROXY: model.proxyUrl,
  NO_PROXY: "127.0.0.1"
})

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end with the prompt on its stdin, which is then closed. */
export const run = (
  program: string,
  args: ReadonlyArray<string>,
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>>; readonly stdin: string; readonly signal?: AbortSignal }
): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: options.env,
      stdio: ["pipe", "pipe", "pipe"],
      killSignal: "SIGKILL",
      ...(options.signal === undefined ? {} : { signal: options.signal })
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text)
    child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
    // A program may end without reading its prompt; how it ended says more.
    child.stdin.on("error", () => {})
    child.stdin.end(options.stdin)
    child.on("error", reject)
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
