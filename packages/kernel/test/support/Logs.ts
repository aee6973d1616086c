/** Events of a log, numbered as they stand. */
import type { SessionEvent } from "@turnpike/contract"

export const start = (turn: number): SessionEvent.Body => ({ type: "turn/start", data: { turn, trigger: { kind: "message", source: "user" } } })
export const end = (turn: number): SessionEvent.Body => ({ type: "turn/end", data: { turn, verdict: { type: "completed" } } })
export const step = (number: number): SessionEvent.Body => ({ type: "step/start", data: { step: number } })
export const stepEnd = (number: number): SessionEvent.Body => ({ type: "step/end", data: { step: number } })
export const user = (text: string, receipt?: string): SessionEvent.Body => ({
  type: "user/message",
  data: { text, source: "user", ...(receipt === undefined ? {} : { receipt }) },
  surface_op: "append"
})
export const context = (text: string): SessionEvent.Body => ({ type: "context/message", data: { text, source: "plugin:x" }, surface_op: "append" })
export const assistant = (text: string): SessionEvent.Body => ({ type: "assistant/message", data: { text }, surface_op: "append" })
export const chunk = (text: string): SessionEvent.Body => ({ type: "assistant/chunk", data: { kind: "text", text } })
export const claimed = (turn: number, ...ids: ReadonlyArray<string>): SessionEvent.Body => ({ type: "inbox/claimed", data: { turn, ids } })
export const call = (call_id: string): SessionEvent.Body => ({ type: "tool/call", data: { call_id, name: "bash" } })
export const result = (call_id: string): SessionEvent.Body => ({ type: "tool/result", data: { call_id, is_error: false, output: "ok" }, surface_op: "append" })
export const asked = (request_id: string, call_id: string): SessionEvent.Body => ({ type: "permission/request", data: { request_id, call_id, tool_name: "bash" } })
export const decided = (request_id: string, decision: "allow" | "deny"): SessionEvent.Body => ({ type: "permission/decision", data: { request_id, decision, by: "x" } })

/** One turn with a prompt and an answer. */
export const turn = (number: number, prompt = "p"): ReadonlyArray<SessionEvent.Body> => [start(number), step(1), user(prompt), assistant(`a ${prompt}`), stepEnd(1), end(number)]

export const numbered = (bodies: ReadonlyArray<SessionEvent.Body>, from = 0): ReadonlyArray<SessionEvent.SessionEvent> =>
  bodies.map((body, index) => ({ seq: from + index, time: 1_000 + from + index, ...body }))
