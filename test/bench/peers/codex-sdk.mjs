/** Prompts Codex through the Codex SDK, as its documentation does: one thread, one run a prompt. Called with the program and the prompts; prints the answer and the milliseconds of each turn. */
import { Codex } from "@openai/codex-sdk"

const [program, ...texts] = process.argv.slice(2)
const codex = new Codex({ codexPathOverride: program, env: process.env })
const thread = codex.startThread({ skipGitRepoCheck: true, sandboxMode: "read-only", approvalPolicy: "never" })
const turns = []
for (const text of texts) {
  const begun = performance.now()
  const { finalResponse } = await thread.run(text)
  turns.push({ answer: finalResponse, ms: performance.now() - begun })
}
process.stdout.write(`${JSON.stringify(turns)}\n`)
