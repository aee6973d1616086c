#!/usr/bin/env node
/**
 * The scripted agent's command line.
 *
 * Exit codes are the scenario's, but for 2: a wrong flag, a scenario that
 * cannot be read or is none. Nothing of it loads a dependency, because it is
 * started once for each session of a test.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { DialectModule } from "../player/Dialect.ts"
import * as Output from "../player/Output.ts"
import * as Player from "../player/Player.ts"
import * as Replay from "../player/Replay.ts"
import * as ScriptedDialect from "../player/ScriptedDialect.ts"
import { describe, describeProblems, problemsOf, type Scenario } from "../ScenarioLanguage.ts"

const help = `turnpike-scripted-agent: an agent that does what a scenario says

  turnpike-scripted-agent [--scenario FILE|NAME] [--session ID | --resume ID]
  turnpike-scripted-agent [--scenario FILE|NAME] --dialect-module FILE [-- ARGUMENT...]
  turnpike-scripted-agent --replay RECORDING [--speed N] [-- ARGUMENT...]

It reads one JSON object a line from standard input and writes one a line to
standard output. Without --scenario it plays \`demo\`.

  --scenario FILE|NAME   a JSON file (with a / or ending in .json) or a built-in scenario
  --session ID           begin a session under this id
  --resume ID            continue a session
  --dialect-module FILE  speak the protocol of this module; it reads what follows --
  --replay RECORDING     write a recorded run byte for byte, at its pace
  --speed N              so many times faster; 0 leaves no pauses (default 1)
  --list                 list the built-in scenarios
  --print NAME           print a built-in scenario, to begin one's own with
  --check FILE           check a scenario and exit with 0 or 2
  --describe             describe the language of scenarios
  --help, --version
`

const builtIns = fileURLToPath(new URL("../../scenarios/", import.meta.url))

/** Ends with a sentence on standard error. */
const refuse = (message: string): never => {
  process.stderr.write(`turnpike-scripted-agent: ${message}\n`)
  process.exit(2)
}

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const names = (): ReadonlyArray<string> =>
  fs.readdirSync(builtIns).filter((file) => file.endsWith(".json")).map((file) => file.slice(0, -".json".length)).sort()

const fileOf = (scenario: string): string => {
  if (scenario.includes("/") || scenario.endsWith(".json")) return path.resolve(scenario)
  if (!names().includes(scenario)) return refuse(`there is no scenario ${scenario}; --list lists them, and a file's name has a / or ends in .json`)
  return path.join(builtIns, `${scenario}.json`)
}

const readScenario = (scenario: string): Scenario => {
  const file = fileOf(scenario)
  let value: unknown
  try {
    value = JSON.parse(fs.readFileSync(file, "utf8"))
  } catch (cause) {
    return refuse(`the scenario ${file} cannot be read: ${messageOf(cause)}`)
  }
  const problems = problemsOf(value)
  if (problems.length > 0) return refuse(`${file} is not a scenario:\n${describeProblems(problems)}\n--describe describes the language`)
  return value as Scenario
}

const loadDialect = async (file: string): Promise<DialectModule> => {
  try {
    const module: unknown = await import(pathToFileURL(path.resolve(file)).href)
    if (typeof (module as Partial<DialectModule>).makeDialect === "function") return module as DialectModule
  } catch (cause) {
    return refuse(`the dialect ${file} cannot be loaded: ${messageOf(cause)}`)
  }
  return refuse(`${file} exports no makeDialect`)
}

interface Arguments {
  scenario: string
  dialect: string | undefined
  replay: string | undefined
  speed: number
  own: Array<string>
}

const print = (text: string): never => {
  fs.writeSync(1, text)
  process.exit(0)
}

/** Reads the arguments, or answers and exits. */
const read = (argv: ReadonlyArray<string>): Arguments => {
  const found: Arguments = { scenario: "demo", dialect: undefined, replay: undefined, speed: 1, own: [] }
  const value = (i: number): string => argv[i + 1] ?? refuse(`${argv[i]} needs a value; see --help`)
  for (let i = 0; i < argv.length; i++) {
    const flag = argv[i] ?? ""
    switch (flag) {
      case "--help":
        return print(help)
      case "--version":
        return print(`${ScriptedDialect.version()}\n`)
      case "--list":
        return print(names().map((name) => `${name.padEnd(16)} ${readScenario(name).description ?? ""}\n`).join(""))
      case "--describe":
        return print(describe())
      case "--print":
        return print(fs.readFileSync(fileOf(value(i)), "utf8"))
      case "--check":
        readScenario(path.resolve(value(i)))
        return print("")
      case "--scenario":
        found.scenario = value(i++)
        break
      case "--dialect-module":
        found.dialect = value(i++)
        break
      case "--replay":
        found.replay = value(i++)
        break
      case "--speed": {
        found.speed = Number(value(i++))
        if (!(found.speed >= 0)) return refuse(`--speed takes a number of at least 0, not ${argv[i]}`)
        break
      }
      case "--session":
      case "--resume":
        if (found.own.length > 0) return refuse("--session and --resume can be given once, and not both")
        found.own.push(flag, value(i++))
        break
      case "--":
        if (found.dialect === undefined && found.replay === undefined) {
          return refuse("-- and what follows it belong to --dialect-module and --replay; see --help")
        }
        found.own.push(...argv.slice(i + 1))
        return found
      default:
        return refuse(`${flag} is not understood; see --help`)
    }
  }
  return found
}

const main = async (): Promise<void> => {
  const { dialect, own, replay, scenario, speed } = read(process.argv.slice(2))
  const output = Output.make()
  if (replay !== undefined) {
    let recording
    try {
      recording = Replay.read(path.resolve(replay))
    } catch (cause) {
      return refuse(`${replay} cannot be replayed: ${messageOf(cause)}`)
    }
    return Replay.play(recording, output, speed)
  }
  const module = dialect === undefined ? ScriptedDialect : await loadDialect(dialect)
  return Player.play({ scenario: readScenario(scenario), module, argv: own, output })
}

await main()
