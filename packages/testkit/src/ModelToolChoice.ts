/**
 * How the scripted model picks a tool, among those a client offers, and fills in
 * its arguments from the tool's own JSON Schema.
 *
 * Names and arguments were observed in the requests of Claude Code 2.1.332,
 * Codex 0.171.0 and Copilot 1.0.102.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as ModelRequest from "./ModelRequest.ts"

export type Purpose = "run" | "read" | "write"

/** `target` is the command or the path. */
export interface Wish {
  readonly target: string
  readonly content?: string
}

export interface Choice {
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
}

const names: Readonly<Record<Purpose, ReadonlyArray<string>>> = {
  run: ["Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command", "execute", "run"],
  read: ["Read", "view", "read_file", "read"],
  write: ["Write", "create", "write_file", "write"]
}

const targets: Readonly<Record<Purpose, ReadonlyArray<string>>> = {
  run: ["command", "cmd", "script"],
  read: ["file_path", "path", "filePath", "absolute_path"],
  write: ["file_path", "path", "filePath", "absolute_path"]
}

const contents = ["content", "file_text", "text"]

/** Optional arguments that keep a client from giving up on a command that a test wants to run for long. */
const patience: Readonly<Record<string, unknown>> = {
  timeout: 600_000,
  timeout_ms: 600_000,
  yield_time_ms: 600_000,
  initial_wait: 600,
  mode: "sync"
}

const Property = Schema.Struct({
  type: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  enum: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  default: Schema.optionalKey(Schema.Unknown),
  minimum: Schema.optionalKey(Schema.Finite)
})

const ObjectSchema = Schema.Struct({
  properties: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  required: Schema.optionalKey(Schema.Array(Schema.String))
})

const asObject = Schema.decodeUnknownOption(ObjectSchema)
const asProperty = Schema.decodeUnknownOption(Property)

const typeOf = (property: unknown): string | undefined => {
  const type = Option.getOrUndefined(asProperty(property))?.type
  return typeof type === "string" ? type : type?.[0]
}

/** A value that a required argument takes which the script has no opinion about. */
const filler = (property: unknown): unknown => {
  const known = Option.getOrUndefined(asProperty(property))
  if (known?.default !== undefined) return known.default
  if (known?.enum !== undefined && known.enum.length > 0) return known.enum[0]
  switch (typeOf(property)) {
    case "number":
    case "integer":
      return known?.minimum ?? 1
    case "boolean":
      return false
    case "array":
      return []
    case "object":
      return {}
    default:
      return "scripted"
  }
}

/** Picks the first known tool for the purpose; null if the client offers none. */
export const choose = (tools: ReadonlyArray<ModelRequest.Tool>, purpose: Purpose, wish: Wish): Choice | null => {
  const tool = names[purpose].map((name) => tools.find((one) => one.name === name)).find((one) => one !== undefined)
  if (tool === undefined) return null
  const { properties = {}, required = [] } = Option.getOrElse(asObject(tool.input_schema), (): typeof ObjectSchema.Type => ({}))
  const pick = (candidates: ReadonlyArray<string>): string =>
    candidates.find((name) => Object.hasOwn(properties, name)) ?? candidates[0] ?? "input"
  const input: Record<string, unknown> = {}
  const target = pick(targets[purpose])
  input[target] = typeOf(properties[target]) === "array" ? ["bash", "-lc", wish.target] : wish.target
  if (wish.content !== undefined) input[pick(contents)] = wish.content
  if (Object.hasOwn(properties, "description")) input["description"] = "Run a scripted command"
  if (purpose === "run") {
    for (const [name, value] of Object.entries(patience)) {
      if (!Object.hasOwn(properties, name)) continue
      const property = properties[name]
      const allowed = Option.getOrUndefined(asProperty(property))?.enum
      if (allowed === undefined || allowed.includes(value)) input[name] = value
    }
  }
  for (const name of required) {
    if (!Object.hasOwn(input, name)) input[name] = filler(Object.hasOwn(properties, name) ? properties[name] : undefined)
  }
  return { name: tool.name, input }
}
