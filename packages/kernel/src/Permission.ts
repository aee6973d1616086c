/**
 * Who answers when a harness asks whether a tool may run.
 */
import type { AgentRunSpec, Scalars } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"

export interface Request {
  readonly requestId: Scalars.CallId
  readonly toolName: string
  readonly input: Schema.Json | undefined
  readonly description: string | undefined
  /** Whether the allow-list holds the tool, by the harness's own mapping. */
  readonly listed: boolean
}

export interface Answer {
  readonly decision: "allow" | "deny"
  readonly reason: string
}

export interface Decider {
  /** Named in the decision, so that a reader knows who answered. */
  readonly name: string
  /** Answers. When it is interrupted the request counts as cancelled and the tool does not run. */
  readonly decide: (request: Request) => Effect.Effect<Answer>
}

/** Refuses everything at once. */
export const deny: Decider = {
  name: "deny",
  decide: (request) =>
    Effect.succeed({ decision: "deny", reason: `${request.toolName} was not allowed and nobody is there to ask` })
}

/** Allows what the allow-list holds and refuses the rest, at once. */
export const allowListed: Decider = {
  name: "allow-listed",
  decide: (request) =>
    Effect.succeed(
      request.listed
        ? { decision: "allow", reason: "the allow-list holds the tool" }
        : { decision: "deny", reason: `the allow-list does not hold ${request.toolName}` }
    )
}

/** The decider of a policy that needs no person; `undefined` for `ask`. */
export const fromPolicy = (policy: Exclude<AgentRunSpec.PermissionPolicy, "ask">): Decider =>
  policy === "deny" ? deny : allowListed
