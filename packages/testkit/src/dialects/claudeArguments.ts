/**
 * The command line of Claude Code 2.1.332, as far as a long-lived process is
 * started with it: the options of its help text, and the refusals that were
 * recorded.
 */
import * as fs from "node:fs"
import * as Frames from "./claudeFrames.ts"

export interface Options {
  sessionId: string | undefined
  resume: string | undefined
  fork: boolean
  partial: boolean
  model: string | undefined
  system: string | undefined
  allowed: ReadonlyArray<string>
  disallowed: ReadonlyArray<string>
  /** The built-in tools that are offered at all; absent means all. */
  tools: ReadonlyArray<string> | undefined
  permissionMode: string
  asksOverStdio: boolean
  replaysUserMessages: boolean
  /** What is printed instead of playing anything. */
  answer: { readonly code: number; readonly stdout: string; readonly stderr: string } | undefined
}

const withValue = new Set([
  "--agent", "--agents", "--append-system-prompt", "--append-system-prompt-file", "--autocompact", "--debug-file", "--effort", "--environment",
  "--fallback-model", "--input-format", "--json-schema", "--max-budget-usd", "--max-turns", "--model", "--name", "-n", "--output-format",
  "--permission-mode", "--permission-prompt-tool", "--permission-prompts", "--plugin-dir", "--plugin-url", "--resume", "-r", "--session-id",
  "--setting-sources", "--settings", "--system-prompt", "--system-prompt-file", "--system-prompt-snapshot"
])
/** They take all arguments up to the next option. */
const variadic = new Set([
  "--add-dir", "--allowedTools", "--allowed-tools", "--betas", "--disallowedTools", "--disallowed-tools", "--file", "--mcp-config", "--tools"
])
const withoutValue = new Set([
  "--allow-dangerously-skip-permissions", "--ax-screen-reader", "--bare", "--brief", "--chrome", "--continue", "-c",
  "--dangerously-skip-permissions", "--debug", "-d", "--disable-slash-commands", "--exclude-dynamic-system-prompt-sections", "--fork-session",
  "--forward-subagent-text", "--ide", "--include-hook-events", "--include-partial-messages", "--no-chrome", "--no-session-persistence",
  "--print", "-p", "--replay-user-messages", "--restricted", "--safe-mode", "--strict-mcp-config", "--verbose", "--version", "-v", "--help", "-h"
])

const listOf = (values: ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  (values ?? []).flatMap((value) => value.match(/[^\s,(]+(?:\([^)]*\))?/gu) ?? [])

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/iu

/** Reads the arguments. What the program refuses is in `answer`. */
export const read = (argv: ReadonlyArray<string>): Options => {
  const given = new Map<string, Array<string>>()
  const rest: Array<string> = []
  let unknown: string | undefined
  let bare: string | undefined
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i] ?? ""
    if (!argument.startsWith("-") || argument === "-") {
      rest.push(argument)
      continue
    }
    const equals = argument.startsWith("--") ? argument.indexOf("=") : -1
    const name = equals < 0 ? argument : argument.slice(0, equals)
    const values = given.get(name) ?? []
    given.set(name, values)
    if (equals >= 0) values.push(argument.slice(equals + 1))
    else if ((withValue.has(name) || variadic.has(name)) && i + 1 === argv.length) bare ??= name
    else if (withValue.has(name)) values.push(argv[++i] ?? "")
    else if (variadic.has(name)) {
      do values.push(argv[++i] ?? "")
      while (i + 1 < argv.length && !(argv[i + 1] ?? "").startsWith("-"))
    } else if (!withoutValue.has(name)) unknown ??= name
  }
  const one = (...names: ReadonlyArray<string>): string | undefined => names.map((name) => given.get(name)?.at(-1)).find((value) => value !== undefined)
  const many = (...names: ReadonlyArray<string>): ReadonlyArray<string> => names.flatMap((name) => listOf(given.get(name)))
  const has = (...names: ReadonlyArray<string>): boolean => names.some((name) => given.has(name))
  const tools = given.get("--tools")
  const options: Options = {
    sessionId: one("--session-id"),
    resume: one("--resume", "-r"),
    fork: has("--fork-session"),
    partial: has("--include-partial-messages"),
    model: one("--model"),
    system: one("--append-system-prompt", "--system-prompt"),
    allowed: many("--allowedTools", "--allowed-tools"),
    disallowed: many("--disallowedTools", "--disallowed-tools"),
    tools: tools === undefined || tools.includes("default") ? undefined : listOf(tools),
    permissionMode: has("--dangerously-skip-permissions") ? "bypassPermissions" : one("--permission-mode") ?? "default",
    asksOverStdio: one("--permission-prompt-tool") === "stdio",
    replaysUserMessages: has("--replay-user-messages"),
    answer: undefined
  }
  const refuse = (stderr: string) => ({ ...options, answer: { code: 1, stdout: "", stderr } })
  if (unknown !== undefined) return refuse(`error: unknown option '${unknown}'\n`)
  if (bare !== undefined) return refuse(`the player: ${bare} needs a value\n`)
  if (has("--version", "-v")) return { ...options, answer: { code: 0, stdout: `${Frames.version} (Claude Code)\n`, stderr: "" } }
  if (!has("-p", "--print") || one("--input-format") !== "stream-json") {
    return refuse("the player: it plays nothing but -p --input-format stream-json\n")
  }
  if (one("--output-format") !== "stream-json") return refuse("Error: --input-format=stream-json requires output-format=stream-json.\n")
  if (!has("--verbose")) return refuse("Error: When using --print, --output-format=stream-json requires --verbose\n")
  for (const id of [options.sessionId, options.resume]) {
    if (id !== undefined && !uuid.test(id)) return refuse("Error: Invalid session ID. Must be a valid UUID.\n")
  }
  if (options.sessionId !== undefined && options.resume !== undefined && !options.fork) {
    return refuse("Error: --session-id can only be used with --continue or --resume if --fork-session is also specified.\n")
  }
  const file = one("--append-system-prompt-file", "--system-prompt-file")
  if (options.system !== undefined || file === undefined) return options
  try {
    return { ...options, system: fs.readFileSync(file, "utf8") }
  } catch (cause) {
    return refuse(`the player: the instructions cannot be read: ${cause instanceof Error ? cause.message : String(cause)}\n`)
  }
}

/** The callback that `initialize` registers for every use of a tool, if it does. */
export const hookOf = (hooks: unknown): string | undefined => {
  const registered = hooks as { readonly PreToolUse?: ReadonlyArray<{ readonly hookCallbackIds?: ReadonlyArray<string> }> } | undefined
  return registered?.PreToolUse?.[0]?.hookCallbackIds?.[0]
}

const names = (rules: ReadonlyArray<string>): ReadonlyArray<string> => rules.map((rule) => rule.replace(/\(.*$/u, ""))

/** Whether a tool runs unasked: by a rule, or because it only reads. A rule with a pattern does not count. */
export const allows = (options: Options, tool: string): boolean =>
  !names(options.disallowed).includes(tool)
  && (options.permissionMode === "bypassPermissions" || options.allowed.includes(tool) || ["Read", "Glob", "Grep"].includes(tool))

/** The tools that `system/init` names. */
export const toolsInForce = (
  options: Options,
  scenario: { readonly tools?: ReadonlyArray<string>; readonly reports_violations?: boolean }
): ReadonlyArray<string> => {
  if (scenario.reports_violations === true && scenario.tools !== undefined) return scenario.tools
  const offered = options.tools ?? scenario.tools ?? Frames.tools
  return offered.filter((tool) => !options.disallowed.includes(tool))
}
