/**
 * The commands of the binary: what each takes and what its help says.
 */
import * as Flag from "./Flag.ts"
import * as SessionsTable from "./sessions/SessionsTable.ts"

const dataDir = Flag.text("data-dir", "DIR", "Where sessions are remembered. Else TURNPIKE_HOME, else the state directory of the platform.")

/** What a run and a conversation have in common. */
const session: ReadonlyArray<Flag.Flag> = [
  Flag.text("harness", "NAME", "The agent to run on: `turnpike doctor` lists them. Absent: the session's own, else the only one that can be used here.", { field: "harness" }),
  Flag.text("session", "ID", "The session that the task belongs to; begun if there is none. Absent: a new one.", { field: "session.id" }),
  Flag.choice("resume", ["fail", "fresh", "replay"], "The session must exist. What to do if the harness lost it: fail, go on without its history (fresh), or tell it to a new one (replay).", { field: "session.resume" }),
  Flag.text("model", "NAME", "The model. Absent: the harness's own choice.", { field: "model" }),
  Flag.text("system-file", "FILE", "Instructions added to the harness's own; `-` is standard input.", { field: "system" }),
  Flag.text("allow-tool", "NAME", "A tool that may be used: read, search, edit, execute, fetch, or the harness's own name. Absent: read and search.", { isRepeatable: true, field: "tools" }),
  Flag.toggle("dangerous-all-tools", "Every tool that the harness has may be used.", { field: "tools" }),
  Flag.choice("permission", ["deny", "allow-listed", "ask"], "The answer when the harness asks about a tool. Absent: deny.", { field: "permission" }),
  Flag.text("cwd", "DIR", "Where the harness works. Absent: here.", { field: "workspace" }),
  Flag.variable("env", "A variable for the harness.", { isRepeatable: true, field: "env" }),
  Flag.text("program", "PATH", "The harness's program. Absent: looked for in PATH."),
  Flag.toggle("isolated", "The harness gets a directory of the session's own for its settings instead of yours."),
  Flag.text("scenario", "FILE|NAME", "What the scripted harness plays. Absent: its demonstration."),
  dataDir
]

const run: Flag.Command = {
  name: "run",
  summary: "run one task on one harness",
  usage: ["turnpike run [--harness NAME] [FLAG…] TASK", "turnpike run [--harness NAME] [FLAG…] -    (the task is standard input)", "turnpike run --spec FILE [FLAG…]"],
  about: [
    "Says what happens as it happens, and ends with one verdict. On a terminal that is text for people: the answer on standard output, the rest on standard error. Elsewhere standard output is one JSON object a line (`turnpike schema agent-run-event`) and nothing else.",
    "Ctrl-C asks the agent to end its turn; a second one ends it; a third one ends turnpike. Nothing that was started is left running.",
    "A field is set by a flag or by the specification, never by both."
  ],
  positionals: [{ name: "TASK", help: "The prompt, passed on unchanged; `-` reads it from standard input.", isRequired: false }],
  flags: [
    ...session.filter(({ name }) => name === "harness"),
    Flag.text("recipe", "DIR", "An agent recipe. Not available yet: refused.", { field: "recipe" }),
    Flag.text("task", "TEXT", "The task, instead of the argument.", { field: "task" }),
    Flag.text("task-file", "FILE", "A file with the task; `-` is standard input.", { field: "task" }),
    Flag.text("spec", "FILE", "A whole run specification as JSON (`turnpike schema agent-run-spec`); `-` is standard input."),
    Flag.choice("format", ["text", "events", "summary"], "What standard output carries: text for people, events as JSON lines, or one line at the end. Absent: text on a terminal, else events."),
    Flag.boolean("json", "true is --format events, false is --format summary."),
    Flag.text("result-file", "FILE", "Where the result goes, as JSON, instead of the last event. Written whole or not at all."),
    Flag.seconds("timeout", "End the run after so many seconds. Absent: no limit.", { field: "limits.timeout_s" }),
    Flag.choice("background", ["wait", "kill"], "What becomes of tasks that still run when the turn has ended. Absent: wait.", { field: "background" }),
    ...session.filter(({ name }) => name !== "harness")
  ],
  examples: [
    ["turnpike run --harness scripted \"Say hello\"", "a demonstration that needs no agent and no key"],
    ["turnpike run --harness claude \"Explain src/main.ts\"", "look, don't touch: the default tools read and search"],
    ["turnpike run --harness claude --allow-tool read --allow-tool edit --task-file task.md", "the task from a file, with a tool that writes"],
    ["git diff | turnpike run --harness claude -", "the task from standard input"],
    ["turnpike run --harness claude --session fix-42 --timeout 600 --format events \"Go on\" > events.jsonl", "for programs: ten minutes at most, in a session that goes on"],
    ["turnpike run --spec spec.json --result-file result.json", "everything in a file"]
  ]
}

const chat: Flag.Command = {
  name: "chat",
  summary: "talk with an agent, turn after turn",
  usage: ["turnpike chat [--harness NAME] [FLAG…]"],
  about: [
    "On a terminal each line is a prompt. Ctrl-C asks the running turn to end, twice ends it; Ctrl-D or /exit ends the conversation. A turn that fails is reported and the conversation goes on. The harness stays warm between turns.",
    "With --format events it is a pipe: standard input carries one prompt a line, {\"type\":\"prompt\",\"text\":\"…\"}, and standard output the events of one run for each, in order, each with its own run_id and ending with a result. A line that is no prompt is answered by a run that failed with INVALID_SPEC. The end of input ends the conversation after its last turn."
  ],
  positionals: [],
  flags: [
    ...session.filter(({ name }) => name === "harness"),
    Flag.choice("format", ["text", "events"], "Text for people, or JSON lines in and out. Absent: text where standard input is a terminal, else events."),
    Flag.seconds("timeout", "End each turn after so many seconds (events only). Absent: no limit.", { field: "limits.timeout_s" }),
    ...session.filter(({ name }) => name !== "harness")
  ],
  examples: [
    ["turnpike chat --harness claude", "a conversation"],
    ["turnpike chat --harness scripted --session demo", "one that can be continued later"],
    ["echo '{\"type\":\"prompt\",\"text\":\"Say hello\"}' | turnpike chat --harness scripted --format events", "the same for programs"]
  ],
  exits: [
    ["0", "the conversation was ended, and (on a pipe) every turn succeeded"],
    ["3", "on a pipe: the conversation was ended, and a turn did not succeed"]
  ]
}

const doctor: Flag.Command = {
  name: "doctor",
  summary: "find out what works here, what does not, and what to do",
  usage: ["turnpike doctor [HARNESS] [FLAG…]"],
  about: ["Looks at Node, the data directory, the ways to contain processes, what earlier runs left behind, and each harness: is it there, which version, is it signed in. Starts no turn and spends no token."],
  positionals: [{ name: "HARNESS", help: "Look at this harness alone.", isRequired: false }],
  flags: [
    Flag.boolean("json", "One JSON object instead of text."),
    Flag.text("program", "PATH", "The harness's program (with HARNESS)."),
    dataDir
  ],
  examples: [["turnpike doctor", "everything"], ["turnpike doctor claude --json", "one harness, for programs"]],
  exits: [
    ["0", "a run can be tried: Turnpike itself is well, and so is the named harness, or at least one"],
    ["1", "something stands in the way; the text says what to do"]
  ]
}

const schema: Flag.Command = {
  name: "schema",
  summary: "print a contract as JSON Schema",
  usage: ["turnpike schema", "turnpike schema NAME"],
  about: ["Without a name: the names, one a line. `meta` is the words of the contract: types, reasons, exit codes, failure codes and stream rules."],
  positionals: [{ name: "NAME", help: "A contract's name.", isRequired: false }],
  flags: [],
  examples: [["turnpike schema", "which there are"], ["turnpike schema agent-run-event > event.schema.json", "one of them"]]
}

const validate: Flag.Command = {
  name: "validate",
  summary: "check JSON or JSONL against a contract",
  usage: ["turnpike validate CONTRACT [FILE]", "turnpike validate agent-run-event --stream [FILE]"],
  about: [
    "Without FILE, or with `-`, standard input is read. A file that ends in .jsonl or .ndjson, and anything with --lines or --stream, is checked line by line. Each fault is one line on standard error: FILE:LINE: where: what was expected.",
    "--stream also checks the rules that no schema of one line can state: seq without gaps, one run_id, exactly one session_end, what encloses what."
  ],
  positionals: [
    { name: "CONTRACT", help: "`turnpike schema` lists them.", isRequired: true },
    { name: "FILE", help: "What to check; `-` is standard input.", isRequired: false }
  ],
  flags: [
    Flag.toggle("lines", "Each line is a value of its own."),
    Flag.toggle("stream", "The lines are the stream of one run (agent-run-event only)."),
    Flag.choice("result", ["stream", "file", "either"], "With --stream: where the run's result is delivered. Absent: either.")
  ],
  examples: [
    ["turnpike validate agent-run-spec spec.json", "one value"],
    ["turnpike run --harness scripted hi | turnpike validate agent-run-event --stream --result stream", "a whole stream"]
  ],
  exits: [["0", "valid"], ["1", "the file could not be read"], ["3", "not valid"]]
}

export const commands: ReadonlyArray<Flag.Command> = [run, chat, SessionsTable.make(dataDir), doctor, schema, validate]
