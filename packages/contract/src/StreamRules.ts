/**
 * The rules of a run's event stream that no schema of one line can state.
 *
 * Pure and incremental: feed it the lines in order, then ask what is missing.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { AgentRunEvent } from "./AgentRunEvent.ts"

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
  "balanced-calls": "Every tool_end has a tool_start of the same call_id before it; every phase that began has ended.",
  "balanced-turns": "Turns do not overlap, and every turn_start has its turn_end before session_end.",
  "outcome-agrees": "The result's outcome and reason are those of session_end."
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

const decode = Schema.decodeUnknownResult(AgentRunEvent, { onExcessProperty: "error", errors: "all" })

const parse = (text: string): Result.Result<unknown, string> => {
  try {
    return Result.succeed(JSON.parse(text) as unknown)
  } catch (cause) {
    return Result.fail(String(cause))
  }
}

/** Begins to check one stream. */
export const make = (options: Options): Checker => {
  let line = 0
  let next = 0
  let runId: string | undefined
  let turnOpen: number | undefined
  let end: { readonly success: boolean; readonly reason: string } | undefined
  let result = false
  const openCalls = new Map<string, string>()
  const seenCalls = new Set<string>()

  const check = (event: AgentRunEvent): Array<Violation> => {
    const found: Array<Violation> = []
    const breach = (rule: Rule, message: string) => found.push({ line, rule, message })
    if (event.seq !== next) breach("seq-contiguous", `seq is ${event.seq}; ${next} was due`)
    next = event.seq + 1
    if (runId === undefined) runId = event.run_id
    else if (runId !== event.run_id) breach("one-run-id", `run_id is ${event.run_id}; the stream began with ${runId}`)
    if (result) breach("result-last", `${event.type} follows the result`)
    else if (end !== undefined && event.type !== "result") {
      breach(event.type === "session_end" ? "one-session-end" : "result-last", `${event.type} follows session_end`)
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
        if (seenCalls.has(event.call_id)) breach("balanced-calls", `call_id ${event.call_id} starts twice`)
        seenCalls.add(event.call_id)
        openCalls.set(event.call_id, event.kind)
        break
      case "tool_end":
        if (!openCalls.delete(event.call_id)) breach("balanced-calls", `call_id ${event.call_id} ends but is not open`)
        break
      case "session_end": {
        if (end === undefined) {
          for (const [id, kind] of openCalls) {
            if (kind === "phase") breach("balanced-calls", `phase ${id} has not ended`)
          }
          if (turnOpen !== undefined) breach("balanced-turns", `turn ${turnOpen} has not ended`)
        }
        end ??= { success: event.outcome.success, reason: event.reason }
        break
      }
      case "result":
        if (end === undefined) breach("result-last", "the result comes before session_end")
        else if (end.success !== event.result.result.success || end.reason !== event.result.reason) {
          breach("outcome-agrees", `the result says ${event.result.reason}; session_end said ${end.reason}`)
        }
        if (options.result === "file") breach("result-mode", "there is a result event although the result goes to a file")
        result = true
        break
      default:
        break
    }
    return found
  }

  return {
    line: (text) => {
      line++
      if (text.trim() === "") return [{ line, rule: "no-blank-lines", message: "the line is blank" }]
      const parsed = parse(text)
      if (Result.isFailure(parsed)) return [{ line, rule: "json-lines", message: `not JSON: ${parsed.failure}` }]
      const event = decode(parsed.success)
      if (Result.isFailure(event)) {
        return [{ line, rule: "json-lines", message: `not an agent-run-event: ${event.failure.message}` }]
      }
      return check(event.success)
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
