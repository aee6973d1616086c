/**
 * A session's log as people read it, turn by turn.
 *
 * Pure: events in order in, text out, as far as it can be told by then. A turn of
 * which only the end is there is told from where it begins. Nothing in it moves the
 * cursor of whoever reads it.
 */
import { Printable, type Style, TurnText } from "@turnpike/channel-terminal"
import { type SessionEvent, type SessionHeader, Usage, Verdict } from "@turnpike/contract"
import * as Moment from "./Moment.ts"

export interface LogText {
  readonly header: (header: SessionHeader.SessionHeader) => string
  readonly add: (event: SessionEvent.SessionEvent) => string
  /** What completes a line that was begun. */
  readonly end: () => string
}

const remarkCharacters = 300
const inputCharacters = 120
const nameCharacters = 80

const trigger = (from: SessionEvent.Trigger): string => "source" in from ? `${from.kind} from ${from.source}` : from.kind

const remark = (text: string): string => Printable.oneLine(text, remarkCharacters)
const nameOf = (name: string): string => Printable.oneLine(name, nameCharacters)

/** The only text that a tool is called with, or all of it as JSON. */
const inputOf = (input: unknown): string => {
  if (input === undefined) return ""
  const values = typeof input === "object" && input !== null && !Array.isArray(input) ? Object.values(input) : []
  const [only] = values
  return ` ${Printable.oneLine(values.length === 1 && typeof only === "string" ? only : JSON.stringify(input), inputCharacters)}`
}

/** Begins to tell a log. */
export const make = (style: Style.Style): LogText => {
  let isAtLineStart = true
  /** The pieces since the last message, which a message sums up. */
  let streamed = ""
  /** Names of the tools that run, by call. */
  const names = new Map<string, string>()
  let started: number | undefined
  let usage: Usage.Usage = Usage.unavailable
  let isFirst = true

  const newLine = (): string => {
    const before = isAtLineStart ? "" : "\n"
    isAtLineStart = true
    return before
  }

  const answer = (text: string): string => {
    if (text !== "") isAtLineStart = text.endsWith("\n")
    return Printable.printable(text)
  }

  /** Lines of their own, whatever was begun. */
  const lines = (tone: Style.Tone, ...sentences: ReadonlyArray<string>): string =>
    `${newLine()}${sentences.map((sentence) => `${style.paint(tone, sentence)}\n`).join("")}`

  /** What somebody wrote, each line with a mark before it. */
  const quoted = (mark: string, words: string): string => lines("bold", ...Printable.printable(words).split("\n").map((each) => `${mark}${each}`.trimEnd()))

  const message = ({ origin, partial, text }: SessionEvent.Of<"assistant/message">["data"]): string => {
    if (origin !== undefined && origin !== "turn") return text === "" ? "" : lines("dim", `  [${origin}] ${remark(text)}`)
    const isContinued = text.startsWith(streamed)
    const isTold = !isContinued && streamed.includes(text.trim())
    // What streamed is not what was said in the end: that is said, too.
    const before = isContinued || isTold ? "" : newLine()
    const rest = isContinued ? text.slice(streamed.length) : isTold ? "" : text
    streamed = ""
    return `${before}${answer(rest)}${newLine()}${partial === true ? lines("warn", "  (cut off)") : ""}`
  }

  const result = (event: SessionEvent.Of<"tool/result">): string => {
    const { call_id, denied, error_code, is_error, output } = event.data
    if (event.surface_op !== "append") return lines("dim", "  (an earlier result was replaced)")
    const name = names.get(call_id) ?? "a tool"
    names.delete(call_id)
    if (!is_error) return lines("dim", `✓ ${name}`)
    const what = denied === true ? "was not allowed" : error_code === undefined ? "failed" : "has no result"
    return lines("bad", `✗ ${name} ${what}${output === undefined || output === "" ? "" : `: ${remark(output)}`}`)
  }

  const turnEnd = (verdict: Verdict.Verdict, time: number): string => {
    const { success } = Verdict.consequences(verdict)
    const failure = Verdict.failureOf(verdict)
    return [
      ...(failure === undefined ? [] : [lines("bad", `✗ ${remark(failure.message)}`), lines("dim", `  code: ${failure.code}`)]),
      lines(success ? "good" : "bad", `${success ? "✓" : "✗"} ${TurnText.word(verdict)} · ${TurnText.duration(Math.max(0, time - (started ?? time)))} · ${TurnText.usage(usage)}`)
    ].join("")
  }

  const add = (event: SessionEvent.SessionEvent): string => {
    switch (event.type) {
      case "turn/start": {
        started = event.time
        usage = Usage.unavailable
        streamed = ""
        names.clear()
        const before = isFirst ? "" : `${newLine()}\n`
        isFirst = false
        return `${before}${lines("bold", `── turn ${event.data.turn} · ${Moment.format(event.time)} · ${remark(trigger(event.data.trigger))} · event ${event.seq}`)}`
      }
      case "turn/end":
        return turnEnd(event.data.verdict, event.time)
      case "user/message":
        return quoted("> ", event.data.text)
      case "steering/message":
        return quoted("> (while it ran) ", event.data.text)
      case "context/message":
        return quoted(`> (told by ${nameOf(event.data.source)}) `, event.data.text)
      case "session/bound": {
        const { harness_session_id, harness_version, model, resumed } = event.data
        const details = [`the harness's session ${harness_session_id}${resumed ? " (continued)" : ""}`, harness_version, model]
        return lines("dim", remark(details.filter((detail) => detail !== undefined && detail !== "").join(" · ")))
      }
      case "assistant/chunk": {
        const { kind, origin, text } = event.data
        if (kind !== "text" || (origin !== undefined && origin !== "turn")) return ""
        streamed += text
        return answer(text)
      }
      case "assistant/message":
        return message(event.data)
      case "tool/call":
        names.set(event.data.call_id, nameOf(event.data.name))
        return lines("dim", `→ ${nameOf(event.data.name)}${inputOf(event.data.input)}`)
      case "tool/result":
        return result(event)
      case "permission/request":
        return lines("dim", `? ${nameOf(event.data.tool_name)}${inputOf(event.data.input)}`)
      case "permission/decision": {
        const { by, decision, reason } = event.data
        return lines(decision === "allow" ? "dim" : "bad", `  ${decision} (${nameOf(by)})${reason === undefined ? "" : `: ${remark(reason)}`}`)
      }
      case "usage":
        usage = event.data.usage
        return ""
      case "todo/write":
        return event.data.todos.length === 0 ? "" : lines("dim", ...event.data.todos.map(({ content, status }) => `  [${status}] ${remark(content)}`))
      case "retry/scheduled":
        return lines("warn", `! a model request is sent again, attempt ${event.data.attempt}${event.data.error === undefined ? "" : `: ${event.data.error.code}`}`)
      case "notice":
        return lines("warn", `! ${event.data.kind}: ${remark(event.data.message)}`)
      case "error":
        return lines("bad", `✗ ${nameOf(event.data.code)}: ${remark(event.data.message)}`)
      default:
        // Steps, claims and requests tell people nothing; what plugins write is named.
        return event.type.startsWith("x/") ? lines("dim", `  ${nameOf(event.type)}`) : ""
    }
  }

  return {
    header: ({ cwd, harness, id, parent, title }) => {
      isFirst = false
      return lines("bold", remark([
        `session ${id}`,
        ...(title === undefined ? [] : [title]),
        harness,
        cwd,
        ...(parent === undefined ? [] : [`forked from ${parent.id} after ${parent.events} events`])
      ].join(" · ")))
    },
    add,
    end: newLine
  }
}
