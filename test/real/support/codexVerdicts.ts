/**
 * The verdict table of Codex: what a run has to say of each thing that can
 * happen. The cells were written from recordings before they were run; where
 * Codex hides a fact, `hidden` says which.
 */
import { assert } from "@effect/vitest"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { programOf } from "./realCli.ts"
import type { Bench } from "./turnpikeRun.ts"
import {
  empty, hasRun, hostilePrompts, kill, killed, outputLimit, refusal, reset, script, secondTurn, status, stops, tooLong, touch,
  touchAndTell, twoMegabytes, twoRuns, wrongPrograms
} from "./verdictRows.ts"
import { type Kept, renamed, resumeRows, torn } from "./resumeRows.ts"
import { answerTo, failed, type Row, success, summary } from "./verdictTable.ts"

const mayExecute = ["--allow-tool=read", "--allow-tool=execute"]

/** Rules of the user's about a command, which Codex heeds whatever else it is told. */
const rule = (bench: Bench, decision: string): void => {
  fs.mkdirSync(path.join(bench.place.config, "rules"))
  fs.writeFileSync(path.join(bench.place.config, "rules", "default.rules"), `prefix_rule(pattern=["touch"], decision="${decision}")\n`)
}

/** Codex, except that it looks for its model's service where nothing listens: on the discard port. */
const unconnected = (bench: Bench): string =>
  script(bench, "codex", `[ "$1" = app-server ] && exec "$REAL" app-server -c 'model_providers.scripted.base_url="http://127.0.0.1:9/v1"'\nexec "$REAL" "$@"`)

/** Codex keeps its threads in files and what it knows of them in databases. */
const loseThreads = (bench: Bench): void => {
  for (const name of fs.readdirSync(bench.place.config)) {
    if (name === "sessions" || name.includes(".sqlite")) fs.rmSync(path.join(bench.place.config, name), { recursive: true })
  }
}

const kept: Kept = {
  cli: "codex",
  product: "Codex",
  argument: "app-server",
  histories: (bench) => path.join(bench.place.config, "sessions"),
  lose: loseThreads,
  mayForget: false,
  kills: [
    ["the CLI", "named the session"],
    ["the CLI", "asked its model"],
    ["the CLI", "said a word"],
    ["Turnpike", "named the session"],
    ["Turnpike", "asked its model"]
  ]
}

/** Codex behind a program that asks it to fork a thread where it is asked to resume one. */
const forking = (bench: Bench): string => {
  const between = path.join(bench.place.home, "forking.mjs")
  fs.writeFileSync(between, `
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
const codex = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "inherit", "inherit"] })
createInterface({ input: process.stdin }).on("line", (line) => {
  const frame = JSON.parse(line)
  codex.stdin.write(JSON.stringify(frame.method === "thread/resume" ? { ...frame, method: "thread/fork" } : frame) + "\\n")
}).on("close", () => codex.stdin.end())
codex.on("exit", (code) => process.exit(code ?? 1))
`)
  return script(bench, "codex", `[ "$1" = app-server ] && exec '${process.execPath}' '${between}' "$REAL" "$@"\nexec "$REAL" "$@"`)
}

/** The thread of Turnpike's session, held by a Codex that is none of Turnpike's. */
const holdThread = async (bench: Bench, threadId: string): Promise<() => void> => {
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
    ...secondTurn("codex"),
    // The second turn's figures, not the thread's.
    also: async (told, bench) => {
      await secondTurn("codex").also?.(told, bench)
      assert.deepInclude(told.result?.usage.tokens, { output_tokens: 6, cache_read_tokens: 200 })
    }
  },
  killed("Codex", (bench) => kill(bench, "codex", "app-server")),
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
  tooLong,
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
  reset,
  {
    name: "the connection is refused",
    cell: { reason: "timeout", success: false, exit: 3, error: "TIME_LIMIT" },
    hidden: {
      what: "that it will not get anywhere: it tries for ever, and only a limit of the caller's ends the turn",
      recording: "w24-connection-refused"
    },
    play: (bench) => bench.run({ task: "hello", program: unconnected(bench), args: ["--timeout=12"] })
  },
  outputLimit,
  {
    ...refusal,
    hidden: { what: "that it is no broken connection, but for the message; it is asked again like one", recording: "w11-refusal" }
  },
  {
    ...empty,
    hidden: { what: "that anything is wrong: the turn is completed, without an item", recording: "w12-empty" }
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
  ...resumeRows(kept),
  torn(kept),
  renamed(kept, forking),
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
  ...stops("codex", mayExecute),
  ...hostilePrompts,
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
  {
    name: "a prompt: 2 MB, which is more than Codex takes",
    cell: failed("UNSUPPORTED"),
    play: (bench) => bench.run({ task: twoMegabytes }),
    also: async (told, bench) => {
      assert.include(told.result?.error?.message, "1048576")
      assert.deepStrictEqual(await bench.prompts(), [])
    }
  },
  twoRuns,
  ...wrongPrograms("codex", "Codex", '[ "$1" != app-server ]'),
  {
    name: "a Codex that is not the tested version",
    cell: success,
    play: (bench) =>
      bench.run({ task: "hello", program: script(bench, "codex", `[ "$1" = --version ] && echo "codex-cli 0.999.0" && exit\nexec "$REAL" "$@"`) }),
    also: (told) =>
      assert.deepStrictEqual(
        told.events.flatMap((event) => event.type === "notice" && event.kind === "untested_version" ? [event.message] : []),
        ["Codex 0.999.0 is not the version that is tested, 0.171.0"]
      )
  }
]
