/**
 * The messages that a model is shown, as a fold over a session's log.
 *
 * It looks at the types and marks of events alone, never at turns, so that a text
 * that was injected reads the same wherever it stands. Each event is looked at
 * once, at a cost that does not grow with the log; only what replaces others costs
 * as much as there are messages. An earlier state stays as it was.
 */
import type { SessionEvent } from "@turnpike/contract"
import type * as Schema from "effect/Schema"
import * as Growing from "./internal/growing.ts"

/** One message, with the event that it is. */
export type Message =
  | { readonly role: "user"; readonly text: string; readonly source: string; readonly seq: number }
  /** A text that is no prompt: a user's message for the model, with a tag around it. */
  | { readonly role: "context"; readonly text: string; readonly source: string; readonly seq: number }
  /** A prompt that came while a turn ran. */
  | { readonly role: "steering"; readonly text: string; readonly source: string; readonly seq: number }
  | { readonly role: "assistant"; readonly text: string; readonly isPartial: boolean; readonly seq: number }
  /** A call with its result. A call that has none yet is no message. */
  | {
    readonly role: "tool"
    readonly callId: string
    /** The tool's name and what it was called with, as the harness or the model has them. */
    readonly name: string
    readonly input?: Schema.Json
    readonly output: string
    readonly isError: boolean
    readonly seq: number
  }

type Call = SessionEvent.Of<"tool/call">["data"]

export interface Surface {
  /** The surface events that stand; `undefined` for one that the model is not shown. */
  readonly nodes: Growing.Growing<Message | undefined>
  /** Those of them that are messages. */
  readonly shown: Growing.Growing<Message>
  /** Calls without a result, by `call_id`. */
  readonly calls: ReadonlyMap<string, Call>
}

/** That of a log without events. */
export const empty = (): Surface => ({ nodes: Growing.empty(), shown: Growing.empty(), calls: new Map() })

type OnSurface = SessionEvent.Of<SessionEvent.SurfaceType>

/** What a subagent says, and what its tools answer, is of its own conversation. */
const isOwn = (event: OnSurface): boolean => !("origin" in event.data) || event.data.origin !== "subagent"

const messageOf = (event: OnSurface, call: Pick<Call, "input" | "name"> | undefined): Message | undefined => {
  const { seq } = event
  switch (event.type) {
    case "user/message":
    case "context/message":
    case "steering/message": {
      const role = ({ "user/message": "user", "context/message": "context", "steering/message": "steering" } as const)[event.type]
      return { role, text: event.data.text, source: event.data.source, seq }
    }
    case "assistant/message":
      // One without a text only has usage, or calls.
      return event.data.text === "" ? undefined : { role: "assistant", text: event.data.text, isPartial: event.data.partial === true, seq }
    case "tool/result":
      return {
        role: "tool",
        callId: event.data.call_id,
        // By the rules of a log there is one.
        name: call?.name ?? "",
        ...(call?.input === undefined ? {} : { input: call.input }),
        output: event.data.output ?? "",
        isError: event.data.is_error,
        seq
      }
  }
}

/** What a result is the result of: its open call, or the call of the result that it replaces. */
const callOf = (self: Surface, event: OnSurface): Pick<Call, "input" | "name"> | undefined => {
  if (event.type !== "tool/result") return undefined
  if (event.surface_op === "append") return self.calls.get(event.data.call_id)
  const [replaced] = Growing.slice(self.nodes, event.surface_op.replace.start, event.surface_op.replace.end)
  return replaced?.role === "tool" ? replaced : undefined
}

type OfNodes = Omit<Surface, "calls">

const appended = ({ nodes, shown }: Surface, message: Message | undefined): OfNodes => ({
  nodes: Growing.add(nodes, message),
  shown: message === undefined ? shown : Growing.add(shown, message)
})

const replaced = ({ nodes }: Surface, { end, start }: { readonly start: number; readonly end: number }, message: Message | undefined): OfNodes => {
  const left = Growing.replace(nodes, start, end, message)
  const shown = Growing.slice(left, 0).filter((node) => node !== undefined)
  return { nodes: left, shown: { length: shown.length, shared: shown } }
}

/** The surface after one more event of a log that keeps the rules of `LogState`. */
export const add = (self: Surface, event: SessionEvent.SessionEvent): Surface => {
  if (event.type === "tool/call") return { ...self, calls: new Map(self.calls).set(event.data.call_id, event.data) }
  // No result can come for them any more.
  if (event.type === "turn/end") return self.calls.size === 0 ? self : { ...self, calls: new Map() }
  if (!("surface_op" in event)) return self
  const message = isOwn(event) ? messageOf(event, callOf(self, event)) : undefined
  const onSurface = event.surface_op === "append" ? appended(self, message) : replaced(self, event.surface_op.replace, message)
  if (event.type !== "tool/result" || !self.calls.has(event.data.call_id)) return { ...onSurface, calls: self.calls }
  const calls = new Map(self.calls)
  calls.delete(event.data.call_id)
  return { ...onSurface, calls }
}

/** The messages in order: an array of their own, which no later event changes. */
export const messages = (self: Surface): ReadonlyArray<Message> =>
  Growing.slice(self.shown, 0)

/** The messages of a whole log. */
export const deriveMessages = (events: Iterable<SessionEvent.SessionEvent>): ReadonlyArray<Message> => {
  let surface = empty()
  for (const event of events) surface = add(surface, event)
  return messages(surface)
}
