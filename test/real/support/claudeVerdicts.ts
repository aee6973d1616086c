/**
 * The verdict table of Claude Code: what a run has to say of each thing that can
 * happen. The cells were written from recordings before they were run; where
 * Claude Code hides a fact, `hidden` says which.
 */
import { assert } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { noticesOf, write } from "./realFacts.ts"
import type { Bench } from "./turnpikeRun.ts"
import {
  empty, hasRun, hostile, hostilePrompts, kill, killed, outputLimit, refusal, reset, script, secondTurn, status, stops, tooLong, touch,
  touchAndTell, twoMegabytes, twoRuns, wrongPrograms
} from "./verdictRows.ts"
import { type Kept, renamed, resumeRows } from "./resumeRows.ts"
import { afterWritten, answerTo, failed, refused, type Row, success, summary } from "./verdictTable.ts"

const projects = (bench: Bench): string => path.join(bench.place.config, "projects")

const kept: Kept = {
  cli: "claude",
  product: "Claude Code",
  argument: "--print",
  histories: projects,
  lose: (bench) => fs.rmSync(projects(bench), { recursive: true }),
  mayForget: false,
  kills: [["the CLI", "named the session"], ["the CLI", "said a word"], ["Turnpike", "asked its model"]]
}

/** Claude Code, except that what it resumes it forks, which gives it a new id. */
const forking = (bench: Bench): string =>
  script(
    bench,
    "claude",
    `case " $* " in
  *" --resume="*) exec "$REAL" "$@" --fork-session ;;
  *) exec "$REAL" "$@" ;;
esac`
  )

/** A program that is Claude Code, except that it is always told to begin the same session. */
const fixedSession = (bench: Bench): string =>
  script(
    bench,
    "claude",
    `args=()
for argument in "$@"; do
  case "$argument" in
    --session-id=*) args+=("--session-id=5a0d4bb0-7ea0-4a5a-9d3c-3d1f0c7f5d11") ;;
    *) args+=("$argument") ;;
  esac
done
exec "$REAL" "\${args[@]}"`,
    "/bin/bash"
  )

export const rows: ReadonlyArray<Row> = [
  {
    name: "a plain turn",
    cell: success,
    play: (bench) => bench.run({ task: "hello" }),
    also: async (told, bench) => {
      assert.strictEqual(summary(told), answerTo("hello"))
      // What the model billed; how much Claude Code says around a prompt is its own affair.
      const billed = (await bench.lastRequest())?.usage
      assert.exists(billed)
      assert.deepStrictEqual(told.result?.usage.tokens, {
        source: "reported",
        input_tokens: billed.input + billed.cache_read + billed.cache_write,
        output_tokens: billed.output,
        cache_read_tokens: billed.cache_read,
        cache_write_tokens: billed.cache_write,
        reasoning_tokens: 0
      })
    }
  },
  secondTurn("claude"),
  killed("Claude Code", (bench) =>
    afterWritten(projects(bench), JSON.stringify("first"), () => kill(bench, "claude", "--print"))),
  {
    name: "a tool that is allowed",
    cell: success,
    play: (bench) =>
      bench.run({ task: "run it", scenario: touchAndTell, args: ["--allow-tool=execute"] }),
    also: (told, bench) => {
      assert.strictEqual(summary(told), "The tool answered: \"done\"")
      assert.isTrue(hasRun(bench))
      assert.deepStrictEqual(
        told.events.flatMap((event) => event.type === "tool_end" && event.kind === "tool" ? [[event.tool_name, event.success]] : []),
        [["Bash", true]]
      )
    }
  },
  {
    name: "a tool that is denied",
    cell: success,
    play: (bench) =>
      bench.run({ task: "run it", scenario: touch, args: ["--allow-tool=Bash(git *)"] }),
    also: (told, bench) => {
      assert.isFalse(hasRun(bench))
      assert.deepStrictEqual(told.result?.denials.map(({ tool_name }) => tool_name), ["Bash"])
      assert.deepStrictEqual(
        told.events.flatMap((event) => event.type === "permission_decision" ? [[event.decision, event.by]] : []),
        [["deny", "deny"]]
      )
    }
  },
  {
    name: "a tool that the user's settings allow and the allow-list does not",
    cell: success,
    play: (bench) => {
      fs.writeFileSync(path.join(bench.place.config, "settings.json"), JSON.stringify({ permissions: { allow: ["Bash"] } }))
      return bench.run({ task: "run it", scenario: touch, args: ["--allow-tool=Bash(git *)"] })
    },
    also: (told, bench) => {
      assert.isFalse(hasRun(bench))
      assert.deepStrictEqual(told.result?.denials.map(({ tool_name }) => tool_name), ["Bash"])
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
      assert.strictEqual(summary(told), "The tool answered: \"done\"")
      assert.isTrue(hasRun(bench))
    }
  },
  status(401, "INVALID_CREDENTIAL"),
  status(403, "PERMISSION_DENIED"),
  status(404, "MODEL_NOT_FOUND"),
  {
    ...status(429, "RATE_LIMIT"),
    hidden: { what: "the time after which the service would answer again", recording: "d-e429" }
  },
  status(529, "OVERLOADED"),
  status(500, "SERVER"),
  tooLong,
  {
    name: "the answer is cut off, and comes whole when it is asked for again",
    cell: success,
    hidden: {
      what: "that an answer was cut off; Claude Code asks again without streaming, and pieces that were told before do not count",
      recording: "w7-cut-then-whole"
    },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "cut" } })
  },
  {
    name: "the answer is cut off every time",
    cell: failed("TRANSPORT"),
    play: (bench) => bench.run({ task: "hello", scenario: { type: "cut", in: "any" } })
  },
  reset,
  {
    name: "the connection is refused",
    cell: failed("TRANSPORT"),
    // Nothing listens on the discard port.
    play: (bench) => bench.run({ task: "hello", env: { ANTHROPIC_BASE_URL: "http://127.0.0.1:9" } })
  },
  outputLimit,
  refusal,
  {
    ...empty,
    hidden: { what: "that anything is wrong; Claude Code reports success with an empty result", recording: "w10-empty" }
  },
  {
    name: "the stream is malformed, and the answer comes whole when it is asked for again",
    cell: success,
    hidden: {
      what: "that the stream was malformed; Claude Code asks again without streaming",
      recording: "w11-malformed-then-whole"
    },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "bad_json" } })
  },
  {
    name: "the stream is malformed every time",
    cell: failed("HARNESS_FAILED"),
    hidden: {
      what: "what kind of failure it is: the facts say `unknown`, only the message tells",
      recording: "w12-malformed"
    },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "bad_json", in: "any" } })
  },
  {
    name: "there is no key",
    cell: failed("INVALID_CREDENTIAL"),
    play: (bench) => bench.run({ task: "hello", env: { ANTHROPIC_API_KEY: undefined } })
  },
  ...resumeRows(kept),
  renamed(kept, forking),
  {
    name: "Claude Code says that the session's id is in use",
    cell: failed("SESSION_IN_USE"),
    play: async (bench) => {
      const program = fixedSession(bench)
      await bench.run({ task: "first", program })
      return bench.run({ task: "second", program })
    }
  },
  ...stops("claude", ["--allow-tool=execute", "--permission=allow-listed"]),
  ...hostilePrompts,
  hostile("2 MB", twoMegabytes),
  twoRuns,
  ...wrongPrograms("claude", "Claude Code", '[ "$1" = --version ]'),
  {
    name: "a configuration that cannot be read",
    cell: failed("HANDSHAKE_FAILED"),
    play: (bench) => {
      write(bench, "config/.claude.json", "{ broken")
      return bench.run({ task: "hello" })
    },
    also: (told) => assert.match(told.result?.error?.message ?? "", /^Claude Code cannot read its configuration: Configuration error in .*\.claude\.json/)
  },
  {
    name: "settings that cannot be read",
    cell: success,
    play: (bench) => {
      write(bench, "config/settings.json", "{ broken")
      return bench.run({ task: "hello" })
    },
    also: (told) => assert.match(noticesOf(told, "harness_note").join(), /settings\.json is no JSON object, and Claude Code goes on without it$/)
  },
  {
    name: "a Claude Code that is too old",
    cell: refused("HARNESS_PROTOCOL"),
    play: (bench) => bench.run({ task: "hello", program: script(bench, "claude", "echo '2.1.100 (Claude Code)'") }),
    also: (told) => assert.include(told.stderr, "what to do: Update Claude Code: `claude update`, or npm install -g @anthropic-ai/claude-code.")
  }
]
