import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Specimens from "./support/specimens.ts"
import { isRoot, perform, stages } from "./support/stages.ts"

const group = stages("an ordinary user").find((stage) => stage.strategy === "group")!

/** Puts a set-uid setpriv into a directory: what sudo does, without a password. */
const installAsRoot = (directory: string) => {
  const source = spawnSync("sh", ["-c", "command -v setpriv"], { encoding: "utf8" }).stdout.trim()
  const file = path.join(directory, "as-root")
  fs.copyFileSync(source, file)
  fs.chmodSync(file, 0o4755)
  return file
}

/** Whether set-uid programs work where the tests have their directories. */
const setUidWorks = (): boolean => {
  const directory = Specimens.makeDirectory("set-uid")
  const file = installAsRoot(directory)
  const { status } = spawnSync("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", file, "--reuid=0", "true"])
  fs.rmSync(directory, { recursive: true })
  return status === 0
}

const why = process.platform !== "linux"
  ? "needs Linux"
  : !isRoot
  ? "needs root, to make a set-uid program"
  : group.missing ?? (setUidWorks() ? undefined : "set-uid programs do nothing in the directory for temporary files")

describe("survivors", () => {
  const leftOut = why === undefined ? "" : ` (left out: ${why})`
  for (const name of ["a descendant that became another user", "an orphan's child that became another user"]) {
    it.skipIf(why !== undefined)(`are listed where there is ${name}, which cannot be killed${leftOut}`, async () => {
      const { errors, left, outcomes } = await perform(group, [name], 1, installAsRoot)
      assert.deepStrictEqual([outcomes.get(name), errors], [{ facts: { killed: ["own"], survivors: ["foreign"] } }, ""])
      assert.deepStrictEqual(left.map(({ command }) => /[^/]*$/.exec(command)![0]), ["foreign"])
    }, 60_000)
  }
})
