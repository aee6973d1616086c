/**
 * Which tools a harness may use, in words that belong to no harness.
 */
import type { AgentRunSpec } from "@turnpike/contract"

export type ToolAllowlist =
  | { readonly _tag: "Only"; readonly tools: ReadonlyArray<string> }
  | { readonly _tag: "DangerousAll" }

/** Looking and searching only: `view`, `grep`, `glob`. */
export const readOnlyDefault: ToolAllowlist = { _tag: "Only", tools: ["view", "grep", "glob"] }

/** Every tool, by explicit choice. It never widens paths or URLs. */
export const dangerousAll: ToolAllowlist = { _tag: "DangerousAll" }

/** The dangerous choice wins over any list; an empty list means the read-only default; otherwise exactly the list, in order. */
export const fromFlags = (tools: ReadonlyArray<string>, dangerous: boolean): ToolAllowlist =>
  dangerous ? dangerousAll : tools.length === 0 ? readOnlyDefault : { _tag: "Only", tools: [...tools] }

/** Reads a run specification's `tools`; there an empty list means no tool at all. */
export const fromSpec = (tools: AgentRunSpec.ToolSpec | undefined): ToolAllowlist =>
  tools === undefined ? readOnlyDefault : "allow" in tools ? { _tag: "Only", tools: tools.allow } : dangerousAll

export const isDangerous = (list: ToolAllowlist): boolean => list._tag === "DangerousAll"

/** One line for people. */
export const describe = (list: ToolAllowlist): string =>
  list._tag === "DangerousAll"
    ? "ALL TOOLS (dangerous)"
    : list.tools.length === 0
    ? "no tools"
    : `tools: ${list.tools.map((tool) => tool.replace(/[\s\p{Cc}]+/gu, " ")).join(", ")}`

const aliases: Readonly<Record<string, AgentRunSpec.ToolClass>> = {
  view: "read",
  read: "read",
  grep: "search",
  glob: "search",
  search: "search",
  edit: "edit",
  execute: "execute",
  fetch: "fetch"
}

/** The neutral class that a name stands for; `undefined` for a harness's own tool name. */
export const classOf = (name: string): AgentRunSpec.ToolClass | undefined =>
  Object.hasOwn(aliases, name) ? aliases[name] : undefined
