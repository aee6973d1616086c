/**
 * Whether a shell's command line is within a list of patterns.
 *
 * A pattern is a whole command, `git status`, or a beginning, `git *` (also
 * written `git:*`), which holds `git` alone and `git` with any arguments. Of a
 * line with several commands every one must be within a pattern, and what cannot
 * be read for sure is not.
 */
import type * as Schema from "effect/Schema"

/**
 * Splits a command line where one command ends and the next begins. Answers
 * `undefined` for one that does more than that: substitutions, redirections,
 * comments, several lines, a task in the background, unfinished quotes.
 */
const simpleCommands = (line: string): ReadonlyArray<string> | undefined => {
  const commands: Array<string> = []
  let current = ""
  let quote: "'" | "\"" | undefined
  for (let index = 0; index < line.length; index++) {
    const character = line[index]!
    if (quote === "'") {
      if (character === "'") quote = undefined
      current += character
      continue
    }
    if (character === "\\") {
      current += character + (line[++index] ?? "")
      continue
    }
    if (character === "`" || character === "$") return undefined
    if (quote === "\"") {
      if (character === "\"") quote = undefined
      current += character
      continue
    }
    if (character === "'" || character === "\"") quote = character
    if (/[<>(){}\n\r#]/.test(character)) return undefined
    if (character === ";" || character === "|" || character === "&") {
      const two = line.slice(index, index + 2)
      if (two === "&&" || two === "||") index++
      else if (character === "&") return undefined
      commands.push(current.trim())
      current = ""
      continue
    }
    current += character
  }
  if (quote !== undefined) return undefined
  commands.push(current.trim())
  return commands.every((command) => command !== "") ? commands : undefined
}

const matchesPattern = (command: string, pattern: string): boolean => {
  const prefix = /^(.*?)(?: \*|:\*)$/s.exec(pattern)?.[1]
  return prefix === undefined ? command === pattern : command === prefix || command.startsWith(`${prefix} `)
}

/** The command line among the arguments of a shell tool. */
export const commandOf = (input: Schema.Json | undefined): string | undefined => {
  const command = typeof input === "object" && input !== null && !Array.isArray(input) && "command" in input ? input["command"] : undefined
  return typeof command === "string" ? command : undefined
}

/** Whether all of a command line is within the patterns. No pattern and no line hold nothing. */
export const holds = (patterns: ReadonlyArray<string>, line: string | undefined): boolean => {
  const commands = line === undefined || patterns.length === 0 ? undefined : simpleCommands(line)
  return commands !== undefined && commands.every((one) => patterns.some((pattern) => matchesPattern(one, pattern)))
}
