import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll } from "vitest"
import * as Events from "./support/Events.ts"
import * as Turnpike from "./support/Turnpike.ts"

const home = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-choice-"))
afterAll(() => fs.rmSync(home, { recursive: true, force: true }))

const tells = (version: string) => `[ "$1" = --version ] && echo "${version}"`
const agents = {
  claude: tells("2.1.332 (Claude Code)"),
  codex: tells("codex-cli 0.171.0"),
  // Whatever else is installed where these tests run must not count: it comes after these in PATH.
  none: "echo something else; exit 3"
} as const

/** A directory with all agents' programs; those that are not named are something else. */
const programs = (...names: ReadonlyArray<"claude" | "codex">): string => {
  const directory = fs.mkdtempSync(path.join(home, "bin-"))
  for (const name of ["claude", "codex", "copilot"] as const) {
    const body = name !== "copilot" && names.includes(name) ? agents[name] : agents.none
    fs.writeFileSync(path.join(directory, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  }
  return directory
}

/** Codex is signed in by a file of its own, Claude Code by a variable. */
const codexHome = path.join(home, "codex")
fs.mkdirSync(codexHome)
fs.writeFileSync(path.join(codexHome, "auth.json"), "{}")

const environment = (bin: string, more: Readonly<Record<string, string>> = {}) => ({
  home,
  env: { PATH: `${bin}:/usr/bin:/bin`, CODEX_HOME: codexHome, TMPDIR: "/var/tmp", ...more }
})
const key = "sk-ant-0123456789"

describe.concurrent("doctor without a harness", () => {
  const doctor = async (bin: string, more: Readonly<Record<string, string>> = {}) => {
    const { code, stdout } = await Turnpike.run(["doctor", "--json"], environment(bin, more))
    const { harnesses, next, usable } = JSON.parse(stdout) as { readonly usable: boolean; readonly next: string; readonly harnesses: ReadonlyArray<{ readonly harness: string; readonly usable: boolean }> }
    return [code, usable, next, harnesses.filter((each) => each.usable).map(({ harness }) => harness)]
  }

  it("ends with 1 where no agent can be used, though the demonstration can", async () => {
    assert.deepStrictEqual(await doctor(programs()), [
      1,
      false,
      "No agent can be used yet; each problem (✗) says what to do. A demonstration needs none: turnpike run --harness scripted \"Say hello\"",
      ["scripted"]
    ])
  })

  it("ends with 0 where one can", async () => {
    assert.deepStrictEqual(await doctor(programs("codex")), [0, true, "Try it: turnpike run \"Say hello\"", ["codex", "scripted"]])
  })
})

describe.concurrent("a run without --harness", () => {
  it("says which agents there are, their state and what to type where none can be used, and starts nothing", async () => {
    const { code, stderr, stdout } = await Turnpike.run(["run", "hi"], environment(programs("claude")))
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.match(
      stderr,
      /^turnpike: no agent can be used here, and --harness names none: claude 2\.1\.332: no sign-in was found.*; codex: the program is another one; copilot: the program is another one\n {2}code: USAGE\n {2}what to do: For claude: Run `claude` and type \/login.* `turnpike doctor` says what to do for each; `--harness scripted` is a demonstration that needs none\.\n$/
    )
  })

  it("asks for a choice where several can be used", async () => {
    const { code, stderr, stdout } = await Turnpike.run(["chat", "--format", "text"], environment(programs("claude", "codex"), { ANTHROPIC_API_KEY: key }))
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.match(
      stderr,
      /^turnpike: several agents can be used here, and --harness names none: claude 2\.1\.332: can be used; codex 0\.171\.0: can be used; copilot: the program is another one\n {2}code: USAGE\n {2}what to do: Choose one: --harness claude, or --harness codex\.\n$/
    )
  })

  it("takes the only one that can be used, and says so; a variable of --env may sign it in", async () => {
    const { stderr, stdout } = await Turnpike.run(["run", "--format", "events", "--env", `ANTHROPIC_API_KEY=${key}`, "hi"], environment(programs("claude")))
    assert.match(
      stderr,
      /^turnpike: runs on claude 2\.1\.332, the only agent that can be used here \(codex: the program is another one; copilot: the program is another one\)\n/
    )
    // The program is none: the run tells so, of the harness that was chosen.
    const result = Events.resultOf(stdout)
    assert.deepStrictEqual([result.session.harness, result.result.success], ["claude", false])
    assert.notInclude(stderr + stdout, key)
  })

  it("finds by the program that is named which agent it is", async () => {
    const bin = programs()
    fs.writeFileSync(path.join(bin, "mine"), `#!/bin/sh\n${agents.codex}\n`, { mode: 0o755 })
    const { stderr } = await Turnpike.run(["run", "--program", "mine", "hi"], environment(bin))
    assert.match(stderr, /^turnpike: runs on codex 0\.171\.0, the only agent/)
  })

  it.skipIf(process.platform !== "linux")("is stopped by an interrupt while programs are asked, and leaves nothing of them", async () => {
    const bin = programs()
    const begun = path.join(bin, "begun")
    const mark = `mark-${path.basename(bin)}`
    fs.writeFileSync(path.join(bin, "claude"), `#!/bin/sh\n: > '${begun}'\nexec sleep 307\n`, { mode: 0o755 })
    const marked = () =>
      fs.readdirSync("/proc").filter((name) => {
        try {
          return /^\d+$/.test(name) && fs.readFileSync(`/proc/${name}/environ`, "utf8").includes(mark)
        } catch {
          return false
        }
      })
    const running = Turnpike.start(["run", "hi"], environment(bin, { MARK: mark }))
    const until = Date.now() + 20_000
    while (!fs.existsSync(begun) && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 10))
    assert.isAbove(marked().length, 1)
    running.child.kill("SIGINT")
    const { code, stderr, stdout } = await running.ended
    assert.deepStrictEqual([code, stdout, stderr], [130, "", "turnpike: stopped before the run began; nothing was started\n"])
    while (marked().length > 0 && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 10))
    assert.deepStrictEqual(marked(), [])
  }, 30_000)

  it("goes on with the harness of its session, and with no other where there is no such session", async () => {
    const options = environment(programs())
    const first = await Turnpike.run(["run", "--harness", "scripted", "--session", "kept", "hi"], options)
    assert.strictEqual(first.code, 0)
    const { code, stderr, stdout } = await Turnpike.run(["run", "--session", "kept", "--format", "events", "again"], options)
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.deepStrictEqual([Events.resultOf(stdout).session.harness, Events.resultOf(stdout).session.turn], ["scripted", 2])
    const unknown = await Turnpike.run(["run", "--session", "never", "--resume", "fail", "hi"], options)
    assert.deepStrictEqual([unknown.code, unknown.stderr.split("\n")[0]], [1, "turnpike: there is no session never to continue"])
  }, 30_000)
})
