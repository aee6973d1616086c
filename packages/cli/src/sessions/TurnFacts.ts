/**
 * What the events of one turn come to, for whoever has to say why it ended.
 *
 * A fold that keeps counts, and of each kind of thing the first few: a turn of
 * hours costs no more memory than a short one. It takes any log that keeps the
 * rules of `LogState`, also one that breaks off.
 */
import { Printable } from "@turnpike/channel-terminal"
import { type InboxEntry, SessionEvent, type TurnEvent, type Usage, type Verdict } from "@turnpike/contract"

/** Things of one kind: the first few, and how many there were. */
export interface Some<A> {
  readonly first: ReadonlyArray<A>
  readonly count: number
}

interface Said {
  readonly seq: number
  readonly text: string
}

export interface Tool {
  readonly seq: number
  /** In the harness's words. */
  readonly name: string
  /** What it was called with, in brief; empty where that is not known. */
  readonly input: string
}

export interface Denial extends Tool {
  /** Who decided, and why, where the log says it. */
  readonly by?: string
  readonly reason?: string
  readonly decision: "deny" | "cancelled"
}

export interface Unfinished extends Tool {
  readonly code: NonNullable<SessionEvent.Of<"tool/result">["data"]["error_code"]>
}

export interface TurnFacts {
  readonly turn: number
  readonly trigger: SessionEvent.Trigger
  /** Of the first event, and of the last one so far. */
  readonly firstSeq: number
  readonly lastSeq: number
  readonly started: number
  /** Absent where the turn has no end. */
  readonly end?: { readonly seq: number; readonly time: number; readonly verdict: Verdict.Verdict }
  readonly claimed: ReadonlyArray<InboxEntry.ReceiptId>
  /** The prompt, in brief; absent where nothing was asked. */
  readonly prompt?: Said & { readonly source: string }
  readonly prompts: number
  readonly steering: number
  /** Texts that were put in, the first in brief. */
  readonly context: Some<Said>
  readonly bound?: Said & { readonly data: SessionEvent.Of<"session/bound">["data"] }
  /** Model calls that the log shows. */
  readonly steps: number
  /** The last message of the model, in brief. */
  readonly answer?: Said & { readonly isPartial: boolean }
  /** Whether there were pieces of an answer after the last message. */
  readonly hasLoosePieces: boolean
  /** When the harness was last heard of. */
  readonly lastHeard?: number
  /** How often each tool was called, by name, in the order of their first calls. */
  readonly calls: ReadonlyMap<string, number>
  readonly failed: Some<Tool & { readonly output: string }>
  readonly denied: Some<Denial>
  readonly unfinished: Some<Unfinished>
  /** Calls without a result, where the turn is open. */
  readonly running: Some<Tool>
  readonly retries: Some<Said>
  readonly errors: Some<Said & { readonly code: string }>
  readonly notices: Some<Said & { readonly kind: TurnEvent.NoticeKind }>
  readonly usage?: Usage.Usage
}

export interface Gathering {
  readonly add: (event: SessionEvent.SessionEvent) => void
  readonly facts: () => TurnFacts
}

/** How many of each kind are kept. */
const kept = 5

/** How many names of tools are told apart. Further ones count as one. */
const maxNames = 50
const otherTools = "others"

const briefCharacters = 300
const inputCharacters = 80

export const brief = (text: string): string => Printable.oneLine(text, briefCharacters)

/** The only text that a tool was called with, or all of it as JSON. */
const inputOf = (input: unknown): string => {
  if (input === undefined) return ""
  const values = typeof input === "object" && input !== null && !Array.isArray(input) ? Object.values(input) : []
  const [only] = values
  return Printable.oneLine(values.length === 1 && typeof only === "string" ? only : JSON.stringify(input), inputCharacters)
}

const nameOf = (name: string): string => Printable.oneLine(name, inputCharacters)

const some = <A>() => {
  const first: Array<A> = []
  let count = 0
  return {
    add: (one: A) => {
      count++
      if (first.length < kept) first.push(one)
    },
    get: (): Some<A> => ({ first: [...first], count })
  }
}

const retryText = ({ attempt, delay_ms, error, max_attempts }: SessionEvent.Of<"retry/scheduled">["data"]): string =>
  `attempt ${attempt}${max_attempts === undefined ? "" : ` of ${max_attempts}`}${delay_ms === undefined ? "" : ` after ${delay_ms} ms`}${
    error === undefined ? "" : `: ${error.code}: ${brief(error.message)}`
  }`

/** What belongs to a conversation within the turn's own, or to work of an earlier one. */
const isAside = (data: { readonly origin?: TurnEvent.TurnEvent["type"] | string }): boolean => data.origin !== undefined && data.origin !== "turn"

/** Begins with the event that opens the turn. */
export const make = (start: SessionEvent.SessionEvent & SessionEvent.Of<"turn/start">): Gathering => {
  let lastSeq = start.seq
  let end: TurnFacts["end"]
  const claimed: Array<InboxEntry.ReceiptId> = []
  let prompt: TurnFacts["prompt"]
  let prompts = 0
  let steering = 0
  let steps = 0
  let bound: TurnFacts["bound"]
  let answer: TurnFacts["answer"]
  let hasLoosePieces = false
  let lastHeard: number | undefined
  let usage: Usage.Usage | undefined
  const calls = new Map<string, number>()
  const open = new Map<string, Tool>()
  /** By request, each with the call that it is about. */
  const requests = new Map<string, Tool & { readonly callId: string | undefined }>()
  /** Calls whose denial is told by its decision already. */
  const decided = new Set<string>()
  const context = some<Said>()
  const failed = some<Tool & { readonly output: string }>()
  const denied = some<Denial>()
  const unfinished = some<Unfinished>()
  const retries = some<Said>()
  const errors = some<Said & { readonly code: string }>()
  const notices = some<Said & { readonly kind: TurnEvent.NoticeKind }>()

  const result = (event: SessionEvent.Of<"tool/result">, seq: number) => {
    const { call_id, denied: isDenied, error_code, is_error, output = "" } = event.data
    const call = open.get(call_id)
    // One that replaces an earlier result tells nothing new of the tool.
    if (event.surface_op !== "append" || call === undefined) return
    open.delete(call_id)
    const tool: Tool = { ...call, seq }
    if (error_code !== undefined) return unfinished.add({ ...tool, code: error_code })
    if (isDenied === true) return decided.delete(call_id) ? undefined : denied.add({ ...tool, decision: "deny" })
    if (is_error) failed.add({ ...tool, output: brief(output) })
  }

  const decision = ({ by, decision: answered, reason, request_id }: SessionEvent.Of<"permission/decision">["data"], seq: number) => {
    const asked = requests.get(request_id)
    requests.delete(request_id)
    if (asked === undefined || answered === "allow") return
    if (asked.callId !== undefined) decided.add(asked.callId)
    denied.add({
      seq,
      name: asked.name,
      input: asked.input,
      decision: answered,
      by: nameOf(by),
      ...(reason === undefined ? {} : { reason: brief(reason) })
    })
  }

  const add = (event: SessionEvent.SessionEvent): void => {
    const { seq, time } = event
    lastSeq = seq
    switch (event.type) {
      case "turn/end":
        end = { seq, time, verdict: event.data.verdict }
        return
      case "inbox/claimed":
        claimed.push(...event.data.ids)
        return
      case "user/message":
        prompts++
        prompt ??= { seq, text: brief(event.data.text), source: nameOf(event.data.source) }
        return
      case "steering/message":
        steering++
        return
      case "context/message":
        context.add({ seq, text: brief(event.data.text) })
        return
      case "step/start":
        steps++
        return
      case "session/bound":
        lastHeard = time
        bound = { seq, text: nameOf(event.data.harness_session_id), data: event.data }
        return
      case "assistant/chunk":
        lastHeard = time
        if (!isAside(event.data) && event.data.kind === "text") hasLoosePieces = true
        return
      case "assistant/message":
        lastHeard = time
        if (isAside(event.data)) return
        hasLoosePieces = false
        if (event.data.text.trim() !== "") answer = { seq, text: brief(event.data.text), isPartial: event.data.partial === true }
        return
      case "tool/call": {
        lastHeard = time
        const tool: Tool = { seq, name: nameOf(event.data.name), input: inputOf(event.data.input) }
        open.set(event.data.call_id, tool)
        const name = calls.has(tool.name) || calls.size < maxNames ? tool.name : otherTools
        calls.set(name, (calls.get(name) ?? 0) + 1)
        return
      }
      case "tool/result":
        if (event.data.error_code === undefined) lastHeard = time
        result(event, seq)
        return
      case "permission/request":
        lastHeard = time
        requests.set(event.data.request_id, {
          seq,
          name: nameOf(event.data.tool_name),
          input: inputOf(event.data.input),
          callId: event.data.call_id
        })
        return
      case "permission/decision":
        decision(event.data, seq)
        return
      case "usage":
        lastHeard = time
        usage = event.data.usage
        return
      case "retry/scheduled":
        lastHeard = time
        retries.add({ seq, text: retryText(event.data) })
        return
      case "error":
        errors.add({ seq, code: nameOf(event.data.code), text: brief(event.data.message) })
        return
      case "notice":
        notices.add({ seq, kind: event.data.kind, text: brief(event.data.message) })
        return
      default:
        // What shows in what the others say, and what plugins and later versions write.
        return
    }
  }

  return {
    add,
    facts: () => ({
      turn: start.data.turn,
      trigger: start.data.trigger,
      firstSeq: start.seq,
      lastSeq,
      started: start.time,
      ...(end === undefined ? {} : { end }),
      claimed: [...claimed],
      ...(prompt === undefined ? {} : { prompt }),
      prompts,
      steering,
      context: context.get(),
      ...(bound === undefined ? {} : { bound }),
      steps,
      ...(answer === undefined ? {} : { answer }),
      hasLoosePieces,
      ...(lastHeard === undefined ? {} : { lastHeard }),
      calls: new Map(calls),
      failed: failed.get(),
      denied: denied.get(),
      unfinished: unfinished.get(),
      running: { first: [...open.values()].slice(0, kept), count: open.size },
      retries: retries.get(),
      errors: errors.get(),
      notices: notices.get(),
      ...(usage === undefined ? {} : { usage })
    })
  }
}

/** The facts of the turn that events begin with a `turn/start` of. */
export const of = (events: Iterable<SessionEvent.SessionEvent>): TurnFacts | undefined => {
  let gathering: Gathering | undefined
  for (const event of events) {
    if (gathering !== undefined) gathering.add(event)
    else if (event.type === "turn/start") gathering = make(event)
  }
  return gathering?.facts()
}
