import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "../architecture/support/Workspace.ts"
import { run } from "../packaging/support/Tarballs.ts"

const directory = path.join(root, "examples")
const programs = fs.readdirSync(directory).filter((file) => file.endsWith(".ts"))

describe("examples", () => {
  it("exist", () => {
    assert.isAtLeast(programs.length, 1)
  })

  it.each(programs)("%s prints what its .out file says", (file) => {
    const expected = fs.readFileSync(path.join(directory, file.replace(/\.ts$/, ".out")), "utf8")
    assert.deepStrictEqual(run("node", ["--conditions=turnpike-source", file], directory), { status: 0, stdout: expected, stderr: "" })
  })
})
