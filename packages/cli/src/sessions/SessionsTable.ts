/**
 * The commands behind `turnpike sessions`: what each takes and what its help says.
 */
import * as Flag from "../Flag.ts"

const id: Flag.Positional = { name: "ID", help: "The session; `turnpike sessions list` lists them.", isRequired: true }

const text = (what: string): Flag.Positional => ({ name: "TEXT", help: `${what}, passed on unchanged; \`-\` reads it from standard input.`, isRequired: true })

const done = ["0", "it was done"] as const
const told = ["0", "everything was told, or the reader has read enough"] as const
const refused = ["1", "it could not be done; nothing was changed but what the text says"] as const
const wrong = ["2", "the command line is wrong; nothing was done"] as const

/** Makes the table; `dataDir` is the flag that all of them share. */
export const make = (dataDir: Flag.Flag): Flag.Command => {
  const json = (help: string) => Flag.boolean("json", help)

  const list: Flag.Command = {
    name: "sessions list",
    synonyms: ["ls", "all", "ps"],
    summary: "the sessions, the last changed first",
    usage: ["turnpike sessions list [--limit N] [--json]"],
    about: [
      "For each: its id, when it changed, its turns, how many messages wait in its inbox, its harness, who holds it now, and its title and directory. On a terminal a line is never longer than the window is wide.",
      "With --json each is one object on a line of its own, as soon as it is read; times are milliseconds since 1970."
    ],
    positionals: [],
    flags: [Flag.whole("limit", "N", "The first N alone. Absent: all.", 1), json("One JSON object a line."), dataDir],
    examples: [
      ["turnpike sessions list --limit 10", "the ten that changed last"],
      ["turnpike sessions list --json | jq -r 'select(.pending > 0).id'", "those in which something waits"]
    ],
    exits: [told, refused, wrong]
  }

  const show: Flag.Command = {
    name: "sessions show",
    synonyms: ["info", "get", "inspect", "status"],
    summary: "what a session is: its turns, its inbox, who holds it",
    usage: ["turnpike sessions show ID [--limit N] [--json]"],
    about: [
      "Tells where and when the session was begun, how each turn ended and what it was asked, what it used, what its harness calls it and whether the harness is known to have kept it, what waits in the inbox, and who holds it."
    ],
    positionals: [id],
    flags: [Flag.whole("limit", "N", "The last N turns alone. Absent: all.", 1), json("One JSON object instead of text."), dataDir],
    examples: [["turnpike sessions show demo", "all about it"], ["turnpike sessions show demo --json | jq '.turns[-1].verdict'", "how its last turn ended"]],
    exits: [told, refused, wrong]
  }

  const log: Flag.Command = {
    name: "sessions log",
    synonyms: ["cat", "tail", "logs", "history", "events", "print"],
    summary: "what happened in a session, as it was written, also while it happens",
    usage: ["turnpike sessions log ID [--follow] [--after SEQ] [--format events|text]"],
    about: [
      "As events it is the log itself, one JSON object a line (`turnpike schema session-event`). As text it is for people, turn by turn. Absent: text on a terminal, else events.",
      "--follow goes on with what is written from now on, by whichever process, until Ctrl-C, or until its reader goes away. Whoever reads on after --after SEQ misses no event and gets none twice."
    ],
    positionals: [id],
    flags: [
      Flag.toggle("follow", "Go on with what is still to come."),
      Flag.whole("after", "SEQ", "The events after this one. Absent: from the beginning."),
      Flag.choice("format", ["events", "text"], "JSON lines, or text for people."),
      Flag.boolean("json", "true is --format events, false is --format text."),
      dataDir
    ],
    examples: [
      ["turnpike sessions log demo --format text", "read it"],
      ["turnpike sessions log demo --follow --after 120 --format events", "go on where one has stopped"]
    ],
    exits: [told, refused, wrong, ["130", "--follow was ended by Ctrl-C (143: by a termination signal)"]]
  }

  const explain: Flag.Command = {
    name: "sessions explain",
    synonyms: ["why", "describe", "diagnose"],
    summary: "why a turn ended as it did, and what to do",
    usage: ["turnpike sessions explain ID [TURN] [--json]"],
    about: [
      "Reads the log and says how the turn ended, then the evidence: the failure, what was not allowed, what was tried again, which tools ran and which nobody saw end, what the harness had said, who stopped it, what recovery did. The number before a sentence is the event that it is from."
    ],
    positionals: [id, { name: "TURN", help: "The turn's number, from 1. Absent: the last one.", isRequired: false }],
    flags: [json("One JSON object instead of text."), dataDir],
    examples: [["turnpike sessions explain demo", "the last turn"], ["turnpike sessions explain demo 3 --json", "the third one, for programs"]],
    exits: [["0", "it was explained, however the turn ended"], refused, wrong]
  }

  const send: Flag.Command = {
    name: "sessions send",
    synonyms: ["prompt", "queue", "post", "ask"],
    summary: "put a prompt into a session's inbox, whoever holds it",
    usage: ["turnpike sessions send ID [--steer] [--key KEY] TEXT", "turnpike sessions send ID [--steer] [--key KEY] -    (the text is standard input)"],
    about: [
      "The prompt is on disk when the command ends, and its receipt is printed. Whoever holds the session takes it after the turns before it; where nobody does it waits for the next `turnpike chat --session ID`.",
      "With --key the same prompt may be sent again after an answer that did not come: it is received once and has the same receipt. Another text under the same key is refused (KEY_CONFLICT)."
    ],
    positionals: [id, text("The prompt")],
    flags: [
      Flag.toggle("steer", "The running turn takes it at its next step, instead of a turn of its own."),
      Flag.text("key", "KEY", "An idempotency key: the same key with the same text is one prompt."),
      json("The receipt as one JSON object."),
      dataDir
    ],
    examples: [
      ["turnpike sessions send demo \"Now the tests\"", "after what it is doing"],
      ["git diff | turnpike sessions send demo --key review-1 -", "the prompt from standard input, once"]
    ],
    exits: [["0", "it was received"], refused, wrong]
  }

  const inject: Flag.Command = {
    name: "sessions inject",
    synonyms: ["context", "note", "add"],
    summary: "tell a session something without asking it anything",
    usage: ["turnpike sessions inject ID [--as turn] [--key KEY] TEXT", "turnpike sessions inject ID [--as turn] -    (the text is standard input)"],
    about: [
      "The text waits in the inbox and wakes nobody: the next step of the session takes it, before its prompt.",
      "With --as turn it is written into the log at once, as a turn of its own without a model call. Nobody may hold the session then, and what a crash left of it is put in order first."
    ],
    positionals: [id, text("The text")],
    flags: [
      Flag.choice("as", ["inbox", "turn"], "Where it goes. Absent: inbox."),
      Flag.text("key", "KEY", "An idempotency key (inbox only): the same key with the same text is one message."),
      json("The receipt, or the turn, as one JSON object."),
      dataDir
    ],
    examples: [["turnpike sessions inject demo \"The build is red since noon.\"", "for the next prompt"], ["turnpike sessions inject demo --as turn - < notes.md", "into the log, now"]],
    exits: [done, refused, wrong]
  }

  const fork: Flag.Command = {
    name: "sessions fork",
    synonyms: ["copy", "branch", "clone", "cp"],
    summary: "begin a new session with the first turns of another",
    usage: ["turnpike sessions fork ID [--at SEQ] [--id NEW]"],
    about: [
      "The new session has the events up to and including SEQ, which has to be the end of a turn. Its id is printed. The other one is not touched, and may be held.",
      "The harness has no session of its own that ends there, so the new one goes on with --resume replay, which tells a new one what was said, or with --resume fresh."
    ],
    positionals: [id],
    flags: [
      Flag.whole("at", "SEQ", "The `turn/end` that it ends with. Absent: the last one."),
      Flag.text("id", "NEW", "The id of the new session. Absent: one is made."),
      json("The new session as one JSON object."),
      dataDir
    ],
    examples: [["turnpike sessions fork demo --id demo-2", "try something else from here"], ["turnpike sessions fork demo --at 41", "from an earlier turn"]],
    exits: [done, refused, wrong]
  }

  const exporting: Flag.Command = {
    name: "sessions export",
    synonyms: ["save", "dump", "backup", "archive"],
    summary: "a whole session as lines of JSON, to be kept or imported elsewhere",
    usage: ["turnpike sessions export ID > FILE", "turnpike sessions export ID --output FILE [--force] [--json]"],
    about: [
      "The lines are the header, the events, the inbox, and one that says how much that was, each with a checksum. Without --output they go to standard output, and a failure in between leaves there what was written until then; the file of --output is whole or not there.",
      "The session may be held: what is exported is its log up to some event. What the agent itself remembers of it is not in it."
    ],
    positionals: [id],
    flags: [
      Flag.text("output", "FILE", "Where it goes. Absent, or `-`: standard output."),
      Flag.toggle("force", "Replace the file where it is there."),
      json("With --output: what was written, as one JSON object."),
      dataDir
    ],
    examples: [
      ["turnpike sessions export demo --output demo.jsonl", "into a file"],
      ["turnpike sessions export demo | ssh other turnpike sessions import -", "to another machine"]
    ],
    exits: [["0", "all of it was written, or the reader has read enough"], ["1", "it could not be done; the file of --output is as it was before, but where the text says that it is there"], wrong]
  }

  const importing: Flag.Command = {
    name: "sessions import",
    synonyms: ["load", "restore", "put"],
    summary: "put in a session that was exported",
    usage: ["turnpike sessions import FILE [--json]", "turnpike sessions import -    (the lines are standard input)"],
    about: [
      "The session keeps its id, which is printed. It is put in whole or not at all, also where this is interrupted; where there is a session with its id nothing is done (SESSION_EXISTS). The store is made where it is missing.",
      "What its agent remembers of it stays where it was. Where it does not have that here, the session goes on with --resume replay, which tells a new one what was said, or with --resume fresh."
    ],
    positionals: [{ name: "FILE", help: "What `turnpike sessions export` wrote: one session. `-` is standard input.", isRequired: true }],
    flags: [json("The session as one JSON object."), dataDir],
    examples: [
      ["turnpike sessions import demo.jsonl", "from a file"],
      ["gunzip -c demo.jsonl.gz | turnpike sessions import - --data-dir /tmp/looked-at", "into a directory of its own"]
    ],
    exits: [["0", "it was put in"], ["1", "nothing was put in, but where the text says that it was"], wrong]
  }

  const repair: Flag.Command = {
    name: "sessions repair",
    synonyms: ["fix", "recover", "check", "fsck"],
    summary: "what opening a session would put in order, and put it in order",
    usage: ["turnpike sessions repair ID [--apply]"],
    about: [
      "A crash can leave a turn open. Whoever opens the session next closes it, with a result for each tool that has none, and puts prompts that were taken and not begun back into the inbox. This says what would be done; --apply does it.",
      "Of a session whose log is damaged it says how far it can be read, and how that part is saved."
    ],
    positionals: [id],
    flags: [Flag.toggle("apply", "Do it. Absent: nothing is changed."), json("One JSON object instead of text."), dataDir],
    examples: [["turnpike sessions repair demo", "look"], ["turnpike sessions repair demo --apply", "do it"]],
    exits: [["0", "it was told, or done; also where there is nothing to do"], refused, wrong]
  }

  const remove: Flag.Command = {
    name: "sessions delete",
    synonyms: ["rm", "remove", "del", "drop", "erase"],
    summary: "delete sessions with their logs and inboxes",
    usage: ["turnpike sessions delete ID… [--yes]"],
    about: [
      "Asks before it does, unless --yes is given; where nobody can be asked it is refused. All are looked at first: where one of them does not exist or is held, none is deleted.",
      "What harnesses keep of a session in their own directories stays there, apart from the directory that --isolated gave them."
    ],
    positionals: [{ ...id, name: "ID…", help: "One session or several.", isRepeatable: true }],
    flags: [Flag.toggle("yes", "Do not ask."), json("One JSON object for each, on a line of its own."), dataDir],
    examples: [["turnpike sessions delete demo", "one, after a question"], ["turnpike sessions delete demo demo-2 --yes", "in a script"]],
    exits: [["0", "all were deleted, or the answer was no"], ["1", "nothing was deleted but what the text says"], wrong, ["130", "the question was answered by Ctrl-C; nothing was deleted"]]
  }

  return {
    name: "sessions",
    summary: "look at sessions, send to them, fork, move, repair and delete them",
    usage: ["turnpike sessions COMMAND [FLAG…]"],
    about: [
      "A session is a conversation with an agent under one id: a log of its turns, and an inbox of what waits for it. It is kept in the data directory. All of this works while another process runs the session, but for what would write into its log."
    ],
    positionals: [],
    flags: [],
    examples: [
      ["turnpike sessions list", "which there are"],
      ["turnpike sessions explain demo", "why the last turn ended as it did"],
      ["turnpike sessions log demo --follow --format text", "watch one that another process runs"]
    ],
    commands: [list, show, log, explain, send, inject, fork, exporting, importing, repair, remove]
  }
}
