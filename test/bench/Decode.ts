/**
 * How many frames of a harness become Turnpike's events in a second of CPU: the recorded bytes
 * of each CLI through the same splitter, reader and translation that a session uses, without a
 * process and without waiting.
 *
 * Two mixtures. `recorded` is a conversation of two turns as it was recorded, with all that a CLI
 * tells at the beginning and end of a turn. `long answer` has the recorded piece of an answer a
 * thousand times in each turn, which is what a stream consists of while a model talks.
 */
import { ContentLength, type Dialect, Frame } from "@turnpike/harness"
import { ClaudeConversation } from "@turnpike/harness-claude"
import { CodexConversation, CodexWire } from "@turnpike/harness-codex"
import { CopilotConversation } from "@turnpike/harness-copilot"
import { Prompt } from "@turnpike/kernel"
import { LineSplitter } from "@turnpike/process"
import * as Result from "effect/Result"
import * as fs from "node:fs"
import * as Claude from "../../packages/harness-claude/test/support/translate.ts"
import * as Codex from "../../packages/harness-codex/test/support/translate.ts"
import * as Copilot from "../../packages/harness-copilot/test/support/translate.ts"
import * as Benchmark from "./support/Benchmark.ts"

/** As much as one read of a pipe answers at most. */
const chunkBytes = 65_536

/** One conversation of an adapter: what a frame comes to. */
interface Listener {
  readonly hear: (frame: Frame.Frame) => ReadonlyArray<Dialect.Output>
}

interface Adapter {
  readonly name: string
  readonly recording: string
  readonly bytes: () => Uint8Array
  readonly framing: "lines" | "content-length"
  /** Begins a conversation that gives the prompts where the recording has them. */
  readonly listen: () => Listener
  /** Whether a frame is a piece of the answer. */
  readonly isPiece: (frame: Frame.Frame) => boolean
  readonly toText: (outputs: ReadonlyArray<Dialect.Output>) => string
  readonly translation: URL
}

const at = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((inner, key) => typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>)[key] : undefined, value)

const prompts = ["first", "/clear"]

const claude: Adapter = {
  name: "claude",
  recording: "w1-two-turns",
  bytes: () => Claude.bytesOf("w1-two-turns"),
  framing: "lines",
  listen: () => {
    let state = ClaudeConversation.initial(Claude.asked())
    let asked = 0
    return {
      hear: (frame) => {
        let before: ReadonlyArray<Dialect.Output> = []
        if (frame["type"] === "command_lifecycle" && frame["state"] === "queued") {
          const begun = ClaudeConversation.prompt(state, Prompt.fromText(prompts[asked++] ?? ""))
          state = begun.state
          before = begun.outputs
        }
        const heard = ClaudeConversation.frame(state, frame)
        state = heard.state
        return before.length === 0 ? heard.outputs : [...before, ...heard.outputs]
      }
    }
  },
  isPiece: (frame) => at(frame, "event", "delta", "type") === "text_delta",
  toText: Claude.toText,
  translation: new URL("../../packages/harness-claude/test/translations/w1-two-turns.txt", import.meta.url)
}

const codex: Adapter = {
  name: "codex",
  recording: "w1-two-turns",
  bytes: () => Codex.bytesOf("w1-two-turns"),
  framing: "lines",
  listen: () => {
    let state: CodexConversation.State | undefined
    const texts = Codex.sentOf("w1-two-turns").flatMap(({ frame: { method, params } }) =>
      method === "turn/start" ? [((at(params, "input") ?? []) as ReadonlyArray<{ readonly text: string }>).map(({ text }) => text).join("")] : []
    )
    const hear = (known: CodexConversation.State, frame: Frame.Frame): ReadonlyArray<Dialect.Output> => {
      const heard = CodexConversation.frame(known, frame)
      state = heard.state
      // In the recording the second prompt follows the end of the first turn.
      return frame["method"] === "turn/completed" && texts.length > 0 ? [...heard.outputs, ...ask(state)] : heard.outputs
    }
    const ask = (known: CodexConversation.State): ReadonlyArray<Dialect.Output> => {
      const begun = CodexConversation.prompt(known, Prompt.fromText(texts.shift() ?? ""))
      state = begun.state
      return begun.outputs
    }
    return {
      hear: (frame) => {
        if (frame["id"] === "initialize") return []
        if (frame["id"] !== "thread") return state === undefined ? [] : hear(state, frame)
        const read = CodexWire.readThread(frame["result"])
        if (Result.isFailure(read)) throw new Benchmark.Invalid("the recording of codex begins no thread")
        return ask(CodexConversation.initial(Codex.asked(), read.success))
      }
    }
  },
  isPiece: (frame) => frame["method"] === "item/agentMessage/delta",
  toText: Codex.toText,
  translation: new URL("../../packages/harness-codex/test/translations/w1-two-turns.txt", import.meta.url)
}

const copilot: Adapter = {
  name: "copilot",
  recording: "two-turns",
  bytes: () => Copilot.bytesOf("two-turns"),
  framing: "content-length",
  listen: () => {
    let state = CopilotConversation.initial(Copilot.asked(), "gpt-5.4")
    let answers = 0
    let asked = 0
    return {
      hear: (frame) => {
        const isAnswer = frame["method"] === undefined
        if (isAnswer && answers++ < 2) return []
        let heard: Frame.Frame = frame
        let before: ReadonlyArray<Dialect.Output> = []
        if (isAnswer && at(frame, "result", "messageId") !== undefined) {
          const begun = CopilotConversation.prompt(state, Prompt.fromText(prompts[asked++] ?? ""))
          state = begun.state
          before = begun.outputs
          heard = { ...frame, id: state.turn?.sendId ?? "none" }
        }
        const step = CopilotConversation.frame(state, heard)
        state = step.state
        return before.length === 0 ? step.outputs : [...before, ...step.outputs]
      }
    }
  },
  isPiece: (frame) => at(frame, "params", "event", "type") === "assistant.message_delta",
  toText: Copilot.toText,
  translation: new URL("../../packages/harness-copilot/test/translations/two-turns.txt", import.meta.url)
}

const adapters: ReadonlyArray<Adapter> = [claude, codex, copilot]

/** Reads bytes in the chunks of a pipe. */
const received = (adapter: Adapter, bytes: Uint8Array, take: (frame: Frame.Frame) => void): void => {
  const each = (item: Frame.Received) => {
    if (item._tag !== "Frame") throw new Benchmark.Invalid(`the recording of ${adapter.name} holds something that is no frame`)
    take(item.frame)
  }
  if (adapter.framing === "content-length") {
    const decoder = ContentLength.decoder()
    for (let from = 0; from < bytes.length; from += chunkBytes) decoder.push(bytes.subarray(from, from + chunkBytes)).forEach(each)
    decoder.end().forEach(each)
    return
  }
  let splitter = LineSplitter.initial()
  for (let from = 0; from < bytes.length; from += chunkBytes) {
    const [next, lines] = LineSplitter.push(splitter, bytes.subarray(from, from + chunkBytes))
    splitter = next
    for (const line of lines) Frame.fromLine(line).forEach(each)
  }
  for (const line of LineSplitter.end(splitter)) Frame.fromLine(line).forEach(each)
}

const encode = (adapter: Adapter, frames: ReadonlyArray<Frame.Frame>): Uint8Array =>
  Buffer.from(frames.map((frame) => adapter.framing === "lines" ? `${JSON.stringify(frame)}\n` : ContentLength.encode(frame)).join(""))

/** The recording with each turn's first piece said so many times. */
const longAnswer = (adapter: Adapter, times: number): Uint8Array => {
  const frames: Array<Frame.Frame> = []
  let said = false
  received(adapter, adapter.bytes(), (frame) => {
    const isPiece = adapter.isPiece(frame)
    for (let left = isPiece && !said ? times : 1; left > 0; left--) frames.push(frame)
    said = isPiece
  })
  return encode(adapter, frames)
}

interface Pass {
  readonly frames: number
  readonly events: number
}

const pass = (adapter: Adapter, bytes: Uint8Array): Pass => {
  const listener = adapter.listen()
  let frames = 0
  let events = 0
  received(adapter, bytes, (frame) => {
    frames++
    for (const output of listener.hear(frame)) if (output._tag === "Event") events++
  })
  return { frames, events }
}

/** What every reader of such bytes has to pay: cutting, decoding and parsing them. */
const parseOnly = (adapter: Adapter, bytes: Uint8Array): Pass => {
  let frames = 0
  received(adapter, bytes, () => frames++)
  return { frames, events: 0 }
}

/**
 * Frames and events a second of CPU, of as many passes as fill the time. CPU and not the clock, so that
 * it is one core's worth wherever the process has to share it; the collector's own threads count, too.
 */
const speed = (work: () => Pass, milliseconds: number) => {
  let frames = 0
  let events = 0
  const from = process.cpuUsage()
  let elapsed = 0
  while (elapsed < milliseconds) {
    const one = work()
    frames += one.frames
    events += one.events
    const { system, user } = process.cpuUsage(from)
    elapsed = (system + user) / 1000
  }
  return { frames: frames / elapsed * 1000, events: events / elapsed * 1000 }
}

const goal: Benchmark.Goal = { kind: "at least", value: 250_000 }

export const benchmark: Benchmark.Benchmark = {
  name: "decode",
  summary: "recorded frames of each CLI to Turnpike's events, a second of one core",
  needs: [],
  run: async ({ quick, say, undisturbed }) => {
    const check = Benchmark.checker()
    const rounds = quick ? 2 : 9
    const milliseconds = quick ? 100 : 1000
    const mixtures = adapters.flatMap((adapter) => [
      { adapter, mixture: "recorded", bytes: adapter.bytes() },
      { adapter, mixture: "long answer", bytes: longAnswer(adapter, 1000) }
    ])
    for (const adapter of adapters) {
      const listener = adapter.listen()
      const outputs: Array<Dialect.Output> = []
      received(adapter, adapter.bytes(), (frame) => void outputs.push(...listener.hear(frame)))
      check.equal(`what the recording of ${adapter.name} comes to`, adapter.toText(outputs), fs.readFileSync(adapter.translation, "utf8"))
    }
    for (const { adapter, bytes, mixture } of mixtures) {
      const once = pass(adapter, bytes)
      if (mixture === "long answer") {
        const short = pass(adapter, adapter.bytes())
        check.equal(`the events of a long answer of ${adapter.name}`, once.events - short.events, once.frames - short.frames)
      }
    }
    const samples: Record<string, { readonly frames_per_s: Array<number>; readonly events_per_s: Array<number>; readonly parse_only_frames_per_s: Array<number> }> = {}
    // Taking turns, so that a drift of the machine's speed meets all alike; the first round warms up.
    for (let round = 0; round <= rounds; round++) {
      say(`decode: round ${round} of ${rounds}`)
      for (const { adapter, bytes, mixture } of mixtures) {
        const { parse, whole } = await undisturbed(async () => ({
          whole: speed(() => pass(adapter, bytes), milliseconds),
          parse: speed(() => parseOnly(adapter, bytes), milliseconds / 2)
        }))
        if (round === 0) continue
        const kept = samples[`${adapter.name}, ${mixture}`] ??= { frames_per_s: [], events_per_s: [], parse_only_frames_per_s: [] }
        kept.frames_per_s.push(Math.round(whole.frames))
        kept.events_per_s.push(Math.round(whole.events))
        kept.parse_only_frames_per_s.push(Math.round(parse.frames))
      }
    }
    const figures = Object.entries(samples).flatMap(([name, { frames_per_s, parse_only_frames_per_s }]) => [
      Benchmark.figure(`${name}: decode and normalise`, "frames/s", frames_per_s, goal),
      Benchmark.figure(`${name}: split and JSON.parse alone`, "frames/s", parse_only_frames_per_s)
    ])
    return { figures, samples, checks: check.count() }
  }
}
