/**
 * The help texts, made from the tables of commands.
 */
import { commands } from "./CommandTable.ts"
import { type Command, type Flag, shownValue, wordOf } from "./Flag.ts"

const width = 96

/** Breaks a paragraph into lines of at most `columns`; words longer than that stay whole. */
export const wrap = (text: string, columns: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line)
      line = word
    } else {
      line = line === "" ? word : `${line} ${word}`
    }
  }
  return [...lines, line]
}

const table = (rows: ReadonlyArray<readonly [left: string, right: string]>): ReadonlyArray<string> => {
  const column = Math.min(44, Math.max(...rows.map(([left]) => left.length)))
  return rows.flatMap(([left, right]) => {
    const [first = "", ...more] = wrap(right, width - column - 4)
    const indent = " ".repeat(column + 4)
    return left.length > column
      ? [`  ${left}`, `${indent}${first}`, ...more.map((line) => `${indent}${line}`)]
      : [`  ${left.padEnd(column)}  ${first}`, ...more.map((line) => `${indent}${line}`)]
  })
}

const flagRow = (flag: Flag): readonly [string, string] => [
  `--${flag.name}${shownValue(flag) === "" ? "" : ` ${shownValue(flag)}`}`,
  `${flag.help}${flag.isRepeatable ? " Repeatable." : ""}`
]

const exits: ReadonlyArray<readonly [string, string]> = [
  ["0", "the run finished and its verdict is success"],
  ["1", "it could not start, or its result could not be written"],
  ["2", "the command line or the specification is wrong; nothing was started"],
  ["3", "the run finished without success; the result says why"],
  ["130", "ended by an interrupt (Ctrl-C)"],
  ["143", "ended by a termination signal (TERM, HUP)"]
]

const variables: ReadonlyArray<readonly [string, string]> = [
  ["TURNPIKE_HOME", "the data directory, where --data-dir names none"],
  ["NO_COLOR", "any value: no colours"]
]

/** The help of the whole program. */
export const root = (version: string): string =>
  [
    `turnpike ${version}: drives coding agents turn by turn, through one contract, to one honest verdict`,
    "",
    "Usage: turnpike COMMAND [FLAG…]",
    "",
    "Commands:",
    ...table(commands.map((command) => [command.name, command.summary])),
    "",
    "Begin here:",
    ...table([
      ["turnpike run --harness scripted \"Say hello\"", "a demonstration, no key needed"],
      ["turnpike doctor", "what is installed here, and what to do"],
      ["turnpike run --harness claude \"…\"", "the same with your own agent"],
      ["turnpike COMMAND --help", "all about one command"]
    ]),
    "",
    "Exit codes:",
    ...table(exits),
    "",
    "Environment:",
    ...table(variables),
    ""
  ].join("\n")

/** The help of a command that is a word before others. */
const ofGroup = (command: Command, commands: ReadonlyArray<Command>): string =>
  [
    `turnpike ${command.name}: ${command.summary}`,
    "",
    "Usage:",
    ...command.usage.map((line) => `  ${line}`),
    ...command.about.flatMap((paragraph) => ["", ...wrap(paragraph, width)]),
    "",
    "Commands:",
    ...table(commands.map((each) => [wordOf(each), each.summary])),
    "",
    "Examples:",
    ...command.examples.flatMap(([line, what]) => [`  # ${what}`, `  ${line}`]),
    "",
    `\`turnpike ${command.name} COMMAND --help\` says all about one of them.`,
    ""
  ].join("\n")

/** The help of one command. */
export const of = (command: Command): string => {
  if (command.commands !== undefined) return ofGroup(command, command.commands)
  const own = command.exits ?? []
  const codes = [...own, ...exits.filter(([code]) => !own.some(([mine]) => mine === code))]
    .filter(([code]) => own.length === 0 || own.some(([mine]) => mine === code) || code === "1" || code === "2" || (command.name === "chat"))
    .sort(([a], [b]) => Number(a) - Number(b))
  return [
    `turnpike ${command.name}: ${command.summary}`,
    "",
    "Usage:",
    ...command.usage.map((line) => `  ${line}`),
    ...command.about.flatMap((paragraph) => ["", ...wrap(paragraph, width)]),
    ...(command.positionals.length === 0
      ? []
      : ["", "Arguments:", ...table(command.positionals.map((positional) => [positional.name, positional.help]))]),
    ...(command.flags.length === 0 ? [] : ["", "Flags:", ...table(command.flags.map(flagRow))]),
    "",
    "Examples:",
    ...command.examples.flatMap(([line, what]) => [`  # ${what}`, `  ${line}`]),
    ...(command.name === "schema" ? [] : ["", "Exit codes:", ...table(codes)]),
    ...(command.flags.some((flag) => flag.name === "data-dir") ? ["", "Environment:", ...table(variables)] : []),
    ""
  ].join("\n")
}
