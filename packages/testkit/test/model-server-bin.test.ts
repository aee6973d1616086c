import { afterEach, assert, describe, it } from "@effect/vitest"
import { type ChildProcess, spawn } from "node:child_process"
import * as net from "node:net"
import { fileURLToPath } from "node:url"
import * as ModelScenario from "../src/ModelScenario.ts"
import { bodyFor, post, read, understand } from "./support/client.ts"

const bin = fileURLToPath(new URL("../src/bin/model-server.ts", import.meta.url))

const children = new Set<ChildProcess>()
afterEach(() => {
  for (const child of children) child.kill("SIGKILL")
  children.clear()
})

const start = (args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [bin, ...args], { stdio: ["ignore", "pipe", "pipe"] })
  children.add(child)
  let stdout = ""
  let stderr = ""
  const firstLine = new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (chunk) => {
      stdout += chunk
      if (stdout.includes("\n")) resolve(stdout.split("\n")[0] ?? "")
    })
    child.on("close", () => reject(new Error(`it ended before its first line: ${stderr}`)))
  })
  firstLine.catch(() => {})
  child.stderr.on("data", (chunk) => stderr += chunk)
  const ended = new Promise<{ readonly code: number | null; readonly signal: string | null; readonly stdout: string; readonly stderr: string }>((resolve) =>
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }))
  )
  return { child, firstLine, ended }
}

describe("turnpike-model-server", () => {
  it.each(["SIGINT", "SIGTERM"] as const)("prints its URL, serves, and ends cleanly on %s, also with an answer under way", async (signal) => {
    const { child, firstLine, ended } = start(["--model", "m1", "--model", "m2"])
    const url = await firstLine
    const models = await fetch(`${url}/s/text/run/v1/models`).then((response) => response.text())
    const hanging = await post(`${url}/s/hang/run/v1/messages`, bodyFor("anthropic-messages", { prompts: ["x"], stream: true }))
    const raw = await post(`${url}/s/text/run/v1/messages`, bodyFor("anthropic-messages", { prompts: ["x"], stream: true })).then((r) => read(r))
    child.kill(signal)
    assert.deepStrictEqual(await ended, { code: 0, signal: null, stdout: `${url}\n`, stderr: "" })
    assert.isTrue((await read(hanging)).broken)
    assert.match(url, /^http:\/\/127\.0\.0\.1:[0-9]+$/)
    assert.deepStrictEqual([...models.matchAll(/"id":"([^"]*)"/g)].map((match) => match[1]), ["m1", "m2"])
    assert.strictEqual(understand("anthropic-messages", raw).text, "I was sent 1 prompt: [\"x\"]")
  })

  it("lists every scenario in its help", async () => {
    const { code, stdout, stderr } = await start(["--help"]).ended
    assert.deepStrictEqual([code, stderr], [0, ""])
    for (const { type, description } of ModelScenario.catalogue) {
      assert.include(stdout, `\n${type}`)
      assert.include(stdout, description)
    }
  })

  it.each([
    [["--prot", "1"], "--prot"],
    [["--port", "99999"], "--port takes a number from 0 to 65535, not \"99999\""],
    [["--port", "x"], "not \"x\""],
    [["--port"], "--port"],
    [["--model", ""], "--model takes an id, not an empty text"],
    [["extra"], "extra"]
  ])("refuses %j with a usage error", async (args, problem) => {
    const { code, stdout, stderr } = await start(args).ended
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.include(stderr.split("\n")[0], problem)
    assert.include(stderr, "Usage: turnpike-model-server")
  })

  it("names the port that it cannot have", async () => {
    const holder = net.createServer()
    await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve))
    const { port } = holder.address() as net.AddressInfo
    const { code, stdout, stderr } = await start(["--port", String(port)]).ended
    await new Promise((resolve) => holder.close(resolve))
    assert.deepStrictEqual([code, stdout], [1, ""])
    assert.match(stderr, new RegExp(`^turnpike-model-server: cannot listen on 127\\.0\\.0\\.1:${port}: .*choose another port`))
  })
})
