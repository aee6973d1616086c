/**
 * An agent and a channel made by hand, and the loop that joins them: two prompts, two answers.
 *
 * Prints `echo: hello`, then `echo: world`.
 */
import { Scalars, TurnEvent } from "@turnpike/contract"
import { type AgentSession, Channel, Prompt, SessionLoop } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

const session: AgentSession.AgentSession = {
  sessionId: Scalars.SessionId.make("example"),
  runTurn: ({ text }) =>
    Stream.succeed(
      TurnEvent.make("harness/end", { stop_reason: "completed", text: `echo: ${text}`, worked: false, denials: [], background: [] })
    ),
  interrupt: Effect.void
}

const prompts = ["hello", "world"]

const channel = Channel.make({
  id: "example",
  nextPrompt: Effect.sync(() => {
    const text = prompts.shift()
    return text === undefined ? Channel.closed : Channel.ready(Prompt.fromText(text))
  }),
  publishOutput: (output) => Effect.sync(() => console.log(output.text))
})

await Effect.runPromise(SessionLoop.runSessionLoop(session, channel))
