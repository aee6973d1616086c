/** The rows that every CLI's verdict table has, with what differs as arguments. */
import type { Failure } from "@turnpike/contract"
import { assert } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { programOf, type RealCli } from "./realCli.ts"
import { type Bench, eventually, type Told } from "./turnpikeRun.ts"
import { answerTo, cancelled, failed, firstText, refused, type Row, success, summary } from "./verdictTable.ts"

/** Whether the command `touch ran` of a tool has run. */
export const hasRun = (bench: Bench): boolean => fs.existsSync(path.join(bench.place.work, "ran"))
export const touch = { type: "tool", command: "touch ran" } as const
export const touchAndTell = { type: "tool", command: "touch ran && echo done" } as const

/** A program of the row's own, as a script. `$REAL` in it is the CLI. */
export const script = (bench: Bench, cli: RealCli, body: string, interpreter = "/bin/sh"): string => {
  const file = path.join(bench.place.home, `${cli}-of-a-row`)
  fs.writeFileSync(file, `#!${interpreter}\nREAL='${programOf(cli)}'\n${body}\n`, { mode: 0o755 })
  return file
}

/** Signals the CLI's own process, found by its path and first argument: not what contains it. Answers how many there were. */
const signal = (bench: Bench, cli: RealCli, argument: string, name: NodeJS.Signals): number => {
  const own = bench.processes().filter(({ command }) => command.startsWith(`${programOf(cli)} ${argument}`))
  for (const { pid } of own) process.kill(pid, name)
  return own.length
}

export const kill = (bench: Bench, cli: RealCli, argument: string): void => {
  signal(bench, cli, argument, "SIGKILL")
}

export const status = (code: number, error: Failure.FailureCode): Row => ({
  name: `the service answers ${code}`,
  cell: failed(error),
  play: (bench) => bench.run({ task: "hello", scenario: { type: "status", status: code } }),
  also: (told) => assert.strictEqual(told.result?.error?.http_status, code)
})

export const tooLong: Row = {
  name: "the conversation is too long for the model",
  cell: failed("CONTEXT_WINDOW_EXCEEDED"),
  play: (bench) => bench.run({ task: "hello", scenario: { type: "context_too_long" } })
}

export const reset: Row = {
  name: "the connection is reset",
  cell: failed("TRANSPORT"),
  play: (bench) => bench.run({ task: "hello", scenario: { type: "reset" } })
}

export const outputLimit: Row = {
  name: "the answer reaches the model's output limit",
  cell: failed("MAX_TOKENS"),
  play: (bench) => bench.run({ task: "hello", scenario: { type: "max_tokens" } }),
  also: (told) => assert.deepStrictEqual(told.result?.verdict, { type: "max-tokens" })
}

export const refusal: Row = {
  name: "the model refuses",
  cell: failed("REFUSAL"),
  play: (bench) => bench.run({ task: "hello", scenario: { type: "refusal" } }),
  also: (told) => assert.deepStrictEqual(told.result?.verdict, { type: "refusal" })
}

export const empty: Row = {
  name: "the answer is empty",
  cell: failed("EMPTY_RESPONSE"),
  play: (bench) => bench.run({ task: "hello", scenario: { type: "empty" } })
}

export const secondTurn = (cli: RealCli): Row => ({
  name: "a second turn of a session",
  cell: success,
  play: async (bench) => {
    await bench.run({ task: "first", args: ["--session=one"] })
    return bench.run({ task: "second", args: ["--session=one"] })
  },
  also: (told) => {
    assert.strictEqual(summary(told), answerTo("first", "second"))
    assert.deepInclude(told.result?.session, { id: "one", harness: cli, resumed: "native", turn: 2 })
  }
})

/** `end` kills the CLI once the first text was told. */
export const killed = (product: string, end: (bench: Bench) => void): Row => ({
  name: `${product} is killed in the middle of a turn`,
  cell: failed("HARNESS_FAILED"),
  play: (bench) => bench.run({ task: "first", scenario: { type: "hang" }, args: ["--session=one"], onEvent: firstText(() => end(bench)) }),
  also: async (_, bench) => {
    const next = await bench.run({ task: "second", args: ["--session=one"] })
    assert.deepStrictEqual([next.exit, summary(next)], [0, answerTo("first", "second")])
  }
})

/** Signals the run once a tool of it runs for sure. CLIs refuse a bare sleep; this tool says something and does not end. */
const signalInTool = async (bench: Bench, args: ReadonlyArray<string>, signals: ReadonlyArray<NodeJS.Signals>, before = () => {}): Promise<Told> => {
  let send: (name: NodeJS.Signals) => void = () => {}
  const run = bench.run({
    task: "run it",
    scenario: { type: "tool", command: "echo started; sleep 300" },
    args,
    onEvent: (_, signal) => {
      send = signal
    }
  })
  await eventually("the tool", bench.processes, (all) => all.some(({ command }) => command === "sleep 300"))
  before()
  for (const [index, name] of signals.entries()) {
    if (index > 0) await new Promise((resolve) => setTimeout(resolve, 20))
    send(name)
  }
  return run
}

/** All ways in which a turn is stopped from outside. `mayExecute` are the flags with which a tool runs unasked. */
export const stops = (cli: RealCli, mayExecute: ReadonlyArray<string>, limit = 3): ReadonlyArray<Row> => [
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
  { name: "Ctrl-C while a tool runs", cell: cancelled("graceful"), play: (bench) => signalInTool(bench, mayExecute, ["SIGINT"]) },
  {
    name: "Ctrl-C twice while a tool runs",
    cell: cancelled("hard"),
    // Frozen, so that it does not end its turn before the second one comes.
    play: (bench) => signalInTool(bench, mayExecute, ["SIGINT", "SIGINT"], () => assert.isAbove(signal(bench, cli, "", "SIGSTOP"), 0))
  },
  {
    name: "the time limit",
    cell: { reason: "timeout", success: false, exit: 3, error: "TIME_LIMIT" },
    play: (bench) => bench.run({ task: "hello", scenario: { type: "hang" }, args: [`--timeout=${limit}`] })
  }
]

/** What is no longer one prompt: 2 MB. */
export const twoMegabytes = "0123456789abcde\n".repeat(131_072).trimEnd()

/** A prompt that has to arrive as it is, and to do nothing but be one. */
export const hostile = (name: string, prompt: string, env: Readonly<Record<string, string>> = {}): Row => ({
  name: `a prompt: ${name}`,
  cell: success,
  play: (bench) => bench.run({ task: prompt, env }),
  also: async (told, bench) => {
    assert.deepStrictEqual(told.events.filter((event) => event.type === "tool_start" && event.kind === "tool"), [])
    const prompts = await bench.prompts()
    assert.isTrue(prompts.length === 1 && prompts[0] === prompt, `the model was sent ${JSON.stringify(prompts).slice(0, 400)}`)
  }
})

export const hostilePrompts: ReadonlyArray<Row> = [
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
  hostile("200 KB", "0123456789abcde\n".repeat(12_800).trimEnd())
]

export const twoRuns: Row = {
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

const withRemedy = (told: Told): void => assert.match(told.stderr, /^ {2}what to do: \S/m)

/**
 * Programs that are not the CLI, or not in a state to be it. `asked` is the condition, in the
 * shell, under which the CLI is only asked something and no session begins.
 */
export const wrongPrograms = (cli: RealCli, product: string, asked: string): ReadonlyArray<Row> => [
  ...["/bin/cat", "/bin/true"].map((program): Row => ({
    name: `${program} in place of ${product}`,
    cell: refused("HARNESS_NOT_A_HARNESS"),
    play: (bench) => bench.run({ task: "hello", program }),
    also: withRemedy
  })),
  {
    name: "a program that says something else when it is asked what it is",
    cell: refused("HARNESS_NOT_A_HARNESS"),
    play: (bench) => bench.run({ task: "hello", program: script(bench, cli, "echo '{\"garbage\": sk-scripted-key-of-the-real-test'; exit 3") }),
    also: withRemedy
  },
  {
    name: "a program that says nothing when it is asked what it is",
    cell: refused("HARNESS_NOT_A_HARNESS"),
    play: (bench) => bench.run({ task: "hello", program: script(bench, cli, "exec sleep 300") }),
    also: (told) => {
      withRemedy(told)
      assert.include(told.stderr, "did not answer in time")
    }
  },
  {
    name: "there is no program",
    cell: refused("HARNESS_NOT_FOUND"),
    play: (bench) => bench.run({ task: "hello", program: "/no/such/program" }),
    also: (told) => assert.include(told.stderr, "npm install -g ")
  },
  {
    name: `${product} is killed at its start`,
    cell: failed("HANDSHAKE_FAILED"),
    play: (bench) => bench.run({ task: "hello", program: script(bench, cli, `${asked} && exec "$REAL" "$@"\nkill -KILL $$`) }),
    // Who contains it may see the code that a shell makes of the signal.
    also: (told) => assert.match(told.result?.error?.message ?? "", /was ended by SIGKILL|exited with code 137/)
  },
  {
    name: `${product} says something else than it should at its start, and ends`,
    cell: failed("HANDSHAKE_FAILED"),
    play: (bench) => bench.run({ task: "hello", program: script(bench, cli, `${asked} && exec "$REAL" "$@"\necho 'no, thank you'; exit 9`) }),
    also: (told) => assert.include(told.result?.error?.message, "exited with code 9 before it was ready")
  }
]
