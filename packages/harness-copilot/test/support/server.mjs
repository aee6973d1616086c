// A program that speaks as Copilot's server does, as far as the tests of opening need it.
// argv: MODE; every request is noted in the file `requests.jsonl` of the working directory.
import { appendFileSync } from "node:fs"

const mode = process.argv[2]
const send = (frame) => {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...frame }))
  process.stdout.write(`Content-Length: ${body.length}\r\n\r\n`)
  process.stdout.write(body)
}
const event = (type, data) => send({ method: "session.event", params: { sessionId: "s", event: { type, data, id: "e", timestamp: "t", parentId: null } } })

if (mode === "dies") {
  process.stderr.write("cannot start: token=abcdefghijkl\n")
  process.exit(7)
}

const answer = ({ id, method, params }) => {
  appendFileSync("requests.jsonl", `${JSON.stringify({ method, params })}\n`)
  if (mode === "silent") return
  switch (method) {
    case "connect":
      if (mode === "no-connect") return send({ id, error: { code: -32601, message: "Unhandled method connect" } })
      return send({ id, result: { ok: true, protocolVersion: mode === "protocol-4" ? 4 : 3, version: "1.0.102" } })
    case "auth.getStatus":
      return send({ id, result: mode === "signed-in" ? { isAuthenticated: true, login: "me" } : { isAuthenticated: false } })
    case "session.create":
      return mode === "refuses"
        ? send({ id, error: { code: -32603, message: "bad key=sk-abcdefghijkl" } })
        : send({ id, result: { sessionId: params.sessionId, modelState: { modelId: params.model } } })
    case "session.resume":
      return mode === "lost"
        ? send({ id, error: { code: -32603, message: `Failed to load session events: Session not found: ${params.sessionId}` } })
        : send({ id, result: { sessionId: params.sessionId } })
    case "session.send":
      send({ id, result: { messageId: "m" } })
      if (mode === "deaf") return
      event("assistant.message", { messageId: "1", content: `answer to ${params.prompt}` })
      return event("session.idle", {})
    case "session.abort":
      send({ id, result: { success: true } })
      event("abort", { reason: "user_initiated" })
      return event("session.idle", { aborted: true })
  }
}

let buffer = Buffer.alloc(0)
process.stdin.on("data", (chunk) => {
  buffer = Buffer.concat([buffer, chunk])
  for (;;) {
    const end = buffer.indexOf("\r\n\r\n")
    if (end === -1) return
    const length = Number(/content-length: *(\d+)/i.exec(buffer.subarray(0, end).toString())[1])
    if (buffer.length < end + 4 + length) return
    const frame = JSON.parse(buffer.subarray(end + 4, end + 4 + length).toString())
    buffer = buffer.subarray(end + 4 + length)
    answer(frame)
  }
})
process.stdin.on("end", () => process.exit(0))
