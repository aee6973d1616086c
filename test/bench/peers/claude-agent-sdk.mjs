/**
 * Prompts Claude Code through the Claude Agent SDK, as its documentation does: one conversation whose
 * prompts are an iterable. Called with the program and the prompts; prints the answer and the
 * milliseconds of each turn.
 */
import { query } from "@anthropic-ai/claude-agent-sdk"

const [program, ...texts] = process.argv.slice(2)
let answered = () => {}
const turns = []
let begun = 0

async function* prompts() {
  for (const text of texts) {
    const done = new Promise((resolve) => {
      answered = resolve
    })
    begun = performance.now()
    yield { type: "user", message: { role: "user", content: text }, parent_tool_use_id: null }
    await done
  }
}

for await (
  const message of query({
    // One prompt is a string there; several are a stream.
    prompt: texts.length === 1 ? texts[0] : prompts(),
    options: { pathToClaudeCodeExecutable: program, includePartialMessages: true, env: process.env }
  })
) {
  if (message.type !== "result") continue
  turns.push({ answer: message.result, ms: performance.now() - begun })
  answered()
}
process.stdout.write(`${JSON.stringify(turns)}\n`)
