/**
 * A program that its vendor has people install: where it is, what version it
 * has, and whether that version is one to work with.
 */
import { Failure, type TurnEvent } from "@turnpike/contract"
import { type Harness, HarnessError, Redaction } from "@turnpike/kernel"
import type { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Notices from "./Notices.ts"
import * as ProgramSearch from "./ProgramSearch.ts"
import * as SessionEnvironment from "./SessionEnvironment.ts"

export interface Description extends Pick<ProgramSearch.Query, "names"> {
  /** The harness's name. */
  readonly harness: string
  /** What people call the program, for messages. */
  readonly product: string
  /** Where else to look than in PATH and where installers usually put programs: absolute paths, or `~/…`. */
  readonly places?: ReadonlyArray<string>
  /** The native programs that may stand behind a launcher, given the launcher's own path with links followed. */
  readonly nativeBehind?: (launcher: string) => ReadonlyArray<string>
  /** The npm package that brings it, where there is one. */
  readonly npmPackage?: string
  /** The program's own command that updates it, where it has one. */
  readonly update?: string
  /** Finds the version in what the program says when it is asked for it; the first group is the version. */
  readonly version: RegExp
  /** The version that the real tests run. Any other works with a notice. */
  readonly tested: string
  /** The oldest version that is known to work, where one is known not to. */
  readonly oldest?: string
  /** Variables for the question after the version, such as one that keeps it from updating itself. */
  readonly environment?: Readonly<Record<string, string>>
}

/** What is asked about: a session, or a machine. */
export type Asked = Harness.DiagnosisOptions & Partial<Pick<Harness.SessionOptions, "env" | "redact">>

export interface Identified extends ProgramSearch.Found {
  readonly version: string
}

export interface InstalledProgram {
  /**
   * Finds the program and makes sure that it is what it is taken for, by its
   * `--version`. Asked once for a file that does not change.
   *
   * Fails with `HARNESS_NOT_FOUND`, with `HARNESS_NOT_A_HARNESS` where it answers
   * anything else, and with `HARNESS_PROTOCOL` where it is too old.
   */
  readonly identify: (asked: Asked) => Effect.Effect<Identified, HarnessError.HarnessError>
  /** Tells what is found, with what `more` finds of a program that was identified. Never fails. */
  readonly diagnose: (
    asked: Harness.DiagnosisOptions,
    more: (identified: Identified) => Effect.Effect<ReadonlyArray<Harness.Finding>>
  ) => Effect.Effect<Harness.Diagnosis>
}

/** Orders two versions such as 2.1.9 and 2.1.10: negative, 0, or positive. What follows the third number does not count. */
export const compareVersions = (one: string, other: string): number => {
  const numbers = (version: string) => version.split(/[.\-+]/).slice(0, 3).map(Number)
  const [a, b] = [numbers(one), numbers(other)]
  for (let index = 0; index < 3; index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

const installing = ({ npmPackage }: Description, version = ""): string | undefined =>
  npmPackage === undefined ? undefined : `npm install -g ${npmPackage}${version === "" ? "" : `@${version}`}`

/** Why a program that speaks another protocol than the tested version cannot be used, and which version can. */
export const otherProtocol = (description: Description, message: string): HarnessError.HarnessError => {
  const command = installing(description, description.tested)
  return HarnessError.notStarted(
    Failure.make("HARNESS_PROTOCOL", message, { remedy: `Use the version that is tested${command === undefined ? `, ${description.tested}` : `: ${command}`}.` })
  )
}

const versionFinding = (description: Description, version: string): Harness.Finding => {
  const { tested } = description
  if (version === tested) return { level: "ok", message: `version ${version} is the one that is tested` }
  const command = installing(description, tested)
  return {
    level: "warning",
    message: `version ${version} is not the one that is tested, ${tested}`,
    ...(command === undefined ? {} : { remedy: `If something is wrong, try that version: ${command}` })
  }
}

/** What a session says of a version that is not the tested one. */
export const untested = ({ product, tested }: Pick<Description, "product" | "tested">, version: string): ReadonlyArray<TurnEvent.Of<"notice">> =>
  version === tested ? [] : [Notices.make("untested_version", `${product} ${version} is not the version that is tested, ${tested}`)]

/** Takes out of text what the environment that is asked about holds as secrets. */
const redactorOf = ({ env = {}, inheritedEnv, redact }: Asked): Redaction.Redactor =>
  redact ?? Redaction.withSecrets(Redaction.secretsOf({ ...inheritedEnv, ...env }))

/** Asks the program something that costs no token, such as how it is signed in. What it says is redacted. */
export const ask = (
  { environment }: Pick<Description, "environment">,
  asked: Asked,
  { file }: Pick<ProgramSearch.Found, "file">,
  args: ReadonlyArray<string>,
  supervisor: Supervisor.Service
): Effect.Effect<ProgramSearch.SelfDescription, HarnessError.HarnessError> => {
  const { cwd, env = {}, inheritedEnv } = asked
  const command = { program: file, args, cwd, env: SessionEnvironment.changes({ inheritedEnv, env }, environment) }
  return Effect.map(ProgramSearch.describe(command, supervisor.spawn), ({ exit, text }) => ({ exit, text: redactorOf(asked)(text) }))
}

/** Makes what finds the program. It starts what it asks through the supervisor. */
export const make = (description: Description, supervisor: Supervisor.Service): InstalledProgram => {
  const { harness, names, nativeBehind = () => [], oldest, places = [], product } = description
  const install = installing(description)
  const known = new Map<string, string>()

  const identify = Effect.fn("InstalledProgram.identify")(function*(asked: Asked) {
    const variables = { ...asked.inheritedEnv, ...asked.env }
    const found = yield* ProgramSearch.find({
      harness: product,
      program: asked.program,
      names,
      cwd: asked.cwd,
      env: variables,
      places: [...places, ...ProgramSearch.usualDirectories(variables).flatMap((directory) => names.map((name) => path.join(directory, name)))],
      nativeBehind,
      ...(install === undefined ? {} : { install })
    })
    const { mtimeMs, size } = fs.statSync(found.file)
    const identity = `${found.file}\0${mtimeMs}\0${size}`
    const remembered = known.get(identity)
    if (remembered !== undefined) return { ...found, version: remembered }
    const said = yield* ask(description, asked, found, ["--version"], supervisor)
    const version = description.version.exec(said.text)?.[1]
    if (version === undefined) {
      return yield* ProgramSearch.notTheHarness(
        product,
        found.file,
        said,
        redactorOf(asked),
        install === undefined ? undefined : `Name the program of ${product} with --program; if there is none, install it: ${install}.`
      )
    }
    if (oldest !== undefined && compareVersions(version, oldest) < 0) {
      return yield* HarnessError.notStarted(
        Failure.make("HARNESS_PROTOCOL", `${found.file} is ${product} ${version}; the oldest that works here is ${oldest}`, {
          remedy: `Update ${product}: ${[description.update === undefined ? undefined : `\`${description.update}\``, install].filter((way) => way !== undefined).join(", or ")}.`
        })
      )
    }
    known.set(identity, version)
    return { ...found, version }
  })

  return {
    identify,
    diagnose: (asked, more) =>
      Effect.gen(function*() {
        const identified = yield* Effect.result(identify(asked))
        if (Result.isFailure(identified)) {
          const { code, message, remedy } = identified.failure.failure
          return { harness, usable: false, findings: [{ level: "problem", message, remedy, code }] }
        }
        const { file, isAbandoned, launcher, version } = identified.success
        const findings: ReadonlyArray<Harness.Finding> = [
          isAbandoned
            ? {
              level: "warning",
              message: `the program is ${file}, a launcher, and the native program that it is to start is not where npm puts it; stopped, the launcher may leave what it started behind`,
              remedy: `Install it anew: ${install ?? "with its installer"}.`
            }
            : { level: "ok", message: launcher === undefined ? `the program is ${file}` : `the program is ${file}, behind ${launcher}` },
          versionFinding(description, version),
          ...(yield* more(identified.success))
        ]
        return { harness, usable: findings.every(({ level }) => level !== "problem"), program: file, version, findings }
      })
  }
}
