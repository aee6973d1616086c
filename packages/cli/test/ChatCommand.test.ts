import { afterAll, assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Events from "./support/Events.ts"
import * as Turnpike from "./support/Turnpike.ts"

const home = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-cli-chat-"))
const options = { home }
afterAll(() => fs.rmSync(home, { recursive: true, force: true }))

const chat = (scenario: string, ...args: ReadonlyArray<string>) => ["chat", "--harness", "scripted", "--scenario", scenario, ...args]
const prompt = (text: string) => `${JSON.stringify({ type: "prompt", text })}\n`

/** Answers the first prompt, fails at the second, and answers on. */
const moody = path.join(home, "moody.json")
fs.writeFileSync(moody, JSON.stringify({
  description: "Fails at the second prompt.",
  turns: [
    { do: [{ type: "text", text: "first" }, { type: "end", reason: "completed" }] },
    { do: [{ type: "text", text: "half" }, { type: "fail", code: "RATE_LIMIT", message: "too many requests" }] },
    { repeats: true, do: [{ type: "text", text: "again" }, { type: "end", reason: "completed" }] }
  ]
}))

/** As the scenario of that name, but what it starts runs before it says anything. */
const stuck = path.join(home, "stuck.json")
fs.writeFileSync(stuck, JSON.stringify({
  description: "Ignores every request to end.",
  start: [{ type: "ignore_interrupts" }, { type: "ignore_eof" }, { type: "ignore_signals", signals: ["SIGINT", "SIGTERM"] }],
  turns: [{
    repeats: true,
    do: [{ type: "spawn", argv: ["sleep", "300"], as: "session", ignores: ["INT", "TERM"] }, { type: "text", text: "Let me think" }, { type: "hang" }]
  }]
}))

describe.concurrent("turnpike chat between programs", () => {
  it("answers every line with one run, in order, on one warm session", async () => {
    const { code, stderr, stdout } = await Turnpike.run(chat("echo", "--format", "events", "--session", "pipe"), { ...options, input: prompt("one") + prompt("two").trimEnd() })
    assert.deepStrictEqual([code, stderr], [0, ""])
    const results = Events.runs(stdout).map(Events.resultOf)
    assert.deepStrictEqual(results.map(({ result, session }) => [JSON.parse(result.summary), session.id, session.turn]), [
      [["one"], "pipe", 1],
      [["one", "two"], "pipe", 2]
    ])
  }, 30_000)

  it("answers a line that is no prompt with a run that failed, and goes on", async () => {
    const lines = ["garbage\n", "\n", "{\"type\":\"prompt\",\"text\":\"\"}\n", "{\"type\":\"prompt\",\"text\":\"x\",\"y\":1}\n", prompt("one")]
    const { code, stderr, stdout } = await Turnpike.run(chat("echo"), { ...options, input: Buffer.concat([...lines.map((line) => Buffer.from(line)), Buffer.from([0xff, 0x0a])]) })
    assert.deepStrictEqual([code, stderr], [3, ""])
    const results = Events.runs(stdout).map(Events.resultOf)
    assert.deepStrictEqual(
      results.map(({ error, result }) => result.success ? result.summary : `${error?.code} ${error?.message.slice(0, 55)}`),
      [
        "INVALID_SPEC line 1 of standard input is not JSON",
        "INVALID_SPEC line 2 of standard input is not JSON",
        "INVALID_SPEC line 3 of standard input is no prompt: its text is empt",
        "INVALID_SPEC line 4 of standard input is no prompt: Expected no exce",
        "[\"one\"]",
        "INVALID_SPEC line 6 of standard input is not UTF-8 text"
      ]
    )
  }, 30_000)

  it("reports a failed turn and goes on", async () => {
    const { code, stdout } = await Turnpike.run(chat(moody), { ...options, input: prompt("1") + prompt("2") + prompt("3") })
    assert.strictEqual(code, 3)
    assert.deepStrictEqual(Events.runs(stdout).map(Events.resultOf).map(({ error, result }) => error?.code ?? result.summary), ["first", "RATE_LIMIT", "again"])
  }, 30_000)

  it.skipIf(!fs.existsSync("/dev/full"))("says why nobody got what was told", async () => {
    for (const format of ["events", "text"]) {
      const { code, stderr } = await Turnpike.run(chat("echo", "--format", format), {
        ...options,
        input: format === "events" ? prompt("one") + prompt("two") : "one\n",
        redirect: ">/dev/full"
      })
      assert.match(stderr, /standard output cannot be written: ENOSPC.*\n {2}code: (OUTPUT_CLOSED|CHANNEL_LOST)\n/)
      assert.strictEqual(code, format === "events" ? 3 : 1)
    }
  }, 30_000)

  it("says nothing where nothing is asked", async () => {
    assert.deepStrictEqual(await Turnpike.run(chat("echo"), options), { code: 0, signal: null, stdout: "", stderr: "" })
  }, 30_000)

  it("ends the running turn at an interrupt and goes on; ends itself at one between turns", async () => {
    const running = Turnpike.start(chat("hang"), options)
    running.child.stdin.write(prompt("one"))
    await running.until("\"text_delta\"")
    running.child.kill("SIGINT")
    await running.until("\"result\":{\"result\"")
    running.child.stdin.write(prompt("two"))
    await running.until("\"turn\":2")
    running.child.kill("SIGINT")
    await running.until("\"result\":{\"result\"", 2)
    running.child.kill("SIGINT")
    const { code, stdout } = await running.ended
    assert.strictEqual(code, 130)
    assert.deepStrictEqual(Events.runs(stdout).map(Events.resultOf).map(({ verdict }) => verdict), [
      { type: "aborted", cause: "user", mode: "graceful" },
      { type: "aborted", cause: "user", mode: "graceful" }
    ])
  }, 30_000)

  it("cuts the running turn off at a termination, tells it, and ends", async () => {
    const running = Turnpike.start(chat(stuck), options)
    running.child.stdin.write(prompt("one"))
    await running.until("\"text_delta\"")
    running.child.kill("SIGTERM")
    const { code, stderr, stdout } = await running.ended
    assert.deepStrictEqual([code, Events.resultOf(stdout).verdict], [143, { type: "aborted", cause: "parent", mode: "hard" }])
    assert.match(stderr, /^turnpike: cutting the turn off\nturnpike: killed: \d+ sleep 300\n$/)
  }, 30_000)

  it("cuts the running turn off at the second interrupt, and goes on", async () => {
    const running = Turnpike.start(chat(stuck), options)
    running.child.stdin.write(prompt("one"))
    await running.until("\"text_delta\"")
    running.child.kill("SIGINT")
    // This agent ignores a graceful request.
    await running.until("asking the agent to end its turn; interrupt again to cut it off")
    running.child.kill("SIGINT")
    await running.until("\"result\":{\"result\"")
    running.child.stdin.end(prompt("two"))
    await running.until("\"type\":\"turn_start\"", 2)
    running.child.kill("SIGTERM")
    const { code, stdout } = await running.ended
    assert.deepStrictEqual([code, Events.runs(stdout).map(Events.resultOf).map(({ verdict }) => verdict)], [143, [
      { type: "aborted", cause: "user", mode: "hard" },
      { type: "aborted", cause: "parent", mode: "hard" }
    ]])
  }, 30_000)

  it("ends each turn at its time limit", async () => {
    const { code, stdout } = await Turnpike.run(chat("hang", "--timeout", "0.3"), { ...options, input: prompt("1") + prompt("2") })
    assert.deepStrictEqual([code, Events.runs(stdout).map(Events.resultOf).map(({ reason }) => reason)], [3, ["timeout", "timeout"]])
  }, 30_000)
})

describe.concurrent("turnpike chat with a person", () => {
  it("takes lines from a pipe, and goes on after a failed turn", async () => {
    const { code, stderr, stdout } = await Turnpike.run(chat(moody, "--format", "text", "--session", "text"), { ...options, input: "1\n2\n\n3\n/exit\n4\n" })
    assert.deepStrictEqual([code, stdout], [3, "first\nhalf\nagain\n"])
    assert.deepStrictEqual(
      stderr.replaceAll(/\d+\.\d s/g, "N s").split("\n").filter((line) => /^(✓|✗| {2}code)/.test(line)),
      ["✓ completed · N s · usage unknown", "✗ too many requests", "  code: RATE_LIMIT", "✗ error RATE_LIMIT · N s · usage unknown", "✓ completed · N s · usage unknown"]
    )
  }, 30_000)

  it("tells a line that is not text, and goes on", async () => {
    const input = Buffer.concat([Buffer.from([0x68, 0xff, 0x0a]), Buffer.from("hi\n")])
    const { code, stderr, stdout } = await Turnpike.run(chat("echo", "--format", "text"), { ...options, input })
    assert.deepStrictEqual([code, stdout, stderr.split("\n")[0]], [3, "[\"hi\"]\n", "line 1 of standard input is not UTF-8 text; nothing was asked"])
  }, 30_000)

  it("remembers its session for a later run", async () => {
    await Turnpike.run(chat("echo", "--format", "text", "--session", "later"), { ...options, input: "one\ntwo\\\nlines\n" })
    const { stdout } = await Turnpike.run(["run", "--harness", "scripted", "--scenario", "echo", "--session", "later", "--resume", "fail", "three"], options)
    const { result, session } = Events.resultOf(stdout)
    assert.deepStrictEqual([JSON.parse(result.summary), session.turn, session.resumed], [["one", "two\nlines", "three"], 3, "native"])
  }, 30_000)

  it("refuses a time limit, which it would not keep", async () => {
    const { code, stderr, stdout } = await Turnpike.run(chat("echo", "--format", "text", "--timeout", "5"), options)
    assert.deepStrictEqual([code, stdout, stderr], [2, "", "turnpike: --timeout is for --format events\n  code: USAGE\n  what to do: Leave out --timeout; Ctrl-C ends a turn.\n"])
  }, 30_000)

  it("refuses what run refuses, before anything is started", async () => {
    for (const [args, code, exit] of [
      [["--harness", "nope"], "HARNESS_UNKNOWN", 2],
      [["--session", "bad id"], "USAGE", 2],
      [["--harness", "scripted", "--program", "/nonexistent"], "HARNESS_NOT_FOUND", 1]
    ] as const) {
      const ended = await Turnpike.run(["chat", "--format", "text", ...args], options)
      assert.deepStrictEqual([ended.code, ended.stdout], [exit, ""])
      assert.include(ended.stderr, `\n  code: ${code}\n`)
    }
  }, 30_000)
})

/** What the terminal gets when a line is asked for. */
const ready = "\u001b[1G\u001b[0J> \u001b[3G"

describe.skipIf(!Turnpike.hasTerminal).concurrent("turnpike chat on a terminal", () => {
  it("edits lines, answers them, and leaves at Ctrl-D", async () => {
    const running = Turnpike.startOnTerminal(chat("echo"), options)
    await running.until(ready)
    running.child.stdin.write("helo\u007flo\r")
    await running.until("[\"hello\"]")
    await running.until("completed · ")
    await running.until(ready, 2)
    running.child.stdin.write("\u0004")
    const { code } = await running.ended
    assert.strictEqual(code, 0)
  }, 30_000)

  it("leaves after the turn when Ctrl-D was typed while it ran", async () => {
    const slow = path.join(home, "slow.json")
    fs.writeFileSync(slow, JSON.stringify({
      description: "Takes a second to answer.",
      turns: [{ repeats: true, do: [{ type: "text", text: "begun" }, { type: "delay", ms: 1000 }, { type: "end", reason: "completed" }] }]
    }))
    const running = Turnpike.startOnTerminal(chat(slow), options)
    await running.until(ready)
    running.child.stdin.write("hi\r")
    await running.until("begun")
    running.child.stdin.write("\u0004")
    assert.strictEqual((await running.ended).code, 0)
  }, 30_000)

  it("ends the running turn at Ctrl-C, cuts it off at the second, and is ready for the next prompt", async () => {
    const running = Turnpike.startOnTerminal(chat(stuck), options)
    await running.until(ready)
    running.child.stdin.write("hi\r")
    await running.until("Let me think")
    running.child.stdin.write("\u0003")
    await running.until("asking the agent to end its turn; Ctrl-C again cuts it off")
    running.child.stdin.write("\u0003")
    await running.until("✗ stopped (user, hard)")
    await running.until(ready, 2)
    running.child.stdin.write("/exit\r")
    const { code, stdout } = await running.ended
    assert.strictEqual(code, 0)
    assert.match(stdout, /turnpike: killed: \d+ sleep 300\n$/)
  }, 30_000)

  it("leaves at the second Ctrl-C on an empty line", async () => {
    const running = Turnpike.startOnTerminal(chat("echo"), options)
    await running.until(ready)
    running.child.stdin.write("\u0003")
    await running.until("(Ctrl-C again, Ctrl-D or /exit to leave)")
    await running.until(ready, 2)
    running.child.stdin.write("\u0003")
    const { code } = await running.ended
    assert.strictEqual(code, 130)
  }, 30_000)

  it("asks about a tool, and Ctrl-C at the question ends the turn", async () => {
    const running = Turnpike.startOnTerminal(chat("tool-denied", "--permission", "ask"), options)
    await running.until(ready)
    running.child.stdin.write("hi\r")
    await running.until("Allow execute Remove the build? [y/N] ")
    running.child.stdin.write("y\r")
    await running.until("It is done.")
    await running.until(ready, 2)
    running.child.stdin.write("hi\r")
    await running.until("[y/N] ", 2)
    running.child.stdin.write("\u0003")
    await running.until("asking the agent")
    await running.until(ready, 3)
    running.child.stdin.write("/exit\r")
    assert.strictEqual((await running.ended).code, 0)
  }, 30_000)
})
