import { describe, it } from "@effect/vitest"
import { ClaudeHarness } from "@turnpike/harness-claude"
import { Supervisor } from "@turnpike/process"
import { DialectPlayer, HarnessSuite, type Situation } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as path from "node:path"

const tools: Situation.ToolNames = {
  execute: "Bash",
  all: ["Read", "Glob", "Grep", "Edit", "Write", "Bash", "WebFetch"]
}

/** Claude Code's words, played by a real process that was written from recordings. */
HarnessSuite.harnessSuite("ClaudeHarness", { describe: describe.concurrent, it: it.live }, {
  harness: ClaudeHarness.make({ handshakeTimeout: "10 seconds" }),
  layer: Supervisor.layer({ containment: "group", reapOrphans: false }),
  tools,
  driver: (situation, place) =>
    Effect.map(DialectPlayer.situation(situation, { dialect: DialectPlayer.claude, name: "claude", tools }), (program) => ({
      program,
      configDir: path.join(place.directory, "config")
    })),
  cannot: {
    late_in_turn: "the pieces of an answer do not say which turn they are of"
  }
})
