import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll } from "vitest"
import * as Events from "./support/Events.ts"
import * as Turnpike from "./support/Turnpike.ts"

const home = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-choice-"))
afterAll(() => fs.rmSync(home, { recursive: true, force: true }))

const versions = { claude: "2.1.332 (Claude Code)", codex: "codex-cli 0.171.0" } as const

/** A directory with programs that tell their version and nothing else. */
const programs = (...names: ReadonlyArray<keyof typeof versions>): string => {
  const directory = fs.mkdtempSync(path.join(home, "bin-"))
  for (const name of names) {
    fs.writeFileSync(path.join(directory, name), `#!/bin/sh\n[ "$1" = --version ] && echo "${versions[name]}"\n`, { mode: 0o755 })
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

describe("a run without --harness", () => {
  it("says which agents there are where none can be used, and starts nothing", async () => {
    const { code, stderr, stdout } = await Turnpike.run(["run", "hi"], environment(programs("claude")))
    assert.deepStrictEqual([code, stdout], [1, ""])
    assert.match(stderr, /no agent can be used here, and --harness names none: claude 2\.1\.332: no sign-in was found.*; codex: not found; copilot: not found\n/)
    assert.include(stderr, "`turnpike doctor` says what to do for each")
  })

  it("asks for a choice where several can be used", async () => {
    const { code, stderr, stdout } = await Turnpike.run(["run", "hi"], environment(programs("claude", "codex"), { ANTHROPIC_API_KEY: "sk-ant-0123456789" }))
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.match(stderr, /several agents can be used here, and --harness names none: claude 2\.1\.332: can be used; codex 0\.171\.0: can be used; copilot: /)
    assert.include(stderr, "--harness claude, or --harness codex")
  })

  it("takes the only one that can be used, and says so; a variable of --env may sign it in", async () => {
    const { stderr, stdout } = await Turnpike.run(
      ["run", "--format", "events", "--env", "ANTHROPIC_API_KEY=sk-ant-0123456789", "hi"],
      environment(programs("claude"))
    )
    assert.match(stderr, /turnpike: runs on claude 2\.1\.332, the only agent that can be used here \(codex: .*; copilot: .*\)/)
    // The program is none: the run tells so, of the harness that was chosen.
    const result = Events.resultOf(stdout)
    assert.deepStrictEqual([result.session.harness, result.result.success], ["claude", false])
  })

  it("goes on with the harness of its session", async () => {
    const options = environment(programs())
    const first = await Turnpike.run(["run", "--harness", "scripted", "--session", "kept", "hi"], options)
    assert.strictEqual(first.code, 0)
    const { code, stderr, stdout } = await Turnpike.run(["run", "--session", "kept", "--format", "events", "again"], options)
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.deepStrictEqual([Events.resultOf(stdout).session.harness, Events.resultOf(stdout).session.turn], ["scripted", 2])
  })
})
