// A program that speaks as Copilot's server does where no recording shows how, or where a test has to see what it was told.
// argv: no-connect, refuses, torn, answers, signed-in or signed-out; every request is noted in the file `requests.jsonl` of the working directory.
import { appendFileSync } from "node:fs"

const mode = process.argv[2]
const send = (frame) => {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...frame }))
  process.stdout.write(`Content-Length: ${body.length}\r\n\r\n`)
  process.stdout.write(body)
}
const event = (type, data) => send({ method: "session.event", params: { sessionId: "s", event: { type, data, id: "e", timestamp: "t", parentId: null } } })

const answer = ({ id, method, params }) => {
  appendFileSync("requests.jsonl", `${JSON.stringify({ method, params })}\n`)
  switch (method) {
    case "connect":
      if (mode === "no-connect") return send({ id, error: { code: -32601, message: "Unhandled method connect" } })
      return send({ id, result: { ok: true, protocolVersion: 3, version: "1.0.102" } })
    case "auth.getStatus":
      return send({ id, result: mode === "signed-in" ? { isAuthenticated: true, login: "me" } : { isAuthenticated: false } })
    case "session.create":
      return mode === "refuses"
        ? send({ id, error: { code: -32603, message: "bad key=sk-abcdefghijkl" } })
        : send({ id, result: { sessionId: params.sessionId, modelState: { modelId: params.model } } })
    case "session.resume":
      return mode === "torn"
        ? send({ id, error: { code: -32603, message: "Request session.resume failed with message: session resume failed: Session file is corrupted (line 1)" } })
        : send({ id, result: { sessionId: params.sessionId } })
    case "session.send":
      send({ id, result: { messageId: "m" } })
      event("assistant.message", { messageId: "1", content: `answer to ${params.prompt}` })
      return event("session.idle", {})
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
