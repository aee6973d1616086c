/**
 * Finds a harness's program and asks it what it is.
 *
 * What is found is a file to be executed, never a command for a shell. Where an
 * installation puts a JavaScript launcher in front of a native program, the
 * native one is taken: launchers outlive or abandon what they started.
 */
import { Failure } from "@turnpike/contract"
import { HarnessError, Redaction } from "@turnpike/kernel"
import { type Child, type Command, LineSplitter, type ProcessError } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Failures from "./Failures.ts"

export interface Query {
  /** For messages. */
  readonly harness: string
  /** What the caller named: a path, absolute or relative to `cwd`, or a name to be looked for in PATH. */
  readonly program: string | undefined
  /** The names of the harness's command, the usual one first. */
  readonly names: ReadonlyArray<string>
  readonly cwd: string
  /** PATH and HOME are taken from here. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where else to look: absolute paths, or `~/…`. */
  readonly places: ReadonlyArray<string>
  /** The native programs that may stand behind a launcher, given the launcher's own path with links followed. */
  readonly nativeBehind: (launcher: string) => ReadonlyArray<string>
  /** The command that installs the program, for whoever does not have it. */
  readonly install?: string
}

export interface Found {
  /** The file to execute, absolute. */
  readonly file: string
  /** The launcher in front of it, where there is one. */
  readonly launcher: string | undefined
  /** Whether it is itself such a launcher, and what it starts is not where its installer puts it. */
  readonly isAbandoned: boolean
  readonly foundBy: "option" | "path" | "place"
}

const isProgram = (file: string): boolean => {
  try {
    fs.accessSync(file, fs.constants.X_OK)
    return fs.statSync(file).isFile()
  } catch {
    return false
  }
}

/** What programs for a machine begin with: ELF, Mach-O in its four forms, and those of Windows. */
const natives = ["7f454c46", "feedface", "feedfacf", "cefaedfe", "cffaedfe", "cafebabe", "4d5a"]

/** Whether it is a text that something else runs: a script, or a stub without the first line of one. */
const isText = (file: string): boolean => {
  try {
    const descriptor = fs.openSync(file, "r")
    try {
      const start = Buffer.alloc(4)
      const read = start.subarray(0, fs.readSync(descriptor, start, 0, 4, 0)).toString("hex")
      return !natives.some((beginning) => read.startsWith(beginning))
    } finally {
      fs.closeSync(descriptor)
    }
  } catch {
    // Executable and unreadable: then it is no text that could run.
    return false
  }
}

const behind = (file: string, query: Query): Omit<Found, "foundBy"> => {
  if (!isText(file)) return { file, launcher: undefined, isAbandoned: false }
  const launcher = fs.realpathSync(file)
  const natives = query.nativeBehind(launcher)
  const native = natives.find((candidate) => candidate !== launcher && isProgram(candidate))
  return native === undefined
    ? { file, launcher: undefined, isAbandoned: natives.length > 0 }
    : { file: native, launcher: file, isAbandoned: false }
}

/** The directory that npm's settings name for programs; the file is read as far as that one line. */
const npmPrefix = (env: Query["env"], home: string | undefined): ReadonlyArray<string> => {
  const named = env["npm_config_prefix"] ?? env["NPM_CONFIG_PREFIX"]
  if (named !== undefined) return [named]
  try {
    const prefix = home === undefined ? undefined : /^\s*prefix\s*=\s*(\S+)\s*$/m.exec(fs.readFileSync(path.join(home, ".npmrc"), "utf8"))?.[1]
    return prefix === undefined ? [] : [prefix.replace(/^(?:~|\$\{HOME\})(?=\/)/, home ?? "")]
  } catch {
    // No such file: npm's own choice, which is beside Node.
    return []
  }
}

/**
 * Where installers put programs that are not in PATH, as in a job of cron: npm's
 * directory for all of a user's packages, then those of other installers. Only
 * absolute ones are named.
 */
export const usualDirectories = (env: Query["env"]): ReadonlyArray<string> => {
  const home = env["HOME"]
  const own = (...names: ReadonlyArray<string>) => home === undefined ? [] : names.map((name) => path.join(home, name))
  return [
    ...npmPrefix(env, home).map((prefix) => path.join(prefix, "bin")),
    path.dirname(process.execPath),
    ...own(".local/bin", ".npm-global/bin", ".npm-packages/bin"),
    ...(env["PNPM_HOME"] === undefined ? own(".local/share/pnpm", "Library/pnpm") : [env["PNPM_HOME"]]),
    ...own(".bun/bin", ".volta/bin"),
    ...(env["HOMEBREW_PREFIX"] === undefined ? [] : [path.join(env["HOMEBREW_PREFIX"], "bin")]),
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/usr/bin"
  ].filter((directory) => path.isAbsolute(directory))
}

const inPath = (name: string, env: Query["env"], cwd: string): ReadonlyArray<string> =>
  (env["PATH"] ?? "").split(path.delimiter).filter((directory) => directory !== "").map((directory) => path.resolve(cwd, directory, name))

/** Finds the program. Fails with HARNESS_NOT_FOUND, naming where it looked. Starts nothing. */
export const find = (query: Query): Effect.Effect<Found, HarnessError.HarnessError> =>
  Effect.suspend(() => {
    const { cwd, env, harness, install, program } = query
    const more = install === undefined
      ? {}
      : { remedy: `Install ${harness} (${install}), or name its program with --program.` }
    const notFound = (message: string) => Effect.fail(HarnessError.notStarted(Failure.make("HARNESS_NOT_FOUND", message, more)))
    if (program !== undefined) {
      const isPath = program.includes("/") || program.includes(path.sep)
      const candidates = isPath ? [path.resolve(cwd, program)] : inPath(program, env, cwd)
      const file = candidates.find(isProgram)
      if (file !== undefined) return Effect.succeed<Found>({ ...behind(file, query), foundBy: "option" })
      const there = candidates.find((candidate) => fs.existsSync(candidate))
      return there === undefined
        ? notFound(isPath ? `there is no program ${program}` : `there is no program ${program} in PATH (${env["PATH"] ?? ""})`)
        : Effect.fail(HarnessError.notStarted(
          Failure.make("SPAWN_FAILED", `${there} cannot be executed: it is a directory or lacks the permission (chmod +x)`)
        ))
    }
    for (const name of query.names) {
      const file = inPath(name, env, cwd).find(isProgram)
      if (file !== undefined) return Effect.succeed<Found>({ ...behind(file, query), foundBy: "path" })
    }
    // What is relative would be another place in every directory.
    const home = path.isAbsolute(env["HOME"] ?? "") ? env["HOME"] : undefined
    const places = query.places.flatMap((place) =>
      !place.startsWith("~/") ? [place] : home === undefined ? [] : [path.join(home, place.slice(2))]
    )
    const file = places.find(isProgram)
    if (file !== undefined) return Effect.succeed<Found>({ ...behind(file, query), foundBy: "place" })
    const looked = [...new Set(places.map((place) => path.dirname(place)))].map((directory) =>
      home !== undefined && directory.startsWith(`${home}${path.sep}`) ? `~${directory.slice(home.length)}` : directory
    )
    return notFound(`the program of ${harness} (${query.names.join(", ")}) is neither in PATH (${env["PATH"] ?? ""}) nor in ${looked.join(", ")}`)
  })

/** What a program said about itself. */
export interface SelfDescription {
  /** Its output and then its errors, at most 64 KiB. */
  readonly text: string
  /** `undefined` where its time was up. */
  readonly exit: Child.ProcessExit | undefined
}

/**
 * Runs a program that describes itself and ends, such as `claude --version`,
 * with nothing on its input. Whatever it starts is gone afterwards.
 */
export const describe = (
  command: Command.Command,
  spawn: (command: Command.Command) => Effect.Effect<Child.Child, ProcessError.ProcessError, Scope.Scope>,
  withinMs = 10_000
): Effect.Effect<SelfDescription, HarnessError.HarnessError> =>
  Effect.gen(function*() {
    const child = yield* Effect.mapError(spawn({ ...command, maxLineBytes: LineSplitter.defaults.headBytes }), Failures.notStarted)
    yield* child.stdin.end
    const lines: Array<string> = []
    let size = 0
    const read = Stream.runForEach(child.lines, (line) =>
      Effect.sync(() => {
        const text = line._tag === "Text" ? line.text : line._tag === "InvalidUtf8" ? line.lossyText : `(a line of ${line.bytesTotal} bytes)`
        if (size < 65_536) lines.push(text)
        size += text.length
      }))
    // Output that cannot be read is like no output: the exit and the errors still tell.
    const exit = yield* Effect.andThen(Effect.ignore(read), child.exit).pipe(Effect.timeoutOption(withinMs))
    const { text } = yield* child.stderr
    return { text: [...lines, text].join("\n").slice(0, 65_536), exit: Option.getOrUndefined(exit) }
  }).pipe(Effect.scoped)

/** The failure of a program that says of itself that it is something else. */
export const notTheHarness = (
  harness: string,
  file: string,
  said: SelfDescription,
  redact: Redaction.Redactor,
  remedy?: string
): HarnessError.HarnessError =>
  HarnessError.notStarted(Failure.make(
    "HARNESS_NOT_A_HARNESS",
    Redaction.failureTail({
      what: `${file} is not the program of ${harness}: asked for its version it`,
      exit: said.exit === undefined ? "did not answer in time" : Failures.describeExit(said.exit),
      output: said.text,
      redact
    }),
    remedy === undefined ? {} : { remedy }
  ))
