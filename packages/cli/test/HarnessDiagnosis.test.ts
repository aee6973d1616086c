import { assert, describe, it } from "@effect/vitest"
import type { Harness } from "@turnpike/kernel"
import { ScriptedHarness } from "@turnpike/harness-scripted"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as path from "node:path"
import * as HarnessDiagnosis from "../src/HarnessDiagnosis.ts"

const harness = (diagnose: Harness.Harness["diagnose"]): Harness.Harness => ({
  name: "toy",
  capabilities: ScriptedHarness.capabilities,
  check: () => Effect.die("nothing is checked"),
  open: () => Effect.die("nothing is opened"),
  diagnose
})

describe("a harness's diagnosis", () => {
  it.effect("is a problem where the program does not answer in time", () =>
    Effect.gen(function*() {
      let isStopped = false
      const asking = yield* Effect.forkChild(HarnessDiagnosis.make(
        harness(() => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (isStopped = true)))),
        { program: undefined }
      ))
      yield* TestClock.adjust("25 seconds")
      assert.deepStrictEqual([yield* Fiber.join(asking), isStopped], [{
        harness: "toy",
        usable: false,
        findings: [{ level: "problem", message: "its program did not answer within 25 seconds", remedy: "Run it by hand, or name another with --program." }]
      }, true])
    }))

  it.effect("is of the program that the shell would take, with the run's own variables", () =>
    Effect.gen(function*() {
      const told: Array<Harness.DiagnosisOptions> = []
      const toy = harness((asked) => Effect.sync(() => {
        told.push(asked)
        return { harness: "toy", usable: true, findings: [] }
      }))
      yield* HarnessDiagnosis.make(toy, { program: "bin/toy", env: { A_RUNS_OWN: "1" } })
      yield* HarnessDiagnosis.make(toy, { program: "toy" })
      assert.deepStrictEqual(told.map(({ cwd, program }) => [program, cwd]), [[path.resolve("bin/toy"), process.cwd()], ["toy", process.cwd()]])
      assert.deepStrictEqual(told.map(({ inheritedEnv }) => [inheritedEnv["A_RUNS_OWN"], inheritedEnv["PATH"]]), [["1", process.env["PATH"]], [undefined, process.env["PATH"]]])
    }))
})
