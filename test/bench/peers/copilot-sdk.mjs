/** Prompts Copilot through the Copilot SDK, as its documentation does: one client, one session. Called with the program and the prompts; prints the answer and the milliseconds of each turn. */
import { CopilotClient, RuntimeConnection } from "@github/copilot-sdk"

const [program, ...texts] = process.argv.slice(2)
const client = new CopilotClient({ connection: RuntimeConnection.forStdio({ path: program }), env: process.env })
await client.start()
const session = await client.createSession({
  model: process.env.COPILOT_MODEL,
  streaming: true,
  provider: {
    type: process.env.COPILOT_PROVIDER_TYPE,
    wireApi: process.env.COPILOT_PROVIDER_WIRE_API,
    baseUrl: process.env.COPILOT_PROVIDER_BASE_URL,
    apiKey: process.env.COPILOT_PROVIDER_API_KEY
  },
  onPermissionRequest: () => ({ kind: "reject" })
})
const turns = []
for (const text of texts) {
  const begun = performance.now()
  const message = await session.sendAndWait({ prompt: text })
  turns.push({ answer: message?.data.content, ms: performance.now() - begun })
}
await session.disconnect()
await client.stop()
process.stdout.write(`${JSON.stringify(turns)}\n`)
