import { assert, describe, it } from "@effect/vitest"
import { Screen, Style, TerminalChannel, TerminalPrompts, TurnText } from "@turnpike/channel-terminal"
import { Failure, TurnEvent } from "@turnpike/contract"
import { type AgentSession, SessionDecorator, SessionLoop, TurnError } from "@turnpike/kernel"
import { Effect, Stream } from "effect"
import * as Collected from "./support/Collected.ts"

const capabilities = {
  resume: "enforced",
  chosen_session_id: "enforced",
  steering: "unsupported",
  tool_allow_list: "enforced",
  permission_requests: "enforced",
  system_prompt: "enforced",
  model_choice: "enforced",
  usage: "enforced",
  cost: "enforced",
  structured_output: "unsupported",
  interrupt_keeps_history: "enforced",
  isolation: "enforced",
  background_tasks: "enforced"
} as const

const line = (text: string): TerminalPrompts.Reading => ({ _tag: "Line", text })
const interrupt = (wasEmpty = true): TerminalPrompts.Reading => ({ _tag: "Interrupt", wasEmpty })

/** Answers a prompt with itself; `fail` fails. */
const echo = (prompts: Array<string>): AgentSession.AgentSession => ({
  sessionId: "s-1",
  interrupt: Effect.void,
  runTurn: ({ text }) => {
    prompts.push(text)
    if (text === "fail") return Stream.fail(TurnError.reported(Failure.make("RATE_LIMIT", "too many requests")))
    const answer = `you said ${text}`
    return Stream.make(
      TurnEvent.make("assistant/chunk", { kind: "text", text: answer }),
      TurnEvent.make("assistant/message", { text: answer }),
      TurnEvent.make("harness/end", {
        stop_reason: text === "refuse" ? "refusal" : "completed",
        text: answer,
        worked: false,
        denials: [],
        background: []
      })
    )
  }
})

/** Holds a conversation of the given readings and answers what it came to. */
const converse = (readings: ReadonlyArray<TerminalPrompts.Reading>) =>
  Effect.gen(function*() {
    const out = Collected.make(false)
    const err = Collected.make(false)
    const prompts: Array<string> = []
    const left = [...readings]
    let interrupts = 0
    const channel = TerminalChannel.make({
      read: () => Effect.sync(() => left.shift() ?? { _tag: "End" as const }),
      screen: Screen.make(out.outlet, err.outlet),
      text: TurnText.make(Style.plain),
      opening: { sessionId: "s-1", harness: "scripted", turnpikeVersion: "0.1.0", cwd: "/", capabilities, turn: 1 },
      interrupted: Effect.sync(() => interrupts++)
    })
    const session = echo(prompts)
    yield* SessionLoop.runSessionLoop(
      SessionDecorator.resilient({
        ...session,
        runTurn: (prompt) => Stream.tapError(session.runTurn(prompt), channel.turnFailed)
      }),
      channel
    )
    return { out: out.text(), err: err.text(), prompts, interrupts, left: left.length, hasFailed: channel.hasFailed() }
  })

describe("TerminalChannel", () => {
  it.effect("tells a line that is no text, asks nothing of it, and goes on", () =>
    Effect.gen(function*() {
      const { err, hasFailed, prompts } = yield* converse([line("half \\"), { _tag: "Bad", why: "line 2 is not UTF-8 text" }, line("a")])
      assert.deepStrictEqual([err.split("\n")[0], hasFailed, prompts], ["line 2 is not UTF-8 text; nothing was asked", true, ["a"]])
    }))

  it.effect("runs line after line until the end of input", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* converse([line("one"), line(""), line("  "), line("two")]), {
        out: "you said one\nyou said two\n",
        err: "✓ completed · 0.0 s · usage unknown\n✓ completed · 0.0 s · usage unknown\n",
        prompts: ["one", "two"],
        interrupts: 0,
        left: 0,
        hasFailed: false
      })
    }))

  it.effect("joins lines that end in a backslash", () =>
    Effect.gen(function*() {
      const { prompts } = yield* converse([line("one\\"), line("\\"), line("two")])
      assert.deepStrictEqual(prompts, ["one\n\ntwo"])
    }))

  it.effect("leaves at /exit, and asks for nothing after it", () =>
    Effect.gen(function*() {
      const { left, prompts } = yield* converse([line("one"), line(" /exit "), line("two")])
      assert.deepStrictEqual({ left, prompts }, { left: 1, prompts: ["one"] })
    }))

  it.effect("tells a failed turn and goes on", () =>
    Effect.gen(function*() {
      const { err, hasFailed, out, prompts } = yield* converse([line("fail"), line("one")])
      const { remedy } = Failure.codes.RATE_LIMIT
      assert.deepStrictEqual({ hasFailed, out, prompts }, { hasFailed: true, out: "you said one\n", prompts: ["fail", "one"] })
      assert.strictEqual(
        err,
        `✗ too many requests\n  code: RATE_LIMIT\n  what to do: ${remedy}\n✗ error RATE_LIMIT · 0.0 s · usage unknown\n✓ completed · 0.0 s · usage unknown\n`
      )
    }))

  it.effect("does not take a refusal for a success", () =>
    Effect.gen(function*() {
      const { err, hasFailed } = yield* converse([line("refuse")])
      assert.deepStrictEqual({ err, hasFailed }, { err: "✗ refusal · 0.0 s · usage unknown\n", hasFailed: true })
    }))

  it.effect("leaves at the second Ctrl-C in a row on an empty line, not before", () =>
    Effect.gen(function*() {
      const once = yield* converse([interrupt(), line("one"), interrupt(false), interrupt(), line("two")])
      assert.deepStrictEqual({ prompts: once.prompts, interrupts: once.interrupts }, { prompts: ["one", "two"], interrupts: 0 })
      const twice = yield* converse([interrupt(), interrupt(), line("one")])
      assert.deepStrictEqual({ prompts: twice.prompts, interrupts: twice.interrupts, left: twice.left }, { prompts: [], interrupts: 1, left: 1 })
    }))

  it.effect("drops what was begun at Ctrl-C", () =>
    Effect.gen(function*() {
      const { prompts } = yield* converse([line("one\\"), interrupt(), line("two")])
      assert.deepStrictEqual(prompts, ["two"])
    }))
})
