/**
 * What a harness can do, and how far it can be relied on.
 */
import * as Schema from "effect/Schema"

export const Level = Schema.Literals(["enforced", "advisory", "unsupported"]).annotate({
  identifier: "CapabilityLevel",
  description:
    "enforced: the harness does it and a breach is seen; advisory: the harness is asked and may ignore it; unsupported: asking for it is refused before anything runs."
})
export type Level = typeof Level.Type

const level = (description: string) => Level.annotateKey({ description })

export const Capabilities = Schema.Struct({
  resume: level("Continue a session after its process has gone."),
  chosen_session_id: level("Begin a session under an id that the caller chose."),
  steering: level("Take a message into the running turn."),
  tool_allow_list: level("Limit tools by neutral class or by the harness's own names."),
  permission_requests: level("Ask before a tool runs, and obey the answer."),
  system_prompt: level("Take instructions of the caller's."),
  model_choice: level("Use the model that the caller names."),
  usage: level("Report tokens for each turn."),
  cost: level("Report money for each turn."),
  structured_output: level("Answer in a JSON shape that the caller gives."),
  interrupt_keeps_history: level("Stop a turn on request and keep the session usable, with its history."),
  isolation: level("Run apart from the user's own settings of the harness."),
  background_tasks: level("Declare tasks that go on after the turn.")
}).annotate({ identifier: "Capabilities", description: "What a harness can do, and how far it can be relied on." })
export type Capabilities = typeof Capabilities.Type
