/**
 * Codex's program: where it is and what version it has.
 */
import { ProgramSearch, SessionEnvironment } from "@turnpike/harness"
import type { Harness, HarnessError } from "@turnpike/kernel"
import type { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"

/** The version that the real tests run. Any other is told in a notice. */
export const tested = "0.171.0"

const exe = process.platform === "win32" ? "codex.exe" : "codex"

/** How the npm package names the platforms, in its directory `vendor`. */
const triples: Readonly<Record<string, string>> = {
  "linux-x64": "x86_64-unknown-linux-musl",
  "linux-arm64": "aarch64-unknown-linux-musl",
  "darwin-x64": "x86_64-apple-darwin",
  "darwin-arm64": "aarch64-apple-darwin",
  "win32-x64": "x86_64-pc-windows-msvc",
  "win32-arm64": "aarch64-pc-windows-msvc"
}

/**
 * The native program behind the npm package's launcher: in the package of the
 * platform, beside it or within it. The launcher passes INT and TERM on, but not
 * its own death, after which Codex goes on with the turn.
 */
const nativeBehind = (launcher: string): ReadonlyArray<string> => {
  const scope = `${path.sep}@openai`
  const at = launcher.lastIndexOf(`${scope}${path.sep}codex${path.sep}`)
  const platform = `${process.platform}-${process.arch}`
  const triple = triples[platform]
  if (at === -1 || triple === undefined) return []
  const beside = launcher.slice(0, at + scope.length)
  const inside = ["vendor", triple, "bin", exe]
  return [
    path.join(beside, `codex-${platform}`, ...inside),
    path.join(beside, "codex", "node_modules", "@openai", `codex-${platform}`, ...inside),
    path.join(beside, "codex", ...inside)
  ]
}

const places = [
  "~/.local/bin/codex",
  "~/.npm-global/bin/codex",
  "~/.cargo/bin/codex",
  "/usr/local/bin/codex",
  "/opt/homebrew/bin/codex",
  "/usr/bin/codex"
]

type Session = Pick<Harness.SessionOptions, "program" | "inheritedEnv" | "cwd"> & Partial<Pick<Harness.SessionOptions, "env" | "redact">>

export const find = (session: Session): Effect.Effect<ProgramSearch.Found, HarnessError.HarnessError> =>
  ProgramSearch.find({
    harness: "Codex",
    program: session.program,
    names: ["codex"],
    cwd: session.cwd,
    env: { ...session.inheritedEnv, ...session.env },
    places,
    nativeBehind
  })

/** "codex-cli 0.171.0" */
const versionIn = (text: string): string | undefined => /^codex-cli (\d+\.\d+\.\d+\S*)\s*$/m.exec(text)?.[1]

export interface Identified extends ProgramSearch.Found {
  readonly version: string
}

export interface Program {
  /** Finds the program and makes sure that it is Codex, by its `--version`. Asked once for a file that does not change. */
  readonly identify: (session: Session) => Effect.Effect<Identified, HarnessError.HarnessError>
}

export const make = (supervisor: Supervisor.Service): Program => {
  const known = new Map<string, string>()
  return {
    identify: Effect.fn("CodexProgram.identify")(function*(session: Session) {
      const found = yield* find(session)
      const { mtimeMs, size } = fs.statSync(found.file)
      const identity = `${found.file}\0${mtimeMs}\0${size}`
      const remembered = known.get(identity)
      if (remembered !== undefined) return { ...found, version: remembered }
      const said = yield* ProgramSearch.describe({
        program: found.file,
        args: ["--version"],
        cwd: session.cwd,
        env: SessionEnvironment.changes({ inheritedEnv: session.inheritedEnv, env: session.env ?? {} })
      }, supervisor.spawn)
      const version = versionIn(said.text)
      if (version === undefined) {
        return yield* ProgramSearch.notTheHarness("Codex", found.file, said, session.redact ?? ((text) => text))
      }
      known.set(identity, version)
      return { ...found, version }
    })
  }
}
