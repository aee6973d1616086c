/**
 * The language in which a scripted agent is told what to do: one table, from
 * which its types, its check, its Effect Schema and its reference are made.
 *
 * A scenario is a JSON file. It lists turns, and each turn the actions that the
 * agent plays when it is given a prompt. The table is plain data without
 * dependencies, because the executable that plays it has to start fast.
 */

/** Any JSON value. */
export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }

/** What a field may hold. */
export type Field =
  | { readonly kind: "string" | "count" | "number" | "boolean" | "json" | "actions" | "strings"; readonly description: string; readonly optional?: true }
  | { readonly kind: "literals"; readonly values: ReadonlyArray<string>; readonly description: string; readonly optional?: true }
  | { readonly kind: "list"; readonly of: Fields; readonly description: string; readonly optional?: true }
  | { readonly kind: "struct"; readonly of: Fields; readonly description: string; readonly optional?: true }
export type Fields = { readonly [name: string]: Field }

type Value<F extends Field> = F extends { readonly kind: "literals"; readonly values: ReadonlyArray<infer V> } ? V
  : F extends { readonly kind: "list"; readonly of: infer O extends Fields } ? ReadonlyArray<Struct<O>>
  : F extends { readonly kind: "struct"; readonly of: infer O extends Fields } ? Struct<O>
  : F extends { readonly kind: "string" } ? string
  : F extends { readonly kind: "count" | "number" } ? number
  : F extends { readonly kind: "boolean" } ? boolean
  : F extends { readonly kind: "strings" } ? ReadonlyArray<string>
  : F extends { readonly kind: "actions" } ? Actions
  : Json

type Optional<S extends Fields> = { [K in keyof S]: S[K] extends { readonly optional: true } ? K : never }[keyof S]
type Struct<S extends Fields> =
  & { readonly [K in Exclude<keyof S, Optional<S>>]: Value<S[K]> }
  & { readonly [K in Optional<S>]?: Value<S[K]> }

const string = (description: string) => ({ kind: "string", description }) as const
const strings = (description: string) => ({ kind: "strings", description }) as const
const count = (description: string) => ({ kind: "count", description }) as const
const number = (description: string) => ({ kind: "number", description }) as const
const boolean = (description: string) => ({ kind: "boolean", description }) as const
const json = (description: string) => ({ kind: "json", description }) as const
const actions = (description: string) => ({ kind: "actions", description }) as const
const literals = <const V extends ReadonlyArray<string>>(values: V, description: string) =>
  ({ kind: "literals", values, description }) as const
const list = <const O extends Fields>(of: O, description: string) => ({ kind: "list", of, description }) as const
const struct = <const O extends Fields>(of: O, description: string) => ({ kind: "struct", of, description }) as const
const optional = <const F extends Field>(field: F) => ({ ...field, optional: true }) as const

const streamed = {
  text: string("The whole text. Holes such as {{prompt}} are filled in."),
  pieces: optional(count("Into how many deltas it is cut, at least 1. Absent means one for each word.")),
  delay_ms: optional(count("Milliseconds between two deltas. Absent means 0.")),
  unfinished: optional(boolean("Whether the message is left open: deltas, and no whole message after them. Absent means false."))
}

const signal = literals(["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGKILL"], "A signal's name.")

/** Every action, by its `type`, with what it does and what it takes. */
export const actionTable = {
  // What the agent says, in the words of the dialect it plays.
  text: { does: "Streams a piece of the answer in deltas, then says it whole.", takes: streamed },
  reasoning: { does: "Streams reasoning.", takes: streamed },
  tool_call: {
    does: "Announces that a tool runs.",
    takes: {
      id: string("Pairs the call with its result."),
      name: string("The tool's name."),
      input: optional(json("What the tool is given. Absent means an empty object."))
    }
  },
  tool_result: {
    does: "Tells what came of a tool.",
    takes: {
      id: string("The id of the call."),
      output: string("What the tool said."),
      is_error: optional(boolean("Whether it failed. Absent means false."))
    }
  },
  ask: {
    does: "Announces a tool, asks whether it may run, waits for the answer, and plays one of two lists.",
    takes: {
      id: string("The id of the call."),
      name: string("The tool's name."),
      input: optional(json("What the tool would be given. Absent means an empty object.")),
      description: optional(string("What a person is shown.")),
      allowed: optional(actions("Played when it is allowed. Absent means a result that says so.")),
      denied: optional(actions("Played when it is denied. Absent means a result that says so."))
    }
  },
  usage: {
    does: "Sets what the turn has consumed. Without it the agent reports no usage.",
    takes: {
      input_tokens: count("All tokens sent, cached ones included."),
      output_tokens: count("All tokens produced."),
      cache_read_tokens: optional(count("The part of input_tokens read from a cache.")),
      cache_write_tokens: optional(count("The part of input_tokens written to a cache.")),
      cost_usd: optional(number("United States dollars."))
    }
  },
  todo: {
    does: "Writes the whole list of things to do.",
    takes: {
      todos: list({
        content: string("What is to be done."),
        status: literals(["pending", "in_progress", "completed"], "How far it is.")
      }, "The list.")
    }
  },
  retry: {
    does: "Says that a model request is sent again.",
    takes: {
      attempt: count("1 for the first repetition."),
      max_attempts: count("How many there may be."),
      delay_ms: count("Milliseconds until it is sent."),
      http_status: optional(count("What the model's service had answered."))
    }
  },
  note: { does: "Says something that is neither an answer nor a failure.", takes: { text: string("The remark.") } },
  background: {
    does: "Declares the tasks that go on after the turn; the last declaration counts, an empty list says that none is left.",
    takes: { tasks: list({ id: string("The task's id."), description: optional(string("What it does.")) }, "The tasks.") }
  },
  bind: {
    does: "Announces the session again, under another id where one is given.",
    takes: { session_id: optional(string("The new id. Absent means the same.")) }
  },
  end: {
    does: "Ends the turn. Actions after it are played while the next prompt may already run: late frames.",
    takes: {
      reason: literals(["completed", "max-tokens", "max-turns", "refusal", "aborted"], "How the turn ended."),
      text: optional(string("The final answer. Absent means the text since the last tool."))
    }
  },
  fail: {
    does: "Ends the turn with a failure.",
    takes: {
      code: literals([
        "AUTH",
        "PERMISSION_DENIED",
        "RATE_LIMIT",
        "OVERLOADED",
        "SERVER",
        "TRANSPORT",
        "TIMEOUT",
        "CONTEXT_WINDOW_EXCEEDED",
        "INVALID_REQUEST",
        "MODEL_NOT_FOUND",
        "HARNESS_FAILED"
      ], "The kind of failure."),
      message: string("What happened."),
      http_status: optional(count("The HTTP status that stands behind it."))
    }
  },

  own_turn: {
    does: "Begins a turn that nobody asked for, once none runs. Prompts wait for its end. An interrupt ends it as any other.",
    takes: { do: actions("What is played in it. Without an `end` or `fail` it never ends by itself.") }
  },

  // What the agent writes, byte by byte, whatever the dialect.
  frame: { does: "Writes one JSON value as a line, as it is.", takes: { value: json("The value. Holes in strings are filled in.") } },
  write: {
    does: "Writes bytes to standard output, without a line feed of its own.",
    takes: {
      text: optional(string("As UTF-8, unchanged. Exactly one of text and base64.")),
      base64: optional(string("As bytes. Exactly one of text and base64."))
    }
  },
  huge_line: { does: "Writes one line of the letter x.", takes: { bytes: count("Its length without the line feed.") } },
  join_next: { does: "Writes the next frame without its line feed, so that two share a line.", takes: {} },
  buffer_writes: {
    does: "From now on writes to standard output only when so many bytes are there, as programs do that find no terminal; 0 writes the rest and stops it.",
    takes: { bytes: count("The size of the buffer.") }
  },
  chunk_writes: { does: "From now on cuts every write into pieces.", takes: { bytes: count("The size of a piece; 0 stops it.") } },
  stderr: {
    does: "Writes to standard error.",
    takes: { text: string("The text, with its line feeds."), times: optional(count("How often. Absent means once.")) }
  },

  // What the agent does to the machine.
  spawn: {
    does: "Starts a child process.",
    takes: {
      argv: strings("Program and arguments; no shell. Holes are filled in."),
      as: literals(
        ["child", "session", "daemon"],
        "child: an ordinary child; session: the leader of a session of its own; daemon: forked twice, so that its parent is gone."
      ),
      holds_stdout: optional(boolean("Whether it keeps the agent's standard output and error open. Absent means false.")),
      ignores: optional(strings("Signals that it ignores, such as INT and TERM.")),
      pid_file: optional(string("A file that gets its process id, in decimal.")),
      wait: optional(boolean("Whether to wait for its end. Absent means false."))
    }
  },
  write_file: {
    does: "Writes a file.",
    takes: { path: string("Relative to the working directory, or absolute."), text: string("Its content. Holes are filled in.") }
  },
  ignore_signals: { does: "From now on ignores signals.", takes: { signals: strings("Names such as SIGTERM.") } },
  ignore_interrupts: { does: "From now on ignores requests to interrupt.", takes: {} },
  ignore_eof: { does: "From now on goes on when standard input ends.", takes: {} },
  stop_reading: { does: "Reads no more of standard input, so that the pipe fills.", takes: {} },
  close: { does: "Closes a stream.", takes: { stream: literals(["stdout", "stderr", "stdin"], "Which one.") } },
  exit: { does: "Exits at once.", takes: { code: count("0 to 255.") } },
  kill: { does: "Sends itself a signal.", takes: { signal } },

  // When, and how often.
  delay: { does: "Waits.", takes: { ms: count("Milliseconds.") } },
  wait_for: {
    does: "Waits for one thing of the outside.",
    takes: {
      what: literals(["interrupt", "eof", "signal", "file"], "What to wait for."),
      signal: optional(signal),
      path: optional(string("The file that must exist."))
    }
  },
  hang: { does: "Waits for ever. An interrupt ends it.", takes: {} },
  repeat: {
    does: "Plays a list several times.",
    takes: { times: count("How often."), do: actions("What is played; {{i}} is the number of the round, from 0.") }
  },
  if_env: {
    does: "Plays one of two lists, depending on a variable of the environment.",
    takes: { name: string("The variable."), set: optional(actions("Played where it is set.")), unset: optional(actions("Played where it is not.")) }
  }
} as const satisfies Readonly<Record<string, { readonly does: string; readonly takes: Fields }>>

type Table = typeof actionTable
export type ActionType = keyof Table

/** An action of one type. */
export type ActionOf<T extends ActionType> = { readonly type: T } & Struct<Table[T]["takes"]>
export type Action = { [T in ActionType]: ActionOf<T> }[ActionType]

/** A list of actions. An interface, so that the types may be recursive. */
export interface Actions extends ReadonlyArray<Action> {}

const turnFields = {
  when: optional(struct({
    equals: optional(string("The prompt is exactly this.")),
    contains: optional(string("The prompt has this in it.")),
    matches: optional(string("A regular expression finds something in the prompt."))
  }, "Which prompts the turn is for; all that is given must hold. Absent means any.")),
  repeats: optional(boolean("Whether the turn may be played again and again. Absent means once.")),
  do: actions("What is played. Without an `end` or `fail` the turn never ends by itself.")
} as const

/** The fields of a scenario. */
export const scenarioFields = {
  description: optional(string("What the scenario is for, in a sentence.")),
  model: optional(string("The model that is named where the caller names none. Absent means scripted-1.")),
  tools: optional(strings("The tools that are named as being in force. Absent means those the caller allows.")),
  reports_violations: optional(boolean("Whether the model and tools above are named even where the caller asked for others. Absent means false.")),
  mcp_servers: optional(list({
    name: string("The server's name."),
    status: string("connected, or what went wrong.")
  }, "The MCP servers that are named as configured. Absent means none.")),
  handshake: optional(
    literals(["answer", "never", "other_protocol"], "How the agent answers the opening of a session. Absent means answer.")
  ),
  memory: optional(
    literals(["keeps", "forgets"], "Whether a session that is resumed knows the prompts of before. Absent means keeps.")
  ),
  resume: optional(literals(
    ["same_id", "new_id", "unknown", "in_use"],
    "What becomes of a session that is resumed: it goes on, goes on under a new id, is not found, or is held by another. Absent means same_id where it is known and not found otherwise."
  )),
  start: optional(actions("Played before anything is read.")),
  after_opening: optional(actions("Played once the session is open: when the first line of input has been dealt with, or the last of those that a vendor's protocol opens with.")),
  turns: list(
    turnFields,
    "A prompt is answered by the first turn that is for it and has not been played, unless it repeats."
  ),
  on_interrupt: optional(actions("Played when the running turn is interrupted. Absent means that the turn ends as aborted.")),
  on_eof: optional(actions("Played when standard input ends. Absent means to finish the running turn and exit with 0.")),
  on_sigint: optional(actions("Played on SIGINT, which then does not end the process. Absent means what the dialect does.")),
  on_sigterm: optional(actions("Played on SIGTERM, which then does not end the process. Absent means what the dialect does."))
} as const satisfies Fields

export type Scenario = Struct<typeof scenarioFields>
export type Turn = Struct<typeof turnFields>

/** What may stand in holes, such as {{prompt}}. Any other hole stays as it is. */
export const holes: Readonly<Record<string, string>> = {
  prompt: "the prompt of this turn",
  prompts: "every prompt of the session so far, as a JSON list",
  session: "the session's id",
  model: "the model in force",
  system: "the instructions that the caller gave",
  tools: "the tools in force, as a JSON list",
  turn: "the number of the turn in this process, from 1",
  cwd: "the working directory",
  pid: "the process id",
  args: "the arguments that the program was started with, as a JSON list",
  i: "the round of the innermost repeat, from 0",
  "env:NAME": "a variable of the environment; empty where it is not set"
}

/** What is wrong with a scenario, with the place where it is. */
export interface Problem {
  readonly path: string
  readonly message: string
}

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const checkFields = (path: string, fields: Fields, value: Record<string, unknown>, extra: ReadonlyArray<string>): Array<Problem> => {
  const at = (name: string) => (path === "" ? name : `${path}.${name}`)
  const known = [...extra, ...Object.keys(fields)]
  const problems: Array<Problem> = Object.keys(value).filter((name) => !known.includes(name)).map((name) => ({
    path: at(name),
    message: `is not known here; known are ${known.length === 0 ? "no fields" : known.join(", ")}`
  }))
  for (const [name, field] of Object.entries(fields)) {
    if (value[name] === undefined) {
      if (field.optional !== true) problems.push({ path: at(name), message: "is missing" })
    } else problems.push(...checkField(at(name), field, value[name]))
  }
  return problems
}

const checkField = (path: string, field: Field, value: unknown): Array<Problem> => {
  const not = (expected: string): Array<Problem> => [{ path, message: `is ${shown(value)}, expected ${expected}` }]
  switch (field.kind) {
    case "string":
      return typeof value === "string" ? [] : not("a string")
    case "boolean":
      return typeof value === "boolean" ? [] : not("true or false")
    case "count":
      return Number.isSafeInteger(value) && Number(value) >= 0 ? [] : not("a whole number of at least 0")
    case "number":
      return Number.isFinite(value) && Number(value) >= 0 ? [] : not("a number of at least 0")
    case "json":
      return []
    case "strings":
      return Array.isArray(value) && value.every((each) => typeof each === "string") ? [] : not("a list of strings")
    case "literals":
      return field.values.some((each) => each === value) ? [] : not(`one of ${field.values.join(", ")}`)
    case "struct":
      return isRecord(value) ? checkFields(path, field.of, value, []) : not("an object")
    case "list":
      return Array.isArray(value)
        ? value.flatMap((each: unknown, i) =>
          isRecord(each) ? checkFields(`${path}[${i}]`, field.of, each, []) : [{ path: `${path}[${i}]`, message: "is not an object" }]
        )
        : not("a list of objects")
    case "actions":
      return Array.isArray(value) ? value.flatMap((each: unknown, i) => checkAction(`${path}[${i}]`, each)) : not("a list of actions")
  }
}

const isActionType = (type: unknown): type is ActionType => typeof type === "string" && Object.hasOwn(actionTable, type)

const checkAction = (path: string, value: unknown): Array<Problem> => {
  if (!isRecord(value)) return [{ path, message: `is ${shown(value)}, expected an action` }]
  const type = value["type"]
  if (!isActionType(type)) {
    return [{ path: `${path}.type`, message: `is ${shown(type)}, expected one of ${Object.keys(actionTable).join(", ")}` }]
  }
  const problems = checkFields(path, actionTable[type].takes, value, ["type"])
  if (problems.length > 0) return problems
  // What no field alone can say.
  if (type === "write" && (value["text"] === undefined) === (value["base64"] === undefined)) {
    return [{ path, message: "needs exactly one of text and base64" }]
  }
  if (type === "wait_for" && value["what"] === "signal" && value["signal"] === undefined) {
    return [{ path: `${path}.signal`, message: "is missing" }]
  }
  if (type === "wait_for" && value["what"] === "file" && value["path"] === undefined) {
    return [{ path: `${path}.path`, message: "is missing" }]
  }
  if (type === "spawn" && (value["argv"] as ReadonlyArray<string>).length === 0) {
    return [{ path: `${path}.argv`, message: "names no program" }]
  }
  return []
}

const isPattern = (pattern: string): boolean => {
  try {
    new RegExp(pattern, "u")
    return true
  } catch {
    return false
  }
}

/** Tells everything that is wrong with a value that should be a scenario; nothing is the good answer. */
export const problemsOf = (value: unknown): ReadonlyArray<Problem> => {
  if (!isRecord(value)) return [{ path: "", message: "the scenario is not a JSON object" }]
  const problems = checkFields("", scenarioFields, value, [])
  if (problems.length > 0) return problems
  return (value as Scenario).turns.flatMap((turn, i) =>
    turn.when?.matches === undefined || isPattern(turn.when.matches)
      ? []
      : [{ path: `turns[${i}].when.matches`, message: `is ${shown(turn.when.matches)}, which is no regular expression` }]
  )
}

/** Problems as text for people, one a line. */
export const describeProblems = (problems: ReadonlyArray<Problem>): string =>
  problems.map(({ path, message }) => (path === "" ? message : `${path} ${message}`)).join("\n")

const nameOf = (field: Field): string => {
  switch (field.kind) {
    case "count":
      return "whole number"
    case "strings":
      return "list of strings"
    case "list":
      return "list of objects"
    case "struct":
      return "object"
    case "literals":
      return field.values.join(" | ")
    case "json":
      return "any JSON"
    case "actions":
      return "list of actions"
    default:
      return field.kind
  }
}

const reference = (indent: string, fields: Fields): ReadonlyArray<string> =>
  Object.entries(fields).flatMap(([name, field]) => [
    `${indent}${name}${field.optional === true ? "?" : ""}: ${nameOf(field)}`,
    `${indent}    ${field.description}`,
    ...(field.kind === "list" || field.kind === "struct" ? reference(`${indent}    `, field.of) : [])
  ])

/** The whole language as text for people. */
export const describe = (): string =>
  [
    "A scenario is a JSON object. Unknown fields are refused; `?` marks those that may be absent.",
    "",
    ...reference("  ", scenarioFields),
    "",
    "An action is an object with its `type` and:",
    "",
    ...Object.entries(actionTable).flatMap(([type, { does, takes }]) => [`  ${type}  ${does}`, ...reference("      ", takes)]),
    "",
    "Holes in texts:",
    "",
    ...Object.entries(holes).map(([hole, meaning]) => `  {{${hole}}}  ${meaning}`),
    ""
  ].join("\n")
