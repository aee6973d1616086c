/**
 * One HTTP request that a client made of the scripted model server.
 *
 * Requests of a run are numbered by `seq` from 0, in the order in which their
 * bodies were read completely. What a client sent is kept whole (`body`), beside
 * a reading of it that is the same for all wires. Credentials are gone: a header
 * that carries one keeps its name and loses its value, and that value is removed
 * wherever else in the request it stands.
 */
import * as Schema from "effect/Schema"

/** The protocols that the server speaks. */
export const Wire = Schema.Literals(["anthropic-messages", "openai-responses", "openai-chat"])
export type Wire = typeof Wire.Type

/** What the client wanted: an answer of the model, a token count, the model list, a sign of life; or nothing we know. */
export const Operation = Schema.Literals(["generate", "count_tokens", "list_models", "probe", "unknown"])
export type Operation = typeof Operation.Type

/**
 * One content part of the conversation, in order. `role` is `tool` for the result
 * of a tool; `kind` tells text from the rest; a `tool_call` has its arguments as
 * `text`, in JSON.
 */
export const Message = Schema.Struct({
  role: Schema.Literals(["system", "developer", "user", "assistant", "tool"]),
  kind: Schema.Literals(["text", "thinking", "tool_call", "tool_result", "other"]),
  text: Schema.String,
  tool_name: Schema.optionalKey(Schema.String),
  is_error: Schema.optionalKey(Schema.Boolean)
})
export type Message = typeof Message.Type

/** A tool that the client offers the model. `input_schema` is absent for tools without a JSON Schema. */
export const Tool = Schema.Struct({ name: Schema.String, input_schema: Schema.optionalKey(Schema.Unknown) })
export type Tool = typeof Tool.Type

/** Tokens that the answer was billed with. `input` counts neither `cache_read` nor `cache_write`; `output` includes `reasoning`. */
export const Usage = Schema.Struct({
  input: Schema.Finite,
  cache_read: Schema.Finite,
  cache_write: Schema.Finite,
  output: Schema.Finite,
  reasoning: Schema.Finite
})
export type Usage = typeof Usage.Type

/**
 * How the exchange ended: `open` until it has, `complete` when the whole answer
 * was handed to the network, `cut` when the scenario broke it off, `client_left`
 * when the client did, `server_closed` when the server was closed under it.
 */
export const Ending = Schema.Literals(["open", "complete", "cut", "client_left", "server_closed"])
export type Ending = typeof Ending.Type

export const ModelRequest = Schema.Struct({
  seq: Schema.Finite,
  method: Schema.String,
  /** What follows the run's base URL, with the query; for a stray request the target as it was sent. */
  path: Schema.String,
  operation: Operation,
  wire: Schema.NullOr(Wire),
  /** The scenario as it stands in the URL; null for a stray request. */
  scenario: Schema.NullOr(Schema.String),
  headers: Schema.Record(Schema.String, Schema.String),
  model: Schema.NullOr(Schema.String),
  stream: Schema.NullOr(Schema.Boolean),
  /** Instructions outside the conversation, parts joined by a blank line. */
  system: Schema.String,
  messages: Schema.Array(Message),
  /** What the user asked, oldest first: user texts without the blocks that a CLI wraps around them. */
  prompts: Schema.Array(Schema.String),
  tools: Schema.Array(Tool),
  /** The body as text, decompressed. */
  body: Schema.String,
  /** Null until a status line was sent. */
  status: Schema.NullOr(Schema.Finite),
  usage: Schema.NullOr(Usage),
  ending: Ending
}).annotate({ identifier: "ModelRequest", description: "One HTTP request that a client made of the scripted model server." })
export type ModelRequest = typeof ModelRequest.Type

/**
 * Blocks that coding agents put into user messages on their own. Observed in
 * Claude Code 2.1.332 (`system-reminder`), Codex 0.171.0 (`environment_context`,
 * `user_instructions`, `turn_aborted`) and Copilot 1.0.102 (`current_datetime`, `reminder`).
 */
const injected =
  /<(system-reminder|environment_context|user_instructions|turn_aborted|current_datetime|reminder|INSTRUCTIONS)>[\s\S]*?<\/\1>/g

/** Takes the user's own words out of a conversation; a message that is nothing but injected blocks is none. */
export const promptsOf = (messages: ReadonlyArray<Message>): ReadonlyArray<string> =>
  messages
    .filter((message) => message.role === "user" && message.kind === "text")
    .map((message) => message.text.replace(injected, "").trim())
    .filter((text) => text !== "")

const credentialName = /authorization|cookie|token|secret|credential|password|api-?key/i

export const redacted = "[redacted]"

/** What a client sent, without credentials. */
export interface Redacted {
  readonly headers: Readonly<Record<string, string>>
  readonly path: string
  readonly body: string
  /** Removes them from the texts of a JSON value that was sent, whatever they are nested in. */
  readonly redacted: (value: unknown) => unknown
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Removes credentials from what a client sent. A header whose name speaks of one
 * loses its value; so do query parameters with such names, and what stands before
 * the `@` of a URL; and every value that was found this way (of at least 8
 * characters, without its `Bearer`) is removed from the rest as well.
 */
export const redact = (sent: {
  readonly headers: Readonly<Record<string, string>>
  readonly path: string
  readonly body: string
}): Redacted => {
  const secrets = new Set<string>()
  const learn = (value: string) => {
    for (const one of [value, decoded(value)]) if (one.length >= 8) secrets.add(one)
  }
  for (const [name, value] of Object.entries(sent.headers)) {
    if (credentialName.test(name)) for (const piece of value.split(/[\s;,=]+/)) learn(piece)
  }
  const path = sent.path
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)([^/?#@]*)@/i, (_, scheme: string, user: string) => {
      for (const piece of user.split(":")) learn(piece)
      return `${scheme}${redacted}@`
    })
    .replace(/([?&])([^=&]+)=([^&]*)/g, (whole, mark: string, name: string, value: string) => {
      if (!credentialName.test(name) && !/^key$/i.test(name)) return whole
      learn(value)
      return `${mark}${name}=${redacted}`
    })
  // The longest first: what a shorter one leaves of a longer one would still be most of it.
  const longestFirst = [...secrets].sort((one, other) => other.length - one.length)
  const without = (text: string) => longestFirst.reduce((left, secret) => left.replaceAll(secret, redacted), text)
  const within = (value: unknown): unknown =>
    typeof value === "string"
      ? without(value)
      : Array.isArray(value)
      ? value.map(within)
      : typeof value === "object" && value !== null
      ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, within(inner)]))
      : value
  return {
    headers: Object.fromEntries(
      Object.entries(sent.headers).map(([name, value]) => [name, credentialName.test(name) ? redacted : without(value)])
    ),
    path: without(path),
    body: without(sent.body),
    redacted: (value) => (longestFirst.length === 0 ? value : within(value))
  }
}
