/** Sessions that say what a test tells them to. */
import { Scalars, TurnEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { AgentSession, TurnError } from "../../src/index.ts"

export const sessionId = Scalars.SessionId.make("s-1")

export const chunk = (text: string): TurnEvent.TurnEvent => TurnEvent.make("assistant/chunk", { kind: "text", text })

export const message = (text: string): TurnEvent.TurnEvent => TurnEvent.make("assistant/message", { text })

export const end = (text: string, data: Partial<TurnEvent.TurnEnd["data"]> = {}): TurnEvent.TurnEnd =>
  TurnEvent.make("harness/end", { stop_reason: "completed", text, worked: false, denials: [], background: [], ...data })

type Turns = (text: string) => Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>

export const make = (turns: Turns, interrupt: Effect.Effect<void> = Effect.void): AgentSession.AgentSession => ({
  sessionId,
  runTurn: (prompt) => turns(prompt.text),
  interrupt
})

/** Answers each prompt with itself. */
export const echo: AgentSession.AgentSession = make((text) => Stream.make(message(`echo: ${text}`), end(`echo: ${text}`)))
