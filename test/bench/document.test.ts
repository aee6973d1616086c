/** That docs/benchmarks.md says what was measured. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Document from "./support/Document.ts"
import type { Results } from "./support/Tables.ts"

const read = (file: string) => fs.readFileSync(new URL(file, import.meta.url), "utf8")

describe("docs/benchmarks.md", () => {
  it("has the figures of the results that are committed, and no quick ones", () => {
    const file = "../../docs/benchmarks.md"
    const results: Results = JSON.parse(read("results/bench.json"))
    assert.deepStrictEqual(
      Object.entries(results.reports).map(([name, { ok, quick }]) => [name, ok, quick]).sort(),
      ["append", "decode", "delay", "lag", "many", "messages", "overhead", "read", "sessions", "start", "warm"].map((name) => [name, true, false])
    )
    const filled = Document.fill(read(file), Document.tables(results, JSON.parse(read("results/soak.json"))))
    // UPDATE_DOCS=1 writes them instead of comparing them.
    if (process.env["UPDATE_DOCS"] === "1") fs.writeFileSync(new URL(file, import.meta.url), filled)
    else assert.strictEqual(read(file), filled)
  })
})
