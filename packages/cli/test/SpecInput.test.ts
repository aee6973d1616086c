import { assert, describe, it } from "@effect/vitest"
import type { AgentRunSpec } from "@turnpike/contract"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { parse } from "../src/CommandLine.ts"
import { commands } from "../src/CommandTable.ts"
import * as SpecInput from "../src/SpecInput.ts"
import * as Scratch from "./support/Scratch.ts"

/** The specification of a command line after `run`. */
const spec = (...args: ReadonlyArray<string>) =>
  Effect.suspend(() => {
    const parsed = parse(["run", ...args], commands)
    if (parsed._tag !== "Run") throw new Error(JSON.stringify(parsed))
    return SpecInput.make(parsed.given, parsed.positionals[0], (unnamed) => Effect.succeed(`chosen for ${JSON.stringify(unnamed)}`))
  })

const refused = (...args: ReadonlyArray<string>) => Effect.map(Effect.flip(spec(...args)), ({ failure }) => ({ code: failure.code, message: failure.message, remedy: failure.remedy }))

/** The specification of a file with this content. */
const file = (content: unknown) => Scratch.file("spec.json", typeof content === "string" ? content : JSON.stringify(content))

const base = { harness: "scripted", task: "do it" }

describe("a specification", () => {
  it.effect("is made of flags", () =>
    Effect.gen(function*() {
      const expected: AgentRunSpec.AgentRunSpec = {
        harness: "scripted",
        task: "do it",
        session: { id: "s-1", resume: "fresh" },
        model: "m",
        permission: "allow-listed",
        background: "kill",
        workspace: { kind: "local", cwd: "/tmp" },
        limits: { timeout_s: 1.5 },
        tools: { allow: ["read", "Bash(ls)"] },
        env: { A: "1", B: "" },
        system: "Be brief.\n"
      }
      const system = yield* Scratch.file("system.md", "Be brief.\n")
      assert.deepStrictEqual(
        yield* spec(
          "--harness", "scripted", "--session", "s-1", "--resume", "fresh", "--model", "m", "--permission", "allow-listed",
          "--background", "kill", "--cwd", "/tmp", "--timeout", "1.5", "--allow-tool", "read", "--allow-tool", "Bash(ls)",
          "--env", "A=1", "--env", "B=", "--system-file", system, "do it"
        ),
        expected
      )
      assert.deepStrictEqual(yield* spec("--harness", "x", "--dangerous-all-tools", "--task", "t"), {
        harness: "x",
        task: "t",
        tools: { dangerous_all: true }
      })
    }))

  it.effect("is made of a file, and of a file and flags that add to it", () =>
    Effect.gen(function*() {
      const whole: AgentRunSpec.AgentRunSpec = { ...base, limits: { timeout_s: 5 }, env: { A: "1" }, workspace: { kind: "local" } }
      assert.deepStrictEqual(yield* spec("--spec", yield* file(whole)), whole)
      assert.deepStrictEqual(
        yield* spec("--spec", yield* file({ harness: "scripted", env: { A: "1" }, workspace: { kind: "local" }, limits: null }), "--env", "B=2", "--cwd", "/tmp", "--timeout", "3", "task"),
        { harness: "scripted", task: "task", env: { A: "1", B: "2" }, workspace: { kind: "local", cwd: "/tmp" }, limits: { timeout_s: 3 } }
      )
    }))

  it.effect("takes a task to the byte", () =>
    Effect.gen(function*() {
      for (const task of ["--help", "$(x) `y` \"z\" 'w'\n\nline\n", "\ufeffbom", "\u{1f600}", "x".repeat(200_000), "a\u0000b"]) {
        assert.strictEqual((yield* spec("--harness", "x", "--task-file", yield* Scratch.file("task", task))).task, task)
        assert.strictEqual((yield* spec("--harness", "x", "--", task)).task, task)
      }
    }))

  it.effect("has its harness chosen where neither it nor a recipe is named, by what else is known", () =>
    Effect.gen(function*() {
      const { harness, task } = yield* spec("--session", "s-1", "--env", "A=1", "do it")
      assert.deepStrictEqual([harness, task], ["chosen for {\"env\":{\"A\":\"1\"},\"sessionId\":\"s-1\",\"isContinued\":false}", "do it"])
      assert.strictEqual((yield* spec("--harness", "x", "do it")).harness, "x")
    }))

  it.effect.each([
    [["--harness", "x"], "USAGE", "there is no task"],
    [["--task", "  "], "EMPTY_TASK", "the task is empty (--task)"],
    [["--session", "bad id", "do it"], "USAGE", /^--session: Expected 1 to 128 characters/],
    [["--harness", "x", ""], "EMPTY_TASK", "the task is empty (the argument)"],
    [["--harness", "x", "--task", " \n\t"], "EMPTY_TASK", "the task is empty (--task)"],
    [["--harness", "x", "--task", "a", "b"], "USAGE", "the argument and --task each give the task"],
    [["--harness", "x", "--task", "a", "--task-file", "b", "c"], "USAGE", "the argument and --task and --task-file each give the task"],
    [["--harness", "x", "--recipe", "y", "t"], "USAGE", "--harness and --recipe exclude each other"],
    [["--harness", "x", "--allow-tool", "read", "--dangerous-all-tools", "t"], "USAGE", "--allow-tool and --dangerous-all-tools each give the tools"],
    [["--harness", "x", "--env", "A=1", "--env", "A=2", "t"], "USAGE", "--env sets A twice"],
    [["--harness", "x", "--resume", "fail", "t"], "USAGE", "--resume needs a session to continue"],
    [["--harness", "x", "--task-file", "-", "--system-file", "-"], "USAGE", "--task-file and --system-file each give standard input a use"],
    [["--harness", "x", "--spec", "-", "-"], "USAGE", "--spec and the argument each give standard input a use"],
    [["--harness", "x", "--session", "bad id", "t"], "USAGE", /^--session: Expected 1 to 128 characters/],
    [["--harness", "x", "--task-file", "/nonexistent/task"], "FILE_UNREADABLE", "--task-file: /nonexistent/task cannot be read: there is no such file"],
    [["--harness", "x", "--task-file", "/tmp"], "FILE_UNREADABLE", "--task-file: /tmp cannot be read: it is a directory"],
    [["--harness", "x", "--system-file", "/nonexistent/s", "t"], "FILE_UNREADABLE", "--system-file: /nonexistent/s cannot be read: there is no such file"],
    [["--spec", "/nonexistent/spec.json"], "FILE_UNREADABLE", "--spec: /nonexistent/spec.json cannot be read: there is no such file"]
  ] as const)("refuses %j", ([args, code, message]) =>
    Effect.gen(function*() {
      const failure = yield* refused(...args)
      assert.strictEqual(failure.code, code)
      if (typeof message === "string") assert.strictEqual(failure.message, message)
      else assert.match(failure.message, message)
      assert.notStrictEqual(failure.remedy, "")
    }))

  it.effect("refuses a file that is not text, naming it", () =>
    Effect.gen(function*() {
      const task = yield* Scratch.file("task", Buffer.from([0xff, 0xfe, 0x00]))
      assert.deepStrictEqual((yield* refused("--harness", "x", "--task-file", task)).message, `--task-file: ${task} cannot be read: it is not UTF-8 text`)
    }))

  it.effect.each([
    ["harness", "--harness", "scripted"],
    ["task", "--task", "do it"],
    ["session.id", "--session", "s"],
    ["session.resume", "--resume", "fail"],
    ["model", "--model", "m"],
    ["permission", "--permission", "deny"],
    ["background", "--background", "wait"],
    ["workspace.cwd", "--cwd", "/"],
    ["limits.timeout_s", "--timeout", "5"],
    ["tools", "--allow-tool", "read"]
  ] as const)("refuses %s of a file together with %s, even where they agree", ([field, flag, value]) =>
    Effect.gen(function*() {
      const full = {
        ...base,
        session: { id: "s", resume: "fail" },
        model: "m",
        permission: "deny",
        background: "wait",
        workspace: { kind: "local", cwd: "/" },
        limits: { timeout_s: 5 },
        tools: { allow: ["read"] }
      }
      const name = yield* file(full)
      assert.deepStrictEqual(yield* refused("--spec", name, flag, value), {
        code: "USAGE",
        message: `${flag} and ${field} in ${name} set the same field`,
        remedy: `Leave out ${flag}, or ${field} in ${name}.`
      })
    }))

  it.effect("refuses one variable that both set, and the task of both", () =>
    Effect.gen(function*() {
      const name = yield* file({ ...base, env: { A: "1" }, system: "s" })
      assert.strictEqual((yield* refused("--spec", name, "--env", "A=2")).message, `--env A and env.A in ${name} set the same field`)
      assert.strictEqual((yield* refused("--spec", name, "task")).message, `the argument and task in ${name} set the same field`)
      const system = yield* Scratch.file("system.md", "x")
      assert.strictEqual((yield* refused("--spec", name, "--system-file", system)).message, `--system-file and system in ${name} set the same field`)
      assert.strictEqual((yield* refused("--spec", yield* file({ task: "t", recipe: "r" }), "--harness", "x")).code, "USAGE")
    }))

  it.effect.each([
    ["", /is not JSON: line 1: /],
    ["{\n\"harness\": \"scripted\",\n\"task\": }", /is not JSON: line 3: /],
    ["{\"harness\": \"scripted\", \"task\": \"a\",\n\"task\": \"b\"}", /: line 2: the field "task" stands there a second time/],
    ["[]", /is no run specification: Expected an object/],
    ["null", /is no run specification: Expected an object/],
    [{ ...base, extra: 1 }, /: extra: /],
    [{ ...base, harness: 5 }, /: harness: Expected a string/],
    [{ ...base, task: 5 }, /: task: Expected a string/],
    [{ ...base, task: null }, /: task: Expected a string/],
    [{ ...base, input_artifacts: "x" }, /: input_artifacts: /],
    [{ ...base, credentials: { claude: { oauth_token: "" } } }, /: credentials\.claude/],
    [{ ...base, credentials: { gemini: {} } }, /: credentials\.gemini: /],
    [{ ...base, observability: {} }, /: observability: /],
    [{ ...base, limits: { timeout_s: 0 } }, /: limits\.timeout_s: /],
    [{ ...base, limits: { timeout_s: "5" } }, /: limits\.timeout_s: /],
    [{ ...base, limits: { token_budget: -1 } }, /: limits\.token_budget: /],
    [{ ...base, limits: { timeout: 5 } }, /: limits\.timeout: /],
    [{ ...base, session: { id: "../x" } }, /: session\.id: /],
    [{ ...base, session: { id: "x", resume: "yes" } }, /: session\.resume: /],
    [{ ...base, model: "" }, /: model: /],
    [{ ...base, system: "" }, /: system: /],
    [{ ...base, tools: { allow: [5] } }, /: tools/],
    [{ ...base, tools: { dangerous_all: false } }, /: tools/],
    [{ ...base, workspace: { kind: "docker" } }, /: workspace\.kind: /],
    [{ ...base, workspace: { kind: "local", cwd: "" } }, /: workspace\.cwd: /],
    [{ ...base, permission: "maybe" }, /: permission: /],
    [{ ...base, background: "leave" }, /: background: /],
    [{ ...base, env: { "A B": "1" } }, /: env/],
    [{ ...base, env: { A: 1 } }, /: env\.A: /]
  ] as const)("refuses the file %j", ([content, message]) =>
    Effect.gen(function*() {
      const name = yield* file(content)
      const failure = yield* refused("--spec", name)
      assert.strictEqual(failure.code, "INVALID_SPEC")
      assert.isTrue(failure.message.startsWith(name), failure.message)
      assert.match(failure.message, message)
    }))

  it.effect("does not repeat what may be a secret", () =>
    Effect.gen(function*() {
      const name = yield* file({ ...base, credentials: { claude: { oauth_token: ["sk-very-secret"] } }, env: { A: { b: "hunter2hunter2" } } })
      assert.notMatch((yield* refused("--spec", name)).message, /secret|hunter2/)
    }))
})

describe("the working directory", () => {
  const directory = (cwd: string) => SpecInput.directory({ ...base, workspace: { kind: "local", cwd } })

  it.effect("is absolute and free of links", () =>
    Effect.gen(function*() {
      const target = fs.realpathSync(yield* Scratch.directory)
      const link = path.join(yield* Scratch.directory, "link")
      fs.symlinkSync(target, link)
      assert.deepStrictEqual([yield* directory(link), yield* SpecInput.directory(base)], [target, fs.realpathSync(process.cwd())])
    }))

  it.effect("is refused where it is none", () =>
    Effect.gen(function*() {
      const name = yield* Scratch.file("file", "")
      const message = (cwd: string) => Effect.map(Effect.flip(directory(cwd)), ({ failure }) => [failure.code, failure.message])
      assert.deepStrictEqual([yield* message(name), yield* message("/nonexistent")], [
        ["FILE_UNREADABLE", `the working directory "${name}" is not a directory`],
        ["FILE_UNREADABLE", "the working directory \"/nonexistent\" cannot be used: there is no such file"]
      ])
    }))
})
