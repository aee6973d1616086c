/**
 * The OpenAI Responses protocol.
 *
 * Source: the vendor's API reference, "Responses" and "Streaming events", and
 * what Codex 0.171.0 accepts. A refusal is told as the vendor tells a content
 * filter, `incomplete` for `content_filter`: the form that ends an answer.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ModelReply from "./ModelReply.ts"
import type * as ModelRequest from "./ModelRequest.ts"
import * as ModelWire from "./ModelWire.ts"

const Content = Schema.Union([
  Schema.String,
  Schema.Array(Schema.Struct({ type: Schema.String, text: Schema.optionalKey(Schema.String) }))
])

const Item = Schema.Struct({
  type: Schema.optionalKey(Schema.String),
  role: Schema.optionalKey(Schema.Literals(["user", "assistant", "system", "developer"])),
  content: Schema.optionalKey(Schema.NullOr(Content)),
  name: Schema.optionalKey(Schema.String),
  arguments: Schema.optionalKey(Schema.String),
  input: Schema.optionalKey(Schema.Unknown),
  output: Schema.optionalKey(Schema.Unknown),
  summary: Schema.optionalKey(Content)
})
type Item = typeof Item.Type

const Body = Schema.Struct({
  model: Schema.NonEmptyString,
  input: Schema.Union([Schema.String, Schema.Array(Item)]),
  instructions: Schema.optionalKey(Schema.NullOr(Schema.String)),
  stream: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  tools: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        type: Schema.String,
        name: Schema.optionalKey(Schema.String),
        parameters: Schema.optionalKey(Schema.Unknown)
      })
    )
  )
})

const decode = Schema.decodeUnknownResult(Body)
const asContent = Schema.decodeUnknownResult(Content)

const flatten = (content: unknown): string => {
  if (content === undefined || content === null) return ""
  const known = asContent(content)
  if (Result.isFailure(known)) return JSON.stringify(content)
  const parts = known.success
  return typeof parts === "string" ? parts : parts.map((part) => part.text ?? `[${part.type}]`).join("\n")
}

const messagesOf = (item: Item): ReadonlyArray<ModelRequest.Message> => {
  const type = item.type ?? "message"
  if (type === "message") {
    const role = item.role ?? "user"
    if (typeof item.content === "string") return [{ role, kind: "text", text: item.content }]
    return (item.content ?? []).map((part) =>
      part.text === undefined ? { role, kind: "other", text: `[${part.type}]` } : { role, kind: "text", text: part.text }
    )
  }
  if (type === "reasoning") return [{ role: "assistant", kind: "thinking", text: flatten(item.summary) }]
  if (type.endsWith("_output")) return [{ role: "tool", kind: "tool_result", text: flatten(item.output) }]
  if (type.endsWith("_call")) {
    return [{
      role: "assistant",
      kind: "tool_call",
      text: item.arguments ?? flatten(item.input),
      tool_name: item.name ?? type
    }]
  }
  return [{ role: "assistant", kind: "other", text: `[${type}]` }]
}

const reading = (body: typeof Body.Type): ModelWire.Reading => ({
  model: body.model,
  stream: body.stream ?? false,
  system: body.instructions ?? "",
  messages: typeof body.input === "string"
    ? [{ role: "user", kind: "text", text: body.input }]
    : body.input.flatMap(messagesOf),
  tools: (body.tools ?? []).map((tool) => ({
    name: tool.name ?? tool.type,
    ...(tool.parameters === undefined ? {} : { input_schema: tool.parameters })
  }))
})

const usage = (tokens: ModelRequest.Usage) => {
  const input = tokens.input + tokens.cache_read + tokens.cache_write
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: tokens.cache_read },
    output_tokens: tokens.output,
    output_tokens_details: { reasoning_tokens: tokens.reasoning },
    total_tokens: input + tokens.output
  }
}

type Status = "in_progress" | "completed" | "incomplete" | "failed"

const ending = (stop: ModelReply.Stop): readonly [status: Status, details: { readonly reason: string } | null] => {
  switch (stop) {
    case "end_turn":
    case "tool_use":
      return ["completed", null]
    case "max_tokens":
      return ["incomplete", { reason: "max_output_tokens" }]
    case "refusal":
      return ["incomplete", { reason: "content_filter" }]
  }
}

const response = (
  head: ModelWire.Head,
  status: Status,
  rest: {
    readonly output?: ReadonlyArray<unknown>
    readonly incomplete_details?: unknown
    readonly error?: unknown
    readonly usage?: unknown
  } = {}
) => ({
  id: `resp_${head.id}`,
  object: "response",
  created_at: head.createdSeconds,
  model: head.model,
  status,
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  output: [],
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  usage: null,
  ...rest
})

const textPart = (text: string) => ({ type: "output_text", text, annotations: [] })

const finished = (part: ModelReply.Part, id: string, status: Status) => {
  switch (part.type) {
    case "thinking":
      return { type: "reasoning", id: `rs_${id}`, summary: [{ type: "summary_text", text: ModelReply.textOf(part.words) }] }
    case "text":
      return { type: "message", id: `msg_${id}`, role: "assistant", status, content: [textPart(ModelReply.textOf(part.words))] }
    case "tool_call":
      return {
        type: "function_call",
        id: `fc_${id}`,
        call_id: `call_${id}`,
        name: part.name,
        arguments: JSON.stringify(part.input),
        status: "completed"
      }
  }
}

const outputOf = (reply: ModelReply.ModelReply, head: ModelWire.Head) => {
  const [status] = ending(reply.stop)
  return reply.parts.map((part, index) => finished(part, `${head.id}_${index}`, status))
}

function* frames(reply: ModelReply.ModelReply, head: ModelWire.Head): Iterable<ModelWire.Frame> {
  let sequence_number = 0
  const say = (mark: ModelWire.Frame["mark"], type: string, data: Readonly<Record<string, unknown>>) => ({
    mark,
    text: ModelWire.event(type, { type, sequence_number: sequence_number++, ...data })
  })
  const output = outputOf(reply, head)
  yield say("opening", "response.created", { response: response(head, "in_progress") })
  yield say("opening", "response.in_progress", { response: response(head, "in_progress") })
  for (const [output_index, part] of reply.parts.entries()) {
    const item = output[output_index]
    const id = `${head.id}_${output_index}`
    const added = (mark: ModelWire.Frame["mark"], item: unknown) => say(mark, "response.output_item.added", { output_index, item })
    switch (part.type) {
      case "thinking": {
        const at = { item_id: `rs_${id}`, output_index, summary_index: 0 }
        const text = ModelReply.textOf(part.words)
        yield added("opening", { type: "reasoning", id: at.item_id, summary: [] })
        yield say("opening", "response.reasoning_summary_part.added", { ...at, part: { type: "summary_text", text: "" } })
        for (const word of part.words) yield say("opening", "response.reasoning_summary_text.delta", { ...at, delta: word })
        yield say("opening", "response.reasoning_summary_text.done", { ...at, text })
        yield say("opening", "response.reasoning_summary_part.done", { ...at, part: { type: "summary_text", text } })
        yield say("opening", "response.output_item.done", { output_index, item })
        break
      }
      case "text": {
        const at = { item_id: `msg_${id}`, output_index, content_index: 0 }
        const text = ModelReply.textOf(part.words)
        yield added("opening", { type: "message", id: at.item_id, role: "assistant", status: "in_progress", content: [] })
        yield say("opening", "response.content_part.added", { ...at, part: textPart("") })
        for (const word of part.words) yield say("word", "response.output_text.delta", { ...at, delta: word, logprobs: [] })
        yield say("closing", "response.output_text.done", { ...at, text, logprobs: [] })
        yield say("closing", "response.content_part.done", { ...at, part: textPart(text) })
        yield say("closing", "response.output_item.done", { output_index, item })
        break
      }
      case "tool_call": {
        const at = { item_id: `fc_${id}`, output_index }
        const text = JSON.stringify(part.input)
        yield added("closing", { ...finished(part, id, "in_progress"), arguments: "", status: "in_progress" })
        for (const delta of ModelWire.pieces(text, 24)) yield say("closing", "response.function_call_arguments.delta", { ...at, delta })
        yield say("closing", "response.function_call_arguments.done", { ...at, arguments: text })
        yield say("closing", "response.output_item.done", { output_index, item })
        break
      }
    }
  }
  const [status, incomplete_details] = ending(reply.stop)
  yield say("closing", `response.${status}`, {
    response: response(head, status, { output, incomplete_details, usage: usage(head.usage) })
  })
}

const errorTypes: Readonly<Record<number, readonly [type: string, code: string | null, message: string]>> = {
  400: ["invalid_request_error", null, "The request is invalid."],
  401: ["invalid_request_error", "invalid_api_key", "Incorrect API key provided."],
  403: ["invalid_request_error", "unsupported_country_region_territory", "The API key may not use this resource."],
  404: ["invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."],
  413: ["invalid_request_error", "request_too_large", "The request exceeds the maximum size."],
  429: ["requests", "rate_limit_exceeded", "Rate limit reached for requests."],
  500: ["server_error", "server_error", "The server had an error while processing your request."],
  503: ["server_error", "service_unavailable", "The engine is currently overloaded, please try again later."]
}

/** The JSON body of a refusal, which both OpenAI protocols share. */
export const failure: ModelWire.ModelWire["failure"] = (refusal) => {
  if (refusal.reason === "context_too_long") {
    return {
      error: {
        message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
        type: "invalid_request_error",
        param: "input",
        code: "context_length_exceeded"
      }
    }
  }
  const [type, code, message] = errorTypes[refusal.status] ?? ["server_error", null, `Status ${refusal.status}`]
  return { error: { message: refusal.message ?? message, type, param: null, code } }
}

export const wire: ModelWire.ModelWire = {
  name: "openai-responses",
  read: (body) => Result.mapBoth(decode(body), { onSuccess: reading, onFailure: (error) => error.message }),
  frames,
  whole: (reply, head) => {
    const [status, incomplete_details] = ending(reply.stop)
    return response(head, status, { output: outputOf(reply, head), incomplete_details, usage: usage(head.usage) })
  },
  failure,
  failureFrame: (head, framesBefore) =>
    ModelWire.event("response.failed", {
      type: "response.failed",
      sequence_number: framesBefore,
      response: response(head, "failed", {
        error: { code: "server_error", message: "The model failed to generate a response." }
      })
    }),
  tornFrame: "event: response.output_text.delta\ndata: {\"type\": \"response.output_te\n\n"
}
