import { describe, it } from "@effect/vitest"
import { CopilotHarness } from "@turnpike/harness-copilot"
import { Supervisor } from "@turnpike/process"
import { DialectPlayer, HarnessSuite, type Situation } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as path from "node:path"

const tools: Situation.ToolNames = { execute: "bash", all: ["bash", "view", "edit"] }

/** Copilot's words, played by a real process that was written from recordings. */
HarnessSuite.harnessSuite("CopilotHarness", { describe: describe.concurrent, it: it.live }, {
  harness: CopilotHarness.make({ handshakeTimeout: "10 seconds" }),
  layer: Supervisor.layer({ containment: "group", reapOrphans: false }),
  tools,
  driver: (situation, place) =>
    Effect.map(DialectPlayer.situation(situation, { dialect: DialectPlayer.copilot, name: "copilot", tools }), (program) => ({
      program,
      configDir: path.join(place.directory, "config")
    })),
  cannot: {
    late_in_turn: "the pieces of an answer do not say which turn they are of",
    own_turn: "nothing is known that makes it begin a turn by itself",
    rebinds: "a session keeps its id",
    renames: "a session keeps its id when it is resumed",
    more_tools: "it does not say which tools it has"
  }
})
