/** Reads a program that speaks as Claude Code does through the Claude Agent SDK, as its documentation does, and notes how old each piece is. */
import { query } from "@anthropic-ai/claude-agent-sdk"

const delay_us = []
let answer = ""
for await (const message of query({
  prompt: "go",
  options: { pathToClaudeCodeExecutable: process.argv[2], includePartialMessages: true, env: process.env, settingSources: [] }
})) {
  if (message.type === "stream_event" && message.event.delta?.type === "text_delta") {
    delay_us.push(Math.round((Number(process.hrtime.bigint()) - Number(message.event.delta.text)) / 1000))
  }
  if (message.type === "result") answer = message.result
}
process.stdout.write(`${JSON.stringify({ delay_us, answer })}\n`)
