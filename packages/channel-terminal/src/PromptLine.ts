/**
 * The words in which a program gives prompts: one JSON object a line,
 * `{"type":"prompt","text":"…"}`, and nothing else in it.
 */
import { Contracts } from "@turnpike/contract"
import { Redaction } from "@turnpike/kernel"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

export const PromptLine = Schema.Struct({
  type: Schema.Literal("prompt"),
  text: Schema.String.annotateKey({ description: "The prompt, passed on unchanged." })
}).annotate({ identifier: "PromptLine", description: "One prompt of a conversation." })
export type PromptLine = typeof PromptLine.Type

export const example = "{\"type\":\"prompt\",\"text\":\"…\"}"

const decode = Schema.decodeUnknownResult(PromptLine, { onExcessProperty: "error", errors: "all" })

/** Reads a line, or says what is wrong with it, without repeating it. */
export const parse = (line: string): Result.Result<string, string> => {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return Result.fail("is not JSON")
  }
  // JSON leaves open which of the two texts would be meant.
  const repeated = Contracts.repeatedKey(line)
  if (repeated !== undefined) return Result.fail(`is no prompt: it has the field ${JSON.stringify(Redaction.head(repeated.key, 60))} twice`)
  const decoded = decode(value)
  if (Result.isFailure(decoded)) return Result.fail(`is no prompt: ${decoded.failure.message.replaceAll(/\s*\n\s*/g, " ")}`)
  return decoded.success.text.trim() === "" ? Result.fail("is no prompt: its text is empty") : Result.succeed(decoded.success.text)
}
