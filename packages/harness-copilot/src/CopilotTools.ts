/**
 * Which of Copilot's tools an allow-list means, and whether one call is within it.
 *
 * | class   | tools                                                |
 * | ------- | ---------------------------------------------------- |
 * | read    | view                                                 |
 * | search  | grep, rg, glob                                       |
 * | edit    | create, edit, apply_patch                            |
 * | execute | bash, write_bash, read_bash, stop_bash, list_bash    |
 * | fetch   | web_fetch                                            |
 *
 * Any other entry is a name of Copilot's own: `task`, `skill`, a tool of an MCP
 * server as `server-tool`, or the kinds of its permissions, `shell` and `write`.
 * Patterns are understood for bash alone, `bash(git status)`, `bash(git *)` and
 * Copilot's spelling `shell(git:*)`; the rest is refused, because nothing here
 * could tell whether a call is within it.
 */
import type { AgentRunSpec } from "@turnpike/contract"
import { CommandPattern } from "@turnpike/harness"
import { ToolAllowlist } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"

/** Names of 1.0.102, from its own list. Which of a class's tools there are depends on the model: one has `rg`, another `grep`. */
export const ofClass: Readonly<Record<AgentRunSpec.ToolClass, ReadonlyArray<string>>> = {
  read: ["view"],
  search: ["grep", "rg", "glob"],
  edit: ["create", "edit", "apply_patch"],
  execute: ["bash", "write_bash", "read_bash", "stop_bash", "list_bash"],
  fetch: ["web_fetch"]
}

interface Entry {
  readonly tool: string
  readonly pattern: string | undefined
}

export interface Plan {
  readonly all: boolean
  readonly entries: ReadonlyArray<Entry>
  /** Tools that the model is to be offered, without patterns. */
  readonly offered: ReadonlyArray<string>
  /** What an entry asks that cannot be promised; the sentence goes on from the entry. */
  readonly refused: { readonly entry: string; readonly why: string } | undefined
}

const whole = (tools: ReadonlyArray<string>): ReadonlyArray<Entry> => tools.map((tool) => ({ tool, pattern: undefined }))

/** What one name of Copilot's means; a sentence where it cannot be held. */
const parse = (name: string): ReadonlyArray<Entry> | string => {
  const match = /^([A-Za-z][A-Za-z0-9_.-]*)(?:\((.+)\))?$/s.exec(name)
  if (match === null) return "is neither a class nor a tool's name"
  const [, tool = "", pattern] = match
  if (pattern === undefined) return tool === "shell" ? whole(ofClass.execute) : tool === "write" ? whole(ofClass.edit) : whole([tool])
  return tool === "bash" || tool === "shell" ? [{ tool: "bash", pattern }] : "has a pattern, which can be held for bash alone"
}

/** Works out what an allow-list means here. */
export const plan = (list: ToolAllowlist.ToolAllowlist): Plan => {
  if (list._tag === "DangerousAll") return { all: true, entries: [], offered: [], refused: undefined }
  const entries: Array<Entry> = []
  let refused: Plan["refused"]
  for (const name of list.tools) {
    const group = ToolAllowlist.classOf(name)
    const found = group === undefined ? parse(name) : whole(ofClass[group])
    if (typeof found === "string") refused ??= { entry: name, why: found }
    else entries.push(...found)
  }
  return { all: false, entries, offered: [...new Set(entries.map(({ tool }) => tool))], refused }
}

/** Whether a call is within the list. */
export const holds = (self: Plan, name: string, input: Schema.Json | undefined): boolean => {
  if (self.all) return true
  const matching = self.entries.filter(({ tool }) => tool === name)
  return matching.some(({ pattern }) => pattern === undefined)
    || CommandPattern.holds(matching.flatMap(({ pattern }) => pattern ?? []), CommandPattern.commandOf(input))
}
