import { Failure } from "@turnpike/contract"
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "./support/Workspace.ts"

interface Section {
  readonly code: string
  readonly fields: ReadonlyMap<string, string>
}

const sections = (text: string): ReadonlyArray<Section> =>
  text.split(/^### /mu).slice(1).map((section) => {
    const [code = "", ...lines] = section.split("\n")
    const fields = lines.flatMap((line): Array<[string, string]> => {
      const field = /^- \*\*([^:*]+):\*\* (.+)$/u.exec(line)
      return field === null ? [] : [[field[1] ?? "", field[2] ?? ""]]
    })
    return { code, fields: new Map(fields) }
  })

const documented = sections(fs.readFileSync(path.join(root, "docs/errors.md"), "utf8"))
const codes = Object.entries(Failure.codes) as ReadonlyArray<[Failure.FailureCode, { retryable: boolean; remedy: string }]>

describe("docs/errors.md", () => {
  it("has one section for each failure code, in the contract's order, and no other", () => {
    assert.deepStrictEqual(documented.map(({ code }) => code), codes.map(([code]) => code))
  })

  it("says the same five things of every failure", () => {
    assert.deepStrictEqual(
      documented.map(({ code, fields }) => [code, ...fields.keys()]),
      documented.map(({ code }) => [code, "When", "Still true", "What to do", "Retryable", "Exit code"])
    )
  })

  it("gives the remedy and the retryability that the contract gives", () => {
    assert.deepStrictEqual(
      documented.map(({ code, fields }) => [code, fields.get("What to do"), fields.get("Retryable")]),
      codes.map(([code, { remedy, retryable }]) => [code, remedy, retryable ? "yes" : "no"])
    )
  })

  it("gives an exit code that `turnpike` has, and 2 exactly where the contract does", () => {
    const exitCodes = documented.map(({ code, fields }) => [code, [...(fields.get("Exit code") ?? "").matchAll(/\d+/gu)].map(Number)] as const)
    assert.deepStrictEqual(
      exitCodes.filter(([, found]) => found.length === 0 || !found.every((exitCode) => [1, 2, 3, 130, 143].includes(exitCode))),
      []
    )
    assert.deepStrictEqual(
      exitCodes.filter(([, found]) => found.includes(2)).map(([code]) => code),
      codes.filter(([code]) => Failure.exitCodeBeforeStart(code) === 2).map(([code]) => code)
    )
  })
})
