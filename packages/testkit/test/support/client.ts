/**
 * A client of the three wires, written from the vendors' references and not from
 * the server's own code: it asks by `fetch` and tells what it understood.
 */
import * as Effect from "effect/Effect"

export type Wire = "anthropic-messages" | "openai-responses" | "openai-chat"
export const wires: ReadonlyArray<Wire> = ["anthropic-messages", "openai-responses", "openai-chat"]

export const paths: Record<Wire, string> = {
  "anthropic-messages": "/v1/messages",
  "openai-responses": "/v1/responses",
  "openai-chat": "/v1/chat/completions"
}

/** An object of JSON, read with the types that the reader expects; anything else is an error of the server. */
class Json {
  readonly value: Readonly<Record<string, unknown>>
  constructor(value: unknown) {
    if (typeof value !== "object" || value === null) throw new Error(`not an object: ${JSON.stringify(value)}`)
    this.value = value as Readonly<Record<string, unknown>>
  }
  has(key: string): boolean {
    return this.value[key] !== undefined && this.value[key] !== null
  }
  at(key: string): Json {
    return new Json(this.value[key])
  }
  list(key: string): ReadonlyArray<Json> {
    const value = this.value[key]
    if (!Array.isArray(value)) throw new Error(`${key} is not a list: ${JSON.stringify(value)}`)
    return value.map((item) => new Json(item))
  }
  text(key: string): string {
    const value = this.value[key]
    if (typeof value !== "string") throw new Error(`${key} is not a text: ${JSON.stringify(value)}`)
    return value
  }
  number(key: string): number {
    const value = this.value[key]
    if (typeof value !== "number") throw new Error(`${key} is not a number: ${JSON.stringify(value)}`)
    return value
  }
  is(key: string, value: unknown): boolean {
    return this.value[key] === value
  }
}

export interface Question {
  readonly prompts: ReadonlyArray<string>
  readonly stream: boolean
  readonly tool?: { readonly name: string; readonly schema: unknown }
  /** Tool exchanges that already took place: the call's command and its result. */
  readonly results?: ReadonlyArray<{ readonly command: string; readonly output: string }>
}

/** A body that asks the same in each wire: prompts and answers alternate, then tool calls and their results. */
export const bodyFor = (wire: Wire, question: Question): Record<string, unknown> => {
  const { prompts, stream, tool, results = [] } = question
  const name = tool?.name ?? "Bash"
  const said = prompts.flatMap((prompt, index) => [
    ...(index === 0 ? [] : [{ role: "assistant", content: "noted" }]),
    { role: "user", content: prompt }
  ])
  switch (wire) {
    case "anthropic-messages":
      return {
        model: "m1",
        max_tokens: 100,
        stream,
        system: "be brief",
        messages: [
          ...said,
          ...results.flatMap(({ command, output }, index) => [
            { role: "assistant", content: [{ type: "tool_use", id: `t${index}`, name, input: { command } }] },
            { role: "user", content: [{ type: "tool_result", tool_use_id: `t${index}`, content: output }] }
          ])
        ],
        ...(tool === undefined ? {} : { tools: [{ name, description: "", input_schema: tool.schema }] })
      }
    case "openai-responses":
      return {
        model: "m1",
        stream,
        instructions: "be brief",
        input: [
          ...said.map((message) => ({ type: "message", ...message })),
          ...results.flatMap(({ command, output }, index) => [
            { type: "function_call", call_id: `t${index}`, name, arguments: JSON.stringify({ command }) },
            { type: "function_call_output", call_id: `t${index}`, output }
          ])
        ],
        ...(tool === undefined ? {} : { tools: [{ type: "function", name, parameters: tool.schema }] })
      }
    case "openai-chat":
      return {
        model: "m1",
        stream,
        messages: [
          { role: "system", content: "be brief" },
          ...said,
          ...results.flatMap(({ command, output }, index) => [
            {
              role: "assistant",
              content: null,
              tool_calls: [{ id: `t${index}`, type: "function", function: { name, arguments: JSON.stringify({ command }) } }]
            },
            { role: "tool", tool_call_id: `t${index}`, content: output }
          ])
        ],
        ...(tool === undefined ? {} : { tools: [{ type: "function", function: { name, parameters: tool.schema } }] })
      }
  }
}

export interface Raw {
  readonly status: number
  readonly headers: Headers
  readonly body: string
  /** Whether the connection broke before the body's end. */
  readonly broken: boolean
}

/** Reads a response as far as it goes. `onText` sees each piece with all before it. */
export const read = async (response: Response, onText: (soFar: string) => void = () => {}): Promise<Raw> => {
  const decoder = new TextDecoder()
  let body = ""
  let broken = false
  try {
    for await (const chunk of response.body ?? []) {
      body += decoder.decode(chunk, { stream: true })
      onText(body)
    }
  } catch {
    broken = true
  }
  return { status: response.status, headers: response.headers, body, broken }
}

export const post = (url: string, body: unknown, init: RequestInit = {}): Promise<Response> =>
  fetch(url, {
    method: "POST",
    body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
    ...init,
    headers: { "content-type": "application/json", ...init.headers }
  })

/** Asks and reads to the end; a connection that is reset before any answer has status 0. */
export const ask = (wire: Wire, baseUrl: string, question: Question): Effect.Effect<Raw> =>
  Effect.promise(() =>
    post(`${baseUrl}${paths[wire]}`, bodyFor(wire, question)).then(
      (response) => read(response),
      () => ({ status: 0, headers: new Headers(), body: "", broken: true })
    )
  )

export interface Understood {
  readonly status: number
  readonly text: string
  readonly thinking: string
  readonly calls: ReadonlyArray<{ readonly name: string; readonly input: unknown }>
  /** The wire's own word for why it ended; null if it did not say. */
  readonly stop: string | null
  /** Whether the wire's end mark was there and the connection whole. */
  readonly complete: boolean
  readonly error: { readonly type: string; readonly message: string } | null
  /** Input without caches, cache reads, output. */
  readonly usage: readonly [input: number, cached: number, output: number] | null
}

interface SseEvent {
  readonly name: string | null
  readonly data: Json | "[DONE]" | null
}

/** Splits a stream in events; data that is not JSON is null. Lines other than event and data are not expected. */
export const eventsOf = (body: string): ReadonlyArray<SseEvent> => {
  const blocks = body.split("\n\n")
  if (blocks.at(-1) === "") blocks.pop()
  return blocks.map((block) => {
    let name: string | null = null
    const data: Array<string> = []
    for (const line of block.split("\n")) {
      if (line.startsWith("event: ")) name = line.slice(7)
      else if (line.startsWith("data: ")) data.push(line.slice(6))
      else throw new Error(`not a line of an event: ${JSON.stringify(line)}`)
    }
    const text = data.join("\n")
    if (text === "[DONE]") return { name, data: "[DONE]" }
    try {
      return { name, data: new Json(JSON.parse(text)) }
    } catch {
      return { name, data: null }
    }
  })
}

const nothing = { text: "", thinking: "", calls: [], stop: null, complete: false, error: null, usage: null }

const anthropicUsage = (usage: Json): Understood["usage"] => [
  usage.number("input_tokens"),
  usage.number("cache_read_input_tokens"),
  usage.number("output_tokens")
]

const responsesUsage = (response: Json): Understood["usage"] => {
  if (!response.has("usage")) return null
  const usage = response.at("usage")
  const cached = usage.at("input_tokens_details").number("cached_tokens")
  const [input, output] = [usage.number("input_tokens"), usage.number("output_tokens")]
  if (usage.number("total_tokens") !== input + output) throw new Error("the total is wrong")
  return [input - cached, cached, output]
}

const chatUsage = (usage: Json): Understood["usage"] => {
  const cached = usage.at("prompt_tokens_details").number("cached_tokens")
  return [usage.number("prompt_tokens") - cached, cached, usage.number("completion_tokens")]
}

const responseStop = (response: Json): string =>
  response.has("incomplete_details")
    ? `${response.text("status")}:${response.at("incomplete_details").text("reason")}`
    : response.text("status")

/** What of a stream can be used: a client ends at the first event that it cannot read. */
const readable = (events: ReadonlyArray<SseEvent>): ReadonlyArray<readonly [name: string, data: Json]> => {
  const out: Array<readonly [string, Json]> = []
  for (const { name, data } of events) {
    if (data === null || data === "[DONE]") break
    if (!data.is("type", name)) throw new Error(`event ${name} has another type in its data`)
    out.push([data.text("type"), data])
  }
  return out
}

const understandStream: Record<Wire, (events: ReadonlyArray<SseEvent>) => Omit<Understood, "status">> = {
  "anthropic-messages": (events) => {
    const open = new Map<number, { readonly block: Json; args: string }>()
    let out: Omit<Understood, "status"> = nothing
    for (const [name, data] of readable(events)) {
      if (name === "content_block_start") {
        if (open.size > 0) throw new Error("two blocks are open")
        open.set(data.number("index"), { block: data.at("content_block"), args: "" })
      } else if (name === "content_block_delta") {
        const current = open.get(data.number("index"))
        if (current === undefined) throw new Error("a delta of a block that is not open")
        const delta = data.at("delta")
        if (delta.is("type", "text_delta")) out = { ...out, text: out.text + delta.text("text") }
        if (delta.is("type", "thinking_delta")) out = { ...out, thinking: out.thinking + delta.text("thinking") }
        if (delta.is("type", "input_json_delta")) current.args += delta.text("partial_json")
      } else if (name === "content_block_stop") {
        const current = open.get(data.number("index"))
        if (current === undefined) throw new Error("a block ends that is not open")
        open.delete(data.number("index"))
        if (current.block.is("type", "tool_use")) {
          out = { ...out, calls: [...out.calls, { name: current.block.text("name"), input: JSON.parse(current.args) }] }
        }
      } else if (name === "message_delta") {
        out = { ...out, stop: data.at("delta").text("stop_reason"), usage: anthropicUsage(data.at("usage")) }
      } else if (name === "message_stop") {
        if (open.size > 0) throw new Error("the message ends with an open block")
        out = { ...out, complete: true }
      } else if (name === "error") {
        out = { ...out, error: { type: data.at("error").text("type"), message: data.at("error").text("message") } }
      } else if (name !== "message_start" && name !== "ping") throw new Error(`unknown event ${name}`)
    }
    return out
  },
  "openai-responses": (events) => {
    let out: Omit<Understood, "status"> = nothing
    const args = new Map<string, string>()
    for (const [sequence, [name, data]] of readable(events).entries()) {
      if (!data.is("sequence_number", sequence)) throw new Error("the sequence has a gap")
      switch (name) {
        case "response.output_text.delta":
          out = { ...out, text: out.text + data.text("delta") }
          break
        case "response.reasoning_summary_text.delta":
          out = { ...out, thinking: out.thinking + data.text("delta") }
          break
        case "response.function_call_arguments.delta":
          args.set(data.text("item_id"), (args.get(data.text("item_id")) ?? "") + data.text("delta"))
          break
        case "response.output_item.done": {
          const item = data.at("item")
          if (!item.is("type", "function_call")) break
          if (!item.is("arguments", args.get(item.text("id")))) throw new Error("the deltas are not the arguments")
          out = { ...out, calls: [...out.calls, { name: item.text("name"), input: JSON.parse(item.text("arguments")) }] }
          break
        }
        case "response.completed":
        case "response.incomplete":
        case "response.failed": {
          const response = data.at("response")
          const error = response.has("error") ? response.at("error") : null
          out = {
            ...out,
            stop: responseStop(response),
            complete: error === null,
            usage: responsesUsage(response),
            error: error && { type: error.text("code"), message: error.text("message") }
          }
          break
        }
      }
    }
    return out
  },
  "openai-chat": (events) => {
    let out: Omit<Understood, "status"> = nothing
    const calls: Array<{ readonly name: string; args: string }> = []
    for (const { name, data } of events) {
      if (name !== null) throw new Error(`a chunk has the name ${name}`)
      if (data === null) break
      if (data === "[DONE]") {
        out = { ...out, complete: true }
        break
      }
      if (data.has("error")) {
        out = { ...out, error: { type: data.at("error").text("type"), message: data.at("error").text("message") } }
        break
      }
      if (data.has("usage")) out = { ...out, usage: chatUsage(data.at("usage")) }
      for (const choice of data.list("choices")) {
        const delta = choice.at("delta")
        out = {
          ...out,
          text: out.text + (delta.has("content") ? delta.text("content") : ""),
          thinking: out.thinking + (delta.has("reasoning_content") ? delta.text("reasoning_content") : ""),
          stop: choice.has("finish_reason") ? choice.text("finish_reason") : out.stop
        }
        for (const call of delta.has("tool_calls") ? delta.list("tool_calls") : []) {
          const known = calls[call.number("index")]
          const fn = call.at("function")
          if (known === undefined) calls[call.number("index")] = { name: fn.text("name"), args: fn.text("arguments") }
          else known.args += fn.text("arguments")
        }
      }
    }
    return { ...out, calls: calls.map((call) => ({ name: call.name, input: JSON.parse(call.args) })) }
  }
}

const understandWhole: Record<Wire, (body: Json) => Omit<Understood, "status">> = {
  "anthropic-messages": (body) => {
    const blocks = (type: string) => body.list("content").filter((part) => part.is("type", type))
    return {
      ...nothing,
      text: blocks("text").map((part) => part.text("text")).join(""),
      thinking: blocks("thinking").map((part) => part.text("thinking")).join(""),
      calls: blocks("tool_use").map((part) => ({ name: part.text("name"), input: part.at("input").value })),
      stop: body.text("stop_reason"),
      complete: true,
      usage: anthropicUsage(body.at("usage"))
    }
  },
  "openai-responses": (body) => {
    const items = (type: string) => body.list("output").filter((item) => item.is("type", type))
    return {
      ...nothing,
      text: items("message").flatMap((item) => item.list("content").map((part) => part.text("text"))).join(""),
      thinking: items("reasoning").flatMap((item) => item.list("summary").map((part) => part.text("text"))).join(""),
      calls: items("function_call").map((item) => ({ name: item.text("name"), input: JSON.parse(item.text("arguments")) })),
      stop: responseStop(body),
      complete: true,
      usage: responsesUsage(body)
    }
  },
  "openai-chat": (body) => {
    const [choice] = body.list("choices")
    if (choice === undefined) throw new Error("there is no choice")
    const message = choice.at("message")
    return {
      ...nothing,
      text: message.text("content"),
      thinking: message.has("reasoning_content") ? message.text("reasoning_content") : "",
      calls: (message.has("tool_calls") ? message.list("tool_calls") : []).map((call) => ({
        name: call.at("function").text("name"),
        input: JSON.parse(call.at("function").text("arguments"))
      })),
      stop: choice.text("finish_reason"),
      complete: true,
      usage: chatUsage(body.at("usage"))
    }
  }
}

const parse = (text: string): Json | null => {
  try {
    return new Json(JSON.parse(text))
  } catch {
    return null
  }
}

/** Tells what a client makes of an answer; throws if the answer breaks a rule of its wire. */
export const understand = (wire: Wire, raw: Raw): Understood => {
  const { status } = raw
  if (raw.headers.get("content-type")?.startsWith("text/event-stream") === true) {
    const out = understandStream[wire](eventsOf(raw.body))
    return { status, ...out, complete: out.complete && !raw.broken }
  }
  const body = raw.broken ? null : parse(raw.body)
  if (body === null) return { status, ...nothing }
  if (status >= 400) {
    const error = body.at("error")
    return { status, ...nothing, error: { type: error.text("type"), message: error.text("message") } }
  }
  return { status, ...understandWhole[wire](body) }
}
