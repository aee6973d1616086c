/**
 * Which of Claude Code's tools an allow-list means, and whether one call is
 * within it.
 *
 * | class   | tools                        |
 * | ------- | ---------------------------- |
 * | read    | Read                         |
 * | search  | Glob, Grep                   |
 * | edit    | Edit, Write, NotebookEdit    |
 * | execute | Bash, TaskStop               |
 * | fetch   | WebFetch, WebSearch          |
 *
 * Any other entry is a name of Claude Code's own: `Agent`, `mcp__server__tool`,
 * `mcp__server` for all tools of a server, or a name with a pattern for its
 * argument. Patterns are understood for Bash alone, `Bash(git status)` and
 * `Bash(git *)`; the rest is refused, because nothing here could tell whether a
 * call is within it.
 */
import type { AgentRunSpec } from "@turnpike/contract"
import { ToolAllowlist } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"

/** Names of 2.1.332, from its `system/init`; `Glob` and `Grep` are there only when asked for by name. */
export const ofClass: Readonly<Record<AgentRunSpec.ToolClass, ReadonlyArray<string>>> = {
  read: ["Read"],
  search: ["Glob", "Grep"],
  edit: ["Edit", "Write", "NotebookEdit"],
  execute: ["Bash", "TaskStop"],
  fetch: ["WebFetch", "WebSearch"]
}

/** Names that Claude Code uses for the same tool: in `system/init` and in calls. */
const otherNames: Readonly<Record<string, string>> = { Task: "Agent" }
export const canonical = (name: string): string => otherNames[name] ?? name

interface Entry {
  readonly tool: string
  readonly pattern: string | undefined
}

export interface Plan {
  readonly all: boolean
  readonly entries: ReadonlyArray<Entry>
  /** Built-in tools that the model is to be offered, without patterns. */
  readonly offered: ReadonlyArray<string>
  /** What an entry asks that cannot be promised; the sentence goes on from the entry. */
  readonly refused: { readonly entry: string; readonly why: string } | undefined
}

const parse = (entry: string): Entry | undefined => {
  const match = /^([A-Za-z][A-Za-z0-9_-]*)(?:\((.+)\))?$/s.exec(entry)
  return match === null ? undefined : { tool: canonical(match[1]!), pattern: match[2] }
}

/** Works out what an allow-list means here. */
export const plan = (list: ToolAllowlist.ToolAllowlist): Plan => {
  if (list._tag === "DangerousAll") return { all: true, entries: [], offered: [], refused: undefined }
  const entries: Array<Entry> = []
  let refused: Plan["refused"]
  for (const name of list.tools) {
    const group = ToolAllowlist.classOf(name)
    if (group !== undefined) {
      entries.push(...ofClass[group].map((tool) => ({ tool, pattern: undefined })))
      continue
    }
    const entry = parse(name)
    if (entry === undefined) refused ??= { entry: name, why: "is neither a class nor a tool's name" }
    else if (entry.pattern !== undefined && entry.tool !== "Bash") {
      refused ??= { entry: name, why: "has a pattern, which can be held for Bash alone" }
    } else entries.push(entry)
  }
  const offered = [...new Set(entries.map(({ tool }) => tool).filter((tool) => !tool.startsWith("mcp__")))]
  return { all: false, entries, offered, refused }
}

/** The options of the command line: the tools to offer, and those that need not be asked about. */
export const toArguments = (self: Plan): ReadonlyArray<string> =>
  self.all
    ? []
    : [
      `--tools=${self.offered.join(",")}`,
      ...self.entries.map(({ pattern, tool }) => `--allowedTools=${pattern === undefined ? tool : `${tool}(${pattern})`}`)
    ]

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

const commandOf = (input: Schema.Json | undefined): string | undefined => {
  const command = typeof input === "object" && input !== null && !Array.isArray(input) && "command" in input ? input["command"] : undefined
  return typeof command === "string" ? command : undefined
}

/**
 * Whether a call is within the list. Of a command line with a pattern in the
 * list, every command must be within a pattern, and what cannot be read for sure
 * is not.
 */
export const holds = (self: Plan, name: string, input: Schema.Json | undefined): boolean => {
  if (self.all) return true
  const tool = canonical(name)
  const matching = self.entries.filter((entry) =>
    entry.tool === tool || (entry.tool.startsWith("mcp__") && tool.startsWith(`${entry.tool}__`))
  )
  if (matching.some(({ pattern }) => pattern === undefined)) return true
  const command = commandOf(input)
  const commands = command === undefined || matching.length === 0 ? undefined : simpleCommands(command)
  return commands !== undefined
    && commands.every((one) => matching.some(({ pattern }) => pattern !== undefined && matchesPattern(one, pattern)))
}

/** What is in force and what was asked, compared; empty lists mean that they agree. */
export const compare = (
  self: Plan,
  inForce: ReadonlyArray<string>
): { readonly missing: ReadonlyArray<string>; readonly beyond: ReadonlyArray<string> } => {
  if (self.all) return { missing: [], beyond: [] }
  const names = new Set(inForce.map(canonical))
  const asked = new Set(self.offered)
  return {
    missing: self.offered.filter((tool) => !names.has(tool)),
    beyond: [...names].filter((tool) =>
      !asked.has(tool) && !self.entries.some((entry) => tool === entry.tool || tool.startsWith(`${entry.tool}__`))
    )
  }
}
