/**
 * The Anthropic Messages protocol, `anthropic-version: 2023-06-01`.
 *
 * Source: the vendor's API reference, "Messages" and "Streaming messages", and
 * what Claude Code 2.1.332 accepts.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ModelReply from "./ModelReply.ts"
import type * as ModelRequest from "./ModelRequest.ts"
import * as ModelWire from "./ModelWire.ts"

const Part = Schema.Struct({
  type: Schema.String,
  text: Schema.optionalKey(Schema.String),
  thinking: Schema.optionalKey(Schema.String),
  name: Schema.optionalKey(Schema.String),
  input: Schema.optionalKey(Schema.Unknown),
  content: Schema.optionalKey(Schema.Unknown),
  is_error: Schema.optionalKey(Schema.Boolean)
})
type Part = typeof Part.Type

const Content = Schema.Union([Schema.String, Schema.Array(Part)])

const Body = Schema.Struct({
  model: Schema.NonEmptyString,
  max_tokens: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  messages: Schema.NonEmptyArray(
    Schema.Struct({ role: Schema.Literals(["user", "assistant", "system"]), content: Content })
  ),
  system: Schema.optionalKey(Content),
  stream: Schema.optionalKey(Schema.Boolean),
  tools: Schema.optionalKey(
    Schema.Array(Schema.Struct({ name: Schema.NonEmptyString, input_schema: Schema.optionalKey(Schema.Unknown) }))
  )
})

/** A token count needs no output limit. */
const CountBody = Schema.Struct({ ...Body.fields, max_tokens: Schema.optionalKey(Schema.Int) })

const textOfContent = Schema.decodeUnknownResult(Content)

const flatten = (content: unknown): string => {
  const known = textOfContent(content)
  if (Result.isFailure(known)) return content === undefined ? "" : JSON.stringify(content)
  const parts = known.success
  return typeof parts === "string" ? parts : parts.map((part) => part.text ?? `[${part.type}]`).join("\n")
}

const messageOf = (role: ModelRequest.Message["role"], part: Part): ModelRequest.Message => {
  switch (part.type) {
    case "text":
      return { role, kind: "text", text: part.text ?? "" }
    case "thinking":
      return { role, kind: "thinking", text: part.thinking ?? "" }
    case "tool_use":
      return { role, kind: "tool_call", text: JSON.stringify(part.input ?? {}), tool_name: part.name ?? "" }
    case "tool_result":
      return {
        role: "tool",
        kind: "tool_result",
        text: flatten(part.content),
        ...(part.is_error === undefined ? {} : { is_error: part.is_error })
      }
    default:
      return { role, kind: "other", text: `[${part.type}]` }
  }
}

const reading = (body: typeof CountBody.Type): ModelWire.Reading => ({
  model: body.model,
  stream: body.stream ?? false,
  system: body.system === undefined
    ? ""
    : typeof body.system === "string"
    ? body.system
    : body.system.map((part) => part.text ?? "").join("\n\n"),
  messages: body.messages.flatMap(({ role, content }): ReadonlyArray<ModelRequest.Message> =>
    typeof content === "string" ? [{ role, kind: "text", text: content }] : content.map((part) => messageOf(role, part))
  ),
  tools: body.tools ?? []
})

const decode = Schema.decodeUnknownResult(Body)
const decodeCount = Schema.decodeUnknownResult(CountBody)

/** Reads the body of a token count. */
export const readCount = (body: unknown): Result.Result<ModelWire.Reading, string> =>
  Result.mapBoth(decodeCount(body), { onSuccess: reading, onFailure: (error) => error.message })

const usage = (tokens: ModelRequest.Usage, output: number) => ({
  input_tokens: tokens.input,
  cache_creation_input_tokens: tokens.cache_write,
  cache_read_input_tokens: tokens.cache_read,
  output_tokens: output
})

/** A signature is opaque to clients, who must send it back as it is. */
const signature = "c2NyaXB0ZWQ="

const errorTypes: Readonly<Record<number, readonly [type: string, message: string]>> = {
  400: ["invalid_request_error", "The request is invalid."],
  401: ["authentication_error", "invalid x-api-key"],
  403: ["permission_error", "The API key may not use the specified resource."],
  404: ["not_found_error", "The requested resource could not be found."],
  413: ["request_too_large", "The request exceeds the maximum size."],
  429: ["rate_limit_error", "Number of requests has exceeded your rate limit."],
  500: ["api_error", "Internal server error"],
  503: ["api_error", "Service unavailable"],
  529: ["overloaded_error", "Overloaded"]
}

const toolUse = (part: ModelReply.Part & { readonly type: "tool_call" }, id: string, input: unknown) => ({
  type: "tool_use",
  id: `toolu_${id}`,
  name: part.name,
  input
})

function* frames(reply: ModelReply.ModelReply, head: ModelWire.Head): Iterable<ModelWire.Frame> {
  const say = (mark: ModelWire.Frame["mark"], data: { readonly type: string; readonly [key: string]: unknown }) => ({
    mark,
    text: ModelWire.event(data.type, data)
  })
  yield say("opening", {
    type: "message_start",
    message: {
      id: `msg_${head.id}`,
      type: "message",
      role: "assistant",
      model: head.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: usage(head.usage, 1)
    }
  })
  yield say("opening", { type: "ping" })
  for (const [index, part] of reply.parts.entries()) {
    const delta = (mark: ModelWire.Frame["mark"], delta: unknown) => say(mark, { type: "content_block_delta", index, delta })
    const start = (mark: ModelWire.Frame["mark"], content_block: unknown) =>
      say(mark, { type: "content_block_start", index, content_block })
    switch (part.type) {
      case "thinking":
        yield start("opening", { type: "thinking", thinking: "", signature: "" })
        for (const word of part.words) yield delta("opening", { type: "thinking_delta", thinking: word })
        yield delta("opening", { type: "signature_delta", signature })
        yield say("opening", { type: "content_block_stop", index })
        break
      case "text":
        yield start("opening", { type: "text", text: "" })
        for (const word of part.words) yield delta("word", { type: "text_delta", text: word })
        yield say("closing", { type: "content_block_stop", index })
        break
      case "tool_call":
        yield start("closing", toolUse(part, `${head.id}_${index}`, {}))
        for (const piece of ModelWire.pieces(JSON.stringify(part.input), 24)) {
          yield delta("closing", { type: "input_json_delta", partial_json: piece })
        }
        yield say("closing", { type: "content_block_stop", index })
        break
    }
  }
  yield say("closing", {
    type: "message_delta",
    delta: { stop_reason: reply.stop, stop_sequence: null },
    usage: usage(head.usage, head.usage.output)
  })
  yield say("closing", { type: "message_stop" })
}

export const wire: ModelWire.ModelWire = {
  name: "anthropic-messages",
  read: (body) => Result.mapBoth(decode(body), { onSuccess: reading, onFailure: (error) => error.message }),
  frames,
  whole: (reply, head) => ({
    id: `msg_${head.id}`,
    type: "message",
    role: "assistant",
    model: head.model,
    content: reply.parts.map((part, index) => {
      switch (part.type) {
        case "thinking":
          return { type: "thinking", thinking: ModelReply.textOf(part.words), signature }
        case "text":
          return { type: "text", text: ModelReply.textOf(part.words) }
        case "tool_call":
          return toolUse(part, `${head.id}_${index}`, part.input)
      }
    }),
    stop_reason: reply.stop,
    stop_sequence: null,
    usage: usage(head.usage, head.usage.output)
  }),
  failure: (failure, requestId) => {
    const [type, message] = errorTypes[failure.status] ?? ["api_error", `Status ${failure.status}`]
    return {
      type: "error",
      error: {
        type,
        message: failure.message ??
          (failure.reason === "context_too_long" ? "prompt is too long: 250000 tokens > 200000 maximum" : message)
      },
      request_id: requestId
    }
  },
  failureFrame: () => ModelWire.event("error", { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }),
  tornFrame: "event: content_block_delta\ndata: {\"type\": \"content_block_del\n\n"
}
