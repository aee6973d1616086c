/**
 * Makes programs that pretend to be a vendor's command: they speak its protocol
 * and do what a scenario says, or repeat a recording byte for byte.
 *
 * Such a program is a small launcher in front of the scripted agent's
 * executable, which belongs to `@turnpike/harness-scripted`. It is looked for
 * when a program is made, not imported: install that package beside this one,
 * or name the executable.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import type { Json } from "./DialectWords.ts"
import * as Situation from "./Situation.ts"

/** The scripted agent's executable is not to be found, or the launcher could not be written; `detail` says which, and what to do. */
export class PlayerUnavailable extends Schema.TaggedError<PlayerUnavailable>()("PlayerUnavailable", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
}

const extension = import.meta.url.endsWith(".ts") ? "ts" : "js"

/** The file of a dialect of this package. */
const dialectFile = (name: string): string => fileURLToPath(new URL(`./dialects/${name}.${extension}`, import.meta.url))

/** The module that speaks Claude Code's stream-json protocol. */
export const claude: string = dialectFile("ClaudeDialect")

/** The module that speaks the protocol of Codex's app-server. */
export const codex: string = dialectFile("CodexDialect")

/** The module that speaks the protocol of Copilot's server. */
export const copilot: string = dialectFile("CopilotDialect")

/** Finds the package as the working directory's own modules would, else beside this package. */
const findPackage = (): string | undefined => {
  try {
    return createRequire(path.join(process.cwd(), "package.json")).resolve("@turnpike/harness-scripted/package.json")
  } catch {
    const beside = fileURLToPath(new URL("../../harness-scripted/package.json", import.meta.url))
    return fs.existsSync(beside) ? beside : undefined
  }
}

const missing = (detail: string) => Effect.fail(new PlayerUnavailable({ detail }))

const Manifest = Schema.Struct({ bin: Schema.Struct({ "turnpike-scripted-agent": Schema.NonEmptyString }) })
const decodeManifest = Schema.decodeUnknownResult(Schema.fromJsonString(Manifest))

/** The scripted agent's executable. */
export const agent: Effect.Effect<string, PlayerUnavailable> = Effect.suspend(() => {
  const found = findPackage()
  if (found === undefined) {
    return missing("the scripted agent, which plays dialects, was not found: install @turnpike/harness-scripted beside @turnpike/testkit, or name its executable")
  }
  const manifest = decodeManifest(fs.readFileSync(found, "utf8"))
  if (Result.isFailure(manifest)) return missing(`${found} names no turnpike-scripted-agent: install @turnpike/harness-scripted again`)
  return Effect.succeed(path.join(path.dirname(found), manifest.success.bin["turnpike-scripted-agent"]))
})

/** A file that a player is made of. */
const present = (what: string, file: string): Effect.Effect<string, PlayerUnavailable> =>
  Effect.suspend(() => (fs.existsSync(file) ? Effect.succeed(file) : missing(`there is no ${what} ${file}`)))

/**
 * Players are started by the hundred: compiled once, they start four times as
 * fast. The cache is Node's own, stays in the directory for temporary files,
 * and is not used where it cannot be written.
 */
const compileCache = `export NODE_COMPILE_CACHE="\${NODE_COMPILE_CACHE:-\${TMPDIR:-/tmp}/turnpike-player-cache}"`

const quoted = (argument: string): string => `'${argument.replaceAll("'", "'\\''")}'`

const failed = (cause: unknown): PlayerUnavailable =>
  new PlayerUnavailable({ detail: `the player's files could not be written: ${cause instanceof Error ? cause.message : String(cause)}` })

/** A directory that is gone when the scope ends. */
const directory = Effect.acquireRelease(
  Effect.try({ try: () => fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-player-")), catch: failed }),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
)

interface LaunchOptions {
  /** The scripted agent's executable; looked for unless given. */
  readonly agent?: string | undefined
  /** The program's file name, such as `claude`. */
  readonly name?: string | undefined
}

/** `args` are the executable's arguments; they may name files that they write to the directory. */
const launcher = ({ agent: named, name = "agent" }: LaunchOptions, args: (directory: string) => ReadonlyArray<string>) =>
  Effect.gen(function*() {
    if (path.basename(name) !== name || name === "") {
      return yield* missing(`the program's name is ${JSON.stringify(name)}; it has to be a file name without a directory`)
    }
    const executable = yield* present("scripted agent", named ?? (yield* agent))
    const made = yield* directory
    return yield* Effect.try({
      try: () => {
        const runtime = process.versions["deno"] === undefined ? [process.execPath] : [process.execPath, "run", "-A", "--quiet"]
        const line = [...runtime, executable, ...args(made)].map(quoted).join(" ")
        const bin = path.join(made, "bin")
        fs.mkdirSync(bin)
        const file = path.join(bin, name)
        fs.writeFileSync(file, `#!/bin/sh\n${compileCache}\nexec ${line} "$@"\n`, { mode: 0o755 })
        return file
      },
      catch: failed
    })
  })

export interface PlayOptions extends LaunchOptions {
  /** The dialect's module, such as {@link claude}; absent means the scripted agent's own protocol. */
  readonly dialect?: string | undefined
}

/**
 * Makes a program that plays a scenario. It takes the vendor's own arguments and
 * lasts as long as the scope. A scenario with a mistake is told by the program:
 * exit 2, and every place that is wrong on standard error.
 */
export const program = (
  scenario: { readonly [key: string]: Json },
  options: PlayOptions = {}
): Effect.Effect<string, PlayerUnavailable, Scope.Scope> =>
  Effect.gen(function*() {
    const own = options.dialect === undefined ? [] : ["--dialect-module", path.resolve(yield* present("dialect", options.dialect)), "--"]
    return yield* launcher(options, (made) => {
      const file = path.join(made, "scenario.json")
      fs.writeFileSync(file, JSON.stringify(scenario))
      return ["--scenario", file, ...own]
    })
  })

/**
 * Makes a program that repeats a recording: a file with what the real program
 * wrote, with its `.meta.json` beside it. It reads input but does not understand
 * it, and takes any arguments. `speed` is how many times faster than recorded;
 * 0, which is what is done unless given, leaves no pauses.
 */
export const replay = (
  recording: string,
  options: LaunchOptions & { readonly speed?: number } = {}
): Effect.Effect<string, PlayerUnavailable, Scope.Scope> =>
  Effect.flatMap(present("recording", recording), (file) =>
    launcher(options, () => ["--speed", String(options.speed ?? 0), "--replay", path.resolve(file), "--"]))

/** Makes a program that brings a situation about. */
export const situation = (
  which: Situation.Situation,
  options: PlayOptions & { readonly tools: Situation.ToolNames }
): Effect.Effect<string, PlayerUnavailable, Scope.Scope> => program(Situation.scenario(which, options.tools), options)
