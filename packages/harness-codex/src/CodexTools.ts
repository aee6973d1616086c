/**
 * What an allow-list means to Codex, which has no list of tools: it has one
 * shell, a sandbox around what the shell runs, and it asks before anything
 * leaves the sandbox.
 *
 * | list holds          | sandbox         | network | what needs no permission              |
 * | ------------------- | --------------- | ------- | ------------------------------------- |
 * | read, search        | read-only       | no      | commands that write nothing           |
 * | edit or execute too | workspace-write | no      | commands and patches in the directory |
 * | fetch too           | as above        | yes     | the network, and web search           |
 * | all, dangerously    | none            | yes     | everything                            |
 *
 * A request to leave the sandbox counts as listed where its class is on the
 * list: `execute` for a command, `edit` for a patch, `fetch` for the network.
 * Reading is not to be had without searching, nor either without the shell, so
 * every list brings both; a list that holds nothing cannot be honoured, and
 * neither can names of tools.
 */
import type { AgentRunSpec } from "@turnpike/contract"
import { ToolAllowlist } from "@turnpike/kernel"
import type * as Schema from "effect/Schema"
import type * as CodexWire from "./CodexWire.ts"

export interface Plan {
  readonly all: boolean
  readonly classes: ReadonlySet<AgentRunSpec.ToolClass>
  readonly sandbox: CodexWire.Terms["sandbox"]
  readonly network: boolean
  /** What the list asks that cannot be promised; the sentence goes on from the entry. */
  readonly refused: { readonly entry: string; readonly why: string } | undefined
}

/** Works out what an allow-list means here. */
export const plan = (list: ToolAllowlist.ToolAllowlist): Plan => {
  if (list._tag === "DangerousAll") {
    return { all: true, classes: new Set(), sandbox: "danger-full-access", network: true, refused: undefined }
  }
  const classes = new Set<AgentRunSpec.ToolClass>()
  let refused: Plan["refused"]
  for (const name of list.tools) {
    const group = ToolAllowlist.classOf(name)
    if (group === undefined) refused ??= { entry: JSON.stringify(name), why: "Codex has no list of tools by name; use read, search, edit, execute, fetch" }
    else classes.add(group)
  }
  if (list.tools.length === 0) refused = { entry: "[]", why: "Codex always has its shell, which can read" }
  return {
    all: false,
    classes,
    sandbox: classes.has("edit") || classes.has("execute") ? "workspace-write" : "read-only",
    network: classes.has("fetch"),
    refused
  }
}

/** The sandbox of a turn, in Codex's words. */
export const sandboxPolicy = (self: Plan): { readonly [key: string]: Schema.Json } => {
  switch (self.sandbox) {
    case "read-only":
      return { type: "readOnly", networkAccess: self.network }
    case "workspace-write":
      return {
        type: "workspaceWrite",
        writableRoots: [],
        networkAccess: self.network,
        excludeTmpdirEnvVar: false,
        excludeSlashTmp: false
      }
    case "danger-full-access":
      return { type: "dangerFullAccess" }
  }
}

/** How the answer to a thread's start names the sandbox that was asked for. */
export const inForce = (self: Plan): string => String(sandboxPolicy(self)["type"])

export const approvalPolicy = (self: Plan): CodexWire.Terms["approvalPolicy"] => (self.all ? "never" : "on-request")
/** Web search runs at the model's service, where no sandbox is. */
export const webSearch = (self: Plan): CodexWire.Terms["webSearch"] => (self.all ? undefined : self.network ? "live" : "disabled")

export const holds = (self: Plan, group: AgentRunSpec.ToolClass): boolean => self.all || self.classes.has(group)
