/**
 * The environment that a supervised program starts with.
 *
 * A program started from within an agent inherits that agent's marks, and some
 * agents refuse to start, or change what they do, when they see them: they are
 * removed. What a person sets to configure an agent (sign-in, home, provider,
 * limits) carries the same prefixes and stays.
 */

/**
 * Marks that agents leave in the environment of what they start. A name that
 * ends in `*` stands for every name with that beginning.
 *
 * Claude Code's are those that a command of its Bash tool finds beyond what
 * Claude Code itself was given (2.1.332), and the port of its editor extension.
 * They are named one by one, since people set many `CLAUDE_CODE_*`.
 */
export const agentMarkers: ReadonlyArray<string> = [
  "CLAUDECODE",
  "CLAUDE_CODE_CHILD_NOTES_DIR",
  "CLAUDE_CODE_CHILD_SESSION",
  "CLAUDE_CODE_ENTRYPOINT",
  "CLAUDE_CODE_EXECPATH",
  "CLAUDE_CODE_MESSAGING_*",
  "CLAUDE_CODE_SESSION_*",
  "CLAUDE_CODE_SSE_PORT",
  "CLAUDE_AGENT_SDK_*",
  "CLAUDE_EFFORT",
  "CLAUDE_PID",
  "CODEX_*",
  "COPILOT_*",
  "CURSOR_AGENT",
  "CURSOR_TRACE_ID",
  "GEMINI_CLI",
  "GEMINI_CLI_*",
  "OPENCODE",
  "OPENCODE_CALLER",
  "AI_AGENT"
]

/** Settings that a person makes, though their names begin like marks. They are kept. */
export const agentSettings: ReadonlyArray<string> = [
  "CODEX_ACCESS_TOKEN",
  "CODEX_API_KEY",
  "CODEX_CA_CERTIFICATE",
  "CODEX_HOME",
  "CODEX_SQLITE_HOME",
  "COPILOT_AUTO_UPDATE",
  "COPILOT_CUSTOM_INSTRUCTIONS_DIRS",
  "COPILOT_GITHUB_TOKEN",
  "COPILOT_HOME",
  "COPILOT_MODEL",
  "COPILOT_OFFLINE",
  "COPILOT_PROVIDER_*"
]

const matches = (patterns: ReadonlyArray<string>, name: string): boolean =>
  patterns.some((pattern) => pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern)

/** Whether a variable is an agent's mark and not a person's setting. */
export const isAgentMarker = (name: string): boolean => matches(agentMarkers, name) && !matches(agentSettings, name)

export type Variables = { readonly [name: string]: string | undefined }

/**
 * Answers `inherited` without the marks, then with `changes`: a value sets, and
 * `undefined` removes, a variable. A mark that `changes` sets stays set.
 */
export const make = (inherited: Variables, changes: Variables = {}): Record<string, string> => {
  const environment = new Map<string, string>()
  for (const [name, value] of Object.entries(inherited)) {
    if (value !== undefined && !isAgentMarker(name)) environment.set(name, value)
  }
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) environment.delete(name)
    else environment.set(name, value)
  }
  // By assignment a variable named `__proto__` would be lost.
  return Object.fromEntries(environment)
}
