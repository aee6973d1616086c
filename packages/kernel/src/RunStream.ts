/**
 * The stream of a run's events as its reader sees it: numbered, stamped, and
 * closed by exactly one `session_end`.
 *
 * Events are emitted in the order in which they are asked for. When the reader
 * is gone nothing more is sent, and the run learns it once.
 */
import type { AgentRunEvent, AgentRunResult, Capabilities, Scalars, SessionEvent, TurnEvent, Verdict } from "@turnpike/contract"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import * as ChannelError from "./ChannelError.ts"
import * as Redaction from "./Redaction.ts"

/**
 * Takes one event; when it fails, or breaks, the reader is gone. It is not
 * interrupted in the middle of an event unless the reader is given up.
 */
export type Sink = (event: AgentRunEvent.AgentRunEvent) => Effect.Effect<void, ChannelError.ChannelError>

/** What `session_start` tells beyond what the harness says. */
export interface Opening {
  readonly sessionId: Scalars.SessionId
  readonly harness: string
  readonly turnpikeVersion: string
  readonly cwd: string
  readonly capabilities: Capabilities.Capabilities
  readonly turn: number
  readonly trigger?: SessionEvent.Trigger
}

export type Phase = "provision" | "launch" | "submit" | "await" | "capture"

export interface RunStream {
  readonly phaseStart: (phase: Phase) => Effect.Effect<void>
  /** Ends a phase; `problem` is what went wrong. */
  readonly phaseEnd: (phase: Phase, problem?: string) => Effect.Effect<void>
  /** Opens the turn: `session_start`, then `turn_start`. Happens once; later calls do nothing. */
  readonly open: (bound?: TurnEvent.Of<"session/bound">["data"]) => Effect.Effect<void>
  /** Tells one event of the turn. */
  readonly turnEvent: (event: TurnEvent.TurnEvent) => Effect.Effect<void>
  readonly notice: (kind: TurnEvent.NoticeKind, message: string) => Effect.Effect<void>
  /** Ends tools that are still open, then the turn, if one was opened. */
  readonly close: (verdict: Verdict.Verdict) => Effect.Effect<void>
  readonly end: (outcome: AgentRunResult.AgentRunOutcome, reason: Verdict.TerminalReason) => Effect.Effect<void>
  readonly result: (result: AgentRunResult.AgentRunResult) => Effect.Effect<void>
}

const summaryCharacters = 2000

/** Cuts a text for a summary, saying so. */
export const summarize = (text: string): string =>
  text.length <= summaryCharacters
    ? text
    : `${Redaction.head(text, summaryCharacters)}… (${text.length} characters)`

const usagePayload = (event: TurnEvent.Of<"usage">): AgentRunEvent.Payload | undefined => {
  const { cost, tokens } = event.data.usage
  if (tokens.input_tokens === undefined || tokens.output_tokens === undefined) return undefined
  return {
    type: "token_usage",
    input_tokens: tokens.input_tokens,
    output_tokens: tokens.output_tokens,
    ...(tokens.cache_read_tokens === undefined ? {} : { cache_read_tokens: tokens.cache_read_tokens }),
    ...(tokens.cache_write_tokens === undefined ? {} : { cache_write_tokens: tokens.cache_write_tokens }),
    ...(cost.usd === undefined ? {} : { cost_usd: cost.usd }),
    final: event.data.final
  }
}

const withOrigin = (data: { readonly origin?: "turn" | "background" | "subagent" }) =>
  data.origin === undefined ? {} : { origin: data.origin }

const gaveUp = ChannelError.publish("the reader did not take an event in time")

const brokenSink = (cause: Cause.Cause<ChannelError.ChannelError>): ChannelError.ChannelError =>
  Option.getOrElse(Cause.findErrorOption(cause), () =>
    ChannelError.io("the sink of the run's events broke", Cause.squash(cause)))

/** The call ids of the phases; tools have others. */
export const phaseIds: ReadonlyArray<string> = ["provision", "launch", "submit", "await", "capture"].map((name) => `phase-${name}`)

/**
 * Begins a stream. `lost` is run once, when the sink first fails. A reader that
 * has not taken an event when `patience` completes is given up; without it a
 * reader has all the time.
 */
export const make = (options: {
  readonly runId: Scalars.RunId
  readonly sink: Sink
  readonly opening: Opening
  readonly lost: (error: ChannelError.ChannelError) => Effect.Effect<void>
  readonly patience?: Effect.Effect<void>
}): RunStream => {
  const { opening } = options
  const order = Semaphore.makeUnsafe(1)
  let seq = 0
  let stampedAt = Number.NaN
  let stamped = ""
  let gone = false
  let opened = false
  let boundTo: string | undefined
  const openTools = new Map<string, string>()

  /** The moment as it is written; events of one millisecond share it. */
  const stamp = (now: number): string => {
    if (now !== stampedAt) {
      stampedAt = now
      stamped = DateTime.formatIso(DateTime.makeUnsafe(now))
    }
    return stamped
  }

  const send = (event: AgentRunEvent.AgentRunEvent): Effect.Effect<void> => {
    const taken = Effect.exit(Effect.suspend(() => options.sink(event)))
    return Effect.flatMap(
      options.patience === undefined ? taken : Effect.raceFirst(taken, Effect.as(options.patience, Exit.fail(gaveUp))),
      (exit) => {
        if (Exit.isSuccess(exit)) return Effect.void
        gone = true
        return options.lost(brokenSink(exit.cause))
      }
    )
  }

  const emit = (payload: AgentRunEvent.Payload): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      gone
        ? Effect.void
        : send({ run_id: options.runId, seq: seq++, ts: stamp(now), ...payload } as AgentRunEvent.AgentRunEvent)).pipe(
        Semaphore.withPermits(order, 1),
        // An event that has its number is delivered whole, whatever becomes of the fiber that tells it.
        Effect.uninterruptible
      )

  const phaseId = (phase: Phase) => `phase-${phase}`

  const open: RunStream["open"] = (bound) =>
    Effect.suspend(() => {
      if (opened) return Effect.void
      opened = true
      boundTo = bound?.harness_session_id
      return emit({
        type: "session_start",
        session_id: opening.sessionId,
        harness: opening.harness,
        ...(bound === undefined ? {} : { harness_session_id: bound.harness_session_id }),
        ...(bound?.harness_version === undefined ? {} : { harness_version: bound.harness_version }),
        turnpike_version: opening.turnpikeVersion,
        resumed: bound?.resumed ?? false,
        cwd: bound?.cwd ?? opening.cwd,
        ...(bound?.model === undefined ? {} : { model: bound.model }),
        ...(bound?.tools === undefined ? {} : { tools: bound.tools }),
        ...(bound?.mcp_servers === undefined ? {} : { mcp_servers: bound.mcp_servers }),
        capabilities: opening.capabilities
      }).pipe(Effect.andThen(emit({ type: "turn_start", turn: opening.turn, ...(opening.trigger === undefined ? {} : { trigger: opening.trigger }) })))
    })

  const notice: RunStream["notice"] = (kind, message) => emit({ type: "notice", kind, message })

  const turnEvent: RunStream["turnEvent"] = (event) => {
    switch (event.type) {
      case "session/bound": {
        if (!opened) return open(event.data)
        const before = boundTo
        boundTo = event.data.harness_session_id
        return before === boundTo
          ? Effect.void
          : notice("rebound", `the harness calls the session ${boundTo} now${before === undefined ? "" : `, not ${before}`}`)
      }
      case "step/start":
      case "step/end":
      case "harness/end":
        return Effect.void
      case "assistant/chunk":
        return emit({
          type: event.data.kind === "text" ? "text_delta" : "reasoning_delta",
          text: event.data.text,
          ...withOrigin(event.data)
        })
      case "assistant/message":
        return emit({
          type: "message",
          text: event.data.text,
          ...(event.data.partial === undefined ? {} : { partial: event.data.partial }),
          ...withOrigin(event.data)
        })
      case "tool/call":
        openTools.set(event.data.call_id, event.data.name)
        return emit({
          type: "tool_start",
          kind: "tool",
          call_id: event.data.call_id,
          tool_name: event.data.name,
          ...(event.data.input === undefined ? {} : { tool_input: event.data.input }),
          ...withOrigin(event.data)
        })
      case "tool/result": {
        const name = openTools.get(event.data.call_id)
        if (name === undefined) {
          return notice("harness_note", `a tool ended that had not begun: ${event.data.call_id}`)
        }
        openTools.delete(event.data.call_id)
        return emit({
          type: "tool_end",
          kind: "tool",
          call_id: event.data.call_id,
          tool_name: name,
          success: !event.data.is_error,
          ...(event.data.output === undefined ? {} : { output_summary: summarize(event.data.output) }),
          ...(event.data.denied === undefined ? {} : { denied: event.data.denied }),
          ...withOrigin(event.data)
        })
      }
      case "permission/request":
        return emit({
          type: "permission_request",
          request_id: event.data.request_id,
          ...(event.data.call_id === undefined ? {} : { call_id: event.data.call_id }),
          tool_name: event.data.tool_name,
          ...(event.data.input === undefined ? {} : { tool_input: event.data.input }),
          ...(event.data.description === undefined ? {} : { description: event.data.description })
        })
      case "permission/decision":
        return emit({ type: "permission_decision", ...event.data })
      case "usage": {
        const payload = usagePayload(event)
        return payload === undefined ? Effect.void : emit(payload)
      }
      case "todo/write":
        return emit({
          type: "notice",
          kind: "todo",
          message: event.data.todos.map((todo) => `[${todo.status}] ${todo.content}`).join("\n"),
          raw: event.data.todos
        })
      case "retry/scheduled": {
        const { attempt, delay_ms, error, max_attempts } = event.data
        return emit({
          type: "notice",
          kind: "retry",
          message: `the harness tries again: attempt ${attempt}${max_attempts === undefined ? "" : ` of ${max_attempts}`}${
            delay_ms === undefined ? "" : ` in ${delay_ms} ms`
          }`,
          ...(error === undefined ? {} : { error })
        })
      }
      case "notice":
        return emit({ type: "notice", ...event.data })
    }
  }

  return {
    phaseStart: (phase) =>
      emit({ type: "tool_start", kind: "phase", call_id: phaseId(phase), tool_name: phase }),
    phaseEnd: (phase, problem) =>
      emit({
        type: "tool_end",
        kind: "phase",
        call_id: phaseId(phase),
        tool_name: phase,
        success: problem === undefined,
        ...(problem === undefined ? {} : { output_summary: summarize(problem) })
      }),
    open,
    turnEvent,
    notice,
    close: (verdict) =>
      Effect.suspend(() => {
        if (!opened) return Effect.void
        const unfinished = [...openTools]
        openTools.clear()
        return Effect.forEach(unfinished, ([call_id, tool_name]) =>
          emit({
            type: "tool_end",
            kind: "tool",
            call_id,
            tool_name,
            success: false,
            output_summary: "the turn ended before the tool did"
          }), { discard: true }).pipe(
            Effect.andThen(emit({ type: "turn_end", turn: opening.turn, verdict }))
          )
      }),
    end: (outcome, reason) => emit({ type: "session_end", outcome, reason }),
    result: (result) => emit({ type: "result", result })
  }
}
