import { afterAll, assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { commands } from "../src/CommandTable.ts"
import * as Turnpike from "./support/Turnpike.ts"

const home = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-cli-bin-"))
const options = { home }
afterAll(() => fs.rmSync(home, { recursive: true, force: true }))

const manifest = JSON.parse(fs.readFileSync(fileURLToPath(new URL("../package.json", import.meta.url)), "utf8")) as { readonly version: string }

describe.concurrent("turnpike", () => {
  it("says its version", async () => {
    for (const args of [["--version"], ["-V"], ["run", "--version"]]) {
      assert.deepStrictEqual(await Turnpike.run(args, options), { code: 0, signal: null, stdout: `${manifest.version}\n`, stderr: "" })
    }
  }, 30_000)

  it.skipIf(!fs.existsSync("/dev/full"))("says when nobody takes what it prints", async () => {
    for (const args of [["--version"], ["--help"], ["schema"]]) {
      const { code, stderr } = await Turnpike.run(args, { ...options, redirect: ">/dev/full" })
      assert.strictEqual(code, 1)
      assert.match(stderr, /standard output cannot be written: ENOSPC/)
    }
  }, 30_000)

  it.skipIf(process.platform === "win32")("says nothing when a reader has read enough", async () => {
    for (const command of ["schema agent-run-event", "run --help"]) {
      const ended = await Turnpike.run(command.split(" "), { ...options, redirect: "| true" })
      assert.deepStrictEqual([ended.stdout, ended.stderr], ["", ""])
    }
  }, 30_000)

  it("prints help on standard output", async () => {
    for (const args of [["--help"], ["help"], ...commands.map(({ name }) => [name, "--help"]), ["sessions", "log", "--help"]]) {
      const { code, stderr, stdout } = await Turnpike.run(args, options)
      assert.deepStrictEqual([code, stderr], [0, ""])
      assert.match(stdout, /^turnpike .*\n\nUsage:/)
    }
  }, 30_000)

  it("refuses a wrong command line on standard error, with exit 2 and nothing on standard output", async () => {
    assert.deepStrictEqual(await Turnpike.run([], options), {
      code: 2,
      signal: null,
      stdout: "",
      stderr: "turnpike: no command was given\n  code: USAGE\n  what to do: Give one of run, chat, sessions, doctor, schema, validate. `turnpike --help` lists what it takes.\n"
    })
    assert.deepStrictEqual(await Turnpike.run(["rnu", "--harness", "x"], options), {
      code: 2,
      signal: null,
      stdout: "",
      stderr: "turnpike: there is no command \"rnu\"\n  code: USAGE\n  what to do: Did you mean `turnpike run`? `turnpike --help` lists what it takes.\n"
    })
  }, 30_000)

  it("prints contracts", async () => {
    const names = await Turnpike.run(["schema"], options)
    assert.deepStrictEqual(names.stdout.trimEnd().split("\n"), [
      "agent-run-spec", "agent-run-event", "agent-run-result", "session-event", "session-header", "inbox-entry", "turn-event", "capabilities", "failure", "verdict", "meta"
    ])
    const event = JSON.parse((await Turnpike.run(["schema", "agent-run-event"], options)).stdout) as Record<string, unknown>
    assert.strictEqual(event["$id"], "https://turnpike.dev/schemas/v1/agent-run-event.schema.json")
    const meta = JSON.parse((await Turnpike.run(["schema", "meta"], options)).stdout) as Record<string, unknown>
    assert.strictEqual(meta["version"], "v1")
    assert.deepStrictEqual(await Turnpike.run(["schema", "agent-run-evnt"], options), {
      code: 2,
      signal: null,
      stdout: "",
      stderr: `turnpike: there is no contract "agent-run-evnt"\n  code: USAGE\n  what to do: Did you mean agent-run-event? Choose one of ${names.stdout.trimEnd().split("\n").join(", ")}.\n`
    })
  }, 30_000)
})

describe.concurrent("turnpike validate", () => {
  const file = (name: string, content: string) => {
    const target = path.join(home, name)
    fs.writeFileSync(target, content)
    return target
  }
  const event = (seq: number, rest: Record<string, unknown>) =>
    `${JSON.stringify({ run_id: "r", seq, ts: "2026-01-31T09:00:00.000Z", ...rest })}\n`
  const notice = { type: "notice", kind: "harness_note", message: "m" }
  const end = { type: "session_end", outcome: { success: true, summary: "" }, reason: "success" }

  it("says that a value is valid, or where it is not", async () => {
    const good = file("good.json", "{\n \"harness\": \"x\", \"task\": \"t\"\n}\n")
    assert.deepStrictEqual(await Turnpike.run(["validate", "agent-run-spec", good], options), { code: 0, signal: null, stdout: `${good}: valid agent-run-spec\n`, stderr: "" })
    const bad = file("bad.json", "{\"harness\":\"x\",\"task\":1,\"extra\":2}")
    const { code, stderr, stdout } = await Turnpike.run(["validate", "agent-run-spec", bad], options)
    assert.deepStrictEqual([code, stdout, stderr.split("\n").map((line) => line.split(": ").slice(0, 2).join(": ")).toSorted()], [
      3,
      "",
      ["", `${bad}:1: extra`, `${bad}:1: task`]
    ])
    const twice = file("twice.json", "{\n\"harness\":\"x\",\"task\":\"t\",\n\"env\":{\"A\":\"1\",\"A\":\"2\"}}")
    assert.deepStrictEqual(await Turnpike.run(["validate", "agent-run-spec", twice], options), {
      code: 3,
      signal: null,
      stdout: "",
      stderr: `${twice}:3: the field "A" stands there a second time\n`
    })
    const torn = file("torn.json", "{\n\"task\":")
    assert.match((await Turnpike.run(["validate", "agent-run-spec", torn], options)).stderr, new RegExp(`^${torn}:2: `))
  }, 30_000)

  it("numbers the lines of JSONL", async () => {
    const lines = event(0, notice) + "garbage\n" + event(1, { type: "text_delta" }) + "\n" + event(2, notice).replace("{", "{\"seq\":1,")
    const { code, stderr, stdout } = await Turnpike.run(["validate", "agent-run-event", file("lines.jsonl", lines)], options)
    assert.deepStrictEqual([code, stdout, stderr.trimEnd().split("\n").map((line) => /:(\d+):/.exec(line)?.[1])], [3, "", ["2", "3", "4", "5"]])
    assert.strictEqual((await Turnpike.run(["validate", "agent-run-event"], { ...options, input: event(7, notice) + event(7, notice) })).stdout, "stdin: valid agent-run-event, 2 lines\n")
  }, 30_000)

  it("checks the rules of a stream", async () => {
    const check = (input: string, ...args: ReadonlyArray<string>) => Turnpike.run(["validate", "agent-run-event", "--stream", ...args, "-"], { ...options, input })
    assert.deepStrictEqual((await check(event(0, notice) + event(1, end))).code, 0)
    const gap = await check(event(0, notice) + event(2, end))
    assert.deepStrictEqual([gap.code, gap.stderr], [3, "stdin:2: seq-contiguous: seq is 2; 1 was due\n"])
    const cut = await check(event(0, notice))
    assert.deepStrictEqual([cut.code, cut.stderr], [3, "stdin: one-session-end: there is no session_end\n"])
    const missing = await check(event(0, notice) + event(1, end), "--result", "stream")
    assert.deepStrictEqual([missing.code, missing.stderr], [3, "stdin: result-mode: there is no result event\n"])
  }, 30_000)

  it("finds an empty input not valid", async () => {
    assert.deepStrictEqual(await Turnpike.run(["validate", "agent-run-event"], options), { code: 3, signal: null, stdout: "", stderr: "stdin: there is nothing to check\n" })
  }, 30_000)

  it("tells what it was asked wrongly from what it cannot read", async () => {
    const ended = async (...args: ReadonlyArray<string>) => {
      const { code, stderr, stdout } = await Turnpike.run(["validate", ...args], options)
      return [code, stdout, stderr.split("\n")[0]]
    }
    assert.deepStrictEqual(await ended("agent-run-spek"), [2, "", "turnpike: there is no contract \"agent-run-spek\""])
    assert.deepStrictEqual(await ended("agent-run-spec", "--stream"), [2, "", "turnpike: --stream is for agent-run-event, not for agent-run-spec"])
    assert.deepStrictEqual(await ended("agent-run-event", "--result", "file"), [2, "", "turnpike: --result says how a stream is checked, and there is no --stream"])
    assert.deepStrictEqual(await ended("agent-run-spec", "/nonexistent.json"), [1, "", "turnpike: /nonexistent.json cannot be read: there is no such file"])
    assert.deepStrictEqual(await ended("agent-run-event", "/nonexistent.jsonl"), [1, "", "turnpike: /nonexistent.jsonl cannot be read: there is no such file"])
    assert.deepStrictEqual(await ended("agent-run-event", home), [1, "", `turnpike: ${home} cannot be read: it is a directory`])
  }, 30_000)
})

describe.concurrent("turnpike doctor", () => {
  interface Report {
    readonly usable: boolean
    readonly machine: ReadonlyArray<{ readonly level: string; readonly message: string; readonly remedy?: string }>
    readonly harnesses: ReadonlyArray<{ readonly harness: string; readonly usable: boolean; readonly findings: ReadonlyArray<unknown> }>
  }
  const report = async (...args: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await Turnpike.run(["doctor", "--json", ...args], options)
    return { code, stderr, report: JSON.parse(stdout) as Report }
  }

  it("finds the scripted harness usable, and makes nothing", async () => {
    const { code, report: { harnesses, machine, usable }, stderr } = await report("scripted", "--data-dir", path.join(home, "not-yet"))
    assert.deepStrictEqual([code, stderr, usable, harnesses.map(({ harness, usable }) => [harness, usable])], [0, "", true, [["scripted", true]]])
    assert.isTrue(machine.some(({ message }) => message.startsWith(`Node ${process.versions.node} `)))
    assert.isTrue(machine.some(({ message }) => message === `data directory ${path.join(home, "not-yet")} (--data-dir); the first run makes it`))
    assert.isTrue(machine.some(({ message }) => message.startsWith("containment ") && message.includes("(used)")))
    assert.isFalse(fs.existsSync(path.join(home, "not-yet")))
  }, 30_000)

  it("looks at every harness where none is named", async () => {
    const { report: { harnesses } } = await report()
    assert.include(harnesses.map(({ harness }) => harness), "scripted")
  }, 30_000)

  it("says in text what to do about a problem, with exit 1", async () => {
    const file = path.join(home, "a-file")
    fs.writeFileSync(file, "")
    const { code, stderr, stdout } = await Turnpike.run(["doctor", "scripted", "--program", "/nonexistent", "--data-dir", file], options)
    assert.deepStrictEqual([code, stderr], [1, ""])
    assert.include(stdout, `  ✗ data directory ${file} (--data-dir): a part of its path is not a directory\n      → Choose a writable directory`)
    assert.match(stdout, /\nscripted cannot be used\n {2}✗ .*\/nonexistent/)
    assert.match(stdout, /\nA run cannot be tried yet; each problem \(✗\) says what to do\.\n$/)
  }, 30_000)

  it("refuses a harness that it does not know, and a program without a harness", async () => {
    const unknown = await Turnpike.run(["doctor", "scriptd"], options)
    assert.deepStrictEqual([unknown.code, unknown.stdout], [2, ""])
    assert.match(unknown.stderr, /there is no harness "scriptd"\n {2}code: HARNESS_UNKNOWN\n {2}what to do: Did you mean scripted\?/)
    const program = await Turnpike.run(["doctor", "--program", "/bin/sh"], options)
    assert.deepStrictEqual([program.code, program.stdout], [2, ""])
  }, 30_000)
})
