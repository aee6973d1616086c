/**
 * A conversation with a real agent process, made of packages: a supervisor that leaves nothing
 * running, a harness, one turn, its events as they come. The scripted agent needs no key;
 * `ClaudeHarness` goes in its place.
 */
import { Scalars } from "@turnpike/contract"
import { ScriptedHarness } from "@turnpike/harness-scripted"
import { AgentSession, Harness, Prompt } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"

const program = Effect.gen(function*() {
  const harness = yield* ScriptedHarness.make({ scenario: "echo" })
  const session = yield* harness.open(
    Harness.options({ sessionId: Scalars.SessionId.make("example"), cwd: process.cwd(), inheritedEnv: { PATH: process.env["PATH"] ?? "" } })
  )
  const output = yield* AgentSession.runToOutput(session, Prompt.fromText("hello"))
  console.log(output.text)
})

await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(Supervisor.layer())))
