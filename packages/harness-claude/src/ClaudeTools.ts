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
import { CommandPattern } from "@turnpike/harness"
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
  return CommandPattern.holds(matching.flatMap(({ pattern }) => pattern ?? []), CommandPattern.commandOf(input))
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
