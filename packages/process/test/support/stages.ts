/**
 * Where the scenarios run: each containment as root, as an ordinary user, without
 * tini, and under Deno; and the start of a driver there.
 *
 * A stage that cannot be set up is named with the reason. It is left out, unless
 * TURNPIKE_REQUIRE_CONTAINMENT is 1: then its tests fail.
 */
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import type { Strategy } from "../../src/Containment.ts"
import type { Order } from "./driver.ts"
import * as Specimens from "./specimens.ts"

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../../..")
const driver = path.join(root, "packages/process/test/support/driver.ts")

export const isRoot = process.geteuid?.() === 0
export const required = process.env["TURNPIKE_REQUIRE_CONTAINMENT"] === "1"

/** nobody: every Linux has it, and it owns nothing. */
const ordinaryUser = ["--reuid=65534", "--regid=65534", "--clear-groups"]

export type User = "root" | "an ordinary user"
export type Runtime = "Node" | "Deno"

export interface Stage {
  readonly title: string
  readonly strategy: Strategy
  readonly user: User
  readonly runtime: Runtime
  readonly tini: string | false | undefined
  /** Put before the driver's command. */
  readonly within?: ReadonlyArray<string>
  /** Why it cannot be set up; `undefined` when it can. */
  readonly missing: string | undefined
}

const has = (program: string) => (process.env["PATH"] ?? "").split(path.delimiter).some((directory) => fs.existsSync(path.join(directory, program)))

/** The program itself and not the launcher: a signal has to reach it. */
const deno = (): string | undefined => {
  if (process.env["TURNPIKE_DENO"] !== undefined) return process.env["TURNPIKE_DENO"]
  const directory = path.join(root, "test/deno/runtime/node_modules/@deno")
  try {
    return fs.readdirSync(directory).map((name) => path.join(directory, name, "deno")).find((file) => fs.existsSync(file))
  } catch {
    return undefined
  }
}

const asUser = (user: User): ReadonlyArray<string> => user === "an ordinary user" && isRoot ? ["setpriv", ...ordinaryUser] : []

/** Whether the user may read the driver and execute this Node where they are. */
const canReach = (user: User): boolean =>
  [["-r", driver], ["-x", process.execPath]].every(([flag, file]) => {
    const [program, ...args] = [...asUser(user), "test", flag!, file!]
    return spawnSync(program!, args).status === 0
  })

/**
 * Runs a command with this repository, wherever it is, under a path that the
 * ordinary user can reach. A clone in root's home is hidden from others; a bind
 * mount in a mount namespace of its own shows it, below `directory`, without
 * changing a permission.
 */
const withRepositoryInReach = (command: ReadonlyArray<string>, user: User, directory: string): ReadonlyArray<string> => {
  if (user === "root" || !isRoot || canReach(user)) return [...asUser(user), ...command]
  const below = path.join(directory, "repository")
  fs.mkdirSync(below)
  const moved = command.map((part) => part.startsWith(`${root}/`) ? `${below}${part.slice(root.length)}` : part)
  return ["unshare", "--mount", "sh", "-c", "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"", "sh", root, below, ...asUser(user), ...moved]
}

/** Why a stage cannot be set up; the supervisor's own probe decides about the containment. */
const whyMissing = (strategy: Strategy, user: User, runtime: Runtime, tini: string | false | undefined): string | undefined => {
  if (process.platform !== "linux") return `these tests count processes through /proc, and this is ${process.platform}`
  if (user === "root" && !isRoot) return "the tests do not run as root"
  if (user === "an ordinary user" && isRoot && !has("setpriv")) return "setpriv (util-linux) is not installed, so root cannot become an ordinary user"
  if (runtime === "Deno" && deno() === undefined) return "Deno is not installed; run `node scripts/install-deno.mjs`"
  if (strategy === "pid-namespace" && tini === undefined && !has("tini")) return "tini is not installed; run `apt-get install tini`"
  if (strategy === "bwrap" && !has("bwrap")) return "bwrap is not installed; run `apt-get install bubblewrap`"
  return undefined
}

const stage = (strategy: Strategy, user: User, runtime: Runtime = "Node", tini?: false): Stage => ({
  title: `${strategy}${tini === false ? " without tini" : ""}, as ${user}, on ${runtime}`,
  strategy,
  user,
  runtime,
  tini,
  missing: whyMissing(strategy, user, runtime, tini)
})

/** Every containment for one user on one runtime. */
export const stages = (user: User, runtime: Runtime = "Node"): ReadonlyArray<Stage> => [
  stage("pid-namespace", user, runtime),
  stage("pid-namespace", user, runtime, false),
  stage("bwrap", user, runtime),
  stage("group", user, runtime)
]

/** A pid namespace under a `/proc` that shows the numbers of the one above: pids from it must not be killed. */
export const withForeignProc: Stage = {
  ...stage("group", "root"),
  title: "group, under a /proc of another pid namespace",
  within: ["unshare", "--pid", "--fork", "--kill-child=KILL"]
}

const commandOf = (stage: Stage, order: Omit<Order, "strategy" | "tini">): ReadonlyArray<string> => {
  const full: Order = { ...order, strategy: stage.strategy, ...(stage.tini === undefined ? {} : { tini: stage.tini }) }
  const runtime = stage.runtime === "Deno"
    ? [deno()!, "run", "--allow-all", "--no-check", "--conditions=turnpike-source"]
    : [process.execPath, "--conditions=turnpike-source"]
  return [...stage.within ?? [], ...withRepositoryInReach([...runtime, driver, JSON.stringify(full)], stage.user, order.directory)]
}

/** Starts a driver; its caller ends it. */
export const startDriver = (stage: Stage, order: Omit<Order, "strategy" | "tini">) => {
  const [program, ...args] = commandOf(stage, order) as [string, ...Array<string>]
  return spawn(program, args, {
    cwd: "/",
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, HOME: order.directory, DENO_DIR: path.join(order.directory, "deno"), DENO_NO_UPDATE_CHECK: "1" }
  })
}

export type Outcome = { readonly facts: unknown } | { readonly failure: string }

/** Runs scenarios on a stage; answers what each said, by its name, and what was left alive at the end. */
export const perform = async (
  stage: Stage,
  names: ReadonlyArray<string>,
  concurrency: number,
  prepare: (directory: string) => void = () => {}
) => {
  const directory = Specimens.makeDirectory("stage")
  prepare(directory)
  const child = startDriver(stage, { mode: "scenarios", names, concurrency, directory })
  let output = ""
  let errors = ""
  child.stdout.on("data", (chunk) => output += chunk)
  child.stderr.on("data", (chunk) => errors += chunk)
  const code = await new Promise<number | string | null>((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)))
  const outcomes = new Map<string, Outcome>()
  for (const line of output.split("\n").filter((line) => line !== "")) {
    const { name, ...outcome } = JSON.parse(line) as { readonly name: string } & Outcome
    outcomes.set(name, outcome)
  }
  const left = Specimens.alive(directory)
  Specimens.end(left)
  fs.rmSync(directory, { recursive: true, force: true })
  return { outcomes, code, errors, left }
}
