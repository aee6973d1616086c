import { describe, it } from "@effect/vitest"
import { ScriptedHarness } from "@turnpike/harness-scripted"
import { Supervisor } from "@turnpike/process"
import { HarnessSuite, Situation } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const tools: Situation.ToolNames = { execute: "execute", all: ["read", "search", "execute", "a_tool_of_its_own"] }

/** The way in which a user chooses a scenario: a file that the session's environment names. */
const driver: HarnessSuite.Driver = (situation, { directory }) =>
  Effect.sync(() => {
    const file = path.join(directory, `${situation}.json`)
    fs.writeFileSync(file, JSON.stringify(Situation.scenario(situation, tools)))
    return { env: { TURNPIKE_SCENARIO: file, NODE_COMPILE_CACHE: path.join(os.tmpdir(), "turnpike-player-cache") } }
  })

HarnessSuite.harnessSuite("ScriptedHarness", { describe: describe.concurrent, it: it.live }, {
  harness: ScriptedHarness.make(),
  layer: Supervisor.layer({ reapOrphans: false }),
  driver,
  tools
})
