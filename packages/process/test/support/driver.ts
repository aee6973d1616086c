/**
 * Runs scenarios in a process of its own, so that the same ones run as root and as
 * an ordinary user, under Node and under Deno. Prints one JSON line for each:
 * `{name, facts}` or `{name, failure}`. In mode `hold` it starts a program whose
 * children get away, says `armed` before, and stays until it is killed.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Strategy } from "../../src/Containment.ts"
import * as Supervisor from "../../src/Supervisor.ts"
import { foreignScenarios } from "./foreignScenarios.ts"
import { heavyScenarios, type Scenario, scenarios, type Stage } from "./scenarios.ts"
import * as Specimens from "./specimens.ts"

export interface Order {
  readonly mode: "scenarios" | "hold"
  readonly strategy: Strategy
  readonly tini?: string | false
  readonly names: ReadonlyArray<string>
  readonly concurrency: number
  readonly directory: string
  /** Else `TESTOWNER_`. */
  readonly tagPrefix?: string
}

const order = JSON.parse(process.argv[2]!) as Order

/** What an agent leaves in the environment of what it starts, and what a person sets. */
const inherited = { CLAUDECODE: "1", CLAUDE_CODE_SSE_PORT: "1", CODEX_SANDBOX: "seatbelt", COPILOT_CLI: "1", CODEX_HOME: "/a/home" }

const print = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`)

const program = Effect.gen(function*() {
  const supervisor = yield* Supervisor.make({
    containment: order.strategy,
    tini: order.tini,
    tagPrefix: order.tagPrefix ?? "TESTOWNER_",
    reapOrphans: false,
    environment: { ...process.env, ...inherited }
  })
  const shell = (directory: string): Stage["shell"] => (script, more) =>
    supervisor.spawn({ program: "sh", args: ["-c", script], cwd: directory, ...more, env: { [Specimens.variable]: directory, ...more?.env } })

  if (order.mode === "hold") {
    print("armed")
    yield* shell(order.directory)(`${Specimens.escapes} trap '' INT TERM HUP; while :; do sleep 0.05; done`)
    return yield* Effect.never
  }

  const all: Record<string, Scenario> = { ...scenarios, ...heavyScenarios, ...foreignScenarios }
  yield* Effect.forEach(order.names, (name) =>
    Effect.gen(function*() {
      const directory = Specimens.makeDirectory("scenario", order.directory)
      const exit = yield* Effect.exit(Effect.scoped(all[name]!({ supervisor, strategy: order.strategy, directory, shell: shell(directory) })))
      print(Exit.isSuccess(exit) ? { name, facts: exit.value } : { name, failure: Cause.pretty(exit.cause) })
    }), { concurrency: order.concurrency, discard: true })
})

await Effect.runPromise(Effect.scoped(program))
// A timer or handle that is left must not keep the driver, and the suite, waiting.
process.exit(0)
