/**
 * Many runs in one process, through the packages, as a server has them.
 *
 * Called with their number and a scenario. Writes one JSON object a line: `loaded` before the first
 * run is begun, `live` when every agent has said its first word, `done` with what came of them. Memory
 * is what is in use after a collection of garbage; CPU is this process's own, in milliseconds.
 */
import { ScriptedHarness } from "@turnpike/harness-scripted"
import { Cancel, Harness, Run, RunPreparation, SessionStoreMemory } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

const [count = "0", scenario = ""] = process.argv.slice(2)
const runs = Number(count)

setFlagsFromString("--expose-gc")
const gc: () => void = runInNewContext("gc")
const tell = (phase: string, more: Readonly<Record<string, unknown>> = {}): void => {
  const { system, user } = process.cpuUsage()
  gc()
  process.stdout.write(`${JSON.stringify({ phase, cpu_ms: (user + system) / 1000, heap_used: process.memoryUsage().heapUsed, ...more })}\n`)
}

const environment = Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]))
let ready = 0

const one = (harness: Harness.Harness, index: number) =>
  Effect.scoped(Effect.gen(function*() {
    let pieces = 0
    const { sessionId, ...session } = Harness.options({ sessionId: `run-${index}`, cwd: process.cwd(), inheritedEnv: environment })
    const prepared = yield* RunPreparation.prepare({ spec: { task: `run ${index}`, harness: harness.name }, harness, newSessionId: sessionId, holder: "the benchmark", session })
    const result = yield* Run.execute(prepared, {
      runId: `run-${index}`,
      turnpikeVersion: "0.0.0",
      sink: (event) =>
        Effect.sync(() => {
          if (event.type !== "text_delta") return
          pieces++
          if (event.text === "ready" && ++ready === runs) tell("live")
        }),
      cancel: yield* Cancel.make,
      deliver: "caller",
      grace: "1 second"
    })
    return { pieces, answer: result.result.summary, success: result.result.success, survivors: result.survivors.length }
  }))

await Effect.runPromise(Effect.gen(function*() {
  const harness = yield* ScriptedHarness.make({ scenario })
  tell("loaded")
  const outcomes = yield* Effect.forEach(Array.from({ length: runs }, (_, index) => one(harness, index)), (run) => run, { concurrency: "unbounded" })
  tell("done", { outcomes })
}).pipe(Effect.provide(Layer.merge(SessionStoreMemory.layer, Supervisor.layer({ reapOrphans: false })))))
