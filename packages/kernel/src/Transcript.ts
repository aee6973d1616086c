/**
 * A conversation as text, for an agent that has to be told what it no longer
 * knows: one JSON object a line, so that no message can pass for another.
 */
import type * as Schema from "effect/Schema"
import * as Redaction from "./Redaction.ts"
import type * as Surface from "./Surface.ts"

/** The most characters of the lines: 100 000. The newest are kept. */
export const maxCharacters = 100_000

/** The most characters of one text in them: 10 000. */
export const maxTextCharacters = 10_000

const cut = (text: string): string =>
  text.length <= maxTextCharacters ? text : `${Redaction.head(text, maxTextCharacters)}… (${text.length} characters)`

const cutInput = (input: Schema.Json): Schema.Json => {
  const text = JSON.stringify(input)
  return text.length <= maxTextCharacters ? input : cut(text)
}

const lineOf = (message: Surface.Message): string => {
  switch (message.role) {
    case "tool":
      return JSON.stringify({
        role: message.role,
        name: message.name,
        ...(message.input === undefined ? {} : { input: cutInput(message.input) }),
        output: cut(message.output),
        ...(message.isError ? { is_error: true } : {})
      })
    case "assistant":
      return JSON.stringify({ role: message.role, text: cut(message.text) })
    case "context":
    case "steering":
    case "user":
      return JSON.stringify({ role: message.role === "steering" ? "user" : message.role, text: cut(message.text) })
  }
}

/** The messages for an agent, the oldest left out where there are too many; `undefined` where there is none. */
export const of = (messages: ReadonlyArray<Surface.Message>, limit: number = maxCharacters): string | undefined => {
  const lines: Array<string> = []
  let room = limit
  for (const message of messages.toReversed()) {
    const line = lineOf(message)
    if (line.length + 1 > room) break
    room -= line.length + 1
    lines.unshift(line)
  }
  if (lines.length === 0) return undefined
  const omitted = messages.length - lines.length
  return [
    `This conversation began earlier, and you no longer have it. Between the two marks is what was said and done, one JSON object a line, the oldest first${
      omitted === 0 ? "" : `; ${omitted} older messages are left out`
    }. Go on from there; what follows the second mark is the next prompt.`,
    "--- conversation so far ---",
    ...lines,
    "--- end of the conversation so far ---"
  ].join("\n")
}
