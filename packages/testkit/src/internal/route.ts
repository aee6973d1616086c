/**
 * What a request to the scripted model server is about, from its method and its
 * target alone.
 */
import * as AnthropicMessagesWire from "../AnthropicMessagesWire.ts"
import type * as ModelRequest from "../ModelRequest.ts"
import type * as ModelWire from "../ModelWire.ts"
import * as OpenAiChatWire from "../OpenAiChatWire.ts"
import * as OpenAiResponsesWire from "../OpenAiResponsesWire.ts"

/** What a client asks of a run. `wire` is the protocol of its path, if that is one's. */
export interface Asks {
  readonly operation: ModelRequest.Operation
  readonly wire: ModelWire.ModelWire | null
}

export type Route =
  | { readonly kind: "help" }
  | { readonly kind: "control"; readonly path: string }
  | {
    readonly kind: "run"
    /** The path segment, not yet read. */
    readonly scenario: string
    readonly runId: string
    /** Below the run's base URL, without query and without `/v1`. */
    readonly path: string
    /** As recorded: below the run's base URL, with query. */
    readonly recorded: string
    readonly asks: Asks
  }
  /** It belongs to no run; with the answer that it deserves. */
  | { readonly kind: "stray"; readonly status: number; readonly problem: string }

const wires: ReadonlyMap<string, ModelWire.ModelWire> = new Map([
  ["/messages", AnthropicMessagesWire.wire],
  ["/responses", OpenAiResponsesWire.wire],
  ["/chat/completions", OpenAiChatWire.wire]
])

const runIdPattern = /^[A-Za-z0-9_-]{1,128}$/

const asksOf = (method: string, path: string): Asks => {
  if ((method === "GET" || method === "HEAD") && path === "") return { operation: "probe", wire: null }
  if (method === "GET" && (path === "/models" || path.startsWith("/models/"))) return { operation: "list_models", wire: null }
  if (path === "/messages/count_tokens") return { operation: method === "POST" ? "count_tokens" : "unknown", wire: AnthropicMessagesWire.wire }
  const wire = wires.get(path)
  return wire === undefined ? { operation: "unknown", wire: null } : { operation: method === "POST" ? "generate" : "unknown", wire }
}

/** Reads a request's method and its target, which is a path or, where the server is taken for a proxy, a whole URL. */
export const of = (method: string, target: string): Route => {
  const path = target.split("?")[0] ?? ""
  if (path.startsWith("/control/")) return { kind: "control", path }
  if ((method === "GET" || method === "HEAD") && path === "/") return { kind: "help" }
  if (!target.startsWith("/")) return { kind: "stray", status: 403, problem: `this is no proxy; ${target} stays out of reach` }
  const match = /^\/s\/([^/?]+)\/([^/?]+)([^?]*)(\?.*)?$/.exec(target)
  if (match === null) {
    return {
      kind: "stray",
      status: 404,
      problem: `${path} is below no run; a base URL is /s/<scenario>/<run id>, and GET / lists the scenarios`
    }
  }
  const [, scenario = "", runId = "", rest = "", query = ""] = match
  if (!runIdPattern.test(runId)) {
    return { kind: "stray", status: 400, problem: `the run id "${runId}" is not 1 to 128 letters, digits, "_" and "-"` }
  }
  const below = rest.replace(/^\/v1(?=\/)/, "").replace(/\/$/, "")
  return { kind: "run", scenario, runId, path: below, recorded: (rest || "/") + query, asks: asksOf(method, below) }
}
