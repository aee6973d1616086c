import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import * as ProcessTable from "../src/internal/processTable.ts"

describe("the process table", () => {
  it("reads a name with spaces and parentheses in it", () => {
    assert.deepStrictEqual(
      ProcessTable.parseStat("71 (a (b) c) d) S 1 71 70 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4321 9 10"),
      { pid: 71, parentPid: 1, group: 71, session: 70, started: 4321, zombie: false }
    )
  })

  it("tells the dead that nobody collected from the living", () => {
    assert.strictEqual(ProcessTable.parseStat("71 (x) Z 1 71 70 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4321 9 10")?.zombie, true)
  })

  it("reads nothing from half a line", () => {
    assert.deepStrictEqual([ProcessTable.parseStat(""), ProcessTable.parseStat("71 (x"), ProcessTable.parseStat("71 (x) S 1")], [undefined, undefined, undefined])
  })

  it("reads a line of ps", () => {
    assert.deepStrictEqual(ProcessTable.parsePs("  71     1    70   501 Ss+  Mon Nov  3 09:05:07 2025 /bin/a  b c"), {
      pid: 71,
      parentPid: 1,
      group: 70,
      session: 70,
      started: Date.parse("Mon Nov 3 09:05:07 2025") / 1000,
      zombie: false,
      uid: 501,
      command: "/bin/a  b c"
    })
  })

  for (const [source, table] of Object.entries(ProcessTable.sources)) {
    it.skipIf(source === "procfs" && process.platform !== "linux")(`shows a child and its end, by ${source}`, async () => {
      const child = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" })
      const row = table.row(child.pid!)
      assert.deepStrictEqual(
        [row?.pid, row?.parentPid, row?.group, row?.zombie, table.command(child.pid!), table.uid(child.pid!)],
        [child.pid, process.pid, child.pid, false, "sleep 1000", process.geteuid!()]
      )
      assert.isTrue(table.rows().some((one) => one.pid === child.pid && one.started === row?.started))
      child.kill("SIGKILL")
      await new Promise((resolve) => child.once("exit", resolve))
      assert.strictEqual(table.row(child.pid!), undefined)
    })
  }
})
