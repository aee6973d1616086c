/**
 * The adapter of docs/write-an-adapter.md at work: a turn with a tool, a turn whose tool is denied,
 * and the same conversation in another process.
 */
import { Scalars } from "@turnpike/contract"
import { AgentSession, Harness, Prompt } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as ToyHarness from "./adapter/ToyHarness.ts"

const conversation = Effect.gen(function*() {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-toy-"))),
    (made) => Effect.sync(() => fs.rmSync(made, { recursive: true }))
  )
  fs.writeFileSync(path.join(directory, "notes.txt"), "buy milk\n")
  const harness = yield* ToyHarness.make
  const options = Harness.options({
    sessionId: Scalars.SessionId.make("example"),
    cwd: directory,
    inheritedEnv: { PATH: process.env["PATH"] ?? "" },
    program: fileURLToPath(new URL("./adapter/toy-agent.mjs", import.meta.url)),
    configDir: path.join(directory, "home")
  })

  let harnessSessionId = ""
  const turn = (session: Harness.HarnessSession, text: string) =>
    Effect.map(
      AgentSession.runToOutput(session, Prompt.fromText(text), (event) =>
        Effect.sync(() => {
          if (event.type === "session/bound") harnessSessionId = event.data.harness_session_id
          if (event.type === "tool/result") console.log(`  ${event.data.denied === true ? "denied" : event.data.output?.trim()}`)
        })),
      (output) => console.log(`${text}: ${output.text}`)
    )

  yield* Effect.scoped(Effect.gen(function*() {
    const session = yield* harness.open(options)
    yield* turn(session, "look notes.txt")
    yield* turn(session, "sh rm notes.txt")
  }))
  const resumed = yield* harness.open({ ...options, resume: { harnessSessionId, onLost: "fail" } })
  yield* turn(resumed, "what did I say?")
})

await Effect.runPromise(Effect.scoped(conversation).pipe(Effect.provide(Supervisor.layer())))
