import { describe, it } from "@effect/vitest"
import { CodexHarness } from "@turnpike/harness-codex"
import { Supervisor } from "@turnpike/process"
import { DialectPlayer, HarnessSuite, type Situation } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as path from "node:path"

const tools: Situation.ToolNames = { execute: "commandExecution", all: ["commandExecution", "fileChange", "webSearch"] }

/** Codex's words, played by a real process that was written from recordings. */
HarnessSuite.harnessSuite("CodexHarness", { describe: describe.concurrent, it: it.live }, {
  harness: CodexHarness.make({ handshakeTimeout: "10 seconds" }),
  layer: Supervisor.layer({ containment: "group", reapOrphans: false }),
  tools,
  driver: (situation, place) =>
    Effect.map(DialectPlayer.situation(situation, { dialect: DialectPlayer.codex, name: "codex", tools }), (program) => ({
      program,
      configDir: path.join(place.directory, "config")
    })),
  cannot: {
    rebinds: "a thread keeps its id",
    own_turn: "nothing is known that makes it begin a turn by itself",
    renames: "a thread keeps its id when it is resumed"
  }
})
