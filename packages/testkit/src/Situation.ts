/**
 * Situations in which a harness has to prove itself: what its program does, as
 * a sentence and as a scenario for the scripted agent.
 *
 * A situation begins with a prompt of its own, {@link promptOf}; `late_in_turn`
 * goes on with {@link meanwhile}. Every other prompt is answered with all prompts of the session so far, as a JSON list:
 * the proof of what arrived and of what is remembered. The scenarios are plain
 * JSON in the language that `turnpike-scripted-agent --describe` describes; the
 * tests of harness-scripted check each of them.
 */
import type { Json } from "./DialectWords.ts"

/** What the program does in each situation. */
export const situations = {
  echo: "It answers, and reports usage.",
  streams: "It says something and then never ends its turn, unless it is interrupted.",
  silent: "It says nothing, ever, unless it is interrupted.",
  stuck: "It says something, starts processes that ignore signals, and ignores interrupts, the end of its input, INT and TERM.",
  deaf: "It reads nothing more once its session is open.",
  dies: "It says something and dies of KILL.",
  exits: "It says something and exits with 0, without ending its turn.",
  fails: "It reports that the model's service is overloaded.",
  cut: "It reports that the answer was cut at the model's output limit.",
  refuses: "It reports that the model refused.",
  asks: "It asks whether it may run a command; where it may, it writes the file `ran` in the working directory.",
  oversteps: "It runs a command without having asked.",
  no_usage: "It answers without a word about usage.",
  garbage: "It writes a line that is no JSON, half a character, and two frames on one line, and answers `still here`.",
  unknown_frame: "It writes a frame of a kind that nobody knows, and answers `still here`.",
  late_frame: "When its turn has ended it says one thing more, and then writes the file `late` in the working directory.",
  late_in_turn: "When its turn has ended it says one thing more of it, while it answers the prompt `meanwhile` with `I go on`.",
  bytewise: "It writes its answer byte by byte; the answer has characters of two to four bytes.",
  huge_line: "It writes a line of 40 MB and then answers `still here`.",
  leaves_processes: "It ends its turn and leaves a child, a process in a session of its own, and a daemon.",
  background: "It declares a task, ends its turn, and declares that no task is left once the file `release` exists in the working directory.",
  own_turn: "When its turn has ended it begins another by itself, says `by myself`, and ends it once the file `release` exists in the working directory; then it writes the file `over`.",
  meets: "It writes the file that the variable MEETS_OWN names and waits for the one that MEETS_OTHER names.",
  renames: "A session that it resumes goes on under a new id.",
  rebinds: "It changes its session's id in the middle of a turn.",
  more_tools: "It says that it has more tools than it was allowed.",
  mcp_fails: "It says that one of its MCP servers did not start.",
  other_model: "It says that it uses another model than it was told to.",
  tells_options: "It answers with the model and the instructions that it was given, as a JSON object.",
  never_ready: "It never answers the opening of its session.",
  ready_then_dies: "It dies once its first turn has ended."
} as const
export type Situation = keyof typeof situations

export const names = Object.keys(situations) as ReadonlyArray<Situation>

/** The prompt with which a situation begins. */
export const promptOf = (situation: Situation): string => `begin: ${situation}`

/** The second prompt of `late_in_turn`. */
export const meanwhile = "meanwhile"

/** The program's own names for tools. */
export interface ToolNames {
  /** A tool that runs commands. */
  readonly execute: string
  /** The tools that it has, one that is in no read-only allow-list among them. */
  readonly all: ReadonlyArray<string>
}

type Actions = ReadonlyArray<Json>
export type Scenario = { readonly [key: string]: Json }

const end = { type: "end", reason: "completed" }
const say = (text: string, more: { readonly [key: string]: Json } = {}) => ({ type: "text", text, ...more })
const usage = { type: "usage", input_tokens: 120, output_tokens: 30, cache_read_tokens: 100, cost_usd: 0.25 }
const echo: Json = { repeats: true, do: [say("{{prompts}}", { pieces: 4 }), usage, end] }
const stubborn = [
  { type: "ignore_signals", signals: ["SIGINT", "SIGTERM"] },
  { type: "ignore_interrupts" },
  { type: "ignore_eof" }
]

/** A credential that `dies` writes to standard error. */
export const secret = "sk-suite-0123456789abcdef0123456789"

/** What the text of `bytewise` is. */
export const bytewiseText = "é € 😀 日本 \u2028 end"

const play = (situation: Situation, tools: ToolNames): Actions => {
  switch (situation) {
    case "echo":
      return [say("{{prompts}}", { pieces: 4 }), usage, end]
    case "streams":
      return [say("one two three", { unfinished: true }), { type: "hang" }]
    case "silent":
      return [{ type: "hang" }]
    case "stuck":
      return [
        ...stubborn,
        { type: "spawn", argv: ["sleep", "986"], as: "child", ignores: ["INT", "TERM"] },
        { type: "spawn", argv: ["sleep", "986"], as: "session", ignores: ["INT", "TERM"], holds_stdout: true },
        { type: "spawn", argv: ["sleep", "986"], as: "daemon", ignores: ["INT", "TERM"] },
        say("stuck", { unfinished: true }),
        { type: "hang" }
      ]
    case "deaf":
    case "never_ready":
      return [end]
    case "dies":
      return [say("I was about", { unfinished: true }), { type: "stderr", text: `something broke inside; api_key=${secret}\n` }, { type: "kill", signal: "SIGKILL" }]
    case "exits":
      return [say("I was about"), { type: "exit", code: 0 }]
    case "fails":
      return [say("I was about"), { type: "fail", code: "OVERLOADED", message: "overloaded", http_status: 529 }]
    case "cut":
      return [say("I was about"), { type: "end", reason: "max-tokens" }]
    case "refuses":
      return [say("I cannot"), { type: "end", reason: "refusal" }]
    case "asks":
      return [
        {
          type: "ask",
          id: "call-1",
          name: tools.execute,
          input: { command: "touch ran" },
          description: "make a file",
          allowed: [{ type: "write_file", path: "ran", text: "" }, { type: "tool_result", id: "call-1", output: "done" }, say("allowed")],
          // Slow enough for an interrupt that comes with the denial.
          denied: [{ type: "delay", ms: 250 }, say("denied")]
        },
        end
      ]
    case "oversteps":
      return [
        { type: "tool_call", id: "call-1", name: tools.execute, input: { command: "touch ran" } },
        { type: "tool_result", id: "call-1", output: "done" },
        say("I did it"),
        end
      ]
    case "no_usage":
      return [say("done"), end]
    case "garbage":
      return [
        { type: "write", text: "Warning: a banner on standard output\n" },
        say("still "),
        { type: "write", base64: "5Apub3QganNvbgq7tgo=" },
        { type: "join_next" },
        say("here", { pieces: 1 }),
        { type: "end", reason: "completed", text: "still here" }
      ]
    case "unknown_frame":
      return [{ type: "frame", value: { type: "a_frame_of_the_future", news: 1 } }, say("still here"), end]
    case "late_frame":
      return [say("done"), end, say("too late"), { type: "write_file", path: "late", text: "" }]
    case "late_in_turn":
      return [say("done"), end, { type: "wait_for", what: "file", path: "running" }, say("too late"), { type: "write_file", path: "late", text: "" }]
    case "bytewise":
      return [{ type: "chunk_writes", bytes: 1 }, say(bytewiseText, { pieces: 3 }), end, { type: "chunk_writes", bytes: 0 }]
    case "huge_line":
      return [{ type: "huge_line", bytes: 40_000_000 }, say("still here"), end]
    case "leaves_processes":
      return [
        { type: "spawn", argv: ["sleep", "987"], as: "child" },
        { type: "spawn", argv: ["sleep", "987"], as: "session" },
        { type: "spawn", argv: ["sleep", "987"], as: "daemon", holds_stdout: true },
        say("I left something running"),
        end
      ]
    case "background":
      return [
        say("I go on"),
        { type: "background", tasks: [{ id: "task-1", description: "watch" }] },
        end,
        { type: "wait_for", what: "file", path: "release" },
        { type: "background", tasks: [] }
      ]
    case "own_turn":
      return [
        say("I go on later"),
        end,
        { type: "own_turn", do: [say("by myself"), { type: "wait_for", what: "file", path: "release" }, usage, end] },
        { type: "write_file", path: "over", text: "" }
      ]
    case "meets":
      return [
        { type: "write_file", path: "{{env:MEETS_OWN}}", text: "" },
        { type: "wait_for", what: "file", path: "{{env:MEETS_OTHER}}" },
        say("met"),
        end
      ]
    case "rebinds":
      return [{ type: "bind", session_id: "5c9b7c4e-0000-4000-8000-00000000b1d5" }, say("done"), end]
    case "mcp_fails":
    case "more_tools":
    case "other_model":
    case "renames":
      return [say("done"), end]
    case "tells_options":
      return [say("{\"model\":\"{{model}}\",\"system\":\"{{system}}\"}", { pieces: 1 }), end]
    case "ready_then_dies":
      return [say("{{prompts}}", { pieces: 1 }), end, { type: "kill", signal: "SIGKILL" }]
  }
}

/** What answers {@link meanwhile}: a word before the late one, and a word after it. */
const during: Actions = [
  say("I go "),
  { type: "write_file", path: "running", text: "" },
  { type: "wait_for", what: "file", path: "late" },
  say("on"),
  { type: "end", reason: "completed", text: "I go on" }
]

const whole = (situation: Situation, tools: ToolNames): Scenario => {
  const begins: Json = { when: { equals: promptOf(situation) }, repeats: true, do: play(situation, tools) }
  switch (situation) {
    case "deaf":
      return { after_opening: [...stubborn, { type: "stop_reading" }], turns: [echo] }
    case "never_ready":
      return { handshake: "never", turns: [echo] }
    case "renames":
      return { resume: "new_id", turns: [echo] }
    case "mcp_fails":
      return { mcp_servers: [{ name: "there", status: "connected" }, { name: "gone", status: "failed" }], turns: [echo] }
    case "more_tools":
      return { tools: [...tools.all], reports_violations: true, turns: [echo] }
    case "other_model":
      return { model: "another-model", reports_violations: true, turns: [echo] }
    case "late_in_turn":
      return { turns: [begins, { when: { equals: meanwhile }, do: during }, echo] }
    default:
      return { turns: [begins, echo] }
  }
}

/** The scenario of a situation. */
export const scenario = (situation: Situation, tools: ToolNames): Scenario => ({ description: situations[situation], ...whole(situation, tools) })
