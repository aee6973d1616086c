import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { OwnerTag } from "@turnpike/process"
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Events from "./support/Events.ts"
import * as Turnpike from "./support/Turnpike.ts"

const home = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-cli-run-"))
const options = { home }
const inHome = (...parts: ReadonlyArray<string>) => path.join(home, ...parts)
const isRoot = process.geteuid?.() === 0

afterAll(() => fs.rmSync(home, { recursive: true, force: true }))

/** A file of the scripted agent's language. */
const scenario = (name: string, actions: ReadonlyArray<unknown>, start: ReadonlyArray<unknown> = []): string => {
  const file = inHome(`${name}.json`)
  fs.writeFileSync(file, JSON.stringify({ description: name, start, turns: [{ repeats: true, do: actions }] }))
  return file
}

const end = { type: "end", reason: "completed" }
const echo = ["run", "--harness", "scripted", "--scenario", "echo"]

/** Nothing may be on standard output where a command could not start. */
const refused = ({ code, stderr, stdout }: Turnpike.Ended) => {
  assert.strictEqual(stdout, "")
  const told = /^turnpike: ([^]*)\n {2}code: ([A-Z_]+)\n {2}what to do: .+\n$/.exec(stderr)
  assert.isNotNull(told, stderr)
  return { exit: code, code: told?.[2], message: told?.[1] ?? "" }
}

beforeAll(() => {
  fs.mkdirSync(inHome("project"))
})

describe.concurrent("turnpike run, in events", () => {
  it("writes one valid stream, and nothing else, to standard output", async () => {
    const { code, stderr, stdout } = await Turnpike.run(["run", "--harness", "scripted", "Say hello"], options)
    assert.deepStrictEqual([code, stderr], [0, ""])
    const events = Events.parse(stdout)
    assert.deepStrictEqual(events[0]?.type, "tool_start")
    const result = Events.resultOf(stdout)
    assert.deepStrictEqual([result.reason, result.session.harness, result.session.turn], ["success", "scripted", 1])
    assert.match(result.result.summary, /Say hello/)
  }, 30_000)

  it("passes the task on to the byte, from wherever it comes", async () => {
    const task = "--help $(x) `y` \"z\" 'w'\n\u{1f600}\n/clear\n"
    const file = inHome("task")
    fs.writeFileSync(file, task)
    const spec = inHome("spec.json")
    fs.writeFileSync(spec, JSON.stringify({ harness: "scripted", task }))
    for (const [args, input] of [[["--", task]], [["--task-file", file]], [["-"], task], [["--spec", "-"], fs.readFileSync(spec)]] as const) {
      const ended = await Turnpike.run(["run", "--scenario", "echo", ...(args[0] === "--spec" ? [] : ["--harness", "scripted"]), ...args], {
        ...options,
        ...(input === undefined ? {} : { input })
      })
      assert.strictEqual(ended.code, 0, ended.stderr)
      assert.deepStrictEqual(JSON.parse(Events.resultOf(ended.stdout).result.summary), [task])
    }
  }, 60_000)

  it("hands every option to the harness", async () => {
    const telling = scenario("telling", [
      { type: "text", text: "{{model}}|{{system}}|{{tools}}|{{cwd}}|{{env:GIVEN}}|{{env:INHERITED}}|{{env:CLAUDECODE}}", pieces: 1 },
      end
    ])
    const system = inHome("system.md")
    fs.writeFileSync(system, "Be brief.")
    const { stdout } = await Turnpike.run(
      [
        "run", "--harness", "scripted", "--scenario", "./telling.json", "--model", "m-9", "--system-file", system, "--allow-tool", "edit",
        "--allow-tool", "read", "--cwd", "project", "--env", "GIVEN=g", "hi"
      ],
      { ...options, env: { INHERITED: "i", CLAUDECODE: "1", GIVEN: "not this" } }
    )
    assert.strictEqual(path.basename(telling), "telling.json")
    assert.strictEqual(Events.resultOf(stdout).result.summary, `m-9|Be brief.|["edit","read"]|${fs.realpathSync(inHome("project"))}|g|i|`)
    // The scripted agent is told of a limit; where there is none it is told nothing.
    for (const [flags, tools] of [[["--dangerous-all-tools"], "[]"], [[], "[\"read\",\"search\"]"]] as const) {
      const ended = await Turnpike.run(["run", "--harness", "scripted", "--scenario", telling, ...flags, "hi"], options)
      assert.strictEqual(Events.resultOf(ended.stdout).result.summary.split("|")[2], tools)
    }
  }, 30_000)

  it("keeps an isolated session's settings in the session's own directory", async () => {
    const { code } = await Turnpike.run([...echo, "--isolated", "--session", "isolated", "hi"], options)
    const settings = inHome("data", "sessions", "isolated", "settings")
    assert.deepStrictEqual([code, fs.statSync(settings).mode & 0o777], [0, 0o700])
    assert.notDeepEqual(fs.readdirSync(settings), [])
    const again = await Turnpike.run([...echo, "--isolated", "--session", "isolated", "--resume", "fail", "more"], options)
    assert.deepStrictEqual(JSON.parse(Events.resultOf(again.stdout).result.summary), ["hi", "more"])
  }, 30_000)

  it("delivers the result to a file instead", async () => {
    const file = inHome("result.json")
    const { code, stderr, stdout } = await Turnpike.run([...echo, "--result-file", file, "hi"], options)
    assert.deepStrictEqual([code, stderr], [0, ""])
    const last = Events.parse(stdout, "file").at(-1)
    const validated = await Turnpike.run(["validate", "agent-run-result", file], options)
    assert.deepStrictEqual([last?.type, validated.code, validated.stderr], ["session_end", 0, ""])
    assert.strictEqual(fs.readFileSync(file, "utf8").split("\n")[1], "  \"result\": {")
  }, 30_000)

  it("says what came of the run where the file cannot be written at the end", async () => {
    const directory = inHome("vanishing")
    fs.mkdirSync(directory)
    const running = Turnpike.start(["run", "--harness", "scripted", "--scenario", "hang", "--result-file", path.join(directory, "r.json"), "hi"], options)
    await running.until("\"text_delta\"")
    fs.rmSync(directory, { recursive: true })
    running.child.kill("SIGINT")
    const { code, stderr, stdout } = await running.ended
    assert.deepStrictEqual([code, Events.parse(stdout, "file").at(-1)?.type], [1, "session_end"])
    assert.match(stderr, /\nturnpike: the result cannot be written to .*r\.json: .*\n {2}code: RESULT_UNWRITABLE\n {2}what to do: .*\nturnpike: the run itself: stopped \(user, graceful\) in /)
  }, 30_000)

  it.skipIf(process.platform !== "linux")("ends what a dead owner left behind", async () => {
    const dead = spawnSync(process.execPath, ["-e", "0"]).pid
    const owner = OwnerTag.format({
      bootId: fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
      namespace: /\d+/.exec(fs.readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0",
      pid: dead,
      started: 1
    })
    const orphan = spawn("sleep", ["300"], { env: { PATH: process.env["PATH"] ?? "", [`${OwnerTag.defaultPrefix}OF_A_TEST`]: owner }, stdio: "ignore" })
    const ended = new Promise<NodeJS.Signals | null>((resolve) => orphan.on("close", (_code, signal) => resolve(signal)))
    assert.strictEqual((await Turnpike.run([...echo, "hi"], options)).code, 0)
    assert.strictEqual(await ended, "SIGKILL")
  }, 30_000)

  it("says in the exit code that a run did not succeed, and in the result why", async () => {
    const failing = await Turnpike.run(["run", "--harness", "scripted", "--scenario", "error", "hi"], options)
    const failed = Events.resultOf(failing.stdout)
    assert.deepStrictEqual([failing.code, failed.reason, failed.result.success], [3, "adapter_error", false])
    const late = await Turnpike.run(["run", "--harness", "scripted", "--scenario", "hang", "--timeout", "0.3", "hi"], options)
    const timedOut = Events.resultOf(late.stdout)
    assert.deepStrictEqual([late.code, timedOut.reason, timedOut.error?.code], [3, "timeout", "TIME_LIMIT"])
  }, 30_000)

  it("keeps credentials out of everything it says", async () => {
    const secret = "hunter2-hunter2-hunter2"
    const leaking = scenario("leaking", [{ type: "stderr", text: `key is ${secret}\n` }, { type: "exit", code: 7 }])
    const { stderr, stdout } = await Turnpike.run(["run", "--harness", "scripted", "--scenario", leaking, "--env", `MY_API_KEY=${secret}`, "hi"], options)
    assert.notInclude(stdout + stderr, secret)
    assert.include(stdout, "[REDACTED]")
  }, 30_000)

  it("continues a session in a later process, and remembers what it was", async () => {
    const first = await Turnpike.run([...echo, "--session", "s-1", "one"], options)
    const second = await Turnpike.run([...echo, "--session", "s-1", "--resume", "fail", "two"], options)
    const results = [first, second].map(({ stdout }) => Events.resultOf(stdout))
    assert.deepStrictEqual(results.map(({ session }) => [session.id, session.resumed, session.turn]), [["s-1", undefined, 1], ["s-1", "native", 2]])
    assert.strictEqual(results[0]?.session.harness_session_id, results[1]?.session.harness_session_id)
    assert.deepStrictEqual(JSON.parse(results[1]?.result.summary ?? ""), ["one", "two"])
  }, 30_000)

  it("refuses a session that another process uses, naming it", async () => {
    const first = Turnpike.start(["run", "--harness", "scripted", "--scenario", "hang", "--session", "busy", "hi"], options)
    await first.until("\"text_delta\"")
    const second = await Turnpike.run([...echo, "--session", "busy", "hi"], options)
    assert.match(second.stderr, new RegExp(`^turnpike: session busy is used by turnpike run \\(process ${first.child.pid} on .+\\) since `))
    assert.deepStrictEqual(refused(second).exit, 1)
    first.child.kill("SIGTERM")
    assert.strictEqual((await first.ended).code, 143)
  }, 30_000)

  it("takes a session over whose process was killed", async () => {
    const first = Turnpike.start(["run", "--harness", "scripted", "--scenario", "hang", "--session", "killed", "hi"], options)
    await first.until("\"text_delta\"")
    first.child.kill("SIGKILL")
    await first.ended
    const second = await Turnpike.run([...echo, "--session", "killed", "again"], options)
    assert.strictEqual(second.code, 0, second.stderr)
    assert.strictEqual(Events.resultOf(second.stdout).session.turn, 2)
  }, 30_000)
})

describe.concurrent("turnpike run, for people", () => {
  it("puts the answer on standard output and the rest on standard error", async () => {
    const { code, stderr, stdout } = await Turnpike.run(["run", "--harness", "scripted", "--format", "text", "--session", "text", "Say hello"], { ...options, cwd: inHome("project") })
    assert.deepStrictEqual([code, stdout], [
      0,
      `Let me have a look first.\nYou asked: Say hello\n\nThis is a scripted agent, so nothing was changed. It ran in ${fs.realpathSync(inHome("project"))}, was given 1 prompt(s) by this process, and every word came through the same path as a real agent's.\n`
    ])
    assert.deepStrictEqual(stderr.replace(/\d+\.\d s/, "N s").replace(/^scripted \S+ /, "scripted VERSION ").split("\n"), [
      `scripted VERSION · scripted-1 · session text · ${fs.realpathSync(inHome("project"))}`,
      "→ read README.md",
      "✓ read",
      "✓ completed · N s · 1,204 tokens in, 86 out, $0.0042",
      ""
    ])
  }, 30_000)

  it("sums a run up in one line", async () => {
    for (const flags of [["--json", "false"], ["--format", "summary"]]) {
      const { code, stderr, stdout } = await Turnpike.run([...echo, ...flags, "--session", "sum", "hi"], options)
      assert.deepStrictEqual([code, stderr], [0, ""])
      assert.match(stdout, /^completed in \d+\.\d s \(10 tokens in, 5 out, session sum\): \["hi"(,"hi")?\]\n$/)
    }
    const events = await Turnpike.run([...echo, "--json", "true", "hi"], options)
    Events.parse(events.stdout)
  }, 30_000)

  it("tells a failure with its code and what to do", async () => {
    const { code, stderr, stdout } = await Turnpike.run(["run", "--harness", "scripted", "--scenario", "crash", "--format", "text", "hi"], options)
    assert.strictEqual(code, 3)
    assert.match(stderr, /\n✗ .*\n(.*\n)* {2}code: [A-Z_]+\n {2}what to do: .*\n✗ error [A-Z_]+ · /)
    assert.notInclude(stdout, "✗")
  }, 30_000)

  it.skipIf(!Turnpike.hasTerminal)("asks the person at the terminal, and takes the answer", async () => {
    for (const [key, outcome] of [["y\r", "It is done."], ["n\r", "I was not allowed to."]] as const) {
      const running = Turnpike.startOnTerminal(["run", "--harness", "scripted", "--scenario", "tool-denied", "--permission", "ask", "hi"], options)
      await running.until("[y/N] ")
      running.child.stdin.write(key)
      const { stdout } = await running.ended
      assert.include(stdout, outcome)
    }
  }, 30_000)
})

describe.skipIf(!Turnpike.hasTerminal)("turnpike run on a terminal", () => {
  it("tells people what happens, with the time while nothing is said", async () => {
    const slow = scenario("silent", [{ type: "delay", ms: 2500 }, { type: "text", text: "done\u001b[2J" }, end])
    const running = Turnpike.startOnTerminal(["run", "--harness", "scripted", "--scenario", slow, "hi"], options)
    const { code, stdout } = await running.ended
    assert.strictEqual(code, 0)
    assert.include(stdout, "\r\u001b[2K1 s · waiting for the agent\r\u001b[2K2 s · waiting for the agent\r\u001b[2K")
    // On a busy machine the end of the process takes a second, too, and is shown.
    const quiet = stdout.replaceAll(/(\r\u001b\[2K\d+ s · [^\r\n]*)*\r\u001b\[2K/g, "")
    assert.match(quiet, /done␛\[2J\n✓ completed · \d+\.\d s · usage unknown\n$/)
  }, 30_000)
})

describe.concurrent("turnpike run, stopped", () => {
  const hang = ["run", "--harness", "scripted", "--scenario", "hang", "hi"]

  it("asks the agent to end its turn at one interrupt", async () => {
    const running = Turnpike.start(hang, options)
    await running.until("\"text_delta\"")
    running.child.kill("SIGINT")
    const { code, stderr, stdout } = await running.ended
    assert.deepStrictEqual([code, Events.resultOf(stdout).verdict], [130, { type: "aborted", cause: "user", mode: "graceful" }])
    assert.strictEqual(stderr, "turnpike: asking the agent to end its turn; interrupt again to cut it off\n")
  }, 30_000)

  it("cuts the turn off at the second interrupt, and lists what it had to kill", async () => {
    const stuck = scenario("stuck", [
      { type: "spawn", argv: ["sleep", "300"], as: "session", ignores: ["INT", "TERM"] },
      { type: "text", text: "Let me think" },
      { type: "hang" }
    ], [{ type: "ignore_interrupts" }, { type: "ignore_signals", signals: ["SIGINT", "SIGTERM"] }])
    const running = Turnpike.start(["run", "--harness", "scripted", "--scenario", stuck, "hi"], options)
    await running.until("\"text_delta\"")
    running.child.kill("SIGINT")
    await running.until("asking the agent")
    running.child.kill("SIGINT")
    const { code, stdout } = await running.ended
    const result = Events.resultOf(stdout)
    assert.deepStrictEqual([code, result.verdict, result.killed.map(({ command }) => command), result.survivors], [
      130,
      { type: "aborted", cause: "user", mode: "hard" },
      ["sleep 300"],
      []
    ])
  }, 30_000)

  it.each(["SIGTERM", "SIGHUP"] as const)("cuts the turn off at %s, and still writes the result", async (signal) => {
    const running = Turnpike.start(hang, options)
    await running.until("\"text_delta\"")
    running.child.kill(signal)
    const { code, stdout } = await running.ended
    assert.deepStrictEqual([code, Events.resultOf(stdout).verdict], [143, { type: "aborted", cause: "parent", mode: "hard" }])
  }, 30_000)

  it("writes the result file of a run that was stopped", async () => {
    const file = inHome("stopped.json")
    const running = Turnpike.start([...hang, "--result-file", file], options)
    await running.until("\"text_delta\"")
    running.child.kill("SIGINT")
    const { code } = await running.ended
    assert.deepStrictEqual([code, JSON.parse(fs.readFileSync(file, "utf8")).reason as unknown], [130, "graceful_cancel"])
  }, 30_000)

  it("starts nothing when it is interrupted while it still reads its task", async () => {
    const running = Turnpike.start(["run", "--harness", "scripted", "-"], options)
    // More than a pipe holds: when it is taken, somebody reads, and listens to signals already.
    await new Promise<void>((resolve) => running.child.stdin.write("half a task".repeat(100_000), () => resolve()))
    running.child.kill("SIGINT")
    const { code, stderr, stdout } = await running.ended
    assert.deepStrictEqual([code, stdout, stderr], [130, "", "turnpike: stopped before the run began; nothing was started\n"])
  }, 30_000)

  it.runIf(Turnpike.canSeeWrites)("leaves by force at the third interrupt when nobody takes its output, and leaves nothing running", async () => {
    const marker = `turnpike-test-${process.pid}-flood`
    const flood = scenario("flood", [
      { type: "spawn", argv: ["sh", "-c", `exec -a ${marker} sleep 300 || exec sleep 300`], as: "session", ignores: ["INT", "TERM"] },
      { type: "repeat", times: 200_000, do: [{ type: "text", text: "0123456789".repeat(20), pieces: 1 }] },
      { type: "hang" }
    ])
    // A home of its own, by which all that belongs to it is found.
    const own = inHome("flooded")
    fs.mkdirSync(own)
    const running = Turnpike.start(["run", "--harness", "scripted", "--scenario", flood, "hi"], { home: own })
    await running.until("\"text_delta\"")
    await Turnpike.holdBack(running)
    running.child.kill("SIGINT")
    await running.until("asking the agent")
    running.child.kill("SIGINT")
    await running.until("cutting the turn off")
    running.child.kill("SIGINT")
    await running.until("left by force")
    running.child.stdout.resume()
    const { code, stderr } = await running.ended
    assert.strictEqual(code, 130)
    assert.include(stderr, "turnpike: left by force; its result was not delivered\n")
    const deadline = Date.now() + 10_000
    const survivors = () =>
      fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((pid) => {
        try {
          return fs.readFileSync(`/proc/${pid}/environ`, "utf8").includes(`HOME=${own}\0`)
        } catch {
          return false
        }
      })
    while (process.platform === "linux" && survivors().length > 0) {
      assert.isBelow(Date.now(), deadline, `still running: ${survivors().join(" ")}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }, 60_000)

  it("ends the turn when nobody reads any more, without a stack trace", async () => {
    const running = Turnpike.start(["run", "--harness", "scripted", "--scenario", "slow", "hi"], options)
    await running.until("\"text_delta\"")
    running.child.stdout.destroy()
    const { code, stderr } = await running.ended
    assert.deepStrictEqual([code, stderr], [
      3,
      "turnpike: the reader of standard output went away before everything was told; the run ended as stopped (channel_lost, hard)\n" +
      "  code: OUTPUT_CLOSED\n  what to do: The reader of standard output went away. Keep it open until the result event.\n"
    ])
  }, 30_000)

  it.skipIf(!fs.existsSync("/dev/full"))("says that standard output cannot be written, and runs on where only standard error cannot", async () => {
    const full = (redirect: string, ...args: ReadonlyArray<string>) => Turnpike.run([...echo, ...args, "hi"], { ...options, redirect })
    const disk = await full(">/dev/full")
    assert.deepStrictEqual([disk.code, disk.stdout], [3, ""])
    assert.match(disk.stderr, /^turnpike: standard output cannot be written: ENOSPC: .*; the run ended as stopped \(channel_lost, hard\)\n {2}code: OUTPUT_CLOSED\n/)
    const summary = await full(">/dev/full", "--format", "summary")
    assert.strictEqual(summary.code, 1)
    const quiet = await full("2>/dev/full", "--format", "text")
    assert.deepStrictEqual(quiet, { code: 0, signal: null, stdout: "[\"hi\"]\n", stderr: "" })
  }, 30_000)

  it("closes what it opened when something breaks that nobody expected", async () => {
    const bomb = inHome("bomb.mjs")
    fs.writeFileSync(bomb, "if (process.argv[1]?.endsWith('bin.js')) process.on('SIGUSR2', () => { setTimeout(() => { throw new Error('boom') }) })\n")
    const running = Turnpike.start(hang, { ...options, env: { NODE_OPTIONS: `--import ${bomb}` } })
    await running.until("\"text_delta\"")
    running.child.kill("SIGUSR2")
    const { code, stderr, stdout } = await running.ended
    assert.deepStrictEqual([code, Events.resultOf(stdout).verdict], [1, { type: "aborted", cause: "disposed", mode: "hard" }])
    assert.match(stderr, /^turnpike: a bug ended the program: Error: boom\n[^]*\n {2}code: INTERNAL\n {2}what to do: /)
  }, 30_000)

  it.runIf(Turnpike.canSeeWrites)("holds the agent back when the reader is slow, and loses nothing", async () => {
    const many = scenario("many", [{ type: "repeat", times: 3000, do: [{ type: "text", text: "{{i}} 0123456789".padEnd(300, "x"), pieces: 1 }] }, end])
    const running = Turnpike.start(["run", "--harness", "scripted", "--scenario", many, "hi"], options)
    await running.until("\"text_delta\"")
    await Turnpike.holdBack(running)
    assert.notInclude(running.stdout(), "2999 0123456789")
    running.child.stdout.resume()
    const { code, stdout } = await running.ended
    assert.strictEqual(code, 0)
    const texts = Events.parse(stdout).filter((event) => event.type === "text_delta").map((event) => Number(event.text.split(" ")[0]))
    assert.strictEqual(texts.length, 3000)
    assert.deepStrictEqual(texts, texts.toSorted((a, b) => a - b))
  }, 60_000)
})

describe.concurrent("turnpike run, refused", () => {
  it.each([
    [["--harness", "nope", "hi"], 2, "HARNESS_UNKNOWN", "there is no harness \"nope\""],
    [["--recipe", ".", "hi"], 2, "NOT_AVAILABLE", "recipe is not available in this version of Turnpike"],
    [["--harness", "scripted", "--session", "x", "--resume", "replay", "hi"], 1, "SESSION_UNKNOWN", "there is no session x to continue"],
    [["--harness", "scripted", "--session", "unknown", "--resume", "fail", "hi"], 1, "SESSION_UNKNOWN", "there is no session unknown to continue"],
    [["--harness", "scripted", "--permission", "ask", "hi"], 1, "UNSUPPORTED", "permission: ask needs a person at a terminal, and --format text"],
    [["--harness", "scripted", "--program", "/nonexistent/agent", "hi"], 1, "HARNESS_NOT_FOUND", /\/nonexistent\/agent/],
    [["--harness", "scripted", "--program", "/bin/true", "hi"], 1, "HARNESS_NOT_A_HARNESS", /\/bin\/true/],
    [["--harness", "claude", "--scenario", "echo", "hi"], 1, "UNSUPPORTED", "--scenario is for the scripted harness; claude plays none"],
    [["--harness", "scripted", "--scenario", "nope", "hi"], 2, "INVALID_SPEC", /there is no scenario nope/],
    [["--harness", "scripted", "--cwd", "/nonexistent", "hi"], 1, "FILE_UNREADABLE", "the working directory \"/nonexistent\" cannot be used: there is no such file"],
    [["--harness", "scripted", "--data-dir", "/dev/null", "hi"], 1, "DATA_DIR_UNUSABLE", "the data directory /dev/null (--data-dir) cannot be used: it is not a directory"],
    [["--harness", "scripted", "--result-file", "/nonexistent/r.json", "hi"], 1, "RESULT_UNWRITABLE", "the result cannot be written to /nonexistent/r.json: its directory does not exist"],
    [["--harness", "scripted", "--format", "text", "--json", "true", "hi"], 2, "USAGE", "--format and --json each give the format"],
    [["--harness", "scripted", "--task-file", "/nonexistent"], 1, "FILE_UNREADABLE", "--task-file: /nonexistent cannot be read: there is no such file"],
    [["--harness", "scripted", "-"], 2, "EMPTY_TASK", "the task is empty (the argument -)"],
    [["--harnes", "scripted", "hi"], 2, "USAGE", "run has no flag \"--harnes\""]
  ] as const)("%j", async (args, exit, code, message) => {
    const own = fs.mkdtempSync(inHome("refused-"))
    const { exit: found, ...failure } = refused(await Turnpike.run(["run", ...args], { ...options, env: { TURNPIKE_HOME: path.join(own, "data") } }))
    assert.deepStrictEqual([found, failure.code], [exit, code], failure.message)
    if (typeof message === "string") assert.strictEqual(failure.message, message)
    else assert.match(failure.message, message)
    const sessions = path.join(own, "data", "sessions")
    assert.deepStrictEqual(fs.existsSync(sessions) ? fs.readdirSync(sessions) : [], [])
  }, 30_000)

  it.each([
    ["recipe", { recipe: "." }, undefined],
    ["input_artifacts", { input_artifacts: ["a"] }, "scripted"],
    ["observability", { observability: [{ name: "x", config: {} }] }, "scripted"],
    ["limits.token_budget", { limits: { token_budget: 5 } }, "scripted"]
  ])("a specification with %s, whose part is not built yet", async (field, part, harness) => {
    const file = inHome(`part-${field}.json`)
    fs.writeFileSync(file, JSON.stringify({ task: "hi", ...(harness === undefined ? {} : { harness }), ...part }))
    assert.deepStrictEqual(refused(await Turnpike.run(["run", "--spec", file], options)), {
      exit: 2,
      code: "NOT_AVAILABLE",
      message: `${field} is not available in this version of Turnpike`
    })
  }, 30_000)

  it("a directory that does not exist any more", async () => {
    const gone = inHome("gone")
    fs.mkdirSync(gone)
    const ended = await Turnpike.run([...echo, "hi"], { ...options, cwd: gone, before: `rmdir '${gone}'` })
    assert.deepStrictEqual(refused(ended), { exit: 1, code: "FILE_UNREADABLE", message: "the current directory does not exist any more" })
  }, 30_000)

  it("a text that is too long, wherever it comes from", async () => {
    const long = Buffer.alloc(32 * 1024 * 1024 + 1, "a")
    const file = inHome("long")
    fs.writeFileSync(file, long)
    const message = "cannot be read: it is longer than 33554432 bytes"
    const piped = refused(await Turnpike.run(["run", "--harness", "scripted", "-"], { ...options, input: long }))
    assert.deepStrictEqual(piped, { exit: 1, code: "FILE_UNREADABLE", message: `the argument -: standard input ${message}` })
    const named = refused(await Turnpike.run(["run", "--harness", "scripted", "--task-file", file], options))
    assert.deepStrictEqual(named, { exit: 1, code: "FILE_UNREADABLE", message: `--task-file: ${file} ${message}` })
    fs.rmSync(file)
  }, 30_000)

  it("a result in the place of what it came of", async () => {
    const file = inHome("both")
    fs.writeFileSync(file, "a task")
    fs.linkSync(file, inHome("both-too"))
    for (const [flag, name] of [["task-file", file], ["spec", file], ["system-file", inHome("both-too")]] as const) {
      const failure = refused(await Turnpike.run(["run", "--harness", "scripted", `--${flag}`, file, "--result-file", name], options))
      assert.strictEqual(failure.exit, 2, failure.message)
    }
    assert.strictEqual(fs.readFileSync(file, "utf8"), "a task")
  }, 30_000)

  it("an interrupt while nobody reads the result's pipe: nothing was started", async () => {
    const file = inHome("pipe")
    assert.strictEqual(spawnSync("mkfifo", [file]).status, 0)
    const running = Turnpike.start([...echo, "--result-file", file, "hi"], options)
    await running.until(`waiting for a reader of ${file}`)
    running.child.kill("SIGINT")
    const { code, stderr, stdout } = await running.ended
    assert.deepStrictEqual([code, stdout, stderr.split("\n")[1]], [130, "", "turnpike: stopped before the run began; nothing was started"])
  }, 30_000)

  it("a session of another directory", async () => {
    await Turnpike.run([...echo, "--session", "here", "hi"], options)
    const failure = refused(await Turnpike.run([...echo, "--session", "here", "--cwd", inHome("project"), "hi"], options))
    assert.deepStrictEqual([failure.exit, failure.code], [1, "SESSION_MISMATCH"])
  }, 30_000)

  it("a store of sessions that is something else, or damaged, which is left as it is", async () => {
    const data = inHome("spoiled")
    const file = path.join(data, "sessions.sqlite")
    for (const content of ["{", "x".repeat(10_000)]) {
      fs.mkdirSync(data, { recursive: true })
      fs.writeFileSync(file, content)
      const failure = refused(await Turnpike.run([...echo, "--data-dir", data, "--session", "spoiled", "hi"], options))
      assert.deepStrictEqual([failure.exit, failure.code, fs.readFileSync(file, "utf8")], [1, "STORE_FAILED", content])
      assert.include(failure.message, file)
    }
  }, 30_000)

  it.skipIf(isRoot)("a data directory that may not be written", async () => {
    const directory = inHome("read-only")
    fs.mkdirSync(directory, { mode: 0o500 })
    const failure = refused(await Turnpike.run([...echo, "--data-dir", directory, "hi"], options))
    assert.deepStrictEqual([failure.exit, failure.code], [1, "DATA_DIR_UNUSABLE"])
  }, 30_000)
})
