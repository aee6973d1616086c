/**
 * Codex's words: the lines of `codex app-server`, JSON-RPC without the field
 * `jsonrpc`.
 *
 * Names and casing are Codex's. Observed in 0.171.0, whose recordings are in
 * `test/fixtures/codex/`, and compared by hand with what the same binary says of
 * itself (`codex app-server generate-ts`). Fields that are not named here are
 * ignored, and a frame that does not fit is not guessed at: {@link read} says
 * that it is unknown.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** A field that is absent, null, or there. */
const maybe = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

export const RequestId = Schema.Union([Schema.String, Schema.Finite])
export type RequestId = typeof RequestId.Type

/** A word, or an object with one key that names the kind and may carry `httpStatusCode`. */
export const ErrorInfo = Schema.NullOr(Schema.Json)

export const TurnError = Schema.Struct({
  message: Schema.String,
  codexErrorInfo: Schema.optionalKey(ErrorInfo),
  additionalDetails: maybe(Schema.String)
})

const TokenCounts = Schema.Struct({
  inputTokens: Schema.Finite,
  cachedInputTokens: maybe(Schema.Finite),
  cacheWriteInputTokens: maybe(Schema.Finite),
  outputTokens: Schema.Finite,
  reasoningOutputTokens: maybe(Schema.Finite)
})

const AgentMessage = Schema.Struct({ type: Schema.Literal("agentMessage"), id: Schema.String, text: Schema.String })
const Reasoning = Schema.Struct({
  type: Schema.Literal("reasoning"),
  id: Schema.String,
  summary: maybe(Schema.Array(Schema.String)),
  content: maybe(Schema.Array(Schema.String))
})
const CommandExecution = Schema.Struct({
  type: Schema.Literal("commandExecution"),
  id: Schema.String,
  command: Schema.String,
  cwd: maybe(Schema.String),
  status: Schema.String,
  aggregatedOutput: maybe(Schema.String),
  exitCode: maybe(Schema.Finite)
})
const FileChange = Schema.Struct({
  type: Schema.Literal("fileChange"),
  id: Schema.String,
  changes: Schema.Array(Schema.Struct({ path: Schema.String, kind: Schema.optionalKey(Schema.Json), diff: maybe(Schema.String) })),
  status: Schema.String
})
const McpToolCall = Schema.Struct({
  type: Schema.Literal("mcpToolCall"),
  id: Schema.String,
  server: Schema.String,
  tool: Schema.String,
  status: Schema.String,
  arguments: Schema.optionalKey(Schema.Json),
  result: Schema.optionalKey(Schema.Json),
  error: maybe(Schema.Struct({ message: Schema.String }))
})
const WebSearch = Schema.Struct({ type: Schema.Literal("webSearch"), id: Schema.String, query: maybe(Schema.String) })

/** An item of a kind that is not told: the prompt itself, pictures, plans, marks. */
const OtherItem = Schema.Struct({ type: Schema.String, id: Schema.String })

export const Item = Schema.Union([AgentMessage, Reasoning, CommandExecution, FileChange, McpToolCall, WebSearch, OtherItem])
export type Item = typeof Item.Type

const ofItem = Schema.Struct({ threadId: Schema.String, turnId: Schema.String, item: Item })
const delta = Schema.Struct({ threadId: Schema.String, turnId: Schema.String, itemId: Schema.String, delta: Schema.String })

const Turn = Schema.Struct({ id: Schema.String, status: Schema.String, error: maybe(TurnError) })

/** What a thread is started or resumed with is said again in the answer; `sandbox` is what is in force. */
export const Thread = Schema.Struct({
  thread: Schema.Struct({ id: Schema.String, cliVersion: maybe(Schema.String) }),
  model: maybe(Schema.String),
  cwd: maybe(Schema.String),
  approvalPolicy: Schema.optionalKey(Schema.Json),
  sandbox: maybe(Schema.Struct({ type: Schema.String }))
})

export const RpcError = Schema.Struct({ code: Schema.Finite, message: Schema.String, data: Schema.optionalKey(Schema.Json) })
export type RpcError = typeof RpcError.Type

const notifications = {
  "turn/started": Schema.Struct({ threadId: Schema.String, turn: Turn }),
  /** The end of a turn: `completed`, `interrupted` or `failed`. */
  "turn/completed": Schema.Struct({ threadId: Schema.String, turn: Turn }),
  "turn/plan/updated": Schema.Struct({
    threadId: Schema.String,
    turnId: Schema.String,
    plan: Schema.Array(Schema.Struct({ step: Schema.String, status: Schema.String }))
  }),
  "item/started": ofItem,
  "item/completed": ofItem,
  "item/agentMessage/delta": delta,
  "item/reasoning/summaryTextDelta": delta,
  "item/reasoning/textDelta": delta,
  /** Comes after each answer of a model. `total` is the thread's, also across processes; `last` is the answer's. */
  "thread/tokenUsage/updated": Schema.Struct({
    threadId: Schema.String,
    turnId: Schema.String,
    tokenUsage: Schema.Struct({ total: TokenCounts, last: TokenCounts })
  }),
  /** With `willRetry` it is no failure; without, `turn/completed` says the same again. */
  error: Schema.Struct({ threadId: maybe(Schema.String), turnId: maybe(Schema.String), willRetry: Schema.Boolean, error: TurnError }),
  warning: Schema.Struct({ message: Schema.String }),
  guardianWarning: Schema.Struct({ message: Schema.String }),
  /** The configuration cannot be read, or part of it is not taken. */
  configWarning: Schema.Struct({ summary: Schema.String, details: maybe(Schema.String) }),
  deprecationNotice: Schema.Struct({ summary: Schema.String, details: maybe(Schema.String) }),
  "model/rerouted": Schema.Struct({ fromModel: Schema.String, toModel: Schema.String }),
  "mcpServer/startupStatus/updated": Schema.Struct({ name: Schema.String, status: Schema.String, error: maybe(Schema.String) }),
  /** Codex no longer waits for the answer to its request. It also follows every answer. */
  "serverRequest/resolved": Schema.Struct({ requestId: RequestId })
} as const

/** Requests of Codex's own. It waits for each until it is answered. */
const requests = {
  "item/commandExecution/requestApproval": Schema.Struct({
    threadId: Schema.String,
    itemId: Schema.String,
    reason: maybe(Schema.String),
    command: maybe(Schema.String),
    cwd: maybe(Schema.String),
    networkApprovalContext: Schema.optionalKey(Schema.Json)
  }),
  "item/fileChange/requestApproval": Schema.Struct({
    threadId: Schema.String,
    itemId: Schema.String,
    reason: maybe(Schema.String),
    grantRoot: maybe(Schema.String)
  }),
  "item/permissions/requestApproval": Schema.Struct({
    threadId: Schema.String,
    itemId: Schema.String,
    reason: maybe(Schema.String),
    permissions: Schema.Struct({ network: Schema.optionalKey(Schema.Json), fileSystem: Schema.optionalKey(Schema.Json) })
  }),
  /** With `codex_approval_kind: "mcp_tool_call"` it asks whether a tool of a server may run; else a server asks a person. */
  "mcpServer/elicitation/request": Schema.Struct({
    threadId: Schema.String,
    serverName: Schema.String,
    message: maybe(Schema.String),
    _meta: maybe(Schema.Struct({
      codex_approval_kind: maybe(Schema.String),
      tool_name: maybe(Schema.String),
      tool_params: Schema.optionalKey(Schema.Json)
    }))
  })
} as const

/**
 * Notifications that say nothing of a turn: progress of what another tells
 * whole, and the state of what Turnpike does not use. The names are in 0.171.0's
 * own list of its notifications. So are all that begin with one of {@link families}.
 */
const chatter: ReadonlySet<string> = new Set([
  "thread/started",
  "thread/status/changed",
  "thread/readState/changed",
  "thread/name/updated",
  "thread/goal/updated",
  "thread/goal/cleared",
  "thread/prediction/updated",
  "thread/queue/changed",
  "thread/settings/updated",
  "thread/environment/connected",
  "thread/environment/disconnected",
  "thread/compacted",
  "skills/changed",
  "turn/diff/updated",
  "turn/moderationMetadata",
  "item/plan/delta",
  "item/commandExecution/outputDelta",
  "item/commandExecution/terminalInteraction",
  "item/fileChange/outputDelta",
  "item/fileChange/patchUpdated",
  "item/mcpToolCall/progress",
  "item/reasoning/summaryPartAdded",
  "model/safetyBuffering/updated",
  "model/verification",
  "remoteControl/status/changed"
])
const families = ["account/", "app/", "fs/", "hook/", "modelProvider/", "rawResponse", "project/"]

type Kinds<Schemas extends Record<string, Schema.Constraint>> = {
  [K in keyof Schemas & string]: { readonly kind: K; readonly params: Schemas[K]["Type"] }
}[keyof Schemas & string]

export type ServerRequest = Kinds<typeof requests>

export type Message =
  | Kinds<typeof notifications>
  | { readonly kind: "request"; readonly id: RequestId; readonly request: ServerRequest }
  /** A request that is not known; it has to be answered all the same. */
  | { readonly kind: "unknown request"; readonly id: RequestId; readonly name: string }
  | { readonly kind: "result"; readonly id: RequestId; readonly result: Schema.Json }
  | { readonly kind: "failure"; readonly id: RequestId; readonly error: RpcError }
  | { readonly kind: "chatter" }
  | { readonly kind: "unknown"; readonly name: string }

type Decoder = (value: unknown) => Result.Result<unknown, Schema.SchemaError>
const decodersOf = (schemas: Record<string, Schema.Codec<unknown, unknown>>): ReadonlyMap<string, Decoder> =>
  new Map(Object.entries(schemas).map(([name, schema]): [string, Decoder] => [name, Schema.decodeUnknownResult(schema)]))
const notificationDecoders = decodersOf(notifications)
const requestDecoders = decodersOf(requests)
const decodeError = Schema.decodeUnknownResult(RpcError)

type Frame = { readonly [key: string]: Schema.Json }

const isId = (value: Schema.Json | undefined): value is RequestId => typeof value === "string" || typeof value === "number"

/** Which request a frame answers; `undefined` for a frame that is no answer. */
export const answered = (frame: Frame): string | undefined =>
  isId(frame["id"]) && frame["method"] === undefined && ("result" in frame || "error" in frame) ? String(frame["id"]) : undefined

/** Whether a turn waits for a frame that begins like this: its ending, an answer, or a request of Codex's own. */
export const needed = ({ id, method }: Frame): boolean => isId(id) || method === "turn/completed"

/** Reads one frame. */
export const read = (frame: Frame): Message => {
  const { id, method } = frame
  if (typeof method !== "string") {
    if (!isId(id)) return { kind: "unknown", name: "without a method" }
    if (frame["error"] === undefined) return { kind: "result", id, result: frame["result"] ?? null }
    const error = decodeError(frame["error"])
    return { kind: "failure", id, error: Result.isSuccess(error) ? error.success : { code: 0, message: "an error without a message" } }
  }
  if (isId(id)) {
    const params = requestDecoders.get(method)?.(frame["params"])
    // The decoder was chosen by the method, which the compiler does not follow.
    return params !== undefined && Result.isSuccess(params)
      ? { kind: "request", id, request: { kind: method, params: params.success } as ServerRequest }
      : { kind: "unknown request", id, name: method }
  }
  if (chatter.has(method) || families.some((family) => method.startsWith(family))) return { kind: "chatter" }
  const params = notificationDecoders.get(method)?.(frame["params"])
  if (params === undefined) return { kind: "unknown", name: method }
  return Result.isSuccess(params)
    ? { kind: method, params: params.success } as Message
    : { kind: "unknown", name: `${method}, which does not have the expected shape` }
}

/** Reads the answer to `thread/start` and `thread/resume`. */
export const readThread = Schema.decodeUnknownResult(Thread)
/** Reads the answer to `turn/start`. */
export const readTurn = Schema.decodeUnknownResult(Schema.Struct({ turn: Schema.Struct({ id: Schema.String }) }))

/** The code of a server that takes no more requests for now. */
export const overloaded = -32001

const call = (id: string, method: string, params: Frame): Frame => ({ id, method, params })

export const initialize = (id: string, version: string): Frame =>
  call(id, "initialize", {
    clientInfo: { name: "turnpike", title: "Turnpike", version },
    capabilities: { experimentalApi: false, requestAttestation: false }
  })
export const initialized: Frame = { method: "initialized" }

export interface Terms {
  readonly cwd: string
  readonly model: string | undefined
  readonly developerInstructions: string | undefined
  readonly approvalPolicy: "on-request" | "never"
  readonly sandbox: "read-only" | "workspace-write" | "danger-full-access"
  /** `undefined` leaves the user's setting. */
  readonly webSearch: "disabled" | "live" | undefined
}

/**
 * All that decides what the thread may do is said each time: none of it is
 * inherited when a thread is resumed. `goals` would let Codex begin turns that
 * nobody prompted. The reviewer is set, because the user's settings may let a
 * model answer Codex's requests.
 */
const thread = (terms: Terms): Frame => ({
  cwd: terms.cwd,
  approvalPolicy: terms.approvalPolicy,
  approvalsReviewer: "user",
  sandbox: terms.sandbox,
  ...(terms.model === undefined ? {} : { model: terms.model }),
  config: { "features.goals": false, ...(terms.webSearch === undefined ? {} : { web_search: terms.webSearch }) }
})
export const startThread = (id: string, terms: Terms): Frame =>
  call(id, "thread/start", {
    ...thread(terms),
    ...(terms.developerInstructions === undefined ? {} : { developerInstructions: terms.developerInstructions })
  })
export const resumeThread = (id: string, threadId: string, terms: Terms): Frame =>
  call(id, "thread/resume", { threadId, excludeTurns: true, ...thread(terms) })

/**
 * Adds instructions to a thread that is resumed. `developerInstructions` are heeded
 * at a thread's start alone; said with a resume they are dropped in silence.
 */
export const instruct = (id: string, threadId: string, text: string): Frame =>
  call(id, "thread/inject_items", {
    threadId,
    items: [{ type: "message", role: "developer", content: [{ type: "input_text", text }] }]
  })

export const startTurn = (
  id: string,
  threadId: string,
  text: string,
  terms: Pick<Terms, "approvalPolicy"> & { readonly sandboxPolicy: Frame }
): Frame =>
  call(id, "turn/start", {
    threadId,
    input: [{ type: "text", text, text_elements: [] }],
    approvalPolicy: terms.approvalPolicy,
    approvalsReviewer: "user",
    sandboxPolicy: terms.sandboxPolicy
  })

/** Puts a message into a turn; Codex refuses it where another turn runs, or none. */
export const steerTurn = (id: string, threadId: string, turnId: string, text: string): Frame =>
  call(id, "turn/steer", { threadId, expectedTurnId: turnId, input: [{ type: "text", text, text_elements: [] }] })

export const interruptTurn = (id: string, threadId: string, turnId: string): Frame => call(id, "turn/interrupt", { threadId, turnId })

const answer = (id: RequestId, result: Frame): Frame => ({ id, result })

/** `cancel` stops the turn, too; after `decline` the model is told and goes on. */
export const decide = (id: RequestId, decision: "accept" | "decline" | "cancel"): Frame => answer(id, { decision })
export const grant = (id: RequestId, permissions: Frame): Frame => answer(id, { permissions, scope: "turn" })
export const elicited = (id: RequestId, action: "accept" | "decline" | "cancel"): Frame =>
  answer(id, { action, content: action === "accept" ? {} : null, _meta: null })

/** Says that a request is not understood, so that Codex does not wait. */
export const cannot = (id: RequestId, method: string): Frame => ({ id, error: { code: -32601, message: `${method} is not supported here` } })
