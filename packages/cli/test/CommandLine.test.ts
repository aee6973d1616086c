import { assert, describe, it } from "@effect/vitest"
import { type Parsed, parse, quote } from "../src/CommandLine.ts"
import { commands } from "../src/CommandTable.ts"
import { wordOf } from "../src/Flag.ts"

const read = (...args: ReadonlyArray<string>): Parsed => parse(args, commands)

/** What was refused and how to put it right; the pointer to the help, which every remedy may end with, is left out. */
const refused = (...args: ReadonlyArray<string>) => {
  const parsed = read(...args)
  if (parsed._tag !== "Fault") throw new Error(`${args.join(" ")} was taken as ${parsed._tag}`)
  return [parsed.fault.message, parsed.fault.remedy.replace(/ ?`turnpike [a-z ]*--help` lists what it takes\.$/, "")]
}

const given = (...args: ReadonlyArray<string>) => {
  const parsed = read(...args)
  if (parsed._tag !== "Run") throw new Error(`${args.join(" ")} was taken as ${parsed._tag}: ${JSON.stringify(parsed)}`)
  return { flags: Object.fromEntries(parsed.given), positionals: parsed.positionals }
}

/** The words behind `turnpike sessions`, in the order of its table. */
const words = (commands.find(({ name }) => name === "sessions")?.commands ?? []).map(wordOf)

describe("a command line", () => {
  it("names flags before, after and around the argument", () => {
    const expected = { flags: { harness: ["scripted"], timeout: ["5"] }, positionals: ["do it"] }
    assert.deepStrictEqual(given("run", "--harness", "scripted", "--timeout=5", "do it"), expected)
    assert.deepStrictEqual(given("run", "do it", "--harness=scripted", "--timeout", "5"), expected)
    assert.deepStrictEqual(given("run", "--timeout", "5", "do it", "--harness", "scripted"), expected)
  })

  it("takes everything after -- as it is", () => {
    assert.deepStrictEqual(given("run", "--harness", "scripted", "--", "--help").positionals, ["--help"])
    assert.deepStrictEqual(given("run", "--task=--help").flags, { task: ["--help"] })
    assert.deepStrictEqual(given("run", "-").positionals, ["-"])
    assert.deepStrictEqual(given("run", "--task-file", "-").flags, { "task-file": ["-"] })
    assert.deepStrictEqual(given("run", "--task=").flags, { task: [""] })
  })

  it("keeps the order of what may be repeated", () => {
    assert.deepStrictEqual(given("run", "--allow-tool", "read", "--allow-tool", "edit", "--env", "A=1", "--env", "B=x=y").flags, {
      "allow-tool": ["read", "edit"],
      env: ["A=1", "B=x=y"]
    })
  })

  it("takes a boolean alone, with a value, and beside an argument", () => {
    assert.deepStrictEqual(given("run", "--json", "do it"), { flags: { json: ["true"] }, positionals: ["do it"] })
    assert.deepStrictEqual(given("run", "--json", "false", "do it"), { flags: { json: ["false"] }, positionals: ["do it"] })
    assert.deepStrictEqual(given("run", "--json=false", "true"), { flags: { json: ["false"] }, positionals: ["true"] })
    assert.deepStrictEqual(given("run", "true", "--json"), { flags: { json: ["true"] }, positionals: ["true"] })
  })

  it("answers help and version wherever they stand", () => {
    assert.deepStrictEqual(read("--help"), { _tag: "Help", command: undefined })
    assert.deepStrictEqual(read("help"), { _tag: "Help", command: undefined })
    for (const line of [["run", "--help"], ["run", "-h", "--nonsense"], ["help", "run"], ["run", "--timeout", "x", "--help"]]) {
      const parsed = read(...line)
      assert.deepStrictEqual([parsed._tag, parsed._tag === "Help" ? parsed.command?.name : undefined], ["Help", "run"])
    }
    for (const line of [["--version"], ["-V"], ["run", "--version"], ["doctor", "-V"]]) assert.deepStrictEqual(read(...line), { _tag: "Version" })
  })

  it("finds a command behind another one, with its flags and arguments", () => {
    const parsed = read("sessions", "log", "demo", "--follow", "--after", "12", "--format=text")
    if (parsed._tag !== "Run") throw new Error(parsed._tag)
    assert.deepStrictEqual([parsed.command.name, Object.fromEntries(parsed.given), parsed.positionals], [
      "sessions log",
      { follow: ["true"], after: ["12"], format: ["text"] },
      ["demo"]
    ])
    assert.deepStrictEqual(given("sessions", "delete", "one", "two", "--yes", "three"), { flags: { yes: ["true"] }, positionals: ["one", "two", "three"] })
    assert.deepStrictEqual(given("sessions", "send", "demo", "--", "--steer").positionals, ["demo", "--steer"])
  })

  it("answers help and version behind a command", () => {
    const helpOf = (...line: ReadonlyArray<string>) => {
      const parsed = read(...line)
      return parsed._tag === "Help" ? parsed.command?.name : parsed
    }
    for (const line of [["sessions", "--help"], ["sessions", "-h"], ["sessions", "help"], ["help", "sessions"]]) assert.strictEqual(helpOf(...line), "sessions")
    for (const line of [["sessions", "log", "--help"], ["sessions", "help", "log"], ["help", "sessions", "log"], ["sessions", "log", "x", "y", "-h"]]) {
      assert.strictEqual(helpOf(...line), "sessions log")
    }
    for (const line of [["sessions", "--version"], ["sessions", "log", "-V"]]) assert.deepStrictEqual(read(...line), { _tag: "Version" })
  })

  it.each([
    [[], "no command was given", "Give one of run, chat, sessions, doctor, schema, validate."],
    [["rnu"], "there is no command \"rnu\"", "Did you mean `turnpike run`?"],
    [["fix the bug"], "there is no command \"fix the bug\"", "A task is given to run: turnpike run --harness NAME \"fix the bug\"."],
    [["help", "docter"], "there is no command \"docter\"", "Did you mean `turnpike doctor`?"],
    [["--harness", "claude"], "there is no flag \"--harness\" before a command", "Flags follow their command, as in `turnpike run --harness NAME`."],
    [["run", "--harnes", "claude"], "run has no flag \"--harnes\"", "Did you mean --harness?"],
    [["run", "--hraness=claude"], "run has no flag \"--hraness\"", "Did you mean --harness?"],
    [["run", "--time", "5"], "run has no flag \"--time\"", "Did you mean --timeout?"],
    [["run", "--frobnicate"], "run has no flag \"--frobnicate\"", "`turnpike run --help` lists what it takes. What begins with a dash and is no flag stands after `--`."],
    [["run", "-x"], "run has no flag \"-x\"", "`turnpike run --help` lists what it takes. What begins with a dash and is no flag stands after `--`."],
    [["chat", "--result-file", "x"], "chat has no flag \"--result-file\"", "run has it."],
    [["run", "--harness"], "--harness has no value", "Write --harness NAME."],
    [["run", "--task", "--model", "x"], "--task has no value", "Write --task TEXT; a value that begins with a dash is written --task=…"],
    [["run", "--harness", "a", "--harness", "b"], "--harness is given twice", "Give --harness once."],
    [["run", "--isolated=yes"], "--isolated takes no value; \"yes\" was given", "Write --isolated alone, or leave it out."],
    [["run", "--json=yes"], "--json is \"yes\"", "Write --json true or --json false."],
    [["run", "--format", "jsonl"], "--format is \"jsonl\"; it takes text, events, summary", "Choose one of text, events, summary."],
    [["run", "--format", "event"], "--format is \"event\"; it takes text, events, summary", "Did you mean --format events?"],
    [["run", "--resume", "yes"], "--resume is \"yes\"; it takes fail, fresh, replay", "Choose one of fail, fresh, replay."],
    [["run", "--background", "Wait"], "--background is \"Wait\"; it takes wait, kill", "Did you mean --background wait?"],
    [["run", "--permission", "everything"], "--permission is \"everything\"; it takes deny, allow-listed, ask", "Choose one of deny, allow-listed, ask."],
    [["run", "--env", "FOO"], "--env is \"FOO\"; it takes NAME=VALUE, a name being letters, digits and _", "Write for example --env LANG=C."],
    [["run", "--env", "1A=secret"], "--env is \"1A\"=…; it takes NAME=VALUE, a name being letters, digits and _", "Write for example --env LANG=C."],
    [["run", "one", "two"], "run takes one argument; \"two\" is one too many", "Put quotes around an argument of several words."],
    [["chat", "hello"], "chat takes no arguments; \"hello\" is one too many", "Put quotes around an argument of several words."],
    [["validate"], "validate needs CONTRACT", "`turnpike schema` lists them."],
    [["session", "list"], "there is no command \"session\"", "Did you mean `turnpike sessions`?"],
    [["explain"], "there is no command \"explain\"", "Did you mean `turnpike sessions explain`?"],
    [["sessions"], "sessions needs a command", `Give one of ${words.join(", ")}.`],
    [["sessions", "lsit"], "there is no command \"sessions lsit\"", "Did you mean `turnpike sessions list`?"],
    [["sessions", "rm", "demo"], "there is no command \"sessions rm\"", "Did you mean `turnpike sessions delete`?"],
    [["sessions", "ls"], "there is no command \"sessions ls\"", "Did you mean `turnpike sessions list`?"],
    [["sessions", "help", "fsck"], "there is no command \"sessions fsck\"", "Did you mean `turnpike sessions repair`?"],
    [["sessions", "frobnicate"], "there is no command \"sessions frobnicate\"", `Give one of ${words.join(", ")}.`],
    [["sessions", "run"], "there is no command \"sessions run\"", "Did you mean `turnpike run`?"],
    [["sessions", "--json", "show"], "there is no flag \"--json\" before a command", "Flags follow their command, as in `turnpike sessions show --json`."],
    [["sessions", "log", "x", "--folow"], "sessions log has no flag \"--folow\"", "Did you mean --follow?"],
    [["sessions", "list", "--follow"], "sessions list has no flag \"--follow\"", "sessions log has it."],
    [["sessions", "log", "x", "--after", "soon"], "--after is \"soon\"; it takes a whole number from 0", "Write --after SEQ, for example --after 20."],
    [["sessions", "log", "x", "--after=-1"], "--after is \"-1\"; it takes a whole number from 0", "Write --after SEQ, for example --after 20."],
    [["sessions", "fork", "x", "--at", "99999999999999999999"], "--at is \"99999999999999999999\"; it takes a whole number from 0", "Write --at SEQ, for example --at 20."],
    [["sessions", "list", "--limit", "0"], "--limit is \"0\"; it takes a whole number from 1", "Write --limit N, for example --limit 20."],
    [["sessions", "show"], "sessions show needs ID", "The session; `turnpike sessions list` lists them."],
    [["sessions", "delete"], "sessions delete needs ID…", "One session or several."],
    [["sessions", "send", "x", "two", "words"], "sessions send takes 2 arguments; \"words\" is one too many", "Put quotes around an argument of several words."]
  ])("refuses %j", (args, message, remedy) => {
    assert.deepStrictEqual(refused(...args), [message, remedy])
  })

  it.each([["harness", "NAME"], ["session", "ID"], ["model", "NAME"], ["cwd", "DIR"], ["allow-tool", "NAME"], ["program", "PATH"], ["data-dir", "DIR"], ["result-file", "FILE"], ["task-file", "FILE"], ["spec", "FILE"], ["system-file", "FILE"]] as const)(
    "refuses an empty --%s",
    (flag, shown) => {
      assert.deepStrictEqual(refused("run", `--${flag}`, "", "t"), [`--${flag} is empty`, `Write --${flag} ${shown}, or leave it out.`])
      assert.deepStrictEqual(refused("run", `--${flag}=`, "t"), [`--${flag} is empty`, `Write --${flag} ${shown}, or leave it out.`])
    }
  )

  it.each(["0", "-1", "abc", "NaN", "Infinity", "1e3", "0x10", "", " 5", "5s", "99999999999999"])("refuses a timeout of %j", (value) => {
    assert.deepStrictEqual(refused("run", `--timeout=${value}`), [
      `--timeout is ${JSON.stringify(value)}; it takes a number of seconds above 0`,
      "Write for example --timeout 90 or --timeout 0.5."
    ])
  })

  it("repeats a word on one line, bounded, without its controls", () => {
    assert.strictEqual(quote(`a\n\u001b[31m\u009b${"x".repeat(100)}`), `"a\\n\\u001b[31m\\u009b${"x".repeat(72)}…"`)
  })
})
