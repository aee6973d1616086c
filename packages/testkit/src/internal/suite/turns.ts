/** Cases about turns: their endings, their failures, and what the program writes. */
import { TurnEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as assert from "node:assert/strict"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Situation from "../../Situation.ts"
import * as Bench from "./bench.ts"
import type { Case } from "./case.ts"

/** Prompts that a careless adapter changes, loses, or takes for something else. */
export const hostilePrompts: ReadonlyArray<string> = [
  "-v is not a flag",
  "--help",
  "--",
  "quotes ' \" ` and \\ backslash",
  "two\nlines\r\nand a tab\t.",
  "  white space around  ",
  "$(touch gone) `touch gone` ${HOME} %PATH% ; rm -rf /",
  "{\"type\":\"interrupt\"}",
  "emoji 😀, combining e\u0301, right to left \u202e, separators \u2028 and \u2029",
  "null \u0000 inside",
  "/clear",
  "/help me",
  "@README.md",
  "!ls",
  "#note",
  `long ${"0123456789".repeat(20_000)}`,
  `longer ${"é ".repeat(700_000)}end`
]

const chunksOf = (events: ReadonlyArray<TurnEvent.TurnEvent>): ReadonlyArray<string> =>
  events.flatMap((event) => (event.type === "assistant/chunk" && event.data.kind === "text" ? [event.data.text] : []))

/** A late word was told as such, and no word of it is among those of the turn. */
const assertLate = (events: ReadonlyArray<TurnEvent.TurnEvent>, answer: string): void => {
  assert.ok(Bench.notices(events).includes("late_frame"), `a late frame is told: ${JSON.stringify(Bench.notices(events))}`)
  const chunks = chunksOf(events)
  if (chunks.length > 0) assert.equal(chunks.join(""), answer, "a late word is no word of another turn")
  const whole = events.flatMap((event) => (event.type === "assistant/message" ? [event.data.text] : []))
  assert.equal(whole.some((text) => text.includes("too late")), false, "a late word is no word of another turn")
}

const assertAborted = (end: TurnEvent.TurnEnd["data"]) => assert.equal(end.stop_reason, "aborted")

export const cases: ReadonlyArray<Case> = [
  {
    name: "a turn ends once, its ending is last, and its answer is whole",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("echo")
        const { end, events, output } = yield* Bench.turn(session, "hello")
        assert.equal(end.stop_reason, "completed")
        assert.deepEqual(Bench.prompts(output.text), ["hello"])
        const first = (types: ReadonlyArray<TurnEvent.TurnEvent["type"]>) => events.findIndex((event) => types.includes(event.type))
        assert.ok(first(["session/bound"]) >= 0, "the session is bound")
        assert.ok(first(["session/bound"]) < first(["assistant/chunk", "assistant/message"]), "the session is bound before anything of the model")
        const chunks = chunksOf(events)
        if (chunks.length > 0) assert.equal(chunks.join(""), output.text)
      })
  },
  {
    name: "prompts arrive byte for byte, whatever they look like",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("echo")
        for (const prompt of hostilePrompts) {
          const { output } = yield* Bench.turn(session, prompt)
          const arrived = Bench.prompts(output.text).at(-1)
          assert.ok(arrived === prompt, `${JSON.stringify(prompt.slice(0, 60))} arrived as ${JSON.stringify(arrived?.slice(0, 60))}`)
        }
        assert.equal(fs.existsSync(path.join(bench.work, "gone")), false, "no shell has read a prompt")
      })
  },
  {
    name: "turns of one session share its context",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("echo")
        yield* Bench.turn(session, "first")
        const { output } = yield* Bench.turn(session, "second")
        assert.deepEqual(Bench.prompts(output.text), ["first", "second"])
      })
  },
  {
    name: "a prompt waits while a turn runs",
    needs: ["streams"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("streams")
        const first = yield* Bench.watch(session, Situation.promptOf("streams"), Bench.isText)
        const second = yield* Bench.start(session, "second")
        yield* Effect.yieldNow
        assert.deepEqual(second.events, [])
        yield* session.interrupt
        assertAborted(yield* Bench.ended(first))
        const end = yield* Bench.ended(second)
        assert.equal(Bench.prompts(end.text).at(-1), "second")
      })
  },
  {
    name: "an interrupt before any word ends the turn as aborted",
    needs: ["silent"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("silent")
        const atOnce = yield* Bench.start(session, Situation.promptOf("silent"))
        yield* session.interrupt
        assertAborted(yield* Bench.ended(atOnce))
        const later = yield* Bench.start(session, Situation.promptOf("silent"))
        // The program has the prompt when it has said what it always says, or a second later where it says nothing.
        yield* Effect.timeoutOption(Bench.eventually("the first event", () => later.events.length, (count) => count > 0), "1 second")
        yield* session.interrupt
        assertAborted(yield* Bench.ended(later))
      })
  },
  {
    name: "an interrupt while it streams ends the turn as aborted and leaves the session usable",
    needs: ["streams"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("streams")
        const watched = yield* Bench.watch(session, Situation.promptOf("streams"), Bench.isText)
        yield* session.interrupt
        yield* session.interrupt
        assertAborted(yield* Bench.ended(watched))
        const { output } = yield* Bench.turn(session, "after")
        const expected = bench.harness.capabilities.interrupt_keeps_history === "unsupported"
          ? ["after"]
          : [Situation.promptOf("streams"), "after"]
        assert.deepEqual(Bench.prompts(output.text), expected)
      })
  },
  {
    name: "an interrupt while no turn runs does nothing",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("echo")
        yield* session.interrupt
        yield* Bench.turn(session, "one")
        yield* session.interrupt
        const { end, output } = yield* Bench.turn(session, "two")
        assert.equal(end.stop_reason, "completed")
        assert.deepEqual(Bench.prompts(output.text), ["one", "two"])
      })
  },
  {
    name: "a program that dies in the middle of a turn fails it, with its last words and without credentials",
    needs: ["dies"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("dies")
        const { error, events } = yield* Bench.failingTurn(session, Situation.promptOf("dies"))
        assert.equal(error.reason._tag, "Exec")
        assert.ok(error.message.includes("something broke inside"), `the failure carries standard error: ${error.message}`)
        assert.equal(error.message.includes(Situation.secret), false, "credentials are taken out")
        assert.ok(events.some(Bench.isText), "what it had said stays")
        const { events: after, output } = yield* Bench.turn(session, "after")
        assert.equal(Bench.prompts(output.text).at(-1), "after")
        if (bench.harness.capabilities.resume !== "unsupported") {
          assert.deepEqual(Bench.prompts(output.text), [Situation.promptOf("dies"), "after"])
          assert.ok(Bench.notices(after).includes("restarted"), "the new start is told")
        }
      })
  },
  {
    name: "a program that exits with 0 without ending its turn has failed",
    needs: ["exits"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("exits")
        const { error } = yield* Bench.failingTurn(session, Situation.promptOf("exits"))
        assert.ok(["Exec", "NoTerminal"].includes(error.reason._tag), `it is ${error.reason._tag}`)
      })
  },
  {
    name: "a failure that the program reports is typed, and the session stays usable",
    needs: ["fails"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("fails")
        const { error } = yield* Bench.failingTurn(session, Situation.promptOf("fails"))
        assert.deepEqual([error.reason._tag, error.failure.code, error.failure.retryable], ["Reported", "OVERLOADED", true])
        const { end } = yield* Bench.turn(session, "after")
        assert.equal(end.stop_reason, "completed")
      })
  },
  ...(["cut", "refuses"] as const).map((situation): Case => ({
    name: situation === "cut" ? "an answer that was cut is not a completed one" : "a refusal is not an answer",
    needs: [situation],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open(situation)
        const { end } = yield* Bench.turn(session, Situation.promptOf(situation))
        assert.equal(end.stop_reason, situation === "cut" ? "max-tokens" : "refusal")
      })
  })),
  {
    name: "usage is that of the turn, not of the session",
    needs: ["echo"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("echo")
        for (const prompt of ["one", "two"]) {
          const { output: { usage } } = yield* Bench.turn(session, prompt)
          if (bench.harness.capabilities.usage === "unsupported") assert.deepEqual(usage.tokens, { source: "unavailable" })
          else {
            assert.deepEqual(
              [usage.tokens.source, usage.tokens.input_tokens, usage.tokens.output_tokens, usage.tokens.cache_read_tokens],
              ["reported", 120, 30, 100]
            )
          }
          if (bench.harness.capabilities.cost === "unsupported") assert.deepEqual(usage.cost, { source: "unavailable" })
          else {
            assert.notEqual(usage.cost.source, "unavailable")
            assert.equal(usage.cost.usd?.toFixed(6), "0.250000")
          }
        }
      })
  },
  {
    name: "usage that nobody reported is unavailable, never 0",
    needs: ["no_usage"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("no_usage")
        const { output } = yield* Bench.turn(session, Situation.promptOf("no_usage"))
        assert.deepEqual(output.usage.tokens, { source: "unavailable" })
      })
  },
  {
    name: "a line that is no frame is told, and nothing beside it is lost",
    needs: ["garbage"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("garbage")
        const { events, output } = yield* Bench.turn(session, Situation.promptOf("garbage"))
        assert.equal(output.text, "still here")
        const lines = events.flatMap((event) =>
          event.type === "notice" && event.data.kind === "unparsed_line" ? [Buffer.from(event.data.bytes_base64 ?? "", "base64")] : []
        )
        // Where frames are no lines, what stands between two of them is one notice.
        assert.deepEqual(lines.flatMap((line) => line.toString("latin1").split("\n")).filter((line) => line !== ""), [
          "Warning: a banner on standard output",
          "\u00e4",
          "not json",
          "\u00bb\u00b6"
        ])
        const chunks = chunksOf(events)
        if (chunks.length > 0) assert.equal(chunks.join(""), "still here")
      })
  },
  {
    name: "a frame of an unknown kind is told, and the turn goes on",
    needs: ["unknown_frame"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("unknown_frame")
        const { events, output } = yield* Bench.turn(session, Situation.promptOf("unknown_frame"))
        assert.equal(output.text, "still here")
        const raw = events.flatMap((event) => (event.type === "notice" && event.data.kind === "unknown_frame" ? [event.data.raw] : []))
        assert.deepEqual(raw, [{ type: "a_frame_of_the_future", news: 1 }])
      })
  },
  {
    name: "what comes after a turn's ending is told in the next one, and is no part of its answer",
    needs: ["late_frame"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("late_frame")
        const first = yield* Bench.turn(session, Situation.promptOf("late_frame"))
        assert.equal(first.output.text, "done")
        yield* Bench.eventually("the late word", () => fs.existsSync(path.join(bench.work, "late")), (there) => there)
        const { events, output } = yield* Bench.turn(session, "next")
        assert.equal(Bench.prompts(output.text).at(-1), "next")
        assertLate(events, output.text)
      })
  },
  {
    name: "what comes of a turn that has ended is told, and is no part of the one that runs",
    needs: ["late_in_turn"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("late_in_turn")
        const first = yield* Bench.turn(session, Situation.promptOf("late_in_turn"))
        assert.equal(first.output.text, "done")
        const { end, events, output } = yield* Bench.turn(session, Situation.meanwhile)
        assert.deepEqual([end.stop_reason, output.text], ["completed", "I go on"])
        assertLate(events, output.text)
      })
  },
  {
    name: "characters that are cut into bytes arrive whole",
    needs: ["bytewise"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("bytewise")
        const { events, output } = yield* Bench.turn(session, Situation.promptOf("bytewise"))
        assert.equal(output.text, Situation.bytewiseText)
        assert.deepEqual(Bench.notices(events).filter((kind) => kind === "unparsed_line"), [])
      })
  },
  {
    name: "a line over every bound is told, and the turn goes on",
    needs: ["huge_line"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("huge_line")
        const { events, output } = yield* Bench.turn(session, Situation.promptOf("huge_line"))
        assert.equal(output.text, "still here")
        assert.ok(Bench.notices(events).some((kind) => kind === "oversize_line" || kind === "unparsed_line"))
      })
  }
]
