/**
 * The OpenAI Chat Completions protocol, as OpenAI and the many services
 * compatible with it speak it. Thinking is told as `reasoning_content`, the
 * field of those services. A refusal is told as `content_filter`.
 *
 * Source: the vendor's API reference, "Chat Completions" and "Streaming".
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ModelReply from "./ModelReply.ts"
import type * as ModelRequest from "./ModelRequest.ts"
import * as ModelWire from "./ModelWire.ts"
import * as OpenAiResponsesWire from "./OpenAiResponsesWire.ts"

const Message = Schema.Struct({
  role: Schema.Literals(["system", "developer", "user", "assistant", "tool"]),
  content: Schema.optionalKey(
    Schema.NullOr(
      Schema.Union([
        Schema.String,
        Schema.Array(Schema.Struct({ type: Schema.String, text: Schema.optionalKey(Schema.String) }))
      ])
    )
  ),
  reasoning_content: Schema.optionalKey(Schema.NullOr(Schema.String)),
  tool_calls: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        id: Schema.String,
        function: Schema.optionalKey(Schema.Struct({ name: Schema.String, arguments: Schema.String }))
      })
    )
  )
})

const Body = Schema.Struct({
  model: Schema.NonEmptyString,
  messages: Schema.NonEmptyArray(Message),
  stream: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  tools: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        type: Schema.String,
        function: Schema.optionalKey(
          Schema.Struct({ name: Schema.NonEmptyString, parameters: Schema.optionalKey(Schema.Unknown) })
        )
      })
    )
  )
})

const decode = Schema.decodeUnknownResult(Body)

const messagesOf = (message: typeof Message.Type): ReadonlyArray<ModelRequest.Message> => {
  const { role, content } = message
  const texts = typeof content === "string" ? [{ type: "text", text: content }] : content ?? []
  if (role === "tool") {
    return [{ role, kind: "tool_result", text: texts.map((part) => part.text ?? `[${part.type}]`).join("\n") }]
  }
  return [
    ...(typeof message.reasoning_content === "string"
      ? [{ role, kind: "thinking", text: message.reasoning_content } as const]
      : []),
    ...texts.map((part): ModelRequest.Message =>
      part.text === undefined ? { role, kind: "other", text: `[${part.type}]` } : { role, kind: "text", text: part.text }
    ),
    ...(message.tool_calls ?? []).map((call): ModelRequest.Message => ({
      role,
      kind: "tool_call",
      text: call.function?.arguments ?? "",
      tool_name: call.function?.name ?? ""
    }))
  ]
}

const isInstruction = (message: ModelRequest.Message): boolean => message.role === "system" || message.role === "developer"

const reading = (body: typeof Body.Type): ModelWire.Reading => {
  const messages = body.messages.flatMap(messagesOf)
  return {
    model: body.model,
    stream: body.stream ?? false,
    system: messages.filter(isInstruction).map((message) => message.text).join("\n\n"),
    messages: messages.filter((message) => !isInstruction(message)),
    tools: (body.tools ?? []).map((tool) => ({
      name: tool.function?.name ?? tool.type,
      ...(tool.function?.parameters === undefined ? {} : { input_schema: tool.function.parameters })
    }))
  }
}

const finishReason = (stop: ModelReply.Stop): string => {
  switch (stop) {
    case "end_turn":
      return "stop"
    case "tool_use":
      return "tool_calls"
    case "max_tokens":
      return "length"
    case "refusal":
      return "content_filter"
  }
}

const usage = (tokens: ModelRequest.Usage) => {
  const prompt_tokens = tokens.input + tokens.cache_read + tokens.cache_write
  return {
    prompt_tokens,
    completion_tokens: tokens.output,
    total_tokens: prompt_tokens + tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cache_read },
    completion_tokens_details: { reasoning_tokens: tokens.reasoning }
  }
}

const textIn = (reply: ModelReply.ModelReply, type: "thinking" | "text"): string =>
  reply.parts.map((part) => (part.type === type ? ModelReply.textOf(part.words) : "")).join("")

const callsIn = (reply: ModelReply.ModelReply, head: ModelWire.Head) =>
  reply.parts.filter((part) => part.type === "tool_call").map((part, index) => ({
    id: `call_${head.id}_${index}`,
    type: "function",
    function: { name: part.name, arguments: JSON.stringify(part.input) }
  }))

function* frames(reply: ModelReply.ModelReply, head: ModelWire.Head): Iterable<ModelWire.Frame> {
  const chunk = (mark: ModelWire.Frame["mark"], choices: ReadonlyArray<unknown>, rest: Readonly<Record<string, unknown>> = {}) => ({
    mark,
    text: ModelWire.event(null, {
      id: `chatcmpl-${head.id}`,
      object: "chat.completion.chunk",
      created: head.createdSeconds,
      model: head.model,
      choices,
      ...rest
    })
  })
  const delta = (mark: ModelWire.Frame["mark"], delta: unknown, finish_reason: string | null = null) =>
    chunk(mark, [{ index: 0, delta, finish_reason }])
  yield delta("opening", { role: "assistant", content: "" })
  for (const part of reply.parts) {
    if (part.type === "thinking") for (const word of part.words) yield delta("opening", { reasoning_content: word })
    if (part.type === "text") for (const word of part.words) yield delta("word", { content: word })
  }
  for (const [index, call] of callsIn(reply, head).entries()) {
    yield delta("closing", { tool_calls: [{ index, ...call, function: { name: call.function.name, arguments: "" } }] })
    for (const piece of ModelWire.pieces(call.function.arguments, 24)) {
      yield delta("closing", { tool_calls: [{ index, function: { arguments: piece } }] })
    }
  }
  yield delta("closing", {}, finishReason(reply.stop))
  yield chunk("closing", [], { usage: usage(head.usage) })
  yield { mark: "closing", text: "data: [DONE]\n\n" }
}

export const wire: ModelWire.ModelWire = {
  name: "openai-chat",
  read: (body) => Result.mapBoth(decode(body), { onSuccess: reading, onFailure: (error) => error.message }),
  frames,
  whole: (reply, head) => {
    const calls = callsIn(reply, head)
    const thinking = textIn(reply, "thinking")
    return {
      id: `chatcmpl-${head.id}`,
      object: "chat.completion",
      created: head.createdSeconds,
      model: head.model,
      choices: [{
        index: 0,
        message: {
          role: "assistant",
          content: textIn(reply, "text"),
          ...(thinking === "" ? {} : { reasoning_content: thinking }),
          ...(calls.length === 0 ? {} : { tool_calls: calls })
        },
        finish_reason: finishReason(reply.stop)
      }],
      usage: usage(head.usage)
    }
  },
  failure: OpenAiResponsesWire.failure,
  failureFrame: () =>
    ModelWire.event(null, {
      error: { message: "The server had an error while processing your request.", type: "server_error", param: null, code: null }
    }),
  tornFrame: "data: {\"id\": \"chatcm\n\n"
}
