/**
 * The messages that a model is shown, as a fold over a session's log.
 *
 * It looks at the types and marks of events alone, never at turns, so that a text
 * that was injected reads the same wherever it stands. Each event is looked at
 * once: what the next turn costs does not grow with the log.
 */
import type { SessionEvent } from "@turnpike/contract"

/** One message, with the event that it is. */
export type Message =
  | { readonly role: "user"; readonly text: string; readonly source: string; readonly seq: number }
  /** A text that is no prompt: a user's message for the model, with a tag around it. */
  | { readonly role: "context"; readonly text: string; readonly source: string; readonly seq: number }
  /** A prompt that came while a turn ran. */
  | { readonly role: "steering"; readonly text: string; readonly source: string; readonly seq: number }
  | { readonly role: "assistant"; readonly text: string; readonly seq: number }
  | { readonly role: "tool"; readonly callId: string; readonly output: string; readonly isError: boolean; readonly seq: number }

export interface Surface {
  readonly take: (event: SessionEvent.SessionEvent) => void
  /** The messages in order. An assistant's without a text is left out: it only has usage. */
  readonly messages: () => ReadonlyArray<Message>
}

const messageOf = (event: SessionEvent.SessionEvent): Message | undefined => {
  switch (event.type) {
    case "user/message":
      return { role: "user", text: event.data.text, source: event.data.source, seq: event.seq }
    case "context/message":
      return { role: "context", text: event.data.text, source: event.data.source, seq: event.seq }
    case "steering/message":
      return { role: "steering", text: event.data.text, source: event.data.source, seq: event.seq }
    case "assistant/message":
      return { role: "assistant", text: event.data.text, seq: event.seq }
    case "tool/result":
      return { role: "tool", callId: event.data.call_id, output: event.data.output ?? "", isError: event.data.is_error, seq: event.seq }
    default:
      return undefined
  }
}

export const make = (): Surface => {
  const all: Array<Message> = []
  return {
    take: (event) => {
      const message = messageOf(event)
      if (message === undefined || !("surface_op" in event)) return
      if (event.surface_op === "append") all.push(message)
      else all.splice(event.surface_op.replace.start, event.surface_op.replace.end - event.surface_op.replace.start, message)
    },
    messages: () => all.filter((message) => message.role !== "assistant" || message.text !== "")
  }
}

/** The messages of a whole log. */
export const deriveMessages = (events: Iterable<SessionEvent.SessionEvent>): ReadonlyArray<Message> => {
  const surface = make()
  for (const event of events) surface.take(event)
  return surface.messages()
}
