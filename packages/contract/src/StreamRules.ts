/**
 * The rules of a run's event stream that no schema of one line can state.
 *
 * Pure and incremental: feed it the lines in order, then ask what is missing.
 */
import * as Result from "effect/Result"
import { AgentRunEvent } from "./AgentRunEvent.ts"
import { parseJson } from "./internal/jsonText.ts"
import { format, strictDecoder } from "./internal/strictDecoder.ts"

/** A breach of a rule. `line` starts at 1; 0 means the stream as a whole. */
export interface Violation {
  readonly line: number
  readonly rule: Rule
  readonly message: string
}

/** The rules, by name. */
export const rules = {
  "json-lines": "Every line is one JSON object that is an agent-run-event.",
  "no-blank-lines": "There are no blank lines.",
  "seq-contiguous": "seq starts at 0 and has no gaps.",
  "one-run-id": "run_id is the same on every line.",
  "one-session-end": "There is exactly one session_end.",
  "result-last": "Only one result may follow session_end, and nothing follows the result.",
  "result-mode": "The result event is present exactly where the result is delivered on the stream.",
  "balanced-calls":
    "Every tool_end has one tool_start of the same call_id and kind before it; every phase that began has ended before session_end.",
  "answered-requests": "Every permission_decision has a permission_request of the same request_id before it.",
  "balanced-turns": "Turns do not overlap, and every turn_start has its turn_end before session_end.",
  "enclosed-in-turn":
    "What the model and its tools do stands in a turn: text_delta, reasoning_delta, message, token_usage, permission events, and tool events of kind tool.",
  "outcome-agrees": "The result's outcome (success and summary) and reason are those of session_end."
} as const
export type Rule = keyof typeof rules

export interface Options {
  /** Where the result goes: in the stream as its last line, or to a file and then not in the stream. */
  readonly result: "stream" | "file" | "either"
}

/** State of a stream that is being checked. */
export interface Checker {
  /** Checks the next line, given without its line feed. */
  readonly line: (text: string) => ReadonlyArray<Violation>
  /** Checks what can only be known at the end. */
  readonly end: () => ReadonlyArray<Violation>
}

type SessionEnd = Extract<AgentRunEvent, { readonly type: "session_end" }>

/** Whether an event is of the model's or its tools' making, and so has its place in a turn. */
const belongsInTurn = (event: AgentRunEvent): boolean => {
  switch (event.type) {
    case "text_delta":
    case "reasoning_delta":
    case "message":
    case "token_usage":
    case "permission_request":
    case "permission_decision":
      return true
    case "tool_start":
    case "tool_end":
      return event.kind === "tool"
    case "session_start":
    case "turn_start":
    case "turn_end":
    case "notice":
    case "session_end":
    case "result":
      return false
  }
}

/** A name of the stream's own in a message: quoted, because it may hold anything, and bounded. */
const show = (name: string): string => JSON.stringify(name.length <= 80 ? name : `${name.slice(0, 80)}…`)

const decode = strictDecoder(AgentRunEvent)

/** The seq that a line claims although it is no event, so that one bad line is one violation. */
const claimedSeq = (value: unknown): number | undefined => {
  if (typeof value !== "object" || value === null || !("seq" in value)) return undefined
  return typeof value.seq === "number" && Number.isSafeInteger(value.seq) && value.seq >= 0 ? value.seq : undefined
}

/** Begins to check one stream. */
export const make = (options: Options): Checker => {
  let line = 0
  let next = 0
  let runId: string | undefined
  let turnOpen: number | undefined
  let end: Pick<SessionEnd, "outcome" | "reason"> | undefined
  let result = false
  const openCalls = new Map<string, string>()
  const seenCalls = new Set<string>()
  const requests = new Set<string>()

  const check = (event: AgentRunEvent): Array<Violation> => {
    const found: Array<Violation> = []
    const breach = (rule: Rule, message: string) => found.push({ line, rule, message })
    if (event.seq !== next) breach("seq-contiguous", `seq is ${event.seq}; ${next} was due`)
    next = event.seq + 1
    if (runId === undefined) runId = event.run_id
    else if (runId !== event.run_id) breach("one-run-id", `run_id is ${show(event.run_id)}; the stream began with ${show(runId)}`)
    if (result) breach("result-last", `${event.type} follows the result`)
    else if (end !== undefined && event.type !== "result") {
      breach(event.type === "session_end" ? "one-session-end" : "result-last", `${event.type} follows session_end`)
    }
    if (turnOpen === undefined && end === undefined && belongsInTurn(event)) {
      breach("enclosed-in-turn", `${event.type} stands outside a turn`)
    }
    switch (event.type) {
      case "turn_start":
        if (turnOpen !== undefined) breach("balanced-turns", `turn ${event.turn} starts while turn ${turnOpen} is open`)
        turnOpen = event.turn
        break
      case "turn_end":
        if (turnOpen !== event.turn) breach("balanced-turns", `turn ${event.turn} ends but is not open`)
        turnOpen = undefined
        break
      case "tool_start":
        if (seenCalls.has(event.call_id)) breach("balanced-calls", `call_id ${show(event.call_id)} starts twice`)
        seenCalls.add(event.call_id)
        openCalls.set(event.call_id, event.kind)
        break
      case "tool_end":
        if (!openCalls.has(event.call_id)) {
          breach("balanced-calls", `call_id ${show(event.call_id)} ends but is not open`)
        } else if (openCalls.get(event.call_id) !== event.kind) {
          breach(
            "balanced-calls",
            `call_id ${show(event.call_id)} began as a ${openCalls.get(event.call_id)} and ends as a ${event.kind}`
          )
        }
        openCalls.delete(event.call_id)
        break
      case "permission_request":
        requests.add(event.request_id)
        break
      case "permission_decision":
        if (!requests.has(event.request_id)) {
          breach("answered-requests", `request_id ${show(event.request_id)} is decided but was not requested`)
        }
        break
      case "session_end": {
        if (end === undefined) {
          for (const [id, kind] of openCalls) {
            if (kind === "phase") breach("balanced-calls", `phase ${show(id)} has not ended`)
          }
          if (turnOpen !== undefined) breach("balanced-turns", `turn ${turnOpen} has not ended`)
        }
        end ??= event
        break
      }
      case "result":
        if (end === undefined) breach("result-last", "the result comes before session_end")
        else if (end.reason !== event.result.reason) {
          breach("outcome-agrees", `the result's reason is ${event.result.reason}; that of session_end was ${end.reason}`)
        } else if (end.outcome.summary !== event.result.result.summary) {
          breach("outcome-agrees", "the result's summary is not that of session_end")
        }
        if (options.result === "file") breach("result-mode", "there is a result event although the result goes to a file")
        result = true
        break
      default:
        break
    }
    return found
  }

  const notAnEvent = (reason: string, value?: unknown): ReadonlyArray<Violation> => {
    next = (claimedSeq(value) ?? next) + 1
    return [{ line, rule: "json-lines", message: reason }]
  }

  return {
    line: (text) => {
      line++
      if (/^[ \t\r]*$/u.test(text)) return [{ line, rule: "no-blank-lines", message: "the line is blank" }]
      const parsed = parseJson(text)
      if (Result.isFailure(parsed)) return notAnEvent(`not JSON: ${parsed.failure.message}`)
      const event = decode(parsed.success)
      return Result.isFailure(event)
        ? notAnEvent(`not an agent-run-event: ${format(event.failure)}`, parsed.success)
        : check(event.success)
    },
    end: () => {
      const found: Array<Violation> = []
      if (end === undefined) found.push({ line: 0, rule: "one-session-end", message: "there is no session_end" })
      if (options.result === "stream" && !result) {
        found.push({ line: 0, rule: "result-mode", message: "there is no result event" })
      }
      return found
    }
  }
}

/** Checks a whole stream. A final line feed is not a blank line. */
export const validate = (text: string, options: Options): ReadonlyArray<Violation> => {
  const checker = make(options)
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  return [...lines.flatMap((line) => checker.line(line)), ...checker.end()]
}
