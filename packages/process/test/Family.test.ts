import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as Family from "../src/internal/family.ts"
import * as ProcessTable from "../src/internal/processTable.ts"
import { eventually } from "./support/scenarios.ts"
import * as Specimens from "./support/specimens.ts"

describe("a family", () => {
  for (const [source, table] of Object.entries(ProcessTable.sources)) {
    it.live.skipIf(source === "procfs" && process.platform !== "linux")(`is found by its parents and remembered when they have died, by ${source}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const directory = Specimens.makeDirectory("family")
        Specimens.touch(directory, ["near", "far"])
        const root = yield* Effect.acquireRelease(
          Effect.sync(() =>
            spawn("sh", ["-c", "tail -f near & sh -c 'tail -f \"$0\" & read -r end' \"$PWD/far\" & exec tail -f near >/dev/null"], {
              cwd: directory,
              detached: true,
              stdio: ["pipe", "ignore", "ignore"]
            })
          ),
          (child) => Effect.sync(() => process.kill(-child.pid!, "SIGKILL"))
        )
        const family = Family.make(
          table,
          { pid: root.pid!, started: table.row(root.pid!)!.started, tagName: "TESTFAMILY", pipes: new Set(), own: 0 },
          { redact: (text) => text.replaceAll(directory, "DIR") }
        )
        const commands = () => family.describe(family.living()).map(({ command }) => command).sort()
        // The middle sh reads end of file at once and dies: its child is left without a parent.
        yield* eventually(() => commands().join() === "tail -f DIR/far,tail -f near,tail -f near")
        assert.deepStrictEqual(commands(), ["tail -f DIR/far", "tail -f near", "tail -f near"])
        assert.deepStrictEqual(family.describe(family.living()).map(({ insideGroup }) => insideGroup), [true, true, true])
        assert.strictEqual(family.leader()?.pid, root.pid)
        fs.rmSync(directory, { recursive: true })
      })), 30_000)
  }
})
