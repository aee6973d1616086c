/** That the benchmarks still run and find right what they measure; their figures are nobody's business here. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll } from "vitest"
import { root } from "../architecture/support/Workspace.ts"

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-bench-test-"))
afterAll(() => fs.rmSync(directory, { recursive: true, force: true }))

const script = (name: string, ...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [path.join(root, "scripts", name), ...args], { encoding: "utf8" })
  return { status, stderr, stdout }
}

describe("npm run bench", () => {
  it("measures what needs no other program, and writes all samples down", () => {
    const out = path.join(directory, "bench.json")
    const { status, stderr, stdout } = script("bench.mjs", "--only", "decode", "--quick", "--out", out)
    assert.strictEqual(status, 0, `${stdout}${stderr}`)
    const { decode } = JSON.parse(fs.readFileSync(out, "utf8")).reports
    assert.deepStrictEqual(
      { ok: decode.ok, checks: decode.checks, figures: decode.figures.length, samples: Object.keys(decode.samples) },
      {
        ok: true,
        checks: 6,
        figures: 12,
        samples: ["claude", "codex", "copilot"].flatMap((name) => [`${name}, recorded`, `${name}, long answer`])
      }
    )
  })

  it("measures the store of sessions, and finds right what it gave to it", () => {
    const out = path.join(directory, "store.json")
    const { status, stderr, stdout } = script("bench.mjs", "--only", "store", "--quick", "--out", out)
    assert.strictEqual(status, 0, `${stdout}${stderr}`)
    const { reports } = JSON.parse(fs.readFileSync(out, "utf8"))
    assert.deepStrictEqual(
      Object.entries(reports as Record<string, { readonly ok: boolean; readonly absent?: ReadonlyArray<string> }>).map(([name, { absent, ok }]) => [name, ok, absent ?? []]),
      ["append", "read", "sessions", "messages", "lag", "start"].map((name) => [name, true, []])
    )
  }, 180_000)

  it("says what there is, and refuses what there is not", () => {
    const help = script("bench.mjs", "--help")
    assert.deepStrictEqual([help.status, help.stderr], [0, ""])
    for (const name of ["delay", "decode", "overhead", "warm", "many", "append", "read", "sessions", "messages", "lag", "start"]) assert.match(help.stdout, new RegExp(`^  ${name} `, "m"))
    const unknown = script("bench.mjs", "--only", "speed")
    assert.deepStrictEqual([unknown.status, unknown.stdout], [2, ""])
    assert.include(unknown.stderr, "there is no benchmark \"speed\"; there are delay, decode, overhead, warm, many, append, read, sessions, messages, lag, start; and store, for several of them")
    assert.strictEqual(script("bench.mjs", "--fast").status, 2)
  })
})

describe("npm run soak", () => {
  it("holds every turn to what it has to be, and leaves nothing running", () => {
    const out = path.join(directory, "soak.json")
    const { status, stderr, stdout } = script("soak.mjs", "--minutes", "0", "--turns", "120", "--seed", "7", "--sample-seconds", "1", "--out", out)
    assert.strictEqual(status, 0, `${stdout}${stderr}`)
    const { kinds, ok, survivors, turns_done, verdicts } = JSON.parse(fs.readFileSync(out, "utf8"))
    const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((total, one) => total + one, 0)
    assert.deepStrictEqual({ ok, survivors, turns: [turns_done, sum(kinds), sum(verdicts)] }, { ok: true, survivors: [], turns: [120, 120, 120] })
  })

  it("refuses what it does not understand", () => {
    const refused = script("soak.mjs", "--turns", "many")
    assert.deepStrictEqual([refused.status, refused.stdout], [2, ""])
    assert.include(refused.stderr, "--turns takes a whole number of at least 1, not \"many\"")
  })
})
