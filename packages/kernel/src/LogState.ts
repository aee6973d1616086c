/**
 * What the log of a session amounts to: which turn is open, and what is open in it.
 *
 * A pure fold over the events in order, and the law of the log: {@link next}
 * refuses what may not stand where it stands. It looks at each event once, at a
 * cost that does not grow with the log, and keeps what is open and one small
 * record for each message of the conversation.
 */
import type { InboxEntry, SessionEvent, Verdict } from "@turnpike/contract"
import * as Result from "effect/Result"
import * as Growing from "./internal/growing.ts"

/** The rules of a log that no schema of one event can state, by name. */
export const rules = {
  "seq-contiguous": "seq starts at 0 and has no gaps.",
  "enclosed-in-turn": "Every event but turn/start stands in an open turn.",
  "balanced-turns":
    "Turns do not overlap; they are numbered from 1 without gaps, and a turn ends once, under its own number, with no step open.",
  "balanced-steps": "Steps do not overlap; in each turn they are numbered from 1 without gaps, and a step ends once, under its own number.",
  "answered-calls": "A tool/result has a tool/call of its call_id before it in its turn, which is still open; no call is open twice.",
  "answered-requests": "A permission/decision has an open permission/request of its request_id before it in its turn.",
  "claimed-once": "An inbox/claimed names its own turn, and no receipt that the turn has claimed before.",
  "surface-range":
    "A replace takes at least one of the surface events that stand, and names each of them in source_event_seqs. A tool/result replaces only the one result of its own call.",
  "earlier-sources": "source_event_seqs are earlier than the event itself."
} as const
export type Rule = keyof typeof rules

/** An event that may not stand where it was to stand. */
export interface Violation {
  readonly rule: Rule
  readonly message: string
}

/** A tool that was called and has no result. */
export interface Call {
  /** That of its `tool/call`. */
  readonly seq: number
  readonly origin: SessionEvent.Of<"tool/call">["data"]["origin"]
  /** Whether it asked for a permission, and got it. One that was given is not taken back by asking again. */
  readonly permission: "unasked" | "missing" | "given"
}

export interface OpenTurn {
  readonly number: number
  readonly trigger: SessionEvent.Trigger
  /** The `seq` of its `turn/start`. */
  readonly startedSeq: number
  /** The last step that began; 0 before the first. */
  readonly step: number
  readonly stepOpen: boolean
  /** By `call_id`, in the order in which they were called. */
  readonly calls: ReadonlyMap<string, Call>
  /** Open permission requests by `request_id`, each with its call where it names one. */
  readonly requests: ReadonlyMap<string, string | undefined>
  /** Receipts that were taken out of the inbox, in order. */
  readonly claimed: ReadonlyArray<InboxEntry.ReceiptId>
  /** Those of `claimed` that no message of the turn is. They cannot have left for anywhere. */
  readonly unwritten: ReadonlySet<InboxEntry.ReceiptId>
  readonly hasUserMessage: boolean
  /** Whether it holds anything but what stands before the first thing leaves for a harness or a model, and notices. */
  readonly hasWork: boolean
}

/** One surface event as it stands: what a later `replace` has to name. */
interface Node {
  readonly seq: number
  /** Where it is a tool's result. */
  readonly callId: string | undefined
}

export interface LogState {
  /** The `seq` that is due. */
  readonly next: number
  /** The number of the last turn that began; 0 before the first. */
  readonly lastTurn: number
  /** The time of the last event; 0 before the first. */
  readonly lastTime: number
  readonly open: OpenTurn | undefined
  /** The surface events that stand. */
  readonly surface: Growing.Growing<Node>
}

/** The state of a log without events. */
export const empty = (): LogState => ({ next: 0, lastTurn: 0, lastTime: 0, open: undefined, surface: Growing.empty() })

type Step = Result.Result<LogState, Violation>

const violation = (rule: Rule, message: string): Result.Result<never, Violation> => Result.fail({ rule, message })

/** A name out of the log in a message: quoted, because it may hold anything, and bounded. */
const show = (name: string): string => JSON.stringify(name.length <= 80 ? name : `${name.slice(0, 80)}…`)

const without = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> => {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}

/** The turn after an event that says nothing of what is open. */
const worked = (open: OpenTurn): OpenTurn => open.hasWork ? open : { ...open, hasWork: true }

const nextCall = (open: OpenTurn, event: SessionEvent.Of<"tool/call">): Result.Result<OpenTurn, Violation> => {
  const { call_id, origin } = event.data
  if (open.calls.has(call_id)) return violation("answered-calls", `call ${show(call_id)} is open already`)
  const permission = [...open.requests.values()].includes(call_id) ? "missing" : "unasked"
  return Result.succeed({ ...worked(open), calls: new Map(open.calls).set(call_id, { seq: event.seq, origin, permission }) })
}

const permit = (open: OpenTurn, callId: string | undefined, permission: "missing" | "given"): OpenTurn["calls"] => {
  const call = callId === undefined ? undefined : open.calls.get(callId)
  return call === undefined || callId === undefined || call.permission === "given"
    ? open.calls
    : new Map(open.calls).set(callId, { ...call, permission })
}

const nextDecision = (open: OpenTurn, event: SessionEvent.Of<"permission/decision">): Result.Result<OpenTurn, Violation> => {
  const { decision, request_id } = event.data
  if (!open.requests.has(request_id)) {
    return violation("answered-requests", `request ${show(request_id)} is decided and not open`)
  }
  return Result.succeed({
    ...worked(open),
    calls: decision === "allow" ? permit(open, open.requests.get(request_id), "given") : open.calls,
    requests: without(open.requests, request_id)
  })
}

const nextClaim = (open: OpenTurn, event: SessionEvent.Of<"inbox/claimed">): Result.Result<OpenTurn, Violation> => {
  const { ids, turn } = event.data
  if (turn !== open.number) return violation("claimed-once", `it claims for turn ${turn}; turn ${open.number} is open`)
  const claimed = new Set(open.claimed)
  for (const id of ids) {
    if (claimed.has(id)) return violation("claimed-once", `receipt ${show(id)} is claimed twice`)
    claimed.add(id)
  }
  return Result.succeed({
    ...open,
    claimed: [...open.claimed, ...ids],
    unwritten: new Set([...open.unwritten, ...ids]),
    // The first claim comes before the first step. A later one is that of a turn which has begun.
    hasWork: open.hasWork || open.step > 0
  })
}

type Message = SessionEvent.Of<"user/message" | "context/message" | "steering/message">

const nextMessage = (open: OpenTurn, event: Message): OpenTurn => {
  const { receipt } = event.data
  let { unwritten } = open
  if (receipt !== undefined && unwritten.has(receipt)) {
    const rest = new Set(unwritten)
    rest.delete(receipt)
    unwritten = rest
  }
  return { ...open, unwritten, hasUserMessage: open.hasUserMessage || event.type === "user/message" }
}

/** What an event makes of the turn that it stands in. */
const nextTurn = (open: OpenTurn, event: SessionEvent.SessionEvent): Result.Result<OpenTurn | undefined, Violation> => {
  switch (event.type) {
    case "turn/start":
      return violation("balanced-turns", `turn ${event.data.turn} starts while turn ${open.number} is open`)
    case "turn/end":
      if (event.data.turn !== open.number) {
        return violation("balanced-turns", `turn ${event.data.turn} ends while turn ${open.number} is open`)
      }
      return open.stepOpen
        ? violation("balanced-turns", `turn ${open.number} ends while its step ${open.step} is open`)
        : Result.succeed(undefined)
    case "step/start":
      if (open.stepOpen) return violation("balanced-steps", `step ${event.data.step} starts while step ${open.step} is open`)
      return event.data.step === open.step + 1
        ? Result.succeed({ ...open, step: event.data.step, stepOpen: true })
        : violation("balanced-steps", `step ${event.data.step} starts; step ${open.step + 1} was due`)
    case "step/end":
      return open.stepOpen && event.data.step === open.step
        ? Result.succeed({ ...worked(open), stepOpen: false })
        : violation("balanced-steps", `step ${event.data.step} ends and is not open`)
    case "inbox/claimed":
      return nextClaim(open, event)
    case "user/message":
    case "context/message":
    case "steering/message":
      return Result.succeed(nextMessage(open, event))
    case "notice":
      // Some tell of what was before the turn.
      return Result.succeed(open)
    case "tool/call":
      return nextCall(open, event)
    case "tool/result":
      if (event.surface_op !== "append") return Result.succeed(worked(open))
      return open.calls.has(event.data.call_id)
        ? Result.succeed({ ...worked(open), calls: without(open.calls, event.data.call_id) })
        : violation("answered-calls", `call ${show(event.data.call_id)} has a result and is not open`)
    case "permission/request": {
      const { call_id, request_id } = event.data
      return Result.succeed({
        ...worked(open),
        calls: permit(open, call_id, "missing"),
        requests: new Map(open.requests).set(request_id, call_id)
      })
    }
    case "permission/decision":
      return nextDecision(open, event)
    default:
      return Result.succeed(worked(open))
  }
}

/** The surface after an event that is on it. */
const nextSurface = (
  state: LogState,
  event: SessionEvent.Of<SessionEvent.SurfaceType>
): Result.Result<LogState["surface"], Violation> => {
  const sources = event.source_event_seqs ?? []
  const late = sources.find((seq) => seq >= event.seq)
  if (late !== undefined) return violation("earlier-sources", `it names event ${late} as its source and is event ${event.seq} itself`)
  const callId = event.type === "tool/result" ? event.data.call_id : undefined
  const node: Node = { seq: event.seq, callId }
  if (event.surface_op === "append") return Result.succeed(Growing.add(state.surface, node))
  const { end, start } = event.surface_op.replace
  if (start >= end || end > state.surface.length) {
    return violation("surface-range", `it replaces ${start} to ${end}; ${state.surface.length} surface events stand`)
  }
  const replaced = Growing.slice(state.surface, start, end)
  const named = new Set(sources)
  const unnamed = replaced.find(({ seq }) => !named.has(seq))
  if (unnamed !== undefined) return violation("surface-range", `it replaces event ${unnamed.seq} and does not name it in source_event_seqs`)
  if (callId !== undefined && (replaced.length > 1 || replaced[0]?.callId !== callId)) {
    return violation("surface-range", `the result of call ${show(callId)} replaces something else`)
  }
  return Result.succeed(Growing.replace(state.surface, start, end, node))
}

const isOnSurface = (event: SessionEvent.SessionEvent): event is SessionEvent.Of<SessionEvent.SurfaceType> => "surface_op" in event

const begin = (state: LogState, event: SessionEvent.SessionEvent): Result.Result<OpenTurn, Violation> => {
  if (event.type === "turn/end") return violation("balanced-turns", `turn ${event.data.turn} ends and is not open`)
  if (event.type !== "turn/start") return violation("enclosed-in-turn", `${show(event.type)} stands outside a turn`)
  const { trigger, turn } = event.data
  if (turn !== state.lastTurn + 1) {
    return violation("balanced-turns", `turn ${turn} starts; turn ${state.lastTurn + 1} was due`)
  }
  return Result.succeed({
    number: turn,
    trigger,
    startedSeq: event.seq,
    step: 0,
    stepOpen: false,
    calls: new Map(),
    requests: new Map(),
    claimed: [],
    unwritten: new Set(),
    hasUserMessage: false,
    hasWork: false
  })
}

/**
 * The state after one more event, or the rule that it breaks. The event itself
 * is taken to be one of the contract; `state` is unchanged either way.
 */
export const next = (state: LogState, event: SessionEvent.SessionEvent): Step => {
  if (event.seq !== state.next) return violation("seq-contiguous", `seq is ${event.seq}; ${state.next} was due`)
  const open = state.open === undefined ? begin(state, event) : nextTurn(state.open, event)
  if (Result.isFailure(open)) return Result.fail(open.failure)
  const surface = isOnSurface(event) ? nextSurface(state, event) : Result.succeed(state.surface)
  if (Result.isFailure(surface)) return Result.fail(surface.failure)
  return Result.succeed({
    next: event.seq + 1,
    lastTurn: open.success?.number ?? state.lastTurn,
    lastTime: event.time,
    open: open.success,
    surface: surface.success
  })
}

/** The state after events in order, or the first one that breaks a rule. */
export const all = (
  state: LogState,
  events: Iterable<SessionEvent.SessionEvent>
): Result.Result<LogState, Violation & { readonly seq: number }> => {
  let current = state
  for (const event of events) {
    const after = next(current, event)
    if (Result.isFailure(after)) return Result.fail({ ...after.failure, seq: event.seq })
    current = after.success
  }
  return Result.succeed(current)
}

const outcome = (call: Call): Pick<SessionEvent.Of<"tool/result">["data"], "error_code" | "output"> =>
  call.permission !== "missing"
    ? {
      error_code: "TOOL_OUTCOME_UNKNOWN",
      output: "TOOL_OUTCOME_UNKNOWN: the turn ended before the tool did. It may have had effects; look at them before you run it again."
    }
    : { error_code: "TOOL_NOT_STARTED", output: "TOOL_NOT_STARTED: the turn ended before the tool began. It can be run again." }

/**
 * What has to be written before the open turn may end, in order: an answer for
 * each open permission request, a result for each open call, the end of its step.
 * Nothing where no turn is open.
 *
 * A call that asked for a permission and did not get it has certainly not
 * begun. Of any other nobody knows.
 */
export const dangling = ({ open }: LogState): ReadonlyArray<SessionEvent.Body> => {
  if (open === undefined) return []
  const bodies: Array<SessionEvent.Body> = []
  for (const request_id of open.requests.keys()) {
    bodies.push({
      type: "permission/decision",
      data: { request_id, decision: "cancelled", by: "turnpike", reason: "the turn ended before anyone answered" }
    })
  }
  for (const [call_id, call] of open.calls) {
    bodies.push({
      type: "tool/result",
      data: { call_id, is_error: true, ...outcome(call), ...(call.origin === undefined ? {} : { origin: call.origin }) },
      surface_op: "append",
      source_event_seqs: [call.seq]
    })
  }
  if (open.stepOpen) bodies.push({ type: "step/end", data: { step: open.step } })
  return bodies
}

/**
 * Whether nothing of the open turn can have left for a harness or a model: it
 * holds no prompt, and nothing but messages of which one at least is missing.
 */
export const isNotStarted = (open: OpenTurn): boolean =>
  (open.trigger.kind === "message" || open.trigger.kind === "continuation") &&
  !open.hasUserMessage && !open.hasWork && (open.unwritten.size > 0 || open.claimed.length === 0)

/**
 * The events that close a turn which a crash left open, ready to be appended;
 * none where no turn is open. They depend on the log alone, so that two repairs
 * of one log write the same.
 */
export const closers = (state: LogState): ReadonlyArray<SessionEvent.SessionEvent> => {
  const { open } = state
  if (open === undefined) return []
  const verdict: Verdict.Verdict = { type: "interrupted", ...(isNotStarted(open) ? { not_started: true } as const : {}) }
  return [...dangling(state), { type: "turn/end", data: { turn: open.number, verdict } } as const].map((body, index) => ({
    seq: state.next + index,
    time: state.lastTime,
    ...body
  }))
}

/**
 * The receipts that recovery puts back into the inbox, in the order in which
 * they were claimed: all of a turn of which nothing left, and otherwise those
 * that no message of the turn is.
 *
 * Those that a receipt repeats already are left out: a store whose inbox and log are
 * no one commit writes them before the closers, so that a second crash between the
 * two doubles and loses none, and such a session may be imported.
 */
export const unspent = ({ open }: LogState): ReadonlyArray<InboxEntry.ReceiptId> =>
  open === undefined ? [] : isNotStarted(open) ? open.claimed : open.claimed.filter((id) => open.unwritten.has(id))
