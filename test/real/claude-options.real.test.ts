/** What a run is asked for, and whether the real Claude Code does it; through the turnpike binary. */
import { assert, describe } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import * as BackgroundModel from "./support/backgroundModel.ts"
import { factOf, noticesOf, succeeded, write } from "./support/realFacts.ts"

const fact = factOf("claude")

describe.concurrent("turnpike run --harness claude", () => {
  fact("sends the system prompt of each run, also when a session is continued with another", async (bench, requests) => {
    const one = write(bench, "one.txt", "INSTRUCTION-ONE")
    const two = write(bench, "two.txt", "INSTRUCTION-TWO")
    succeeded(await bench.run({ task: "a", args: ["--session=s", `--system-file=${one}`] }))
    succeeded(await bench.run({ task: "b", args: ["--session=s", `--system-file=${two}`] }))
    succeeded(await bench.run({ task: "c", args: ["--session=s"] }))
    assert.deepStrictEqual(
      (await requests()).map(({ system }) => [system.includes("INSTRUCTION-ONE"), system.includes("INSTRUCTION-TWO")]),
      [[true, false], [false, true], [false, false]]
    )
  })

  fact("takes a system prompt of 200 KB", async (bench, requests) => {
    const text = "0123456789abcde\n".repeat(12_800).trimEnd()
    succeeded(await bench.run({ task: "a", args: [`--system-file=${write(bench, "long.txt", text)}`] }))
    assert.isTrue((await requests())[0]?.system.includes(text))
  })

  fact("uses the model that is named, by its name or an alias", async (bench, requests) => {
    succeeded(await bench.run({ task: "a", args: ["--model=claude-haiku-4-5"] }))
    const alias = succeeded(await bench.run({ task: "b", args: ["--model=haiku"] }))
    assert.deepStrictEqual(noticesOf(alias, "model_differs"), [])
    for (const { model } of await requests()) assert.include(model ?? "", "haiku")
  })

  fact("runs no custom command that a prompt happens to name", async (bench) => {
    write(bench, "config/commands/deploy.md", "Deploy everything: $ARGUMENTS")
    write(bench, "work/.claude/commands/wipe.md", "Wipe everything")
    for (const task of ["/deploy now", "/wipe", "/debug", "/init"]) {
      succeeded(await bench.run({ task }))
      assert.deepStrictEqual(await bench.prompts(), [task])
    }
  })

  fact("signs in with the token that is given and not with a key that lies about", async (bench, requests) => {
    const spec = write(bench, "spec.json", JSON.stringify({
      harness: "claude",
      task: "a",
      credentials: { claude: { oauth_token: "oauth-token-of-the-real-test" } }
    }))
    const told = await bench.runSpec(spec)
    succeeded(told)
    const [request] = await requests()
    assert.deepStrictEqual(
      [request?.headers["authorization"], request?.headers["x-api-key"]],
      ["[redacted]", undefined]
    )
    assert.notInclude(told.stdout + told.stderr, "oauth-token-of-the-real-test")
  })

  fact("keeps to a configuration directory of the session's own where that is asked for", async (bench) => {
    write(bench, "config/settings.json", JSON.stringify({ model: "claude-from-user-settings" }))
    succeeded(await bench.run({ task: "a", args: ["--isolated", "--session=s"] }))
    assert.isFalse(fs.existsSync(path.join(bench.place.config, "projects")))
    const again = succeeded(await bench.run({ task: "b", args: ["--isolated", "--session=s"] }))
    assert.strictEqual(again.result?.result.summary, "I was sent 2 prompts: [\"a\",\"b\"]")
    assert.notInclude(again.stdout, "claude-from-user-settings")
  })

  fact("tells of MCP servers that did not start, and of tools beyond the allow-list", async (bench) => {
    write(bench, "config/.claude.json", JSON.stringify({
      mcpServers: {
        good: { command: process.execPath, args: [write(bench, "mcp.mjs", mcpServer)] },
        bad: { command: "/no/such/program" }
      }
    }))
    const told = succeeded(await bench.run({ task: "a" }))
    assert.deepStrictEqual(noticesOf(told, "mcp_server_failed"), ["the MCP server bad is not there: failed"])
    assert.deepStrictEqual(noticesOf(told, "tools_differ"), [
      "Claude Code offers mcp__good__echo beyond the allow-list; a call is refused unless it is permitted when it asks"
    ])
    assert.deepStrictEqual(told.result?.killed, [])
  })

  fact("ends what a tool left running, and tells", async (bench) => {
    const told = succeeded(await bench.run({
      task: "run it",
      scenario: { type: "tool", command: "nohup sleep 303 >/dev/null 2>&1 & echo done" },
      args: ["--allow-tool=execute", "--permission=allow-listed"]
    }))
    assert.strictEqual(noticesOf(told, "killed_leftovers").length, 1)
    assert.deepStrictEqual(told.result?.killed.map(({ command }) => command), ["sleep 303"])
  })

  fact("waits for a task in the background", async (bench) => {
    const model = await BackgroundModel.start("sleep 2; touch done-in-background")
    try {
      const told = succeeded(await bench.run({ task: "a", env: { ANTHROPIC_BASE_URL: model.url }, args: ["--allow-tool=execute"] }))
      assert.isTrue(fs.existsSync(path.join(bench.place.work, "done-in-background")))
      assert.deepStrictEqual(told.result?.background_killed, [])
      // What Claude Code says by itself when the task has ended is told in the run that waited for it.
      const own = told.events.flatMap((event) => event.type === "message" && event.origin === "background" ? [event.text] : [])
      assert.isAbove(own.length, 0)
    } finally {
      await model.close()
    }
  })

  fact("ends a task in the background where that is asked for, and lists it", async (bench) => {
    const model = await BackgroundModel.start("sleep 304; touch done-in-background")
    try {
      const told = succeeded(await bench.run({
        task: "a",
        env: { ANTHROPIC_BASE_URL: model.url },
        args: ["--allow-tool=execute", "--background=kill"]
      }))
      assert.deepStrictEqual(told.result?.background_killed.map(({ description }) => description), ["wait"])
      assert.isFalse(fs.existsSync(path.join(bench.place.work, "done-in-background")))
    } finally {
      await model.close()
    }
  })
})

const mcpServer = `
import { createInterface } from "node:readline"
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const result = method === "initialize"
    ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "good", version: "1" } }
    : method === "tools/list"
    ? { tools: [{ name: "echo", description: "echo", inputSchema: { type: "object" } }] }
    : {}
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n")
})
`
