/**
 * Reads a command line against the tables of commands.
 *
 * Pure, and without dependencies: it runs before anything else is loaded, so
 * that a wrong flag is answered at once. `node:util` cuts the words; what they
 * may be is decided here. A value that begins with a dash has to be written
 * `--flag=value`, because `--task --model x` is nearly always a forgotten value.
 */
import { parseArgs } from "node:util"
import { type Command, type Flag, runnable, shownValue, wordOf } from "./Flag.ts"
import { nearest } from "./Suggestion.ts"

/** What is wrong with a command line, and what to type instead. */
export interface Fault {
  readonly message: string
  readonly remedy: string
}

/** The flags that were given, by name, with the checked texts of their values in order. */
export type Given = ReadonlyMap<string, ReadonlyArray<string>>

export type Parsed =
  | { readonly _tag: "Run"; readonly command: Command; readonly given: Given; readonly positionals: ReadonlyArray<string> }
  | { readonly _tag: "Help"; readonly command: Command | undefined }
  | { readonly _tag: "Version" }
  | { readonly _tag: "Fault"; readonly fault: Fault }

/** The last value of a flag that is given at most once. */
export const one = (given: Given, name: string): string | undefined => given.get(name)?.at(-1)
export const all = (given: Given, name: string): ReadonlyArray<string> => given.get(name) ?? []
export const isOn = (given: Given, name: string): boolean => given.has(name) && one(given, name) !== "false"

const fault = (message: string, remedy: string): Parsed => ({ _tag: "Fault", fault: { message, remedy } })

/** A word of the user's in a message: quoted, on one line, bounded. */
export const quote = (word: string): string =>
  JSON.stringify(word.length <= 80 ? word : `${word.slice(0, 80)}…`)
    .replace(/[\u007f-\u009f]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`)

const helpOf = (command: Command | undefined) =>
  `\`turnpike ${command === undefined ? "" : `${command.name} `}--help\` lists what it takes.`

/** Refuses a value that is none, or answers `undefined`. */
const problemOf = (flag: Flag, value: string): Fault | undefined => {
  const name = `--${flag.name}`
  switch (flag.value.kind) {
    case "switch":
      return undefined
    case "text":
      // A variable of a script that is not set, most likely. An empty task has a failure of its own.
      return value !== "" || flag.name === "task"
        ? undefined
        : { message: `${name} is empty`, remedy: `Write ${name} ${flag.value.shown}, or leave it out.` }
    case "boolean":
      return value === "true" || value === "false"
        ? undefined
        : { message: `${name} is ${quote(value)}`, remedy: `Write ${name} true or ${name} false.` }
    case "choice": {
      if (flag.value.choices.includes(value)) return undefined
      const meant = nearest(value, flag.value.choices)
      return {
        message: `${name} is ${quote(value)}; it takes ${flag.value.choices.join(", ")}`,
        remedy: meant === undefined ? `Choose one of ${flag.value.choices.join(", ")}.` : `Did you mean ${name} ${meant}?`
      }
    }
    case "seconds": {
      const seconds = /^[0-9]+(\.[0-9]+)?$/.test(value) ? Number(value) : NaN
      return seconds > 0 && seconds <= 9_007_199_254_740
        ? undefined
        : { message: `${name} is ${quote(value)}; it takes a number of seconds above 0`, remedy: `Write for example ${name} 90 or ${name} 0.5.` }
    }
    case "whole": {
      const { least, shown } = flag.value
      const number = /^[0-9]+$/.test(value) ? Number(value) : NaN
      return Number.isSafeInteger(number) && number >= least
        ? undefined
        : { message: `${name} is ${quote(value)}; it takes a whole number from ${least}`, remedy: `Write ${name} ${shown}, for example ${name} ${Math.max(least, 20)}.` }
    }
    case "variable":
      return /^[A-Za-z_][A-Za-z0-9_]*=/.test(value)
        ? undefined
        // The value may be a secret, so that only what stands before the first sign is repeated.
        : {
          message: `${name} is ${quote(value.split("=")[0] ?? "")}${value.includes("=") ? "=…" : ""}; it takes NAME=VALUE, a name being letters, digits and _`,
          remedy: `Write for example ${name} LANG=C.`
        }
  }
}

/** Says what an unknown flag may have been meant as. */
const unknownFlag = (raw: string, command: Command, commands: ReadonlyArray<Command>): Parsed => {
  const name = raw.replace(/^-+/, "")
  const meant = nearest(name, [...command.flags.map((flag) => flag.name), "help", "version"])
  if (meant !== undefined) return fault(`${command.name} has no flag ${quote(raw)}`, `Did you mean --${meant}? ${helpOf(command)}`)
  const elsewhere = runnable(commands).filter((each) => each.flags.some((flag) => flag.name === name)).map((each) => each.name)
  return fault(
    `${command.name} has no flag ${quote(raw)}`,
    elsewhere.length === 0
      ? `${helpOf(command)}${command.positionals.length === 0 ? "" : " What begins with a dash and is no flag stands after `--`."}`
      : `${elsewhere.slice(0, 3).join(" and ")} ${elsewhere.length === 1 ? "has" : "have"} it. ${helpOf(command)}`
  )
}

const parseCommand = (command: Command, args: ReadonlyArray<string>, commands: ReadonlyArray<Command>): Parsed => {
  const flags = new Map(command.flags.map((flag) => [flag.name, flag]))
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: {
      help: { type: "boolean", short: "h" },
      version: { type: "boolean", short: "V" },
      ...Object.fromEntries(
        command.flags.map((flag) => [
          flag.name,
          { type: flag.value.kind === "switch" || flag.value.kind === "boolean" ? "boolean" as const : "string" as const }
        ])
      )
    }
  })
  const given = new Map<string, Array<string>>()
  const positionals: Array<string> = []
  // Help is answered whatever else is wrong with the line.
  if (tokens.some((token) => token.kind === "option" && token.name === "help")) return { _tag: "Help", command }
  let skip = -1
  for (const [position, token] of tokens.entries()) {
    if (token.kind === "option-terminator" || position === skip) continue
    if (token.kind === "positional") {
      positionals.push(token.value)
      continue
    }
    if (token.name === "version" && !flags.has("version")) return { _tag: "Version" }
    const flag = flags.get(token.name)
    if (flag === undefined) return unknownFlag(token.rawName, command, commands)
    const values = given.get(flag.name) ?? []
    if (values.length > 0 && !flag.isRepeatable) {
      return fault(`--${flag.name} is given twice`, `Give --${flag.name} once.`)
    }
    let value = token.value
    if (flag.value.kind === "switch") {
      if (value !== undefined) return fault(`--${flag.name} takes no value; ${quote(value)} was given`, `Write --${flag.name} alone, or leave it out.`)
      value = "true"
    } else if (flag.value.kind === "boolean") {
      const next = tokens[position + 1]
      const follows = value === undefined && next?.kind === "positional" && next.index === token.index + 1 &&
        (next.value === "true" || next.value === "false")
      if (follows) skip = position + 1
      value ??= follows ? next.value : "true"
    } else if (value === undefined || (token.inlineValue === false && /^-./.test(value))) {
      return fault(
        `--${flag.name} has no value`,
        value === undefined
          ? `Write --${flag.name} ${shownValue(flag)}.`
          : `Write --${flag.name} ${shownValue(flag)}; a value that begins with a dash is written --${flag.name}=…`
      )
    }
    const problem = problemOf(flag, value)
    if (problem !== undefined) return { _tag: "Fault", fault: problem }
    values.push(value)
    given.set(flag.name, values)
  }
  const [extra] = positionals.slice(command.positionals.length)
  if (extra !== undefined && command.positionals.at(-1)?.isRepeatable !== true) {
    return fault(
      `${command.name} takes ${command.positionals.length === 0 ? "no arguments" : `${command.positionals.length === 1 ? "one argument" : `${command.positionals.length} arguments`}`}; ${quote(extra)} is one too many`,
      `Put quotes around an argument of several words. ${helpOf(command)}`
    )
  }
  const missing = command.positionals.slice(positionals.length).find((positional) => positional.isRequired)
  if (missing !== undefined) return fault(`${command.name} needs ${missing.name}`, `${missing.help} ${helpOf(command)}`)
  return { _tag: "Run", command, given, positionals }
}

/** The table's commands as they are typed, for a sentence. */
const listed = (commands: ReadonlyArray<Command>): string => `Give one of ${commands.map(wordOf).join(", ")}.`

/**
 * Reads words where a command has to stand first; `behind` is the command whose
 * own ones they are.
 */
const parseAmong = (
  [first, ...rest]: ReadonlyArray<string>,
  commands: ReadonlyArray<Command>,
  behind: Command | undefined,
  all: ReadonlyArray<Command>
): Parsed => {
  const path = behind === undefined ? "" : `${behind.name} `
  if (first === undefined) {
    return fault(behind === undefined ? "no command was given" : `${behind.name} needs a command`, `${listed(commands)} ${helpOf(behind)}`)
  }
  if (first === "--help" || first === "-h") return { _tag: "Help", command: behind }
  if (first === "--version" || first === "-V") return { _tag: "Version" }
  if (first === "help") return parseHelp(rest, commands, behind, all)
  const command = commands.find((each) => wordOf(each) === first)
  if (command !== undefined) return command.commands === undefined ? parseCommand(command, rest, all) : parseAmong(rest, command.commands, command, all)
  if (!first.startsWith("-")) return unknownCommand(first, commands, behind, all)
  // A flag that stands before the command that it belongs to.
  const meant = rest.find((word) => commands.some((each) => wordOf(each) === word))
  return fault(
    `there is no flag ${quote(first)} before a command`,
    `Flags follow their command, as in \`turnpike ${path}${behind === undefined ? "run --harness NAME" : `${meant ?? "list"} --json`}\`. ${helpOf(behind)}`
  )
}

const parseHelp = (
  [asked, ...rest]: ReadonlyArray<string>,
  commands: ReadonlyArray<Command>,
  behind: Command | undefined,
  all: ReadonlyArray<Command>
): Parsed => {
  if (asked === undefined) return { _tag: "Help", command: behind }
  const command = commands.find((each) => wordOf(each) === asked)
  if (command === undefined) return unknownCommand(asked, commands, behind, all)
  return command.commands === undefined ? { _tag: "Help", command } : parseHelp(rest, command.commands, command, all)
}

/** Reads the words after the program's name. */
export const parse = (args: ReadonlyArray<string>, commands: ReadonlyArray<Command>): Parsed => parseAmong(args, commands, undefined, commands)

/** The command that a word probably means: one of these, by its word or by another one for it, or one that stands elsewhere. */
const commandMeant = (asked: string, commands: ReadonlyArray<Command>, all: ReadonlyArray<Command>): Command | undefined => {
  const word = nearest(asked, commands.map(wordOf))
  return commands.find((each) => each.synonyms?.includes(asked) === true) ??
    commands.find((each) => wordOf(each) === word) ??
    runnable(all).find((each) => wordOf(each) === asked)
}

const unknownCommand = (asked: string, commands: ReadonlyArray<Command>, behind: Command | undefined, all: ReadonlyArray<Command>): Parsed => {
  const meant = commandMeant(asked, commands, all)
  return fault(
    `there is no command ${quote(behind === undefined ? asked : `${behind.name} ${asked}`)}`,
    meant !== undefined
      ? `Did you mean \`turnpike ${meant.name}\`? ${helpOf(behind)}`
      : behind === undefined && /\s/.test(asked)
      ? `A task is given to run: turnpike run --harness NAME ${quote(asked)}. ${helpOf(undefined)}`
      : `${listed(commands)} ${helpOf(behind)}`
  )
}
