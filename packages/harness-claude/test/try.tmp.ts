import { ClaudeHarness } from "@turnpike/harness-claude"
import { Harness, Prompt, Permission, ToolAllowlist } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { Effect, Stream } from "effect"
import * as fs from "node:fs"
const [scenario, promptText = "hello", tools = ""] = process.argv.slice(2)
const dir = fs.mkdtempSync("/tmp/hc/t/run-")
const run = "r" + Math.random().toString(36).slice(2)
const program = Effect.gen(function*() {
  const harness = yield* ClaudeHarness.make()
  const session = yield* harness.open(Harness.options({
    sessionId: "s1", cwd: dir, program: process.env.BIN ?? "/tmp/inst/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
    configDir: dir + "/cfg", system: process.env.SYS,
    tools: tools === "ALL" ? ToolAllowlist.dangerousAll : tools === "" ? ToolAllowlist.readOnlyDefault : { _tag: "Only", tools: tools.split("+") },
    permission: process.env.PERM === "listed" ? Permission.allowListed : Permission.deny,
    inheritedEnv: { PATH: process.env.PATH!, HOME: dir }, env: { ANTHROPIC_BASE_URL: `http://127.0.0.1:8799/s/${scenario}/${run}`, ANTHROPIC_API_KEY: "sk-fake-123456789", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", DISABLE_TELEMETRY: "1", DISABLE_ERROR_REPORTING: "1", CLAUDE_CODE_MAX_RETRIES: "1" }
  }))
  for (const p of promptText.split("|")) {
    const t0 = Date.now()
    yield* Stream.runForEach(session.runTurn(Prompt.fromText(p)), (e) => Effect.sync(() => console.log(Date.now() - t0, JSON.stringify(e).slice(0, 400)))).pipe(Effect.catch((e) => Effect.sync(() => console.log("FAIL", JSON.stringify(e.failure)))))
  }
  const t1 = Date.now()
  console.log("CLOSE", JSON.stringify(yield* session.close), Date.now() - t1)
})
Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(Supervisor.layer()))).catch((e) => { console.log("ERR", e.failure ?? e) })
