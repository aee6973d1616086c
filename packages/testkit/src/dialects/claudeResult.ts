/**
 * How a turn of Claude Code's ends: with one result, which tells the usage of
 * the turn and of the process, and before it, where the model's service has
 * failed, with a message of the program's own making.
 */
import type { Ending, Failing, TurnState } from "../DialectWords.ts"
import * as Frames from "./claudeFrames.ts"
import type { Messages, Voice } from "./claudeMessage.ts"
import type { JsonObject } from "./jsonObject.ts"

export interface Results {
  readonly turnStarted: () => void
  readonly ended: (turn: TurnState, ending: Ending) => void
  readonly failed: (turn: TurnState, failing: Failing) => void
  readonly interrupted: (turn: TurnState) => void
  /** The result of a command of the program's own, which is no turn. */
  readonly localCommand: () => void
  /** Whether the last turn was none that succeeded. */
  readonly lastFailed: () => boolean
}

/**
 * What is told of usage: that of the turn; nothing where the service refused;
 * or, recorded of interrupted turns, zeros in `usage` and the truth beside it.
 */
type Tells = "usage" | "none" | "zeros"

export const make = ({ model, partial, tag }: Voice, messages: Messages): Results => {
  let cost = 0
  let count = 0
  let total: Frames.ModelUsage | undefined
  let startedAt = 0
  let lastFailed = false

  const result = (turn: TurnState, more: JsonObject, tells: Tells): void => {
    const usage = turn.usage
    if (usage?.cost_usd !== undefined) cost += usage.cost_usd
    const since = usage === undefined || tells === "none" ? undefined : Frames.modelUsage(usage)
    if (since !== undefined) total = Frames.addModelUsage(total, since)
    lastFailed = more["is_error"] === true
    const answered = messages.answered()
    const begun = messages.begun()
    tag({
      ...Frames.result,
      total_cost_usd: cost,
      // What nobody set is not reported: an invented 0 would be a lie of the player's.
      ...(usage === undefined && tells === "usage" ? {} : { usage: Frames.usage(tells === "usage" ? usage : undefined) }),
      modelUsage: total === undefined ? {} : { [model()]: total },
      ...(since === undefined ? {} : { model_usage_since_last_result: { [model()]: since } }),
      permission_denials: turn.denials.map((denial) => ({ tool_name: denial.name, tool_use_id: denial.call_id, tool_input: denial.input })),
      num_turns: Math.max(1, messages.steps()),
      duration_ms: Date.now() - startedAt,
      result_index: count++,
      ...(answered === undefined
        ? {}
        : { ...messages.marks(), request_sent_wall_ms: startedAt, first_request_input_tokens: 1001, first_request_cache_read_input_tokens: 22 }),
      ...(begun.length === 0 || !partial ? {} : { begun_message_ids: [...begun] }),
      ...more
    })
    if (answered !== undefined) {
      tag({ type: "command_lifecycle", command_uuid: answered, state: "completed" })
      messages.settled()
    }
  }

  /** A message of the program's own making, then a result. */
  const apiError = (turn: TurnState, text: string, told: JsonObject, resultTold: JsonObject, stopReason = "stop_sequence"): void => {
    messages.end("end_turn")
    tag(Frames.synthetic(text, stopReason, told))
    result(turn, {
      stop_reason: stopReason,
      terminal_reason: "api_error",
      is_error: true,
      subtype: "success",
      api_error_status: null,
      model_usage_since_last_result: {},
      result: text,
      ...resultTold
    }, stopReason === "refusal" || told["api_error"] === "max_output_tokens" ? "usage" : "none")
  }

  const interrupted = (turn: TurnState): void => {
    const wasStreaming = messages.cutOff(() => tag(Frames.user([{ type: "text", text: "[Request interrupted by user]" }])))
    result(turn, {
      stop_reason: null,
      terminal_reason: wasStreaming ? "aborted_streaming" : "aborted_tools",
      is_error: true,
      subtype: "error_during_execution",
      errors: ["[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null"],
      num_turns: messages.steps() + 1
    }, "zeros")
  }

  return {
    turnStarted: () => {
      startedAt = Date.now()
    },
    ended: (turn, { reason, text = turn.text }) => {
      switch (reason) {
        case "completed":
          messages.end("end_turn")
          return result(turn, {
            stop_reason: "end_turn",
            terminal_reason: "completed",
            is_error: false,
            subtype: "success",
            api_error_status: null,
            result: text,
            ttft_ms: 483,
            ttft_stream_ms: 476,
            time_to_request_ms: 403,
            first_content_frame_ms: 480
          }, "usage")
        case "max-turns":
          messages.end("tool_use")
          return result(turn, {
            stop_reason: "tool_use",
            terminal_reason: "max_turns",
            is_error: true,
            subtype: "error_max_turns",
            errors: [`Reached maximum number of turns (${Math.max(1, messages.steps())})`]
          }, "usage")
        case "max-tokens":
          return apiError(turn, Frames.maxTokens, {
            error: "max_output_tokens",
            api_error: "max_output_tokens",
            api_error_params: { cut: "output_limit" }
          }, { api_error: "max_output_tokens" })
        case "refusal": {
          const id = messages.id() ?? "msg_none"
          return apiError(turn, Frames.refused, { error: "invalid_request", request_id: `req_${id.slice(4)}`, refused_message_id: id }, {}, "refusal")
        }
        case "aborted":
          return interrupted(turn)
      }
    },
    failed: (turn, { code, http_status, message }) => {
      const known = Frames.apiErrors[code] ?? Frames.apiErrors["SERVER"]
      const status = http_status ?? known?.status
      const kind = known?.type === undefined ? {} : { api_error_type: known.type }
      const lost = known?.status === undefined && known?.type === undefined ? { api_error: "connection_failed" } : {}
      apiError(
        turn,
        code === "AUTH" && status === 401 ? Frames.invalidKey : `API Error: ${status === undefined ? "" : `${status} `}${message}`,
        {
          error: known?.error ?? "unknown",
          // A connection that was refused has brought no answer, and so no id of one.
          ...(status === undefined ? {} : { api_error_status: status, request_id: "req_played" }),
          ...kind,
          ...lost
        },
        {
          ...(code === "CONTEXT_WINDOW_EXCEEDED" ? { terminal_reason: "prompt_too_long" } : {}),
          ...(status === undefined ? {} : { api_error_status: status }),
          ...kind,
          ...lost
        }
      )
    },
    interrupted,
    localCommand: () => tag({ ...Frames.localCommand, result_index: count++ }),
    lastFailed: () => lastFailed
  }
}
