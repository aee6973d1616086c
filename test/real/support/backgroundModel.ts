/**
 * A model on 127.0.0.1 that asks Claude Code's Bash for one command in the
 * background, and answers everything else with a word. The scripted model server
 * chooses a tool's arguments itself, so it cannot ask for that.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

export interface BackgroundModel {
  readonly url: string
  readonly close: () => Promise<void>
}

export const start = (command: string): Promise<BackgroundModel> =>
  new Promise((resolve, reject) => {
    let asked = 0
    const server = createServer((request, response) => {
      let body = ""
      request.setEncoding("utf8").on("data", (text: string) => body += text).on("end", () => {
        if (request.method !== "POST" || request.url?.includes("/messages") !== true) {
          response.writeHead(404).end()
          return
        }
        const { messages, model } = JSON.parse(body) as { readonly messages: ReadonlyArray<{ readonly role: string }>; readonly model: string }
        const isFirst = messages.every(({ role }) => role !== "assistant")
        const id = `msg_background_${asked++}`
        const block = isFirst
          ? {
            start: { type: "tool_use", id: `toolu_background_${asked}`, name: "Bash", input: {} },
            delta: { type: "input_json_delta", partial_json: JSON.stringify({ command, description: "wait", run_in_background: true }) }
          }
          : { start: { type: "text", text: "" }, delta: { type: "text_delta", text: `answer ${asked}` } }
        const events: ReadonlyArray<{ readonly type: string; readonly [key: string]: unknown }> = [
          {
            type: "message_start",
            message: {
              id,
              type: "message",
              role: "assistant",
              model,
              content: [],
              stop_reason: null,
              stop_sequence: null,
              usage: { input_tokens: 10, output_tokens: 1 }
            }
          },
          { type: "content_block_start", index: 0, content_block: block.start },
          { type: "content_block_delta", index: 0, delta: block.delta },
          { type: "content_block_stop", index: 0 },
          {
            type: "message_delta",
            delta: { stop_reason: isFirst ? "tool_use" : "end_turn", stop_sequence: null },
            usage: { output_tokens: 5 }
          },
          { type: "message_stop" }
        ]
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""))
      })
    })
    server.on("error", reject)
    server.listen(0, "127.0.0.1", () =>
      resolve({
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        close: () => new Promise((done) => {
          server.close(() => done())
          server.closeAllConnections()
        })
      }))
  })
