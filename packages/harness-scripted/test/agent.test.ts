import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { Scenario, ScenarioLanguage } from "@turnpike/harness-scripted"
import * as Agent from "./support/agent.ts"

type Action = Scenario.Action
const end: Action = { type: "end", reason: "completed" }
const say = (text: string): Action => ({ type: "text", text, pieces: 1 })
const one = (...actions: ReadonlyArray<Action>): Scenario.Scenario => ({ turns: [{ repeats: true, do: actions }] })
const echo = one(say("{{prompts}}"), end)

/** Runs a command line that only prints. */
const command = (...args: ReadonlyArray<string>): Promise<{ readonly stdout: string; readonly stderr: string; readonly code: number }> =>
  new Promise((resolve) => {
    execFile(process.execPath, [Agent.executable, ...args], (error, stdout, stderr) =>
      resolve({ stdout, stderr, code: error === null ? 0 : Number(error.code) }))
  })

const inPlace = (name: string, body: (directory: string) => Promise<void>) =>
  it(name, async () => {
    const { directory, remove } = Agent.place()
    try {
      await body(directory)
    } finally {
      remove()
    }
  }, 30_000)

const texts = (ran: Agent.Ran) => ran.frames.flatMap((frame) => (frame["type"] === "end" ? [frame["text"]] : []))
const types = (ran: Agent.Ran) => ran.frames.map((frame) => frame["type"])
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    // A process that has ended and was not yet waited for is not alive.
    return !/^State:\s+Z/mu.test(fs.readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}
const pidIn = (file: string): number => Number(fs.readFileSync(file, "utf8"))

describe.concurrent("turnpike-scripted-agent", () => {
  it("lists, prints, checks and describes", async () => {
    const list = await command("--list")
    assert.deepStrictEqual(list.stdout.trim().split("\n").map((line) => line.split(" ")[0]), [...Scenario.builtIn()])
    const printed = await command("--print", "echo")
    assert.deepStrictEqual(ScenarioLanguage.problemsOf(JSON.parse(printed.stdout)), [])
    assert.deepStrictEqual((await command("--describe")).stdout, ScenarioLanguage.describe())
    const help = await command("--help")
    assert.deepStrictEqual([help.code, help.stdout.includes("--scenario")], [0, true])
    assert.match((await command("--version")).stdout, /^\d+\.\d+\.\d+\n$/u)
  }, 30_000)

  it("exits with 2 and a sentence for every mistake on its command line", async () => {
    const mistakes = [
      ["--colour"],
      ["--scenario"],
      ["--scenario", "no-such"],
      ["--scenario", "/nowhere.json"],
      ["--session", "a", "--resume", "b"],
      ["--speed", "fast"],
      ["--dialect-module", "/nowhere.ts"],
      ["--dialect-module", Agent.executable.replace("bin/agent.ts", "ScenarioLanguage.ts")],
      ["--", "x"],
      ["--replay", "/nowhere"],
      ["--check", Agent.executable],
      ["--print", "no-such"]
    ]
    const answers = await Promise.all(mistakes.map(async (args) => ({ args, ...await command(...args) })))
    for (const { args, code, stderr, stdout } of answers) {
      assert.deepStrictEqual([args, code, stdout, /^turnpike-scripted-agent: .+\n/u.test(stderr)], [args, 2, "", true])
    }
  }, 60_000)

  inPlace("refuses a scenario with a mistake and names the place", async (directory) => {
    const ran = await Agent.run(directory, { turns: [{ do: [{ type: "delay", ms: -1 }] }] }, [])
    assert.strictEqual(ran.code, 2)
    assert.ok(ran.stderr.includes("turns[0].do[0].ms is -1"), ran.stderr)
  })

  inPlace("answers prompts in order, also those that come while it is busy", async (directory) => {
    const slow = one({ type: "delay", ms: 100 }, say("{{turn}} {{prompt}} {{prompts}}"), end)
    const ran = await Agent.run(directory, slow, [Agent.open, Agent.prompt("a"), Agent.prompt("b"), Agent.ended, Agent.ended])
    assert.deepStrictEqual(texts(ran), ["1 a [\"a\"]", "2 b [\"a\",\"b\"]"])
    assert.deepStrictEqual(ran.frames.filter((frame) => frame["turn"] !== undefined).map((frame) => frame["turn"]), [
      ...Array<string>(4).fill("a"),
      ...Array<string>(4).fill("b")
    ])
    assert.strictEqual(ran.code, 0)
  })

  inPlace("finishes what it has begun when its input ends", async (directory) => {
    const ran = await Agent.run(directory, one({ type: "delay", ms: 100 }, say("late"), end), [Agent.open, Agent.prompt("a")])
    assert.deepStrictEqual([texts(ran), ran.code], [["late"], 0])
  })

  inPlace("chooses the turn by the prompt", async (directory) => {
    const ran = await Agent.run(directory, {
      turns: [
        { when: { equals: "a" }, do: [say("exactly"), end] },
        { when: { matches: "^\\d+$" }, repeats: true, do: [say("digits"), end] },
        { when: { contains: "b" }, do: [say("has b"), end] }
      ]
    }, [Agent.open, ...["a", "12", "abc", "13", "a"].map((text) => Agent.prompt(text)), { until: "\"fail\"" }])
    assert.deepStrictEqual(texts(ran), ["exactly", "digits", "has b", "digits"])
    const failure = ran.frames.find((frame) => frame["type"] === "fail")
    assert.deepStrictEqual([failure?.["turn"], failure?.["message"]], ["a", "the scenario has no turn for this prompt"])
  })

  inPlace("keeps a session for the next process, under its id", async (directory) => {
    const first = await Agent.run(directory, echo, [Agent.open, Agent.prompt("one"), Agent.ended], ["--session", "s1"])
    const again = await Agent.run(directory, echo, [], ["--session", "s1"])
    const second = await Agent.run(directory, echo, [Agent.open, Agent.prompt("two"), Agent.ended], ["--resume", "s1"])
    const forgetful = await Agent.run(directory, { ...echo, memory: "forgets" }, [Agent.open, Agent.prompt("three"), Agent.ended], ["--resume", "s1"])
    const renamed = await Agent.run(directory, { ...echo, resume: "new_id" }, [Agent.open], ["--resume", "s1"])
    const lost = await Agent.run(directory, echo, [], ["--resume", "s2"])
    const held = await Agent.run(directory, { ...echo, resume: "in_use" }, [], ["--resume", "s1"])
    assert.deepStrictEqual([first, second, forgetful].map(texts), [["[\"one\"]"], ["[\"one\",\"two\"]"], ["[\"three\"]"]])
    assert.deepStrictEqual([again, lost, held].map(({ code, frames }) => [code, frames[0]?.["type"], frames[0]?.["why"]]), [
      [1, "refused", "in_use"],
      [1, "refused", "unknown"],
      [1, "refused", "in_use"]
    ])
    assert.deepStrictEqual([second.frames[0]?.["session_id"], second.frames[0]?.["resumed"]], ["s1", true])
    assert.notStrictEqual(renamed.frames[0]?.["session_id"], "s1")
  })

  inPlace("stops where it waits when it is interrupted, and not before", async (directory) => {
    const scenario = one(say("a"), { type: "hang" }, say("never"), end)
    const ran = await Agent.run(directory, scenario, [
      Agent.open,
      { send: { type: "interrupt" } },
      Agent.prompt("x"),
      { until: "\"message\"" },
      { send: { type: "interrupt" } },
      Agent.ended
    ])
    assert.deepStrictEqual(ran.frames.at(-1), { type: "end", turn: "x", reason: "aborted", text: "a", denials: [] })
  })

  inPlace("does what the scenario says on an interrupt, or nothing", async (directory) => {
    const stubborn = one({ type: "ignore_interrupts" }, { type: "delay", ms: 300 }, say("on"), end)
    const steps = [Agent.open, Agent.prompt("x"), { until: "\"started\"" }, { send: { type: "interrupt" } }, Agent.ended]
    assert.deepStrictEqual(texts(await Agent.run(directory, stubborn, steps)), ["on"])
    const own: Scenario.Scenario = { ...one({ type: "hang" }), on_interrupt: [say("bye"), { type: "end", reason: "refusal" }] }
    const ran = await Agent.run(directory, own, steps)
    assert.deepStrictEqual([ran.frames.at(-1)?.["reason"], texts(ran)], ["refusal", ["bye"]])
  })

  inPlace("plays what comes after a turn's end beside the next turn", async (directory) => {
    const scenario: Scenario.Scenario = {
      turns: [
        { do: [end, { type: "wait_for", what: "file", path: "go" }, say("too late")] },
        { do: [{ type: "write_file", path: "go", text: "" }, { type: "delay", ms: 300 }, say("second"), end] }
      ]
    }
    const ran = await Agent.run(directory, scenario, [Agent.open, Agent.prompt("a"), Agent.prompt("b"), Agent.ended, Agent.ended])
    const late = ran.frames.findIndex((frame) => frame["text"] === "too late")
    assert.deepStrictEqual(ran.frames[late]?.["turn"], "a")
    assert.ok(late > ran.frames.findIndex((frame) => frame["turn"] === "b"), "it comes within the second turn")
  })

  inPlace("asks, waits for the answer, and plays what belongs to it", async (directory) => {
    const scenario = one(
      { type: "ask", id: "call", name: "execute", input: { command: "{{prompt}}" }, allowed: [say("yes")], denied: [say("no")] },
      end
    )
    const answer = (id: string, allow: boolean): Agent.Step => ({ send: { type: "answer", id, allow, reason: "so" } })
    const ran = await Agent.run(directory, scenario, [
      Agent.open,
      Agent.prompt("a"),
      { until: "\"ask\"" },
      answer("q1", true),
      Agent.ended,
      Agent.prompt("b"),
      { until: "\"ask\"" },
      answer("q2", false),
      Agent.ended
    ])
    assert.deepStrictEqual(ran.frames.filter((frame) => frame["type"] === "end").map(({ denials, text }) => [text, denials]), [
      ["yes", []],
      ["no", [{ call_id: "call", name: "execute", input: { command: "b" } }]]
    ])
    assert.deepStrictEqual(ran.frames.find((frame) => frame["type"] === "tool_result"), {
      type: "tool_result",
      turn: "b",
      id: "call",
      output: "so",
      is_error: true,
      denied: true
    })
  })

  inPlace("writes bytes as they are, in pieces, in blocks, joined, and very long", async (directory) => {
    const scenario = one(
      { type: "write", base64: "5AD/Cg==" },
      { type: "write", text: "no frame\n" },
      { type: "join_next" },
      say("a"),
      { type: "huge_line", bytes: 3_000_000 },
      { type: "frame", value: { n: [1, "{{prompt}}"] } },
      { type: "chunk_writes", bytes: 1 },
      { type: "note", text: "é" },
      { type: "chunk_writes", bytes: 0 },
      { type: "buffer_writes", bytes: 100_000 },
      say("held back"),
      { type: "delay", ms: 100 },
      { type: "buffer_writes", bytes: 0 },
      end
    )
    const ran = await Agent.run(directory, scenario, [Agent.open, Agent.prompt("x"), Agent.ended])
    assert.strictEqual(ran.bytes.includes(Buffer.from([0xe4, 0x00, 0xff, 0x0a])), true)
    assert.match(ran.stdout, /^no frame$/mu)
    assert.match(ran.stdout, /^\{"type":"text_delta","turn":"x","text":"a"\}\{"type":"message","turn":"x","text":"a"\}$/mu)
    assert.match(ran.stdout, /^x{3000000}$/mu)
    assert.match(ran.stdout, /^\{"n":\[1,"x"\]\}$/mu)
    assert.match(ran.stdout, /^\{"type":"note","turn":"x","text":"é"\}$/mu)
    assert.strictEqual(texts(ran).length, 1)
  })

  inPlace("ends as the scenario says: by a code, by a signal, in spite of signals, on the end of its input", async (directory) => {
    const steps = [Agent.open, Agent.prompt("x")]
    const started = { until: "\"started\"" }
    const coded = await Agent.run(directory, one({ type: "stderr", text: "why\n", times: 2 }, { type: "exit", code: 7 }), steps)
    assert.deepStrictEqual([coded.code, coded.signal, coded.stderr], [7, null, "why\nwhy\n"])
    const killed = await Agent.run(directory, one({ type: "kill", signal: "SIGKILL" }), steps)
    assert.deepStrictEqual([killed.code, killed.signal], [null, "SIGKILL"])
    const usual = await Agent.run(directory, one({ type: "hang" }), [...steps, started, { signal: "SIGTERM" }])
    assert.strictEqual(usual.signal, "SIGTERM")
    const trapped = await Agent.run(directory, { ...one({ type: "hang" }), on_sigterm: [{ type: "exit", code: 0 }] }, [...steps, started, { signal: "SIGTERM" }])
    assert.deepStrictEqual([trapped.code, trapped.signal], [0, null])
    const ignoring = one({ type: "ignore_signals", signals: ["SIGTERM", "SIGINT"] }, say("ready"), { type: "wait_for", what: "signal", signal: "SIGUSR1" }, { type: "exit", code: 5 })
    const ignored = await Agent.run(directory, ignoring, [...steps, { until: "message" }, { signal: "SIGTERM" }, { signal: "SIGINT" }, { signal: "SIGUSR1" }])
    assert.deepStrictEqual([ignored.code, ignored.signal], [5, null])
    const eof = await Agent.run(directory, { ...one({ type: "wait_for", what: "eof" }, { type: "delay", ms: 50 }, say("at last"), end) }, steps)
    assert.deepStrictEqual([texts(eof), eof.code], [["at last"], 0])
    const onEof = await Agent.run(directory, { ...one({ type: "hang" }), on_eof: [{ type: "exit", code: 9 }] }, steps)
    assert.strictEqual(onEof.code, 9)
  })

  inPlace("starts children that stay behind: its own, leaders of sessions, daemons", async (directory) => {
    const spawn = (as: "child" | "session" | "daemon"): Action => ({
      type: "spawn",
      argv: ["sleep", "60"],
      as,
      ignores: ["TERM", "INT"],
      pid_file: path.join(directory, as)
    })
    const scenario = one(spawn("child"), spawn("session"), spawn("daemon"), { type: "spawn", argv: ["touch", "waited"], as: "child", wait: true }, end)
    const ran = await Agent.run(directory, scenario, [Agent.open, Agent.prompt("x"), Agent.ended])
    assert.strictEqual(fs.existsSync(path.join(directory, "waited")), true)
    const pids = (["child", "session", "daemon"] as const).map((as) => pidIn(path.join(directory, as)))
    try {
      assert.strictEqual(ran.code, 0)
      const isLeader = (pid: number) => fs.readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /u, "").split(" ")[3] === String(pid)
      for (const pid of pids) {
        process.kill(pid, "SIGTERM")
        assert.strictEqual(isAlive(pid), true)
      }
      if (process.platform === "linux") assert.deepStrictEqual(pids.map(isLeader), [false, true, false])
    } finally {
      for (const pid of pids) if (pid > 0) process.kill(pid, "SIGKILL")
    }
  })

  inPlace("says which program could not be started, and exits with 70", async (directory) => {
    const ran = await Agent.run(directory, one({ type: "spawn", argv: ["/nowhere/program"], as: "child" }, end), [Agent.open, Agent.prompt("x")])
    assert.deepStrictEqual([ran.code, ran.stderr.includes("/nowhere/program")], [70, true])
  })

  inPlace("fills holes and leaves unknown ones", async (directory) => {
    const ran = await Agent.run(
      directory,
      one(say("{{env:COLOUR}}|{{env:NONE}}|{{cwd}}|{{model}}|{{system}}|{{tools}}|{{session}}|{{nothing}}"), end),
      [{ send: { type: "open", model: "m", system: "s", tools: ["read"] } }, Agent.prompt("x"), Agent.ended],
      ["--session", "id"],
      { COLOUR: "red" }
    )
    assert.deepStrictEqual(texts(ran), [`red||${directory}|m|s|["read"]|id|{{nothing}}`])
  })

  inPlace("refuses a line that it does not understand, and exits with 1", async (directory) => {
    for (const line of ["not json", "[]", "{\"type\":\"dance\"}"]) {
      const ran = await Agent.run(directory, echo, [Agent.open, { send: line }, { until: "never" }])
      assert.deepStrictEqual([ran.code, ran.stderr.includes(line)], [1, true])
    }
  })

  inPlace("says every kind of frame", async (directory) => {
    const ran = await Agent.run(
      directory,
      one(
        { type: "reasoning", text: "hm", pieces: 1 },
        { type: "todo", todos: [{ content: "do it", status: "pending" }] },
        { type: "retry", attempt: 1, max_attempts: 2, delay_ms: 3, http_status: 529 },
        { type: "note", text: "n" },
        { type: "tool_call", id: "c{{turn}}", name: "read" },
        { type: "tool_result", id: "c{{turn}}", output: "o" },
        { type: "usage", input_tokens: 1, output_tokens: 2 },
        { type: "background", tasks: [{ id: "t" }] },
        { type: "bind", session_id: "other" },
        { type: "fail", code: "SERVER", message: "no", http_status: 500 }
      ),
      [Agent.open, Agent.prompt("x"), { until: "\"fail\"" }]
    )
    assert.deepStrictEqual(types(ran), [
      "opened",
      "started",
      "reasoning_delta",
      "todo",
      "retry",
      "note",
      "tool_call",
      "tool_result",
      "usage",
      "background",
      "opened",
      "fail"
    ])
    assert.deepStrictEqual(ran.frames.find((frame) => frame["type"] === "tool_call")?.["id"], "c1")
  })
})
