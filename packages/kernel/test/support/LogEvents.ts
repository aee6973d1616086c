/** Logs for tests: by hand from bodies, and at random but by the rules. */
import type { SessionEvent, Verdict } from "@turnpike/contract"
import * as Random from "./Random.ts"

type Body = SessionEvent.Body
type Event = SessionEvent.SessionEvent

export const completed: Verdict.Verdict = { type: "completed" }

export const turnStart = (turn: number, trigger: SessionEvent.Trigger = { kind: "message", source: "user" }): Body => ({
  type: "turn/start",
  data: { turn, trigger }
})
export const turnEnd = (turn: number, verdict: Verdict.Verdict = completed): Body => ({ type: "turn/end", data: { turn, verdict } })
export const stepStart = (step = 1): Body => ({ type: "step/start", data: { step } })
export const stepEnd = (step = 1): Body => ({ type: "step/end", data: { step } })
export const claimed = (turn: number, ...ids: ReadonlyArray<string>): Body => ({ type: "inbox/claimed", data: { turn, ids } })
export const message = (
  type: "user/message" | "context/message" | "steering/message",
  text: string,
  receipt?: string
): Body => ({ type, data: { text, source: "user", ...(receipt === undefined ? {} : { receipt }) }, surface_op: "append" })
export const user = (text: string, receipt?: string): Body => message("user/message", text, receipt)
export const chunk = (text: string): Body => ({ type: "assistant/chunk", data: { kind: "text", text } })
export const answer = (text: string): Body => ({ type: "assistant/message", data: { text }, surface_op: "append" })
export const call = (call_id: string): Body => ({ type: "tool/call", data: { call_id, name: "shell", input: { command: "ls" } } })
export const result = (call_id: string, output = "ok"): Body => ({
  type: "tool/result",
  data: { call_id, is_error: false, output },
  surface_op: "append"
})
export const ask = (request_id: string, call_id?: string): Body => ({
  type: "permission/request",
  data: { request_id, tool_name: "shell", ...(call_id === undefined ? {} : { call_id }) }
})
export const decide = (request_id: string, decision: "allow" | "deny" | "cancelled"): Body => ({
  type: "permission/decision",
  data: { request_id, decision, by: "user" }
})

/** Replaces a range of the surface by a summary. */
export const summary = (text: string, start: number, end: number, sources: ReadonlyArray<number>): Body => ({
  type: "context/message",
  data: { text, source: "plugin:compact" },
  surface_op: { replace: { start, end } },
  source_event_seqs: sources
})

/** Bodies as a log has them: `seq` from `first`, a second apart. */
export const log = (bodies: ReadonlyArray<Body>, first = 0): ReadonlyArray<Event> =>
  bodies.map((body, index) => ({ seq: first + index, time: 1_790_000_000_000 + (first + index) * 1000, ...body }))

/** A whole turn as a driver writes it. */
export const turn = (number: number, prompt: string, ...inside: ReadonlyArray<Body>): ReadonlyArray<Body> => [
  turnStart(number),
  stepStart(),
  user(prompt),
  ...inside,
  stepEnd(),
  turnEnd(number)
]

/** A log of about so many events that keeps every rule. Its last turn may be open. */
export const random = (seed: number, size: number): ReadonlyArray<Event> => {
  const { below, chance } = Random.make(seed)
  const bodies: Array<Body> = []
  let turn = 0
  let step = 0
  let stepOpen = false
  let names = 0
  let calls: Array<string> = []
  let requests: Array<string> = []
  /** `seq` and call of each surface event that stands. */
  let surface: Array<{ readonly seq: number; readonly call?: string }> = []
  let open = false

  const put = (body: Body) => bodies.push(body)
  const append = (body: Body, callId?: string) => {
    surface.push({ seq: bodies.length, ...(callId === undefined ? {} : { call: callId }) })
    put(body)
  }
  const takeOne = (items: Array<string>): string | undefined => items.splice(below(items.length), 1)[0]

  const moves: ReadonlyArray<() => void> = [
    () => put(chunk("x".repeat(below(9)))),
    () => append(answer(chance(0.2) ? "" : "An answer — with an emoji 🚂")),
    () => append(message("steering/message", "steer")),
    () => append(message("context/message", "context")),
    () => {
      const id = `call-${++names}`
      calls.push(id)
      put(call(id))
    },
    () => {
      const id = takeOne(calls)
      if (id !== undefined) append(result(id, "ok\nline"), id)
    },
    () => {
      const id = `request-${++names}`
      requests.push(id)
      put(ask(id, calls[below(Math.max(1, calls.length))]))
    },
    () => {
      const id = takeOne(requests)
      if (id !== undefined) put(decide(id, chance(0.5) ? "allow" : "deny"))
    },
    () => put({ type: "notice", data: { kind: "harness_note", message: "a note" } }),
    () => put({ type: "x/plugin/thing", ignorable: true, data: { n: below(1000), list: [null, true, "é"] } }),
    () => {
      if (stepOpen) put(stepEnd(step))
      else put(stepStart(++step))
      stepOpen = !stepOpen
    },
    () => {
      if (surface.length < 4 || !chance(0.3)) return
      const start = below(surface.length - 1)
      const end = start + 1 + below(surface.length - start)
      const taken = surface.slice(start, end)
      surface = [...surface.slice(0, start), { seq: bodies.length }, ...surface.slice(end)]
      put(summary("a summary", start, end, taken.map(({ seq }) => seq)))
    },
    () => {
      const at = surface.findIndex(({ call }) => call !== undefined)
      const replaced = surface[at]
      if (replaced?.call === undefined) return
      surface[at] = { seq: bodies.length, call: replaced.call }
      put({
        ...result(replaced.call, "shorter"),
        surface_op: { replace: { start: at, end: at + 1 } },
        source_event_seqs: [replaced.seq]
      } as Body)
    }
  ]

  while (bodies.length < size) {
    if (!open) {
      open = true
      step = 0
      calls = []
      requests = []
      put(turnStart(++turn, turn % 5 === 0 ? { kind: "background" } : { kind: "message", source: "user" }))
      if (chance(0.8)) put(claimed(turn, `r${turn}`))
      if (chance(0.9)) {
        put(stepStart(++step))
        stepOpen = true
      }
      append(user(`prompt ${turn}`, `r${turn}`))
    } else if (chance(0.06)) {
      if (stepOpen) put(stepEnd(step))
      stepOpen = false
      put(turnEnd(turn))
      open = false
    } else moves[below(moves.length)]?.()
  }
  return log(bodies)
}
