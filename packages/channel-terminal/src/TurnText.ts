/**
 * A turn as people read it, made of a run's events.
 *
 * Pure: events in, pieces of text out. The answer is one text, whole and in
 * order; everything else is an aside, in whole lines. Where the two go is the
 * caller's business.
 */
import type { AgentRunEvent, AgentRunResult, Failure, Usage, Verdict } from "@turnpike/contract"
import { oneLine, printable } from "./Printable.ts"
import type { Style, Tone } from "./Style.ts"

export interface Piece {
  readonly to: "answer" | "aside"
  readonly text: string
}

/** How a turn ended, for its last line. */
export interface Ending {
  /** In a word or two: a verdict's type, or what stands for it. */
  readonly word: string
  readonly success: boolean
  /** Where it did not succeed. */
  readonly failure?: Pick<Failure.Failure, "code" | "message" | "remedy"> | undefined
  /** The final answer, in case that no event told it. */
  readonly answer: string
  readonly durationMs: number
  readonly usage: Usage.Usage
  /** Whatever else is worth a line. */
  readonly remarks?: ReadonlyArray<string>
}

export interface TurnText {
  readonly add: (event: AgentRunEvent.Payload) => ReadonlyArray<Piece>
  /** Ends the turn. The next event begins another one. */
  readonly end: (ending: Ending) => ReadonlyArray<Piece>
  /** A line beside the turn. */
  readonly note: (sentence: string) => ReadonlyArray<Piece>
  /** What goes on now, in a few words, for a line that shows the time. */
  readonly activity: () => string
}

const inputCharacters = 120
const remarkCharacters = 300

/** Seconds, minutes or hours, as a person would say them. */
export const duration = (milliseconds: number): string => {
  const tenths = Math.round(milliseconds / 100)
  if (tenths < 600) return `${(tenths / 10).toFixed(1)} s`
  const seconds = Math.round(milliseconds / 1000)
  const two = (value: number) => String(value).padStart(2, "0")
  return seconds < 3600
    ? `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`
    : `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`
}

/** Thousands set apart, the same in every locale. */
const count = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ",")

/** Tokens and money; what nobody reported is said to be unknown. */
export const usage = ({ cost, tokens }: Usage.Usage): string => {
  const about = (source: Usage.Tokens["source"]) => source === "estimated" ? "about " : ""
  const parts = [
    ...(tokens.input_tokens === undefined ? [] : [`${about(tokens.source)}${count(tokens.input_tokens)} tokens in`]),
    ...(tokens.output_tokens === undefined ? [] : [`${about(tokens.source)}${count(tokens.output_tokens)} out`]),
    ...(cost.usd === undefined ? [] : [`${about(cost.source)}$${cost.usd.toFixed(4)}`])
  ]
  return parts.length === 0 ? "usage unknown" : parts.join(", ")
}

const brief = (input: unknown): string => {
  if (input === undefined) return ""
  const values = typeof input === "object" && input !== null && !Array.isArray(input) ? Object.values(input) : []
  const [only] = values
  return oneLine(values.length === 1 && typeof only === "string" ? only : JSON.stringify(input), inputCharacters)
}

const isAside = (event: { readonly origin?: "turn" | "background" | "subagent" }): boolean =>
  event.origin !== undefined && event.origin !== "turn"

/** Begins to tell turns. */
export const make = (style: Style): TurnText => {
  let isAtLineStart = true
  /** The text of the message that streams now. */
  let streamed = ""
  /** The messages of the turn, one after the other. */
  let told = ""
  let header: string | undefined
  let activity = "waiting for the agent"
  const tools = new Map<string, string>()
  const denied = new Set<string>()

  const answer = (text: string): ReadonlyArray<Piece> => {
    if (text === "") return []
    isAtLineStart = text.endsWith("\n")
    return [{ to: "answer", text }]
  }
  const newLine = (): ReadonlyArray<Piece> => isAtLineStart ? [] : answer("\n")
  /** An aside leaves the answer's bytes alone: the line feed before it is its own. */
  const aside = (tone: Tone, line: string): ReadonlyArray<Piece> => {
    const before = isAtLineStart ? "" : "\n"
    isAtLineStart = true
    return [{ to: "aside", text: `${before}${style.paint(tone, line)}\n` }]
  }

  const message = (event: Extract<AgentRunEvent.Payload, { readonly type: "message" }>): ReadonlyArray<Piece> => {
    if (isAside(event)) return event.text === "" ? [] : aside("dim", `  [${event.origin}] ${oneLine(event.text, remarkCharacters)}`)
    const isContinued = event.text.startsWith(streamed)
    const isShown = !isContinued && streamed.includes(event.text.trim())
    // What streamed is not what was said in the end: that is said, too.
    const before = isContinued || isShown ? [] : newLine()
    const rest = isContinued ? event.text.slice(streamed.length) : isShown ? "" : event.text
    streamed = ""
    told += event.text
    const wasAtLineStart = isAtLineStart
    const pieces = answer(rest)
    return [
      ...before,
      ...pieces,
      ...(pieces.length === 0 && wasAtLineStart ? [] : newLine()),
      ...(event.partial === true ? aside("warn", "  (cut off)") : [])
    ]
  }

  const add: TurnText["add"] = (event) => {
    switch (event.type) {
      case "session_start": {
        const parts = (isContinued: boolean) => [
          `${event.harness}${event.harness_version === undefined ? "" : ` ${event.harness_version}`}`,
          ...(event.model === undefined ? [] : [event.model]),
          `session ${event.session_id}${isContinued ? " (continued)" : ""}`,
          event.cwd
        ].map((part) => oneLine(part, remarkCharacters)).join(" · ")
        // Every turn of a conversation but the first one continues it.
        const line = parts(false)
        if (line === header) return []
        header = line
        return aside("dim", parts(event.resumed))
      }
      case "turn_start":
        activity = "waiting for the agent"
        return event.trigger?.kind === "background" ? aside("dim", "· the agent goes on by itself") : []
      case "text_delta":
        if (isAside(event)) return []
        activity = "answering"
        streamed += event.text
        return answer(event.text)
      case "reasoning_delta":
        activity = "thinking"
        return []
      case "message":
        return message(event)
      case "tool_start":
        if (event.kind === "phase") return []
        tools.set(event.call_id, event.tool_name)
        activity = `running ${oneLine(event.tool_name, 40)}`
        return aside("dim", `→ ${oneLine(event.tool_name, 80)} ${brief(event.tool_input)}`.trimEnd())
      case "tool_end": {
        if (event.kind === "phase") return []
        tools.delete(event.call_id)
        const next = [...tools.values()].at(-1)
        activity = next === undefined ? "waiting for the agent" : `running ${oneLine(next, 40)}`
        const name = oneLine(event.tool_name, 80)
        if (event.success) return aside("dim", `✓ ${name}`)
        if (event.denied === true && denied.has(event.call_id)) return []
        const why = event.output_summary === undefined ? "" : `: ${oneLine(event.output_summary, remarkCharacters)}`
        return aside("bad", `✗ ${name} ${event.denied === true ? "was not allowed" : "failed"}${why}`)
      }
      case "permission_request":
        if (event.call_id !== undefined) denied.add(event.call_id)
        activity = `asking about ${oneLine(event.tool_name, 40)}`
        return aside("dim", `? ${oneLine(event.tool_name, 80)} ${brief(event.tool_input)}`.trimEnd())
      case "permission_decision": {
        activity = "waiting for the agent"
        const why = event.reason === undefined ? "" : `: ${oneLine(event.reason, remarkCharacters)}`
        return aside(event.decision === "allow" ? "dim" : "bad", `  ${event.decision} (${oneLine(event.by, 40)})${why}`)
      }
      case "notice":
        return event.kind === "todo"
          ? aside("dim", event.message.split("\n").map((line) => `  ${oneLine(line, remarkCharacters)}`).join("\n"))
          : aside("warn", `! ${event.kind}: ${oneLine(event.message, remarkCharacters)}`)
      case "token_usage":
      case "turn_end":
      case "session_end":
      case "result":
        return []
    }
  }

  return {
    add,
    end: (ending) => {
      // Told by no event: an answer without messages, or one whose stream broke off before it.
      const untold = ending.success && !`${told}${streamed}`.endsWith(ending.answer)
        ? [...newLine(), ...answer(ending.answer)]
        : []
      const { failure } = ending
      const pieces = [
        ...untold,
        ...newLine(),
        ...(ending.remarks ?? []).flatMap((remark) => aside("warn", `! ${oneLine(remark, remarkCharacters)}`)),
        ...(failure === undefined
          ? []
          : [
            ...aside("bad", `✗ ${printable(failure.message)}`),
            ...aside("dim", `  code: ${failure.code}`),
            ...aside("dim", `  what to do: ${printable(failure.remedy)}`)
          ]),
        ...aside(ending.success ? "good" : "bad", `${ending.success ? "✓" : "✗"} ${ending.word} · ${duration(ending.durationMs)} · ${usage(ending.usage)}`)
      ]
      streamed = ""
      told = ""
      activity = "waiting for the agent"
      tools.clear()
      denied.clear()
      return pieces
    },
    note: (sentence) => aside("dim", oneLine(sentence, remarkCharacters)),
    activity: () => activity
  }
}

/** A verdict in a word or two. */
export const word = (verdict: Verdict.Verdict): string => {
  switch (verdict.type) {
    case "aborted":
      return `stopped (${verdict.cause}, ${verdict.mode})`
    case "error":
      return `error ${verdict.error.code}`
    default:
      return verdict.type
  }
}

/** The ending of a run, from its result. */
export const endingOf = (result: AgentRunResult.AgentRunResult): Ending => ({
  word: word(result.verdict),
  success: result.result.success,
  failure: result.error ?? undefined,
  answer: result.result.success ? result.result.summary : "",
  durationMs: result.duration_ms,
  usage: result.usage,
  remarks: [
    ...(result.denials.length === 0
      ? []
      : [`${result.denials.length} not allowed: ${[...new Set(result.denials.map((denial) => denial.tool_name))].join(", ")}`]),
    ...result.background_killed.map((task) => `background task ended: ${task.description ?? task.id}`),
    ...result.killed.map((process) => `killed: ${process.pid} ${process.command}`),
    ...result.survivors.map((process) => `still running: ${process.pid} ${process.command}`)
  ]
})

/** One line that says all: what `--format summary` prints. */
export const summary = (result: AgentRunResult.AgentRunResult): string =>
  `${word(result.verdict)} in ${duration(result.duration_ms)} (${usage(result.usage)}, session ${result.session.id}): ${oneLine(result.result.summary, 400)}`
