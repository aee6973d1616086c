import { assert, describe, it } from "@effect/vitest"
import { AgentSession, Harness, Prompt, ToolAllowlist } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { createInterface } from "node:readline"
import * as ToyHarness from "../../examples/adapter/ToyHarness.ts"
import { importsOfFile, root } from "../architecture/support/Workspace.ts"

const folder = path.join(root, "examples/adapter")
const program = path.join(folder, "toy-agent.mjs")
const lines = (file: string) => fs.readFileSync(path.join(folder, file), "utf8").trimEnd().split("\n")

describe("the adapter that the page walks through", () => {
  it("has at most 200 lines, as has the page", () => {
    assert.isAtMost(lines("ToyHarness.ts").length + lines("ToyWire.ts").length, 200)
    assert.isAtMost(lines("../../docs/write-an-adapter.md").length, 200)
  })

  it("imports what is published, and nothing else", () => {
    const specifiers = ["ToyHarness.ts", "ToyWire.ts"].flatMap((file) => importsOfFile(path.join(folder, file)).map(({ specifier }) => specifier))
    assert.deepStrictEqual([...new Set(specifiers)].sort(), [
      "./ToyWire.ts",
      "@turnpike/contract",
      "@turnpike/harness",
      "@turnpike/kernel",
      "@turnpike/process",
      "effect/Effect",
      "effect/Result",
      "effect/Schema"
    ])
  })
})

interface Line {
  readonly owner?: unknown
  readonly toy?: Readonly<Record<string, unknown>>
}

it("toy-agent says what its conversation.jsonl says", async () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-toy-"))
  fs.writeFileSync(path.join(directory, "notes.txt"), "buy milk\n")
  const toy = spawn(process.execPath, [program], { cwd: directory, env: { ...process.env, TOY_HOME: path.join(directory, "home") }, stdio: ["pipe", "pipe", "inherit"] })
  try {
    const said = createInterface({ input: toy.stdout })[Symbol.asyncIterator]()
    const told: Array<Line> = []
    const recorded = lines("conversation.jsonl").map((line) => JSON.parse(line) as Line)
    for (const line of recorded) {
      if (line.toy === undefined) {
        toy.stdin.write(`${JSON.stringify(line.owner)}\n`)
        told.push(line)
        continue
      }
      const frame = JSON.parse(String((await said.next()).value)) as NonNullable<Line["toy"]>
      // The one thing that differs each time is the chat's id.
      told.push({ toy: "chat" in frame && "chat" in line.toy ? { ...frame, chat: line.toy["chat"] } : frame })
    }
    assert.deepStrictEqual(told, recorded)
  } finally {
    toy.kill("SIGKILL")
    fs.rmSync(directory, { recursive: true })
  }
}, 20_000)

const test = (name: string, body: (directory: string, harness: Harness.Harness) => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.live(name, () =>
    Effect.gen(function*() {
      const directory = yield* Effect.acquireRelease(
        Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-toy-")))),
        (made) => Effect.sync(() => fs.rmSync(made, { recursive: true }))
      )
      yield* body(directory, yield* ToyHarness.make)
    }).pipe(Effect.scoped, Effect.provide(Supervisor.layer({ reapOrphans: false }))), 30_000)

const options = (directory: string, more: Partial<Harness.SessionOptions> = {}): Harness.SessionOptions =>
  Harness.options({ sessionId: "s", cwd: directory, configDir: directory, program, inheritedEnv: { PATH: process.env["PATH"] ?? "" }, ...more })

describe("ToyHarness", () => {
  test("finds its program, and says what it is", (directory, harness) =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* harness.check(options(directory)), { program, version: "1.0.0" })
      fs.symlinkSync(program, path.join(directory, "toy-agent"))
      const inPath = { PATH: `${directory}${path.delimiter}${process.env["PATH"] ?? ""}` }
      const { usable, version } = yield* harness.diagnose({ program: undefined, cwd: directory, inheritedEnv: inPath })
      assert.deepStrictEqual({ usable, version }, { usable: true, version: "1.0.0" })
    }))

  test("refuses options that the toy cannot honour, by name", (directory, harness) =>
    Effect.gen(function*() {
      const refused = (more: Partial<Harness.SessionOptions>) => Effect.map(Effect.flip(harness.check(options(directory, more))), ({ message }) => message)
      assert.deepStrictEqual([
        yield* refused({ model: "another" }),
        yield* refused({ credentials: { codex: { auth_json: "{}" } } }),
        yield* refused({ tools: { _tag: "Only", tools: ["read", "hammer"] } })
      ], [
        "toy cannot honour model: it has one model and takes no other",
        "toy cannot honour credentials.codex: the toy cannot sign in with it",
        "toy cannot honour tools: it has no tool hammer; it has look and sh"
      ])
    }))

  test("refuses a program that greets in another version, with its greeting and without credentials", (directory, harness) =>
    Effect.gen(function*() {
      const other = path.join(directory, "other")
      const greeting = { op: "hello", v: 2, token: "sk-0123456789abcdef" }
      fs.writeFileSync(other, `#!/bin/sh\nif [ "$1" = --version ]; then echo toy-agent 2.0.0; exit; fi\nread -r hello; echo '${JSON.stringify(greeting)}'; exec sleep 60\n`, { mode: 0o755 })
      const { failure } = yield* Effect.flip(harness.open(options(directory, { program: other })))
      assert.deepStrictEqual([failure.code, failure.message], [
        "HARNESS_PROTOCOL",
        "the toy does not speak version 1 of its protocol; it greets with {\"op\":\"hello\",\"v\":2,\"token\":\"[REDACTED]\"}"
      ])
    }))

  test("ends a turn whose reason it does not know as a failure, not never", (directory, harness) =>
    Effect.gen(function*() {
      fs.writeFileSync(path.join(directory, "model.json"), JSON.stringify({ "*": [{ say: "hm" }, { done: "bored" }] }))
      const session = yield* harness.open(options(directory))
      const { failure } = yield* Effect.flip(AgentSession.runToOutput(session, Prompt.fromText("hello")))
      assert.deepStrictEqual([failure.code, failure.message], ["HARNESS_PROTOCOL", "the toy ended its turn for an unknown reason: bored"])
    }))

  test("takes a word of an earlier turn for late, also while the next one runs", (directory, harness) =>
    Effect.gen(function*() {
      const late = { op: "text", turn: 1, add: "too late" }
      fs.writeFileSync(path.join(directory, "model.json"), JSON.stringify({ "*": [{ say: "one" }], next: [{ hook: `echo '${JSON.stringify(late)}'` }, { say: "two" }] }))
      const session = yield* harness.open(options(directory, { tools: ToolAllowlist.dangerousAll }))
      yield* AgentSession.runToOutput(session, Prompt.fromText("first"))
      const notices: Array<unknown> = []
      const { text } = yield* AgentSession.runToOutput(session, Prompt.fromText("next"), (event) =>
        Effect.sync(() => {
          if (event.type === "notice") notices.push([event.data.kind, event.data.raw])
        }))
      assert.deepStrictEqual({ text, notices }, { text: "two", notices: [["late_frame", late]] })
    }))
})
