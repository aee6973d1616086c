import { assert, describe, it } from "@effect/vitest"
import * as ThisProcess from "../src/internal/thisProcess.ts"
import type { ProcessTable, Row } from "../src/internal/processTable.ts"
import * as OwnerTag from "../src/OwnerTag.ts"

const owner: OwnerTag.Owner = { bootId: "0a1b-2c", namespace: "4026531836", pid: 41, started: 1234 }

describe("OwnerTag", () => {
  it("is read back as it was written", () => {
    assert.deepStrictEqual(OwnerTag.parse(OwnerTag.format(owner)), owner)
  })

  it("is not read from anything else", () => {
    for (const value of ["", "1", "a.b.c.d", "0a1b.1.2", "0a1b.1.2.3.4", "0a1b.1.-2.3"]) {
      assert.strictEqual(OwnerTag.parse(value), undefined, value)
    }
  })

  it("is found in an environment beside those of other owners", () => {
    const other = { ...owner, pid: 42 }
    const environment = `PATH=/bin\0TAG_a=${OwnerTag.format(owner)}\0TAG_broken=x\0NOT_TAG_b=${OwnerTag.format(other)}\0TAG_c=${OwnerTag.format(other)}\0`
    assert.deepStrictEqual([...OwnerTag.inEnvironment(environment, "TAG_")], [["TAG_a", owner], ["TAG_c", other]])
  })

  it("marks a process whatever its name, as a watchdog's variable does", () => {
    const marked = [
      `PATH=/bin\0ANYTHING=${OwnerTag.format(owner)}\0`,
      `${OwnerTag.watchdogVariable}=1\0PATH=/bin`
    ]
    const unmarked = ["", "PATH=/bin\0", `TAG_a=${OwnerTag.format(owner)}x\0`, `TAG_a=x${OwnerTag.format(owner)}\0`, OwnerTag.format(owner)]
    assert.deepStrictEqual([...marked, ...unmarked].map(OwnerTag.isMarked), [true, true, false, false, false, false, false])
  })
})

describe("an owner", () => {
  const row: Row = { pid: 41, parentPid: 1, group: 41, session: 41, started: 1234, zombie: false }
  const tableWith = (found: Row | undefined) => ({ row: () => found }) as unknown as ProcessTable
  const self = { ...owner, pid: 7 }
  const facts: ReadonlyArray<readonly [string, Row | undefined, OwnerTag.Owner, boolean]> = [
    ["is alive while a process has its pid and start time", row, owner, false],
    ["is dead when no process has its pid", undefined, owner, true],
    ["is dead when its pid was given to a younger process", { ...row, started: 9999 }, owner, true],
    ["is dead when its parent has not collected it", { ...row, zombie: true }, owner, true],
    ["is not judged when it counts pids in another namespace", undefined, { ...owner, namespace: "1" }, false],
    ["is not judged when it is of another boot", undefined, { ...owner, bootId: "ff" }, false]
  ]
  for (const [fact, found, candidate, dead] of facts) {
    it(fact, () => {
      assert.strictEqual(ThisProcess.isDead(candidate, self, tableWith(found)), dead)
    })
  }
})
