/**
 * The verdict table of Copilot: what a run has to say of each thing that can
 * happen. The cells were written from recordings before they were run; where
 * Copilot hides a fact, `hidden` says which.
 */
import { assert } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import {
  empty, hasRun, hostile, hostilePrompts, kill, killed, outputLimit, refusal, reset, secondTurn, status, stops, tooLong, touch,
  touchAndTell, twoMegabytes, twoRuns, wrongPrograms
} from "./verdictRows.ts"
import { type Kept, resumeRows, torn } from "./resumeRows.ts"
import type { Bench } from "./turnpikeRun.ts"
import { afterWritten, answerTo, failed, refused, type Row, success, summary } from "./verdictTable.ts"

const sessionState = (bench: Bench): string => path.join(bench.place.config, "session-state")

const kept: Kept = {
  cli: "copilot",
  product: "Copilot",
  argument: "--headless",
  histories: sessionState,
  lose: (bench) => fs.rmSync(sessionState(bench), { recursive: true }),
  mayForget: true,
  kills: [["the CLI", "named the session"], ["the CLI", "said a word"], ["Turnpike", "asked its model"]]
}

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
  secondTurn("copilot"),
  killed("Copilot", (bench) =>
    afterWritten(sessionState(bench), "\"content\":\"first\"", () => kill(bench, "copilot", "--headless"))),
  {
    name: "a tool that is allowed",
    cell: success,
    play: (bench) =>
      bench.run({ task: "run it", scenario: touchAndTell, args: ["--allow-tool=execute"] }),
    also: (told, bench) => {
      assert.include(summary(told), "The tool answered: \"done\\n")
      assert.isTrue(hasRun(bench))
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
      bench.run({ task: "run it", scenario: touch, args: ["--allow-tool=bash(touch *)"] }),
    also: (_, bench) => assert.isTrue(hasRun(bench))
  },
  {
    name: "a tool that is denied",
    cell: success,
    play: (bench) =>
      bench.run({ task: "run it", scenario: touch, args: ["--allow-tool=bash(git *)"] }),
    also: (told, bench) => {
      assert.isFalse(hasRun(bench))
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
        scenario: touch,
        args: ["--allow-tool=bash(git *)", "--env=COPILOT_ALLOW_ALL=true"]
      }),
    also: (told, bench) => {
      assert.isFalse(hasRun(bench))
      assert.deepStrictEqual(told.result?.denials.map(({ tool_name }) => tool_name), ["bash"])
    }
  },
  {
    name: "a tool that is not on the allow-list is not offered",
    cell: success,
    play: (bench) => bench.run({ task: "run it", scenario: touch }),
    also: (told, bench) => {
      assert.isFalse(hasRun(bench))
      assert.include(summary(told), "I was offered no tool to run")
    }
  },
  {
    name: "all tools, dangerously",
    cell: success,
    play: (bench) =>
      bench.run({
        task: "run it",
        scenario: touchAndTell,
        args: ["--dangerous-all-tools"]
      }),
    also: (told, bench) => {
      assert.include(summary(told), "The tool answered: \"done\\n")
      assert.isTrue(hasRun(bench))
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
  tooLong,
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
  reset,
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
  outputLimit,
  refusal,
  empty,
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
  ...resumeRows(kept),
  torn(kept),
  ...stops("copilot", ["--allow-tool=execute", "--permission=allow-listed"], 4),
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
  ...hostilePrompts,
  hostile("2 MB", twoMegabytes, { COPILOT_PROVIDER_MAX_PROMPT_TOKENS: "2000000" }),
  {
    name: "a prompt of 2 MB for a model that does not take it",
    cell: failed("CONTEXT_WINDOW_EXCEEDED"),
    play: (bench) => bench.run({ task: twoMegabytes })
  },
  twoRuns,
  ...wrongPrograms("copilot", "Copilot", '[ "$1" = --version ]')
]
