/** Tests on a bench of their own: a run of the turnpike binary on a real CLI, and what must hold after each. */
import { assert, describe, it } from "@effect/vitest"
import { type ModelRequest, ModelServer } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Semaphore from "effect/Semaphore"
import * as fs from "node:fs"
import * as path from "node:path"
import { afterAll } from "vitest"
import { type RealCli, versionOf } from "./realCli.ts"
import { type Bench, breaches, eventually, makeBench, refusedWith, type Told } from "./turnpikeRun.ts"
import { cellOf, type Row, toMarkdown } from "./verdictTable.ts"

const runtime = ManagedRuntime.make(ModelServer.layer())
afterAll(() => runtime.dispose())

/** Each run is a Node, a CLI and what it starts; more at once would only wait for each other. */
const atOnce = Semaphore.makeUnsafe(2)

/** What the scripted model was asked, in order. */
export type Requests = () => Promise<ReadonlyArray<ModelRequest.ModelRequest>>

/** A test on a new bench, of which no process is left in the end. */
export const factOf = (cli: RealCli) => (name: string, body: (bench: Bench, requests: Requests) => Promise<void>): void =>
  it(name, { timeout: 600_000 }, () =>
    runtime.runPromise(Semaphore.withPermits(atOnce, 1)(Effect.gen(function*() {
      const server = yield* ModelServer.ModelServer
      const bench = yield* Effect.acquireRelease(Effect.sync(() => makeBench(server, cli)), ({ remove }) => Effect.sync(remove))
      yield* Effect.promise(async () => {
        await body(bench, () => Effect.runPromise(server.requests(bench.runId)))
        await eventually("processes that are left", bench.processes, (left) => left.length === 0)
      })
      yield* server.forget(bench.runId)
    }).pipe(Effect.scoped))))

export const succeeded = (told: Told): Told => {
  assert.deepStrictEqual([told.exit, breaches(told)], [0, []], `${told.stderr}\n${told.stdout.slice(-2000)}`)
  return told
}

export const noticesOf = (told: Told, kind: string): ReadonlyArray<string> =>
  told.events.flatMap((event) => event.type === "notice" && event.kind === kind ? [event.message] : [])

/** Writes a file of the bench's home, and answers its path. */
export const write = (bench: Bench, name: string, text: string): string => {
  const file = path.join(bench.place.home, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
  return file
}

/** Plays every row, and compares the page of the documentation with the table. `product` is the CLI's name for people. */
export const verdictSuite = (cli: RealCli, product: string, rows: ReadonlyArray<Row>): void => {
  const fact = factOf(cli)
  describe.concurrent(`turnpike run --harness ${cli}`, () => {
    for (const row of rows) {
      fact(row.name, async (bench) => {
        const told = await row.play(bench)
        assert.deepStrictEqual(
          { cell: cellOf(told, refusedWith(told)), breaches: breaches(told) },
          { cell: row.cell, breaches: [] },
          `${told.stderr}\n${told.stdout.slice(-2000)}`
        )
        assert.deepStrictEqual(told.result?.survivors ?? [], [])
        assert.notInclude(told.stdout + told.stderr, "sk-scripted-key")
        await row.also?.(told, bench)
      })
    }
  })

  describe(`docs/harness-${cli}.md`, () => {
    it("has the verdict table as it is tested", () => {
      const file = new URL(`../../../docs/harness-${cli}.md`, import.meta.url)
      const text = fs.readFileSync(file, "utf8")
      const begin = "<!-- verdicts: begin -->\n"
      const end = "\n<!-- verdicts: end -->"
      const from = text.indexOf(begin) + begin.length
      const to = text.indexOf(end)
      // UPDATE_DOCS=1 writes the table instead of comparing it.
      if (process.env["UPDATE_DOCS"] === "1") fs.writeFileSync(file, text.slice(0, from) + toMarkdown(product, rows) + text.slice(to))
      else assert.strictEqual(text.slice(from, to), toMarkdown(product, rows))
    })

    it("cites recordings that are there", () => {
      for (const { hidden } of rows) {
        if (hidden === undefined) continue
        // The package of a platform may name it behind the version.
        const version = /^\d+\.\d+\.\d+/.exec(versionOf(cli))?.[0]
        const recording = new URL(`../../fixtures/${cli}/${version}/${hidden.recording}.stdout`, import.meta.url)
        assert.isTrue(fs.existsSync(recording), hidden.recording)
      }
    })
  })
}
