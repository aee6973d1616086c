/**
 * The verdict table of Copilot: what a run has to say of each thing that can
 * happen. The cells were written from recordings before they were run; where
 * Copilot hides a fact, `hidden` says which.
 */
import type { Failure } from "@turnpike/contract"
import { assert } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { programOf } from "./realCli.ts"
import { type Bench, eventually, type Told } from "./turnpikeRun.ts"
import { afterWritten, answerTo, cancelled, failed, firstText, refused, type Row, success, summary } from "./verdictTable.ts"

const status = (code: number, error: Failure.FailureCode): Row => ({
  name: `the service answers ${code}`,
  cell: failed(error),
  play: (bench) => bench.run({ task: "hello", scenario: { type: "status", status: code } }),
  also: (told) => assert.strictEqual(told.result?.error?.http_status, code)
})

const longCommand = "echo started; sleep 300"
const inTool = { type: "tool", command: longCommand } as const
const mayExecute = ["--allow-tool=execute", "--permission=allow-listed"]

/** Signals the run once a tool of it runs for sure. */
const signalInTool = async (bench: Bench, signals: ReadonlyArray<NodeJS.Signals>): Promise<Told> => {
  let send: (name: NodeJS.Signals) => void = () => {}
  const run = bench.run({
    task: "run it",
    scenario: inTool,
    args: mayExecute,
    onEvent: (_, signal) => {
      send = signal
    }
  })
  await eventually("the tool", bench.processes, (all) => all.some(({ command }) => command === "sleep 300"))
  for (const [index, name] of signals.entries()) {
    if (index > 0) await new Promise((resolve) => setTimeout(resolve, 20))
    send(name)
  }
  return run
}

const killCopilot = (bench: Bench): void => {
  for (const { command, pid } of bench.processes()) {
    // Its own process only, by its path: not what contains it.
    if (command.startsWith(`${programOf("copilot")} --headless`)) process.kill(pid, "SIGKILL")
  }
}

const hostile = (name: string, prompt: string, env: Readonly<Record<string, string>> = {}): Row => ({
  name: `a prompt: ${name}`,
  cell: success,
  play: (bench) => bench.run({ task: prompt, env }),
  also: async (told, bench) => {
    const calls = told.events.filter((event) => event.type === "tool_start" && event.kind === "tool")
    assert.deepStrictEqual(calls, [])
    const prompts = await bench.prompts()
    assert.isTrue(prompts.length === 1 && prompts[0] === prompt, `the model was sent ${JSON.stringify(prompts).slice(0, 400)}`)
  }
})

export const rows: ReadonlyArray<Row> = [
  {
    name: "a plain turn",
    cell: success,
    play: (bench) => bench.run({ task: "hello" }),
    also: async (told, bench) => {
      assert.strictEqual(summary(told), answerTo("hello"))
      // What the model billed; how much Copilot says around a prompt is its own affair.
      const billed = (await bench.lastRequest())?.usage
      assert.exists(billed)
      assert.deepStrictEqual(told.result?.usage, {
        tokens: {
          source: "reported",
          input_tokens: billed.input + billed.cache_read + billed.cache_write,
          output_tokens: billed.output,
          cache_read_tokens: billed.cache_read,
          // Chat Completions has no word for it.
          cache_write_tokens: 0,
          reasoning_tokens: 0
        },
        cost: { source: "unavailable" }
      })
    }
  },
  {
    name: "a second turn of a session",
    cell: success,
    play: async (bench) => {
      await bench.run({ task: "first", args: ["--session=one"] })
      return bench.run({ task: "second", args: ["--session=one"] })
    },
    also: (told) => {
      assert.strictEqual(summary(told), answerTo("first", "second"))
      assert.deepInclude(told.result?.session, { id: "one", harness: "copilot", resumed: true, turn: 2 })
    }
  },
  {
    name: "Copilot is killed in the middle of a turn",
    cell: failed("HARNESS_FAILED"),
    play: (bench) =>
      bench.run({
        task: "first",
        scenario: { type: "hang" },
        args: ["--session=one"],
        onEvent: firstText(() => afterWritten(path.join(bench.place.config, "session-state"), "\"content\":\"first\"", () => killCopilot(bench)))
      }),
    also: async (_, bench) => {
      const next = await bench.run({ task: "second", args: ["--session=one"] })
      assert.deepStrictEqual([next.exit, summary(next)], [0, answerTo("first", "second")])
    }
  },
  {
    name: "a tool that is allowed",
    cell: success,
    play: (bench) =>
      bench.run({ task: "run it", scenario: { type: "tool", command: "touch ran && echo done" }, args: ["--allow-tool=execute"] }),
    also: (told, bench) => {
      assert.include(summary(told), "The tool answered: \"done\\n")
      assert.isTrue(fs.existsSync(path.join(bench.place.work, "ran")))
      assert.deepStrictEqual(
        told.events.flatMap((event) => event.type === "tool_end" && event.kind === "tool" ? [[event.tool_name, event.success]] : []),
        [["bash", true]]
      )
    }
  },
  {
    name: "a command that a pattern allows",
    cell: success,
    play: (bench) =>
      bench.run({ task: "run it", scenario: { type: "tool", command: "touch ran" }, args: ["--allow-tool=bash(touch *)"] }),
    also: (_, bench) => assert.isTrue(fs.existsSync(path.join(bench.place.work, "ran")))
  },
  {
    name: "a tool that is denied",
    cell: success,
    play: (bench) =>
      bench.run({ task: "run it", scenario: { type: "tool", command: "touch ran" }, args: ["--allow-tool=bash(git *)"] }),
    also: (told, bench) => {
      assert.isFalse(fs.existsSync(path.join(bench.place.work, "ran")))
      assert.deepStrictEqual(told.result?.denials.map(({ tool_name }) => tool_name), ["bash"])
      assert.deepStrictEqual(
        told.events.flatMap((event) => event.type === "permission_decision" ? [[event.decision, event.by]] : []),
        [["deny", "deny"]]
      )
    }
  },
  {
    name: "a tool that the user's environment allows and the allow-list does not",
    cell: success,
    play: (bench) =>
      bench.run({
        task: "run it",
        scenario: { type: "tool", command: "touch ran" },
        args: ["--allow-tool=bash(git *)", "--env=COPILOT_ALLOW_ALL=true"]
      }),
    also: (told, bench) => {
      assert.isFalse(fs.existsSync(path.join(bench.place.work, "ran")))
      assert.deepStrictEqual(told.result?.denials.map(({ tool_name }) => tool_name), ["bash"])
    }
  },
  {
    name: "a tool that is not on the allow-list is not offered",
    cell: success,
    play: (bench) => bench.run({ task: "run it", scenario: { type: "tool", command: "touch ran" } }),
    also: (told, bench) => {
      assert.isFalse(fs.existsSync(path.join(bench.place.work, "ran")))
      assert.include(summary(told), "I was offered no tool to run")
    }
  },
  {
    name: "all tools, dangerously",
    cell: success,
    play: (bench) =>
      bench.run({
        task: "run it",
        scenario: { type: "tool", command: "touch ran && echo done" },
        args: ["--dangerous-all-tools"]
      }),
    also: (told, bench) => {
      assert.include(summary(told), "The tool answered: \"done\\n")
      assert.isTrue(fs.existsSync(path.join(bench.place.work, "ran")))
    }
  },
  status(401, "INVALID_CREDENTIAL"),
  status(403, "PERMISSION_DENIED"),
  status(404, "MODEL_NOT_FOUND"),
  {
    ...status(429, "RATE_LIMIT"),
    hidden: { what: "the time after which the service would answer again", recording: "e429" }
  },
  status(529, "OVERLOADED"),
  status(500, "SERVER"),
  {
    name: "the conversation is too long for the model",
    cell: failed("CONTEXT_WINDOW_EXCEEDED"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "context_too_long" } })
  },
  {
    name: "the answer is cut off every time",
    cell: failed("TRANSPORT"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "cut" } })
  },
  {
    name: "the answer is cut off once, and comes whole when it is asked for again",
    cell: success,
    play: (bench) => bench.run({ task: "hello", scenario: { type: "cut", times: 1 } }),
    also: (told) => {
      assert.strictEqual(summary(told), answerTo("hello"))
      assert.isTrue(told.events.some((event) => event.type === "notice" && event.kind === "retry"), "the repetition is told")
    }
  },
  {
    name: "the connection is reset",
    cell: failed("TRANSPORT"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "reset" } })
  },
  {
    name: "the connection is refused",
    cell: failed("TRANSPORT"),
    // Nothing listens on the discard port.
    play: (bench) => bench.run({ task: "hello", env: { COPILOT_PROVIDER_BASE_URL: "http://127.0.0.1:9/v1" } })
  },
  {
    name: "the service reports its own failure within the stream",
    cell: failed("SERVER"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "error_event" } })
  },
  {
    name: "the answer reaches the model's output limit",
    cell: failed("MAX_TOKENS"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "max_tokens" } }),
    also: (told) => assert.deepStrictEqual(told.result?.verdict, { type: "max-tokens" })
  },
  {
    name: "the model refuses",
    cell: failed("REFUSAL"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "refusal" } }),
    also: (told) => assert.deepStrictEqual(told.result?.verdict, { type: "refusal" })
  },
  {
    name: "the answer is empty",
    cell: failed("EMPTY_RESPONSE"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "empty" } })
  },
  {
    name: "the stream is malformed every time",
    cell: failed("TRANSPORT"),
    hidden: {
      what: "that the stream was malformed and not cut: both are of the kind `transport`, only the message tells",
      recording: "malformed"
    },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "bad_json" } })
  },
  {
    name: "nobody is signed in",
    cell: failed("INVALID_CREDENTIAL"),
    hidden: { what: "what kind of failure it is: the facts say `query`, only the message tells", recording: "not-signed-in" },
    play: (bench) => bench.run({ task: "hello", env: { COPILOT_PROVIDER_BASE_URL: undefined, COPILOT_OFFLINE: undefined } })
  },
  {
    name: "a service without a model",
    cell: refused("UNSUPPORTED"),
    play: (bench) => bench.run({ task: "hello", env: { COPILOT_MODEL: undefined } })
  },
  {
    name: "no network, and no service but GitHub's",
    cell: refused("UNSUPPORTED"),
    play: (bench) => bench.run({ task: "hello", env: { COPILOT_PROVIDER_BASE_URL: undefined } })
  },
  {
    name: "a session that Copilot has lost",
    cell: failed("SESSION_LOST"),
    play: async (bench) => {
      await bench.run({ task: "first", args: ["--session=one"] })
      fs.rmSync(path.join(bench.place.config, "session-state"), { recursive: true })
      return bench.run({ task: "second", args: ["--session=one"] })
    }
  },
  {
    name: "a session that Copilot has lost, where going on without it was chosen",
    cell: success,
    play: async (bench) => {
      await bench.run({ task: "first", args: ["--session=one"] })
      fs.rmSync(path.join(bench.place.config, "session-state"), { recursive: true })
      return bench.run({ task: "second", args: ["--session=one", "--resume=fresh"] })
    },
    also: (told) => {
      assert.strictEqual(summary(told), answerTo("second"))
      assert.isTrue(told.events.some((event) => event.type === "notice" && event.kind === "fresh_session"))
    }
  },
  {
    name: "a session that Turnpike does not know",
    cell: refused("SESSION_UNKNOWN"),
    play: (bench) => bench.run({ task: "hello", args: ["--session=one", "--resume=fail"] })
  },
  {
    name: "Ctrl-C while the answer streams",
    cell: cancelled("graceful"),
    play: (bench) =>
      bench.run({
        task: "first",
        scenario: { type: "slow", words: 200, interval_ms: 50 },
        args: ["--session=one"],
        onEvent: firstText((signal) => signal("SIGINT"))
      }),
    also: async (_, bench) => {
      const next = await bench.run({ task: "second", args: ["--session=one"] })
      assert.strictEqual(next.exit, 0)
      assert.include(summary(next), "\"first\"")
      assert.include(summary(next), "\"second\"")
    }
  },
  {
    name: "TERM while the answer streams",
    cell: cancelled("hard", 143),
    play: (bench) =>
      bench.run({
        task: "first",
        scenario: { type: "slow", words: 200, interval_ms: 50 },
        onEvent: firstText((signal) => signal("SIGTERM"))
      })
  },
  { name: "Ctrl-C while a tool runs", cell: cancelled("graceful"), play: (bench) => signalInTool(bench, ["SIGINT"]) },
  { name: "Ctrl-C twice while a tool runs", cell: cancelled("hard"), play: (bench) => signalInTool(bench, ["SIGINT", "SIGINT"]) },
  {
    name: "the time limit",
    cell: { reason: "timeout", success: false, exit: 3, error: "TIME_LIMIT" },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "hang" }, args: ["--timeout=4"] })
  },
  {
    name: "instructions and a model of the caller's, also when the session is resumed",
    cell: success,
    play: async (bench) => {
      const system = path.join(bench.place.home, "system.txt")
      fs.writeFileSync(system, "Speak of zebras.")
      const args = ["--session=one", `--system-file=${system}`, "--model=gpt-5.4-mini"]
      await bench.run({ task: "first", args })
      return bench.run({ task: "second", args })
    },
    also: async (told, bench) => {
      const request = await bench.lastRequest()
      assert.deepStrictEqual([request?.model, request?.system.includes("Speak of zebras.")], ["gpt-5.4-mini", true])
      assert.strictEqual(summary(told), answerTo("first", "second"))
      assert.deepStrictEqual(told.events.flatMap((event) => event.type === "notice" ? [event.kind] : []), [])
    }
  },
  hostile("a leading dash", "-v is my prompt"),
  hostile("--help", "--help"),
  hostile("quotes", "she said \"it's\" `now` \\ done"),
  hostile("several lines", "one\ntwo\n\n  three"),
  hostile("$(x)", "$(touch ran) ${HOME} %PATH% !!"),
  hostile("emoji", "😀 e\u0301 日本 \u2028 end"),
  hostile("/clear", "/clear"),
  hostile("/compact", "/compact now"),
  hostile("!ls", "!ls"),
  hostile("#remember", "#remember this"),
  hostile("@file", "@README.md what is it"),
  hostile("200 KB", "0123456789abcde\n".repeat(12_800).trimEnd()),
  hostile("2 MB", "0123456789abcde\n".repeat(131_072).trimEnd(), { COPILOT_PROVIDER_MAX_PROMPT_TOKENS: "2000000" }),
  {
    name: "a prompt of 2 MB for a model that does not take it",
    cell: failed("CONTEXT_WINDOW_EXCEEDED"),
    play: (bench) => bench.run({ task: "0123456789abcde\n".repeat(131_072).trimEnd() })
  },
  {
    name: "two runs on one session at once",
    cell: refused("SESSION_BUSY"),
    play: async (bench) => {
      let begun: () => void = () => {}
      const running = new Promise<void>((resolve) => {
        begun = resolve
      })
      let stop: (name: NodeJS.Signals) => void = () => {}
      const first = bench.run({
        task: "first",
        scenario: { type: "hang" },
        args: ["--session=one"],
        onEvent: firstText((signal) => {
          stop = signal
          begun()
        })
      })
      await running
      const second = await bench.run({ task: "second", args: ["--session=one"] })
      stop("SIGINT")
      assert.strictEqual((await first).exit, 130)
      return second
    }
  }
]
