/** What a run is asked for, and whether the real Codex does it; through the turnpike binary. */
import { assert, describe } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { factOf, noticesOf, succeeded, write } from "./support/realFacts.ts"
import { breaches } from "./support/turnpikeRun.ts"

const fact = factOf("codex")

describe.concurrent("turnpike run --harness codex", () => {
  fact("sends the system prompt, and with a session that is continued the one of that run last", async (bench, requests) => {
    const one = write(bench, "one.txt", "INSTRUCTION-ONE")
    const two = write(bench, "two.txt", "INSTRUCTION-TWO")
    succeeded(await bench.run({ task: "a", args: ["--session=s", `--system-file=${one}`] }))
    succeeded(await bench.run({ task: "b", args: ["--session=s", `--system-file=${two}`] }))
    const [first = "", second = ""] = (await requests()).map((request) => JSON.stringify(request.body))
    assert.deepStrictEqual([first.includes("INSTRUCTION-ONE"), first.includes("INSTRUCTION-TWO")], [true, false])
    assert.isAbove(second.indexOf("INSTRUCTION-TWO"), second.indexOf("INSTRUCTION-ONE"))
  })

  fact("uses the model that is named", async (bench, requests) => {
    succeeded(await bench.run({ task: "a", args: ["--model=gpt-5.4-mini"] }))
    assert.deepStrictEqual((await requests()).map(({ model }) => model), ["gpt-5.4-mini"])
  })

  fact("keeps to a directory of the session's own where that is asked for, in which nobody is signed in", async (bench, requests) => {
    const told = await bench.run({ task: "a", args: ["--isolated", "--timeout=5"] })
    assert.deepStrictEqual([told.exit, breaches(told)], [3, []], told.stderr)
    // The user's settings would have led to the scripted model.
    assert.deepStrictEqual(await requests(), [])
    assert.isFalse(fs.existsSync(path.join(bench.place.config, "sessions")))
  })

  fact("does not take the sandbox of a session over when it is resumed with less", async (bench) => {
    const touch = { type: "tool", command: "touch ran" } as const
    succeeded(await bench.run({ task: "a", args: ["--session=s", "--allow-tool=edit"], scenario: touch }))
    assert.isTrue(fs.existsSync(path.join(bench.place.work, "ran")))
    fs.rmSync(path.join(bench.place.work, "ran"))
    succeeded(await bench.run({ task: "b", args: ["--session=s"], scenario: touch }))
    assert.isFalse(fs.existsSync(path.join(bench.place.work, "ran")))
    succeeded(await bench.run({ task: "c", args: ["--session=s", "--allow-tool=edit"], scenario: touch }))
    assert.isTrue(fs.existsSync(path.join(bench.place.work, "ran")))
  })

  fact("opens the network to commands where fetch is listed, and does not where it is not", async (bench) => {
    // Nothing listens there: a connection that is refused has got out of the sandbox.
    const connect = { type: "tool", command: "(exec 3<>/dev/tcp/127.0.0.1/9) 2>&1 | grep -o refused; echo tried" } as const
    const tried = async (...args: ReadonlyArray<string>) => {
      const told = succeeded(await bench.run({ task: "a", scenario: connect, args }))
      assert.include(told.result?.result.summary, "tried")
      return told.result?.result.summary.includes("refused")
    }
    assert.deepStrictEqual([await tried(), await tried("--allow-tool=fetch")], [false, true])
  })

  fact("tells of MCP servers that did not start", async (bench) => {
    fs.writeFileSync(path.join(bench.place.config, "more.toml"), "[mcp_servers.bad]\ncommand = \"/no/such/program\"\n")
    const told = succeeded(await bench.run({ task: "a" }))
    assert.deepStrictEqual(noticesOf(told, "mcp_server_failed").map((message) => message.slice(0, 35)), ["the MCP server bad is not there: MC"])
  })

  fact("leaves nothing running that a tool left behind", async (bench) => {
    const command = "nohup sleep 303 >/dev/null 2>&1 & echo done"
    succeeded(await bench.run({ task: "run it", scenario: { type: "tool", command }, args: ["--dangerous-all-tools"] }))
    assert.deepStrictEqual(bench.processes(), [])
  })
})
