/**
 * Makes the specification of a run from a command line.
 *
 * Every field comes from one place: a flag, or the file of `--spec`. A field
 * that both set is refused, because whichever won would surprise somebody. What
 * neither sets keeps the contract's default.
 */
import { type AgentRunSpec, Contracts } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as fs from "node:fs"
import * as path from "node:path"
import { all, type Given, isOn, one, quote } from "./CommandLine.ts"
import * as InputText from "./InputText.ts"
import { refuse, type Refusal } from "./Refusal.ts"

/** One field that the command line sets. */
interface Setting {
  readonly flag: string
  readonly path: ReadonlyArray<string>
  readonly value: unknown
}

type JsonObject = { readonly [key: string]: unknown }

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value at a path; `null` counts as absent, as it does in the contract. */
const at = (root: unknown, keys: ReadonlyArray<string>): unknown =>
  keys.reduce<unknown>((value, key) => isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined, root) ?? undefined

const withValue = (root: unknown, [key, ...rest]: ReadonlyArray<string>, value: unknown): unknown => {
  if (key === undefined) return value
  const object = isObject(root) ? root : {}
  return { ...object, [key]: withValue(Object.hasOwn(object, key) ? object[key] : undefined, rest, value) }
}

/** Refuses two flags of which each alone would set a field. */
const exclude = (given: ReadonlyArray<string>, what: string) =>
  given.length > 1
    ? Effect.fail(refuse("USAGE", `${given.join(" and ")} each give ${what}`, { remedy: `Give ${what} once.` }))
    : Effect.void

/** Where the task comes from, of the command line's four ways. */
const task = (given: Given, positional: string | undefined): Effect.Effect<ReadonlyArray<Setting>, Refusal> =>
  Effect.gen(function*() {
    const text = one(given, "task")
    const file = one(given, "task-file")
    yield* exclude(
      [
        ...(positional === undefined ? [] : ["the argument"]),
        ...(text === undefined ? [] : ["--task"]),
        ...(file === undefined ? [] : ["--task-file"])
      ],
      "the task"
    )
    const setting = (flag: string, value: string): ReadonlyArray<Setting> => [{ flag, path: ["task"], value }]
    if (text !== undefined) return setting("--task", text)
    if (file !== undefined) return setting("--task-file", yield* InputText.read(file, "--task-file"))
    if (positional === InputText.standardInput) return setting("the argument -", yield* InputText.read(positional, "the argument -"))
    return positional === undefined ? [] : setting("the argument", positional)
  })

const tools = (given: Given): Effect.Effect<ReadonlyArray<Setting>, Refusal> =>
  Effect.gen(function*() {
    const allowed = all(given, "allow-tool")
    const dangerous = isOn(given, "dangerous-all-tools")
    yield* exclude([...(allowed.length > 0 ? ["--allow-tool"] : []), ...(dangerous ? ["--dangerous-all-tools"] : [])], "the tools")
    if (dangerous) return [{ flag: "--dangerous-all-tools", path: ["tools"], value: { dangerous_all: true } }]
    return allowed.length > 0 ? [{ flag: "--allow-tool", path: ["tools"], value: { allow: allowed } }] : []
  })

const variables = (given: Given): Effect.Effect<ReadonlyArray<Setting>, Refusal> =>
  Effect.gen(function*() {
    const settings: Array<Setting> = []
    for (const pair of all(given, "env")) {
      const name = pair.slice(0, pair.indexOf("="))
      if (settings.some((setting) => setting.path[1] === name)) {
        return yield* refuse("USAGE", `--env sets ${name} twice`, { remedy: `Give --env ${name}=… once.` })
      }
      settings.push({ flag: `--env ${name}`, path: ["env", name], value: pair.slice(pair.indexOf("=") + 1) })
    }
    return settings
  })

const plain: ReadonlyArray<readonly [flag: string, path: ReadonlyArray<string>]> = [
  ["harness", ["harness"]],
  ["recipe", ["recipe"]],
  ["session", ["session", "id"]],
  ["resume", ["session", "resume"]],
  ["model", ["model"]],
  ["permission", ["permission"]],
  ["background", ["background"]],
  ["cwd", ["workspace", "cwd"]]
]

/** Everything that flags set, apart from the task. */
const settings = (given: Given): Effect.Effect<ReadonlyArray<Setting>, Refusal> =>
  Effect.gen(function*() {
    const timeout = one(given, "timeout")
    const systemFile = one(given, "system-file")
    return [
      ...plain.flatMap(([flag, keys]): ReadonlyArray<Setting> => {
        const value = one(given, flag)
        return value === undefined ? [] : [{ flag: `--${flag}`, path: keys, value }]
      }),
      ...(timeout === undefined ? [] : [{ flag: "--timeout", path: ["limits", "timeout_s"], value: Number(timeout) }]),
      ...(yield* tools(given)),
      ...(yield* variables(given)),
      ...(systemFile === undefined
        ? []
        : [{ flag: "--system-file", path: ["system"], value: yield* InputText.read(systemFile, "--system-file") }])
    ]
  })

/** Standard input can be read once. */
const oneReader = (given: Given, positional: string | undefined) =>
  exclude(
    [
      ...["task-file", "system-file", "spec"].filter((flag) => one(given, flag) === InputText.standardInput).map((flag) => `--${flag}`),
      ...(positional === InputText.standardInput ? ["the argument"] : [])
    ],
    "standard input a use"
  )

const readSpec = (file: string): Effect.Effect<JsonObject, Refusal> =>
  Effect.gen(function*() {
    const text = yield* InputText.read(file, "--spec")
    const parsed = yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: () => {
        const [fault] = Contracts.validateText("agent-run-spec", text, { lines: false }).faults
        return refuse("INVALID_SPEC", `${InputText.shown(file)} is not JSON: line ${fault?.line ?? 1}: ${fault?.message ?? "it cannot be parsed"}`)
      }
    })
    const repeated = Contracts.repeatedKey(text)
    if (repeated !== undefined) {
      return yield* refuse("INVALID_SPEC", `${InputText.shown(file)}: line ${repeated.line}: the field ${quote(repeated.key)} stands there a second time`, {
        remedy: "Give each field once."
      })
    }
    if (isObject(parsed)) return parsed
    return yield* refuse("INVALID_SPEC", `${InputText.shown(file)} is no run specification: Expected an object`)
  })

const check = Contracts.check("agent-run-spec")

/** Whether a fault lies in what a setting set. */
const isIn = (fault: Contracts.Fault, setting: Setting): boolean => {
  const path = setting.path.join(".")
  return fault.path === path || fault.path.startsWith(`${path}.`) || fault.path.startsWith(`${path}[`)
}

const checked = (
  spec: unknown,
  set: ReadonlyArray<Setting>,
  file: string | undefined
): Effect.Effect<AgentRunSpec.AgentRunSpec, Refusal> =>
  Effect.suspend(() => {
    const decoded = check(spec)
    if (Result.isSuccess(decoded)) return Effect.succeed(decoded.success)
    for (const fault of decoded.failure) {
      const setting = set.find((each) => isIn(fault, each))
      if (setting !== undefined) {
        return Effect.fail(refuse("USAGE", `${setting.flag}: ${fault.message}`, { remedy: `Correct ${setting.flag}; \`turnpike run --help\` says what it takes.` }))
      }
    }
    return Effect.fail(refuse("INVALID_SPEC", `${file === undefined ? "the specification" : InputText.shown(file)}: ${Contracts.format(decoded.failure)}`))
  })

/** What the harness is chosen by where nothing names it. */
export interface Unnamed {
  readonly env: Readonly<Record<string, string>>
  readonly sessionId: string | undefined
  /** Whether the session has to exist. */
  readonly isContinued: boolean
}

const textsOf = (value: unknown): Readonly<Record<string, string>> =>
  isObject(value) ? Object.fromEntries(Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string")) : {}

/**
 * Makes the specification. `given` are the flags, `positional` is the argument;
 * `choose` answers the harness where neither it nor a recipe is named, once
 * everything else was found in order.
 * Fails with `USAGE`, `EMPTY_TASK`, `INVALID_SPEC` or `FILE_UNREADABLE`, and as `choose` does.
 */
export const make = <R>(
  given: Given,
  positional: string | undefined,
  choose: (unnamed: Unnamed) => Effect.Effect<string, Refusal, R>
): Effect.Effect<AgentRunSpec.AgentRunSpec, Refusal, R> =>
  Effect.gen(function*() {
    yield* oneReader(given, positional)
    const file = one(given, "spec")
    const set = [...(yield* task(given, positional)), ...(yield* settings(given))]
    const base: JsonObject = file === undefined ? {} : yield* readSpec(file)
    const where = file === undefined ? "the specification" : InputText.shown(file)
    for (const setting of set) {
      if (at(base, setting.path) !== undefined) {
        return yield* refuse("USAGE", `${setting.flag} and ${setting.path.join(".")} in ${where} set the same field`, {
          remedy: `Leave out ${setting.flag}, or ${setting.path.join(".")} in ${where}.`
        })
      }
    }
    const merged = set.reduce<unknown>((spec, setting) => withValue(spec, setting.path, setting.value), base) as JsonObject
    const from = (field: string) => set.find((each) => each.path[0] === field)?.flag ?? `${field} in ${where}`
    const harness = merged["harness"] ?? undefined
    const recipe = merged["recipe"] ?? undefined
    if (harness !== undefined && recipe !== undefined) {
      return yield* refuse("USAGE", `${from("harness")} and ${from("recipe")} exclude each other`, { remedy: "Give exactly one of harness and recipe." })
    }
    if (merged["task"] === undefined) {
      return yield* refuse("USAGE", "there is no task", {
        remedy: "Give the task as an argument, with --task, with --task-file, or on standard input with -."
      })
    }
    if (typeof merged["task"] === "string" && merged["task"].trim() === "") {
      return yield* refuse("EMPTY_TASK", `the task is empty (${from("task")})`)
    }
    if (at(merged, ["session", "resume"]) !== undefined && at(merged, ["session", "id"]) === undefined) {
      return yield* refuse("USAGE", `${set.find((each) => each.flag === "--resume")?.flag ?? `session.resume in ${where}`} needs a session to continue`, {
        remedy: "Name the session with --session."
      })
    }
    const complete = isObject(merged["workspace"]) && set.some((each) => each.path[0] === "workspace") && merged["workspace"]["kind"] === undefined
      ? { ...merged, workspace: { kind: "local", ...merged["workspace"] } }
      : merged
    if (harness !== undefined || recipe !== undefined) return yield* checked(complete, set, file)
    // With a name that stands for any, so that whatever else is wrong is told first.
    yield* checked({ ...complete, harness: "any" }, set, file)
    const sessionId = at(merged, ["session", "id"])
    const chosen = yield* choose({
      env: textsOf(merged["env"]),
      sessionId: typeof sessionId === "string" ? sessionId : undefined,
      isContinued: at(merged, ["session", "resume"]) !== undefined
    })
    return yield* checked({ ...complete, harness: chosen }, set, file)
  })

/** The working directory of a specification, absolute. Fails with `FILE_UNREADABLE` where it is none. */
export const directory = (spec: AgentRunSpec.AgentRunSpec): Effect.Effect<string, Refusal> =>
  Effect.suspend(() => {
    const cwd = path.resolve(spec.workspace?.cwd ?? ".")
    try {
      if (fs.statSync(cwd).isDirectory()) {
        fs.accessSync(cwd, fs.constants.X_OK)
        return Effect.succeed(fs.realpathSync(cwd))
      }
      return Effect.fail(refuse("FILE_UNREADABLE", `the working directory ${quote(cwd)} is not a directory`, { remedy: "Name an existing directory with --cwd." }))
    } catch (cause) {
      return Effect.fail(
        refuse("FILE_UNREADABLE", `the working directory ${quote(cwd)} cannot be used: ${InputText.reasonOf(cause)}`, {
          remedy: "Name an existing directory with --cwd."
        })
      )
    }
  })
