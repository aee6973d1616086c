/**
 * What the scripted model answers, before any wire gives it a form.
 *
 * `plan` is pure: the same scenario, request and count give the same answer, so
 * that what a client saw can be computed from the record of what it sent.
 */
import type * as ModelRequest from "./ModelRequest.ts"
import type * as ModelScenario from "./ModelScenario.ts"
import * as ModelToolChoice from "./ModelToolChoice.ts"

/** `words` carry their own white space; joined they are the text. */
export type Part =
  | { readonly type: "thinking"; readonly words: ReadonlyArray<string> }
  | { readonly type: "text"; readonly words: ReadonlyArray<string> }
  | { readonly type: "tool_call"; readonly name: string; readonly input: Readonly<Record<string, unknown>> }

export type Stop = "end_turn" | "max_tokens" | "refusal" | "tool_use"

export interface ModelReply {
  readonly parts: ReadonlyArray<Part>
  readonly stop: Stop
}

/** A refusal to answer; `reason` decides the vendor's error type. */
export interface Failure {
  readonly status: number
  readonly reason: "status" | "context_too_long" | "malformed"
  readonly message?: string | undefined
  readonly retryAfterSeconds?: number | undefined
}

/** Where an answer stops being ordinary: before its first word, or after `words` of them. */
export interface Halt {
  readonly words: number
  readonly act: "hang" | "wait" | "cut" | "bad_json" | "error"
  readonly where: "stream" | "any"
}

export type Answer =
  | {
    readonly type: "reply"
    readonly reply: ModelReply
    /** Milliseconds after each word. */
    readonly paceMillis: number
    /** Whether to wait for a release before the status line. */
    readonly gated: boolean
    readonly halt: Halt | null
  }
  | { readonly type: "failure"; readonly failure: Failure }
  | { readonly type: "reset" }

/** Splits a text into words that keep the white space behind them. */
export const wordsOf = (text: string): ReadonlyArray<string> => text.match(/\s*\S+\s*/g) ?? (text === "" ? [] : [text])

/** The text of a list of words. */
export const textOf = (words: ReadonlyArray<string>): string => words.join("")

/** What a refusal costs. */
export const nothingUsed: ModelRequest.Usage = { input: 0, cache_read: 0, cache_write: 0, output: 0, reasoning: 0 }

/** What the answer costs. The three input counts differ, so that a mix-up shows. */
export const usageOf = (request: ModelRequest.ModelRequest, reply: ModelReply): ModelRequest.Usage => {
  let output = 0
  let reasoning = 0
  for (const part of reply.parts) {
    if (part.type === "tool_call") output += 20
    else output += part.words.length
    if (part.type === "thinking") reasoning += part.words.length
  }
  return { input: inputTokens(request), cache_read: 200, cache_write: 30, output: Math.max(1, output), reasoning }
}

/** Tokens that count as new input: a thousand, and one for each content part of the conversation. */
export const inputTokens = (request: ModelRequest.ModelRequest): number => 1000 + request.messages.length

const shorten = (text: string, maxCharacters: number): string => {
  const characters = Array.from(text)
  return characters.length <= maxCharacters
    ? text
    : `${characters.slice(0, maxCharacters).join("")}… (${characters.length} characters)`
}

const numbered = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, index) => `word${index} `)

const say = (text: string, stop: Stop = "end_turn"): ModelReply => ({
  parts: text === "" ? [] : [{ type: "text", words: wordsOf(text) }],
  stop
})

/** The sentence that proves which prompts arrived: their number, and each of them, long ones shortened. */
export const recital = (prompts: ReadonlyArray<string>): string =>
  `I was sent ${prompts.length} ${prompts.length === 1 ? "prompt" : "prompts"}: ${
    JSON.stringify(prompts.map((prompt) => shorten(prompt.replace(/\s+/g, " "), 80)))
  }`

/** Results of tools since the user last said something. */
const resultsOfTurn = (request: ModelRequest.ModelRequest): ReadonlyArray<ModelRequest.Message> => {
  const last = request.prompts.at(-1)
  const start = last === undefined
    ? 0
    : request.messages.findLastIndex((m) => m.role === "user" && m.kind === "text" && m.text.includes(last))
  return request.messages.slice(start + 1).filter((message) => message.kind === "tool_result")
}

const saw = (results: ReadonlyArray<ModelRequest.Message>): ModelReply =>
  say(
    results.map((one) => `${one.is_error === true ? "The tool failed" : "The tool answered"}: ${JSON.stringify(shorten(one.text, 300))}`)
      .join("\n")
  )

const call = (
  request: ModelRequest.ModelRequest,
  purpose: ModelToolChoice.Purpose,
  wishes: ReadonlyArray<ModelToolChoice.Wish>
): ModelReply => {
  const calls: Array<Part> = []
  for (const wish of wishes) {
    const choice = ModelToolChoice.choose(request.tools, purpose, wish)
    if (choice === null) {
      return say(`I was offered no tool to ${purpose}; I was offered: ${request.tools.map((tool) => tool.name).join(", ") || "none"}`)
    }
    calls.push({ type: "tool_call", name: choice.name, input: choice.input })
  }
  return { parts: [{ type: "text", words: wordsOf("I call a tool. ") }, ...calls], stop: "tool_use" }
}

/** Decides what a request is answered with; `count` is 1 for the run's first request for an answer. */
export const plan = (scenario: ModelScenario.ModelScenario, request: ModelRequest.ModelRequest, count: number): Answer => {
  const reply = (
    reply: ModelReply,
    more: { readonly paceMillis?: number; readonly gated?: boolean; readonly halt?: Halt } = {}
  ): Answer => ({
    type: "reply",
    reply,
    paceMillis: more.paceMillis ?? 0,
    gated: more.gated ?? false,
    halt: more.halt ?? null
  })
  const refuse = (status: number, rest: { readonly retry_after_s?: number | undefined; readonly message?: string | undefined }): Answer => ({
    type: "failure",
    failure: {
      status,
      reason: "status",
      message: rest.message,
      retryAfterSeconds: rest.retry_after_s ?? (status === 429 ? 1 : undefined)
    }
  })
  const recite = say(recital(request.prompts))
  const results = resultsOfTurn(request)
  const counted = (words: number): ModelReply => ({ parts: [{ type: "text", words: numbered(words) }], stop: "end_turn" })
  /** One word more than are said before the halt, so that the answer is visibly unfinished. */
  const halted = (words: number, act: Halt["act"], where: Halt["where"] = "any"): Answer =>
    reply(counted(words + 1), { halt: { words, act, where } })

  switch (scenario.type) {
    case "text":
      return reply(recite)
    case "fixed":
      return reply(say(scenario.text))
    case "slow":
      return reply(counted(scenario.words ?? 50), { paceMillis: scenario.interval_ms ?? 200 })
    case "big":
      return reply(counted(scenario.words ?? 2000))
    case "think":
      return reply({
        parts: [{ type: "thinking", words: wordsOf("The user wants to know what I was sent.") }, ...recite.parts],
        stop: "end_turn"
      })
    case "tool":
      return reply(results.length > 0 ? saw(results) : call(request, "run", [{ target: scenario.command }]))
    case "tools": {
      const wishes = scenario.command.map((target) => ({ target }))
      if (scenario.together === true) return reply(results.length > 0 ? saw(results) : call(request, "run", wishes))
      const next = wishes[results.length]
      return reply(next === undefined ? saw(results) : call(request, "run", [next]))
    }
    case "read":
      return reply(results.length > 0 ? saw(results) : call(request, "read", [{ target: scenario.path }]))
    case "write":
      return reply(
        results.length > 0
          ? saw(results)
          : call(request, "write", [{ target: scenario.path, content: scenario.content ?? "Written by the scripted model.\n" }])
      )
    case "max_tokens":
      return reply(say("This answer is longer than", "max_tokens"))
    case "refusal":
      return reply(say("I will not", "refusal"))
    case "empty":
      return reply(say(""))
    case "hang":
      return halted(scenario.words ?? 2, "hang")
    case "silent":
      return halted(0, "hang")
    case "wait":
      return scenario.at === "headers"
        ? reply(recite, { gated: true })
        : reply(recite, { halt: { words: scenario.at === "start" ? 0 : 1, act: "wait", where: "any" } })
    case "cut":
      return scenario.times !== undefined && count > scenario.times
        ? reply(recite)
        : halted(scenario.words ?? 3, "cut", scenario.in ?? "stream")
    case "reset":
      return scenario.times !== undefined && count > scenario.times ? reply(recite) : { type: "reset" }
    case "bad_json":
      return halted(1, "bad_json", scenario.in ?? "stream")
    case "error_event":
      return halted(scenario.words ?? 3, "error")
    case "status":
      return refuse(scenario.status, scenario)
    case "flaky":
      return count > (scenario.times ?? 1) ? reply(recite) : refuse(scenario.status ?? 529, scenario)
    case "context_too_long":
      return { type: "failure", failure: { status: 400, reason: "context_too_long" } }
  }
}
