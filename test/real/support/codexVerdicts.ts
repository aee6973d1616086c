/**
 * The verdict table of Codex: what a run has to say of each thing that can
 * happen. The cells were written from recordings before they were run; where
 * Codex hides a fact, `hidden` says which.
 */
import type { Failure } from "@turnpike/contract"
import { assert } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { programOf } from "./realCli.ts"
import { type Bench, eventually, type Told } from "./turnpikeRun.ts"
import { answerTo, cancelled, failed, firstText, refused, type Row, success, summary } from "./verdictTable.ts"

const status = (code: number, error: Failure.FailureCode): Row => ({
  name: `the service answers ${code}`,
  cell: failed(error),
  play: (bench) => bench.run({ task: "hello", scenario: { type: "status", status: code } }),
  also: (told) => assert.strictEqual(told.result?.error?.http_status, code)
})

const inTool = { type: "tool", command: "echo started; sleep 300" } as const
const mayExecute = ["--allow-tool=read", "--allow-tool=execute"]
const touch = { type: "tool", command: "touch ran" } as const
const touchAndTell = { type: "tool", command: "touch ran && echo done" } as const
const hasRun = (bench: Bench): boolean => fs.existsSync(path.join(bench.place.work, "ran"))

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

const killCodex = (bench: Bench): void => {
  for (const { command, pid } of bench.processes()) {
    // Its own process only, by its path: not what contains it.
    if (command.startsWith(`${programOf("codex")} app-server`)) process.kill(pid, "SIGKILL")
  }
}

const hostile = (name: string, prompt: string): Row => ({
  name: `a prompt: ${name}`,
  cell: success,
  play: (bench) => bench.run({ task: prompt }),
  also: async (told, bench) => {
    assert.deepStrictEqual(told.events.filter((event) => event.type === "tool_start" && event.kind === "tool"), [])
    const prompts = await bench.prompts()
    assert.isTrue(prompts.length === 1 && prompts[0] === prompt, `the model was sent ${JSON.stringify(prompts).slice(0, 400)}`)
  }
})

/** Rules of the user's about a command, which Codex heeds whatever else it is told. */
const rule = (bench: Bench, decision: string): void => {
  fs.mkdirSync(path.join(bench.place.config, "rules"))
  fs.writeFileSync(path.join(bench.place.config, "rules", "default.rules"), `prefix_rule(pattern=["touch"], decision="${decision}")\n`)
}

/** Codex, except that it looks for its model's service where nothing listens: on the discard port. */
const unconnected = (bench: Bench): string => {
  const file = path.join(bench.place.home, "codex-without-service")
  fs.writeFileSync(
    file,
    `#!/bin/sh
if [ "$1" = app-server ]; then
  exec '${programOf("codex")}' app-server -c 'model_providers.scripted.base_url="http://127.0.0.1:9/v1"'
fi
exec '${programOf("codex")}' "$@"
`,
    { mode: 0o755 }
  )
  return file
}

/** The thread of Turnpike's session, held by a Codex that is none of Turnpike's. */
const holdThread = async (bench: Bench, threadId: string): Promise<() => void> => {
  const { spawn } = await import("node:child_process")
  const child = spawn(programOf("codex"), ["app-server"], {
    cwd: bench.place.work,
    env: { ...bench.place.env, CODEX_HOME: bench.place.config, SCRIPTED_KEY: "none" },
    stdio: ["pipe", "pipe", "ignore"]
  })
  const say = (frame: object) => child.stdin.write(`${JSON.stringify(frame)}\n`)
  const held = new Promise<void>((resolve, reject) => {
    let text = ""
    child.stdout.setEncoding("utf8").on("data", (more: string) => {
      text += more
      if (text.split("\n").some((line) => line.includes("\"id\":\"hold\"") && line.includes("\"result\""))) resolve()
    })
    child.on("close", () => reject(new Error(`it could not hold the thread: ${text}`)))
  })
  say({ id: "hello", method: "initialize", params: { clientInfo: { name: "other", title: "Other", version: "1" } } })
  say({ method: "initialized" })
  say({ id: "hold", method: "thread/resume", params: { threadId, excludeTurns: true } })
  await held
  return () => child.kill("SIGKILL")
}

export const rows: ReadonlyArray<Row> = [
  {
    name: "a plain turn",
    cell: success,
    play: (bench) => bench.run({ task: "hello" }),
    also: (told) => {
      assert.strictEqual(summary(told), answerTo("hello"))
      assert.strictEqual(told.events.filter((event) => event.type === "text_delta").map(({ text }) => text).join(""), answerTo("hello"))
      const { tokens, cost } = told.result?.usage ?? {}
      assert.deepInclude(tokens, { source: "reported", output_tokens: 6, cache_read_tokens: 200 })
      assert.deepStrictEqual(cost, { source: "unavailable" })
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
      assert.deepInclude(told.result?.session, { id: "one", harness: "codex", resumed: true, turn: 2 })
      // The second turn's figures, not the thread's.
      assert.deepInclude(told.result?.usage.tokens, { output_tokens: 6, cache_read_tokens: 200 })
    }
  },
  {
    name: "Codex is killed in the middle of a turn",
    cell: failed("HARNESS_FAILED"),
    play: (bench) =>
      bench.run({
        task: "first",
        scenario: { type: "hang" },
        args: ["--session=one"],
        onEvent: firstText(() => killCodex(bench))
      }),
    also: async (_, bench) => {
      const next = await bench.run({ task: "second", args: ["--session=one"] })
      assert.deepStrictEqual([next.exit, summary(next)], [0, answerTo("first", "second")])
    }
  },
  {
    name: "a tool that is allowed",
    cell: success,
    play: (bench) => bench.run({ task: "run it", scenario: touchAndTell, args: mayExecute }),
    also: (told, bench) => {
      assert.include(summary(told), "done")
      assert.isTrue(hasRun(bench))
      assert.deepStrictEqual(
        told.events.flatMap((event) => event.type === "tool_end" && event.kind === "tool" ? [[event.tool_name, event.success]] : []),
        [["commandExecution", true]]
      )
    }
  },
  {
    name: "a tool that Codex asks for and that is denied",
    cell: success,
    play: (bench) => {
      rule(bench, "prompt")
      return bench.run({ task: "run it", scenario: touch, args: mayExecute })
    },
    also: (told, bench) => {
      assert.isFalse(hasRun(bench))
      assert.deepStrictEqual(told.result?.denials.map(({ tool_name }) => tool_name), ["commandExecution"])
      assert.deepStrictEqual(
        told.events.flatMap((event) => event.type === "permission_decision" ? [[event.decision, event.by]] : []),
        [["deny", "deny"]]
      )
    }
  },
  {
    name: "a tool that Codex asks for and that the list holds",
    cell: success,
    play: (bench) => {
      rule(bench, "prompt")
      return bench.run({ task: "run it", scenario: touchAndTell, args: [...mayExecute, "--permission=allow-listed"] })
    },
    also: (told, bench) => {
      assert.isTrue(hasRun(bench))
      assert.deepStrictEqual(
        told.events.flatMap((event) => event.type === "permission_decision" ? [[event.decision, event.by]] : []),
        [["allow", "allow-listed"]]
      )
    }
  },
  {
    name: "a command that writes, where the list only reads",
    cell: success,
    hidden: {
      what: "that a command ran and was held back by the sandbox: no item tells of it, only the model is told",
      recording: "w28-write-in-read-only"
    },
    play: (bench) => bench.run({ task: "run it", scenario: touch }),
    also: (told, bench) => {
      assert.isFalse(hasRun(bench))
      assert.include(summary(told), "Read-only file system")
      assert.deepStrictEqual(told.result?.denials, [])
    }
  },
  {
    name: "a command that the user's rules let out of the sandbox",
    cell: success,
    hidden: { what: "that the command ran outside the sandbox; the rules are told before it runs", recording: "w26-rule-allows" },
    play: (bench) => {
      rule(bench, "allow")
      return bench.run({ task: "run it", scenario: touch })
    },
    also: (told, bench) => {
      // Not as wanted, but as it is: the notice is what can be done about it.
      assert.isTrue(hasRun(bench))
      assert.isTrue(told.events.some((event) => event.type === "notice" && event.kind === "tools_differ" && event.message.includes("default.rules")))
    }
  },
  {
    name: "all tools, dangerously",
    cell: success,
    play: (bench) => bench.run({ task: "run it", scenario: touchAndTell, args: ["--dangerous-all-tools"] }),
    also: (told, bench) => {
      assert.include(summary(told), "done")
      assert.isTrue(hasRun(bench))
    }
  },
  status(401, "INVALID_CREDENTIAL"),
  status(403, "PERMISSION_DENIED"),
  {
    name: "the service answers 404",
    cell: failed("MODEL_NOT_FOUND"),
    hidden: { what: "the HTTP status", recording: "w15-404" },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "status", status: 404 } })
  },
  {
    ...status(429, "RATE_LIMIT"),
    hidden: { what: "the time after which the service would answer again", recording: "w27-429" }
  },
  status(529, "OVERLOADED"),
  {
    name: "the service answers 500",
    cell: failed("SERVER"),
    hidden: { what: "the HTTP status", recording: "w8-500" },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "status", status: 500 } })
  },
  {
    name: "the conversation is too long for the model",
    cell: failed("CONTEXT_WINDOW_EXCEEDED"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "context_too_long" } })
  },
  {
    name: "the answer is cut off, and comes whole when it is asked for again",
    cell: success,
    play: (bench) => bench.run({ task: "hello", scenario: { type: "cut", times: 1 } }),
    also: (told) => {
      assert.strictEqual(summary(told), answerTo("hello"))
      assert.isTrue(told.events.some((event) => event.type === "notice" && event.message.includes("the answer broke off")))
    }
  },
  {
    name: "the answer is cut off every time",
    cell: failed("TRANSPORT"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "cut" } })
  },
  {
    name: "the connection is reset",
    cell: failed("TRANSPORT"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "reset" } })
  },
  {
    name: "the connection is refused",
    cell: { reason: "timeout", success: false, exit: 3, error: "TIME_LIMIT" },
    hidden: {
      what: "that it will not get anywhere: it tries for ever, and only a limit of the caller's ends the turn",
      recording: "w24-connection-refused"
    },
    play: (bench) => bench.run({ task: "hello", program: unconnected(bench), args: ["--timeout=12"] })
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
    hidden: { what: "that it is no broken connection, but for the message; it is asked again like one", recording: "w11-refusal" },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "refusal" } }),
    also: (told) => assert.deepStrictEqual(told.result?.verdict, { type: "refusal" })
  },
  {
    name: "the answer is empty",
    cell: failed("EMPTY_RESPONSE"),
    hidden: { what: "that anything is wrong: the turn is completed, without an item", recording: "w12-empty" },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "empty" } })
  },
  {
    name: "the stream is malformed every time",
    cell: failed("TRANSPORT"),
    hidden: { what: "that it is malformed: it tells of a stream that closed too early", recording: "w13-malformed" },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "bad_json", in: "any" } })
  },
  {
    name: "there is no key",
    cell: failed("INVALID_CREDENTIAL"),
    play: (bench) => bench.run({ task: "hello", env: { SCRIPTED_KEY: undefined } })
  },
  {
    name: "a configuration that cannot be read",
    cell: failed("HANDSHAKE_FAILED"),
    play: (bench) => {
      fs.writeFileSync(path.join(bench.place.config, "more.toml"), "this is not toml\n")
      return bench.run({ task: "hello" })
    },
    also: (told) => assert.include(told.result?.error?.message, "config.toml")
  },
  {
    name: "a session that Codex has lost",
    cell: failed("SESSION_LOST"),
    play: async (bench) => {
      await bench.run({ task: "first", args: ["--session=one"] })
      loseThreads(bench)
      return bench.run({ task: "second", args: ["--session=one"] })
    }
  },
  {
    name: "a session that Codex has lost, where going on without it was chosen",
    cell: success,
    play: async (bench) => {
      await bench.run({ task: "first", args: ["--session=one"] })
      loseThreads(bench)
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
    name: "Codex says that the session is in use",
    cell: failed("SESSION_IN_USE"),
    play: async (bench) => {
      const first = await bench.run({ task: "first", args: ["--session=one"] })
      const letGo = await holdThread(bench, first.result?.session.harness_session_id ?? "")
      try {
        return await bench.run({ task: "second", args: ["--session=one"] })
      } finally {
        letGo()
      }
    }
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
    play: (bench) => bench.run({ task: "hello", scenario: { type: "hang" }, args: ["--timeout=3"] })
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
  {
    name: "a prompt: $skill-creator, the name of a skill",
    cell: success,
    hidden: { what: "that it gave the model the skill's instructions, too; the prompt itself arrives as it is", recording: "w34-skill" },
    play: (bench) => bench.run({ task: "$skill-creator resume" }),
    also: async (_, bench) => {
      const [prompt, added, ...more] = await bench.prompts()
      assert.deepStrictEqual([prompt, added?.includes("<name>skill-creator</name>"), more], ["$skill-creator resume", true, []])
    }
  },
  hostile("200 KB", "0123456789abcde\n".repeat(12_800).trimEnd()),
  {
    name: "a prompt: 2 MB, which is more than Codex takes",
    cell: failed("UNSUPPORTED"),
    play: (bench) => bench.run({ task: "0123456789abcde\n".repeat(131_072).trimEnd() }),
    also: async (told, bench) => {
      assert.include(told.result?.error?.message, "1048576")
      assert.deepStrictEqual(await bench.prompts(), [])
    }
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
      stop("SIGTERM")
      assert.strictEqual((await first).exit, 143)
      return second
    }
  }
]

/** Codex keeps its threads in files and what it knows of them in databases. */
function loseThreads(bench: Bench): void {
  for (const name of fs.readdirSync(bench.place.config)) {
    if (name === "sessions" || name.includes(".sqlite")) fs.rmSync(path.join(bench.place.config, name), { recursive: true })
  }
}
