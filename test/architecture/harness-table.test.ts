import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { root } from "./support/Workspace.ts"

describe("docs/harnesses.md", () => {
  it("has the capabilities that the adapters declare", () => {
    const { status, stderr } = spawnSync(process.execPath, ["--conditions=turnpike-source", "scripts/harness-table.ts", "--check"], { cwd: root, encoding: "utf8" })
    assert.deepStrictEqual([status, stderr.replaceAll(/^.*Warning.*\n|^\(Use .*\n/gmu, "")], [0, ""])
  })
})
