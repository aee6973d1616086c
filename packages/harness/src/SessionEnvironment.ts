/**
 * The variables that a session's program is started with.
 */
import type { Harness } from "@turnpike/kernel"
import { ChildEnvironment } from "@turnpike/process"

/**
 * Answers the changes that make of this process's environment the session's: what
 * the caller does not have is removed, then marks of an enclosing agent, then
 * the harness's own variables apply, and the caller's choices win over all.
 */
export const changes = (
  session: Pick<Harness.SessionOptions, "inheritedEnv" | "env">,
  own: ChildEnvironment.Variables = {}
): ChildEnvironment.Variables => ({
  ...Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined])),
  ...ChildEnvironment.make(session.inheritedEnv),
  ...own,
  ...session.env
})
