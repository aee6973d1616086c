/** The verdict table on the real Copilot, through the turnpike binary. */
import { assert, describe, it } from "@effect/vitest"
import { ModelServer } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Semaphore from "effect/Semaphore"
import * as fs from "node:fs"
import { afterAll } from "vitest"
import { rows } from "./support/copilotVerdicts.ts"
import { breaches, eventually, makeBench, refusedWith } from "./support/turnpikeRun.ts"
import { cellOf, toMarkdown } from "./support/verdictTable.ts"

const runtime = ManagedRuntime.make(ModelServer.layer())
afterAll(() => runtime.dispose())

/** Each run is a Node, a Copilot and what it starts; more at once would only wait for each other. */
const atOnce = Semaphore.makeUnsafe(2)

describe.concurrent("turnpike run --harness copilot", () => {
  for (const row of rows) {
    it(row.name, { timeout: 600_000 }, () =>
      runtime.runPromise(Semaphore.withPermits(atOnce, 1)(Effect.gen(function*() {
        const server = yield* ModelServer.ModelServer
        const bench = yield* Effect.acquireRelease(
          Effect.sync(() => makeBench(server, "copilot")),
          ({ remove }) => Effect.sync(remove)
        )
        yield* Effect.promise(async () => {
          const told = await row.play(bench)
          assert.deepStrictEqual(
            { cell: cellOf(told, refusedWith(told)), breaches: breaches(told) },
            { cell: row.cell, breaches: [] },
            `${told.stderr}\n${told.stdout.slice(-2000)}`
          )
          assert.deepStrictEqual(told.result?.survivors ?? [], [])
          assert.notInclude(told.stdout + told.stderr, "sk-scripted-key")
          await row.also?.(told, bench)
          await eventually("processes that are left", bench.processes, (left) => left.length === 0)
        })
        yield* server.forget(bench.runId)
      }).pipe(Effect.scoped))))
  }
})

describe("docs/harness-copilot.md", () => {
  it("has the verdict table as it is tested", () => {
    const file = new URL("../../docs/harness-copilot.md", import.meta.url)
    const text = fs.readFileSync(file, "utf8")
    const begin = "<!-- verdicts: begin -->\n"
    const end = "\n<!-- verdicts: end -->"
    const from = text.indexOf(begin) + begin.length
    const to = text.indexOf(end)
    // UPDATE_DOCS=1 writes the table instead of comparing it.
    if (process.env["UPDATE_DOCS"] === "1") fs.writeFileSync(file, text.slice(0, from) + toMarkdown("Copilot", rows) + text.slice(to))
    else assert.strictEqual(text.slice(from, to), toMarkdown("Copilot", rows))
  })

  it("cites recordings that are there", () => {
    for (const { hidden } of rows) {
      if (hidden === undefined) continue
      assert.isTrue(fs.existsSync(new URL(`../fixtures/copilot/1.0.102/${hidden.recording}.stdout`, import.meta.url)), hidden.recording)
    }
  })
})
